"""Cycles and energy of the weight-stationary array: MINT, section IV and figures 6 and 7.

Columns of B stay in the PEs, rows of A stream over one bus to all of them. A word of the bus and of a PE's buffer is data or
metadata. A PE has one register for the row of its sum, so what is sent in a cycle is of one row.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

from sw.energy import MAC_PJ
from sw.formats.sparse_tensor import VALUE_BITS
from sw.formats.storage_format import coordinate_bits

from .constants import Constants
from .counts import Fibers
from .workload import Workload

__all__ = ["STATIONARY", "STREAMED", "Array", "Compute", "compute_options", "send_cycles"]

#: Formats that A streams in, by the order of A, and those that B stays in.
STREAMED = {2: ("dense", "coo", "csr"), 3: ("dense", "coo", "csf")}
STATIONARY = ("dense", "csc")


@dataclass(frozen=True, kw_only=True)
class Array:
    """The array of MINT's section VII.A.

    Parameters
    ----------
    macs, vector: all of them, and those of a PE. pe_bytes: a PE's buffer. bus_bits: what the bus carries in a cycle.
    comparators: of a PE. As many as it has MACs: the paper's extension is 10 % of a PE, which pays for about that many.
    row_search: whether the reader of a compressed A finds where a range of k begins in each row. Row pointers do not say it, and
        the paper names nothing that does: without it the whole of A streams for each range of k, and PEs take what they need.
    gated: a MAC costs no energy, and reads no buffer, where one of its operands is 0.
    """

    macs: int = 16384
    vector: int = 8
    pe_bytes: int = 512
    bus_bits: int = 512
    comparators: int = 8
    row_search: bool = False
    gated: bool = True

    def __post_init__(self) -> None:
        for field in fields(self):
            number = getattr(self, field.name)
            if not isinstance(number, bool) and number < 1:
                raise ValueError(f"{field.name} must be at least 1, not {number!r}")
        if self.macs % self.vector:
            raise ValueError(f"macs must be a multiple of vector = {self.vector}, not {self.macs!r}")

    @property
    def pes(self) -> int:
        return self.macs // self.vector


@dataclass(frozen=True, kw_only=True)
class Compute:
    """One way to compute: cycles, pJ in buffers, pJ in MACs and comparators. ``range_k``: places of k that a tile has."""

    range_k: int
    cycles: float
    buffer: float
    compute: float


def _words(size: int, word_bits: int) -> int:
    """Words of a coordinate of a rank, at least one."""
    return max(1, -(-coordinate_bits(size) // word_bits))


def _pairs(acf: str, words: int, row: int, column: int) -> int:
    """Nonzeros of one row that the bus carries in a cycle, in a format of A; at least one."""
    if acf == "dense":
        return max(1, words - row)
    if acf == "coo":
        return max(1, words // (1 + row + column))
    return max(1, (words - row) // (1 + column))


def send_cycles(
    acf: str, rows: Fibers, words: int, *, row: int = 1, column: int = 1, width: int | None = None
) -> float:
    """Cycles in which the bus carries A once.

    ``words``: of the bus. ``row``, ``column``: words of an id. ``width``: A goes in ranges of so many places of k; whole
    without it. Figure 6: 8 cycles as dense, 3 as csr, 4 as coo.
    """
    most, width = _pairs(acf, words, row, column), width or rows.length
    if acf != "dense":
        return rows.groups(width, most)
    whole, rest = divmod(rows.length, width)
    return rows.count * (whole * -(-width // most) + -(-rest // most))


def _sent_words(acf: str, rows: Fibers, beats: float, row: int, column: int) -> float:
    """Words that carry A once."""
    if acf == "dense":
        return rows.count * rows.length + beats * row
    return rows.nnz * (1 + row + column) if acf == "coo" else rows.nnz * (1 + column) + beats * row


def _ranges(length: int, entries: int) -> Sequence[int]:
    """Widths of k ranges: all of it, and halves of it down to what a PE holds dense."""
    found = [length]
    while found[-1] > entries:
        found.append(max(entries, -(-found[-1] // 2)))
    return found


def compute_options(workload: Workload, acf_a: str, acf_b: str, array: Array, constants: Constants) -> list[Compute]:
    """Every way to cut k, those left out that another beats in cycles and in energy.

    Tiles of B are a range of k and as many columns as the PEs hold; a column's part of a range that does not fit one PE takes
    more of them.
    """
    options = [
        _computed(workload, acf_a, acf_b, array, constants, width)
        for width in _ranges(workload.rows.length, array.pe_bytes * 8 // VALUE_BITS[workload.value])
    ]
    best: list[Compute] = []
    for option in sorted(options, key=lambda each: (each.cycles, each.buffer + each.compute)):
        if not best or option.buffer + option.compute < best[-1].buffer + best[-1].compute:
            best.append(option)
    return best


def _computed(workload: Workload, acf_a: str, acf_b: str, array: Array, constants: Constants, width: int) -> Compute:
    """With ranges of k of ``width`` places."""
    rows, columns = workload.rows, workload.columns
    bits = VALUE_BITS[workload.value]
    words, entries = max(1, array.bus_bits // bits), max(1, array.pe_bytes * 8 // bits)
    row, column = (_words(size, bits) for size in (rows.count, rows.length))
    ranges = -(-rows.length // width)
    # Stationary words of a nonzero, and how many of them fit a PE.
    each = 1 if acf_b == "dense" else 1 + column
    fits = max(1, entries // each)
    if acf_b == "dense":
        whole, rest = divmod(rows.length, width)
        pes = float(columns.count * (whole * -(-width // fits) + -(-rest // fits)))
        stored, load = float(min(width, fits)), float(columns.count * rows.length)
    else:
        pes = columns.groups(width, fits)
        stored, load = min(columns.fullest(width), float(fits)), columns.nnz * each
    whole_rows = acf_a != "dense" and not array.row_search
    # Ranges of j go by with the fibers that need them, where these are found; else all of the second matrix stays.
    factor = -(-workload.factor_rows // entries) * columns.count if whole_rows else 0
    # Tiles of a range: groups of columns. PEs that are left share the longest columns.
    tiles = max(1, -(-(pes + ranges * factor) // (ranges * array.pes)))
    stored = max(1.0, -(-stored // max(1.0, (tiles * array.pes - factor) * ranges // max(1.0, pes))))
    once = send_cycles(acf_a, rows, words, row=row, column=column, width=None if whole_rows else width)
    beats = once * (ranges if whole_rows else 1)
    sent = _sent_words(acf_a, rows, once, row, column) * (ranges if whole_rows else 1)
    busy = _pe_cycles(workload, acf_a, acf_b, array, width, stored, ranges, whole_rows)
    load += columns.count * workload.factor_rows * ranges
    cycles = tiles * max(beats, busy) + load / words
    # Energy.
    compared = 0.0
    if acf_a != "dense" and acf_b == "csc":
        # Each id that is sent, with all that is stored.
        compared = rows.nnz * columns.nnz / (1 if whole_rows else ranges)
    products = workload.products if array.gated else _all_products(workload, acf_a, acf_b)
    outputs = min(workload.o.places * float(ranges), max(products, float(workload.o.nnz)))
    buffer = bits * (
        constants.scratchpad_bit * (tiles * sent + load)
        + constants.pe_bit * (load + products)
        + constants.accumulator_bit * 2 * outputs
    )
    macs = (products + workload.factor_products) * MAC_PJ[workload.value]
    ids = column * bits * constants.compare_bit
    return Compute(range_k=width, cycles=cycles, buffer=buffer, compute=macs + compared * ids)


def _all_products(workload: Workload, acf_a: str, acf_b: str) -> float:
    """Products of places that the formats do not leave out."""
    a = workload.a.places if acf_a == "dense" else workload.a.nnz
    chance_b = 1.0 if acf_b == "dense" else workload.columns.nnz / (workload.columns.count * workload.columns.length)
    return float(a * workload.columns.count * chance_b)


def _pe_cycles(
    workload: Workload,
    acf_a: str,
    acf_b: str,
    array: Array,
    width: int,
    stored: float,
    ranges: int,
    whole_rows: bool,
) -> float:
    """Cycles that the busiest PE needs for all that passes it, of all ranges and one tile of columns.

    A dense A meets what is stored in its order, V products a cycle. A nonzero of a compressed A finds its partner by its
    address where B is dense, and by comparison with all that is ``stored`` where B is csc: every id that is sent,
    ``comparators`` a cycle.
    """
    rows = workload.rows
    if acf_a == "dense":
        return ranges * rows.count * -(-stored // array.vector)
    if acf_b == "dense":
        return rows.nnz * min(1.0, stored / width) / array.vector
    return rows.nnz * (ranges if whole_rows else 1) * -(-stored // array.comparators)
