"""Memory behind client ports of the memory engine: requests in order, data after a while, writes with strobes.

Stands in for the memory engine where a bench drives one accessor. What a port asks for is checked against the engine's
contract: beats, bounds, alignment of writes.
"""

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge
from numpy.typing import NDArray

from .layouts import BlockDescription
from .pauses import Pattern, never
from .stream import StreamDriver, StreamMonitor, StreamReceiver

__all__ = ["POISON", "ClientMemory"]

POISON = 0xAA


class _Retirer:
    """Reports to a write client that its requests are in memory, oldest first, one a cycle at most, and writes them then."""

    def __init__(
        self, dut: Any, pin: str, ready: Callable[[int], bool], store: Callable[[int], None], pause: Pattern
    ) -> None:
        self.clock = dut.clk
        self.pin = getattr(dut, pin)
        self.ready = ready
        self.store = store
        self.pause = pause
        self.requests: deque[int] = deque()  # beats of each
        self.pin.value = 0
        self._task: Any = None

    def start(self) -> None:
        self._task = cocotb.start_soon(self._run())

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
        self.requests.clear()
        self.pin.value = 0

    async def _run(self) -> None:
        for paused in self.pause():
            await RisingEdge(self.clock)
            ends = not paused and bool(self.requests) and self.ready(self.requests[0])
            self.pin.value = int(ends)
            if ends:
                self.store(self.requests.popleft())


class ClientMemory:
    """Byte-addressed memory of ``size`` bytes, poisoned where nothing was stored.

    A read returns the memory at the time its request is taken; a write reaches memory with its last word.
    ``beats`` counts the beats of each port; ``breaches`` lists requests that the memory engine would not serve.
    """

    def __init__(self, dut: Any, block: BlockDescription, size: int, line_bytes: int) -> None:
        self.dut = dut
        self.block = block
        self.line_bytes = line_bytes
        self.bytes: NDArray[np.uint8] = np.full(size, POISON, np.uint8)
        self.beats: dict[str, int] = {}
        self.breaches: list[str] = []
        self._agents: list[Any] = []
        self._monitors: list[Any] = []
        self._drivers: list[StreamDriver] = []
        self._writes: dict[str, tuple[deque[int], deque[dict[str, int]]]] = {}

    def reader(self, request: str, answer: str, grant: Pattern, pause: Pattern) -> None:
        """Serve a read client; ``grant`` delays requests, ``pause`` the data."""
        layout = self.block.layout(request)
        driver = StreamDriver(self.dut, answer, self.dut.clk, pause)
        self.beats[request] = 0

        def asked(bits: int) -> None:
            item = layout.unpack(bits)
            start = item["address"] // self.line_bytes * self.line_bytes
            end = start + item["beats"] * self.line_bytes
            if not item["beats"] or end > self.bytes.size:
                self.breaches.append(f"{request}: {item['beats']} beats at 0x{item['address']:x}")
                return
            self.beats[request] += item["beats"]
            for address in range(start, end, self.line_bytes):
                driver.send(int.from_bytes(self.bytes[address : address + self.line_bytes].tobytes(), "little"))

        self._drivers.append(driver)
        self._serve(request, grant, asked)

    def writer(
        self,
        request: str,
        data: str,
        grant: Pattern,
        take: Pattern,
        retired: str = "",
        retire_pause: Pattern | None = None,
    ) -> None:
        """Serve a write client; its data may come before the request.

        ``retired``: the pin that reports each request to the client when it is in memory. ``retire_pause`` delays that, and the
        write itself.
        """
        layout, beat = self.block.layout(request), self.block.layout(data)
        addresses, words = self._writes[request] = deque(), deque()
        self.beats[request] = 0

        def asked(bits: int) -> None:
            item = layout.unpack(bits)
            start, end = item["address"], item["address"] + item["beats"] * self.line_bytes
            if start % self.line_bytes or end > self.bytes.size:
                self.breaches.append(f"{request}: {item['beats']} beats at 0x{start:x}")
                return
            addresses.extend(range(start, end, self.line_bytes))
            if retirer:
                retirer.requests.append(item["beats"])
            else:
                self._store(request)

        def came(bits: int) -> None:
            words.append(beat.unpack(bits))
            if not retirer:
                self._store(request)

        retirer: _Retirer | None = None
        if retired:
            store = partial(self._store, request)
            retirer = _Retirer(self.dut, retired, lambda beats: len(words) >= beats, store, retire_pause or never)
            self._agents.append(retirer)
        self._serve(request, grant, asked)
        self._serve(data, take, came)

    def _serve(self, port: str, grant: Pattern, observe: Any) -> None:
        self._agents.append(StreamReceiver(self.dut, port, self.dut.clk, grant))
        self._monitors.append(StreamMonitor(self.dut, port, self.dut.clk, observe, self.breaches.append, self.dut.rst))

    def _store(self, request: str, beats: int = 1 << 30) -> None:
        """Move up to that many arrived beats into memory."""
        addresses, words = self._writes[request]
        while addresses and words and beats:
            beats -= 1
            address, word = addresses.popleft(), words.popleft()
            self.beats[request] += 1
            for n in range(self.line_bytes):
                if word["strobe"] >> n & 1:
                    self.bytes[address + n] = word["data"] >> 8 * n & 0xFF

    @property
    def quiet(self) -> bool:
        """All requests are answered, and all data are stored."""
        return all(driver.idle for driver in self._drivers) and not any(
            addresses or words for addresses, words in self._writes.values()
        )

    def start(self) -> None:
        for agent in (*self._drivers, *self._agents):
            agent.start()
        for monitor in self._monitors:
            monitor.start()

    def stop(self) -> None:
        """Drop everything in flight: the block is being reset."""
        for agent in (*self._drivers, *self._agents):
            agent.stop()
        for addresses, words in self._writes.values():
            addresses.clear()
            words.clear()

    def resume(self) -> None:
        """Serve again after :meth:`stop`."""
        for agent in (*self._drivers, *self._agents):
            agent.start()

    def store(self, address: int, array: NDArray[Any]) -> None:
        """Put an array's bytes at an address."""
        raw = np.ascontiguousarray(array).view(np.uint8).ravel()
        self.bytes[address : address + raw.size] = raw

    def words(self, address: int, count: int) -> list[int]:
        """32-bit words at an address."""
        return [int(word) for word in self.bytes[address : address + 4 * count].view(np.uint32)]
