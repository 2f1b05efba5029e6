"""Puts A on the flagged bus of the weight-stationary array: as many data a cycle as its compute format allows."""

from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.check import check_integer
from ..lib.onehot import onehot_select
from ..lib.signals import signals
from ..lib.stream import StreamSkid
from ..types import COORDINATE_WIDTH
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
    ``vector`` places of its row, CSR one row id and (W - 1) // 2 pairs of column id and value, COO W // 3 triples; none more
    than ``vector``. In CSR and COO rows without data take no cycle. In Dense every row has a cycle for each ``vector`` places,
    and the word of a place without a datum is not present: a zero that nobody multiplies. An A without data is one cycle
    without words. Data are taken in any portions; what leaves does not depend on them.

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
    rows, columns : In
        A's extent, at least 1; constant as ``acf`` is. Dense alone asks for it: its data are inside.
    i : In(stream of ``data_vector``)
        A's data.
    o : Out(stream of ``bus_cycle``)
        ``last`` stands with A's last data if they came with ``last``, else a cycle without words has it; in Dense with the cycle
        of the last places, which waits for it.

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
        self.lanes = check_integer("Lanes", lanes, 1, 32)
        self.words = words
        self.vector = vector
        self._low = (vector - 1).bit_length()  # bits of a place in its cycle
        super().__init__(
            {
                "acf": In(Acf),
                "rows": In(COORDINATE_WIDTH),
                "columns": In(COORDINATE_WIDTH),
                "i": In(stream.Signature(data_vector(lanes))),
                "o": Out(stream.Signature(bus_cycle(words))),
            }
        )

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

        # Data of the next cycle: those of the first row among the first `allowed`, in Dense those of its places.
        dense = Signal()
        # Of the next cycle in Dense.
        at = Signal(data.StructLayout({"row": COORDINATE_WIDTH, "place": COORDINATE_WIDTH}))
        begun = Signal()  # a cycle of A has gone in Dense
        low = self._low
        run = Signal(range(widest + 1))
        joins = Signal(widest)
        m.d.comb += dense.eq(self.acf == Acf.DENSE)
        for n in range(widest):
            before = joins[n - 1] if n else 1
            row = kept[n].row == Mux(dense, at.row, kept[0].row)
            inside = ~dense | (kept[n].column[low:] == at.place[low:])
            m.d.comb += joins[n].eq(before & (n < allowed) & (n < count) & row & inside)
            with m.If(joins[n]):
                m.d.comb += run.eq(n + 1)
        whole = (run == allowed) | (run != count) | ended  # nothing that is to come belongs to it
        m.submodules.cycles = cycles = StreamSkid(shape=bus_cycle(self.words))
        connect(m, flipped(self.o), cycles.o)
        goes = Signal()
        left = Signal(range(depth + 1))
        bare, row_ends, ends_tile, last = signals("bare row_ends ends_tile last")
        m.d.comb += [
            bare.eq((count == 0) & ~begun),
            row_ends.eq(at.place[low:] == (self.columns - 1)[low:COORDINATE_WIDTH]),
            ends_tile.eq(dense & row_ends & (at.row == self.rows - 1)),
            last.eq(ended & Mux(dense, bare | ends_tile, run == count)),
            cycles.i.valid.eq(Mux(bare | ends_tile, ended, whole)),
            cycles.i.payload.last.eq(last),
            goes.eq(cycles.i.valid & cycles.i.ready),
            left.eq(count - Mux(goes, run, 0)),
        ]
        with m.If(goes & dense):
            m.d.sync += [begun.eq(~last), at.place.eq(Mux(row_ends | last, 0, at.place + self.vector))]
            m.d.sync += at.row.eq(Mux(last, 0, at.row + row_ends))
        self._words(m, cycles.i.payload.words, kept, joins, ~bare, at.row)

        # What stays moves up, what comes joins it.
        taken = Signal()
        m.d.comb += [self.i.ready.eq(~ended & (left <= widest)), taken.eq(self.i.valid & self.i.ready)]
        come = self.i.payload
        m.d.sync += count.eq(left + Mux(taken, come.count, 0))
        with m.If(taken):
            m.d.sync += ended.eq(come.last)
        with m.Elif(goes & last):
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

    def _words(self, m: Module, words: Any, kept: list[Any], joins: Value, some: Value, row: Value) -> None:
        """The words of the next cycle: where the data of each format lie. ``some``, ``row``: of Dense."""

        def put(place: int, present: Any, metadata: bool, payload: Value) -> None:
            word = words[place]
            m.d.comb += [word.present.eq(present), word.metadata.eq(metadata), word.payload.eq(payload)]

        with m.Switch(self.acf):
            for acf in Acf:
                most = acf.data_per_cycle(self.words, self.vector)
                with m.Case(acf):
                    if acf is Acf.DENSE:
                        put(0, some, True, row)
                        for place in range(most):
                            here = Cat(joins[n] & (kept[n].column[: self._low] == place) for n in range(most))
                            put(1 + place, here.any(), False, onehot_select(here, [one.value for one in kept[:most]]))
                        continue
                    put(0, joins[0], True, kept[0].row)
                    for n, one in enumerate(kept[:most]):
                        if acf is Acf.CSR:
                            put(1 + 2 * n, joins[n], True, one.column)
                            put(2 + 2 * n, joins[n], False, one.value)
                        else:
                            put(3 * n, joins[n], True, one.row)
                            put(3 * n + 1, joins[n], True, one.column)
                            put(3 * n + 2, joins[n], False, one.value)
