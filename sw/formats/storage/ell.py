"""ELL: as many entries in each row as the fullest row has."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..array_checks import FormatError, id_array, require_range, require_sorted, value_array
from ..sparse_tensor import SparseTensor
from ..storage_format import Field, Layout, Region, coordinate_bits, value_field

__all__ = ["FORMAT", "Ell"]

PAD = -1


class Ell:
    """``col_ids``, ``values``: a row for each row of the matrix, filled up with column -1 and value 0. Stored zeros stay.

    In memory a column is stored as one more, so that the -1 of a pad is 0: columns + 1 different numbers.
    """

    orders: ClassVar[tuple[int, ...]] = (2,)
    keeps_zeros: ClassVar[bool] = True

    def counts(self, tensor: SparseTensor) -> dict[str, int]:
        rows = tensor.ids[0]
        begins = np.flatnonzero(np.diff(rows, prepend=-1))
        return {"width": int(np.diff(begins, append=len(rows)).max(initial=0))}

    def layout(self, shape: Sequence[int], counts: Mapping[str, int], value: str) -> Layout:
        rows, columns = shape
        width = counts["width"]
        ids = Field("col_ids", coordinate_bits(columns + 1), bias=-PAD)
        fields = (value_field("values", value), ids)
        shapes = {"col_ids": (rows, width), "values": (rows, width)}
        return Layout(value, (Region("entries", rows * width, fields),), shapes)

    def encode(self, tensor: SparseTensor) -> dict[str, NDArray[Any]]:
        rows, columns = tensor.ids
        size = tensor.shape[0], self.counts(tensor)["width"]
        begins = np.flatnonzero(np.diff(rows, prepend=-1))
        first = np.repeat(begins, np.diff(begins, append=len(rows)))
        at = rows, np.arange(len(rows)) - first
        col_ids, values = np.full(size, PAD, np.int64), np.zeros(size, tensor.values.dtype)
        col_ids[at], values[at] = columns, tensor.values
        return {"col_ids": col_ids, "values": values}

    def decode(self, arrays: Mapping[str, NDArray[Any]], shape: Sequence[int], value: str) -> SparseTensor:
        col_ids = id_array(arrays, "col_ids", shape[0], None)
        values = value_array(arrays, "values", value, shape[0], col_ids.shape[1])
        require_range("col_ids plus 1", col_ids + 1, shape[1] + 1)
        used = col_ids != PAD
        after = used[:, 1:] & ~used[:, :-1]
        if after.any():
            raise FormatError(
                f"col_ids of row {int(np.argmax(after.any(axis=1)))} goes on behind a pad: pads must be last"
            )
        if (values[~used] != 0).any():
            row = int(np.argmax(((values != 0) & ~used).any(axis=1)))
            raise FormatError(f"values of row {row} has a value in a pad: must be 0")
        ids = np.nonzero(used)[0], col_ids[used]
        require_sorted("row, col_ids", ids)
        return SparseTensor(shape=tuple(shape), ids=ids, values=values[used], value=value)


FORMAT = Ell
