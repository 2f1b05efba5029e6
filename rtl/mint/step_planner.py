"""Plans how the records of a request are taken out of beats: how many in each cycle, and from where."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..lib.onehot import onehot_select
from .lane import Lane, lanes_of
from .records import Stage, check_sizes, multiples_of

__all__ = ["StepPlanner", "unpack_request", "unpack_step"]


def unpack_request(beat_bits: int, width: int, count_bits: int) -> data.StructLayout:
    """Bits of the first beat to drop, bits of a record, records."""
    return data.StructLayout({"drop": range(beat_bits), "width": range(width + 1), "count": count_bits})


def unpack_step(lanes: list[Lane]) -> data.StructLayout:
    """What is taken in one cycle from the two beats at hand.

    ``beat``: whether the older one is in bank 0 or 1. ``needs``, ``frees``: of the older and the younger, whether it must have
    come, and whether it is done with.
    """
    return data.StructLayout(
        {
            "count": range(len(lanes) + 1),
            "last": 1,
            "width": range(lanes[0].width + 1),
            "beat": 1,
            "needs": 2,
            "frees": 2,
            **{f"lane{n}": lane.select for n, lane in enumerate(lanes)},
        }
    )


class StepPlanner(Block):
    """Cuts requests into steps of up to ``lanes`` records, one step a cycle, from one request to the next without a pause.

    A step takes records from two beats in a row, the older of which holds the bit at which it begins. Where ``lanes`` records
    are at most a beat, a step takes so many: the older beat is done with when the step reaches its end. Where they are more,
    every step ends one beat: with q = floor(beat / width) it takes q records, or q + 1 if q would end in the beat in which they
    begin. Either way a step ends before the end of the younger beat.

    Parameters
    ----------
    beat_bits, lanes, width, count_bits : int
        See :class:`rtl.mint.bit_unpacker.BitUnpacker`.

    Members
    -------
    request : In(stream(unpack_request))
        ``ready`` follows ``step.ready`` at once.
    step : Out(stream(unpack_step))
        From registers. A request without records, or of records without bits, has steps that need and free nothing.
    error : Out(1)
        From the cycle after a request wider than the widest record; it is answered as one without records.

    Timing: from request to first step ``latency`` cycles, 4, or 5 where ``lanes`` records may be more than a beat.
    """

    def __init__(self, *, beat_bits: int, lanes: int, width: int, count_bits: int) -> None:
        check_sizes(beat_bits=beat_bits, lanes=lanes, width=width, stages=1)
        self.beat_bits = beat_bits
        self.lanes = lanes
        self.width = width
        self.count_bits = count_bits
        self._lanes = lanes_of(beat_bits=beat_bits, lanes=lanes, width=width)
        super().__init__(
            {
                "request": In(stream.Signature(unpack_request(beat_bits, width, count_bits))),
                "step": Out(stream.Signature(unpack_step(self._lanes))),
                "error": Out(1),
            }
        )

    @property
    def beyond_a_beat(self) -> bool:
        """A step's records may be more than a beat."""
        return self.lanes * self.width > self.beat_bits

    @property
    def latency(self) -> int:
        return 5 if self.beyond_a_beat else 4

    def build(self, platform: Any) -> Module:
        m = Module()
        count = self.lanes
        position = (2 * self.beat_bits - 1).bit_length()
        # Bits of 0, 1, ... records, and the most that a step has.
        multiples = data.ArrayLayout((count * self.width).bit_length(), count + 1)
        known = {"drop": range(self.beat_bits), "width": range(self.width + 1), "count": self.count_bits}
        known |= {"multiples": multiples, "beatless": 1}
        measured = Stage(m, "measured", data.StructLayout(known))
        sized = {"records": range(count + 1), "bits": position, "beyond": 1}
        ready = Stage(m, "sized", data.StructLayout(known | sized)) if self.beyond_a_beat else measured
        run = Stage(
            m, "run", data.StructLayout({**known, **sized, "more": position, "raised": range(count + 1), "few": 1})
        )
        placed = Stage(
            m,
            "placed",
            data.StructLayout(
                {
                    "ends": data.ArrayLayout(position, count + 1),
                    "count": range(count + 1),
                    "last": 1,
                    "width": range(self.width + 1),
                    "beatless": 1,
                }
            ),
        )
        step = Stage(m, "step", self.step.payload.shape())

        self._measure(m, measured, taken=ready.ready if self.beyond_a_beat else run.ready)
        if self.beyond_a_beat:
            ready.moves(comes=measured.valid, taken=run.ready)
            self._size(measured, ready)
        self._run(m, ready, run, placed)
        placed.moves(comes=run.valid, taken=step.ready)
        self._finish(m, placed, step)
        m.d.comb += [self.step.valid.eq(step.valid), Value.cast(self.step.payload).eq(Value.cast(step.payload))]
        return m

    def _measure(self, m: Module, measured: Stage, *, taken: Value) -> None:
        """Multiples of the width, and whether there is anything to take."""
        asked = self.request.payload
        measured.moves(comes=self.request.valid, taken=taken)
        m.d.comb += self.request.ready.eq(measured.ready)
        wrong = asked.width > self.width
        with m.If(self.request.valid & self.request.ready & wrong):
            m.d.sync += self.error.eq(1)
        measured.holds(
            {
                "drop": asked.drop,
                "width": asked.width,
                "count": Mux(wrong, 0, asked.count),
                "beatless": wrong | (asked.count == 0) | (asked.width == 0),
                "multiples": multiples_of(asked.width, self.lanes),
            }
        )

    def _size(self, measured: Stage, sized: Stage) -> None:
        """Records of a step: as many as a beat holds, at most one for each lane."""
        count = self.lanes
        multiples = measured.payload.multiples
        fits = [Const(1, 1)] + [multiples[n] <= self.beat_bits for n in range(1, count + 1)] + [Const(0, 1)]
        exactly = Cat(fits[n] & ~fits[n + 1] for n in range(1, count + 1))
        sized.holds(
            {name: measured.payload[name] for name in ("drop", "width", "count", "beatless")}
            | {
                "multiples": [multiples[n] for n in range(count + 1)],
                "records": onehot_select(exactly, [Const(n, range(count + 1)) for n in range(1, count + 1)]),
                "bits": onehot_select(exactly, [multiples[n] for n in range(1, count + 1)]),
                "beyond": ~fits[count],
            }
        )

    def _run(self, m: Module, ready: Stage, run: Stage, placed: Stage) -> None:
        """A step in each cycle: ``drop`` is where the next one begins, ``count`` the records that are left."""
        count = self.lanes
        now = run.payload
        beat = (self.beat_bits - 1).bit_length()
        # Whether few records were left a cycle before: that is, before a step. It is as good, and a sum less to wait for.
        low = count.bit_length() + 1
        few = ~now.count[low:].any()
        if self.beyond_a_beat:
            end = now.drop + now.bits
            one_more = now.beyond & ~end[beat]
            records = Mux(one_more, now.raised, now.records)
            following = Mux(one_more, (now.drop + now.more)[:beat], end[:beat])
            left = Mux(one_more, now.count - now.raised, now.count - now.records)
            last = now.few & Mux(one_more, now.count[:low] <= now.raised, now.count[:low] <= now.records)
            sizes = {name: ready.payload[name] for name in ("records", "bits", "beyond")}
            sizes |= {"more": ready.payload.bits + ready.payload.width, "raised": ready.payload.records + 1}
        else:
            following = (now.drop + now.multiples[count])[:beat]
            records = Const(count, range(count + 1))
            left = now.count - count
            last = now.few & (now.count[:low] <= count)
            sizes = {}

        m.d.comb += run.ready.eq(~run.valid | (placed.ready & last))
        with m.If(run.ready):
            m.d.sync += run.valid.eq(ready.valid)
        with m.Elif(placed.ready):
            m.d.sync += [now.drop.eq(following), now.count.eq(left)]
        with m.If(~run.ready):
            m.d.sync += now.few.eq(few)
        given = ready.payload
        run.holds(
            {name: given[name] for name in ("drop", "width", "count", "beatless")}
            | {"multiples": [given.multiples[n] for n in range(count + 1)], "few": ~given.count[low:].any()}
            | sizes
        )
        placed.holds(
            {
                "ends": [(now.drop + now.multiples[n]) for n in range(count + 1)],
                "count": Mux(last, now.count, records),
                "last": last,
                "width": now.width,
                "beatless": now.beatless,
            }
        )

    def _finish(self, m: Module, placed: Stage, step: Stage) -> None:
        """Which beats the step needs and frees, and where its records are in the ring of the two banks."""
        count = self.lanes
        plan = placed.payload
        beat = (self.beat_bits - 1).bit_length()
        bank = Signal()  # of the older beat
        end = onehot_select(Cat(plan.count == n for n in range(count + 1)), [plan.ends[n] for n in range(count + 1)])
        beyond = end[beat] & end[:beat].any()
        frees = Cat(end[beat] | plan.last, beyond & plan.last) & (~plan.beatless).replicate(2)
        step.moves(comes=placed.valid, taken=self.step.ready)
        with m.If(placed.valid & step.ready):
            m.d.sync += bank.eq(bank ^ frees.xor())
        ring = [Cat(plan.ends[n][:beat], plan.ends[n][beat] ^ bank) for n in range(count)]
        step.holds(
            {
                "count": plan.count,
                "last": plan.last,
                "width": plan.width,
                "beat": bank,
                "needs": Cat(~plan.beatless, beyond & ~plan.beatless),
                "frees": frees,
            }
        )
        with m.If(step.ready):
            for n, lane in enumerate(self._lanes):
                m.d.sync += Value.cast(step.payload[f"lane{n}"]).eq(Cat(*lane.at(ring[n])))
