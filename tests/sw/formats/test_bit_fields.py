"""Packed records beside whole numbers of any size, bit by bit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sw.formats import bit_fields
from sw.formats.bit_fields import byte_count, pack_fields, unpack_fields


def as_number(columns, widths):
    """All records as one whole number, by a loop."""
    found = at = 0
    for record in zip(*columns, strict=True):
        for field, width in zip(record, widths, strict=True):
            found |= field << at
            at += width
    return found


@st.composite
def records(draw):
    widths = draw(st.lists(st.integers(0, 64), min_size=1, max_size=5))
    count = draw(st.integers(0, 70))
    return widths, [draw(st.lists(st.integers(0, 2**w - 1), min_size=count, max_size=count)) for w in widths]


@given(records())
def test_records_are_the_bits_of_one_number(drawn):
    widths, columns = drawn
    count = len(columns[0])
    fields = [np.array(column, np.uint64) for column in columns]
    data = pack_fields(fields, widths, count)
    assert data.dtype == np.uint8 and len(data) == byte_count(count * sum(widths))
    assert int.from_bytes(data.tobytes(), "little") == as_number(columns, widths)
    behind = np.concatenate([data, np.full(11, 0xA5, np.uint8)])
    for found, field in zip(unpack_fields(behind, widths, count), fields, strict=True):
        assert np.array_equal(found, field)


@pytest.mark.parametrize("widths", [(1,), (5, 32), (14, 14, 32), (63, 2), (64,), (0, 7), (21, 21, 21, 8)])
def test_more_groups_than_are_handled_at_a_time(widths, monkeypatch):
    monkeypatch.setattr(bit_fields, "GROUPS", 3)
    rng = np.random.default_rng(2)
    fields = [
        rng.integers(0, 1 << w, 1000, np.uint64, endpoint=False) if w else np.zeros(1000, np.uint64) for w in widths
    ]
    data = pack_fields(fields, widths, 1000)
    assert int.from_bytes(data.tobytes(), "little") == as_number([field.tolist() for field in fields], widths)
    for found, field in zip(unpack_fields(data, widths, 1000), fields, strict=True):
        assert np.array_equal(found, field)


def test_by_hand():
    fields = [np.array([5, 2, 7], np.uint64), np.array([1, 30, 9], np.uint64)]
    # From the lowest bit: 101 10000, 010 01111, 111 10010.
    assert pack_fields(fields, (3, 5), 3).tolist() == [5 | 1 << 3, 2 | 30 << 3, 7 | 9 << 3]
    # Records of 9 bits straddle bytes.
    assert pack_fields([np.array([0x1FF, 0x001], np.uint64)], (9,), 2).tolist() == [0xFF, 0x03, 0x00]


def test_a_field_that_has_no_place_is_refused():
    with pytest.raises(ValueError, match="^Field of 3 bits must be below 8, not 8$"):
        pack_fields([np.array([8], np.uint64)], (3,), 1)


def test_too_few_bytes_are_refused():
    with pytest.raises(ValueError, match="^Records of 3 x 9 bits must have 4 bytes, not 3$"):
        unpack_fields(np.zeros(3, np.uint8), (9,), 3)
