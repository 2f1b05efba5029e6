"""The compiled converter on tensors of order 3: CSF bit for bit, rough memories, and inputs that contradict themselves."""

import numpy as np
import pytest

from gen.design import load_design
from rtl.regs.converter_map import TENSOR_SOURCES
from sw.formats.csr import VALUE_DTYPES
from sw.formats.sparse_tensor import SparseTensor
from sw.formats.storage_format import unpack
from sw.runtime.converter import ERRORS, FORMATS, FRAME_REGIONS, RECORD_REGIONS, ConverterDriver
from sw.runtime.simulation.converter import converter_library, open_converter, run_converter
from sw.runtime.simulation.engine import bus_timing
from tests.sw.runtime.test_converter import (
    DESIGN,
    NARROW,
    RECORD_VALUE,
    ROUGH,
    STYLED,
    VALUE,
    convert,
    image_of,
    put,
)
from tests.sw.runtime.test_converter import mistakes as mistakes_of_matrices
from tests.sw.runtime.test_converter import tensor as matrix
from tests.tools import long_run

LAST = (1 << 32) - 1


def tensor(shape, density, seed=1, value=VALUE, zeros=0.0):
    """Random entries, some of them stored zeros, of either sign where there are signs."""
    rng = np.random.default_rng(seed)
    ids = tuple(part.astype(np.int64) for part in np.nonzero(rng.random(shape) < density))
    values = rng.integers(1, 100, len(ids[0])).astype(VALUE_DTYPES[value])
    values[rng.random(len(values)) < zeros] = -0.0 if value in ("fp32", "bf16") else 0
    return SparseTensor(shape=shape, ids=ids, values=values, value=value)


def of_places(shape, places, value="int32"):
    """Entries at these places, which rise."""
    ids = tuple(np.array(rank, np.int64) for rank in zip(*places, strict=True))
    values = np.arange(1, len(places) + 1).astype(VALUE_DTYPES[value])
    return SparseTensor(shape=shape, ids=ids, values=values, value=value)


SHAPES = {
    "one_place": ((1, 1, 1), 1.0),
    "empty": ((4, 5, 6), 0.0),
    "full": ((5, 6, 7), 1.0),
    "one_fiber": ((1, 1, 300), 0.4),
    "one_slice": ((1, 40, 9), 0.3),
    "fibers_of_one": ((13, 11, 1), 0.5),
    "slices_of_one": ((200, 1, 1), 0.5),
    "ragged": ((9, 13, 17), 0.2),
    "hypersparse": ((40, 30, 25), 0.001),
    "narrow": ((3, 70, 2), 0.4),
}


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("source", TENSOR_SOURCES)
def test_tree_of_every_shape(source, name):
    shape, density = SHAPES[name]
    what = tensor(shape, density)
    for timing in (None, ROUGH):
        assert convert(what, source, "csf", timing=timing).entries == what.nnz


@pytest.mark.parametrize("source", TENSOR_SOURCES)
@pytest.mark.parametrize("seed", range(4))
def test_random_trees(source, seed):
    """Fibers and slices of every length, and gaps between them."""
    rng = np.random.default_rng(seed)
    shape = tuple(int(side) for side in rng.integers(1, 24, 3))
    kept = rng.random(shape) < rng.choice([0.03, 0.3, 0.9])
    kept &= (rng.random(shape[:1]) < 0.6)[:, None, None] & (rng.random(shape[:2]) < 0.6)[:, :, None]
    ids = tuple(part.astype(np.int64) for part in np.nonzero(kept))
    values = rng.integers(1, 100, len(ids[0])).astype(np.int32)
    what = SparseTensor(shape=shape, ids=ids, values=values, value="int32")
    convert(what, source, "csf", timing=ROUGH if seed % 2 else None)


def test_one_long_fiber():
    """A single slice and a single fiber of many entries, in the last place of both."""
    what = of_places((50, 60, 4000), [(49, 59, k) for k in range(0, 4000, 3)])
    convert(what, "coo", "csf")
    small = of_places((5, 6, 400), [(4, 5, k) for k in range(0, 400, 3)])
    convert(small, "dense", "csf")


