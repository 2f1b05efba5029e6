"""Cluster counter: how often each key stands in a vector."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data

from ..lib.check import check_integer, check_power_of_two
from .pipeline import StreamPipeline
from .sorter import key_item

__all__ = ["ClusterCounter", "counted_item"]


def counted_item(inputs: int, key_width: int) -> data.StructLayout:
    """A lane with its place in its run: ``count`` lanes of the run up to it, and whether it is the ``last``."""
    return data.StructLayout({"present": 1, "key": key_width, "count": inputs.bit_length(), "last": 1})


class ClusterCounter(StreamPipeline):
    """Counts equal neighbours in each vector of keys, one vector a cycle.

    A run is a row of neighbouring present lanes with equal keys; in a sorted vector each key has one run. Where ``last`` is
    set, (``key``, ``count``) is a run and its length: several increments of one counter become one. MINT (section V.B) counts
    the nonzeros of each column so, from the column numbers of CSR. In the other lanes of a run ``count`` tells the place
    within it, so that each nonzero of a column gets a position of its own from one read of the column's pointer:
    pointer + ``count`` - 1.

    Runs end with their vector: a key that goes on in the next one is counted there anew.

    Parameters
    ----------
    inputs : int
        Lanes of a vector, a power of two from 2 to 64.
    key_width : int
        Bits of a key, 1 to 64.

    Members
    -------
    i : In(stream of ``inputs`` times ``key_item`` without a payload)
        Keys, sorted or grouped. Absent lanes are in no run and divide those on their two sides.
    o : Out(stream of ``inputs`` times ``counted_item``)
        The lanes in their order. ``last`` and ``count`` are 0 where ``present`` is.

    Timing
    ------
    One vector a cycle; it is at ``o`` after ``latency`` cycles. ``o`` comes straight from registers; ``i.ready`` follows
    ``o.ready`` at once.
    """

    latency = 2

    def __init__(self, *, inputs: int = 16, key_width: int = 32) -> None:
        self.inputs = check_power_of_two("Inputs", inputs, 2, 64)
        self.key_width = check_integer("Key width", key_width, 1, 64)
        super().__init__(
            taken=data.ArrayLayout(key_item(key_width, 0), inputs),
            given=data.ArrayLayout(counted_item(inputs, key_width), inputs),
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        advance, _ = self._handshakes(m)
        lanes = [self.i.payload[lane] for lane in range(self.inputs)]
        linked = [
            here.present & before.present & (here.key == before.key)
            for before, here in zip(lanes[:-1], lanes[1:], strict=True)
        ]
        items = [self._register(m, advance, lane, f"lane{n}") for n, lane in enumerate(lanes)]
        # Whether a lane continues the run of the lane before it.
        links = [self._register(m, advance, Value.cast(link), f"link{n + 1}") for n, link in enumerate(linked)]

        ranks = self._ranks(m, [Const(0, 1), *links])
        ends = [~link for link in links] + [Const(1, 1)]
        with m.If(advance):
            for lane, (item, rank, end) in enumerate(zip(items, ranks, ends, strict=True)):
                counted = self.o.payload[lane]
                m.d.sync += [
                    counted.present.eq(item.present),
                    counted.key.eq(item.key),
                    counted.count.eq(rank + item.present),
                    counted.last.eq(item.present & end),
                ]
        return m

    def _ranks(self, m: Module, links: list[Value]) -> list[Value]:
        """How many links lead back from each lane without a gap.

        By doubling: after a level ranks are right up to ``reach``, and larger ones are ``reach``. A lane whose rank is
        ``reach`` adds that of the lane so far before it. Both are at most ``reach``, a power of two, so no adder is needed:
        the sum's upper two bits follow from the top bit of the other rank, and the lower ones are its own.
        """
        ranks = links
        for level in range(self.inputs.bit_length() - 1):
            reach = 1 << level
            longer: list[Value] = []
            for lane, rank in enumerate(ranks):
                grown = Signal(level + 2, name=f"rank{reach}_lane{lane}")
                if lane >= reach:
                    other = ranks[lane - reach]
                    doubled = Cat(other[:level], ~other[level], other[level])
                    m.d.comb += grown.eq(Mux(rank[level], doubled, rank))
                else:
                    m.d.comb += grown.eq(rank)
                longer.append(grown)
            ranks = longer
        return ranks
