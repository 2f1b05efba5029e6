"""Numbers in lists, each in one list at most: put into one, and taken out of it, in constant time.

A set of lists is three arrays: ``first`` has a number of each list, -1 for none; ``following`` and ``preceding`` have the
neighbours of each number in its list, -1 at the ends. What a number outside all lists has there means nothing.
"""

from typing import Any

from numpy.typing import NDArray

from sw.jit import njit

__all__ = ["link", "unlink"]


@njit(cache=True, counted=False)
def link(first: NDArray[Any], following: NDArray[Any], preceding: NDArray[Any], which: int, number: int) -> None:
    """A number becomes the first of a list."""
    head = first[which]
    following[number], preceding[number] = head, -1
    if head >= 0:
        preceding[head] = number
    first[which] = number


@njit(cache=True, counted=False)
def unlink(first: NDArray[Any], following: NDArray[Any], preceding: NDArray[Any], which: int, number: int) -> None:
    """A number leaves the list that it is in."""
    before, after = preceding[number], following[number]
    if before >= 0:
        following[before] = after
    else:
        first[which] = after
    if after >= 0:
        preceding[after] = before
