"""CSC: where each column begins, and the row and value of each entry."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..array_checks import expanded, id_array, require_pointers, require_range, require_sorted, value_array
from ..sparse_tensor import VALUE_BITS, SparseTensor, row_major_order
from ..storage_format import Field, Layout, Region, coordinate_bits, pointer_bits

__all__ = ["FORMAT", "Csc"]


class Csc:
    """``col_ptrs``, ``row_ids``, ``values``. Stored zeros stay."""

    orders: ClassVar[tuple[int, ...]] = (2,)
    keeps_zeros: ClassVar[bool] = True

    def counts(self, tensor: SparseTensor) -> dict[str, int]:
        return {"nnz": tensor.nnz}

    def layout(self, shape: Sequence[int], counts: Mapping[str, int], value: str) -> Layout:
        rows, columns = shape
        nnz = counts["nnz"]
        fields = (Field("row_ids", coordinate_bits(rows)), Field("values", VALUE_BITS[value], kind="value"))
        pointers = Region("col_ptrs", columns + 1, (Field("col_ptrs", pointer_bits(nnz)),))
        return Layout(value, (pointers, Region("entries", nnz, fields)))

    def encode(self, tensor: SparseTensor) -> dict[str, NDArray[Any]]:
        rows, columns = tensor.ids
        pointers = np.zeros(tensor.shape[1] + 1, np.int64)
        np.cumsum(np.bincount(columns, minlength=tensor.shape[1]), out=pointers[1:])
        # Rows rise inside a column already: entries come row by row.
        order = row_major_order((tensor.shape[1],), (columns,))
        return {"col_ptrs": pointers, "row_ids": rows[order], "values": tensor.values[order]}

    def decode(self, arrays: Mapping[str, NDArray[Any]], shape: Sequence[int], value: str) -> SparseTensor:
        rows, columns = shape
        values = value_array(arrays, "values", value)
        row_ids = id_array(arrays, "row_ids", len(values))
        pointers = id_array(arrays, "col_ptrs", columns + 1)
        require_pointers("col_ptrs", pointers, "row_ids", len(values))
        require_range("row_ids", row_ids, rows)
        col_ids = expanded(pointers)
        require_sorted("column, row_ids", (col_ids, row_ids))
        return SparseTensor.from_entries(shape, (row_ids, col_ids), values, value)


FORMAT = Csc
