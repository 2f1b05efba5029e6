"""Shared by the benches of blocks that take one vector a cycle: the model answers each vector that goes in."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from verif.benches.stream_bench import StreamBench
from verif.coverage import Coverage

__all__ = ["VectorBench"]


class VectorBench(StreamBench, ABC):
    """Vectors into ``i``, results out of ``o``. Subclasses say what is to come out for each."""

    coverage: Coverage

    def __init__(self, dut: Any, idle: str = "none", backpressure: str = "none") -> None:
        super().__init__(dut, drive=["i"], receive=["o"], idle=idle, backpressure=backpressure)
        self.inputs = int(self.block.parameters["inputs"])
        self.cycle = 0
        self.entered: list[int] = []  # cycles in which vectors went in, and in which they came
        self.left: list[int] = []

    @abstractmethod
    def result(self, vector: Any) -> Any:
        """What comes out for the next vector."""

    def every_cycle(self) -> None:
        self.cycle += 1

    def taken(self, port: str, item: Any) -> None:
        self.entered.append(self.cycle)
        self.board.expect("o", self.result(item))

    def came(self, port: str, item: Any) -> None:
        self.left.append(self.cycle)
        super().came(port, item)

    async def settle(self) -> None:
        await super().settle()
        self.coverage.hit("stalled", self.monitors["o"].stalled_cycles > 0)
        self.coverage.hit("idle", self.entered[-1] - self.entered[0] >= len(self.entered))

    async def any_pauses(self, *vectors: Any) -> None:
        """Everything comes out, as the model says."""
        await self.start()
        self.send("i", *vectors)
        await self.settle()
        self.coverage.save()

    async def full_rate(self, *vectors: Any) -> None:
        """With neither side pausing, a vector goes in each cycle and comes out after the latency."""
        await self.any_pauses(*vectors)
        latency = int(self.block.parameters["latency"])
        steps = [after - before for before, after in zip(self.entered[:-1], self.entered[1:], strict=True)]
        assert steps == [1] * (len(vectors) - 1), f"{self.board.context}: vectors went in with steps {steps}"
        delays = {out - into for into, out in zip(self.entered, self.left, strict=True)}
        assert delays == {latency}, f"{self.board.context}: delays {delays}, latency {latency}"
        self.coverage.hit("full_rate")
        self.coverage.save()

    async def reset_in_the_middle(self, vector: Callable[[], Any]) -> None:
        """A reset drops what is inside; what is sent after it comes out as from the beginning."""
        await self.start()
        for count in (1, int(self.block.parameters["latency"]), 40):
            self.send("i", *(vector() for _ in range(50)))
            await self.cycles(2 + count)
            self.coverage.hit("reset", self.board.outstanding() > 0)
            self.drivers["i"].queue.clear()
            await self.restart()
            self.forget()
        self.send("i", *(vector() for _ in range(20)))
        await self.settle()
        self.coverage.save()

    def forget(self) -> None:
        """The model after a reset."""
