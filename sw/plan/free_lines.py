"""Lines of a partition that are free, as runs: the shortest one that is long enough is found at once."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sw.jit import njit

from .gather import Index
from .linked import link, unlink

__all__ = ["FreeLines", "claim", "free_lines_of", "release", "shortest_run"]


class FreeLines(NamedTuple):
    """Who has each line, and the free ones as runs, which are in lists by their length.

    Parameters
    ----------
    owner: int64[lines], the number that has it; -1 where it is free.
    length: int64[lines], of the run, at its first and at its last line; other places mean nothing.
    first: int64[lines + 1], a run of each length; -1 for none. following, preceding: int64[lines], of the same length, by
        first line.
    lengths: uint64, a bit for each length that there is; words: uint64, a bit for each of its words that is not 0.
    """

    owner: Index
    length: Index
    first: Index
    following: Index
    preceding: Index
    lengths: NDArray[np.uint64]
    words: NDArray[np.uint64]


@njit(cache=True)
def free_lines_of(lines: int) -> FreeLines:
    """A partition of so many lines, all of them free."""
    found = FreeLines(
        np.full(lines, -1, np.int64),
        np.zeros(lines, np.int64),
        np.full(lines + 1, -1, np.int64),
        np.full(lines, -1, np.int64),
        np.full(lines, -1, np.int64),
        np.zeros((lines >> 6) + 1, np.uint64),
        np.zeros((lines >> 12) + 1, np.uint64),
    )
    if lines > 0:
        _add(found, 0, lines)
    return found


@njit(cache=True, counted=False)
def _add(free: FreeLines, line: int, length: int) -> None:
    free.length[line] = length
    free.length[line + length - 1] = length
    link(free.first, free.following, free.preceding, length, line)
    free.lengths[length >> 6] |= np.uint64(1) << np.uint64(length & 63)
    free.words[length >> 12] |= np.uint64(1) << np.uint64((length >> 6) & 63)


@njit(cache=True, counted=False)
def _take(free: FreeLines, line: int, length: int) -> None:
    unlink(free.first, free.following, free.preceding, length, line)
    if free.first[length] < 0:
        free.lengths[length >> 6] ^= np.uint64(1) << np.uint64(length & 63)
        if free.lengths[length >> 6] == 0:
            free.words[length >> 12] ^= np.uint64(1) << np.uint64((length >> 6) & 63)


@njit(cache=True, counted=False)
def _next_bit(words: NDArray[np.uint64], first: int) -> int:
    """The first bit from number ``first`` on that is set in its own word or a later one; -1 for none."""
    if first >> 6 >= len(words):
        return -1
    word, number = first >> 6, first
    bits = words[word] >> np.uint64(first & 63)
    while bits == 0:
        word += 1
        if word == len(words):
            return -1
        bits, number = words[word], word << 6
    for step in (32, 16, 8, 4, 2, 1):
        if bits & ((np.uint64(1) << np.uint64(step)) - np.uint64(1)) == 0:
            bits >>= np.uint64(step)
            number += step
    return number


@njit(cache=True, counted=False)
def shortest_run(free: FreeLines, lines: int) -> int:
    """First line of the shortest run of at least so many lines, one or more; -1 where there is none."""
    if lines >= len(free.first):
        return -1
    word = lines >> 6
    if free.lengths[word] >> np.uint64(lines & 63) == 0:
        word = _next_bit(free.words, word + 1)
        if word < 0:
            return -1
        lines = word << 6
    return int(free.first[_next_bit(free.lengths, lines)])


@njit(cache=True, counted=False)
def claim(free: FreeLines, line: int, lines: int, owner: int) -> None:
    """The first lines of the run that begins at ``line``, which is as long, are ``owner``'s."""
    length = free.length[line]
    _take(free, line, length)
    free.owner[line : line + lines] = owner
    if length > lines:
        _add(free, line + lines, length - lines)


@njit(cache=True, counted=False)
def release(free: FreeLines, line: int, lines: int) -> None:
    """Lines with an owner become free, and one run with those beside them."""
    first, end = line, line + lines
    free.owner[first:end] = -1
    if first > 0 and free.owner[first - 1] < 0:
        length = free.length[first - 1]
        first -= length
        _take(free, first, length)
    if end < len(free.owner) and free.owner[end] < 0:
        length = free.length[end]
        _take(free, end, length)
        end += length
    _add(free, first, end - first)
