"""The memory image: where the accelerator finds A and B, where it leaves C, and what the registers must say.

``docs/memory_image.md`` describes the layout. Regions begin at multiples of 4 KiB with an unmapped gap behind each, so
that an access past the end of one is seen. A region that a run does not need gets an address without memory.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sw.formats.array_checks import FormatError
from sw.formats.csr import Csr
from sw.formats.distinct import distinct
from sw.formats.memory_csr import ELEMENT_BYTES, MemoryCsr
from sw.formats.storage_format import coordinate_bits
from sw.plan.gather import Index, RowPlan
from sw.plan.kept_matrix import KeptMatrix
from sw.plan.lifetimes import overwritten
from sw.plan.plan import Plan
from sw.plan.records import record_formats
from sw.plan.row_order import in_order, inverse
from sw.scheme.terms import B_BY_COLUMNS, ORDERS, WEIGHT_STATIONARY
from sw.timing.hardware import MAXIMUM_ELEMENTS, MOST_LINES

from .converter import FRAME_REGIONS, RECORD_REGIONS, SOURCES
from .registers import CONVERSION, pack_fields

if TYPE_CHECKING:
    from gen.design import Design

__all__ = ["ImageError", "MemoryImage", "MemoryRegion", "build_image", "scratch_elements", "tile_map", "window_table"]

PAGE = 4096
GAP = PAGE
# Above 4 GiB where addresses reach it, so that the upper words of the address registers count.
HIGH_BASE = 1 << 32
LOW_BASE = 1 << 20
MAXIMUM_TILES = 1 << 32
# What lies behind operands, and in memory that is written before it is read: not a pointer, not a coordinate.
POISON = 0xA5
# Of a line of B's partition, in the table of windows and in a list of rows.
LINE_BITS = MOST_LINES.bit_length()

# Where C's arrays lie that is converted on its way out: those of its format by their names there.
RESULT_REGIONS = {"c_elements": RECORD_REGIONS, "c_frame": FRAME_REGIONS}

Words = NDArray[np.uint32]


class ImageError(ValueError):
    """Operands or results that do not fit the layout; the text is one line."""


@dataclass(frozen=True, kw_only=True, eq=False)
class MemoryRegion:
    """``data`` at byte address ``base``; ``writable`` by the accelerator."""

    name: str
    base: int
    data: NDArray[np.uint8]
    writable: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class MemoryImage:
    """Everything a run needs beside the hardware.

    Parameters
    ----------
    rows, columns, value: of C.
    starts: int64[rows + 1], where C's rows begin among those that the hardware writes, and the number of these: a count from 0
        but where rows are made in strips (:mod:`sw.plan.strips`).
    regions: by name, in the order of their addresses.
    registers: value of every configuration and address register by name.
    poisoned: whether memory that the accelerator writes was filled with ``POISON`` before.
    stored: how C lies in memory. kept: in which format, where the accelerator converts it on its way out.
    """

    rows: int
    columns: int
    value: str
    starts: NDArray[np.int64]
    regions: Mapping[str, MemoryRegion]
    registers: Mapping[str, int]
    poisoned: bool
    stored: MemoryCsr
    row_order: Index | None = None
    kept: KeptMatrix | None = None

    def c(self, nnz: int) -> Csr:
        """The result after a run that stored ``nnz`` elements, or records. Raises ImageError when it is no matrix."""
        if self.kept is not None:
            return self._converted(self.kept, nnz)
        nothing = np.zeros(0, np.uint8)
        arrays = {
            array: self.regions[f"c_{array}"].data if f"c_{array}" in self.regions else nothing
            for array in self.stored.arrays
        }
        capacity = 8 * arrays["elements"].nbytes // self.stored.record_bits
        if nnz > capacity:
            raise ImageError(f"C_NNZ = {nnz} is more than the region of C's elements holds ({capacity})")
        try:
            pointers, coordinates, bits = self.stored.unpack(arrays, int(self.starts[-1]), nnz)
        except FormatError as error:
            raise ImageError(f"C_NNZ = {nnz}, but C's {error}") from None
        written = Csr(
            rows=self.rows,
            columns=self.columns,
            pointers=pointers[self.starts],
            coordinates=coordinates,
            bits=bits,
            value=self.value,
        )
        return written if self.row_order is None else in_order(written, inverse(self.row_order))

    def _converted(self, kept: KeptMatrix, records: int) -> Csr:
        shape, nothing = (self.rows, self.columns), np.zeros(0, np.uint8)
        memory = {
            name: self.regions[place].data if place in self.regions else nothing
            for place, names in RESULT_REGIONS.items()
            if (name := names.get(kept.kept.kind)) is not None
        }
        try:
            return kept.matrix(shape, memory, records)
        except FormatError as error:
            raise ImageError(f"C_NNZ = {records}, but C in {kept.kept.kind}: {error}") from None

    def spilled(self, nnz: int) -> list[str]:
        """Names of the result's regions in which bytes behind the result changed."""
        before = POISON if self.poisoned else 0
        ends = {f"c_{array}": end for array, end in self.stored.sizes(int(self.starts[-1]), nnz).items()}
        if self.kept is not None:
            sizes = {part.name: part.bytes for part in self.kept.layout((self.rows, self.columns), nnz).regions}
            places = {place: names.get(self.kept.kept.kind) for place, names in RESULT_REGIONS.items()}
            ends = {place: sizes[name] for place, name in places.items() if name is not None}
        present = {name: end for name, end in ends.items() if name in self.regions}
        return [name for name, end in present.items() if (self.regions[name].data[end:] != before).any()]


