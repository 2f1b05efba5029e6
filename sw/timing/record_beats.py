"""How many beats of the bus hold packed records."""

from math import gcd

from sw.formats.memory_csr import ELEMENT_BYTES
from sw.jit import njit

__all__ = ["beats_of_lines", "expected_beats", "line_beats", "record_beats"]


@njit(cache=True)
def record_beats(begin: int, end: int, width: int, beat: int) -> int:
    """Beats of ``beat`` bits that hold records ``begin`` to ``end - 1`` of ``width`` bits each; none where these are none."""
    return -(-end * width // beat) - begin * width // beat if begin < end else 0


@njit(cache=True)
def beats_of_lines(first: int, stop: int, width: int) -> int:
    """Beats that hold lines ``first`` to ``stop - 1`` of records of ``width`` bits (``rtl.mint.reader.line_range``)."""
    return record_beats(first, stop, width, 8 * ELEMENT_BYTES)


@njit(cache=True)
def line_beats(width: int) -> float:
    """What a line of records of ``width`` bits takes of a beat."""
    return width / (8 * ELEMENT_BYTES)


def expected_beats(lines: float, runs: float, width: int) -> float:
    """Beats that hold so many lines in so many runs, each of which begins at any line."""
    return lines * line_beats(width) + runs * (1 - line_beats(gcd(width, 8 * ELEMENT_BYTES)))
