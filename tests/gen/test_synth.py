"""Cells by Yosys: sums over the hierarchy, memories that stay memories, targets."""

import pytest

from gen.design import DesignError, load_design
from gen.rtlil import NO_CHECK
from gen.rtlil_text import for_synthesis
from gen.synth import synthesise, synthesise_block
from gen.verilog import converted, emit
from rtl.lib.block import Block
from rtl.lib.sram import SramBank
from rtl.lib.stream import StreamQueue
from tests.gen.blocks import Chain


def test_children_count_once_for_each_copy():
    found = synthesise_block(Chain(length=4), "generic", origin="a test")
    top, *others = found.modules
    assert (top.name, top.instances, top.own) == ("chain", 1, {})
    by_name = {module.name: module for module in others}
    assert {name: module.instances for name, module in by_name.items()} == {"adder": 3, "adder_step5": 1}
    assert found.kinds(top.total)["flip_flops"] == 4 * 8
    assert sum(top.total.values()) == sum(module.instances * sum(module.own.values()) for module in others)
    # A sum of eight bits is a chain of carries; the chain of adders has registers between.
    assert by_name["adder"].depth >= 3 and top.depth <= 1


def test_memories_are_told_in_bits_and_not_as_flip_flops():
    found = synthesise_block(SramBank(depth=64, width=64, granularity=32), "generic", origin="a test")
    assert found.modules[0].memory_bits == 64 * 64
    assert found.kinds(found.modules[0].total) == {"luts": 0, "flip_flops": 0, "memories": 1, "other": 0}
    small = synthesise_block(SramBank(depth=8, width=4), "generic", origin="a test")
    assert small.modules[0].memory_bits == 0
    assert small.kinds(small.modules[0].total)["flip_flops"] == 8 * 4 + 4


@pytest.mark.parametrize(
    ("target", "cells"), [("ecp5", {"TRELLIS_FF": 32}), ("ice40", {"SB_DFFSR": 32}), ("xilinx", {"FDRE": 32})]
)
def test_targets(target, cells):
    found = synthesise_block(Chain(length=4), target, origin="a test")
    record = found.record()
    top = record["modules"][0]
    assert cells.items() <= top["by_type"].items()
    # Two registers one behind the other: no path leads through either.
    slices = synthesise_block(StreamQueue(shape=8, depth=4), target, origin="a test")
    assert slices.modules[-1].depth <= 6
    assert (record["target"], record["design"], top["flip_flops"]) == (target, "a test", 32)
    assert top["cells"] == sum(top["by_type"].values()) and top["luts"] + top["other"] > 0


def test_unknown_targets_and_designs_without_hardware_are_refused():
    with pytest.raises(DesignError, match=r"^--target asic: must be one of generic, ecp5, xilinx, ice40$"):
        synthesise(load_design("tiny"), "asic")
    with pytest.raises(DesignError, match="has no hardware"):
        synthesise(load_design("extensor"), "generic")


def test_a_block_memory_has_no_logic_around_it():
    """Nobody needs the old word where a read meets a write of the same word, so nothing is built to return it."""
    bank = synthesise_block(SramBank(depth=128, width=64), "ecp5", origin="a test")
    assert set(bank.modules[0].total) == {"DP16KD"}
    queue = synthesise_block(StreamQueue(shape=64, depth=128, block_memory=True), "ecp5", origin="a test")
    assert queue.modules[0].total["TRELLIS_FF"] < 64
    # Where the attribute is missing, Yosys keeps the last word that was written.
    top, modules = converted(SramBank(depth=128, width=64))
    text = modules[top.name].rtlil
    assert for_synthesis(text) != text
    unmarked = text.replace(NO_CHECK, "other")
    assert for_synthesis(unmarked) == unmarked


@pytest.mark.parametrize("block", [SramBank(depth=128, width=64), StreamQueue(shape=64, depth=128, block_memory=True)])
def test_the_verilog_says_so_too(block: Block):
    assert f'(* {NO_CHECK}, ram_style = "block" *) logic [' in "".join(emit(block, origin="a test").files.values())
