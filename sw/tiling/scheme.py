"""The tile scheme: how one multiplication is cut up and how the buffer is shared; plain JSON on disk."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from reprlib import Repr
from typing import Any, Protocol

from .tile_list import cut_inside, longest_sides, malformed, no_window, uncovered

__all__ = [
    "BUFFERING",
    "HARDWARE_BUFFERED",
    "LOAD_LIST",
    "LOAD_TILE",
    "LOAD_USED",
    "LOAD_WINDOW",
    "MINIMUM_FIFO_LINES",
    "MINIMUM_LINES_A",
    "MOST_STRIPS",
    "ORDERS",
    "STREAMING",
    "TENSORS",
    "Hardware",
    "Scheme",
    "SchemeError",
    "default_partition",
    "resident_lines",
]

TENSORS = ("A", "B", "C")
# Outermost first; the index is the value of the ORDER register.
ORDERS = ("ijk", "ikj", "jik", "jki", "kij", "kji")
STREAMING = "streaming"
BUFFERING = "buffering"
LOAD_LIST = "list"
LOAD_TILE = "tile"
LOAD_USED = "used"
LOAD_WINDOW = "window"
MINIMUM_LINES_A = 16
MINIMUM_FIFO_LINES = 4
# Enough that every element has a partial row and the next one is on its way.
REENTRY_SHARE = 16
# Tensors whose tiles policies keep on chip unless told otherwise.
HARDWARE_BUFFERED = ("A", "B")
# What the model does with lists of tiles.
LISTED_MODE = {"A": STREAMING, "B": BUFFERING, "C": STREAMING}
LISTED_ORDER = "jki"
# Of a row of C, where lists have strips.
MOST_STRIPS = 4096
# Of any number in a file: what comes after computes with 64 bits and with floating point.
LARGEST = 2**63 - 1
# Characters of a value in a complaint.
LONGEST_SHOWN = 120


class Hardware(Protocol):
    """What a scheme has to know of ``gen.design.Design``."""

    @property
    def lanes(self) -> int: ...
    @property
    def line_bytes(self) -> int: ...
    @property
    def buffer(self) -> Any: ...
    @property
    def tuning(self) -> Any: ...
    @property
    def pe(self) -> Any: ...


class SchemeError(ValueError):
    """A scheme that cannot be read or that the design cannot run; ``field``, ``value`` and ``allowed`` say why."""

    def __init__(self, field: str, value: object, allowed: str) -> None:
        self.field = field
        self.value = value
        self.allowed = allowed
        super().__init__(f"scheme: {field} = {_shown(value)}: must be {allowed}")


def _shown(value: object) -> str:
    """The value in one line, however long or deep."""
    form = Repr()
    form.maxstring = form.maxother = 100
    form.maxlong = 40
    text = form.repr(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


def _integer(name: str, value: object, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise SchemeError(name, value, f"an integer of at least {least}")
    if value > LARGEST:
        raise SchemeError(name, value, f"at most {LARGEST}")
    return value


def _mapping(name: str, value: object, keys: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or set(value) != set(keys):
        raise SchemeError(name, value, f"an object with exactly the keys {', '.join(keys)}")
    return value


def _modes(name: str, value: object) -> None:
    for tensor, mode in _mapping(name, value, TENSORS).items():
        if mode not in (STREAMING, BUFFERING):
            raise SchemeError(f"{name}.{tensor}", mode, f"{STREAMING} or {BUFFERING}")


def _prediction(name: str, value: object) -> None:
    if not isinstance(value, Mapping):
        raise SchemeError(name, value, "an object")
    for counted, number in value.items():
        _integer(f"{name}.{counted}", number, 0)


def _alternative(name: str, entry: object) -> None:
    """Refuses a runner-up that a report could not show; its prediction stands beside its tile shape or in an object."""
    if not isinstance(entry, Mapping):
        raise SchemeError(name, entry, "an object")
    for key, value in entry.items():
        called = f"{name}.{key}"
        if key == "mode":
            _modes(called, value)
        elif key == "predicted":
            _prediction(called, value)
        elif key == "order":
            if value not in ORDERS:
                raise SchemeError(called, value, f"one of {', '.join(ORDERS)}")
        elif key in ("T_i", "T_j", "T_k", "cycles", "dram_bytes"):
            _integer(called, value, 1 if key.startswith("T_") else 0)
        elif not isinstance(value, (str, bool)) and not (isinstance(value, (int, float)) and abs(value) <= LARGEST):
            raise SchemeError(called, value, f"a name, true, false or a number of at most {LARGEST}")


@dataclass(frozen=True, kw_only=True)
class Scheme:
    """One tiling of ``C[i,j] = sum_k A[i,k] * B[k,j]``.

    Parameters
    ----------
    policy: which policy chose it.
    order: inter-tile order, one of ``ORDERS``, outermost rank first.
    T_i, T_j, T_k: tile shape in coordinates, at least 1.
    buffer_bytes: partition of the SRAM for ``A``, ``B``, ``C``.
    fifo_bytes: FIFO-managed region inside the partitions of ``A`` and ``B``.
    mode: ``streaming`` or ``buffering`` for ``A``, ``B``, ``C``.
    tuning: ``T_j`` and ``T_k`` are where the hardware begins; it changes them while it runs (HYTE 6.4).
    tiles: where shapes differ from tile to tile, each tile as ``[i, end_i, j, end_j, k, end_k]``, in the order of the run:
        j outermost, then k, then i. ``T_i``, ``T_j``, ``T_k`` are then the longest sides, ``order`` is ``jki``, and B alone is
        buffered. Empty for one shape.
    load: ``tile`` loads B's tile whole, ``used`` only the rows that the tile of A uses, with ``tiles`` that cut i alone. With
        ``window`` each of ``tiles`` takes ``T_i`` rows of A and spans the coordinates of k that these have, at most ``T_k``, none
        for rows without elements: j is whole, k is not cut in steps, and what lies in no tile is empty. The hardware runs it.
        With ``list`` a tile loads the rows of B that it uses (:mod:`.lists`); where ``T_j`` is less than J, rows of C are made in
        strips of ``T_j`` columns, and ``T_i`` counts strips (:mod:`.strips`).
    seconds: wall time of the decision.
    predicted: ``cycles`` and ``dram_bytes`` by the cost model; empty when nobody predicted.
    alternatives: runners-up, best first: order, tile shape, mode and prediction of each.
    """

    policy: str
    order: str
    T_i: int
    T_j: int
    T_k: int
    buffer_bytes: dict[str, int]
    fifo_bytes: dict[str, int]
    mode: dict[str, str]
    tuning: bool = False
    tiles: list[list[int]] = field(default_factory=list)
    load: str = LOAD_TILE
    seconds: float = 0.0
    predicted: dict[str, int] = field(default_factory=dict)
    alternatives: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not isinstance(self.policy, str) or not self.policy:
            raise SchemeError("policy", self.policy, "a name")
        if self.order not in ORDERS:
            raise SchemeError("order", self.order, f"one of {', '.join(ORDERS)}")
        for rank in "ijk":
            _integer(f"T_{rank}", self.tile(rank), 1)
        for tensor, size in _mapping("buffer_bytes", self.buffer_bytes, TENSORS).items():
            _integer(f"buffer_bytes.{tensor}", size, 0)
        for tensor, size in _mapping("fifo_bytes", self.fifo_bytes, ("A", "B")).items():
            _integer(f"fifo_bytes.{tensor}", size, 0)
        _modes("mode", self.mode)
        if not isinstance(self.tuning, bool):
            raise SchemeError("tuning", self.tuning, "true or false")
        if not isinstance(self.tiles, list):
            raise SchemeError("tiles", self.tiles, "a list of tiles")
        if self.load not in ((LOAD_USED, LOAD_WINDOW) if self.tiles else (LOAD_LIST,)) and self.load != LOAD_TILE:
            raise SchemeError(
                "load", self.load, f"{LOAD_TILE}, {LOAD_LIST}, or {LOAD_USED} or {LOAD_WINDOW} beside tiles"
            )
        wrong = malformed(self.tiles, self.load == LOAD_WINDOW)
        if wrong is not None:
            raise SchemeError(f"tiles[{wrong[0]}]", self.tiles[wrong[0]], wrong[1])
        seconds = self.seconds
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 <= seconds <= LARGEST:
            raise SchemeError("seconds", seconds, "a number of seconds, at least 0")
        _prediction("predicted", self.predicted)
        if not isinstance(self.alternatives, list):
            raise SchemeError("alternatives", self.alternatives, "a list of objects")
        for number, entry in enumerate(self.alternatives):
            _alternative(f"alternatives[{number}]", entry)

    def tile(self, rank: str) -> int:
        """``T_rank``, for ``rank`` in ``ijk``."""
        return {"i": self.T_i, "j": self.T_j, "k": self.T_k}[rank]

    def buffers(self, tensor: str) -> bool:
        """Whether tiles of ``tensor`` are kept on chip."""
        return self.mode[tensor] == BUFFERING

    @property
    def windows(self) -> list[list[int]]:
        """``[k, end_k]`` of each tile along i, with ``load`` = ``window``; else empty."""
        return [[box[4], box[5]] for box in self.tiles] if self.load == LOAD_WINDOW else []

    @property
    def listed(self) -> bool:
        """The rows of B that a tile uses are loaded (:mod:`.lists`)."""
        return self.load == LOAD_LIST

    @property
    def keeps_rows(self) -> bool:
        """A tile finds rows of B in place that tiles before it have loaded (:mod:`.ring`)."""
        return self.load in (LOAD_WINDOW, LOAD_LIST)

    @property
    def uneven(self) -> bool:
        """Tiles have shapes that no hardware runs."""
        return bool(self.tiles) and self.load != LOAD_WINDOW

    @property
    def cycles(self) -> int | None:
        """Predicted cycles."""
        return self.predicted.get("cycles")

    @property
    def dram_bytes(self) -> int | None:
        """Predicted bus bytes, all tensors."""
        return self.predicted.get("dram_bytes")

    def clip(self, I: int, J: int, K: int) -> "Scheme":  # noqa: E741 - extents, as in the papers
        """The same scheme with no tile side beyond the shape."""
        return replace(self, T_i=min(self.T_i, I), T_j=min(self.T_j, J), T_k=min(self.T_k, K))

    def tiles_per_rank(self, I: int, J: int, K: int) -> tuple[int, int, int]:  # noqa: E741 - extents, as in the papers
        """Tile counts along i, j, k; with windows one along k."""
        return -(-I // self.T_i), -(-J // self.T_j), 1 if self.load == LOAD_WINDOW else -(-K // self.T_k)

    def partition_lines(self, line_bytes: int) -> dict[str, tuple[int, int]]:
        """(first SRAM line, lines) of each tensor's partition, A, B, C from line 0 up."""
        placed = {}
        base = 0
        for tensor in TENSORS:
            lines = self.buffer_bytes[tensor] // line_bytes
            placed[tensor] = (base, lines)
            base += lines
        return placed

    def rows_lines(self, line_bytes: int) -> int:
        """Lines of B's partition for rows and their metadata: all but the FIFO-managed region."""
        return (self.buffer_bytes["B"] - self.fifo_bytes["B"]) // line_bytes

    def fifo_lines(self, line_bytes: int) -> dict[str, int]:
        """Lines of the FIFO-managed regions."""
        return {tensor: size // line_bytes for tensor, size in self.fifo_bytes.items()}

    def validate(self, design: Hardware, I: int, J: int, K: int) -> None:  # noqa: E741 - extents, as in the papers
        """Raise SchemeError unless ``design`` can run this on A of shape I x K and B of shape K x J.

        Any order is legal with any mode of A: where j is not innermost its tiles are loaded at almost every visit.
        """
        for rank, size in zip("ijk", (I, J, K), strict=True):
            if self.tile(rank) > size:
                raise SchemeError(f"T_{rank}", self.tile(rank), f"from 1 to {rank.upper()} = {size}")
        if design.pe.dataflow != "gustavson":
            from .dataflows.rules import check

            check(self, design)
            return
        line = design.line_bytes
        for name, sizes in (("buffer_bytes", self.buffer_bytes), ("fifo_bytes", self.fifo_bytes)):
            for tensor, size in sizes.items():
                if size % line:
                    raise SchemeError(f"{name}.{tensor}", size, f"a multiple of the line size {line}")
        total = sum(self.buffer_bytes.values())
        if total > design.buffer.bytes:
            raise SchemeError("buffer_bytes", total, f"together at most the buffer's {design.buffer.bytes} bytes")
        if self.buffer_bytes["A"] < MINIMUM_LINES_A * line:
            raise SchemeError("buffer_bytes.A", self.buffer_bytes["A"], f"at least {MINIMUM_LINES_A * line}")
        for tensor, size in self.fifo_bytes.items():
            least, most = MINIMUM_FIFO_LINES * line, self.buffer_bytes[tensor]
            if not least <= size <= most:
                raise SchemeError(f"fifo_bytes.{tensor}", size, f"from {least} to the partition's {most}")
        if self.buffers("A"):
            needed = (-(-self.T_i // design.lanes) + 1) * line
            if self.buffer_bytes["A"] < needed:
                allowed = f"at least {needed}: metadata of {self.T_i} rows at 8 bytes, a line"
                raise SchemeError("buffer_bytes.A", self.buffer_bytes["A"], allowed)
        if self.listed:
            self._validate_list(J, K)
        elif self.buffers("B") and self.load != LOAD_USED:
            spare = 2 if self.load == LOAD_WINDOW else 1
            needed = (-(-self.T_k // design.lanes) + spare) * line + self.fifo_bytes["B"]
            if self.buffer_bytes["B"] < needed:
                spared = "two lines" if self.load == LOAD_WINDOW else "a line"
                allowed = (
                    f"at least {needed}: metadata of {self.T_k} rows at 8 bytes, the FIFO-managed region, {spared}"
                )
                raise SchemeError("buffer_bytes.B", self.buffer_bytes["B"], allowed)
        elif self.T_j < J and not self.buffers("B"):
            raise SchemeError("mode.B", self.mode["B"], f"{BUFFERING} while T_j = {self.T_j} is less than J = {J}")
        if self.tiles:
            self._validate_tiles(I, J, K)
        if self.tuning and self.tiles:
            raise SchemeError("tuning", True, "false: tiles says every shape")
        if self.tuning and not design.tuning.dynamic:
            raise SchemeError("tuning", True, "false: the design has tuning.dynamic = false")
        if self.tuning and not self.buffers("B"):
            raise SchemeError("tuning", True, f"false while mode.B is {STREAMING}: there is no tile of B to fit")
        if self.buffers("C") and self.order[2] != "k":
            raise SchemeError("mode.C", self.mode["C"], f"{STREAMING} while k is not innermost in {self.order}")
        if self.buffers("C"):
            # Two halves, which take turns as source and destination.
            half = -(-self.T_i // design.lanes) + 1
            if self.buffer_bytes["C"] < 2 * half * line or self.buffer_bytes["C"] % (2 * line):
                allowed = f"at least {2 * half * line} and a multiple of {2 * line}: two halves for {self.T_i} rows"
                raise SchemeError("buffer_bytes.C", self.buffer_bytes["C"], allowed)

    def _validate_list(self, columns: int, inner: int) -> None:
        """Raise SchemeError unless k is whole, strips are few and B alone is buffered. What B must hold follows from operands."""
        if self.mode != LISTED_MODE:
            raise SchemeError("mode", self.mode, f"{BUFFERING} for B alone where load is {LOAD_LIST}")
        if self.T_k < inner:
            raise SchemeError("T_k", self.T_k, f"K = {inner} where load is {LOAD_LIST}")
        if self.T_j * MOST_STRIPS < columns:
            least = -(-columns // MOST_STRIPS)
            raise SchemeError(
                "T_j", self.T_j, f"at least {least} where load is {LOAD_LIST}: {MOST_STRIPS} strips of a row"
            )
        if self.tuning:
            raise SchemeError("tuning", True, f"false where load is {LOAD_LIST}")

    def _validate_tiles(self, rows: int, columns: int, inner: int) -> None:
        """Raise SchemeError unless ``tiles`` are what ``load`` says and the fields beside are theirs."""
        listed = self.uneven
        wrong = (
            uncovered(self.tiles, rows, columns, inner)
            if listed
            else no_window(self.tiles, self.T_i, self.T_k, (rows, columns, inner))
        )
        if wrong is None and self.load == LOAD_USED:
            wrong = cut_inside(self.tiles, columns, inner)
        if wrong is not None:
            number, allowed = wrong
            if number == len(self.tiles):
                raise SchemeError("length of tiles", number, allowed)
            raise SchemeError(f"tiles[{number}]", self.tiles[number], allowed)
        if self.mode != LISTED_MODE:
            raise SchemeError("mode", self.mode, f"{BUFFERING} for B alone beside tiles")
        if listed and self.order != LISTED_ORDER:
            raise SchemeError("order", self.order, f"{LISTED_ORDER} beside tiles: i moves first, then k, then j")
        if self.load == LOAD_WINDOW and self.T_j < columns:
            raise SchemeError("T_j", self.T_j, f"J = {columns} where load is {LOAD_WINDOW}")
        # What the partition must hold has been told by these, not by the list.
        for rank, longest in zip("ijk", longest_sides(self.tiles), strict=True):
            if self.tile(rank) != longest:
                raise SchemeError(f"T_{rank}", self.tile(rank), f"{longest}, the longest side of tiles along {rank}")

    def to_json(self) -> str:
        """One JSON document, stable key order."""
        return json.dumps(asdict(self), indent=2)

    @classmethod
    def from_json(cls, text: str) -> "Scheme":
        """Read what ``to_json`` wrote; anything else raises SchemeError."""
        try:
            document = json.loads(text)
        except ValueError as error:
            raise SchemeError("document", text[:20], f"JSON ({error})") from None
        except RecursionError:
            raise SchemeError("document", text[:20], "JSON of fewer levels") from None
        return cls.from_dict(document)

    @classmethod
    def from_dict(cls, document: object) -> "Scheme":
        """A scheme from parsed JSON."""
        if not isinstance(document, Mapping):
            raise SchemeError("document", document, "an object")
        known = {f.name: f for f in fields(cls)}
        for name in document:
            if name not in known:
                raise SchemeError(str(name), document[name], f"absent: the fields are {', '.join(known)}")
        for name in ("policy", "order", "T_i", "T_j", "T_k", "buffer_bytes", "fifo_bytes", "mode"):
            if name not in document:
                raise SchemeError(name, None, "present")
        return cls(**document)


def resident_lines(*, lines: int, fifo_lines: int, rows: int, lanes: int) -> int:
    """Lines of a buffering A or B partition that hold segments: not metadata (8 bytes a row), not FIFO-managed region.

    A has no such region: its bumped rows pass through the reader's queue.
    """
    return lines - fifo_lines - -(-rows // lanes)


def default_partition(
    design: Hardware, *, lines_a: int = MINIMUM_LINES_A, lines_c: int | None = None, partial_rows: bool = False
) -> tuple[dict[str, int], dict[str, int]]:
    """``(buffer_bytes, fifo_bytes)``: A and C get what is asked for, B the rest.

    With ``partial_rows``, where k is cut, C has a sixteenth of the buffer unless ``lines_c`` says otherwise: partial rows
    in memory re-enter through it. B's FIFO-managed region is the design's, but never more than a quarter of the partition.
    """
    line = design.line_bytes
    if lines_c is None:
        lines = design.buffer.bytes // line
        spare = max(0, lines - lines_a - MINIMUM_FIFO_LINES - 2)
        lines_c = min(lines // REENTRY_SHARE, spare) if partial_rows else 0
    lines_b = design.buffer.bytes // line - lines_a - lines_c
    wanted = min(design.buffer.fifo_bytes // line, lines_b // 4)
    fifo_b = max(MINIMUM_FIFO_LINES, wanted)
    if lines_a < MINIMUM_LINES_A or lines_c < 0 or lines_b < fifo_b + 2:
        allowed = f"at least {MINIMUM_LINES_A} lines for A and {fifo_b + 2} for B out of {design.buffer.bytes // line}"
        raise SchemeError("buffer_bytes", (lines_a, lines_b, lines_c), allowed)
    parts = {"A": lines_a * line, "B": lines_b * line, "C": lines_c * line}
    return parts, {"A": MINIMUM_FIFO_LINES * line, "B": fifo_b * line}
