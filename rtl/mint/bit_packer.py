"""Packs records of a width that is chosen at run time into whole beats."""

from functools import reduce
from operator import or_
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.passed import passed
from .lane import PackLane
from .record_placer import RecordPlacer, pack_region
from .records import Stage, check_sizes, record_group

__all__ = ["BitPacker", "pack_region", "packed_beat"]


def packed_beat(beat_bits: int) -> data.StructLayout:
    """``strobe``: a bit for each byte that holds a bit of the region; ``bytes``: how many these are."""
    return data.StructLayout(
        {"data": beat_bits, "strobe": beat_bits // 8, "bytes": range(beat_bits // 8 + 1), "last": 1}
    )


class BitPacker(Block):
    """Groups of records in, beats out: record p of a region lands at bit start + p x width, counted from its first beat.

    Parameters
    ----------
    beat_bits, lanes, width : int
        See :class:`rtl.mint.bit_unpacker.BitUnpacker`.
    stages : int
        Registers of the barrel shifter, 1 to 4.

    Members
    -------
    region : In(stream({start, width}))
        One for each region: the bits of its first beat that it leaves out, and the bits of a record, 0 to the widest.
    groups : In(stream({records, count, last}))
        Up to ``lanes`` records, of which only the lowest ``width`` bits count; a group may be empty. ``last`` ends the region.
    beats : Out(stream({data, strobe, bytes, last}))
        The beats of the regions; bits around the records are 0. ``strobe`` has the bytes that hold a bit of the region, ``bytes``
        how many. ``last`` goes with the last beat. A region without a bit has one beat without bytes. From registers.
    error : Out(1)
        A region was wider than the widest record, and had no records for it. It stays until the reset.

    Timing
    ------
    ``latency`` cycles from a group to the beat that it fills. A group takes as many cycles as it completes beats, the beat that a
    last group leaves unfilled among them, and at least one: ``lanes`` records a cycle, or a beat a cycle where these are more.
    ``region.ready`` and ``groups.ready`` follow ``beats.ready`` at once, and nothing else that is not a register, but that a
    group waits for its region.
    """

    def __init__(self, *, beat_bits: int, lanes: int = 1, width: int = 64, stages: int = 2) -> None:
        check_sizes(beat_bits=beat_bits, lanes=lanes, width=width, stages=stages)
        self.beat_bits = beat_bits
        self.lanes = lanes
        self.width = width
        self.stages = stages
        super().__init__(
            {
                "region": In(stream.Signature(pack_region(beat_bits, width))),
                "groups": In(stream.Signature(record_group(lanes, width))),
                "beats": Out(stream.Signature(packed_beat(beat_bits))),
                "error": Out(1),
            }
        )

    @property
    def latency(self) -> int:
        return 3 + self.stages

    # A group goes through the placer (where each record lies, counted from the beat that is being filled), passes of one
    # completed beat each, the shifter's stages, and `beat`.
    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.placer = placer = RecordPlacer(beat_bits=self.beat_bits, lanes=self.lanes, width=self.width)
        connect(m, flipped(self.region), placer.region)
        connect(m, flipped(self.groups), placer.groups)
        placed = placer.placed
        stages = self._shifter(m)
        m.d.comb += [placed.ready.eq(self._passes(m, placed, stages)), *passed(placer, self, "error")]
        beat = Stage(m, "beat", self.beats.payload.shape())
        for n, stage in enumerate(stages):
            following = stages[n + 1].ready if n + 1 < self.stages else beat.ready | ~stage.payload.emits
            stage.moves(comes=stages[n - 1].valid if n else placed.valid, taken=following)
        self._fill(m, stages[-1], beat)
        m.d.comb += [self.beats.valid.eq(beat.valid), Value.cast(self.beats.payload).eq(Value.cast(beat.payload))]
        return m

    def _lane(self) -> PackLane:
        return PackLane(beat_bits=self.beat_bits, width=self.width)

    def _levels_before(self, stage: int) -> int:
        """Levels of the shifter in the stages before this one."""
        return -(-stage * len(self._lane().rotations) // self.stages)

    def _shifter(self, m: Module) -> list[Stage]:
        """The registers: what is left of each lane's shift, or at the end where its words go."""
        lane = self._lane()
        stages = []
        for stage in range(self.stages):
            levels = self._levels_before(stage + 1)
            fields: dict[str, Any] = {"emits": 1, "last": 1, "origin": range(self.beat_bits), "end": self._place_bits}
            data_bits = data.ArrayLayout(lane.width_after(levels), self.lanes)
            if stage < self.stages - 1:
                fields |= {"data": data_bits, "active": self.lanes}
                fields["places"] = data.ArrayLayout(self._place_bits, self.lanes)
            else:
                choices = data.ArrayLayout(lane.words, self.lanes)
                fields |= {"data": data.ArrayLayout(2 * lane.word, self.lanes), "even": choices, "odd": choices}
            stages.append(Stage(m, f"stage{stage}", data.StructLayout(fields)))
        return stages

    @property
    def _place_bits(self) -> int:
        """Of a place in two beats."""
        return self.beat_bits.bit_length()

    def _shifted(self, stages: list[Stage], given: dict[str, Any]) -> None:
        """What goes into the stages; ``given`` goes into the first."""
        lane = self._lane()
        for number, stage in enumerate(stages):
            levels = range(self._levels_before(number), self._levels_before(number + 1))
            shifted = []
            for n in range(self.lanes):
                value = given["data"][n]
                for level in levels:
                    value = lane.rotated(value, given["places"][n][level:], level=level)
                shifted.append(value)
            items = {name: given[name] for name in ("emits", "last", "origin", "end")} | {"data": shifted}
            if number < self.stages - 1:
                items |= {"places": [given["places"][n] for n in range(self.lanes)], "active": given["active"]}
                stage.holds(items)
                given = {name: stage.payload[name] for name in items}
            else:
                choices = [lane.choices(given["places"][n], given["active"][n]) for n in range(self.lanes)]
                items |= {"even": [even for even, _ in choices], "odd": [odd for _, odd in choices]}
                stage.holds(items)

    def _passes(self, m: Module, placed: Any, stages: list[Stage]) -> Signal:
        """One pass for each beat that the group completes; returns whether the last one goes.

        A record goes in the pass of the beat in which it begins. In the last pass go those too that begin in the beat behind,
        which is not completed.
        """
        now = placed.payload
        beat = (self.beat_bits - 1).bit_length()
        beats = now.end[beat:]  # completed by full records
        rounds = Signal(len(beats))  # passes before the last one
        partial = now.last & now.end[:beat].any()
        m.d.comb += rounds.eq(Mux((beats == 0) | partial, beats, beats - 1))
        turn = Signal(len(beats))
        final = turn == rounds
        origin = Signal(range(self.beat_bits))  # of the region in the beat that is being filled
        lowest = Mux(now.first & (turn == 0), now.start, origin)
        emits = now.last | (beats != 0)
        leaves = Signal()
        m.d.comb += leaves.eq(final & stages[0].ready)
        with m.If(placed.valid & stages[0].ready):
            m.d.sync += [turn.eq(Mux(final, 0, turn + 1)), origin.eq(Mux(emits, 0, lowest))]
        active, places = [], []
        for n in range(self.lanes):
            number, overhang = now.places[n][beat:], Signal(name=f"overhang{n}")
            m.d.comb += overhang.eq(final & (number == turn + 1))
            active.append((now.count > n) & ((number == turn) | overhang))
            places.append(Cat(now.places[n][:beat], overhang))
        end = Mux(now.last & final, Cat(now.end[:beat], ~partial & (beats != 0)), self.beat_bits)
        self._shifted(
            stages,
            {
                "data": [now.records[n] for n in range(self.lanes)],
                "places": places,
                "active": Cat(*active),
                "emits": emits,
                "last": now.last & final,
                "origin": lowest,
                "end": end,
            },
        )
        return leaves

    def _fill(self, m: Module, stage: Stage, beat: Stage) -> None:
        """Collects words into the beat, and into the one behind it, until it is complete."""
        lane, now = self._lane(), stage.payload
        words = []
        for n in range(2 * lane.words):
            choice = now.odd if n % 2 else now.even
            half = (n % 2) * lane.word
            parts = [
                now.data[k][half:][: lane.word] & choice[k][n // 2].replicate(lane.word) for k in range(self.lanes)
            ]
            words.append(reduce(or_, parts))
        window = Cat(*words)
        partial = Signal(self.beat_bits)  # what the beat has so far
        filled = window[: self.beat_bits] | partial
        goes = stage.valid & (beat.ready | ~now.emits)
        with m.If(goes):
            m.d.sync += partial.eq(Mux(now.emits, window[self.beat_bits :], filled))
        touched = now.end > now.origin
        last_byte = (now.end - 1)[: len(now.end)] >> 3
        first_byte = now.origin >> 3
        count = self.beat_bits // 8
        beat.moves(comes=stage.valid & now.emits, taken=self.beats.ready)
        beat.holds(
            {
                "data": filled,
                "strobe": Cat(touched & (n >= first_byte) & (n <= last_byte) for n in range(count)),
                "bytes": Mux(touched, last_byte - first_byte + 1, 0),
                "last": now.last,
            }
        )
