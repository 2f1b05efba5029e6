"""The memory image: layout, tile maps, bounds, and reading the result back; against slow plain Python."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from gen.design import load_design
from sw.formats.csr import Csr
from sw.golden.spgemm import multiply
from sw.plan.gather import RowPlan
from sw.plan.kept_matrix import KeptMatrix
from sw.plan.plan import plan
from sw.runtime import memory_image
from sw.runtime.converter import SOURCES
from sw.runtime.memory_image import ImageError, build_image, scratch_elements, tile_map, window_table
from sw.runtime.registers import CONVERSION, CONVERTED, REGISTERS, field_value
from sw.scheme.scheme import Scheme
from sw.scheme.shares import default_partition

OF_CONVERSION = {name for names in CONVERSION.values() for name in names}

PAGE = 4096


def operand(rows, columns, density, seed=0):
    rng = np.random.default_rng(seed)
    matrix = sp.random_array((rows, columns), density=density, rng=rng, format="csr")
    matrix.sort_indices()
    return Csr.from_scipy(matrix, rng.integers(0, 1 << 32, matrix.nnz, dtype=np.uint32), "int32")


def scheme(design, tile, order="ijk", mode_c="streaming", lines_c=0):
    buffer_bytes, fifo_bytes = default_partition(design, lines_c=lines_c)
    return Scheme(
        policy="test",
        order=order,
        T_i=tile[0],
        T_j=tile[1],
        T_k=tile[2],
        buffer_bytes=buffer_bytes,
        fifo_bytes=fifo_bytes,
        mode={"A": "streaming", "B": "buffering", "C": mode_c},
    )


@pytest.fixture(scope="module")
def tiny():
    return load_design("tiny")


def words(region):
    return region.data.view(np.uint32)


@pytest.mark.parametrize("tile", [(99, 99, 99), (3, 4, 5), (1, 1, 1), (11, 13, 2)])
def test_operands_lie_where_the_registers_say(tiny, tile):
    a, b = operand(11, 17, 0.3, 1), operand(17, 13, 0.3, 2)
    image = build_image(tiny, plan(scheme(tiny, tile), a, b, tiny))
    for name, matrix in (("a", a), ("b", b)):
        pointers, elements = image.regions[f"{name}_pointers"], image.regions[f"{name}_elements"]
        assert image.registers[f"{name.upper()}_POINTERS"] == pointers.base
        assert image.registers[f"{name.upper()}_ELEMENTS"] == elements.base
        assert np.array_equal(words(pointers)[: matrix.rows + 1], matrix.pointers)
        assert np.array_equal(words(elements)[: 2 * matrix.nnz : 2], matrix.coordinates)
        assert np.array_equal(words(elements)[1 : 2 * matrix.nnz : 2], matrix.bits)
        assert (pointers.data[4 * (matrix.rows + 1) :] == memory_image.POISON).all()
        assert not pointers.writable and not elements.writable


def test_regions_are_pages_apart(tiny):
    a, b = operand(30, 40, 0.2, 1), operand(40, 50, 0.2, 2)
    image = build_image(tiny, plan(scheme(tiny, (7, 8, 9)), a, b, tiny))
    placed = sorted(image.regions.values(), key=lambda region: region.base)
    assert all(region.base % PAGE == 0 and region.data.nbytes % PAGE == 0 for region in placed)
    for region, after in zip(placed, placed[1:], strict=False):
        assert region.base + region.data.nbytes + PAGE <= after.base
    assert placed[0].base == 1 << 32, "addresses use their upper words"
    assert {region.name for region in placed if region.writable} == {
        "a_positions",
        "b_positions",
        "c_pointers",
        "c_elements",
        "c_partial0",
        "c_partial1",
        "c_finished",
        "c_tile_positions",
        "c_scratch",
    }


def test_every_configuration_register_is_given(tiny):
    planned = plan(scheme(tiny, (7, 8, 9)), operand(30, 40, 0.2), operand(40, 50, 0.2), tiny)
    wanted = {name for name, item in REGISTERS.items() if item.role in ("configuration", "address")}
    assert set(build_image(tiny, planned).registers) == wanted - OF_CONVERSION
    for tensors in ("a", "b", "c", "ab", "ac", "bc", "abc"):
        present = {name for tensor in tensors for name in CONVERSION[tensor]}
        registers = build_image(converting(tensors), planned).registers
        assert set(registers) == wanted - OF_CONVERSION | present
        assert not any(registers[name] for name in present)


def converting(tensors):
    return load_design("tiny", ["memory.records=packed", *(f"memory.converts_{t}=true" for t in tensors)])


@pytest.mark.parametrize("kind", CONVERTED)
@pytest.mark.parametrize("tensor", ["a", "b"])
def test_an_operand_in_its_own_format(tensor, kind):
    """Its bytes as they are, at its own addresses; the other one lies as the accelerator has it."""
    design = converting("abc")
    operands = {"a": operand(11, 17, 0.3, 1), "b": operand(17, 13, 0.3, 2)}
    planned = plan(scheme(design, (3, 13, 17)), operands["a"], operands["b"], design)
    kept = KeptMatrix.of(operands[tensor], kind)
    image = build_image(design, replace(planned, **{f"stored_{tensor}": kept}))
    name, other = tensor.upper(), "ab".replace(tensor, "")
    of_other = build_image(design, planned).regions[f"{other}_elements"]
    assert np.array_equal(image.regions[f"{other}_elements"].data, of_other.data)
    assert f"{tensor}_pointers" not in image.regions and f"{tensor}_tile_map" in image.regions
    conversion, count = ("CONVERSION", "COUNT") if tensor == "a" else ("CONVERSION_B", "COUNT_B")
    told = {
        field: field_value(conversion, field, image.registers[conversion]) for field in REGISTERS[conversion].fields
    }
    rows = operands[tensor].rows
    assert told["enable"] == 1 and SOURCES[told["format"]] == kind and told["row"] == (rows - 1).bit_length()
    assert told["run"] == kept.kept.run_bits
    entries = {"coo": operands[tensor].nnz, "zvc": operands[tensor].nnz, "dense": 0}
    assert image.registers[count] == entries.get(kind, image.registers[count]) and (
        kind == "dense" or image.registers[count]
    )
    assert not any(image.registers[register] for register in OF_CONVERSION - {conversion, count})
    parts = list(kept.memory(operands[tensor]).values())
    placed = [region for key in ("elements", "frame") if (region := image.regions.get(f"{tensor}_{key}"))]
    assert len(placed) == len(parts) == (2 if kind == "zvc" else 1)
    for region in placed:
        address = f"{name}_ELEMENTS" if region.name.endswith("elements") else f"{name}_POINTERS"
        assert image.registers[address] == region.base and not region.writable
        assert any(np.array_equal(region.data[: part.nbytes], part) for part in parts)
    wide = field_value("COORDINATES", tensor, image.registers["COORDINATES"])
    assert wide == (operands[tensor].columns - 1).bit_length()


# Regions of C in each format, its records' one first, and which register has the address of each.
RESULT = {
    "dense": {"c_frame": ("values", "C_POINTERS")},
    "coo": {"c_elements": ("entries", "C_ELEMENTS")},
    "rlc": {"c_elements": ("pairs", "C_ELEMENTS")},
    "zvc": {"c_elements": ("values", "C_ELEMENTS"), "c_frame": ("mask", "C_POINTERS")},
}
CUTS = {"whole": (99, 99, 99), "i": (4, 99, 99), "j and k": (4, 5, 6)}


def slots_of(bits, value):
    """Slots with numbers of a type; floats are from 1 to 2."""
    if value in ("bf16", "fp32"):
        return (bits >> 9 | 0x3F800000) & np.uint32(0xFFFF0000 if value == "bf16" else 0xFFFFFFFF)
    return (bits.view(np.int32) >> {"int8": 24, "int16": 16, "int32": 0}[value]).view(np.uint32)


def converted_c(kind, tile=(99, 99, 99), *, density=0.15, poison=True, value="int32", **options):
    """An image with C in a format, C as it should be read, and how it is kept."""
    design = load_design("tiny", ["memory.records=packed", "memory.converts_c=true", f"pe.value={value}"])
    a, b = (
        replace(found, bits=slots_of(found.bits, value), value=value)
        for found in (operand(11, 17, density, 1), operand(17, 13, density, 2))
    )
    planned = plan(scheme(design, tile).clip(11, 13, 17), a, b, design)
    c = multiply(a, b, design.pe.merge_radix, value, planned.scheme).structural
    kept = KeptMatrix.of(c, kind, **options)
    image = build_image(design, replace(planned, stored_c=kept), poison=poison)
    return image, c if kept.form.keeps_zeros else c.without_zeros(), kept


def written_c(image, c, kept):
    """As the hardware leaves it; returns its records."""
    for name, (part, _) in RESULT[kept.kept.kind].items():
        data = kept.memory(c)[part]
        if data.nbytes:
            image.regions[name].data[: data.nbytes] = data
    counted = next(iter(RESULT[kept.kept.kind].values()))[0]
    counts = {part.name: part.count for part in kept.kept.layout.regions}
    return 0 if kept.kept.kind == "dense" else counts[counted]


@pytest.mark.parametrize("tile", CUTS.values(), ids=CUTS)
@pytest.mark.parametrize("kind", CONVERTED)
def test_c_in_its_own_format(kind, tile):
    """Its regions have the addresses that the registers say, whole lines for as many records as there can be, no pointers."""
    image, c, kept = converted_c(kind, tile)
    placed = {name for name in image.regions if name in ("c_pointers", "c_elements", "c_frame")}
    assert placed == set(RESULT[kind])
    for name, (part, register) in RESULT[kind].items():
        region = image.regions[name]
        assert image.registers[register] == region.base and region.writable
        assert region.data.nbytes >= kept.memory(c)[part].nbytes
    room, line = image.registers["C_ELEMENTS_BYTES"], load_design("tiny").line_bytes
    assert room % line == 0
    if kind == "dense":
        assert room == 0 and image.registers["C_ELEMENTS"]
    else:
        name, (part, _) = next(iter(RESULT[kind].items()))
        assert kept.memory(c)[part].nbytes <= room <= image.regions[name].data.nbytes
    told = {
        field: field_value("CONVERSION_C", field, image.registers["CONVERSION_C"])
        for field in REGISTERS["CONVERSION_C"].fields
    }
    assert told == {"enable": 1, "format": SOURCES.index(kind), "row": 4, "run": kept.kept.run_bits}
    partial = {"c_partial0", "c_partial1", "c_finished"} & set(image.regions)
    assert bool(partial) == (tile == CUTS["j and k"])
    ordered = sorted(image.regions.values(), key=lambda region: region.base)
    for region, after in zip(ordered, ordered[1:], strict=False):
        assert region.base + region.data.nbytes + PAGE <= after.base


@pytest.mark.parametrize("value", ["int8", "int16", "int32", "bf16", "fp32"])
@pytest.mark.parametrize(
    ("kind", "options"), [*((kind, {}) for kind in CONVERTED), ("rlc", {"run_bits": 1}), ("rlc", {"run_bits": 32})]
)
@pytest.mark.parametrize("poison", [False, True])
def test_c_is_read_back_from_its_format(kind, options, value, poison):
    image, c, kept = converted_c(kind, value=value, poison=poison, **options)
    records = written_c(image, c, kept)
    found = image.c(records)
    assert found.shape == c.shape == (11, 13) and found.value == value and c.nnz
    for array in ("pointers", "coordinates", "bits"):
        assert np.array_equal(getattr(found, array), getattr(c, array)), array
    assert image.spilled(records) == []
    for name, (part, _) in RESULT[kind].items():
        behind = kept.memory(c)[part].nbytes
        image.regions[name].data[behind] ^= 1
        assert image.spilled(records) == [name]
        image.regions[name].data[behind] ^= 1


@pytest.mark.parametrize("kind", CONVERTED)
def test_c_without_a_nonzero(kind):
    """A mask of zeros, values that are 0, or nothing."""
    image, c, kept = converted_c(kind, density=0.0)
    assert c.nnz == 0 and image.c(written_c(image, c, kept)).nnz == 0
    assert image.spilled(0) == [] and image.registers["CONVERSION_C"]
    assert all(image.regions[name].writable for name in RESULT[kind] if name in image.regions)


@pytest.mark.parametrize(
    ("kind", "more", "spoil", "message"),
    [
        ("coo", 1, None, "but C in coo: (row_ids|col_ids)"),
        ("coo", 1 << 31, None, "but C in coo: region entries has 4096 bytes: must have "),
        ("rlc", 0, ("c_elements", 0, 0), "but C in rlc: levels has 0 behind a run of"),
        ("zvc", 1, None, "but C in zvc: mask has "),
        ("zvc", 0, ("c_frame", 17, 0x80), "but C in zvc: mask has bits behind place 142, the last one: must be 0"),
    ],
)
def test_c_that_is_no_matrix_of_its_format_is_refused(kind, more, spoil, message):
    image, c, kept = converted_c(kind)
    records = written_c(image, c, kept) + more
    if spoil is not None:
        name, at, byte = spoil
        image.regions[name].data[at : at + (4 if kind == "rlc" else 1)] = byte
    with pytest.raises(ImageError, match=f"^C_NNZ = {records}, {message}") as raised:
        image.c(records)
    assert "\n" not in str(raised.value)


def test_c_as_the_accelerator_has_it_where_it_could_be_converted():
    """The same build without a conversion: its registers say so, and C has its pointers."""
    design = converting("abc")
    a, b = operand(11, 17, 0.3, 1), operand(17, 13, 0.3, 2)
    image = build_image(design, plan(scheme(design, (4, 5, 6)), a, b, design))
    assert image.registers["CONVERSION_C"] == 0 and "c_pointers" in image.regions and "c_frame" not in image.regions


def test_scheme_becomes_registers(tiny):
    chosen = scheme(tiny, (7, 8, 9), order="jik", mode_c="buffering", lines_c=32)
    registers = build_image(tiny, plan(chosen, operand(30, 40, 0.2), operand(40, 5, 0.2), tiny)).registers
    assert [registers[f"SHAPE_{rank}"] for rank in "IJK"] == [30, 5, 40]
    assert [registers[f"TILE_{rank}"] for rank in "IJK"] == [7, 5, 9], "tile sides beyond the shape are cut"
    assert registers["ORDER"] == 2
    modes = [field_value("MODES", f"{tensor}_buffering", registers["MODES"]) for tensor in "abc"]
    assert modes == [0, 1, 1]
    parts = [(registers[f"{tensor}_BASE"], registers[f"{tensor}_LINES"]) for tensor in "ABC"]
    assert parts == [(0, 16), (16, 464), (480, 32)]
    assert registers["FIFO_LINES_B"] == 32


def test_regions_that_are_not_needed_have_an_address_but_no_memory(tiny):
    image = build_image(tiny, plan(scheme(tiny, (99, 99, 99)), operand(30, 40, 0.02), operand(40, 50, 0.2), tiny))
    for name in (
        "a_positions",
        "b_positions",
        "c_partial0",
        "c_partial1",
        "c_finished",
        "c_tile_positions",
        "c_scratch",
    ):
        assert name not in image.regions
        address = image.registers[name.upper()]
        assert address and address % PAGE == 0
        for region in image.regions.values():
            assert not region.base <= address < region.base + region.data.nbytes
    assert [image.registers[f"C_{name}_BYTES"] for name in ("PARTIAL", "FINISHED", "SCRATCH")] == [0, 0, 0]


def test_room_for_c_is_enough_and_bounded(tiny):
    a, b = operand(20, 30, 0.3, 1), operand(30, 25, 0.3, 2)
    image = build_image(tiny, plan(scheme(tiny, (5, 5, 5)), a, b, tiny))
    room = 0
    for row in range(a.rows):
        selected = a.coordinates[a.pointers[row] : a.pointers[row + 1]]
        room += min(b.columns, sum(int(b.pointers[k + 1] - b.pointers[k]) for k in selected))
    for name in ("ELEMENTS", "PARTIAL", "FINISHED"):
        assert 8 * room <= image.registers[f"C_{name}_BYTES"] < 8 * room + tiny.line_bytes
    assert image.regions["c_partial0"].data.nbytes >= 8 * room


@pytest.mark.parametrize(
    ("rows", "columns", "tile_rows", "tile_columns"),
    [(1, 1, 1, 1), (10, 13, 3, 4), (10, 13, 10, 13), (10, 13, 1, 1), (40, 90, 7, 1), (40, 90, 1, 90)],
)
@pytest.mark.parametrize("density", [0.0, 0.05, 0.5, 1.0])
def test_tile_map(rows, columns, tile_rows, tile_columns, density):
    matrix = operand(rows, columns, density, 3)
    packed = tile_map(matrix, tile_rows, tile_columns)
    across = -(-columns // tile_columns)
    occupied = set()
    for row in range(rows):
        for coordinate in matrix.coordinates[matrix.pointers[row] : matrix.pointers[row + 1]]:
            occupied.add(row // tile_rows * across + int(coordinate) // tile_columns)
    count = -(-rows // tile_rows) * across
    assert len(packed) == -(-count // 8)
    assert {bit for bit in range(8 * len(packed)) if packed[bit // 8] >> bit % 8 & 1} == occupied


def scratch_by_hand(leaves, macs, radix, width):
    """Elements of scratch when every fiber is as long as it can be."""
    if leaves <= radix:
        return 0
    used, waiting, left = macs, 0, leaves
    while left:
        if waiting == radix:
            used, waiting = used + min(macs, width), 1
        left -= min(radix, left)
        waiting += 1
    return used


@pytest.mark.parametrize("radix", [2, 4, 64])
@pytest.mark.parametrize("nonzeros", [0, 1, 3, 4, 5, 16, 17, 63, 64, 65, 200])
def test_scratch_bound(radix, nonzeros):
    one_row = Csr(
        rows=1,
        columns=300,
        pointers=np.array([0, nonzeros], np.int64),
        coordinates=np.arange(nonzeros, dtype=np.uint32),
        bits=np.ones(nonzeros, np.uint32),
        value="int32",
    )
    macs = 10 * nonzeros
    for tile_j in (7, 90):
        expected = max(
            scratch_by_hand(nonzeros + 1, macs, radix, tile_j), scratch_by_hand(-(-90 // tile_j), macs, radix, 90)
        )
        assert scratch_elements(one_row, np.array([macs]), radix, tile_j, 90) == expected


@pytest.mark.parametrize(("elements", "slots"), [(1, 1), (2, 2), (3, 2), (8, 8), (32, 32), (128, 32)])
def test_scratch_has_equal_slots_of_whole_lines(elements, slots):
    design = load_design("tiny", [f"pe.count={elements}"])
    a, b = operand(20, 30, 0.4, 1), operand(30, 25, 0.3, 2)
    macs = np.array(
        [int(np.diff(b.pointers)[a.coordinates[i:j]].sum()) for i, j in zip(a.pointers, a.pointers[1:], strict=False)]
    )
    most = 8 * scratch_elements(a, macs, design.pe.merge_radix, 25, 25)
    room = build_image(design, plan(scheme(design, (99, 99, 99)), a, b, design)).registers["C_SCRATCH_BYTES"]
    assert most and room % (slots * design.line_bytes) == 0
    assert most <= room // slots < most + design.line_bytes


def filled(tiny, poison=False):
    """An image with a result written by hand: rows of 2, 0 and 3 elements."""
    image = build_image(
        tiny, plan(scheme(tiny, (9, 9, 9)), operand(3, 8, 0.9, 1), operand(8, 6, 0.9, 2), tiny), poison=poison
    )
    words(image.regions["c_pointers"])[:4] = [0, 2, 2, 5]
    words(image.regions["c_elements"])[:10] = [1, 10, 4, 40, 0, 7, 2, 8, 5, 9]
    return image


def test_result_is_read_back(tiny):
    c = filled(tiny).c(5)
    assert c.shape == (3, 6) and c.value == "int32"
    assert c.pointers.tolist() == [0, 2, 2, 5]
    assert c.coordinates.tolist() == [1, 4, 0, 2, 5]
    assert c.bits.tolist() == [10, 40, 7, 8, 9]


def test_result_that_is_no_matrix_is_refused(tiny):
    with pytest.raises(ImageError, match=r"^C_NNZ = 4, but C's row pointers .* 4: first 0, last 5, 0 falls$"):
        filled(tiny).c(4)
    image = filled(tiny)
    words(image.regions["c_pointers"])[1] = 7
    with pytest.raises(ImageError, match="last 5, 1 falls$"):
        image.c(5)
    with pytest.raises(ImageError, match=r"^C_NNZ = 100000 is more than the region of C's elements holds"):
        image.c(100000)


@pytest.mark.parametrize("poison", [False, True])
def test_bytes_behind_the_result_are_watched(tiny, poison):
    image = filled(tiny, poison)
    assert image.spilled(5) == []
    assert image.spilled(4) == ["c_elements"]
    image.regions["c_pointers"].data[16] ^= 1
    assert image.spilled(5) == ["c_pointers"]


def test_impossible_sizes_are_refused(tiny, monkeypatch):
    a, b = operand(30, 40, 0.2, 1), operand(40, 50, 0.2, 2)
    with pytest.raises(ImageError, match="^operands and result need addresses up to 0x"):
        build_image(tiny, plan(scheme(tiny, (9, 9, 9)), a, b, tiny), base=(1 << 40) - PAGE)
    monkeypatch.setattr(memory_image, "MAXIMUM_ELEMENTS", 100)
    with pytest.raises(ImageError, match="^A has 240 nonzeros, positions count to 100$"):
        build_image(tiny, plan(scheme(tiny, (9, 9, 9)), a, b, tiny))


def test_large_rooms_cost_no_memory(tiny):
    """A dense-looking bound of gigabytes must not be touched."""
    side = 20_000
    rows = np.arange(side + 1, dtype=np.int64)
    diagonal = Csr(
        rows=side,
        columns=side,
        pointers=rows,
        coordinates=np.zeros(side, np.uint32),
        bits=np.ones(side, np.uint32),
        value="int32",
    )
    full_row = Csr(
        rows=side,
        columns=side,
        pointers=np.concatenate([[0], np.full(side, side)]).astype(np.int64),
        coordinates=np.arange(side, dtype=np.uint32),
        bits=np.ones(side, np.uint32),
        value="int32",
    )
    image = build_image(tiny, plan(scheme(tiny, (side, side, 900)), diagonal, full_row, tiny))
    assert image.registers["C_ELEMENTS_BYTES"] == 8 * side * side


def test_a_window_too_large_for_its_entry_is_refused():
    one, none = np.ones(1, np.int64), np.zeros(0, np.int64)
    gathered = RowPlan(
        rows=None, lines=none, places=none, windows=np.array([[0, 5]]), kept=0 * one, line=7 * one, free=(1 << 16) * one,
        metadata=3 * one, placed=0 * one, read=0 * one, early=np.array([False]),
    )  # fmt: skip
    with pytest.raises(ImageError, match="^window 0 needs 65536 in a field of 16 bits of its entry$"):
        window_table(gathered)
