"""Weight-stationary PE: keeps a column of B, in Dense or CSC, and multiplies it with A that passes in Dense, CSR or COO.

Paper: MINT (Qin et al.), section IV and figure 7; Tailors, section 3.3, for columns that overflow the buffer.
"""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..buffer.tailors import TailorsControl, TailorsError
from ..lib.block import Block
from ..lib.passed import passed
from ..lib.signals import signals
from ..lib.stream import StreamSkid
from ..types import COORDINATE_WIDTH, VALUE_WIDTH
from .bumped_walk import BumpedWalk, bumped_part, region_of
from .bus_lanes import BusLanes
from .column_loader import ColumnLoader, stationary_word
from .flagged_bus import Acf, bus_cycle, check_bus
from .match_buffer import MatchBuffer, match
from .vector_mac import VectorMac, operands

__all__ = ["WeightStationaryPe", "row_sum"]

# Answers of the buffer's control that wait for the walk over the bumped entries.
ANSWERS = 4


def row_sum() -> data.StructLayout:
    """The output registers. ``void``: nothing of the row met the column; ``last``: A has ended with it."""
    return data.StructLayout(
        {"row": COORDINATE_WIDTH, "column": COORDINATE_WIDTH, "value": VALUE_WIDTH, "void": 1, "last": 1}
    )


