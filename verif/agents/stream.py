"""Stream agents: a driver, a receiver and a monitor for Amaranth's ``valid``/``ready``/``payload`` ports."""

from collections import deque
from collections.abc import Callable
from typing import Any

import cocotb
from cocotb.triggers import ReadOnly, RisingEdge

from .pauses import Pattern, never

__all__ = ["StreamDriver", "StreamMonitor", "StreamReceiver", "bits_of"]


def bits_of(handle: Any) -> int:
    """A payload's bits. Unknown bits of a four-state simulator read as 0: lanes without data were never written."""
    value = handle.value
    try:
        return int(value)
    except ValueError:
        return int(value.resolve("zeros"))


class _Port:
    """Handles of one stream port."""

    def __init__(self, dut: Any, name: str, clock: Any) -> None:
        self.name = name
        self.clock = clock
        self.valid = getattr(dut, f"{name}__valid")
        self.ready = getattr(dut, f"{name}__ready")
        self.payload = getattr(dut, f"{name}__payload")
        self._task: Any = None

    def start(self) -> None:
        self._task = cocotb.start_soon(self._run())

    async def _run(self) -> None:
        raise NotImplementedError


class StreamDriver(_Port):
    """Sends the queued items. Inputs change after a rising edge; ``valid`` stays up until the item is taken.

    Parameters
    ----------
    pause: pattern of cycles in which no new item is offered.
    """

    def __init__(self, dut: Any, name: str, clock: Any, pause: Pattern = never) -> None:
        super().__init__(dut, name, clock)
        self.queue: deque[int] = deque()
        self.pause = pause
        self.sent = 0
        self.valid.value = 0
        self.payload.value = 0

    def stop(self) -> None:
        """Stop at once and withdraw the offered item: for a reset."""
        if self._task is not None:
            self._task.cancel()
        self.valid.value = 0
        self.queue.clear()

    def send(self, bits: int) -> None:
        self.queue.append(bits)

    @property
    def idle(self) -> bool:
        return not self.queue

    async def _run(self) -> None:
        pauses = self.pause()
        while True:
            if not self.queue or next(pauses):
                await RisingEdge(self.clock)
                continue
            self.payload.value = self.queue[0]
            self.valid.value = 1
            while True:
                await ReadOnly()
                taken = bool(self.ready.value)
                await RisingEdge(self.clock)
                if taken:
                    break
            self.queue.popleft()
            self.sent += 1
            self.valid.value = 0


class StreamReceiver(_Port):
    """Drives ``ready`` by a pattern, without looking at ``valid``.

    Parameters
    ----------
    keep: once up, ``ready`` stays until an item was taken, like that of a queue.
    """

    def __init__(self, dut: Any, name: str, clock: Any, pause: Pattern = never, *, keep: bool = False) -> None:
        super().__init__(dut, name, clock)
        self.pause = pause
        self.keep = keep
        self.ready.value = 0

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
        self.ready.value = 0

    async def _run(self) -> None:
        for paused in self.pause():
            self.ready.value = not paused
            while self.keep and not paused:
                await ReadOnly()
                taken = bool(self.valid.value)
                await RisingEdge(self.clock)
                if taken:
                    break
            else:
                await RisingEdge(self.clock)


class StreamMonitor(_Port):
    """Watches the pins: reports each item taken, and breaches of the stream's rules.

    Parameters
    ----------
    observe: called with the payload's bits of each item.
    breach: called with a text when an offered item is withdrawn or changes before it is taken.
    reset: handle; while it is up nothing is watched.
    meaning: the bits that must not change while an item waits; all of them by default.
    """

    def __init__(
        self,
        dut: Any,
        name: str,
        clock: Any,
        observe: Callable[[int], None],
        breach: Callable[[str], None],
        reset: Any = None,
        meaning: Callable[[int], Any] = int,
    ) -> None:
        super().__init__(dut, name, clock)
        self.meaning = meaning
        self.observe = observe
        self.breach = breach
        self.reset = reset
        self.items = 0
        self.stalled_cycles = 0
        self.last_cycle = 0
        self.cycle = 0

    async def _run(self) -> None:
        offered: int | None = None
        while True:
            await ReadOnly()
            if self.reset is not None and bool(self.reset.value):
                offered = None
            else:
                valid = bool(self.valid.value)
                if offered is not None and not valid:
                    self.breach(f"{self.name}: an offered item was withdrawn")
                bits = bits_of(self.payload) if valid else None
                if offered is not None and bits is not None and self.meaning(bits) != self.meaning(offered):
                    self.breach(f"{self.name}: an offered item changed from 0x{offered:x} to 0x{bits:x}")
                if valid and bool(self.ready.value):
                    self.items += 1
                    self.last_cycle = self.cycle
                    self.observe(bits if bits is not None else 0)
                    offered = None
                else:
                    offered = bits
                    self.stalled_cycles += valid
            self.cycle += 1
            await RisingEdge(self.clock)
