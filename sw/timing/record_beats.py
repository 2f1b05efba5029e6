"""How many beats of the bus hold lines, of packed records and plain.

The pitch of a line says how far apart lines begin in memory, in 64ths of a beat: bits of a record times the beats of a line on
chip.
"""

from math import gcd

from sw.formats.memory_csr import ELEMENT_BYTES
from sw.jit import njit

__all__ = ["PITCH", "beats_of_lines", "expected_beats", "fetched_lines", "line_beats", "record_beats", "spilled_lines"]

# Of lines that lie in memory as on chip, one beat each.
PITCH = 8 * ELEMENT_BYTES


@njit(cache=True)
def record_beats(begin: int, end: int, width: int, beat: int) -> int:
    """Beats of ``beat`` bits that hold records ``begin`` to ``end - 1`` of ``width`` bits each; none where these are none."""
    return -(-end * width // beat) - begin * width // beat if begin < end else 0


@njit(cache=True)
def beats_of_lines(first: int, stop: int, pitch: int) -> int:
    """Beats that hold lines ``first`` to ``stop - 1`` (``rtl.mint.reader.line_range``)."""
    return record_beats(first, stop, pitch, PITCH)


@njit(cache=True)
def fetched_lines(begin: int, length: int, lanes: int) -> int:
    """Lines that hold the nonzeros from ``begin`` on; none for an empty fiber."""
    if length == 0:
        return 0
    return -(-(begin + length) // lanes) - begin // lanes


@njit(cache=True)
def spilled_lines(begin: int, length: int, lanes: int, kept: int) -> int:
    """Lines in memory of a scratch fiber that begins at nonzero ``begin`` of its slot, whose first lines are ``kept`` on chip."""
    if length == 0:
        return 0
    return max(-(-(begin + length) // lanes), kept) - max(begin // lanes, kept)


@njit(cache=True)
def line_beats(pitch: int) -> float:
    """Beats that a line takes."""
    return pitch / PITCH


def expected_beats(lines: float, runs: float, pitch: int) -> float:
    """Beats that hold so many lines in so many runs, each of which begins at any line."""
    return lines * line_beats(pitch) + runs * (1 - line_beats(gcd(pitch, PITCH)))
