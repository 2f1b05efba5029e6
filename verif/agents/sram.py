"""SRAM behind a block's read and write ports: answers a fixed number of cycles after the grant, as the banked SRAM does."""

from collections import deque
from typing import Any

import cocotb
from cocotb.triggers import ReadOnly, RisingEdge

from .layouts import BlockDescription
from .pauses import Pattern
from .stream import StreamMonitor, StreamReceiver

__all__ = ["SramAgent"]

NOISE = 0x5A5A_0000_1111_2222


class SramAgent:
    """Lines by address. A line is a list of lanes, each the 64 bits of a nonzero.

    Parameters
    ----------
    latency: cycles from a read's grant to its answer.
    """

    def __init__(self, dut: Any, block: BlockDescription, lanes: int, latency: int = 3) -> None:
        self.dut = dut
        self.block = block
        self.lanes = lanes
        self.latency = latency
        self.lines: dict[int, list[int]] = {}
        self.reads = 0
        self.breaches: list[str] = []
        self._agents: list[StreamReceiver] = []
        self._monitors: list[StreamMonitor] = []
        self._responses: list[tuple[Any, Any, deque[int | None]]] = []

    def line(self, address: int) -> list[int]:
        return self.lines.setdefault(address, [NOISE + address] * self.lanes)

    def nonzero(self, position: int) -> int:
        """The 64 bits at a position of a nonzero, counted from line 0."""
        return self.line(position // self.lanes)[position % self.lanes]

    def reader(self, request: str, response: str, grant: Pattern) -> None:
        layout = self.block.layout(response)
        pipeline: deque[int | None] = deque([None] * (self.latency - 1))

        def asked(address: int) -> None:
            self.reads += 1
            line = sum(lane << 64 * n for n, lane in enumerate(self.line(address)))
            pipeline[-1] = layout.pack({"valid": 1, "line": line})

        handle = getattr(self.dut, response)
        handle.value = 0
        self._responses.append((handle, layout, pipeline))
        self._serve(request, grant, asked)

    def writer(self, port: str, grant: Pattern) -> None:
        layout = self.block.layout(port)

        def came(bits: int) -> None:
            mask, address = layout.unpack(bits)["mask"], layout.unpack(bits)["address"]
            offset = layout.tree["fields"]["line"][0]
            line = self.line(address)
            for n in range(self.lanes):
                if mask >> n & 1:
                    line[n] = bits >> offset + 64 * n & (1 << 64) - 1

        self._serve(port, grant, came)

    def _serve(self, port: str, grant: Pattern, observe: Any) -> None:
        self._agents.append(StreamReceiver(self.dut, port, self.dut.clk, grant))
        self._monitors.append(StreamMonitor(self.dut, port, self.dut.clk, observe, self.breaches.append, self.dut.rst))

    def start(self) -> None:
        self.resume()
        for monitor in self._monitors:
            monitor.start()
        cocotb.start_soon(self._answer())

    def resume(self) -> None:
        for agent in self._agents:
            agent.start()

    def stop(self) -> None:
        """Drop everything in flight: the block is being reset."""
        for agent in self._agents:
            agent.stop()
        for _, _, pipeline in self._responses:
            for n in range(len(pipeline)):
                pipeline[n] = None

    async def _answer(self) -> None:
        # The monitors of this cycle have run when the edge comes: their last entry is due `latency` cycles later.
        while True:
            for _, _, pipeline in self._responses:
                pipeline.append(None)
            await ReadOnly()
            await RisingEdge(self.dut.clk)
            for handle, _, pipeline in self._responses:
                answer = pipeline.popleft()
                handle.value = 0 if answer is None else answer
