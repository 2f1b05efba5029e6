"""Benches leave a waveform where one is asked for, and take unknown bits for what they are."""

from pathlib import Path

import pytest
from cocotb.types import LogicArray

from rtl.lib.stream import StreamSkid
from tests.verif.simulators import under_each_simulator
from verif.agents.axi4 import strobed
from verif.runner import run_bench

WAVEFORMS = {"icarus": "stream_skid.fst", "verilator": "dump.vcd"}


@pytest.mark.slow
@under_each_simulator
def test_waveform(simulator: str, tmp_path: Path) -> None:
    folder = tmp_path / "two words"
    result = run_bench(StreamSkid(shape=8), "bench_stream_queue", simulator=simulator, waves=folder)
    assert result.passed and not result.failed
    assert (folder / WAVEFORMS[simulator]).stat().st_size > 1000


@pytest.mark.parametrize(
    ("word", "strobe", "expected"),
    [
        ("0" * 15 + "1", 0b11, 1),
        ("X" * 8 + "00000011", 0b01, 3),
        ("10000000" + "Z" * 8, 0b10, 0x8000),
        ("X" * 16, 0, 0),
    ],
)
def test_bytes_without_a_strobe_may_hold_anything(word: str, strobe: int, expected: int) -> None:
    assert strobed(LogicArray(word), strobe) == expected


@pytest.mark.parametrize("strobe", [0b10, 0b11])
def test_unknown_bits_that_are_written_are_refused(strobe: int) -> None:
    with pytest.raises(ValueError):
        strobed(LogicArray("0X000000" + "0" * 8), strobe)