class WeightStationaryPe(Block):
    """A column of B stays, rows of A pass on the flagged bus, and the sum of each leaves (MINT, figure 7).

    ::

        bus -> BusLanes -> MatchBuffer: comparators, encoders, V reads -> VectorMac -> sums
                             ^  (Rreg)                                              (Creg, Oreg)
        weights -> ColumnLoader -> TailorsControl <-> BumpedWalk -> refill

    A column that has more entries than the buffer is overbooked: its first ``entries - region`` stay and match as any other's,
    the others pass through the FIFO-managed region in every row of A that needs them.

    Parameters
    ----------
    words : int
        Words of the bus, up to 64, more than ``vector``.
    vector : int
        MACs, a power of two up to 32.
    entries : int
        Of the buffer, 4 to 1024, even.
    region : int
        Entries of its FIFO-managed region, even. Default: a quarter.
    index_width : int
        Bits of an entry's index in its column: a column has fewer than ``2**index_width`` entries.
    value : str
        Value type, one of ``arith.VALUES``.

    Members
    -------
    weights : In(stream of ``stationary_word``)
        A column: its ``header``, then its first ``entries`` words, those of Dense data alone, those of CSC pairs of
        metadata and data with ascending coordinates. A column waits until A has ended and its sums have left; it stays for any
        number of As. Before the first one the PE has an empty column 0. After these, words that were asked for.
    refill : Out(stream of ``bumped_part``)
        Words ``index`` to ``index + count - 1`` of the column are to be sent; all are taken whatever the bus does.
    bus : In(stream of ``bus_cycle``)
        Columns of a row ascend; in Dense each cycle of a row but its last is full. A waits until the column is there; the
        next A until the sums of the last one have left.
    sums : Out(stream of ``row_sum``)
        One for each row, in order; for an A without data a void one.
    event_macs : Out(range(vector + 1)), event_bumped : Out(1), event_stall : Out(1)
        Products begun; a word came again; a cycle of the bus waited for such words.
    error : Out(TailorsError)
        Words came that were not asked for: the first error, until a reset.

    Timing
    ------
    One cycle of the bus a cycle, while the column fits; else it waits for one word a cycle. The sum of a row leaves
    ``latency`` cycles after the end of A, or after cycles of other rows (:class:`VectorMac`). ``sums`` and ``refill`` come
    straight from registers.
    """

    def __init__(
        self, *, words: int, vector: int, entries: int, value: str, region: int | None = None, index_width: int = 16
    ) -> None:
        check_bus(words, vector)
        region = region_of(entries) if region is None else region
        self.words = words
        self.vector = vector
        self.entries = entries
        self.region = region
        self.index_width = index_width
        self.value = value
        self._mac = VectorMac(vector=vector, value=value)
        self._walk = BumpedWalk(entries=entries, region=region, lanes=vector, index_width=index_width)
        self.sums_of_row = self._mac.sums
        # Lanes, matches, operands; the row goes once round in the accumulator; the skid.
        self.latency = 3 + self._mac.latency + self._mac.sums + StreamSkid.latency
        super().__init__(
            {
                "weights": In(stream.Signature(stationary_word(index_width))),
                "refill": Out(stream.Signature(bumped_part(index_width, region))),
                "bus": In(stream.Signature(bus_cycle(words))),
                "sums": Out(stream.Signature(row_sum())),
                "event_macs": Out(range(vector + 1)),
                "event_bumped": Out(1),
                "event_stall": Out(1),
                "error": Out(TailorsError),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.lanes = lanes = BusLanes(words=self.words, vector=self.vector)
        m.submodules.mac = mac = self._mac
        m.submodules.leaving = leaving = StreamSkid(shape=row_sum())
        named = Acf.CSR.data_per_cycle(self.words, self.vector)
        m.submodules.buffer = buffer = MatchBuffer(entries=self.entries, lanes=self.vector, named=named)
        m.submodules.walk = walk = self._walk
        m.submodules.loader = loader = ColumnLoader(
            entries=self.entries, region=self.region, index_width=self.index_width
        )
        connect(m, flipped(self.weights), loader.weights)
        connect(m, walk.refill, flipped(self.refill))
        connect(m, leaving.o, flipped(self.sums))
        self._storage(m, loader, walk, buffer)

        # A is under way from its first cycle until its last sum has left: no other A, no other column before.
        opened, ending = signals("opened ending")
        enters, ends, advance = signals("enters ends advance")
        listens = loader.present & ~ending & ~(self.weights.valid & self.weights.payload.header & ~opened)
        m.d.comb += [
            lanes.i.valid.eq(self.bus.valid & listens),
            lanes.i.payload.eq(self.bus.payload),
            self.bus.ready.eq(lanes.i.ready & listens),
            enters.eq(self.bus.valid & self.bus.ready),
            ends.eq(leaving.i.valid & leaving.i.ready & leaving.i.payload.last),
            loader.opened.eq(opened),
            advance.eq(leaving.i.ready | ~mac.o.valid),
            mac.advance.eq(advance),
            self.event_macs.eq(mac.event_macs),
        ]
        with m.If(enters):
            m.d.sync += [opened.eq(1), ending.eq(self.bus.payload.last)]
        with m.Elif(ends):
            m.d.sync += [opened.eq(0), ending.eq(0)]

        self._match(m, lanes, buffer, walk, loader, mac)
        out = leaving.i.payload
        m.d.comb += [
            leaving.i.valid.eq(mac.o.valid),
            out.row.eq(mac.o.coordinate),
            out.column.eq(loader.column),
            *passed(mac.o, out, "value void last"),
        ]
        return m

    def _storage(self, m: Module, loader: ColumnLoader, walk: BumpedWalk, buffer: MatchBuffer) -> None:
        """The buffer under the control of a Tailors buffer."""
        width = len(Value.cast(buffer.write_word))
        m.submodules.control = control = TailorsControl(
            width=width, entries=self.entries, index_width=self.index_width, queue_depth=ANSWERS, release=True
        )
        for name in ("fill", "overwrite"):
            port, sink = getattr(loader, name), getattr(control, name)
            m.d.comb += [sink.valid.eq(port.valid), port.ready.eq(sink.ready), sink.payload.eq(port.payload)]
        connect(m, walk.read, control.read)
        answer, writes = control.memory_response, control.memory_write
        m.d.comb += [
            *(getattr(control, name).eq(number) for name, number in self._sizes().items()),
            control.tile_length.eq(loader.length),
            control.entry_release.eq(walk.released),
            control.shrink.valid.eq(loader.shrink),
            control.shrink.payload.eq(control.occupancy),
            loader.occupied.eq(control.occupancy != 0),
            loader.unoccupied.eq(control.idle),
            loader.written.eq(writes.valid),
            walk.read_data.valid.eq(control.read_data.valid),
            Value.cast(walk.read_data.payload).eq(control.read_data.payload),
            control.read_data.ready.eq(walk.read_data.ready),
            control.memory_read.ready.eq(1),
            writes.ready.eq(1),
            buffer.write_enable.eq(writes.valid),
            buffer.write_address.eq(writes.payload.address),
            Value.cast(buffer.write_word).eq(writes.payload.data),
            buffer.read_address.eq(control.memory_read.payload),
            *passed(loader, buffer, "limit"),
            *passed(loader, walk, "filled drop delivered length"),
            *passed(walk, loader, "quiet"),
            self.event_bumped.eq(loader.delivered),
            self.error.eq(control.error),
        ]
        m.d.sync += [answer.valid.eq(control.memory_read.valid), answer.data.eq(buffer.read_word)]

    def _sizes(self) -> dict[str, int]:
        return {"base": 0, "capacity": self.entries, "fifo_entries": self.region, "clear_error": 0}

    def _match(
        self, m: Module, lanes: BusLanes, buffer: MatchBuffer, walk: BumpedWalk, loader: ColumnLoader, mac: VectorMac
    ) -> None:
        """A cycle of the bus looks for its matches, then for their values; then it is multiplied."""
        cycle = lanes.o.payload
        fields = {name: cycle[name].shape() for name in ("first", "last", "void", "row")}
        found = Signal(data.StructLayout({"valid": 1, "present": self.vector, **fields}), name="found")
        factors = Signal(data.ArrayLayout(VALUE_WIDTH, self.vector))
        places = Signal(data.ArrayLayout(match(self.entries), self.vector))
        bumped = Signal(self.vector)
        bumped_values = Signal(walk.values.shape())
        waits = Signal()
        m.d.comb += [
            walk.asks.eq(lanes.o.valid & loader.overbooked & ~cycle.void),
            walk.fresh.eq(cycle.first),
            walk.last_column.eq(cycle.last_column),
            walk.leaves.eq(walk.asks & walk.done & mac.advance),
            waits.eq(walk.asks & ~walk.done),
            lanes.o.ready.eq(mac.advance & ~waits),
            self.event_stall.eq(waits),
        ]
        for n in range(self.vector):
            lane = cycle.lanes[n]
            m.d.comb += [
                walk.present[n].eq(lane.present),
                walk.coordinates[n].eq(lane.coordinate),
                buffer.coordinates[n].eq(lane.coordinate),
                buffer.places[n].eq(places[n].place),
            ]
        operand = Signal(operands(self.vector), name="multiplied")
        with m.If(mac.advance):
            m.d.sync += [
                found.valid.eq(lanes.o.valid & ~waits),
                found.present.eq(Cat(lane.present & ~cycle.void for lane in cycle.lanes)),
                *passed(cycle, found, "first last void row"),
                *(factors[n].eq(lane.value) for n, lane in enumerate(cycle.lanes)),
                places.eq(buffer.found),
                bumped.eq(Mux(walk.asks, walk.hits, 0)),
                bumped_values.eq(walk.values),
                operand.valid.eq(found.valid),
                *passed(found, operand, "first last void row"),
            ]
            for n in range(self.vector):
                m.d.sync += [
                    operand.lanes[n].hit.eq(found.present[n] & (places[n].hit | bumped[n])),
                    operand.lanes[n].a.eq(factors[n]),
                    operand.lanes[n].b.eq(Mux(bumped[n], bumped_values[n], buffer.values[n])),
                ]
        m.d.comb += mac.i.eq(operand)
