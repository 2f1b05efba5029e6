"""What stands in for the memory engine in tests of single accessors: memory that answers client ports."""

from collections import deque
from random import Random
from typing import Any

import numpy as np

__all__ = ["ClientMemory", "patient"]


def patient(limit: int) -> Any:
    """Counts cycles for a wait and gives up with a message instead of waiting for ever."""
    yield from range(limit)
    raise AssertionError(f"nothing happened for {limit} cycles")


class ClientMemory:
    """Byte-addressed memory with one coroutine for each read or write client port.

    ``hurry`` is the chance, each cycle, that a port which may act does so.
    """

    def __init__(self, size: int, beat_bytes: int, *, seed: int, hurry: float = 0.7) -> None:
        self.bytes = np.full(size, 0xAA, dtype=np.uint8)
        self.beat_bytes = beat_bytes
        self.random = Random(seed)
        self.hurry = hurry
        self.beats_read: dict[int, int] = {}
        self.beats_written: dict[int, int] = {}

    def store(self, address: int, array: np.ndarray) -> None:
        raw = np.ascontiguousarray(array).view(np.uint8).ravel()
        self.bytes[address : address + raw.size] = raw

    def words(self, address: int, count: int) -> np.ndarray:
        return self.bytes[address : address + 4 * count].view(np.uint32).copy()

    def beat(self, address: int) -> int:
        return int.from_bytes(self.bytes[address : address + self.beat_bytes].tobytes(), "little")

    def reader(self, request: Any, answer: Any, port: int, hurry: float | None = None) -> Any:
        """Coroutine for a read client: requests are answered in order, after a random while."""
        chance = self.hurry if hurry is None else hurry

        async def run(ctx: Any) -> None:
            waiting: deque[int] = deque()
            offered = False
            take = False
            while True:
                ctx.set(request.ready, take := self.random.random() < chance)
                _, _, asked, payload, used = await ctx.tick().sample(request.valid, request.payload, answer.ready)
                if take and asked:
                    start = payload.address // self.beat_bytes * self.beat_bytes
                    assert payload.beats > 0, f"client {port} asks for no beats"
                    for n in range(payload.beats):
                        address = start + n * self.beat_bytes
                        assert address + self.beat_bytes <= self.bytes.size, f"client {port} reads at {address:#x}"
                        waiting.append(address)
                if offered and used:
                    waiting.popleft()
                    self.beats_read[port] = self.beats_read.get(port, 0) + 1
                    offered = False
                if not offered and waiting and self.random.random() < chance:
                    offered = True
                ctx.set(answer.valid, offered)
                if offered:
                    ctx.set(answer.payload, self.beat(waiting[0]))

        return run

    def writer(self, request: Any, beats: Any, port: int, retired: Any = None, latency: int = 40) -> Any:
        """Coroutine for a write client: data may come before its request.

        With ``retired``, the client is told of each request up to ``latency`` cycles after its last beat, and its bytes
        are not in memory before. Up to 8 requests are under way.
        """

        async def run(ctx: Any) -> None:
            addresses: deque[int] = deque()
            data: deque[tuple[int, int]] = deque()
            asked_for: deque[int] = deque()  # beats of each request not retired yet
            stores: deque[tuple[int, int, int]] = deque()
            wait = 0
            while True:
                if retired is not None:
                    wait = max(0, wait - 1)
                    ends = bool(asked_for) and len(stores) >= asked_for[0] and not wait
                    ctx.set(retired, ends)
                    if ends:
                        for _ in range(asked_for.popleft()):
                            self._put(*stores.popleft())
                        wait = 0 if self.random.random() < 0.7 else self.random.randrange(latency)
                take = self.random.random() < self.hurry and len(asked_for) < 8
                take_data = self.random.random() < self.hurry
                ctx.set(request.ready, take)
                ctx.set(beats.ready, take_data)
                _, _, asked, payload, offered, beat = await ctx.tick().sample(
                    request.valid, request.payload, beats.valid, beats.payload
                )
                if take and asked:
                    assert payload.address % self.beat_bytes == 0
                    addresses.extend(payload.address + n * self.beat_bytes for n in range(payload.beats))
                    if retired is not None:
                        asked_for.append(payload.beats)
                if take_data and offered:
                    data.append((beat.data, beat.strobe))
                while addresses and data:
                    address = addresses.popleft()
                    value, strobe = data.popleft()
                    self.beats_written[port] = self.beats_written.get(port, 0) + 1
                    if retired is not None:
                        stores.append((address, value, strobe))
                    else:
                        self._put(address, value, strobe)

        return run

    def _put(self, address: int, value: int, strobe: int) -> None:
        for n in range(self.beat_bytes):
            if strobe >> n & 1:
                self.bytes[address + n] = value >> 8 * n & 0xFF
