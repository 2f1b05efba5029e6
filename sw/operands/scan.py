"""A byte-level check of the body of a Matrix Market file.

SciPy's reader is fast but forgiving: ``3.5`` in an integer file becomes 3, ``1d3`` becomes 1.0, surplus fields vanish.
This pass finds the first line that is not what the header promises, and says which line and why.
"""

import numpy as np
from numpy.typing import NDArray

from sw.jit import njit

__all__ = [
    "BAD_COLUMN",
    "BAD_INDEX",
    "BAD_ROW",
    "BAD_VALUE",
    "CLEAN",
    "FIELDS",
    "SURPLUS",
    "scan_body",
]

CLEAN, FIELDS, BAD_INDEX, BAD_ROW, BAD_COLUMN, BAD_VALUE, SURPLUS = range(7)

_NO_VALUE, _INTEGER, _REAL, _COMPLEX = range(4)


@njit(cache=True)
def _is_integer(body: NDArray[np.uint8], begin: int, end: int) -> bool:
    if begin < end and (body[begin] == 43 or body[begin] == 45):
        begin += 1
    if begin == end:
        return False
    position = begin
    while position < end and 48 <= body[position] <= 57:
        position += 1
    return position == end


@njit(cache=True)
def _is_word(body: NDArray[np.uint8], begin: int, end: int, word: NDArray[np.uint8]) -> bool:
    if end - begin != len(word):
        return False
    same = 0
    while same < len(word) and (body[begin + same] | 32) == word[same]:
        same += 1
    return same == len(word)


_NAN = np.frombuffer(b"nan", dtype=np.uint8)
_INF = np.frombuffer(b"inf", dtype=np.uint8)
_INFINITY = np.frombuffer(b"infinity", dtype=np.uint8)


@njit(cache=True)
def _is_infinite(body: NDArray[np.uint8], begin: int, end: int) -> bool:
    if begin < end and (body[begin] == 43 or body[begin] == 45):
        begin += 1
    return _is_word(body, begin, end, _INF) or _is_word(body, begin, end, _INFINITY)


@njit(cache=True)
def _is_real(body: NDArray[np.uint8], begin: int, end: int) -> bool:
    if begin < end and (body[begin] == 43 or body[begin] == 45):
        begin += 1
    if _is_word(body, begin, end, _NAN):
        return True
    digits = 0
    while begin < end and 48 <= body[begin] <= 57:
        begin += 1
        digits += 1
    if begin < end and body[begin] == 46:
        begin += 1
        while begin < end and 48 <= body[begin] <= 57:
            begin += 1
            digits += 1
    if digits == 0:
        return False
    if begin == end:
        return True
    return (body[begin] | 32) == 101 and _is_integer(body, begin + 1, end)


@njit(cache=True)
def _index(body: NDArray[np.uint8], begin: int, end: int) -> int:
    """The token as an index; -1 when it is none. Huge ones saturate far above any legal shape."""
    if begin < end and body[begin] == 43:
        begin += 1
    if begin == end:
        return -1
    index = 0
    for position in range(begin, end):
        digit = body[position] - 48
        if digit < 0 or digit > 9:
            return -1
        if index < 10**15:
            index = index * 10 + digit
    return index


@njit(cache=True)
def scan_body(
    body: NDArray[np.uint8], indices: int, field: int, rows: int, columns: int, expected: int
) -> tuple[int, int, int, int, int, int]:
    """Checks the lines that follow the size line.

    Parameters
    ----------
    body: the bytes after the size line.
    indices: index fields on a line: 2 for ``coordinate``, 0 for ``array``.
    field: what the value must be: 0 nothing (pattern), 1 an integer, 2 a real number, 3 two of them.
    rows, columns: the shape, for the range of the indices.
    expected: data lines promised.

    Returns
    -------
    ``(verdict, line, begin, end, found, sides)``: one of the constants above; the offending line counted from 0 at the
    first body line; the bytes to quote; data lines found so far; where entries lie, as bit 0 (below the diagonal),
    bit 1 (above) and bit 2 (on it).
    """
    size = len(body)
    position = 0
    line = 0
    found = 0
    sides = 0
    wanted = indices + (2 if field == _COMPLEX else (1 if field != _NO_VALUE else 0))
    while position < size:
        # One line: at most four tokens are read, one more than any legal line has.
        tokens = 0
        row = 0
        begin_of_line = position
        comment = False
        while position < size and body[position] != 10:
            byte = body[position]
            if byte == 32 or byte == 9 or byte == 13:
                position += 1
                continue
            if tokens == 0 and byte == 37:
                comment = True
                while position < size and body[position] != 10:
                    position += 1
                break
            begin = position
            while position < size and not (
                body[position] == 32 or body[position] == 9 or body[position] == 13 or body[position] == 10
            ):
                position += 1
            if tokens == 0 and found == expected:
                return SURPLUS, line, begin, position, found, sides
            if tokens >= wanted:
                return FIELDS, line, begin_of_line, position, found, sides
            if tokens < indices:
                index = _index(body, begin, position)
                if index < 0:
                    return BAD_INDEX, line, begin, position, found, sides
                if index < 1 or index > (rows if tokens == 0 else columns):
                    verdict = BAD_ROW if tokens == 0 else BAD_COLUMN
                    return verdict, line, begin, position, found, sides
                if tokens == 0:
                    row = index
                else:
                    sides |= 1 if row > index else (2 if row < index else 4)
            elif field == _INTEGER:
                if not _is_integer(body, begin, position):
                    return BAD_VALUE, line, begin, position, found, sides
            elif not _is_infinite(body, begin, position) and not _is_real(body, begin, position):
                return BAD_VALUE, line, begin, position, found, sides
            tokens += 1
        if tokens and tokens < wanted:
            return FIELDS, line, begin_of_line, position, found, sides
        if tokens:
            found += 1
        if not comment or position < size:
            position += 1
        line += 1
    return CLEAN, line, 0, 0, found, sides
