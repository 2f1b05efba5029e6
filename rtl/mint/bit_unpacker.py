"""Takes beats of packed records apart: fields of a width that is chosen at run time."""

from typing import Any

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from .lane import Lane, lanes_of
from .records import Stage, check_sizes, low_mask, record_group
from .step_planner import StepPlanner, unpack_request

__all__ = ["BitUnpacker"]


class BitUnpacker(Block):
    """Beats in, records out, as many as there are lanes or as the beats hold.

    Record p of a request has bits drop + p x width and up of its beats, counted from the lowest bit of the first; records
    straddle beats. Each request begins with a beat of its own: the bits behind its last record are dropped with their beat.

    Parameters
    ----------
    beat_bits : int
        Power of two from 8 to 1024.
    lanes : int
        Records a cycle, power of two from 1 to 16.
    width : int
        Bits of the widest record, 1 to 128 and at most a beat.
    stages : int
        Registers of the barrel shifter, 1 to 4, that of the output among them.
    count_bits : int
        Of the number of records in a request, 5 to 64.

    Members
    -------
    request : In(stream({drop, width, count}))
        Bits of the first beat that come before the records; bits of a record, 0 to the widest; records. A request without
        records, or of records of 0 bits, has no beat.
    beats : In(stream(beat_bits))
        The beats of the requests, in their order: ceil((drop + count x width) / beat_bits) each.
    groups : Out(stream({records, count, last}))
        ``records[0]`` to ``records[count - 1]`` in order, with zeros above their width; the others mean nothing. Only the group
        with ``last`` may be empty: that of a request without records. From registers.
    error : Out(1)
        A request was wider than the widest record. It stays until the reset. The request is answered as one without records.

    Timing
    ------
    ``latency`` cycles from a beat to its records, ``request_latency`` from a request whose beats wait. In every cycle a group of
    ``lanes`` records leaves if so many are at most a beat, else one beat is taken; the last group of a request may have less.
    That holds across requests: the first group of one follows the last of the one before it, unless its beats cannot have come
    at a beat a cycle, with two beats inside.
    ``request.ready`` and ``beats.ready`` follow ``groups.ready`` at once, and nothing else that is not a register.
    """

    def __init__(
        self, *, beat_bits: int, lanes: int = 1, width: int = 64, stages: int = 2, count_bits: int = 32
    ) -> None:
        check_sizes(beat_bits=beat_bits, lanes=lanes, width=width, stages=stages)
        if not isinstance(count_bits, int) or not 5 <= count_bits <= 64:
            raise ValueError(f"Count must have from 5 to 64 bits, not {count_bits!r}")
        self.beat_bits = beat_bits
        self.lanes = lanes
        self.width = width
        self.stages = stages
        self.count_bits = count_bits
        super().__init__(
            {
                "request": In(stream.Signature(unpack_request(beat_bits, width, count_bits))),
                "beats": In(stream.Signature(beat_bits)),
                "groups": Out(stream.Signature(record_group(lanes, width))),
                "error": Out(1),
            }
        )

    @property
    def latency(self) -> int:
        return 1 + self.stages

    @property
    def request_latency(self) -> int:
        return (5 if self.lanes * self.width > self.beat_bits else 4) + self.stages

    def build(self, platform: Any) -> Module:
        m = Module()
        sizes = {"beat_bits": self.beat_bits, "lanes": self.lanes, "width": self.width}
        lanes = lanes_of(**sizes)
        m.submodules.planner = planner = StepPlanner(**sizes, count_bits=self.count_bits)
        connect(m, flipped(self.request), planner.request)
        m.d.comb += self.error.eq(planner.error)
        step = planner.step.payload

        # Two banks take turns at the beats. A bank that the present step frees can take a beat in the same cycle.
        ring = Signal(2 * self.beat_bits, reset_less=True)
        full = Signal(2)
        bank = Signal()  # of the next beat
        goes = Signal()
        rotated = [
            Cat(pair[0] ^ (step.beat & pair.xor()), pair[1] ^ (step.beat & pair.xor()))
            for pair in (step.needs, step.frees)
        ]
        needs, frees = rotated[0], rotated[1] & goes.replicate(2)
        free = ~full | frees
        taken = Signal(2)
        m.d.comb += [
            self.beats.ready.eq(free.bit_select(bank, 1)),
            taken.eq(Cat(~bank, bank) & (self.beats.valid & self.beats.ready).replicate(2)),
        ]
        m.d.sync += [full.eq((full & ~frees) | taken), bank.eq(bank ^ taken.any())]
        for n in range(2):
            with m.If(taken[n]):
                m.d.sync += ring[n * self.beat_bits :][: self.beat_bits].eq(self.beats.payload)

        stages = self._shifter(m, lanes, step, ring)
        m.d.comb += [
            goes.eq(planner.step.valid & ~(needs & ~full).any() & stages[0].ready),
            planner.step.ready.eq(stages[0].ready & ~(needs & ~full).any()),
        ]
        stages[0].moves(comes=goes, taken=stages[1].ready if self.stages > 1 else self.groups.ready)
        for n in range(1, self.stages):
            stages[n].moves(
                comes=stages[n - 1].valid,
                taken=stages[n + 1].ready if n + 1 < self.stages else self.groups.ready,
            )
        m.d.comb += self.groups.valid.eq(stages[-1].valid)
        return m

    def _stage_of(self, lane: Lane, level: int) -> int:
        return level * self.stages // lane.levels

    def _shifter(self, m: Module, lanes: list[Lane], step: Any, ring: Value) -> list[Stage]:
        """The levels of all lanes, cut into stages."""
        mask = low_mask(step.width, self.width)
        shifts = [step[f"lane{n}"].shift for n in range(self.lanes)]
        values = [lane.words_of(ring, step[f"lane{n}"]) for n, lane in enumerate(lanes)]
        count, last = step.count, step.last
        stages = []
        for stage in range(self.stages):
            kept = []
            for n, lane in enumerate(lanes):
                steps = [k for k in range(len(lane.rotations)) if self._stage_of(lane, lane.word_levels + k) == stage]
                for k in steps:
                    values[n] = lane.rotated(values[n], shifts[n], step=k)
                kept.append(
                    [k for k in range(len(lane.rotations)) if self._stage_of(lane, lane.word_levels + k) > stage]
                )
            fields: dict[str, Any] = {"count": range(self.lanes + 1), "last": 1}
            final = stage == self.stages - 1
            if not final:
                fields |= {f"data{n}": len(values[n]) for n in range(self.lanes)}
                fields |= {f"shift{n}": len(kept[n]) for n in range(self.lanes)}
                fields["mask"] = self.width
            else:
                fields = self.groups.payload.shape().members
            here = Stage(m, f"stage{stage}", data.StructLayout(fields))
            items: dict[str, Any] = {"count": count, "last": last}
            if final:
                items["records"] = [values[n] & mask for n in range(self.lanes)]
                m.d.comb += Value.cast(self.groups.payload).eq(Value.cast(here.payload))
            else:
                items |= {f"data{n}": values[n] for n in range(self.lanes)}
                items |= {f"shift{n}": shifts[n][: len(kept[n])] for n in range(self.lanes)}
                items["mask"] = mask
            here.holds(items)
            stages.append(here)
            if not final:
                count, last, mask = here.payload.count, here.payload.last, here.payload.mask
                values = [here.payload[f"data{n}"] for n in range(self.lanes)]
                # Only the low bits of a shift are kept: bit numbers stay as they were.
                shifts = [here.payload[f"shift{n}"] for n in range(self.lanes)]
        return stages