class _Layout:
    """Gives out addresses from ``base`` up and keeps what lies there."""

    def __init__(self, base: int, limit: int, fill: int) -> None:
        self.next = base
        self.limit = limit
        self.fill = fill
        self.regions: dict[str, MemoryRegion] = {}

    def place(self, name: str, size: int, *, content: NDArray[np.generic] | None = None) -> int:
        """Address of a region of at least ``size`` bytes; with ``content`` it is read-only, padded with poison."""
        base = self.next
        space = -(-size // PAGE) * PAGE
        self.next += space + GAP
        if base + space > self.limit:
            raise ImageError(
                f"operands and result need addresses up to 0x{base + space:x}, the bus ends at 0x{self.limit:x}"
            )
        if space:
            if content is None:
                # Untouched pages of zeros cost no memory: upper bounds may be far above what is used.
                data = np.full(space, self.fill, np.uint8) if self.fill else np.zeros(space, np.uint8)
            else:
                data = np.empty(space, np.uint8)
                data[: content.nbytes] = content.reshape(-1).view(np.uint8)
                data[content.nbytes :] = POISON
            self.regions[name] = MemoryRegion(name=name, base=base, data=data, writable=content is None)
        return base


def build_image(design: "Design", planned: Plan[Csr], *, base: int | None = None, poison: bool = False) -> MemoryImage:
    """Lays out one multiplication.

    Parameters
    ----------
    design, planned: what runs; the plan is of a scheme that is legal for the design.
    base: first address, a multiple of 4 KiB.
    poison: fill what the accelerator writes with ``POISON`` (touches all of it: for tests).
    """
    stored = record_formats(planned, design)
    scheme, a, b, gathered = planned.scheme, planned.a, planned.b, planned.rows_of_b
    list_rows = None if gathered is None else gathered.rows
    in_places = gathered is not None and gathered.entries is not None
    rows, inner, columns = a.rows, a.columns, b.columns
    # Regions are as large as the smallest tiles that tuning may make need them.
    grids = planned.grids
    grain_j, grain_k = grids["j"].grain, grids["k"].grain
    tiles_i, tiles_j = len(planned.begins) - 1, -(-columns // grain_j)
    tiles_k = -(-inner // grain_k)
    _check_counts({"A": a.nnz, "B": b.nnz}, {"A": tiles_i * tiles_k, "B": tiles_k * tiles_j})
    _check_places(planned, design.lanes)
    address_bits = design.axi.address_bits
    if base is None:
        base = HIGH_BASE if address_bits > 33 else LOW_BASE
    layout = _Layout(base, 1 << address_bits, POISON if poison else 0)
    registers = _scheme_registers(design, planned, stored)
    line = design.line_bytes

    # Fibers as the engine wants them: rows of A; of B rows, or columns.
    by_columns = design.pe.dataflow in B_BY_COLUMNS
    fibers = {"A": a, "B": b.transposed() if by_columns else b}
    cuts = {"A": (scheme.T_i, grain_k), "B": (grain_k, grain_j)}
    for name, operand in fibers.items():
        (begins, ends), coordinates = stored[name].row_ranges(operand), operand.coordinates
        occupied: NDArray[Any]
        if gathered is None:
            occupied = tile_map(a if name == "A" else b, *cuts[name])
        elif name == "A":
            coordinates = (gathered.named(a, planned.begins) if in_places else gathered.places).astype(np.uint32)
            occupied = window_table(gathered)
        else:
            occupied = np.zeros(0, np.uint8)
            if list_rows is not None:
                begins, ends = begins[list_rows], ends[list_rows]
                if in_places:
                    begins, ends = _with_places(gathered, begins, ends)
                registers["B_POSITIONS"] = layout.place("b_positions", begins.nbytes, content=begins)
        arrays = stored[name].pack(ends, coordinates, operand.bits)
        kept = planned.stored_a if name == "A" else planned.stored_b
        if kept is not None:
            arrays = {}
            registers |= _place_stored(layout, name, kept, operand)
        arrays["tile_map"] = occupied
        # A line is read whole: its last records may be none of the matrix's.
        whole = stored[name].sizes(0, -(-operand.nnz // design.lanes) * design.lanes)["elements"]
        for array, content in arrays.items():
            key = f"{name}_{array}"
            least = -(-whole // line) * line if array == "elements" else 0
            registers[key.upper()] = layout.place(key.lower(), max(content.nbytes, least), content=content)

    # From here on the hardware may write.
    registers["WRITE_BEGIN"] = layout.next
    for name, across in (("A", tiles_k), ("B", tiles_k if by_columns else tiles_j)):
        operand = fibers[name]
        # Begin positions are kept only where segments are cut out of rows. They start as the row pointers: the tiling
        # controller counts on that where the first tile of a row may be skipped.
        positions = stored[name].word_bytes * operand.rows if across > 1 else 0
        key = f"{name.lower()}_positions"
        if key in layout.regions:
            continue  # those of a list
        registers[f"{name}_POSITIONS"] = layout.place(key, positions)
        if positions:
            layout.regions[key].data[:positions] = stored[name].row_ranges(operand)[0].view(np.uint8)

    cut_j, cut_k = tiles_j > 1, tiles_k > 1
    words = tiles_j * (rows + tiles_i) + 1 if cut_j or cut_k else 0
    sizes = _c_bytes(design, planned, cut_j=cut_j, cut_k=cut_k)
    registers |= {f"{name}_BYTES": size for name, size in sizes.items()}
    if planned.stored_c is not None:
        registers |= _place_result(layout, planned.stored_c, (rows, columns), sizes["C_ELEMENTS"], line)
    else:
        registers["C_POINTERS"] = layout.place("c_pointers", stored["C"].sizes(rows, 0)["pointers"])
        registers["C_ELEMENTS"] = layout.place("c_elements", sizes["C_ELEMENTS"])
    words_a_line = 2 * design.lanes
    part_words = -(-words // words_a_line) * words_a_line if scheme.joins else 0
    registers |= _place_partial(layout, sizes["C_PARTIAL"], part_words, stored["C"].word_bytes * (tiles_k - 1))
    registers["C_FINISHED"] = layout.place("c_finished", sizes["C_FINISHED"])
    registers["C_TILE_POSITIONS"] = layout.place("c_tile_positions", stored["C"].word_bytes * words)
    registers["C_SCRATCH"] = layout.place("c_scratch", sizes["C_SCRATCH"])
    registers["WRITE_END"] = (layout.next - GAP) % layout.limit  # 0 is the end of the address space
    return MemoryImage(
        rows=len(planned.starts) - 1,
        columns=columns,
        value=a.value,
        starts=planned.starts,
        regions=layout.regions,
        registers=registers,
        poisoned=poison,
        stored=stored["C"],
        row_order=planned.row_order,
        kept=planned.stored_c,
    )


def _scheme_registers(design: "Design", planned: Plan[Csr], stored: Mapping[str, MemoryCsr]) -> dict[str, int]:
    """What the registers say of shapes, tiles, modes and partitions. ``stored``: how the tensors lie in memory."""
    scheme, grids, gathered = planned.scheme, planned.grids, planned.rows_of_b
    inner, tile_k, modes = (
        planned.a.columns,
        grids["k"].start,
        {"windows": 0, "listed": 0, "planned": 0, "entry_bits": 0},
    )
    if gathered is not None:
        in_places = gathered.entries is not None
        tile_k = max(1, int(windows_of(gathered).size.max()))
        if gathered.rows is not None:
            inner = max(1, len(gathered.rows) + in_places)
        modes |= {"windows": 1, "listed": int(gathered.rows is not None)}
        modes |= {"planned": int(in_places), "entry_bits": gathered.entry_bits}
    buffering = {f"{t.lower()}_buffering": int(scheme.buffers(t)) for t in "ABC"}
    registers: dict[str, int] = {
        "SHAPE_I": planned.a.rows,
        "SHAPE_J": planned.b.columns,
        "SHAPE_K": inner,
        "TILE_I": scheme.T_i,
        "TILE_J": grids["j"].start,
        "TILE_K": tile_k,
        "TUNING": pack_fields("TUNING", enable=int(scheme.tuning), level_j=grids["j"].level, level_k=grids["k"].level),
        "ORDER": ORDERS.index(scheme.order),
        "MODES": pack_fields("MODES", joined=int(scheme.joins), **modes, **buffering),
        "COORDINATES": pack_fields("COORDINATES", **{t.lower(): form.coordinate_bits for t, form in stored.items()}),
    }
    for tensor in design.converts:
        registers |= dict.fromkeys(CONVERSION[tensor], 0)
    line = design.line_bytes
    for tensor, (first, lines) in scheme.partition_lines(line).items():
        registers[f"{tensor}_BASE"], registers[f"{tensor}_LINES"] = first, lines
    return registers | {"FIFO_LINES_B": scheme.fifo_lines(line)["B"], "SCRATCH_LINES": scheme.scratch_lines(line)}


def _check_counts(nonzeros: Mapping[str, int], tiles: Mapping[str, int]) -> None:
    """Raises ImageError where an operand has more than positions or a tile map can count."""
    for name, count in nonzeros.items():
        if count > MAXIMUM_ELEMENTS:
            raise ImageError(f"{name} has {count} nonzeros, positions count to {MAXIMUM_ELEMENTS}")
    for name, count in tiles.items():
        if count > MAXIMUM_TILES:
            raise ImageError(f"{name} is cut into {count} tiles, a tile map holds {MAXIMUM_TILES}")


def _check_places(planned: Plan[Csr], lanes: int) -> None:
    """Raises ImageError where a row of B would lose its place before its last use."""
    gathered = planned.rows_of_b
    if gathered is None or gathered.entries is None:
        return
    lost = overwritten(gathered, planned.a, planned.begins, planned.b.pointers, lanes)
    if lost is not None:
        raise ImageError(
            f"row {lost.row} of B would lose its place to row {lost.by} in tile {lost.tile}, tile {lost.used} uses it"
        )


def _with_places(gathered: RowPlan, begins: Words, ends: Words) -> tuple[Words, Words]:
    """Begins and ends of listed rows where the plan places each: behind a begin stands its line, and above that its entry.

    The list begins with a place that no row has. A row that goes by has line 0, which nobody looks at.
    """
    assert gathered.entries is not None
    places = np.maximum(gathered.lines, 0) | gathered.entries << LINE_BITS
    return np.insert(np.stack([begins, places.astype(np.uint32)], axis=1).ravel(), 0, (0, 0)), np.insert(ends, 0, 0)


def _place_stored(layout: _Layout, tensor: str, stored: KeptMatrix, operand: Csr) -> dict[str, int]:
    """An operand in its own format, as whole beats: what the registers say of it."""
    kept, memory = stored.kept, stored.memory(operand)
    conversion, count = CONVERSION[tensor.lower()]
    records, frame, low = f"{tensor}_ELEMENTS", f"{tensor}_POINTERS", tensor.lower()
    found = {records: layout.next, frame: layout.next, count: 0}
    for register, region, names in (
        (records, f"{low}_elements", RECORD_REGIONS),
        (frame, f"{low}_frame", FRAME_REGIONS),
    ):
        if (name := names.get(kept.kind)) is not None:
            found[register] = layout.place(region, memory[name].nbytes, content=memory[name])
    if kept.kind in RECORD_REGIONS:
        found[count] = next(part.count for part in kept.layout.regions if part.name == RECORD_REGIONS[kept.kind])
    return found | {conversion: _told(conversion, stored, operand.rows)}


def _told(register: str, stored: KeptMatrix, rows: int) -> int:
    """What the register of a conversion says."""
    kept = stored.kept
    formats = {"format": SOURCES.index(kept.kind), "row": coordinate_bits(rows), "run": kept.run_bits}
    return pack_fields(register, enable=1, **formats)


def _place_result(
    layout: _Layout, stored: KeptMatrix, shape: tuple[int, int], csr_bytes: int, line: int
) -> dict[str, int]:
    """C in its own format: what the registers say of it. ``csr_bytes``: of as many nonzeros as there can be, on chip."""
    most = stored.layout(shape, stored.most_records(shape, csr_bytes // ELEMENT_BYTES))
    sizes = {region.name: -(-region.bytes // line) * line for region in most.regions}
    found = {"C_ELEMENTS": layout.next, "C_POINTERS": layout.next, "C_ELEMENTS_BYTES": 0}
    for register, (place, names) in zip(("C_ELEMENTS", "C_POINTERS"), RESULT_REGIONS.items(), strict=True):
        if (name := names.get(stored.kept.kind)) is not None:
            found[register] = layout.place(place, sizes[name])
            if register == "C_ELEMENTS":
                found["C_ELEMENTS_BYTES"] = sizes[name]
    (conversion,) = CONVERSION["c"]
    return found | {conversion: _told(conversion, stored, shape[0])}


def _place_partial(layout: _Layout, size: int, part_words: int, word_bytes: int) -> dict[str, int]:
    """The two regions of partial rows: what the registers say of them.

    ``part_words``: above 0 where parts of rows are joined. The second region then has the positions, step by step; a word of 0
    begins a tile that was not visited. ``word_bytes``: of a word for each step.
    """
    found = {"PART_WORDS": part_words, "C_PARTIAL0": layout.place("c_partial0", size)}
    if not part_words:
        return found | {"C_PARTIAL1": layout.place("c_partial1", size)}
    found["C_PARTIAL1"] = layout.place("c_part_positions", part_words * word_bytes)
    layout.regions["c_part_positions"].data[:] = 0
    return found


def _c_bytes(design: "Design", planned: Plan[Csr], *, cut_j: bool, cut_k: bool) -> dict[str, int]:
    """Bytes of the regions for nonzeros of C, each as if it took ``ELEMENT_BYTES``."""
    scheme, a, columns = planned.scheme, planned.a, planned.b.columns
    macs = _row_macs(a, planned.b)
    most = int(np.minimum(macs, planned.widest).sum())
    # The widest tile makes the longest partial rows, the narrowest ones the most pieces of a row.
    widths = (columns, planned.grids["j"].grain) if scheme.tuning else (scheme.T_j,)
    scratch = 0
    if design.pe.dataflow != WEIGHT_STATIONARY:  # whose rows are never merged in steps
        scratch = max(scratch_elements(a, macs, design.pe.merge_radix, width, columns) for width in widths)
    partial = _most_parts(planned) if scheme.joins else most * cut_k
    nonzeros = {"ELEMENTS": most, "PARTIAL": partial, "FINISHED": most * cut_j, "SCRATCH": scratch}
    line = design.line_bytes
    sizes = {f"C_{name}": -(-ELEMENT_BYTES * count // line) * line for name, count in nonzeros.items()}
    sizes["C_SCRATCH"] *= design.scratch_slots
    return sizes


def _most_parts(planned: Plan[Csr]) -> int:
    """Nonzeros that the parts of rows take at most while they wait: of each row the MACs of each k step but the last, or T_j.

    The region begins anew with each sweep over k: what one sweep leaves counts, the most of any.
    """
    scheme, a, b = planned.scheme, planned.a, planned.b
    tiles_i, tiles_j, tiles_k = scheme.tiles_per_rank(a.rows, b.columns, a.columns)
    rows = np.repeat(np.arange(a.rows, dtype=np.int64), np.diff(a.pointers))
    outer = scheme.order[: scheme.order.index("k")]
    most = 0
    # Tiles along j one by one where they are sweeps of their own; else the columns of all together.
    for jt in range(tiles_j):
        inside = (b.coordinates >= jt * scheme.T_j) & (b.coordinates < (jt + 1) * scheme.T_j)
        lengths = np.diff(np.append(0, np.cumsum(inside))[b.pointers])
        step = a.coordinates // scheme.T_k
        used = step < tiles_k - 1
        part, of_part = np.unique(rows[used] * tiles_k + step[used], return_inverse=True)
        macs = np.bincount(of_part, lengths[a.coordinates[used]], len(part)).astype(np.int64)
        of_rows = np.bincount(part // tiles_k, np.minimum(macs, scheme.T_j), a.rows).astype(np.int64)
        sweeps = np.add.reduceat(of_rows, planned.begins[:-1]) if "i" in outer else of_rows.sum(keepdims=True)
        most = max(most, int(sweeps.max())) if "j" in outer else most + int(sweeps.max())
    if most > MAXIMUM_ELEMENTS - 1:
        raise ImageError(f"parts of C's rows are up to {most} nonzeros, positions count to {MAXIMUM_ELEMENTS - 1}")
    return most


class _Windows(NamedTuple):
    """Of each tile's part of the list: the first place, how many there are, how many of these stand for rows that are there
    already, and the lines that the others may take, or how many of them find place."""

    begin: Index
    size: Index
    kept: Index
    limit: Index


def windows_of(gathered: RowPlan) -> _Windows:
    """Where each row has a place of its own one place, before those that are loaded, stands for all that are there already."""
    begin, end = gathered.windows.T
    if gathered.entries is None:
        return _Windows(begin, end - begin, gathered.kept, gathered.free)
    some = (end > 0).astype(np.int64)
    return _Windows(gathered.fresh, end - gathered.fresh + some, some, gathered.placed)


def window_table(gathered: RowPlan) -> NDArray[np.uint64]:
    """What the hardware reads of each tile's window, and of where its rows go: two words each, fields from the low bits up.

    Raises ImageError where a number is too large for its field.
    """
    found, early = windows_of(gathered), gathered.early.astype(np.int64)
    low = (found.begin, 32), (gathered.line, LINE_BITS), (found.limit, LINE_BITS)
    high = (found.size, 24), (found.kept, 23), (early, 1), (gathered.metadata, LINE_BITS)
    table = np.empty((len(found.begin), 2), np.uint64)
    for word, parts in enumerate((low, high)):
        packed = np.zeros(len(found.begin), np.uint64)
        at = 0
        for values, bits in parts:
            wrong = np.flatnonzero((values < 0) | (values >> bits > 0))
            if len(wrong):
                raise ImageError(f"window {wrong[0]} needs {values[wrong[0]]} in a field of {bits} bits of its entry")
            packed |= values.astype(np.uint64) << np.uint64(at)
            at += bits
        table[:, word] = packed
    return table


def _row_macs(a: Csr, b: Csr) -> NDArray[np.int64]:
    """Effectual multiplications of each row of A."""
    fibers = np.diff(b.pointers)[a.coordinates]
    summed = np.concatenate([np.zeros(1, np.int64), np.cumsum(fibers, dtype=np.int64)])
    return summed[a.pointers[1:]] - summed[a.pointers[:-1]]


def scratch_elements(a: Csr, macs: NDArray[np.int64], radix: int, tile_j: int, columns: int) -> int:
    """Elements of a scratch slot that no row exceeds.

    A row of more than ``radix`` leaves (its nonzeros and one partial fiber, or its pieces in the assembly pass) leaves
    a fiber for each group of ``radix``, together at most its multiplications; whenever ``radix`` fibers wait and more
    will come, they are merged into one more, at most a tile row long.
    """
    widest = 0
    for leaves, width in ((np.diff(a.pointers) + 1, tile_j), (np.full(a.rows, -(-columns // tile_j)), columns)):
        groups = -(-leaves // radix)
        merges = np.maximum(0, -(-(groups - radix) // (radix - 1)))
        needed = np.where(groups > 1, macs + merges * np.minimum(macs, width), 0)
        widest = max(widest, int(needed.max(initial=0)))
    return widest


def tile_map(matrix: Csr, tile_rows: int, tile_columns: int) -> NDArray[np.uint8]:
    """One bit a tile, row of tiles by row of tiles, lowest bit of a byte first: set where the tile holds an element."""
    across = -(-matrix.columns // tile_columns)
    count = -(-matrix.rows // tile_rows) * across
    packed = np.zeros(-(-count // 8), np.uint8)
    if matrix.nnz == 0:
        return packed
    lengths = np.diff(matrix.pointers)
    index = np.repeat((np.arange(matrix.rows, dtype=np.int64) // tile_rows) * across, lengths)
    index += matrix.coordinates // tile_columns
    # Neighbours in a row mostly lie in the same tile: drop these before sorting.
    index = distinct(index[np.concatenate([[True], index[1:] != index[:-1]])])
    byte = index >> 3
    begins = np.flatnonzero(np.concatenate([[True], byte[1:] != byte[:-1]]))
    packed[byte[begins]] = np.bitwise_or.reduceat(np.left_shift(1, index & 7).astype(np.uint8), begins)
    return packed