def test_stored_zeros_stay():
    """CSF has a place for those of COO; a dense tensor stores none."""
    what = tensor((7, 8, 9), 0.4, zeros=0.4)
    assert convert(what, "coo", "csf").entries == what.nnz
    assert convert(what, "dense", "csf").entries == what.without_zeros().nnz < what.nnz


def test_largest_coordinates():
    """2^32 a rank: records of 128 bits and positions of 96; one place, and first and last of each rank."""
    shape = (1 << 32,) * 3
    convert(of_places(shape, [(LAST, LAST, LAST)]), "coo", "csf")
    ends = (0, 1 << 31, LAST)
    what = of_places(shape, [(i, j, k) for i in ends for j in ends for k in ends])
    for timing in (None, ROUGH):
        assert convert(what, "coo", "csf", timing=timing).entries == 27
    # One rank after the other, with others of one place: fields of no bits.
    for rank in range(3):
        sides = [1, 1, 1]
        sides[rank] = 1 << 32
        places = [tuple(place if n == rank else 0 for n in range(3)) for place in (0, 5, LAST)]
        convert(of_places(tuple(sides), places), "coo", "csf")


def test_dense_tensors_with_a_long_side():
    """Divisors of 17 bits and of one, and numbers of fibers up to them."""
    for shape in ((2, 1 << 16, 1), (1, 1, 1 << 17), (1 << 16, 1, 2), (3, 3, 1 << 14), (1, (1 << 16) + 1, 2)):
        corners = {(i, j, k) for i in (0, shape[0] - 1) for j in (0, shape[1] - 1) for k in (0, shape[2] - 1)}
        convert(of_places(shape, sorted(corners)), "dense", "csf")


@pytest.mark.parametrize("source", TENSOR_SOURCES)
def test_streams_at_the_bus_rate(source):
    what = tensor((40, 40, 40), 0.05)
    run = convert(what, source, "csf", timing=bus_timing(DESIGN))
    assert (run.read_bytes + run.written_bytes) / DESIGN.line_bytes / run.cycles > 0.95


@pytest.mark.parametrize("value", NARROW)
def test_narrow_values(value):
    """Values of which a beat has twice as many as lanes."""
    for source in TENSOR_SOURCES:
        convert(tensor((9, 10, 11), 0.3, value=value, zeros=0.1), source, "csf", design=NARROW[value], timing=ROUGH)


@long_run()
@pytest.mark.parametrize("value", ["fp32", "bf16", "int8"])
def test_other_value_types_and_buses(value):
    bits = {"fp32": 256, "bf16": 128, "int8": 512}[value]
    design = load_design("edge", [f"pe.value={value}", f"axi.data_bits={bits}", "axi.burst_beats=4"])
    for source in TENSOR_SOURCES:
        for density in (0.02, 0.5):
            convert(tensor((13, 17, 19), density, value=value, zeros=0.1), source, "csf", design=design)


def builds_trees(design, sources=TENSOR_SOURCES):
    for source in sources:
        for name in ("empty", "full", "ragged", "hypersparse"):
            for timing in (None, ROUGH):
                convert(tensor(*SHAPES[name]), source, "csf", design=design, timing=timing)


@pytest.mark.parametrize("style", STYLED)
def test_every_style_has_trees(style):
    """Cores of their own, and one with the dividers of a host."""
    builds_trees(STYLED[style])


@long_run()
def test_a_converter_of_a_single_conversion():
    builds_trees(load_design("tiny", ["converter.conversions=dense-csf"]), ("dense",))


WIDTHS = (3, 4, 5)  # of the coordinates of a tensor of 8 x 9 x 17
WIDTH = RECORD_VALUE + sum(WIDTHS)


