"""AXI4 memory for the Amaranth simulator: reorders, interleaves, stalls, answers with errors, checks the manager."""

import random
from dataclasses import dataclass, field
from typing import Any

__all__ = ["AxiMemory", "Burst"]

OKAY, SLVERR, DECERR = 0, 2, 3
PAGE = 4096


@dataclass
class Burst:
    """One accepted AR or AW: what is left of it, and when it may be answered."""

    client: int
    address: int
    beats: int
    ready_at: int
    done: int = 0
    data: list[tuple[int, int]] = field(default_factory=list)


class AxiMemory:
    """Subordinate on ``bus``. ``run(ctx)`` is a background testbench; memory is a dictionary of bytes over a poison.

    ``latency`` is a range in cycles; ``stall`` the chance that a ready or valid of the memory is low in a cycle;
    ``shuffle`` lets responses of different identifiers overtake each other, R beats included. ``bad`` maps a line
    address to the response it gives. ``reset`` is the signal that resets manager and channels.
    """

    POISON = 0xA5

    def __init__(
        self,
        bus: Any,
        *,
        reset: Any,
        seed: int = 0,
        latency: tuple[int, int] = (1, 1),
        stall: float = 0.0,
        shuffle: bool = False,
        outstanding: int | None = None,
        bad: dict[int, int] | None = None,
    ) -> None:
        self.bus = bus
        self.reset = reset
        self.random = random.Random(seed)
        self.latency = latency
        self.stall = stall
        self.shuffle = shuffle
        self.outstanding = outstanding
        self.bad = bad or {}
        self.line_bytes = bus.signature.data_width // 8
        self.bytes: dict[int, int] = {}
        self.written: set[int] = set()
        self.cycle = 0
        self.reads: list[Burst] = []
        self.writes: list[Burst] = []  # AW accepted, not yet acknowledged
        self.log: list[tuple[str, int, int, int]] = []  # channel, client, address, beats
        self.events: dict[str, list[int]] = {"ar": [], "r": [], "aw": [], "w": [], "b": []}  # cycles of transfers

    def load(self, address: int, line: int) -> None:
        for n in range(self.line_bytes):
            self.bytes[address + n] = line >> 8 * n & 0xFF

    def line(self, address: int) -> int:
        return sum(self.bytes.get(address + n, self.POISON) << 8 * n for n in range(self.line_bytes))

    def _goes(self) -> bool:
        return self.stall == 0.0 or self.random.random() >= self.stall

    def _due(self) -> int:
        return self.cycle + self.random.randint(*self.latency)

    def _choose(self, bursts: list[Burst]) -> Burst | None:
        """A burst that may be answered now: an oldest of its identifier if shuffling, else the oldest of all."""
        seen: set[int] = set()
        heads = []
        for burst in bursts:
            if burst.client not in seen:
                seen.add(burst.client)
                heads.append(burst)
        heads = [burst for burst in (heads if self.shuffle else bursts[:1]) if burst.ready_at <= self.cycle]
        if not heads:
            return None
        return self.random.choice(heads) if self.shuffle else heads[0]

    def _check_command(self, channel: str, payload: tuple[int, ...]) -> Burst:
        client, address, length, size, burst, cache, protection = payload
        beats = length + 1
        assert 1 << size == self.line_bytes, f"{channel}size {size} is not the bus width"
        assert burst == 1, f"{channel}burst {burst} is not INCR"
        assert cache == 0b0011, f"{channel}cache {cache:04b} is not normal, non-cacheable, bufferable memory"
        assert protection == 0, f"{channel}prot {protection:03b} is not an unprivileged, secure data access"
        assert address % self.line_bytes == 0, f"{channel}addr 0x{address:x} is not aligned to the bus"
        last = address + beats * self.line_bytes - 1
        assert address // PAGE == last // PAGE, f"{channel} burst 0x{address:x} x {beats} crosses 4 KiB"
        self.log.append((channel, client, address, beats))
        self.events[channel].append(self.cycle)
        return Burst(client, address, beats, self._due())

    async def run(self, ctx: Any) -> None:
        bus = self.bus
        commands = {
            channel: tuple(
                getattr(bus, f"{channel}{name}") for name in ("id", "addr", "len", "size", "burst", "cache", "prot")
            )
            for channel in ("ar", "aw")
        }
        w_payload = (bus.wdata, bus.wstrb, bus.wlast)
        stalled: dict[str, tuple[int, ...]] = {}
        r_now: Burst | None = None
        b_now: Burst | None = None
        while True:
            ready = {channel: self._goes() for channel in ("ar", "aw", "w")}
            for channel, value in ready.items():
                ctx.set(getattr(bus, f"{channel}ready"), value)
            # A response on offer stays until it is taken.
            if r_now is None and self._goes():
                r_now = self._choose(self.reads)
                if r_now is not None:
                    line = r_now.address + r_now.done * self.line_bytes
                    ctx.set(bus.rid, r_now.client)
                    ctx.set(bus.rdata, self.line(line))
                    ctx.set(bus.rresp, self.bad.get(line, OKAY))
                    ctx.set(bus.rlast, r_now.done == r_now.beats - 1)
            ctx.set(bus.rvalid, r_now is not None)
            if b_now is None and self._goes():
                finished = [burst for burst in self.writes if burst.done == burst.beats]
                b_now = self._choose([b for b in finished if b is self._oldest(b.client)])
                if b_now is not None:
                    lines = [b_now.address + n * self.line_bytes for n in range(b_now.beats)]
                    ctx.set(bus.bid, b_now.client)
                    ctx.set(bus.bresp, max(self.bad.get(line, OKAY) for line in lines))
            ctx.set(bus.bvalid, b_now is not None)

            sampled = await ctx.tick().sample(
                self.reset,
                bus.arvalid,
                bus.awvalid,
                bus.wvalid,
                bus.rready,
                bus.bready,
                *commands["ar"],
                *commands["aw"],
                *w_payload,
            )
            _, _, reset, arvalid, awvalid, wvalid, rready, bready, *payloads = sampled
            if reset:
                stalled.clear()
                self.reads.clear()
                self.writes.clear()
                r_now = b_now = None
                continue
            payload = {"ar": tuple(payloads[:7]), "aw": tuple(payloads[7:14]), "w": tuple(payloads[14:])}
            valid = {"ar": arvalid, "aw": awvalid, "w": wvalid}
            self.cycle += 1

            for channel, before in list(stalled.items()):
                assert valid[channel], f"{channel}valid fell before {channel}ready"
                assert payload[channel] == before, f"{channel} payload changed while stalled"
            stalled = {c: payload[c] for c in valid if valid[c] and not ready[c]}

            open_before = [burst for burst in self.writes if burst.done < burst.beats]
            if arvalid and ready["ar"]:
                self.reads.append(self._check_command("ar", payload["ar"]))
            if awvalid and ready["aw"]:
                self.writes.append(self._check_command("aw", payload["aw"]))
            if wvalid:
                assert open_before, "W before its AW was accepted"
            if wvalid and ready["w"]:
                self._write_beat(open_before[0], *payload["w"])
            if r_now is not None and rready:
                self.events["r"].append(self.cycle)
                r_now.done += 1
                if r_now.done == r_now.beats:
                    self.reads.remove(r_now)
                r_now = None
            if b_now is not None and bready:
                self.events["b"].append(self.cycle)
                self.writes.remove(b_now)
                b_now = None
            if self.outstanding is not None:
                assert len(self.reads) <= self.outstanding, "too many outstanding reads"
                assert len(self.writes) <= self.outstanding, "too many outstanding writes"

    def _oldest(self, client: int) -> Burst:
        return next(burst for burst in self.writes if burst.client == client)

    def _write_beat(self, burst: Burst, value: int, strobe: int, last: int) -> None:
        address = burst.address + burst.done * self.line_bytes
        burst.done += 1
        assert bool(last) == (burst.done == burst.beats), "WLAST is not on the last beat, or on another"
        self.events["w"].append(self.cycle)
        if burst.done == burst.beats:
            burst.ready_at = self._due()
        if self.bad.get(address, OKAY) >= SLVERR:
            return
        for n in range(self.line_bytes):
            if strobe >> n & 1:
                self.bytes[address + n] = value >> 8 * n & 0xFF
                self.written.add(address + n)
