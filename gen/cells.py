"""Blocks that are one Verilog module for all their sizes: small ones, of which a design has many, written by hand.

A test proves each equal to its Amaranth source at several sizes.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from amaranth.hdl import Shape

from rtl.lib.block import Block
from rtl.lib.stream import StreamQueue, StreamRegister, StreamSkid

__all__ = ["CELLS", "cell_parameters", "cell_text"]

# File name without its ending, which is the module's name.
CELLS: Mapping[type[Block], str] = {
    StreamQueue: "stream_queue",
    StreamRegister: "stream_register",
    StreamSkid: "stream_skid",
}


def cell_parameters(block: Block) -> tuple[tuple[str, int], ...]:
    """Values of the module's parameters for this block; nothing for a block that has a module of its own."""
    if type(block) not in CELLS:
        return ()
    assert isinstance(block, StreamQueue | StreamRegister | StreamSkid)
    width = ("WIDTH", Shape.cast(block.shape).width)
    if not isinstance(block, StreamQueue):
        return (width,)
    return (width, ("DEPTH", block.depth), *((("BLOCK_MEMORY", 1),) if block.block_memory else ()))


def cell_text(name: str, defaults: Iterable[tuple[str, int]] = (), called: str | None = None) -> str:
    """The module's Verilog; ``defaults`` for its parameters where it is used by itself. ``called``: another name for it."""
    text = Path(__file__).with_name("leaf_cells").joinpath(f"{name}.sv").read_text(encoding="utf-8")
    for parameter, value in defaults:
        text = re.sub(rf"(parameter \w+ {parameter} = )\d+", rf"\g<1>{value}", text)
    return re.sub(rf"(?m)^module {name}\b", f"module {called or name}", text)
