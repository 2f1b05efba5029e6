"""Scoreboard: expected items against received ones. A mismatch, a surplus and a shortage are all failures."""

from collections import deque
from collections.abc import Callable
from typing import Any

__all__ = ["Scoreboard"]

RECENT = 10


class Scoreboard:
    """In-order comparison of any number of named streams.

    ``expect`` is fed by the model, ``observe`` by monitors that watch pins, in either order of time. ``check`` at the end
    of a test raises AssertionError with everything that is wrong; it must be called, or nothing is compared.

    Parameters
    ----------
    context: put before the message: seed and parameters that repeat the run.
    show: turns an item into text.
    """

    def __init__(self, context: str = "", show: Callable[[Any], str] = repr) -> None:
        self.context = context
        self.show = show
        self._expected: dict[str, deque[Any]] = {}
        self._observed: dict[str, deque[Any]] = {}
        self._matched: dict[str, int] = {}
        self._recent: dict[str, deque[str]] = {}
        self.failures: list[str] = []

    def expect(self, stream: str, item: Any) -> None:
        """``item`` is the next one of this stream."""
        self._expected.setdefault(stream, deque()).append(item)
        self._match(stream)

    def observe(self, stream: str, item: Any) -> None:
        """``item`` came."""
        self._observed.setdefault(stream, deque()).append(item)
        self._match(stream)

    def outstanding(self, stream: str | None = None) -> int:
        """Items that are expected and have not come."""
        wanted = self._expected.values() if stream is None else [self._expected.get(stream, deque())]
        return sum(len(queue) for queue in wanted)

    def matched(self, stream: str) -> int:
        """Items of this stream that came as expected."""
        return self._matched.get(stream, 0)

    def fail(self, text: str) -> None:
        """Note a failure that no comparison finds."""
        self.failures.append(text)

    def forget(self) -> None:
        """Drop missing and surplus items: after a reset."""
        self._expected.clear()
        self._observed.clear()

    def check(self) -> None:
        """Raise AssertionError unless everything expected came, and nothing else."""
        problems = list(self.failures)
        for stream, queue in self._expected.items():
            if queue:
                problems.append(
                    f"{stream}: {len(queue)} items never came after {self.matched(stream)}, first {self.show(queue[0])}"
                )
        for stream, queue in self._observed.items():
            if queue:
                problems.append(
                    f"{stream}: {len(queue)} items too many after {self.matched(stream)}, first {self.show(queue[0])}"
                )
        assert not problems, "\n".join([*([self.context] if self.context else []), *problems])

    def _match(self, stream: str) -> None:
        expected, observed = self._expected.get(stream), self._observed.get(stream)
        while expected and observed:
            wanted, came = expected.popleft(), observed.popleft()
            recent = self._recent.setdefault(stream, deque(maxlen=RECENT))
            recent.append(self.show(came))
            number = self._matched[stream] = self.matched(stream) + 1
            if wanted != came and len(self.failures) < RECENT:
                self.failures.append(
                    f"{stream}: item {number} is {self.show(came)}, expected {self.show(wanted)}; "
                    f"the last ones: {', '.join(recent)}"
                )
