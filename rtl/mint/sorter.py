"""Pipelined sorting network: one vector of keys a cycle."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data

from ..lib.check import check_integer, check_power_of_two
from .pipeline import StreamPipeline

__all__ = ["Sorter", "key_item", "network_levels", "sorted_item"]


def key_item(key_width: int, payload_width: int) -> data.StructLayout:
    """A lane to be sorted. ``present`` is 0 in lanes of a vector that the data do not fill."""
    payload = {"payload": payload_width} if payload_width else {}
    return data.StructLayout({"present": 1, "key": key_width, **payload})


def sorted_item(inputs: int, key_width: int, payload_width: int) -> data.StructLayout:
    """A sorted lane; ``lane`` is the one in which the item came."""
    members = key_item(key_width, payload_width).members
    return data.StructLayout({**members, "lane": inputs.bit_length() - 1})


def network_levels(inputs: int) -> list[list[tuple[int, int]]]:
    """Comparators of Batcher's odd-even merge sort, level by level: pairs (low, high) of lanes, the smaller item to ``low``."""
    levels = []
    merged = 1  # lanes of the sorted blocks that are merged to blocks twice as large
    while merged < inputs:
        distance = merged
        while distance:
            levels.append(
                [
                    (lane, lane + distance)
                    for begin in range(distance % merged, inputs - distance, 2 * distance)
                    for lane in range(begin, min(begin + distance, inputs - distance))
                    if lane // (2 * merged) == (lane + distance) // (2 * merged)
                ]
            )
            distance //= 2
        merged *= 2
    return levels


class Sorter(StreamPipeline):
    """Sorts the ``inputs`` lanes of each vector by key, one vector a cycle; equal keys keep their order.

    The network is Batcher's odd-even merge sort, and each of its levels is a pipeline stage. It has as many levels as a bitonic
    sorter and fewer comparators: 19 to 24 for 8 lanes, 63 to 80 for 16, 191 to 240 for 32. MINT (section V.B) sorts the
    column numbers of a chunk with it before it counts them.

    A network moves equal keys past each other. So the number of its lane goes with each item as the lower bits of its key,
    which makes the sort stable and tells where each item came from, for log2(``inputs``) bits more in each comparator.

    Parameters
    ----------
    inputs : int
        Lanes of a vector, a power of two from 2 to 32.
    key_width : int
        Bits of a key, 1 to 64, without a sign.
    payload_width : int
        Bits that go with a key, 0 to 128; 0: items have no ``payload``.

    Members
    -------
    i : In(stream of ``inputs`` times ``key_item``)
        The lanes of a vector. ``key`` and ``payload`` are moved where ``present`` is 0 too.
    o : Out(stream of ``inputs`` times ``sorted_item``)
        Ascending from lane 0: all present items by key, then all absent ones by key, equal ones in order of their lanes.

    Timing
    ------
    One vector a cycle; it is at ``o`` after ``latency`` cycles, one for each level: log2 N (log2 N + 1) / 2 for N lanes. ``o``
    comes straight from registers; ``i.ready`` follows ``o.ready`` at once.
    """

    def __init__(self, *, inputs: int = 16, key_width: int = 32, payload_width: int = 32) -> None:
        self.inputs = check_power_of_two("Inputs", inputs, 2, 32)
        self.key_width = check_integer("Key width", key_width, 1, 64)
        self.payload_width = check_integer("Payload width", payload_width, 0, 128)
        super().__init__(
            taken=data.ArrayLayout(key_item(key_width, payload_width), inputs),
            given=data.ArrayLayout(sorted_item(inputs, key_width, payload_width), inputs),
        )

    @property
    def comparators(self) -> int:
        return sum(len(level) for level in network_levels(self.inputs))

    @property
    def latency(self) -> int:
        return len(network_levels(self.inputs))

    def build(self, platform: Any) -> Module:
        m = Module()
        advance, _ = self._handshakes(m)
        item = sorted_item(self.inputs, self.key_width, self.payload_width)
        items: list[Any] = []
        for lane in range(self.inputs):
            came = Signal(item, name=f"came{lane}")
            m.d.comb += [came[name].eq(self.i.payload[lane][name]) for name in item.members if name != "lane"]
            m.d.comb += came.lane.eq(lane)
            items.append(came)
        levels = network_levels(self.inputs)
        for number, level in enumerate(levels):
            items = self._exchanged(m, items, level, number)
            if number < len(levels) - 1:
                items = [self._register(m, advance, one, f"item{number}_lane{lane}") for lane, one in enumerate(items)]
        with m.If(advance):
            m.d.sync += [self.o.payload[lane].eq(one) for lane, one in enumerate(items)]
        return m

    def _exchanged(self, m: Module, items: Sequence[Any], level: Sequence[tuple[int, int]], number: int) -> list[Any]:
        """The items behind the comparators of a level."""
        after = list(items)
        for low, high in level:
            swap = Signal(name=f"swap{number}_{low}_{high}")
            # The sign of the difference is a sum bit of the carry chain. The carry of a comparison would take gates of its own,
            # which tools merge into every bit that it moves: twice the cells.
            m.d.comb += swap.eq((_rank(items[high]) - _rank(items[low]))[-1])
            for lane, other in ((low, high), (high, low)):
                after[lane] = Signal(items[lane].shape(), name=f"level{number}_lane{lane}")
                m.d.comb += after[lane].eq(Mux(swap, items[other], items[lane]))
        return after


def _rank(item: Any) -> Value:
    """What items are sorted by, the most significant bit last."""
    return Cat(item.lane, item.key, ~item.present)
