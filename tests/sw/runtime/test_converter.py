"""The compiled converter: every pair of formats bit for bit, rough memories, and inputs that contradict themselves."""

import random

import numpy as np
import pytest

from gen.design import load_design
from rtl.mint.converter.conversions import FIGURE_8
from sw.formats.csr import VALUE_DTYPES
from sw.formats.sparse_tensor import VALUE_BITS, SparseTensor
from sw.formats.storage import storage_format
from sw.formats.storage_format import pack
from sw.runtime.converter import (
    MATRIX_FORMATS,
    SOURCES,
    Matrix,
    converter_image,
)
from sw.runtime.simulation.converter import converter_library, run_converter
from sw.runtime.simulation.engine import bus_timing
from sw.runtime.simulation.loader import BusTiming
from tests.tools import long_run

DESIGN = load_design("tiny")
VALUE = DESIGN.pe.value
#: Designs whose beats have twice as many values as lanes: of 16 bits, and of 32.
NARROW = {
    "int8": load_design("tiny", ["pe.value=int8", "converter.lane_bits=16"]),
    "bf16": load_design("tiny", ["pe.value=bf16"]),
}
RECORD_VALUE = VALUE_BITS[VALUE]  # bits of the first field of a record
ROUGH = BusTiming(read_latency=9, write_latency=5, jitter=30, stall=0.3, reorder=True, seed=7, beats_per_cycle=2.0)


def tensor(shape, density, seed=1, value=VALUE, zeros=0.0):
    rng = np.random.default_rng(seed)
    rows, columns = np.nonzero(rng.random(shape) < density)
    values = rng.integers(-120, 120, len(rows)) * (rng.random(len(rows)) >= zeros)
    kept = values.astype(VALUE_DTYPES[value])
    if not zeros:
        kept[kept == 0] = 1
    elif value in ("fp32", "bf16"):
        kept[values == 0] = -0.0
    return SparseTensor(shape=shape, ids=(rows.astype(np.int64), columns.astype(np.int64)), values=kept, value=value)


def side(kind, what, run_bits=5, block=(2, 2)):
    form = storage_format(kind, **{"rlc": {"run_bits": run_bits}, "bsr": {"block": block}}.get(kind, {}))
    layout = form.layout(what.shape, form.counts(what), what.value)
    return Matrix.of(kind, form, layout), pack(layout, form.encode(what))


def image_of(design, what, source, target, run_bits=(5, 5), block=(2, 2)):
    """The image, and the bytes that must come out."""
    keeps = storage_format(source).keeps_zeros and storage_format(target).keeps_zeros
    given, memory = side(source, what, run_bits[0])
    wanted, expected = side(target, what if keeps else what.without_zeros(), run_bits[1], block)
    return converter_image(design, what.shape, given, wanted, memory), expected


def convert(what, source, target, *, design=DESIGN, timing=None, run_bits=(5, 5), block=(2, 2)):
    image, expected = image_of(design, what, source, target, run_bits, block)
    run = run_converter(design, image, timing=timing)
    assert run.error is None, run.error
    for name, data in image.written().items():
        assert np.array_equal(data, expected[name].view(np.uint8)), (source, target, name)
    return run


SHAPES = {
    "one_place": ((1, 1), 1.0),
    "empty": ((7, 9), 0.0),
    "full": ((9, 13), 1.0),
    "one_column": ((70, 1), 0.3),
    "one_row": ((1, 300), 0.1),
    "narrow": ((41, 3), 0.4),
    "ragged": ((23, 37), 0.2),
    "hypersparse": ((600, 50), 0.001),
}


@pytest.mark.parametrize("name", SHAPES)
def test_every_pair_of_formats(name):
    shape, density = SHAPES[name]
    what = tensor(shape, density)
    for source in SOURCES:
        for target in MATRIX_FORMATS:
            convert(what, source, target, run_bits=(random.Random(f"{name} {source}").randint(1, 8), 3))


@pytest.mark.parametrize("source", SOURCES)
def test_any_memory(source):
    """Latency, stalls, reordering; two beats a cycle."""
    for number, target in enumerate(MATRIX_FORMATS):
        convert(tensor((31, 29), 0.3, seed=number), source, target, timing=ROUGH)


