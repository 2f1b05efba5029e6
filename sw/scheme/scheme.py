"""The tile scheme: how one multiplication is cut up and how the buffer is shared; plain JSON on disk."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from sw.golden.partition import Partition

from . import dataflow_rules, rules
from .errors import SchemeError
from .explicit_tiles import malformed
from .shares import partition_of
from .terms import (
    BUFFERING,
    GUSTAVSON,
    LOAD_LIST,
    LOAD_TILE,
    LOAD_USED,
    LOAD_WINDOW,
    ORDERS,
    STREAMING,
    TENSORS,
    Hardware,
)

__all__ = ["Scheme"]

# Of any number in a file: what comes after computes with 64 bits and with floating point.
LARGEST = 2**63 - 1


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
    strips: where above 0, rows of C are made in strips of ``T_j`` columns (:mod:`sw.plan.strips`), and a tile is so many of them,
        whichever rows they are of: ``T_i`` is whole. 0 where rows of C are made whole.
    buffer_bytes: partition of the SRAM for ``A``, ``B``, ``C``.
    fifo_bytes: FIFO-managed region inside the partitions of ``A`` and ``B``.
    mode: ``streaming`` or ``buffering`` for ``A``, ``B``, ``C``.
    tuning: ``T_j`` and ``T_k`` are where the hardware begins; it changes them while it runs (HYTE 6.4).
    tiles: where shapes differ from tile to tile, each tile as ``[i, end_i, j, end_j, k, end_k]``, in the order of the run:
        j outermost, then k, then i. ``T_i``, ``T_j``, ``T_k`` are then the longest sides, ``order`` is ``jki``, and B alone is
        buffered. Empty for one shape. No hardware runs these.
    load: what a tile loads of B: ``tile`` all of its part, ``list`` the rows that it uses, which stay in place for the tiles
        after it (:mod:`sw.plan.gather`; k is whole then), ``used`` the same for itself alone, with ``tiles`` that cut i alone.
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
    strips: int = 0
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
        if self.load not in (LOAD_TILE, LOAD_USED if self.tiles else LOAD_LIST):
            raise SchemeError(
                "load", self.load, f"{LOAD_TILE}, {LOAD_LIST}, or {LOAD_USED} or {LOAD_WINDOW} beside tiles"
            )
        _integer("strips", self.strips, 0)
        if self.strips and not self.gathers:
            raise SchemeError("strips", self.strips, f"0 where load is {self.load}")
        wrong = malformed(self.tiles)
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
    def gathers(self) -> bool:
        """A tile loads the rows of B that it uses, and finds those in place that tiles before it have loaded."""
        return self.load == LOAD_LIST

    @property
    def uneven(self) -> bool:
        """Tiles have shapes that no hardware runs."""
        return bool(self.tiles)

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
        if (
            self.gathers and not self.strips and self.T_j < J
        ):  # as it was written before `strips` was: `T_i` counts them
            return replace(self, strips=min(self.T_i, I), T_i=I, T_k=min(self.T_k, K))
        return replace(self, T_i=min(self.T_i, I), T_j=min(self.T_j, J), T_k=min(self.T_k, K))

    def tiles_per_rank(self, I: int, J: int, K: int) -> tuple[int, int, int]:  # noqa: E741 - extents, as in the papers
        """Tile counts along i, j, k."""
        return -(-I // self.T_i), -(-J // self.T_j), -(-K // self.T_k)

    def partition_lines(self, line_bytes: int) -> dict[str, tuple[int, int]]:
        """(first SRAM line, lines) of each tensor's partition, A, B, C from line 0 up."""
        placed = {}
        base = 0
        for tensor in TENSORS:
            lines = self.buffer_bytes[tensor] // line_bytes
            placed[tensor] = (base, lines)
            base += lines
        return placed

    def partition(self, tensor: str, design: Hardware) -> Partition:
        """Its lines, and how much of a tile they hold."""
        return partition_of(design, (self.buffer_bytes, self.fifo_bytes), tensor)

    def rows_lines(self, line_bytes: int) -> int:
        """Lines of B's partition for rows and their metadata: all but the FIFO-managed region."""
        return (self.buffer_bytes["B"] - self.fifo_bytes["B"]) // line_bytes

    def fifo_lines(self, line_bytes: int) -> dict[str, int]:
        """Lines of the FIFO-managed regions."""
        return {tensor: size // line_bytes for tensor, size in self.fifo_bytes.items()}

    def region_lines(self, line_bytes: int) -> int:
        """Lines of SRAM through which rows of B that are not kept pass: the FIFO-managed region, or all of its partition."""
        return (self.fifo_bytes if self.buffers("B") else self.buffer_bytes)["B"] // line_bytes

    def validate(self, design: Hardware, I: int, J: int, K: int) -> None:  # noqa: E741 - extents, as in the papers
        """Raise SchemeError unless ``design`` can run this on A of shape I x K and B of shape K x J.

        Any order is legal with any mode of A: where j is not innermost its tiles are loaded at almost every visit.
        """
        for rank, size in zip("ijk", (I, J, K), strict=True):
            if self.tile(rank) > size:
                raise SchemeError(f"T_{rank}", self.tile(rank), f"from 1 to {rank.upper()} = {size}")
        if design.pe.dataflow == GUSTAVSON:
            rules.check(self, design, (I, J, K))
        else:
            dataflow_rules.check(self, design)

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
        return cls(**(_gathering(document) if document.get("load") == LOAD_WINDOW else document))


def _gathering(document: Mapping[str, Any]) -> dict[str, Any]:
    """A scheme that says which range of k each tile spans, as one whose tiles load what they use: k is whole."""
    tiles = document.get("tiles")
    if not isinstance(tiles, list) or not tiles:
        raise SchemeError("load", LOAD_WINDOW, "beside tiles")
    wrong = malformed(tiles, empty=True)
    if wrong is not None:
        raise SchemeError(f"tiles[{wrong[0]}]", tiles[wrong[0]], wrong[1])
    return {**document, "load": LOAD_LIST, "tiles": [], "T_k": LARGEST}