def mistakes():
    """Name -> source, what is done to its bytes and registers, the error and its detail (None: any)."""

    def entry(image, number, place):
        at = number * WIDTH + RECORD_VALUE
        for coordinate, width in zip(place, WIDTHS, strict=True):
            put(image.source["entries"][1], at, width, coordinate)
            at += width

    def register(name, value):
        return lambda image: image.registers.update({name: value})

    def moved(name, step):
        return lambda image: image.registers.update({name: image.registers[name] + step})

    def pointers(field, bits):
        def spoil(image):
            image.registers["POINTERS"] = image.registers["POINTERS"] & ~(0x3F << field) | bits << field

        return spoil

    def slices_fall(image):
        entry(image, 3, (7, 8, 16))

    def fibers_fall(image):
        entry(image, 4, (0, 0, 0))

    def repeated(image):
        region = image.source["entries"][1]
        number = int.from_bytes(region.tobytes(), "little") >> WIDTH & ((1 << WIDTH) - 1)
        put(region, 2 * WIDTH, WIDTH, number)

    def below_zero_of_a_rank(image):
        """Higher in k, lower in j: positions of a matrix of the last two ranks would fall, those of k alone rise."""
        entry(image, 0, (0, 8, 0))
        entry(image, 1, (0, 0, 16))

    def outside_window(image):
        image.registers["WRITE_END"] = image.registers["WRITE_BEGIN"] + 16

    def few_entries(image):
        image.registers["COUNT"] = 0

    def more_entries(image):
        image.registers["COUNT"] += 40

    def unbuilt(code):
        return lambda image: image.registers.update({"FORMATS": code | 7 << 3})

    def many_fibers(image):
        image.registers.update(
            {"ROWS": 1 << 17, "COLUMNS": (1 << 15) + 1, "WIDTHS": 17 | 16 << 6 | 1 << 12 | 1 << 18 | 5 << 24}
        )

    def depth_width(bits):
        return lambda image: image.registers.update({"WIDTHS": image.registers["WIDTHS"] & ~(0x3F << 24) | bits << 24})

    return {
        "slices_fall": ("coo", slices_fall, "bad_order", 4),
        "fibers_fall": ("coo", fibers_fall, "bad_order", 4),
        "j_falls_while_k_rises": ("coo", below_zero_of_a_rank, "bad_order", 1),
        "repeated": ("coo", repeated, "bad_order", 2),
        "j_outside": ("coo", lambda image: entry(image, 5, (7, 9, 0)), "bad_coordinate", 5),
        "k_outside": ("coo", lambda image: entry(image, 2, (7, 0, 17)), "bad_coordinate", 2),
        "i_outside": ("coo", register("ROWS", 5), "bad_coordinate", None),
        "entries_behind_the_last": ("coo", more_entries, "axi_read", None),
        "no_depth": ("coo", register("DEPTH", 0), "bad_setting", "DEPTH_LO"),
        "large_depth": ("coo", register("DEPTH", (1 << 32) + 1), "bad_setting", "DEPTH_LO"),
        "no_columns": ("dense", register("COLUMNS", 0), "bad_setting", "COLUMNS_LO"),
        "narrow_depth": ("coo", depth_width(4), "bad_setting", "WIDTHS"),
        "wide_depth": ("dense", depth_width(33), "bad_setting", "WIDTHS"),
        "too_many_fibers": ("dense", many_fibers, "bad_setting", "COLUMNS_LO"),
        "wide_pointer": ("coo", pointers(12, 41), "bad_setting", "POINTERS"),
        "narrow_pointer_to_entries": ("coo", pointers(6, 3), "pointer_overflow", None),
        "narrow_pointer_to_fibers": ("dense", pointers(12, 2), "pointer_overflow", None),
        "small_records": ("dense", register("TARGET_RECORDS_BYTES", 40), "records_overflow", 48),
        "small_pointers": ("coo", register("TARGET_FRAME_BYTES", 15), "frame_overflow", 16),
        "small_fibers": ("dense", register("TARGET_BLOCKS_BYTES", 9), "blocks_overflow", None),
        "small_slices": ("coo", register("TARGET_IDS_0_BYTES", 2), "ids_0_overflow", 3),
        "small_pointers_of_slices": ("dense", register("TARGET_PTRS_1_BYTES", 0), "ptrs_1_overflow", None),
        "misaligned_slices": ("coo", moved("TARGET_IDS_0", 4), "bad_address", "TARGET_IDS_0_LO"),
        "misaligned_pointers": ("dense", moved("TARGET_PTRS_1", 8), "bad_address", "TARGET_PTRS_1_LO"),
        "outside_window": ("coo", outside_window, "write_outside", None),
        "slices_outside_window": ("dense", moved("TARGET_IDS_0", 1 << 24), "write_outside", None),
        "pointers_outside_window": ("coo", moved("TARGET_PTRS_1", 1 << 24), "write_outside", None),
        "unreadable": ("coo", moved("SOURCE_RECORDS", 1 << 24), "axi_read", None),
        "unreadable_frame": ("dense", moved("SOURCE_FRAME", 1 << 24), "axi_read", None),
        "from_csr": ("coo", unbuilt(2), "bad_setting", "FORMATS"),
        "from_rlc": ("coo", unbuilt(3), "bad_setting", "FORMATS"),
        "from_zvc": ("coo", unbuilt(4), "bad_setting", "FORMATS"),
        "from_csc": ("coo", unbuilt(5), "bad_setting", "FORMATS"),
        "no_entries": ("coo", few_entries, None, None),
    }


