"""Gustavson PE: scaled fibers of B go in, one fiber of C comes out."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..types import fetch_request, fetch_response, fiber_word, leaf, sram_response
from .combiner import CombinerCascade
from .common import check_power_of_two, operator_latencies
from .intake import JobIntake
from .leaf_buffer import LeafBuffer
from .merge_tree import MergeTree
from .packer import FiberPacker
from .scaler import Scaler

__all__ = ["GustavsonPe"]

# Cycles from a job's last leaf to its first merged nonzero, about: SRAM, leaf buffer and tree.
SETTLE = 32


class GustavsonPe(Block):
    """Merges up to ``radix`` fibers, each scaled by its weight, into one: a row of C, or a part of it.

    ::

        leaves -> JobIntake -> LeafBuffer -> MergeTree -> Scaler -> CombinerCascade -> FiberPacker -> fiber
                                 |    ^
                               lines from SRAM and memory

    Work follows the nonzeros: one of them a cycle, whatever their coordinates. Nonzeros of equal coordinates are
    added in leaf order as a balanced tree (see :class:`CombinerCascade`), so the result is defined bit for bit.
    Several jobs are under way at a time and follow each other through every stage.

    Parameters
    ----------
    radix : int
        Leaves of a job at most, power of two from 2 to 256.
    lanes : int
        Nonzeros in a line, power of two.
    line_address_width : int
        Bits of an SRAM line address.
    address_width : int
        Bits of a byte address.
    value : str
        Value type, one of ``arith.VALUES``.
    leaf_lines : int
        Line slots of each leaf, power of two. ``leaf_lines * lanes`` nonzeros should cover the time from a freed slot
        to the next line, about 8 cycles with the banked SRAM, for one leaf alone to give a nonzero a cycle.
    queue_lines : int
        Words of the output queue.
    jobs : int
        Jobs that may be under way, power of two.
    sram_pending : int
        SRAM lines that may be asked for and not here yet.

    Members
    -------
    leaves : In(stream(leaf))
        1 to ``radix`` leaves, ``last`` on the final one. ``length`` may be zero only where a job has one leaf. A job
        whose first leaf was taken is taken to the end without a pause.
    sram_request : Out(stream(line)), sram_response : In({valid, line})
        Answers in the order of the requests, at least one cycle later, never refused.
    fetch_request : Out(stream({leaf, position, lines, unit})), fetch_response : In({valid, leaf, line})
        Lines of memory, in the order of the requests, never refused. No more are asked for than the leaf has free
        slots.
    fiber : Out(stream(fiber_word))
        The jobs' fibers, in job order; an empty one is one word with ``count = 0``.
    busy : Out(1)
        From the cycle after a job's first leaf to its last word.
    event_mac, event_merged, event_stall_input, event_stall_output : Out(1)
        A scaled product was issued; a nonzero left the merge; the merge waits for data; the output queue is full.

    Timing
    ------
    One nonzero a cycle; ``latency`` cycles from the last one at the leaves to the last word.
    """

    def __init__(
        self,
        *,
        radix: int,
        lanes: int,
        line_address_width: int,
        address_width: int,
        value: str,
        leaf_lines: int,
        queue_lines: int,
        jobs: int = 4,
        sram_pending: int = 8,
    ) -> None:
        self.radix = check_power_of_two("Merge radix", radix, 2, 256)
        self.lanes = check_power_of_two("Lanes", lanes, 2, 64)
        self.leaf_lines = check_power_of_two("Lines of a leaf", leaf_lines, 1, 64)
        if not isinstance(line_address_width, int) or line_address_width < 1:
            raise ValueError(f"Line address width must be a positive integer, not {line_address_width!r}")
        if not isinstance(address_width, int) or not 16 <= address_width <= 64:
            raise ValueError(f"Address width must be from 16 to 64, not {address_width!r}")
        self.line_address_width = line_address_width
        self.address_width = address_width
        self.value = value
        self.queue_lines = queue_lines
        self.jobs = jobs
        self.sram_pending = sram_pending
        check_power_of_two("Jobs under way", jobs, 2, 16)
        add, multiply = operator_latencies(value)
        self._pipeline = (multiply + 2) + (radix.bit_length() - 1) * (add + 2)  # scaler and combiners
        super().__init__(
            {
                "leaves": In(stream.Signature(leaf(address_width))),
                "sram_request": Out(stream.Signature(line_address_width)),
                "sram_response": In(sram_response(lanes)),
                "fetch_request": Out(stream.Signature(fetch_request(radix, address_width, leaf_lines))),
                "fetch_response": In(fetch_response(radix, lanes)),
                "fiber": Out(stream.Signature(fiber_word(lanes))),
                "busy": Out(1),
                "event_mac": Out(1),
                "event_merged": Out(1),
                "event_stall_input": Out(1),
                "event_stall_output": Out(1),
            }
        )

    @property
    def latency(self) -> int:
        """Cycles from the last item of a job leaving the leaves to the last word of its fiber, without stalls."""
        return (self.radix.bit_length() - 1) + self._pipeline + 1

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.intake = intake = JobIntake(
            radix=self.radix,
            lanes=self.lanes,
            address_width=self.address_width,
            jobs_under_way=self.jobs,
            margin=2 * self.radix + SETTLE,
        )
        m.submodules.buffer = buffer = LeafBuffer(
            radix=self.radix,
            lanes=self.lanes,
            leaf_lines=self.leaf_lines,
            address_width=self.address_width,
            line_address_width=self.line_address_width,
            pending=self.sram_pending,
        )
        m.submodules.tree = tree = MergeTree(radix=self.radix, jobs=self.jobs)
        m.submodules.scaler = scaler = Scaler(radix=self.radix, jobs=self.jobs, value=self.value)
        m.submodules.combiners = combiners = CombinerCascade(radix=self.radix, value=self.value)
        m.submodules.packer = packer = FiberPacker(lanes=self.lanes, queue_lines=self.queue_lines)

        connect(m, flipped(self.leaves), intake.leaves)
        connect(m, intake.feeds, buffer.feeds)
        connect(m, intake.unpacks, buffer.unpacks)
        connect(m, intake.jobs, tree.jobs)
        connect(m, buffer.sram_request, flipped(self.sram_request))
        connect(m, buffer.fetch_request, flipped(self.fetch_request))
        connect(m, tree.leaves, buffer.heads)
        connect(m, tree.merged, scaler.merged)
        connect(m, packer.fiber, flipped(self.fiber))
        m.d.comb += [
            buffer.sram_response.eq(self.sram_response),
            buffer.fetch_response.eq(self.fetch_response),
            scaler.weight_enable.eq(intake.weight_enable),
            scaler.weight_index.eq(intake.weight_index),
            scaler.weight.eq(intake.weight),
            intake.merged.eq(tree.merged.valid & tree.merged.ready & ~tree.merged.payload.void),
            intake.job_over.eq(scaler.job_over),
            combiners.i.eq(scaler.nonzero),
            packer.nonzero.eq(combiners.o),
            scaler.advance.eq(packer.advance),
            combiners.advance.eq(packer.advance),
            self.event_mac.eq(scaler.event_mac),
            self.event_merged.eq(intake.merged),
            self.event_stall_input.eq(tree.starved),
            self.event_stall_output.eq(~packer.advance),
        ]

        # Every stage of the pipeline can hold the end of a job. Words of the queue are looked at as such: its block RAM answers
        # too late to be counted by what it gives.
        most = self.jobs + self._pipeline + 8
        outstanding = Signal(range(most + 1))
        begins = Signal()
        opened = Signal()
        with m.If(self.leaves.valid & self.leaves.ready):
            m.d.sync += opened.eq(~self.leaves.payload.last)
        m.d.comb += [
            begins.eq(self.leaves.valid & self.leaves.ready & ~opened),
            # From registers alone, as every output: nothing that comes in shows at an output in the same cycle.
            self.busy.eq((outstanding != 0) | packer.waiting),
        ]
        m.d.sync += outstanding.eq(outstanding + begins - packer.ended)
        return m
