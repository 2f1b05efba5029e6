"""Which parts of A and B the last loads brought into the SRAM, and whether the present tile finds its own there."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..types import COORDINATE_WIDTH

__all__ = ["ResidentParts"]


class ResidentParts(Block):
    """Tells whether the present tile's parts are in the SRAM from the loads before.

    A part is resident whose begin is that of the part loaded last; with ``tuning`` its sides are compared as well.

    With windows B's part is resident when all of its rows are kept. One tile at a time: compared once, then a load makes
    its part the resident one.

    Parameters
    ----------
    tuning : bool
        A tile that begins at the same place may have become larger or smaller; there is ``size_j``.

    Members
    -------
    begin_i, begin_j, begin_k, size_j, size_k : In(COORDINATE_WIDTH)
        Of the present tile.
    gathered : In(1), kept : In(COORDINATE_WIDTH)
        With windows, ``kept`` rows of B stay from those before.
    compare : In(1)
        The present tile is compared; its last such cycle is the one that counts.
    load_a, load_b : In(1)
        Pulse, not with ``compare``: the present tile's part is being loaded from now on.
    resident_a, resident_b : Out(1)
        From the cycle after ``compare`` or the pulse on. From registers.

    Timing
    ------
    One cycle; one tile at a time.
    """

    latency = 1

    def __init__(self, *, tuning: bool = False) -> None:
        self.tuning = bool(tuning)
        names = ["begin_i", "begin_j", "begin_k", "size_k", "kept"] + (["size_j"] if self.tuning else [])
        flags = ("gathered", "compare", "load_a", "load_b")
        super().__init__(
            {
                **{name: In(COORDINATE_WIDTH) for name in names},
                **{name: In(1) for name in flags},
                "resident_a": Out(1),
                "resident_b": Out(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        fields = {"a": ["begin_i", "begin_k"], "b": ["begin_k", "begin_j"]}
        if self.tuning:
            fields["a"].append("size_k")
            fields["b"] += ["size_j", "size_k"]
        for part, load, resident in (("a", self.load_a, self.resident_a), ("b", self.load_b, self.resident_b)):
            any_loaded = Signal(name=f"any_{part}")
            same = any_loaded
            for field in fields[part]:
                present = getattr(self, field)
                loaded = Signal.like(present, name=f"{part}_{field}")
                same = same & (loaded == present)
                with m.If(load):
                    m.d.sync += loaded.eq(present)
            if part == "b":
                same = Mux(self.gathered, self.kept == self.size_k, same)
            with m.If(self.compare):
                m.d.sync += resident.eq(same)
            with m.If(load):
                m.d.sync += [any_loaded.eq(1), resident.eq(1)]
        return m
