"""The table of energies against the figures as they are printed, and what follows from them."""

import pytest

from sw.energy import DRAM_BIT_PJ, MAC_PJ, SRAM_PJ, merge_step_pj, sram_pj
from sw.sage.constants import Constants


def test_the_table_has_the_printed_figures():
    """Horowitz: 1.3 to 2.6 nJ of DRAM, 10, 20 and 100 pJ of an SRAM of 8 KB, 32 KB and 1 MB, all of 64 bits."""
    assert 1300 <= 64 * DRAM_BIT_PJ + 20 and 64 * DRAM_BIT_PJ <= 2600
    assert [sram_pj(size << 10) for size in (8, 32, 1024)] == [10, 20, 100]
    assert MAC_PJ == pytest.approx({"int8": 0.3, "int16": 0.9, "int32": 3.2, "bf16": 2.0, "fp32": 4.6})


@pytest.mark.parametrize(("kib", "energy"), [(2, 5), (16, 10 * 2**0.5), (128, 40), (512, 80), (900, 100), (4096, 200)])
def test_an_sram_between_the_sizes_of_the_table_follows_the_root_of_its_size(kib, energy):
    assert sram_pj(kib << 10) == pytest.approx(energy)


def test_a_larger_sram_never_takes_less():
    energies = [sram_pj(size) for size in range(64, 3 << 20, 4099)]
    assert energies == sorted(energies)


def test_a_step_of_a_merge_compares_and_moves():
    assert merge_step_pj(32) == pytest.approx(0.1 + 2 * 64 / 32)
    assert merge_step_pj(8) == pytest.approx(0.1 + 2 * 40 / 32)


def test_sage_reads_the_table():
    constants = Constants()
    assert constants.dram_bit == DRAM_BIT_PJ
    assert 64 * constants.scratchpad_bit == SRAM_PJ[1 << 20] and 64 * constants.accumulator_bit == SRAM_PJ[8 << 10]
