"""Candidates: their classes, their sums, conversions by hand, and the search against the whole table."""

import itertools

import numpy as np
import pytest

from sw.energy import MAC_PJ
from sw.sage.accelerators import ACCELERATORS, MATRIX_MCFS, TENSOR_MCFS
from sw.sage.choice import best, ranked
from sw.sage.constants import Constants
from sw.sage.conversion import hardware_conversion, software_conversion
from sw.sage.workload import counted, estimated, random_operand, uniform
from tests.sw.sage.test_workload import random_matrix

SHAPES = {"spgemm": (60, 90, 40), "spmm": (60, 90, 40), "spttm": (7, 12, 90, 40), "mttkrp": (7, 12, 90, 40)}
#: Table II: MCF and ACF of A and B.
TABLE_2 = {
    "tpu": {("dense dense", "dense dense")},
    "eie": {("csr dense", "csr dense"), ("dense csc", "dense csc")},
    "sigma": {("zvc zvc", acf) for acf in ("csr dense", "dense csc", "dense dense")},
    "extensor": {(f"{a} {b}", f"{a} {b}") for a in ("csr", "dense") for b in ("dense", "csc")},
    "nvdla": {(f"{a} {b}", "dense dense") for a in ("zvc", "dense") for b in ("zvc", "dense")},
}


def work_of(kernel: str, density: float = 0.05, **more):
    return uniform(kernel, SHAPES[kernel], density, density if kernel == "spgemm" else 1.0, **more)


def pairs(found) -> set[tuple[str, str]]:
    return {(f"{one.mcf['A']} {one.mcf['B']}", f"{one.acf['A']} {one.acf['B']}") for one in found}


@pytest.mark.parametrize("name", TABLE_2)
def test_classes_are_those_of_table_2(name):
    found = ranked(work_of("spgemm"), ACCELERATORS[name])
    assert pairs(found) == TABLE_2[name] and {one.mcf["O"] for one in found} == {"dense"}
    tensors = {(mcf.replace("csr", "csf"), acf.replace("csr", "csf")) for mcf, acf in TABLE_2[name]}
    assert pairs(ranked(work_of("spttm"), ACCELERATORS[name])) == tensors


@pytest.mark.parametrize("name", ["flexible", "sw"])
def test_flexible_classes_have_all_formats(name):
    found = ranked(work_of("spgemm"), ACCELERATORS[name])
    assert len(found) == 6 * 6 * 6 * 3 * 2 == len({(*one.mcf.values(), *one.acf.values()) for one in found})
    tensor = ranked(work_of("mttkrp"), ACCELERATORS[name])
    assert {one.mcf["A"] for one in tensor} == set(TENSOR_MCFS) and {one.acf["A"] for one in tensor} == {
        "dense",
        "coo",
        "csf",
    }
    assert {one.mcf["O"] for one in tensor} == set(MATRIX_MCFS)
    assert {one.mcf["O"] for one in ranked(work_of("spttm"), ACCELERATORS[name])} == set(TENSOR_MCFS)


@pytest.mark.parametrize("kernel", SHAPES)
def test_parts_add_up(kernel):
    for one in ranked(work_of(kernel), ACCELERATORS["flexible"]):
        assert list(one.cycles) == ["transfer", "conversion", "compute", "total"]
        assert list(one.energy_pJ) == ["dram", "conversion", "buffer", "compute", "total"]
        for parts in (one.cycles, one.energy_pJ):
            assert min(parts.values()) >= 0 and parts["total"] == pytest.approx(sum(parts.values()) - parts["total"])
        assert one.as_dict()["edp"] == one.energy_pJ["total"] * one.cycles["total"]


def test_memory_by_hand():
    """csr of 60 x 90 with 270 nonzeros: 61 pointers of 9 bits, entries of 32 + 7; all at 512 bits a cycle and 20 pJ a bit."""
    found = ranked(work_of("spmm"), ACCELERATORS["flexible"], mcf={"A": "csr", "B": "dense", "O": "dense"})
    bits = 61 * 9 + 270 * 39 + 90 * 40 * 32 + 60 * 40 * 32
    assert {(one.cycles["transfer"], one.energy_pJ["dram"]) for one in found} == {(bits / 512, bits * 20)}


@pytest.mark.parametrize("kernel", SHAPES)
@pytest.mark.parametrize("name", ACCELERATORS)
def test_the_search_finds_the_first_of_the_table(kernel, name):
    for density in (1e-3, 0.02, 0.3, 0.9):
        for value in ("int8", "fp32"):
            work = work_of(kernel, density, value=value)
            table, found = ranked(work, ACCELERATORS[name]), best(work, ACCELERATORS[name])
            assert [one.edp for one in table] == sorted(one.edp for one in table)
            assert found.edp == pytest.approx(table[0].edp, rel=1e-12)


def test_the_search_respects_what_is_given():
    work = work_of("spgemm")
    for given in ({"A": "coo"}, {"A": "rlc", "B": "zvc"}, {"O": "csc"}):
        for acf in ({}, {"A": "coo"}, {"A": "dense", "B": "csc"}):
            table = ranked(work, ACCELERATORS["flexible"], mcf=given, acf=acf)
            assert all(given.items() <= one.mcf.items() and acf.items() <= one.acf.items() for one in table)
            whole = [
                one
                for one in ranked(work, ACCELERATORS["flexible"])
                if given.items() <= one.mcf.items() and acf.items() <= one.acf.items()
            ]
            assert [one.edp for one in table] == [one.edp for one in whole] and table
            found = best(work, ACCELERATORS["flexible"], mcf=given, acf=acf)
            assert found.edp == pytest.approx(table[0].edp, rel=1e-12)
    assert ranked(work, ACCELERATORS["tpu"], mcf={"A": "csr"}) == []
    assert best(work, ACCELERATORS["tpu"], mcf={"A": "csr"}) is None


