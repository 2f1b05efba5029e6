"""Tailors buffer: a buffet that keeps working when a tile overflows it.

Paper: Tailors (MICRO 2023), section 3.3 and figure 5.
"""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, enum, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.error import StickyError
from ..lib.passed import passed
from ..lib.sram import SramBank
from .entry_select import EntrySelect
from .fifo_region import FifoRegion
from .ordered_port import OrderedPort, memory_answer, memory_write
from .release_count import ReleaseCount, release_state
from .sizes import check_address, check_buffer, check_index, check_width
from .standalone import StandaloneBuffer
from .tailors_entries import TailorsEntries
from .tailors_lookup import TailorsLookup
from .tailors_places import TailorsPlaces
from .tailors_steps import TailorsSteps
from .tailors_verbs import TailorsVerbs

__all__ = ["TailorsBuffer", "TailorsControl", "TailorsError"]


class TailorsError(enum.Enum, shape=3):
    """What an illegal operation is called. The operation is taken and dropped; contents and state stay as they were."""

    NONE = 0
    FILL_WHILE_OVERBOOKED = 1
    OVERWRITE_BEFORE_FULL = 2
    OVERWRITE_OF_FITTING_TILE = 3
    SHRINK_BEYOND_OCCUPANCY = 4
    INDEX_BEYOND_TILE = 5
    RELEASE_BEYOND_REGION = 6