@pytest.mark.parametrize("name", mistakes())
def test_mistakes_end_with_an_error(name):
    """The run ends, and nothing is written outside the window. A count of 0 is a tensor without entries."""
    source, spoil, error, detail = mistakes()[name]
    image, _ = image_of(DESIGN, tensor((8, 9, 17), 0.08, seed=4), source, "csf")
    spoil(image)
    run = run_converter(DESIGN, image)
    if error is None:
        assert (run.error, run.entries) == (None, 0)
        return
    assert run.error is not None
    assert run.error.startswith(f"{error}: "), run.error
    if detail is not None:
        assert run.error.partition(")")[0].endswith(f": {detail}"), run.error
    others = run.error.partition("); ")[2]
    assert not others or error == "axi_read", run.error


def test_errors_are_those_of_the_map():
    """Those of matrices and of tensors."""
    wanted = {error for *_, error, _ in (*mistakes_of_matrices().values(), *mistakes().values()) if error}
    assert wanted | {"none", "axi_write", "watchdog"} == {name for name, *_ in ERRORS.values()}
    assert set(RECORD_REGIONS) | set(FRAME_REGIONS) == set(FORMATS)


def test_registers_of_others_do_not_count():
    """Those of a tensor in the conversion of a matrix, and those of blocks in that of a tensor."""
    library = converter_library(DESIGN)
    cube, flat = tensor((8, 9, 17), 0.2), matrix((15, 20), 0.3)
    for what, source, target in (
        (cube, "coo", "csf"),
        (flat, "coo", "csc"),
        (cube, "dense", "csf"),
        (flat, "dense", "bsr"),
    ):
        image, expected = image_of(DESIGN, what, source, target)
        others = {
            "DEPTH": 0,
            "TARGET_IDS_0": 1 << 30,
            "TARGET_IDS_0_BYTES": 0,
            "BLOCK_ROWS": 0,
            "GRID_ROWS": 7,
            "DIGITS": 0,
        }
        with open_converter(library, image, bus_timing(DESIGN)) as simulation:
            driver = ConverterDriver(simulation)
            driver.write_all(others | image.registers)
            driver.start()
            assert simulation.run(100_000)
            assert driver.error() is None
        assert all(np.array_equal(data, expected[name].view(np.uint8)) for name, data in image.written().items())


def test_arrays_by_hand():
    """The arrays of a small tensor, written out by hand."""
    places = [(0, 1, 2), (0, 1, 4), (0, 3, 0), (2, 0, 1), (2, 0, 4), (2, 3, 3)]
    what = of_places((3, 4, 5), places)
    for source in TENSOR_SOURCES:
        image, _ = image_of(DESIGN, what, source, "csf")
        assert run_converter(DESIGN, image).error is None
        found = unpack(image.target_layout, image.written())
        assert found["ids_0"].tolist() == [0, 2]
        assert found["ptrs_1"].tolist() == [0, 2, 4]
        assert found["ids_1"].tolist() == [1, 3, 0, 3]
        assert found["ptrs_2"].tolist() == [0, 2, 3, 5, 6]
        assert found["ids_2"].tolist() == [2, 4, 0, 1, 4, 3]
        assert found["values"].tolist() == [1, 2, 3, 4, 5, 6]