@pytest.mark.parametrize("target", MATRIX_FORMATS)
def test_stored_zeros(target):
    """They stay where the target has a place for them."""
    what = tensor((12, 20), 0.5, zeros=0.4)
    for source in ("coo", "csr", "csc"):
        convert(what, source, target)


def test_widest_numbers():
    """Shapes up to 2^32 a rank, records of 96 bits, pointers of any width."""
    last = (1 << 32) - 1
    ids = np.array([0, 0, 5, last], np.int64), np.array([0, last, 77, last], np.int64)
    what = SparseTensor(shape=(1 << 32, 1 << 32), ids=ids, values=np.arange(1, 5, dtype=np.int32), value="int32")
    run = convert(what, "coo", "coo")
    assert run.entries == 4
    ids = np.array([0, 2, 3], np.int64), np.array([last, 0, last], np.int64)
    what = SparseTensor(shape=(4, 1 << 32), ids=ids, values=np.arange(1, 4, dtype=np.int32), value="int32")
    for source in ("coo", "csr", "rlc"):
        for target in ("coo", "csr", "rlc"):
            convert(what, source, target, run_bits=(32, 32))
    what = SparseTensor(shape=(1 << 32, 4), ids=ids[::-1], values=what.values, value="int32")
    what = SparseTensor.from_entries(what.shape, what.ids, what.values, "int32")
    assert convert(what, "coo", "csc").passes == 1
    assert convert(what, "csc", "coo").passes == 8  # 32 bits of a row by digits of 4


BLOCKS = ((1, 1), (1, 5), (5, 1), (3, 4), (7, 2), (64, 3), (1, 4096), (4096, 1), (500, 300))


@pytest.mark.parametrize("block", BLOCKS, ids="{0[0]}x{0[1]}".format)
def test_blocks_of_any_sides(block):
    """Larger than the matrix and smaller, of which it is a multiple and not; any source, calm and rough memory."""
    rng = random.Random(str(block))
    for number, source in enumerate(SOURCES):
        for name in ("one_place", "empty", "full", *rng.sample(["one_column", "one_row", "narrow", "ragged"], 2)):
            shape, density = SHAPES[name]
            convert(tensor(shape, density), source, "bsr", block=block, timing=(None, ROUGH)[(number + len(name)) % 2])