class TailorsControl(Block):
    """Controller of a Tailors buffer over an external memory.

    ::

        base + rolling offset    head                    tail
        fits:                     | a b c d . . . . . .  |         n entries, Fill appends at the tail
        full:                     | a b c d e f g h i j  |
        overbooked:               | a b c d e f g | k l m |        n = capacity - fifo_entries, region of fifo_entries:
                                  ^ buffet-managed ^ FIFO-managed   OWFill goes round in it

    While overbooked the entries behind the buffet-managed region are *bumped* and come again and again through the
    FIFO-managed region. A *position* counts bumped entries from 0. A Shrink frees entries at the head; when the bumped
    data begins again after it, OWFill extends the buffet-managed region (*backfill*) until the buffer is full (and
    overbooked again) or the tile complete.

    Parameters
    ----------
    width : int
        Bits of an entry.
    entries : int
        Largest capacity, at least 2.
    index_width : int
        Bits of a tile index; ``2**index_width`` must exceed ``entries``. Default: the fewest.
    address_width : int
        Bits of a memory address. Default: enough for ``entries``.
    queue_depth : int
        Answers kept for the reader, and reads in flight; a power of two.
    release : bool
        Adds the ``entry_release`` input (below), which keeps a streaming parent from outrunning the consumer.

    Members
    -------
    fill : In(stream(width))
        Appends. Waits while there is no credit. Taken before an ``overwrite`` of the same cycle.
    overwrite : In(stream(width))
        OWFill. Waits while it would overwrite an entry that the read at the port asks for.
    read : In(stream(index)), read_data : Out(stream(width))
        Waits until the entry has arrived. Answers in order.
    update : In(stream({index, data}))
        Replaces a present entry, waits for an absent one. Looked at every second cycle instead of Read and Fill.
    shrink : In(stream(count))
        Taken in its third cycle, after an OWFill that overbooks the buffer or begins a backfill. Frees entries at the
        head, indices fall by that number. While overbooked: at most the buffet-managed ones, or exactly ``occupancy``,
        which ends the tile and empties the buffer.
    entry_release : In(1), only with ``release``
        The consumer no longer needs the next entry of the bumped data, counting from index ``capacity - fifo_entries``
        in the first pass. OWFill then waits rather than overwrite an unreleased entry: the first until the whole region
        is released, a later one until its place is, the one that begins a backfill until all are.
    base, capacity, fifo_entries, tile_length : In
        First memory address; entries; entries of the FIFO-managed region; entries of the tile counted from index 0 when
        the first OWFill comes (0: unbounded, the bumped data never begins again). Change only while ``idle``.
    credit, occupancy, fifo_offset : Out
        Free entries that Fill may use (0 while overbooked or backfilling); entries present; position of the least
        recent entry of the region (valid while ``overbooked``).
    overbooked, idle : Out(1)
        Bumped data go round in the region; empty, nothing on its way.
    error : Out(TailorsError), clear_error : In(1)
        The first illegal operation since reset or clear; forgets it.
    memory_read, memory_response, memory_write
        Of :class:`OrderedPort`. Requests leave three cycles after acceptance.

    Timing
    ------
    One Fill or OWFill and one Read a cycle; an Update takes the place of both. A filled entry can be read from the next
    cycle on. A Shrink takes 3 cycles, the last two to itself; the OWFill that overbooks the buffer, or begins a backfill,
    5, without Fill and Shrink, the last two also without Read and Update.
    """

    stages = 3  # acceptance to memory

    def __init__(
        self,
        *,
        width: int,
        entries: int,
        index_width: int | None = None,
        address_width: int | None = None,
        queue_depth: int = 8,
        release: bool = False,
    ) -> None:
        check_width(width)
        check_buffer(entries)
        index_width = entries.bit_length() if index_width is None else index_width
        check_index(entries, index_width)
        address_width = (entries - 1).bit_length() if address_width is None else address_width
        check_address(entries, address_width)
        self.width = width
        self.entries = entries
        self.index_width = index_width
        self.address_width = address_width
        self.queue_depth = queue_depth
        self.release = bool(release)
        count = range(entries + 1)
        super().__init__(
            {
                "fill": In(stream.Signature(width)),
                "overwrite": In(stream.Signature(width)),
                "read": In(stream.Signature(index_width)),
                "read_data": Out(stream.Signature(width)),
                "update": In(stream.Signature(data.StructLayout({"data": width, "index": index_width}))),
                "shrink": In(stream.Signature(count)),
                **({"entry_release": In(1)} if release else {}),
                "base": In(address_width),
                "capacity": In(count),
                "fifo_entries": In(count),
                "tile_length": In(index_width),
                "credit": Out(count),
                "occupancy": Out(count),
                "fifo_offset": Out(index_width),
                "overbooked": Out(1),
                "idle": Out(1),
                "error": Out(TailorsError),
                "clear_error": In(1),
                "memory_read": Out(stream.Signature(address_width)),
                "memory_response": In(memory_answer(width)),
                "memory_write": Out(stream.Signature(memory_write(width, address_width))),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        sizes = {"entries": self.entries, "index_width": self.index_width}
        m.submodules.port = port = OrderedPort(
            width=self.width, address_width=self.address_width, queue_depth=self.queue_depth
        )
        m.submodules.sticky = sticky = StickyError(codes=TailorsError)
        m.submodules.steps = steps = TailorsSteps()
        m.submodules.lookup = lookup = TailorsLookup(**sizes)
        m.submodules.verbs = verbs = TailorsVerbs(**sizes)
        m.submodules.entries = entries = TailorsEntries(entries=self.entries)
        m.submodules.region = region = FifoRegion(**sizes)
        m.submodules.places = places = TailorsPlaces(**sizes, address_width=self.address_width)
        m.submodules.written = written = EntrySelect(width=self.width, sources=3)
        connect(m, port.read_data, flipped(self.read_data))
        connect(m, port.memory_read, flipped(self.memory_read))
        connect(m, port.memory_write, flipped(self.memory_write))
        overbooked, backfilling = region.overbooked, region.backfilling
        m.d.comb += [
            port.memory_response.eq(self.memory_response),
            sticky.clear.eq(self.clear_error),
            self.error.eq(sticky.error),
            self.occupancy.eq(entries.regular_count + region.present),
            self.credit.eq(Mux(overbooked | backfilling, 0, entries.unused)),
            self.fifo_offset.eq(region.offset),
            self.overbooked.eq(overbooked),
            self.idle.eq((self.occupancy == 0) & ~backfilling & ~port.busy),
            self.shrink.ready.eq(steps.step.shrink),
        ]

        m.d.comb += [
            lookup.read.eq(self.read.valid),
            lookup.read_index.eq(self.read.payload),
            self.read.ready.eq(lookup.read_ready),
            lookup.update.eq(self.update.valid),
            lookup.update_index.eq(self.update.payload.index),
            self.update.ready.eq(lookup.update_ready),
            *passed(port, lookup, "advance reserve_ready"),
            *passed(steps, lookup, "shut updates_turn"),
            *passed(entries, lookup, "regular_count kept"),
            *passed(region, lookup, "overbooked begun offset following bumped"),
            lookup.look.eq(steps.step.look),
            port.reserve.eq(lookup.reads),
        ]
        # What must not be overwritten: entries that a read at the port asks for, entries that the consumer has not
        # released. A Shrink that waits for the OWFill changes what the read asks for, so it may go.
        released = Signal(release_state())
        if self.release:
            m.submodules.releases = releases = ReleaseCount(entries=self.entries)
            m.d.comb += [
                *passed(self, releases, "entry_release fifo_entries"),
                *passed(region, releases, "present overbooked full"),
                *passed(verbs, releases, "verb"),
                *passed(entries, releases, "empties"),
                released.eq(releases.state),
            ]
        m.d.comb += [
            steps.shrink.eq(self.shrink.valid),
            steps.yields.eq(~self.shrink.valid & self.read.valid & ~lookup.read_is_safe),
            *passed(verbs, steps, "turn"),
            *passed(port, steps, "advance"),
            verbs.fill.eq(self.fill.valid),
            self.fill.ready.eq(verbs.fill_ready),
            verbs.overwrite.eq(self.overwrite.valid),
            self.overwrite.ready.eq(verbs.overwrite_ready),
            verbs.accepts.eq(port.advance & ~lookup.updating),
            verbs.calm.eq(steps.step.calm),
            verbs.no_credit.eq(entries.unused == 0),
            verbs.released.eq(released),
            *passed(self, verbs, "capacity tile_length"),
            *passed(steps, verbs, "turn_done"),
            *passed(lookup, verbs, "asked_first"),
            *passed(region, verbs, "overbooked shrunk backfilling full ends"),
            entries.amount.eq(self.shrink.payload),
            *passed(self, entries, "capacity fifo_entries"),
            *passed(steps, entries, "step"),
            *passed(verbs, entries, "verb"),
            *passed(region, entries, "present overbooked closes"),
            region.frees.eq(entries.frees & (self.shrink.payload != 0)),
            *passed(self, region, "fifo_entries tile_length"),
            *passed(steps, region, "step"),
            *passed(verbs, region, "verb"),
            *passed(entries, region, "kept empties"),
        ]
        for error, raised in (
            (TailorsError.FILL_WHILE_OVERBOOKED, verbs.refused.fill),
            (TailorsError.OVERWRITE_BEFORE_FULL, verbs.refused.early),
            (TailorsError.OVERWRITE_OF_FITTING_TILE, verbs.refused.late),
            (TailorsError.SHRINK_BEYOND_OCCUPANCY, entries.refused),
            (TailorsError.INDEX_BEYOND_TILE, lookup.beyond),
            (TailorsError.RELEASE_BEYOND_REGION, released.excess),
        ):
            m.d.comb += sticky.raised[error.value].eq(raised)

        # Accepted operations become addresses; an entry goes to the port a cycle after its acceptance.
        writes = Value.cast(verbs.verb).any()
        streams = overbooked | backfilling | steps.step.turn  # what is written comes from OWFill
        entering = Signal()
        m.d.sync += entering.eq(writes | lookup.updates)
        m.d.comb += [
            places.read.eq(lookup.reads),
            places.update.eq(lookup.updates),
            places.enter.eq(writes),
            *passed(self, places, "base capacity fifo_entries"),
            *passed(port, places, "advance"),
            *passed(lookup, places, "index regular precedes oldest"),
            *passed(region, places, "bumped fifo_place full"),
            *passed(entries, places, "head anchor tail"),
            port.read.eq(places.reads),
            port.write.eq(places.writes),
            port.read_address.eq(places.read_address),
            port.write_address.eq(places.write_address),
            written.chosen.eq(Cat(~lookup.updating & ~streams, ~lookup.updating & streams, lookup.updating)),
            written.source.eq(Cat(self.fill.payload, self.overwrite.payload, self.update.payload.data)),
            port.write_data_valid.eq(entering),
            port.write_data.eq(written.entry),
        ]
        return m


class TailorsBuffer(StandaloneBuffer):
    """A Tailors buffer with its own memory of ``entries`` entries (one read, one write port; block RAM).

    Parameters and members are those of :class:`TailorsControl` without ``address_width``, ``base`` and the memory side.

    Timing
    ------
    ``latency`` cycles from a read to its answer; as :class:`TailorsControl`.
    """

    latency = TailorsControl.stages + SramBank.latency + 1  # read accepted to read_data, when the consumer keeps up

    def __init__(
        self,
        *,
        width: int,
        entries: int,
        index_width: int | None = None,
        queue_depth: int = 8,
        release: bool = False,
    ) -> None:
        super().__init__(
            TailorsControl(
                width=width, entries=entries, index_width=index_width, queue_depth=queue_depth, release=release
            )
        )
