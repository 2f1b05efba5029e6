"""The search that every policy needs: how large a side may be."""

from collections.abc import Callable

__all__ = ["largest_good"]


def largest_good(limit: int, good: Callable[[int], bool], least: int = 1) -> int:
    """A number from ``least`` (taken as good) to ``limit`` that is good while the next is not; the limit first."""
    if good(limit):
        return limit
    low, high = least, limit
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if good(middle) else (low, middle)
    return low
