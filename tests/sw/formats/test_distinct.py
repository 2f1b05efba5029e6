"""Distinct numbers, beside NumPy's own."""

import numpy as np
import pytest

from sw.formats import distinct as module
from sw.formats.distinct import compacted, distinct

ARRAYS = [
    np.array([], np.int64),
    np.array([5], np.int64),
    np.array([3, 3, 3], np.int64),
    np.array([9, 0, 4, 0, 9, 1], np.int64),
    np.random.default_rng(1).integers(0, 50, 1000),
    np.random.default_rng(2).integers(-(1 << 40), 1 << 40, 1000),
]


@pytest.mark.parametrize("values", ARRAYS)
def test_distinct_is_numpys(values):
    before = values.copy()
    assert np.array_equal(distinct(values), np.unique(values))
    assert np.array_equal(values, before)


@pytest.mark.parametrize("extent", [60, 1 << 31], ids=["marks", "sorts"])
@pytest.mark.parametrize("dtype", [np.int64, np.uint32, np.int32])
@pytest.mark.parametrize("values", ARRAYS[:5])
def test_places_lead_back(values, dtype, extent, monkeypatch):
    monkeypatch.setattr(module, "FEW_MARKS", 64)
    values = values.astype(dtype)
    used, places = compacted(values, extent)
    assert used.dtype == places.dtype == np.int64
    assert np.array_equal(used, np.unique(values))
    assert np.array_equal(used[places], values)
