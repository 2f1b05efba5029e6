"""Weight-stationary engine: columns of B stay in the PEs, rows of A pass all of them, and sums leave as rows of C."""

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.wiring import connect, flipped

from ..accessor.coordinate_check import CoordinateCheck
from ..accessor.lookup import FiberLookup
from ..accessor.nonzero_reader import NonzeroReader
from ..lib.check import check_integer
from ..lib.passed import connected, passed
from ..lib.signals import signals
from ..lib.unit import ReadClient
from ..pe.bumped_walk import region_of
from ..pe.bus_packer import BusPacker
from ..pe.column_feeder import ColumnFeeder
from ..pe.flagged_bus import check_vector, format_of
from ..pe.row_joiner import RowJoiner
from ..pe.weight_stationary_array import WeightStationaryArray
from ..types import COORDINATE_WIDTH, POSITION_WIDTH
from .signature import Engine

__all__ = ["WeightStationaryEngine"]


class WeightStationaryEngine(Engine):
    """Computes tiles of no more columns than there are PEs (design: intra-tile dataflow ``weight_stationary``).

    ::

        selections -----------------------------------------> BusPacker --> WeightStationaryArray --> RowJoiner --> fibers
              | (assembling)                                                  ^ weights    | refill     ^  ^
              +--> FiberLookup --> ColumnFeeder --> NonzeroReader --> ColumnFeeder <-------+            |  |
                                                         +-------- pieces, while C is assembled --------+  |
                                               partials --> NonzeroReader ---------------------------------+

    The first nonzero of A in a tile waits until the tile's columns of B are in the PEs, where they may be from the tile before.
    What overflows the buffer of a PE is read once more when the PE asks for it. Columns of a row of A must rise, and so must rows
    of a column of B.

    Ports of the SRAM, all for reading: the lookup, its columns, partial rows.

    Parameters
    ----------
    vector : int
        MACs of a PE, a power of two up to 32.
    entries : int
        Of a PE's buffer, 4 to 1024, even.
    acf : str
        Format of A on the bus, ``csr``, ``coo`` or ``dense``.
    rest
        As :class:`Engine`.

    Timing
    ------
    A comes one line of a row a cycle and leaves on the bus as :class:`BusPacker` says; columns load a word a cycle; a row of C
    takes a cycle for each of its nonzeros (:class:`RowJoiner`). Columns load before A, rows leave meanwhile.
    """

    READERS = (
        ReadClient("lookup", 64, "read_b_meta", assembling="read_c_meta", turn=1),
        ReadClient("columns", 128, "read_b_data", assembling="read_c_data", turn=2, records="b"),
        ReadClient("c_streamed", 128, "read_c_data", turn=3),
    )
    ACTIVITY = ("b_lookup", "b_streamer", "c_reentry", "collector", "processing_elements")
    ERRORS = ("bad_row", "bad_coordinate")
    B_FIBERS = "j"
    PARTS = True
    sram_reads = 3

    def __init__(self, *, vector: int, entries: int, acf: str = "csr", **sizes: Any) -> None:
        check_vector(vector)
        check_integer("PEs", sizes["pes"], 1, 256)
        self.vector = vector
        self.entries = entries
        self.region = region_of(entries)
        self.acf = acf
        self.format = format_of(acf)
        self.words = self.format.words_for(vector)
        super().__init__(**sizes)

    @property
    def most_columns(self) -> int:
        return self.pes

    @property
    def event_widths(self) -> Mapping[str, int]:
        macs = (self.pes * self.vector).bit_length()
        counted = dict.fromkeys(("rows", "merged", "stall_lookup", "stall_collect", "pe_stall_input"), 1)
        return {"macs": macs, "pe_busy": self.pes.bit_length(), "bumped_fetches": POSITION_WIDTH, **counted}

    def build(self, platform: Any) -> Module:
        m = Module()
        sizes = {name: getattr(self, name) for name in ("lanes", "address_width", "line_address_width")}
        m.submodules.fiber_lookup = lookup = FiberLookup(**sizes)
        m.submodules.fiber_reader = reader = NonzeroReader(**sizes)
        m.submodules.partial_reader = reentry = NonzeroReader(**sizes)
        m.submodules.packer = packer = BusPacker(words=self.words, vector=self.vector, lanes=self.lanes)
        m.submodules.array = array = WeightStationaryArray(
            pes=self.pes,
            words=self.words,
            vector=self.vector,
            entries=self.entries,
            region=self.region,
            index_width=POSITION_WIDTH,
            value=self.value,
        )
        m.submodules.feeder = feeder = ColumnFeeder(
            pes=self.pes, entries=self.entries, region=self.region, address_width=self.address_width
        )
        m.submodules.joiner = joiner = RowJoiner(pes=self.pes, lanes=self.lanes, value=self.value)
        for n, unit in enumerate((lookup, reader, reentry)):
            connect(m, unit.sram_request, flipped(self.sram_request[n]))
            connect(m, flipped(self.read_data[n]), unit.read_data)
            m.d.comb += [
                unit.sram_response.eq(self.sram_response[n]),
                *connected(unit.read_request, self.read_request[n]),
            ]
        connect(m, packer.o, array.bus)
        connect(m, array.refill, feeder.refill)
        connect(m, feeder.weights, array.weights)
        connect(m, array.rows, joiner.rows)
        connect(m, reentry.nonzeros, joiner.partials)
        m.d.comb += [
            *(getattr(lookup, name).eq(self.fiber_table[name]) for name in self.fiber_table.shape().members),
            packer.acf.eq(self.format),
            packer.rows.eq(self.tile.size_i),
            packer.columns.eq(self.tile.size_k),
            *passed(self, joiner, "assembling"),
            reader.plain.eq(self.assembling),
            reentry.plain.eq(1),
        ]
        self._select(m, lookup, feeder, packer, joiner)
        self._read(m, lookup, feeder, reader, joiner)
        self._reenter(m, reentry)
        place, out = reader.places, self.fibers
        m.d.comb += [
            out.valid.eq(joiner.fiber.valid),
            joiner.fiber.ready.eq(out.ready),
            out.payload.word.eq(joiner.fiber.payload),
            out.payload.bound.eq(self.tile.size_j),
            self.looked_up.eq(lookup.idle & feeder.idle),
            self.active.b_lookup.eq(~lookup.idle),
            self.active.b_streamer.eq(~reader.idle | ~feeder.idle),
            self.active.c_reentry.eq(~reentry.idle),
            self.active.collector.eq(~joiner.idle),
            self.active.processing_elements.eq(~array.idle),
            self.counted.macs.eq(array.event_macs),
            self.counted.pe_busy.eq(Mux(array.bus.valid & array.bus.ready, self.pes, 0)),
            self.counted.rows.eq(out.valid & out.ready & out.payload.word.last),
            self.counted.merged.eq(feeder.nonzeros.valid & feeder.nonzeros.ready),
            self.counted.stall_lookup.eq(lookup.event_stall),
            self.counted.stall_collect.eq(joiner.event_stall),
            self.counted.pe_stall_input.eq(array.event_stall),
        ]
        with m.If(place.valid & place.ready & place.payload.in_memory & ~self.assembling):
            m.d.comb += self.counted.bumped_fetches.eq(place.payload.length)
        return m

    def _select(
        self, m: Module, lookup: FiberLookup, feeder: ColumnFeeder, packer: BusPacker, joiner: RowJoiner
    ) -> None:
        """Nonzeros of A go on the bus, once the tile's columns are in the PEs."""
        tile, taken, datum = self.tile, self.selections.payload, packer.i.payload
        ranks = ("begin_j", "size_j", "begin_k", "size_k")  # of the tile whose columns the PEs have
        loaded = Signal(data.StructLayout(dict.fromkeys(ranks, COORDINATE_WIDTH)))
        ready = Signal()  # they are this tile's
        row = Signal(COORDINATE_WIDTH)
        ends_tile, needs, some = signals("ends_tile needs some")
        nonzeros, datum_items = ([one["items"][n] for n in range(self.lanes)] for one in (taken, datum))
        m.d.comb += [
            joiner.count.eq(tile.size_i),
            joiner.adds.eq(tile.partial_in),
            *passed(tile, feeder, "begin_j begin_k size_k"),
            feeder.columns.eq(tile.size_j),
            ends_tile.eq(taken.last & (row + 1 == tile.size_i)),
            some.eq(taken.count != 0),
            needs.eq(self.selections.valid & some & ~ready),
            *passed(taken, datum, "count"),
            datum.last.eq(ends_tile),
        ]
        for nonzero, item in zip(nonzeros, datum_items, strict=True):
            m.d.comb += [item.row.eq(row), item.column.eq(nonzero.index), item.value.eq(nonzero.weight)]
        with m.FSM():
            with m.State("TILE"):
                with m.If(self.selections.valid & ~self.assembling & joiner.idle):
                    m.d.comb += joiner.start.eq(1)
                    m.d.sync += [row.eq(0), ready.eq(Cat(loaded[name] == tile[name] for name in ranks).all())]
                    m.next = "ROWS"
            with m.State("ROWS"):
                with m.If(needs):
                    m.d.comb += feeder.start.eq(1)
                    m.d.sync += passed(tile, loaded, " ".join(ranks))
                    m.next = "LOAD"
                with m.Else():
                    sends = some | ends_tile
                    m.d.comb += [
                        packer.i.valid.eq(self.selections.valid & sends),
                        self.selections.ready.eq(packer.i.ready | ~sends),
                    ]
                    with m.If(self.selections.valid & self.selections.ready & taken.last):
                        m.d.sync += row.eq(row + 1)
                        with m.If(ends_tile):
                            m.next = "TILE"
            with m.State("LOAD"):
                with m.If(feeder.idle):
                    m.d.sync += ready.eq(1)
                    m.next = "ROWS"
        # Entries that overflow their PE pass A in the order of their rows.
        m.submodules.row_check = check = CoordinateCheck(lanes=self.lanes)
        m.d.comb += [
            check.moved.eq(self.selections.valid & self.selections.ready & ~self.assembling),
            *(check.line[n].coordinate.eq(nonzero.index) for n, nonzero in enumerate(nonzeros)),
            check.mask.eq(Cat(n < taken.count for n in range(self.lanes))),
            *passed(taken, check, "last"),
            check.high.eq(tile.size_k),
            self.errors.bad_coordinate.found.eq(check.wrong),
            self.errors.bad_coordinate.detail.eq(check.coordinate),
            self.errors.bad_row.found.eq(feeder.wrong),
            self.errors.bad_row.detail.eq(feeder.coordinate),
        ]

    def _read(
        self, m: Module, lookup: FiberLookup, feeder: ColumnFeeder, reader: NonzeroReader, joiner: RowJoiner
    ) -> None:
        """Columns of the tile are looked up and read, or pieces of C's rows."""
        leaf, place = lookup.leaves.payload, reader.places.payload
        wanted, pieces, nonzeros = feeder.wanted, self.selections, reader.nonzeros
        piece = lookup.selections.payload
        with m.If(self.assembling):
            m.d.comb += [
                pieces.ready.eq(lookup.selections.ready),
                lookup.selections.valid.eq(pieces.valid),
                *passed(pieces.payload["items"][0], piece, "index weight"),
                piece.present.eq(pieces.payload.count != 0),
                piece.last.eq(pieces.payload.last),
                reader.places.valid.eq(lookup.leaves.valid),
                lookup.leaves.ready.eq(reader.places.ready),
                *passed(leaf.leaf, place, "in_memory position length"),
                place.closes.eq(leaf.leaf.last),
                joiner.pieces.valid.eq(nonzeros.valid),
                nonzeros.ready.eq(joiner.pieces.ready),
            ]
        with m.Else():
            m.d.comb += [
                lookup.selections.valid.eq(wanted.valid),
                wanted.ready.eq(lookup.selections.ready),
                piece.eq(wanted.payload),
                feeder.leaves.valid.eq(lookup.leaves.valid),
                lookup.leaves.ready.eq(feeder.leaves.ready),
                reader.places.valid.eq(feeder.places.valid),
                feeder.places.ready.eq(reader.places.ready),
                place.eq(feeder.places.payload),
                feeder.nonzeros.valid.eq(nonzeros.valid),
                nonzeros.ready.eq(feeder.nonzeros.ready),
            ]
        m.d.comb += [
            feeder.leaves.payload.eq(lookup.leaves.payload),
            feeder.nonzeros.payload.eq(nonzeros.payload),
            joiner.pieces.payload.eq(nonzeros.payload),
        ]

    def _reenter(self, m: Module, reentry: NonzeroReader) -> None:
        """Partial rows, one for each row of the tile, from the SRAM or from memory."""
        partial, place = self.partials.payload, reentry.places.payload
        m.d.comb += [
            reentry.places.valid.eq(self.partials.valid),
            self.partials.ready.eq(reentry.places.ready),
            *passed(partial, place, "in_memory length"),
            place.position.eq(partial.position + Mux(partial.in_memory, self.partial_region, 0)),
        ]