@pytest.mark.parametrize("seed", range(6))
def test_blocks_of_random_matrices(seed):
    """Entries in clusters, as in the matrices that BSR is for, and alone; rows and columns of blocks without any."""
    rng = np.random.default_rng(seed)
    shape = tuple(int(side) for side in rng.integers(1, 90, 2))
    dense = rng.random(shape) < 0.02
    for _ in range(4):
        row, column = (int(rng.integers(0, side)) for side in shape)
        dense[row : row + 7, column : column + 9] |= rng.random(dense[row : row + 7, column : column + 9].shape) < 0.8
    dense[:, shape[1] // 3 : shape[1] // 2] = False
    dense[shape[0] // 3 : shape[0] // 2] = False
    ids = tuple(part.astype(np.int64) for part in np.nonzero(dense))
    values = rng.integers(-3, 4, len(ids[0])).astype(np.int32)
    what = SparseTensor(shape=shape, ids=ids, values=values, value="int32")
    block = tuple(int(side) for side in rng.integers(1, 9, 2))
    for source in ("dense", "coo", "csr", "csc"):
        run = convert(what if source != "dense" else what.without_zeros(), source, "bsr", block=block)
        assert run.entries == what.without_zeros().nnz


@pytest.mark.parametrize("value", NARROW)
def test_blocks_of_narrow_values(value):
    """More values in a beat than lanes."""
    design = NARROW[value]
    for source, block in (("csr", (3, 5)), ("csc", (7, 1)), ("dense", (1, 4)), ("coo", (2, 2))):
        convert(tensor((33, 47), 0.2, value=value), source, "bsr", design=design, block=block)


def test_widest_numbers_of_blocks():
    """Shapes up to 2^32 a rank, keys up to 32 + 32 bits and the row inside a block."""
    last = (1 << 32) - 1
    ids = np.array([0, 1, 2, 4, 4], np.int64), np.array([last, 0, last, 77, last], np.int64)
    what = SparseTensor(shape=(5, 1 << 32), ids=ids, values=np.arange(1, 6, dtype=np.int32), value="int32")
    for block in ((2, 3), (1, 1), (3, 1 << 12)):
        for source in ("coo", "csr", "rlc"):
            convert(what, source, "bsr", block=block, run_bits=(32, 5))
    ids = np.array([0, 5, last, last], np.int64), np.array([last, 0, 5, last], np.int64)
    what = SparseTensor(shape=(1 << 32, 1 << 32), ids=ids, values=np.arange(1, 5, dtype=np.int32), value="int32")
    run = convert(what, "coo", "bsr", block=(1 << 16, 1))
    assert (run.entries, run.passes) == (4, 12)  # 16 bits of a row of blocks and 32 of a column, by digits of 4
    what = SparseTensor(shape=(1 << 32, 9), ids=(ids[0], ids[1] % 9), values=what.values, value="int32")
    run = convert(what, "csc", "bsr", block=(1 << 16, 4))
    assert run.passes == 9  # 16 bits of a row of blocks, 2 of a column, 16 of a row inside


def test_blocks_in_order_are_not_sorted():
    """Blocks of one row, and a single column of blocks: the source is read once, no pass is needed."""
    what = tensor((31, 29), 0.3)
    for block in ((1, 4), (4, 29), (5, 40)):
        for source in ("dense", "coo", "csr", "rlc", "zvc"):
            image, expected = image_of(DESIGN, what, source, "bsr", block=block)
            run = convert(what, source, "bsr", block=block)
            given = beats_of(image, [data for _, data in image.source.values()])
            assert (run.passes, run.read_bytes) == (0, given * DESIGN.line_bytes)
            assert run.written_bytes == beats_of(image, expected.values()) * DESIGN.line_bytes
        assert convert(what, "csc", "bsr", block=block).passes > 0


def beats_of(image, sides):
    """Beats of the regions of a source or a target."""
    return sum(-(-len(data) // DESIGN.line_bytes) for data in sides)


@pytest.mark.parametrize(
    ("shape", "density", "passes"), [((60, 16), 0.4, 1), ((50, 200), 0.1, 2), ((30, 3000), 0.01, 3)]
)
@pytest.mark.parametrize("timing", [None, ROUGH], ids=["calm", "rough"])
def test_each_pass_reads_and_writes_the_entries_once(shape, density, passes, timing):
    """Beyond a pass that counts: the source is read twice. Buckets share beats, which are written in two parts."""
    what = tensor(shape, density)
    for source, target in (("csr", "csc"), ("rlc", "csc")):
        image, expected = image_of(DESIGN, what, source, target)
        run = convert(what, source, target, timing=timing)
        assert (run.passes, image.passes) == (passes, passes)
        record = -(-((shape[0] - 1).bit_length() + (shape[1] - 1).bit_length()) // 8) + 4
        scratch = -(-what.nnz * record // DESIGN.line_bytes)
        given = beats_of(image, [data for _, data in image.source.values()])
        wanted = beats_of(image, expected.values())
        assert run.read_bytes // DESIGN.line_bytes == 2 * given + passes * scratch
        extra = run.written_bytes // DESIGN.line_bytes - wanted - passes * scratch
        assert 0 <= extra <= passes * DESIGN.converter.counters


@pytest.mark.parametrize("kind", SOURCES)
def test_what_fits_into_the_sram_is_moved_once(kind):
    """No scratch region, and the source is read once, where the number of its records is known."""
    what = tensor((8, 9), 0.4)
    for source, target in ((kind, "csc"), ("csc", kind)):
        image, expected = image_of(DESIGN, what, source, target)
        run = convert(what, source, target)
        assert not image.scratch
        given = beats_of(image, [data for _, data in image.source.values()])
        twice = source == "dense"
        assert run.read_bytes == (1 + twice) * given * DESIGN.line_bytes
        assert run.written_bytes == beats_of(image, expected.values()) * DESIGN.line_bytes


def test_entries_around_the_size_of_the_sram():
    """One fewer than fit into a half of it, as many, one more; every bucket of its own size."""
    half = DESIGN.converter.sram_bytes // 2
    for nnz in (half // 6 - 1, half // 6, half // 6 + 1):
        rng = np.random.default_rng(nnz)
        places = np.sort(rng.choice(40 * 50, nnz, replace=False))
        ids = (places // 50).astype(np.int64), (places % 50).astype(np.int64)
        what = SparseTensor(shape=(40, 50), ids=ids, values=np.arange(1, nnz + 1, dtype=np.int32), value="int32")
        image, _ = image_of(DESIGN, what, "csr", "csc")
        assert bool(image.scratch) == (nnz * 6 > half)
        convert(what, "csr", "csc")
        convert(what, "csc", "dense")


@pytest.mark.parametrize(
    ("source", "target"), [("dense", "csr"), ("csr", "coo"), ("rlc", "zvc"), ("zvc", "rlc"), ("coo", "dense")]
)
def test_streams_at_the_bus_rate(source, target):
    what = tensor((200, 200), 0.05)
    run = convert(what, source, target, timing=bus_timing(DESIGN))
    assert (run.read_bytes + run.written_bytes) / DESIGN.line_bytes / run.cycles > 0.95


def test_narrow_values_with_twice_the_lanes():
    """Values of 8 bits between all formats, and at the rate of the bus where no pass sorts."""
    design = NARROW["int8"]
    for source in SOURCES:
        for target in MATRIX_FORMATS:
            convert(tensor((33, 47), 0.2, value="int8", zeros=0.1), source, target, design=design)
    what = tensor((500, 500), 0.05, value="int8")
    for source in ("dense", "coo", "csr", "rlc", "zvc"):
        run = convert(what, source, "rlc", design=design, timing=bus_timing(design))
        assert (run.read_bytes + run.written_bytes) / design.line_bytes / run.cycles > 0.95, source


@long_run()
@pytest.mark.parametrize("value", ["fp32", "bf16", "int8"])
def test_other_value_types_and_buses(value):
    bits = {"fp32": 256, "bf16": 128, "int8": 512}[value]
    design = load_design("edge", [f"pe.value={value}", f"axi.data_bits={bits}", "axi.burst_beats=4"])
    for source in SOURCES:
        for target in MATRIX_FORMATS:
            convert(tensor((33, 47), 0.2, value=value, zeros=0.1), source, target, design=design)


def put(data, at, bits, value):
    """Overwrites a field of bits."""
    number = int.from_bytes(data.tobytes(), "little")
    number = number & ~(((1 << bits) - 1) << at) | value << at
    data[:] = np.frombuffer(number.to_bytes(len(data), "little"), np.uint8)


def mistakes():
    """Name -> source, what is done to its bytes and registers, the error and its detail (None: any)."""

    def swap(image):
        region = image.source["entries"][1]
        put(region, RECORD_VALUE, 9, 5 << 4 | 14)  # the first entry lies in the last row

    def repeat(image):
        region = image.source["entries"][1]
        width = RECORD_VALUE + 4 + 5
        number = int.from_bytes(region.tobytes(), "little") & ((1 << width) - 1)
        put(region, width, width, number)

    def outside(image):
        put(image.source["entries"][1], RECORD_VALUE + 4, 5, 31)  # column 31 of 20

    def pointer(image):
        put(image.source["row_ptrs"][1], 7, 7, 127)

    def first_pointer(image):
        put(image.source["row_ptrs"][1], 0, 7, 1)

    def more_bits(image):
        data = image.source["mask"][1]
        data[:] = 0xFF

    def fewer_bits(image):
        image.source["mask"][1][:16] = 0

    def zero_value(image):
        image.source["values"][1][4:8] = 0

    def filler(image):
        put(image.source["pairs"][1], 0, RECORD_VALUE + 5, 3 << RECORD_VALUE)

    def run_past_the_end(image):
        count = image.registers["COUNT"]
        for pair in range(count - 3, count):
            put(image.source["pairs"][1], pair * (RECORD_VALUE + 5) + RECORD_VALUE, 5, 31)

    def count_less(image):
        image.registers["COUNT"] -= 3

    def small_records(image):
        image.registers["TARGET_RECORDS_BYTES"] = 40

    def small_frame(image):
        image.registers["TARGET_FRAME_BYTES"] = 3

    def narrow_pointer(image):
        image.registers["POINTERS"] = image.registers["POINTERS"] & 0x3F | 3 << 6

    def no_rows(image):
        image.registers["ROWS"] = 0

    def misaligned(image):
        image.registers["SOURCE_FRAME"] += 4

    def unknown(image):
        image.registers["FORMATS"] = 7

    def outside_window(image):
        image.registers["WRITE_END"] = image.registers["WRITE_BEGIN"] + 16

    def small_scratch(image):
        image.registers["SCRATCH_BYTES"] -= 1

    def scratch_outside_window(image):
        image.registers["SCRATCH_0"] = image.registers["WRITE_END"]

    def misaligned_scratch(image):
        image.registers["SCRATCH_1"] += 8

    def narrow_digits(image):
        image.registers["DIGITS"] = 2 | 2 << 6  # 4 of 5 bits of a column

    def wide_digits(image):
        image.registers["DIGITS"] = 5 | 1 << 6  # 16 counters

    def many_passes(image):
        image.registers["DIGITS"] = 3 | 3 << 6

    def column_pointer(image):
        put(image.source["col_ptrs"][1], 7, 7, 127)

    def row_twice(image):
        region = image.source["entries"][1]
        row = int.from_bytes(region.tobytes(), "little") >> RECORD_VALUE & 15
        put(region, 2 * RECORD_VALUE + 4, 4, row)

    def row_outside(image):
        put(image.source["entries"][1], RECORD_VALUE, 4, 15)  # row 15 of 15

    def block_rows(image):
        image.registers["BLOCK_ROWS"] = 0

    def block_columns(image):
        image.registers["BLOCK_COLUMNS"] = (1 << 24) + 1

    def large_block(image):
        image.registers.update({"BLOCK_ROWS": 1 << 13, "GRID_ROWS": 1, "BLOCK_COLUMNS": 1 << 12, "GRID_COLUMNS": 1})

    def grid_rows(image):
        image.registers["GRID_ROWS"] += 1

    def grid_columns(image):
        image.registers["GRID_COLUMNS"] -= 1

    def grid_widths(image):
        image.registers["GRID_WIDTHS"] = 3 | 3 << 6 | 1 << 12  # 10 columns of blocks

    def inner_width(image):
        image.registers["GRID_WIDTHS"] = 3 | 4 << 6

    def key_digits(image):
        image.registers["DIGITS"] = 3 | 2 << 6  # 7 bits of a key

    def small_blocks(image):
        image.registers["TARGET_BLOCKS_BYTES"] = 40

    def small_columns(image):
        image.registers["TARGET_RECORDS_BYTES"] = 3

    def misaligned_blocks(image):
        image.registers["TARGET_BLOCKS"] += 8

    def blocks_outside_window(image):
        image.registers["TARGET_BLOCKS"] = image.registers["WRITE_END"]

    def of_blocks(image):
        image.registers["FORMATS"] = 6

    def unreadable(image):
        image.registers["SOURCE_RECORDS"] += 1 << 24

    return {
        "unsorted": ("coo", "csr", swap, "bad_order", 1),
        "repeated": ("coo", "csr", repeat, "bad_order", 1),
        "outside": ("coo", "csr", outside, "bad_coordinate", 0),
        "pointer_falls": ("csr", "coo", pointer, "bad_pointers", None),
        "first_pointer": ("csr", "coo", first_pointer, "bad_pointers", 0),
        "count_below_pointers": ("csr", "rlc", count_less, "bad_pointers", None),
        "more_bits_than_values": ("zvc", "coo", more_bits, "bad_mask", None),
        "fewer_bits_than_values": ("zvc", "dense", fewer_bits, "bad_mask", None),
        "zero_value": ("zvc", "rlc", zero_value, "bad_value", 1),
        "filler": ("rlc", "coo", filler, "bad_run", 0),
        "run_past_the_end": ("rlc", "dense", run_past_the_end, "bad_coordinate", None),
        "small_records": ("dense", "coo", small_records, "records_overflow", 48),
        "small_frame": ("coo", "csr", small_frame, "frame_overflow", 14),
        "narrow_pointer": ("coo", "csr", narrow_pointer, "pointer_overflow", None),
        "no_rows": ("coo", "csr", no_rows, "bad_setting", "ROWS_LO"),
        "misaligned": ("dense", "csr", misaligned, "bad_address", "SOURCE_FRAME_LO"),
        "unknown_format": ("coo", "csr", unknown, "bad_setting", "FORMATS"),
        "outside_window": ("coo", "dense", outside_window, "write_outside", None),
        "unreadable": ("coo", "dense", unreadable, "axi_read", None),
        "small_scratch": ("csr", "csc", small_scratch, "scratch_overflow", None),
        "scratch_outside_window": ("csr", "csc", scratch_outside_window, "write_outside", None),
        "misaligned_scratch": ("csr", "csc", misaligned_scratch, "bad_address", "SCRATCH_1_LO"),
        "narrow_digits": ("csr", "csc", narrow_digits, "bad_setting", "DIGITS"),
        "wide_digits": ("csr", "csc", wide_digits, "bad_setting", "DIGITS"),
        "many_passes": ("csr", "csc", many_passes, "bad_setting", "DIGITS"),
        "column_pointer_falls": ("csc", "csr", column_pointer, "bad_pointers", None),
        "row_twice_in_a_column": ("csc", "zvc", row_twice, "bad_order", 1),
        "row_outside": ("csc", "csc", row_outside, "bad_coordinate", 0),
        "unsorted_to_csc": ("coo", "csc", swap, "bad_order", 1),
        "small_frame_of_csc": ("csr", "csc", small_frame, "frame_overflow", None),
        "unreadable_to_csc": ("csr", "csc", unreadable, "axi_read", None),
        "unsorted_to_bsr": ("coo", "bsr", swap, "bad_order", 1),
        "repeated_to_bsr": ("coo", "bsr", repeat, "bad_order", 1),
        "outside_to_bsr": ("coo", "bsr", outside, "bad_coordinate", 0),
        "pointer_falls_to_bsr": ("csr", "bsr", pointer, "bad_pointers", None),
        "more_bits_to_bsr": ("zvc", "bsr", more_bits, "bad_mask", None),
        "filler_to_bsr": ("rlc", "bsr", filler, "bad_run", 0),
        "row_twice_to_bsr": ("csc", "bsr", row_twice, "bad_order", 1),
        "unreadable_to_bsr": ("csr", "bsr", unreadable, "axi_read", None),
        "no_block_rows": ("csr", "bsr", block_rows, "bad_setting", "BLOCK_ROWS"),
        "wide_block": ("csr", "bsr", block_columns, "bad_setting", "BLOCK_COLUMNS"),
        "large_block": ("csr", "bsr", large_block, "bad_setting", "BLOCK_COLUMNS"),
        "many_rows_of_blocks": ("csr", "bsr", grid_rows, "bad_setting", "GRID_ROWS_LO"),
        "few_columns_of_blocks": ("csr", "bsr", grid_columns, "bad_setting", "GRID_COLUMNS_LO"),
        "narrow_column_of_a_block": ("csr", "bsr", grid_widths, "bad_setting", "GRID_WIDTHS"),
        "narrow_row_inside_a_block": ("csc", "bsr", inner_width, "bad_setting", "GRID_WIDTHS"),
        "narrow_digits_of_a_key": ("csr", "bsr", key_digits, "bad_setting", "DIGITS"),
        "small_blocks": ("csr", "bsr", small_blocks, "blocks_overflow", 48),
        "small_columns_of_blocks": ("csr", "bsr", small_columns, "records_overflow", None),
        "small_frame_of_bsr": ("csr", "bsr", small_frame, "frame_overflow", None),
        "narrow_pointer_to_bsr": ("csr", "bsr", narrow_pointer, "pointer_overflow", None),
        "small_scratch_of_bsr": ("csr", "bsr", small_scratch, "scratch_overflow", None),
        "misaligned_blocks": ("csr", "bsr", misaligned_blocks, "bad_address", "TARGET_BLOCKS_LO"),
        "blocks_outside_window": ("csr", "bsr", blocks_outside_window, "write_outside", None),
        "from_bsr": ("csr", "bsr", of_blocks, "bad_setting", "FORMATS"),
    }


@pytest.mark.parametrize("name", mistakes())
def test_mistakes_end_with_an_error(name):
    """The run ends, nothing is written outside the window, and the next run is as good as any."""
    source, target, spoil, error, detail = mistakes()[name]
    what = tensor((15, 20), 0.3, seed=4)
    image, _ = image_of(DESIGN, what, source, target)
    spoil(image)
    run = run_converter(DESIGN, image)
    assert run.error is not None
    assert run.error.startswith(f"{error}: "), run.error
    if detail is not None:
        assert run.error.partition(")")[0].endswith(f": {detail}"), run.error
    others = run.error.partition("); ")[2]
    assert not others or error == "axi_read", run.error


#: Designs with another style than the merged one above: figure 8, trees, and in `mr` every block that uses the host.
STYLED = {
    "b": load_design("tiny", ["converter.style=b", "converter.conversions=figure_8,any-csf"]),
    "mr": load_design(
        "tiny", ["converter.style=mr", "converter.conversions=figure_8,dense-csr,dense-bsr,zvc-csc,any-csf"]
    ),
}


@pytest.mark.parametrize("style", ["m", *STYLED])
def test_every_style_converts_figure_8(style):
    """Those of its conversions that the hardware has, and the same with a memory that stalls and reorders."""
    design = STYLED.get(style, DESIGN)
    for source, target in [pair for pair in FIGURE_8 if pair[1] in MATRIX_FORMATS]:
        for name in ("empty", "full", "ragged", "hypersparse"):
            shape, density = SHAPES[name]
            for timing in (None, ROUGH):
                convert(tensor(shape, density), source, target, design=design, timing=timing, run_bits=(4, 4))
    ids = np.array([0, 2, 3], np.int64), np.array([5, 0, (1 << 32) - 1], np.int64)
    what = SparseTensor(shape=(4, 1 << 32), ids=ids, values=np.arange(1, 4, dtype=np.int32), value="int32")
    convert(what, "rlc", "coo", design=design, run_bits=(32, 32))


def test_the_host_scans_places():
    """Masks and dense values, in one pass and in several."""
    for name in ("full", "ragged", "narrow"):
        for source, target in (("dense", "csr"), ("dense", "bsr"), ("zvc", "csc")):
            convert(tensor(*SHAPES[name]), source, target, design=STYLED["mr"], timing=ROUGH)


@pytest.mark.parametrize("style", STYLED)
def test_a_style_refuses_what_it_is_not_built_for(style):
    image, _ = image_of(DESIGN, tensor((7, 9), 0.3), "coo", "rlc")
    error = run_converter(STYLED[style], image).error
    assert error is not None
    assert error.partition(")")[0].endswith(": FORMATS"), error


@pytest.mark.parametrize("style", STYLED)
@pytest.mark.parametrize(
    "name",
    [
        *("run_past_the_end", "filler", "small_frame_of_csc", "unreadable_to_csc", "small_scratch"),
        *("few_columns_of_blocks", "narrow_digits_of_a_key", "small_blocks"),
    ],
)
def test_mistakes_end_with_an_error_in_every_style(name, style):
    source, target, spoil, error, _ = mistakes()[name]
    target = "coo" if source == "rlc" else target
    image, _ = image_of(DESIGN, tensor((15, 20), 0.3, seed=4), source, target)
    spoil(image)
    run = run_converter(STYLED[style], image)
    assert run.error is not None
    assert run.error.startswith(f"{error}: "), run.error


def test_a_run_after_an_error():
    """What an error left in the machine is gone."""
    from sw.runtime.converter import ConverterDriver
    from sw.runtime.simulation.converter import open_converter

    what = tensor((15, 20), 0.3, seed=4)
    image, expected = image_of(DESIGN, what, "csr", "zvc")
    with open_converter(converter_library(DESIGN), image, bus_timing(DESIGN)) as simulation:
        driver = ConverterDriver(simulation)
        count, widths = image.registers["COUNT"], image.registers["WIDTHS"]
        for changes, error in (
            ({"COUNT": count - 2}, "bad_pointers"),
            ({"WIDTHS": widths & ~(0x3F << 6) | 3 << 6}, "bad_setting"),
            ({}, None),
        ):
            driver.write_all(image.registers | changes)
            driver.start()
            assert simulation.run(50_000)
            found = driver.error()
            assert (found and found.partition(":")[0]) == error
    for region, data in image.written().items():
        assert np.array_equal(data, expected[region].view(np.uint8))
