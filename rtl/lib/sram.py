"""The one synchronous memory that buffers are made of."""

from functools import partial
from typing import Any

from amaranth.hdl import Module, ShapeLike
from amaranth.lib import memory
from amaranth.lib.wiring import In, Out

from .block import Block

__all__ = ["SramBank", "block_memory"]

# A bank of fewer bits is not worth a block RAM. Up to so many words LUT RAM with a register behind it answers sooner.
BLOCK_BITS = 1024
LUT_RAM_DEPTH = 32


def block_memory(*, shape: ShapeLike, depth: int) -> memory.Memory:
    """A memory with a synchronous read, in block RAM.

    Nobody needs what a read of a word returns while that word is written. An attribute tells tools so: otherwise
    they add registers, a comparison and a multiplexer that return the old word.
    """
    return memory.Memory(shape=shape, depth=depth, init=[], attrs={"no_rw_check": 1, "ram_style": "block"})


class SramBank(Block):
    """Memory with one read port and one write port on the same clock.

    It is a module of its own and holds nothing else, so that a Verilog emitter can put a technology macro in its place.
    Contents are not defined before the first write.

    Parameters
    ----------
    depth : int
        Words, at least 2.
    width : int
        Bits in a word.
    granularity : int
        Bits that one bit of ``write_mask`` covers; divides ``width``. Default: one mask bit for the whole word.

    Members
    -------
    read_enable : In(1), read_address : In(range(depth)), read_data : Out(width)
        ``read_data`` shows the word one cycle after ``read_enable`` and holds until the next enabled read.
    write_mask : In(width // granularity), write_address : In(range(depth)), write_data : In(width)
        Writes the parts whose mask bit is set.

    Of a word that is read in the cycle in which it is written, the parts whose mask bit is set are not defined (macros differ):
    users keep the two apart. The other parts read as they were: with a macro for each part, or with byte enables, nothing
    writes them.

    Timing
    ------
    One cycle; one read and one write a cycle.
    """

    latency = 1

    def __init__(self, *, depth: int, width: int, granularity: int | None = None) -> None:
        if not isinstance(depth, int) or depth < 2:
            raise ValueError(f"SRAM depth must be an integer of at least 2, not {depth!r}")
        if not isinstance(width, int) or width < 1:
            raise ValueError(f"SRAM width must be a positive integer, not {width!r}")
        granularity = width if granularity is None else granularity
        if not isinstance(granularity, int) or granularity < 1 or width % granularity:
            raise ValueError(f"SRAM mask granularity must divide the width {width}, not {granularity!r}")
        self.depth = depth
        self.width = width
        self.granularity = granularity
        super().__init__(
            {
                "read_enable": In(1),
                "read_address": In(range(depth)),
                "read_data": Out(width),
                "write_mask": In(width // granularity),
                "write_address": In(range(depth)),
                "write_data": In(width),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        in_block = self.depth > LUT_RAM_DEPTH and self.depth * self.width >= BLOCK_BITS
        make = block_memory if in_block else partial(memory.Memory, init=[])
        m.submodules.storage = storage = make(shape=self.width, depth=self.depth)
        read = storage.read_port()
        write = storage.write_port(granularity=self.granularity)
        m.d.comb += [read.en.eq(self.read_enable), read.addr.eq(self.read_address), self.read_data.eq(read.data)]
        m.d.comb += [
            write.en.eq(self.write_mask),
            write.addr.eq(self.write_address),
            write.data.eq(self.write_data),
        ]
        return m
