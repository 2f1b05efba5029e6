"""Tailors buffer: a buffet that keeps working when a tile overflows it.

Paper: Tailors (MICRO 2023), section 3.3 and figure 5.
"""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, enum, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.error import StickyError
from ..lib.sram import SramBank
from .ordered_port import OrderedPort, memory_answer, memory_write
from .standalone import StandaloneBuffer

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
        Adds the ``release`` input (below), which keeps a streaming parent from outrunning the consumer.

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
    release : In(1), only with ``release``
        The consumer no longer needs the next entry of the bumped data, counting from index ``capacity - fifo_entries``
        in the first pass. OWFill then waits rather than overwrite an unreleased entry: the first until the whole region
        is released, a later one until its slot is, the one that begins a backfill until all are.
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
        if not isinstance(width, int) or width < 1:
            raise ValueError(f"Entry width must be a positive integer, not {width!r}")
        if not isinstance(entries, int) or entries < 2:
            raise ValueError(f"Buffer entries must be an integer of at least 2, not {entries!r}")
        index_width = entries.bit_length() if index_width is None else index_width
        least = entries.bit_length()
        if not isinstance(index_width, int) or index_width < least:
            raise ValueError(f"Index width must be at least {least} for {entries} entries, not {index_width!r}")
        address_width = (entries - 1).bit_length() if address_width is None else address_width
        if not isinstance(address_width, int) or address_width < (entries - 1).bit_length():
            least = (entries - 1).bit_length()
            raise ValueError(f"Address width must be at least {least} for {entries} entries, not {address_width!r}")
        self.width = width
        self.entries = entries
        self.index_width = index_width
        self.address_width = address_width
        self.queue_depth = queue_depth
        self.with_release = bool(release)
        count = range(entries + 1)
        super().__init__(
            {
                "fill": In(stream.Signature(width)),
                "overwrite": In(stream.Signature(width)),
                "read": In(stream.Signature(index_width)),
                "read_data": Out(stream.Signature(width)),
                "update": In(stream.Signature(data.StructLayout({"data": width, "index": index_width}))),
                "shrink": In(stream.Signature(count)),
                **({"release": In(1)} if release else {}),
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

    def parameters(self) -> dict[str, Any]:
        names = {"w": self.width, "e": self.entries, "i": self.index_width, "a": self.address_width}
        return names | {"q": self.queue_depth} | ({"release": 1} if self.with_release else {})

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.port = port = OrderedPort(
            width=self.width, address_width=self.address_width, queue_depth=self.queue_depth
        )
        connect(m, port.read_data, flipped(self.read_data))
        connect(m, port.memory_read, flipped(self.memory_read))
        connect(m, port.memory_write, flipped(self.memory_write))
        m.d.comb += port.memory_response.eq(self.memory_response)
        m.submodules.sticky = sticky = StickyError(codes=TailorsError)
        m.d.comb += [sticky.clear.eq(self.clear_error), self.error.eq(sticky.error)]

        def fail(code: TailorsError) -> Any:
            return sticky.raised[code.value].eq(1)

        def summed(a: Value, b: Value, carry: Value) -> Value:
            """The sum with a carry into the lowest bit, of one adder: an added `1` or flag would make a second."""
            return (Cat(carry, a) + Cat(carry, b))[1:]

        count = range(self.entries + 1)
        place = range(self.entries)
        place_width = len(Signal(place))
        capacity, region, offset, overbooked = self.capacity, self.fifo_entries, self.fifo_offset, self.overbooked
        head = Signal(place)  # rolling offset of index 0
        anchor = Signal(place)  # where the FIFO-managed region begins: behind the buffet-managed entries
        cursor = Signal(place)  # where the next Fill or OWFill goes
        regular = Signal(count)  # buffet-managed entries
        slot = Signal(place)  # of the region, for the next OWFill: cursor as a distance from anchor
        region_full = Signal()
        following = Signal(self.index_width)  # position of the entry that the next OWFill brings
        # The bumped data began again within the region: it holds the positions from `offset` to the last and those below
        # `following`. Otherwise it holds those from `offset` to before `following`.
        begun = Signal()
        begins_again = Signal()  # the next OWFill brings position 0
        # Bumped entries of the tile, while backfilling those still to come again; `unbounded`: positions come round with
        # the width of an index. Slot, positions and their flags are 0 while not overbooked.
        unbounded = 2**self.index_width
        bumped = Signal(self.index_width + 1, init=unbounded)
        shrunk = Signal()  # space was freed while overbooked
        backfilling = Signal()  # not overbooked, `bumped` entries of the tile are still to come again

        # Rare operations take several cycles, so that they share adders with the others and their flags are registered.
        # Shrink: `examining` (is it legal?), `shrinking`. The OWFill that overbooks the buffer or begins a backfill:
        # `placing` (finds the region), `aiming` (puts the cursor there), `looking` (would the read at the port lose its
        # entry?), `turning` (is accepted); when the read would, `yielding` (the read may go) and `looking` again.
        calm = Signal(init=1)
        examining = Signal()
        shrinking = Signal()
        placing = Signal()
        aiming = Signal()
        looking = Signal()
        turning = Signal()
        yielding = Signal()
        turns = Signal()  # the buffer becomes overbooked, or ceases to be, with the next OWFill
        turned = Signal()  # it does
        yields = Signal()
        shut = Signal()  # no read and no update goes: two states each of a Shrink and of an OWFill that turns
        turn = Signal()  # an update is looked at in this cycle instead of a read
        rests = calm & ~self.shrink.valid | shrinking | turned | placing
        m.d.sync += [
            examining.eq(calm & self.shrink.valid),
            shrinking.eq(examining),
            placing.eq(calm & ~self.shrink.valid & turns),
            aiming.eq(placing),
            looking.eq(aiming | yielding),
            turning.eq(looking | turning & ~turned & ~yields),
            yielding.eq(turning & yields),
            calm.eq(calm & ~self.shrink.valid & ~turns | shrinking | turned),
            turn.eq(~turn & rests),
            shut.eq(~rests & ~(turning & yields)),
        ]
        shrinks = examining | shrinking
        m.d.comb += self.shrink.ready.eq(shrinking)

        kept = Signal(count)  # entries that stay buffet-managed in an overbooked buffer
        unused = Signal(count)
        full = Signal()
        present = Signal(count)  # entries in the FIFO-managed region; at least 1 while overbooked
        m.d.comb += [
            kept.eq(capacity - region),
            unused.eq(capacity - regular),
            full.eq(unused == 0),
            present.eq(Mux(region_full, region, slot)),
            self.occupancy.eq(regular + present),
            self.credit.eq(Mux(overbooked | backfilling, 0, unused)),
            self.idle.eq((self.occupancy == 0) & ~backfilling & ~port.busy),
        ]

        # Reads and updates share one translation from tile index to place. Whoever is selected goes when its entry is
        # there. An update is looked at every second cycle, and only then: so neither holds up the other, and the write
        # lane need not wait for the answer whether the update's entry is there.
        updating = Signal()
        index = Signal(self.index_width)
        position = Signal(self.index_width + 1)
        below = Signal()
        wraps_below = Signal()  # before the least recent entry: there only if the bumped data began again
        hit = Signal()
        beyond = Signal()
        able = Signal()
        served = Signal()  # a present entry is read or updated
        m.d.comb += [
            updating.eq(self.update.valid & turn),
            index.eq(Mux(updating, self.update.payload.index, self.read.payload)),
            position.eq(index - regular),
            below.eq(position[-1]),
            wraps_below.eq(position[:-1] < offset),
            beyond.eq(overbooked & ~below & (position[:-1] >= bumped)),
            hit.eq(
                below
                | ~beyond
                & Mux(begun, (position[:-1] < following) | ~wraps_below, (position[:-1] < following) & ~wraps_below)
            ),
            able.eq(port.advance & ~shut & (updating | port.room)),
            served.eq((self.read.valid | updating) & able & hit),
            self.update.ready.eq(updating & able & (hit | beyond)),
            self.read.ready.eq(~updating & able & (hit | beyond)),
            port.reserve.eq(served & ~updating),
        ]
        with m.If((self.read.valid | updating) & able & beyond):
            m.d.comb += fail(TailorsError.INDEX_BEYOND_TILE)

        # The write lane: fill or overwrite, in cycles that leave it the memory's write port and the state. First which
        # verb of the paper this cycle is, then what that does to each pointer.
        lane = Signal()
        filling = Signal()  # Fill is acted upon: it appends, or is refused because the tile overbooks the buffer
        overwriting = Signal()  # OWFill is looked at
        streamed = Signal()  # what is written comes from OWFill
        fits = Signal()
        m.d.comb += [
            streamed.eq(overbooked | backfilling | turning),
            lane.eq(port.advance & ~updating),
            self.fill.ready.eq(lane & calm & Mux(overbooked, ~shrunk, ~full & ~backfilling)),
            filling.eq(self.fill.valid & self.fill.ready),
            overwriting.eq(self.overwrite.valid & lane & calm & ~filling),
            fits.eq((self.tile_length != 0) & (self.tile_length <= capacity) & ~backfilling),
        ]
        # What must not be overwritten: entries that a read at the port asks for, entries that the consumer has not
        # released. A Shrink that waits for the OWFill changes what the read asks for, so it may go.
        spent = Signal(count)  # released entries, the least recent of the region
        unreleased = (spent == 0, spent != present, spent != region) if self.with_release else (Const(0),) * 3
        oldest = (regular + offset)[: self.index_width]  # index of the least recent entry of the region
        asked_first = self.read.valid & (self.read.payload == oldest)
        safe = Signal()  # the read at the port keeps its entry when the buffer turns
        with m.If(looking):
            m.d.sync += safe.eq(self.read.valid & Mux(overbooked, below | ~hit, ~below | (index < kept)))
        rotating = Signal()
        backing = Signal()  # OWFill extends the kept entries
        splitting = Signal()
        renewing = Signal()  # the OWFill that ends the region and begins the backfill
        early = Signal()
        late = Signal()
        ending = Signal()
        m.d.comb += [
            ending.eq(begins_again & shrunk & ~bumped[-1]),
            turns.eq(self.overwrite.valid & Mux(overbooked, ending & ~unreleased[1], full & ~fits & ~unreleased[2])),
            yields.eq(~self.shrink.valid & self.read.valid & ~safe),
            turned.eq(turning & port.advance & ~yields),
            splitting.eq(turned & ~overbooked),
            renewing.eq(turned & overbooked),
            rotating.eq(overwriting & overbooked & ~ending & ~((asked_first | unreleased[0]) & region_full)),
            backing.eq(overwriting & ~overbooked & ~full & backfilling),
            early.eq(overwriting & ~overbooked & ~full & ~backfilling),
            late.eq(overwriting & ~overbooked & full & fits),
            self.overwrite.ready.eq(turned | rotating | backing | early | late),
        ]
        with m.If(filling & overbooked):
            m.d.comb += fail(TailorsError.FILL_WHILE_OVERBOOKED)
        with m.If(early):
            m.d.comb += fail(TailorsError.OVERWRITE_BEFORE_FULL)
        with m.If(late):
            m.d.comb += fail(TailorsError.OVERWRITE_OF_FITTING_TILE)

        appending = (filling & ~overbooked) | renewing | backing
        taking = rotating | splitting
        writes = appending | taking

        # Shrink, and the places that it and the split need. One adder each serves all that happens to a pointer.
        amount = self.shrink.payload
        frees = Signal()
        empties = Signal()
        remaining = Signal(len(regular) + 1)  # buffet-managed entries after what happens to them; negative: too many
        rolled = head + Mux(shrinks, amount, kept)
        reduced = rolled - capacity
        moved = Signal(place)  # rolling offset of index `amount`, or of the first entry of the FIFO-managed region
        m.d.comb += [
            moved.eq(Mux(reduced[-1], rolled, reduced)),
            remaining.eq(
                regular - Mux(shrinks | turning & ~overbooked, Mux(shrinks, amount, region), 2 ** len(remaining) - 1)
            ),
        ]
        m.d.sync += [
            empties.eq(examining & ((remaining + present)[: len(remaining)] == 0)),
            frees.eq(examining & ~remaining[-1]),
        ]
        with m.If(shrinking & ~empties & ~frees):
            m.d.comb += fail(TailorsError.SHRINK_BEYOND_OCCUPANCY)
        with m.If(empties):
            m.d.sync += [head.eq(0), regular.eq(0)]
        with m.Elif(frees):
            m.d.sync += head.eq(moved)
        with m.If(placing & ~overbooked):
            m.d.sync += anchor.eq(moved)
        with m.If(~empties & (appending | splitting | frees)):
            m.d.sync += regular.eq(remaining)

        closes = Signal()  # this OWFill takes the last slot of the region
        m.d.comb += closes.eq(slot + 1 == region)
        with m.If(empties | writes & ~(closes & (overbooked ^ turning)) & (cursor + 1 == capacity)):
            m.d.sync += cursor.eq(0)
        with m.Elif(aiming | writes):
            m.d.sync += cursor.eq(Mux(aiming | closes & (overbooked ^ turning), anchor, cursor + 1))

        # Positions count up by one; the split begins them at the entries that the region replaces.
        gone = empties | renewing
        first = Signal(count)  # `region` while it may be needed
        next_following = summed(following, first, Const(1, 1))[: self.index_width + 1]
        next_offset = summed(offset, first, calm)[: self.index_width + 1]
        wraps = next_following == bumped
        offset_wraps = next_offset == bumped
        with m.If(overbooked | splitting):
            m.d.sync += first.eq(0)
        with m.Else():
            m.d.sync += first.eq(region)
        with m.If(gone | taking & closes):
            m.d.sync += slot.eq(0)
        with m.Elif(taking):
            m.d.sync += slot.eq(slot + 1)
        with m.If(gone):
            m.d.sync += region_full.eq(0)
        with m.Elif(taking & closes):
            m.d.sync += region_full.eq(1)
        with m.If(gone | taking & wraps):
            m.d.sync += following.eq(0)
        with m.Elif(taking):
            m.d.sync += following.eq(next_following)
        with m.If(gone | rotating & region_full & offset_wraps):
            m.d.sync += offset.eq(0)
        with m.Elif(splitting | rotating & region_full):
            m.d.sync += offset.eq(next_offset)
        with m.If(gone):
            m.d.sync += [begun.eq(0), begins_again.eq(0)]
        with m.Elif(taking):
            m.d.sync += begins_again.eq(wraps)
            m.d.sync += begun.eq(wraps | begun & ~(region_full & offset_wraps))

        change = Signal(signed(len(bumped)), init=-1)  # of `bumped`
        m.d.sync += change.eq(Mux(placing & ~overbooked, region, -1))
        with m.If(aiming & ~overbooked & ~backfilling & (self.tile_length == 0)):
            m.d.sync += bumped.eq(unbounded)
        with m.Elif(aiming & ~overbooked | renewing | backing):
            m.d.sync += bumped.eq(Mux(aiming & ~backfilling, self.tile_length - kept, bumped + change))
        with m.If(renewing | backing):
            m.d.sync += backfilling.eq(bumped != 1)
        with m.Elif(splitting):
            m.d.sync += backfilling.eq(0)
        with m.If(gone):
            m.d.sync += [overbooked.eq(0), shrunk.eq(0)]
        with m.Elif(splitting):
            m.d.sync += overbooked.eq(1)
        with m.Elif(frees & overbooked & (amount != 0)):
            m.d.sync += shrunk.eq(1)

        if self.with_release:
            excess = Signal()
            m.d.comb += excess.eq(self.release & (spent == Mux(overbooked, present, region)))
            m.d.sync += spent.eq(Mux(gone | splitting, 0, spent + (self.release & ~excess) - (rotating & region_full)))
            with m.If(excess):
                m.d.comb += fail(TailorsError.RELEASE_BEYOND_REGION)

        # Address pipeline. First stage: distance from the least recent entry, go round inside the region; second: go
        # round inside the capacity and add the base. Each operation carries the pointers of its own moment with it.
        wanted = Signal(self.index_width)  # index
        origin = Signal(self.index_width)  # index of the least recent entry, 0 for a buffet-managed one
        rotation = Signal(place)  # slot of the least recent entry, 0 for a buffet-managed one
        inside = Signal()  # of the FIFO-managed region
        start = [Signal(place, name=f"start{stage}") for stage in (1, 2)]
        reach = Signal(count)
        arrives_at = [Signal(place, name=f"write_place{stage}") for stage in (1, 2)]
        reads = [Signal(name=f"read{stage}") for stage in (1, 2)]
        updates = [Signal(name=f"update{stage}") for stage in (1, 2)]
        enters = [Signal(name=f"enter{stage}") for stage in (1, 2)]
        unrolled = Signal(range(2 * self.entries))
        m.d.comb += unrolled.eq(summed(wanted, ~origin, Const(1, 1))[: self.index_width] + rotation)
        rolled_in = unrolled - region
        # Resets of registers, written so that they need no gates in front of the data.
        with m.If(port.advance & below):
            m.d.sync += origin.eq(0)
        with m.Elif(port.advance):
            m.d.sync += origin.eq(Mux(wraps_below, oldest - bumped, oldest))
        with m.If(port.advance & (below | ~region_full)):
            m.d.sync += rotation.eq(0)
        with m.Elif(port.advance):
            m.d.sync += rotation.eq(slot)
        with m.If(port.advance):
            m.d.sync += [
                wanted.eq(index),
                inside.eq(~below),
                start[0].eq(Mux(below, head, anchor)),
                start[1].eq(start[0]),
                reach.eq(Mux(inside & ~rolled_in[-1], rolled_in, unrolled)),
                arrives_at[0].eq(cursor),
                arrives_at[1].eq(arrives_at[0]),
                reads[0].eq(served & ~updating),
                updates[0].eq(served & updating),
                enters[0].eq(writes),
                *(flags[1].eq(flags[0]) for flags in (reads, updates, enters)),
            ]
        reached = start[1] + reach
        over = reached - capacity
        read_place = Mux(over[-1], reached, over)[:place_width]
        m.d.comb += [
            port.read.eq(reads[1]),
            port.write.eq(updates[1] | enters[1]),
            port.read_address.eq(self.base + read_place),
            port.write_address.eq(self.base + Mux(updates[1], read_place, arrives_at[1])),
        ]

        # The entry follows a cycle later. What is not selected is held at 0: resets of registers instead of multiplexers.
        sources = []
        for name, payload, chosen in (
            ("fill", self.fill.payload, ~updating & ~streamed),
            ("overwrite", self.overwrite.payload, ~updating & streamed),
            ("update", self.update.payload.data, updating),
        ):
            source = Signal(self.width, name=f"{name}_entry")
            with m.If(chosen):
                m.d.sync += source.eq(payload)
            with m.Else():
                m.d.sync += source.eq(0)
            sources.append(source)
        entering = Signal()
        m.d.sync += entering.eq(writes | (served & updating))
        m.d.comb += [port.write_data_valid.eq(entering), port.write_data.eq(sources[0] | sources[1] | sources[2])]
        return m


class TailorsBuffer(StandaloneBuffer):
    """A Tailors buffer with its own memory of ``entries`` entries (one read, one write port; block RAM).

    Parameters and members are those of :class:`TailorsControl` without ``address_width``, ``base`` and the memory side.
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
