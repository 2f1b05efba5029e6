"""AXI4 memory agent: cocotbext-axi's channels on the pins, latency, reordering and faults of our own behind them."""

import logging
import random
from dataclasses import dataclass, field
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge
from cocotbext.axi import AxiBus, AxiResp
from cocotbext.axi.axi_channels import AxiARSink, AxiAWSink, AxiBSource, AxiRSource, AxiWSink

from .memory import Memory, OutsideError
from .pauses import Pattern

__all__ = ["Axi4MemoryAgent", "Behaviour", "strobed"]

PAGE = 4096
INCR = 1


@dataclass(frozen=True, kw_only=True)
class Behaviour:
    """How the memory answers.

    Parameters
    ----------
    latency: cycles from a burst's acceptance to its answer; jitter: added at random, from 0 to this.
    reorder: different identifiers are answered in any order.
    outstanding: bursts held in each direction.
    seed: of jitter and order.
    """

    latency: int = 10
    jitter: int = 0
    reorder: bool = False
    outstanding: int = 16
    seed: int = 0


@dataclass
class _Burst:
    identifier: int
    address: int
    beats: int
    due: int
    data: list[tuple[int, int]] = field(default_factory=list)
    response: AxiResp = AxiResp.OKAY


class Axi4MemoryAgent:
    """Answers an AXI4 manager from a :class:`Memory`.

    ``faults`` maps (``"read"`` or ``"write"``, address of a line) to the response of bursts that touch the line.
    ``breaches`` lists what the manager did against the rules. Written data reach the memory with their acknowledgement.
    """

    def __init__(
        self,
        dut: Any,
        prefix: str,
        clock: Any,
        reset: Any,
        memory: Memory,
        behaviour: Behaviour | None = None,
        *,
        reset_active_level: bool = True,
    ) -> None:
        self.clock = clock
        self.memory = memory
        self.behaviour = behaviour or Behaviour()
        self.faults: dict[tuple[str, int], AxiResp] = {}
        self.breaches: list[str] = []
        self.cycle = 0
        self.beats = {"read": 0, "write": 0}
        self._random = random.Random(f"axi4 {self.behaviour.seed}")
        self._reads: list[_Burst] = []
        self._writes: list[_Burst] = []
        self._acknowledgements: list[_Burst] = []
        bus = AxiBus.from_prefix(dut, prefix)
        options = {"reset": reset, "reset_active_level": reset_active_level}
        self.ar = AxiARSink(bus.read.ar, clock, **options)
        self.r = AxiRSource(bus.read.r, clock, **options)
        self.aw = AxiAWSink(bus.write.aw, clock, **options)
        self.w = AxiWSink(bus.write.w, clock, **options)
        self.b = AxiBSource(bus.write.b, clock, **options)
        for channel in (self.ar, self.aw, self.w):
            channel.queue_occupancy_limit = 2
            channel.log.setLevel(logging.WARNING)
        for source in (self.r, self.b):
            source.queue_occupancy_limit = 2
            source.log.setLevel(logging.WARNING)
        self.line_bytes = len(bus.read.r.rdata) // 8

    def pause(self, pattern: Pattern) -> None:
        """Let every channel pause by this pattern."""
        for channel in (self.ar, self.r, self.aw, self.w, self.b):
            channel.set_pause_generator(pattern())

    def start(self) -> None:
        cocotb.start_soon(self._run())

    @property
    def quiet(self) -> bool:
        """No burst is in flight."""
        return not (self._reads or self._writes or self._acknowledgements)

    def forget(self) -> None:
        """Drop what is in flight: the manager has been reset."""
        self._reads.clear()
        self._writes.clear()
        self._acknowledgements.clear()
        for channel in (self.ar, self.r, self.aw, self.w, self.b):
            channel.clear()

    async def _run(self) -> None:
        limit = self.behaviour.outstanding
        while True:
            if not self.ar.empty() and len(self._reads) < limit:
                self._reads.append(self._accept(self.ar.recv_nowait(), "ar"))
            if not self.aw.empty() and len(self._writes) + len(self._acknowledgements) < limit:
                self._writes.append(self._accept(self.aw.recv_nowait(), "aw"))
            if self._writes and not self.w.empty():
                self._take(self.w.recv_nowait())
            if self._reads and self.r.empty():
                self._answer_read()
            if self._acknowledgements and self.b.empty():
                self._acknowledge()
            await RisingEdge(self.clock)
            self.cycle += 1

    def _accept(self, request: Any, channel: str) -> _Burst:
        address, length, size, burst, identifier = (
            int(getattr(request, f"{channel}{name}")) for name in ("addr", "len", "size", "burst", "id")
        )
        beats = length + 1
        aligned = address - address % self.line_bytes
        if 1 << size != self.line_bytes or burst != INCR:
            self.breaches.append(f"{channel}: burst of size {size} and type {burst} at 0x{address:x}")
        if aligned % PAGE + beats * self.line_bytes > PAGE:
            self.breaches.append(f"{channel}: burst of {beats} beats across 4 KiB at 0x{address:x}")
        delay = self.behaviour.latency + (self._random.randint(0, self.behaviour.jitter))
        return _Burst(identifier, aligned, beats, self.cycle + delay)

    def _choose(self, queue: list[_Burst]) -> _Burst | None:
        """A burst that may be answered now: the oldest, or with reordering the oldest of any identifier."""
        if not self.behaviour.reorder:
            return queue[0] if queue[0].due <= self.cycle else None
        oldest: dict[int, _Burst] = {}
        for burst in queue:
            oldest.setdefault(burst.identifier, burst)
        ready = [burst for burst in oldest.values() if burst.due <= self.cycle]
        return self._random.choice(ready) if ready else None

    def _answer_read(self) -> None:
        burst = self._choose(self._reads)
        if burst is None:
            return
        response = self.faults.get(("read", burst.address), AxiResp.OKAY)
        try:
            data = int.from_bytes(self.memory.read(burst.address, self.line_bytes), "little")
        except OutsideError:
            data, response = (1 << 8 * self.line_bytes) - 1, AxiResp.DECERR
        burst.address += self.line_bytes
        burst.beats -= 1
        self.beats["read"] += 1
        if not burst.beats:
            self._reads.remove(burst)
        self.r.send_nowait(
            self.r._transaction_obj(rid=burst.identifier, rdata=data, rresp=int(response), rlast=int(not burst.beats))
        )

    def _take(self, beat: Any) -> None:
        burst = self._writes[0]
        burst.data.append((strobed(beat.wdata, int(beat.wstrb)), int(beat.wstrb)))
        self.beats["write"] += 1
        last = len(burst.data) == burst.beats
        if last != bool(int(beat.wlast)):
            self.breaches.append(f"w: last misplaced in the burst at 0x{burst.address:x}")
        if last:
            burst.due = self.cycle + self.behaviour.latency
            self._acknowledgements.append(self._writes.pop(0))

    def _acknowledge(self) -> None:
        burst = self._choose(self._acknowledgements)
        if burst is None:
            return
        self._acknowledgements.remove(burst)
        response = AxiResp.OKAY
        for n, (data, strobe) in enumerate(burst.data):
            address = burst.address + n * self.line_bytes
            if (fault := self.faults.get(("write", address))) is not None:
                response = fault
                continue
            try:
                self.memory.write(address, data.to_bytes(self.line_bytes, "little"), strobe)
            except OutsideError:
                response = AxiResp.DECERR
            except PermissionError:
                response = AxiResp.SLVERR
        self.b.send_nowait(self.b._transaction_obj(bid=burst.identifier, bresp=int(response)))


def strobed(data: Any, strobe: int) -> int:
    """The word that is written; bytes without a strobe may hold anything, unknown bits of a simulator with them.

    Raises ValueError for an unknown bit in a byte that is written.
    """
    if data.is_resolvable:
        return int(data)
    bits = str(data)
    lanes = (bits[at : at + 8] for at in range(0, len(bits), 8))  # the uppermost byte first
    count = len(bits) // 8
    kept = (lane if strobe >> (count - 1 - n) & 1 else "0" * 8 for n, lane in enumerate(lanes))
    return int("".join(kept), 2)
