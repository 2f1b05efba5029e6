"""Pause patterns: endless streams of booleans, one a cycle, true in a cycle in which a driver or receiver pauses."""

import random
from collections.abc import Callable, Iterator

__all__ = ["PATTERN_NAMES", "Pattern", "every", "never", "pattern", "sometimes"]

PATTERN_NAMES = ("none", "fourth", "random")

Pattern = Callable[[], Iterator[bool]]


def never() -> Iterator[bool]:
    """Never a pause."""
    while True:
        yield False


def every(count: int) -> Pattern:
    """One pause in each ``count`` cycles."""

    def cycles() -> Iterator[bool]:
        while True:
            for cycle in range(count):
                yield cycle == count - 1

    return cycles


def sometimes(chance: float, seed: object) -> Pattern:
    """A pause with this chance in each cycle, and now and then a long one."""

    def cycles() -> Iterator[bool]:
        rng = random.Random(str(seed))
        while True:
            if rng.random() < 0.01:
                yield from [True] * rng.randrange(5, 40)
            yield rng.random() < chance

    return cycles


def pattern(name: str, seed: object) -> Pattern:
    """Pattern by the name that benches use as a parameter: ``none``, ``fourth`` or ``random``."""
    return {"none": never, "fourth": every(4), "random": sometimes(0.5, seed)}[name]
