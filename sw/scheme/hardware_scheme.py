"""The part of a scheme that a design runs: tiles, order, partitions of the buffer, modes."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sw.golden.partition import Partition

from .errors import SchemeError
from .explicit_tiles import malformed
from .shares import partition_of
from .terms import (
    BUFFERING,
    CARRIED,
    GATHERS,
    JOINED,
    LOAD_TILE,
    LOAD_USED,
    LOAD_WINDOW,
    NATURAL,
    ORDERS,
    ROW_ORDERS,
    STREAMING,
    TENSORS,
    Hardware,
)

__all__ = ["LARGEST", "HardwareScheme", "integer", "modes"]

# Of any number in a file: what comes after computes with 64 bits and with floating point.
LARGEST = 2**63 - 1


def integer(name: str, value: object, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise SchemeError(name, value, f"an integer of at least {least}")
    if value > LARGEST:
        raise SchemeError(name, value, f"at most {LARGEST}")
    return value


def mapping(name: str, value: object, keys: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or set(value) != set(keys):
        raise SchemeError(name, value, f"an object with exactly the keys {', '.join(keys)}")
    return value


def modes(name: str, value: object) -> None:
    for tensor, mode in mapping(name, value, TENSORS).items():
        if mode not in (STREAMING, BUFFERING):
            raise SchemeError(f"{name}.{tensor}", mode, f"{STREAMING} or {BUFFERING}")


@dataclass(frozen=True, kw_only=True)
class HardwareScheme:
    """How the operands are cut into tiles and how the buffer is shared between them.

    Parameters
    ----------
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
        after it (:mod:`sw.plan.gather`; k is whole then), ``reuse`` those of them that are used again in time,
        ``planned`` the same at places chosen for each (:mod:`sw.plan.replacement`; no hardware runs these), ``used`` the rows
        that it uses for itself alone, with ``tiles`` that cut i alone.
    partial_rows: what becomes of partial rows of C where k is cut: ``carried`` along from step to step, or ``joined`` by the last
        step from the parts that each step has written (HYTE 5.1, 5.3).
    scratch_bytes: of C's partition the last ones, in which fibers of rows that are merged in several steps stay on chip
        (:mod:`rtl.accessor.scratch_ring`).
    row_order: in which A's rows are met: one of ``ROW_ORDERS`` or a file (:mod:`sw.plan.row_order`).
    """

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
    row_order: str = NATURAL
    partial_rows: str = CARRIED
    scratch_bytes: int = 0

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            raise SchemeError("order", self.order, f"one of {', '.join(ORDERS)}")
        for rank in "ijk":
            integer(f"T_{rank}", self.tile(rank), 1)
        for tensor, size in mapping("buffer_bytes", self.buffer_bytes, TENSORS).items():
            integer(f"buffer_bytes.{tensor}", size, 0)
        for tensor, size in mapping("fifo_bytes", self.fifo_bytes, ("A", "B")).items():
            integer(f"fifo_bytes.{tensor}", size, 0)
        modes("mode", self.mode)
        if not isinstance(self.tuning, bool):
            raise SchemeError("tuning", self.tuning, "true or false")
        if not isinstance(self.tiles, list):
            raise SchemeError("tiles", self.tiles, "a list of tiles")
        if self.load not in (LOAD_TILE, *((LOAD_USED,) if self.tiles else GATHERS)):
            allowed = f"{LOAD_TILE}, {', '.join(GATHERS)}, or {LOAD_USED} or {LOAD_WINDOW} beside tiles"
            raise SchemeError("load", self.load, allowed)
        integer("strips", self.strips, 0)
        if self.strips and not self.gathers:
            raise SchemeError("strips", self.strips, f"0 where load is {self.load}")
        if not isinstance(self.row_order, str) or not self.row_order:
            raise SchemeError("row_order", self.row_order, f"one of {', '.join(ROW_ORDERS)} or a file")
        if self.partial_rows not in (CARRIED, JOINED):
            raise SchemeError("partial_rows", self.partial_rows, f"{CARRIED} or {JOINED}")
        integer("scratch_bytes", self.scratch_bytes, 0)
        wrong = malformed(self.tiles)
        if wrong is not None:
            raise SchemeError(f"tiles[{wrong[0]}]", self.tiles[wrong[0]], wrong[1])

    def tile(self, rank: str) -> int:
        """``T_rank``, for ``rank`` in ``ijk``."""
        return {"i": self.T_i, "j": self.T_j, "k": self.T_k}[rank]

    def buffers(self, tensor: str) -> bool:
        """Whether tiles of ``tensor`` are kept on chip."""
        return self.mode[tensor] == BUFFERING

    @property
    def joins(self) -> bool:
        """The last k step joins the parts of rows of C that each step has written."""
        return self.partial_rows == JOINED

    @property
    def gathers(self) -> bool:
        """A tile loads the rows of B that it uses, and finds those in place that tiles before it have loaded."""
        return self.load in GATHERS

    @property
    def rewrites_a(self) -> bool:
        """The host writes A anew: nonzeros name rows of B by their places in a list, or rows change places."""
        return self.load != LOAD_TILE or self.row_order != NATURAL

    @property
    def uneven(self) -> bool:
        """Tiles have shapes that no hardware runs."""
        return bool(self.tiles)

    def tiles_per_rank(self, I: int, J: int, K: int) -> tuple[int, int, int]:  # noqa: E741 - extents, as in the papers
        """Tile counts along i, j, k."""
        return -(-I // self.T_i), -(-J // self.T_j), -(-K // self.T_k)

    def passes_over_a(self, I: int, J: int, K: int) -> int:  # noqa: E741 - extents, as in the papers
        """How often A streams from its first row to its last, each row once and whole; 0 where it is read in another way."""
        tiles_i, tiles_j, tiles_k = self.tiles_per_rank(I, J, K)
        turns_back = tiles_i > 1 and tiles_j > 1 and self.order.index("i") < self.order.index("j")
        if self.buffers("A") or self.rewrites_a or self.uneven or self.tuning or tiles_k > 1 or turns_back:
            return 0
        return tiles_j

    def passes_over_b(self, I: int, J: int, K: int) -> int:  # noqa: E741 - extents, as in the papers
        """How often tiles of whole rows of B are loaded from its first row to its last, if all of them have work and find room.

        0 where B is loaded in another way.
        """
        tiles_i, tiles_j, tiles_k = self.tiles_per_rank(I, J, K)
        if not self.buffers("B") or self.load != LOAD_TILE or self.uneven or self.tuning or tiles_j > 1:
            return 0
        return tiles_i if tiles_k > 1 and self.order.index("i") < self.order.index("k") else 1

    @property
    def passes_over_c(self) -> int:
        """1 where C's rows leave whole and in order; 0 where they leave in another way."""
        return int(not (self.strips or self.uneven or self.row_order != NATURAL))

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

    def scratch_lines(self, line_bytes: int) -> int:
        """Lines for scratch fibers, the last ones of C's partition."""
        return self.scratch_bytes // line_bytes

    def partial_lines(self, line_bytes: int) -> int:
        """Lines of C's partition for partial rows: all but those for scratch fibers."""
        return (self.buffer_bytes["C"] - self.scratch_bytes) // line_bytes

    def half_for_partial_rows(self, design: Hardware) -> Partition:
        """Where partial rows stay on chip: they leave one half and enter the other."""
        lines = self.partial_lines(design.line_bytes) // 2
        return replace(self.partition("C", design), lines=lines)

    def rows_lines(self, line_bytes: int) -> int:
        """Lines of B's partition for rows and their metadata: all but the FIFO-managed region."""
        return (self.buffer_bytes["B"] - self.fifo_bytes["B"]) // line_bytes

    def fifo_lines(self, line_bytes: int) -> dict[str, int]:
        """Lines of the FIFO-managed regions."""
        return {tensor: size // line_bytes for tensor, size in self.fifo_bytes.items()}

    def region_lines(self, line_bytes: int) -> int:
        """Lines of SRAM through which rows of B that are not kept pass: the FIFO-managed region, or all of its partition."""
        return (self.fifo_bytes if self.buffers("B") else self.buffer_bytes)["B"] // line_bytes