@pytest.mark.parametrize("density", [0.002, 0.03, 0.3])
def test_the_estimate_chooses_within_5_percent(density):
    """Random matrices, a band and one with rows of very different lengths."""
    rng = np.random.default_rng(0)
    uneven = random_matrix(200, 200, density, 1).toarray() * (rng.random((200, 1)) < rng.random((200, 1)) ** 2)
    band = np.triu(np.tril(np.ones((200, 200)), 4), -4) * (rng.random((200, 200)) < 0.5)
    import scipy.sparse as sp

    for matrix in (random_matrix(200, 200, density, 2), sp.csr_array(uneven), sp.csr_array(band)):
        table = ranked(counted("spgemm", matrix, matrix), ACCELERATORS["flexible"])
        found = best(estimated("spgemm", matrix, matrix), ACCELERATORS["flexible"])
        same = next(one for one in table if (one.mcf, one.acf) == (found.mcf, found.acf))
        assert same.edp <= 1.05 * table[0].edp


def convert(source: str, target: str, *, by_row: bool = True, density: float = 0.1, constants: Constants | None = None):
    operand = random_operand((100, 80), density, 5)
    return hardware_conversion(
        operand, source, target, "fp32", constants or Constants(), memory=source, dense_by_row=by_row
    )


def test_conversions_by_hand():
    assert (convert("csr", "csr").cycles, convert("csr", "csr").energy) == (0, 0)
    # 800 nonzeros of 39 bits with 101 pointers of 10 arrive in 62.9 cycles; transposed 8 a cycle.
    assert convert("csr", "csc").cycles == pytest.approx(100)
    # A mask of 8000 bits, 32 a cycle, beside the 65.6 cycles in which 33,600 bits arrive.
    assert convert("zvc", "csr").cycles == pytest.approx(8000 / 32 - 33600 / 512)
    # Eight entries a cycle are divided, which is slower than eight dividers get them where memory is fast.
    fast = Constants(memory_bits=1e9, prefix_inputs=1 << 20)
    assert convert("rlc", "coo", constants=fast).cycles == pytest.approx(800 / 8, rel=1e-3)
    # What becomes dense does so on its way to the bus.
    assert {convert(source, "dense").cycles for source in ("rlc", "zvc", "coo", "csr")} == {0}


def test_what_changes_its_order_goes_through_the_scratchpad():
    by_row, either = convert("csc", "dense"), convert("csc", "dense", by_row=False)
    assert (by_row.cycles, either.cycles) == (pytest.approx(100), 0)
    entry = 800 * (2 * 64 * Constants().scratchpad_bit + 2 * 0.1)
    assert by_row.energy - either.energy == pytest.approx(entry)


def test_the_host_converts_at_the_pace_of_its_memory():
    operand = random_operand((100, 80), 0.1, 5)
    bits = operand.bits("csr", "fp32") + operand.bits("csc", "fp32")
    found = software_conversion(operand, "csr", "csc", "fp32")
    assert found.cycles == pytest.approx(bits / 8 / 85) and found.energy == pytest.approx(found.cycles * 165 * 1000)
    assert software_conversion(operand, "csr", "csr", "fp32").energy == 0


def test_converters_in_hardware_are_never_worse_than_the_host():
    for kernel, density in itertools.product(SHAPES, (0.01, 0.4)):
        work = work_of(kernel, density)
        mint, host = (best(work, ACCELERATORS[name]) for name in ("flexible", "sw"))
        assert mint.edp <= host.edp


def test_denser_operands_cost_more():
    for mcf in MATRIX_MCFS:
        found = [
            ranked(work_of("spgemm", density), ACCELERATORS["flexible"], mcf={"A": mcf, "B": mcf})
            for density in (1e-3, 0.01, 0.1, 0.5, 1.0)
        ]
        for part in ("dram", "total"):
            energies = [min(one.energy_pJ[part] for one in each) for each in found]
            assert energies == sorted(energies)
            assert mcf == "dense" or energies[0] < energies[-1]


def test_every_value_type_has_its_energy():
    assert MAC_PJ["fp32"] == pytest.approx(4.6) and MAC_PJ["int8"] < MAC_PJ["int16"] < MAC_PJ["int32"] < MAC_PJ["fp32"]
    for value in MAC_PJ:
        assert ranked(work_of("spgemm", value=value), ACCELERATORS["flexible"])


def test_rates_and_energies_are_above_0():
    with pytest.raises(ValueError, match=r"^dram_bit must be above 0, not 0$"):
        Constants(dram_bit=0)


def test_energies_of_conversions_by_hand():
    """100 x 80 with 800 nonzeros: an addition an input of a prefix sum and a comparison, two divisions for coordinates."""
    add, divide = 0.1, 3.2
    expected = {
        ("dense", "csr"): 8000 * 2 * add + 800 * 2 * divide + 800 * add,
        ("zvc", "coo"): 8000 * add + 800 * 2 * divide,
        ("zvc", "dense"): 8000 * add,
        ("coo", "csr"): 800 * add,
        ("csr", "dense"): 800 * add,
        ("dense", "zvc"): 8000 * 2 * add + 800 * add,
    }
    for (source, target), energy in expected.items():
        assert convert(source, target).energy == pytest.approx(energy), (source, target)
    pairs_of_rlc = random_operand((100, 80), 0.1, 5).counts("rlc")["pairs"]
    assert convert("rlc", "dense").energy == pytest.approx(pairs_of_rlc * add)
