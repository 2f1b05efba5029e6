"""Benches leave a waveform where one is asked for, and take unknown bits for what they are."""

import re
from pathlib import Path

import pytest
from amaranth.hdl import Value
from cocotb.types import LogicArray

from rtl.lib.stream import StreamSkid
from tests.gen.blocks import Nested
from tests.verif.simulators import under_each_simulator
from verif.agents.axi4 import strobed
from verif.packed import packed
from verif.runner import run_bench, verilog_of

WAVEFORMS = {"icarus": "stream_skid.fst", "verilator": "dump.vcd"}


@pytest.mark.slow
@under_each_simulator
def test_waveform(simulator: str, tmp_path: Path) -> None:
    folder = tmp_path / "two words"
    result = run_bench(StreamSkid(shape=8), "bench_stream_queue", simulator=simulator, waves=folder)
    assert result.passed and not result.failed
    assert (folder / WAVEFORMS[simulator]).stat().st_size > 1000


def test_a_bench_sees_a_payload_as_one_vector() -> None:
    block = Nested()
    sources, top = packed(block, *verilog_of(block))
    text = sources[f"{top}.sv"]
    declared = re.findall(r"(?m)^  (?:in|out)put +wire (?:\[(\d+):0\] )?(\w+),?$", text)
    assert top == "nested_packed" and "  nested block (\n" in text
    assert {name: int(high or 0) + 1 for high, name in declared} == {
        "__".join(map(str, path)): len(Value.cast(value)) for path, _, value in block.signature.flatten(block)
    }
    payload = Nested().i.payload.shape()
    ranks = payload["ranks"].offset
    assert f".i__payload__ranks__1(i__payload[{ranks + 13}:{ranks + 7}])" in text
    assert f".i__payload__last_2(i__payload[{payload['last'].offset}:{payload['last'].offset}])" in text
    assert ".i__payload__last(i__payload__last)" in text and ".either(either)" in text


def test_a_block_without_fields_is_simulated_as_it_is() -> None:
    block = StreamSkid(shape=8)
    sources, top = verilog_of(block)
    assert packed(block, sources, top) == (sources, top)


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
