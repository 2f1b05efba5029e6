"""Puts A on the flagged bus of the weight-stationary array: as many data a cycle as its compute format allows."""

from typing import Any

from amaranth.hdl import Array, Module, Mux, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.check import check_integer
from ..lib.stream import StreamSkid
from .flagged_bus import Acf, bus_cycle, check_bus, check_vector, datum

__all__ = ["BusPacker", "data_vector"]


def data_vector(lanes: int) -> data.StructLayout:
    """The next ``count`` data of A, row by row, columns ascending. ``last``: A ends with them."""
    return data.StructLayout(
        {"last": 1, "count": range(lanes + 1), "items": data.ArrayLayout(datum(), lanes)},
    )


class BusPacker(Block):
    """Turns A, in Dense, CSR or COO, into cycles of the flagged bus (MINT, section IV.B and figure 6).

    A cycle carries data of one row: where the row id is not common it is broken up. Of W words Dense takes one row id and
    W - 1 data, CSR one row id and (W - 1) // 2 pairs of column id and value, COO W // 3 triples; none more than ``vector``.
    Rows without data take no cycle. Data are taken in any portions; what leaves does not depend on them.

    Parameters
    ----------
    words : int
        Words of the bus, 3 to 64.
    vector : int
        MACs of a PE, a power of two up to 32: most data of a cycle.
    lanes : int
        Data taken at a time, 1 to 32.

    Members
    -------
    acf : In(Acf)
        The format. Constant from the first data of an A to its last cycle.
    i : In(stream of ``data_vector``)
        A's data; in Dense with its zeros.
    o : Out(stream of ``bus_cycle``)
        ``last`` stands with A's last data if they came with ``last``, else a cycle without words has it.

    Timing
    ------
    One cycle of the bus a cycle, where ``lanes`` data come in each. Data are at ``o`` two cycles after they were taken, if
    they fill a cycle, or the next row or the end came with them; else two after that came. Between A's end being taken and
    its last cycle being handed out nothing is taken. ``o`` comes straight from registers, and ``i.ready`` follows them alone.
    """

    latency = 2

    def __init__(self, *, words: int, vector: int, lanes: int) -> None:
        check_bus(words)
        check_vector(vector)
        check_integer("Lanes", lanes, 1, 32)
        self.words = words
        self.vector = vector
        self.lanes = lanes
        super().__init__(
            {
                "acf": In(Acf),
                "i": In(stream.Signature(data_vector(lanes))),
                "o": Out(stream.Signature(bus_cycle(words))),
            }
        )

    def parameters(self) -> dict[str, Any]:
        return {"w": self.words, "v": self.vector, "l": self.lanes}

    def build(self, platform: Any) -> Module:
        m = Module()
        most = {acf: acf.data_per_cycle(self.words, self.vector) for acf in Acf}
        widest = max(most.values())
        depth = widest + self.lanes  # the next cycle, of another row than this one perhaps, and what comes
        kept = [Signal(datum(), name=f"kept{n}", reset_less=True) for n in range(depth)]
        count = Signal(range(depth + 1))
        ended = Signal()  # A's end is among what is kept
        allowed = Signal(range(widest + 1))
        with m.Switch(self.acf):
            for acf, number in most.items():
                with m.Case(acf):
                    m.d.comb += allowed.eq(number)

        # Data of the first row among the first `allowed`.
        run = Signal(range(widest + 1))
        joins = Signal(widest)
        for n in range(widest):
            before = joins[n - 1] if n else 1
            m.d.comb += joins[n].eq(before & (n < allowed) & (n < count) & (kept[n].row == kept[0].row))
            with m.If(joins[n]):
                m.d.comb += run.eq(n + 1)
        whole = (run == allowed) | (run != count) | ended  # nothing that is to come belongs to it
        m.submodules.cycles = cycles = StreamSkid(shape=bus_cycle(self.words))
        connect(m, flipped(self.o), cycles.o)
        goes = Signal()
        left = Signal(range(depth + 1))
        m.d.comb += [
            cycles.i.valid.eq(Mux(count == 0, ended, whole)),
            cycles.i.payload.last.eq(ended & (run == count)),
            goes.eq(cycles.i.valid & cycles.i.ready),
            left.eq(count - Mux(goes, run, 0)),
        ]
        self._words(m, cycles.i.payload.words, kept, joins)

        # What stays moves up, what comes joins it.
        taken = Signal()
        m.d.comb += [self.i.ready.eq(~ended & (left <= widest)), taken.eq(self.i.valid & self.i.ready)]
        come = self.i.payload
        m.d.sync += count.eq(left + Mux(taken, come.count, 0))
        with m.If(taken):
            m.d.sync += ended.eq(come.last)
        with m.Elif(goes & (run == count)):
            m.d.sync += ended.eq(0)
        places = Array(kept)
        items = Array(come.items[n] for n in range(self.lanes))
        for n in range(depth):
            with m.If(n < left):
                moved = Signal(range(depth), name=f"moved{n}")
                m.d.comb += moved.eq(n + Mux(goes, run, 0))
                m.d.sync += kept[n].eq(places[moved])
            with m.Else():
                place = Signal(range(max(2, self.lanes)), name=f"place{n}")
                m.d.comb += place.eq(n - left)
                m.d.sync += kept[n].eq(items[place])
        return m

    def _words(self, m: Module, words: Any, kept: list[Any], joins: Value) -> None:
        """The words of the next cycle: where the data of each format lie."""

        def put(place: int, present: Any, metadata: bool, payload: Value) -> None:
            word = words[place]
            m.d.comb += [word.present.eq(present), word.metadata.eq(metadata), word.payload.eq(payload)]

        with m.Switch(self.acf):
            for acf in Acf:
                with m.Case(acf):
                    put(0, joins[0], True, kept[0].row)
                    for n in range(acf.data_per_cycle(self.words, self.vector)):
                        one = kept[n]
                        if acf is Acf.DENSE:
                            put(1 + n, joins[n], False, one.value)
                        elif acf is Acf.CSR:
                            put(1 + 2 * n, joins[n], True, one.column)
                            put(2 + 2 * n, joins[n], False, one.value)
                        else:
                            put(3 * n, joins[n], True, one.row)
                            put(3 * n + 1, joins[n], True, one.column)
                            put(3 * n + 2, joins[n], False, one.value)
