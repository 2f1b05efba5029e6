"""Records of fields of any width, without gaps between them, in bytes whose bits count from the lowest.

Record p begins at bit p x w, w the sum of its fields' widths; the first field has its lowest bits. Bit n of the stream is bit
n mod 8 of byte n div 8. Bits behind the last record are 0.
"""

from collections.abc import Sequence
from math import gcd

import numpy as np
from numpy.typing import NDArray

__all__ = ["byte_count", "pack_fields", "unpack_fields"]

Words = NDArray[np.uint64]
WORD = 64
# Groups of records that are handled at a time, so that their words stay in a cache.
GROUPS = 1 << 12


def byte_count(bits: int) -> int:
    """Bytes that bits take."""
    return -(-bits // 8)


def _period(width: int) -> tuple[int, int]:
    """The least number of records that fill whole words, and these words."""
    common = gcd(width, WORD)
    return WORD // common, width // common


def pack_fields(fields: Sequence[Words], widths: Sequence[int], count: int) -> NDArray[np.uint8]:
    """The records as bytes.

    Parameters
    ----------
    fields: uint64[count] each, below 2 to the power of its width. widths: 0 to 64 bits each. count: of records.
    """
    for field, width in zip(fields, widths, strict=True):
        if count and width < WORD and int(field.max()) >> width:
            raise ValueError(f"Field of {width} bits must be below {1 << width}, not {int(field.max())}")
    width = sum(widths)
    if not width or not count:
        return np.zeros(0, np.uint8)
    per_group, words_per_group = _period(width)
    groups = -(-count // per_group)
    words = np.zeros((groups, words_per_group), "<u8")
    for begin in range(0, groups, GROUPS):
        part = words[begin : begin + GROUPS]
        offset = 0
        for field, bits in zip(fields, widths, strict=True):
            if bits:
                _put(part, _grouped(field, begin * per_group, len(part), per_group), offset, bits, width)
            offset += bits
    return words.reshape(-1).view(np.uint8)[: byte_count(count * width)]


def _grouped(field: Words, begin: int, groups: int, per_group: int) -> Words:
    """A row for each group, filled up with zeros."""
    found = field[begin : begin + groups * per_group]
    if len(found) < groups * per_group:
        found = np.concatenate([found, np.zeros(groups * per_group - len(found), np.uint64)])
    return found.reshape(groups, per_group)


def _put(words: Words, field: Words, offset: int, bits: int, width: int) -> None:
    """Sets the bits of a field of all records in one group after the other."""
    for record in range(field.shape[1]):
        word, shift = divmod(record * width + offset, WORD)
        words[:, word] |= field[:, record] << np.uint64(shift)
        if shift + bits > WORD:
            words[:, word + 1] |= field[:, record] >> np.uint64(WORD - shift)


def unpack_fields(data: NDArray[np.uint8], widths: Sequence[int], count: int) -> list[Words]:
    """The fields of ``count`` records, uint64[count] each. ``data`` may go on behind them."""
    width = sum(widths)
    found = [np.zeros(count, np.uint64) for _ in widths]
    if not width or not count:
        return found
    size = byte_count(count * width)
    if len(data) < size:
        raise ValueError(f"Records of {count} x {width} bits must have {size} bytes, not {len(data)}")
    per_group, words_per_group = _period(width)
    groups = -(-count // per_group)
    padded = np.zeros(8 * groups * words_per_group, np.uint8)
    padded[:size] = data[:size]
    words = padded.view("<u8").reshape(groups, words_per_group)
    for begin in range(0, groups, GROUPS):
        part = words[begin : begin + GROUPS]
        offset = 0
        for column, bits in enumerate(widths):
            if bits:
                first = begin * per_group
                taken = _taken(part, offset, bits, width, per_group).reshape(-1)[: count - first]
                found[column][first : first + len(taken)] = taken
            offset += bits
    return found


def _taken(words: Words, offset: int, bits: int, width: int, per_group: int) -> Words:
    """A field of all records, a row for each group."""
    field = np.empty((len(words), per_group), np.uint64)
    mask = np.uint64((1 << bits) - 1)
    for record in range(per_group):
        word, shift = divmod(record * width + offset, WORD)
        bits_found = words[:, word] >> np.uint64(shift)
        if shift + bits > WORD:
            bits_found |= words[:, word + 1] << np.uint64(WORD - shift)
        field[:, record] = bits_found & mask
    return field
