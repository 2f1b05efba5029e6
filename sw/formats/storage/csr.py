"""CSR: where each row begins, and the column and value of each entry."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..array_checks import expanded, id_array, require_pointers, require_range, require_sorted, value_array
from ..sparse_tensor import VALUE_BITS, SparseTensor
from ..storage_format import Field, Layout, Region, coordinate_bits, pointer_bits

__all__ = ["FORMAT", "Csr"]


class Csr:
    """``row_ptrs``, ``col_ids``, ``values``. Stored zeros stay."""

    orders: ClassVar[tuple[int, ...]] = (2,)
    keeps_zeros: ClassVar[bool] = True

    def counts(self, tensor: SparseTensor) -> dict[str, int]:
        return {"nnz": tensor.nnz}

    def layout(self, shape: Sequence[int], counts: Mapping[str, int], value: str) -> Layout:
        rows, columns = shape
        nnz = counts["nnz"]
        fields = (Field("col_ids", coordinate_bits(columns)), Field("values", VALUE_BITS[value], kind="value"))
        pointers = Region("row_ptrs", rows + 1, (Field("row_ptrs", pointer_bits(nnz)),))
        return Layout(value, (pointers, Region("entries", nnz, fields)))

    def encode(self, tensor: SparseTensor) -> dict[str, NDArray[Any]]:
        rows, columns = tensor.ids
        pointers = np.zeros(tensor.shape[0] + 1, np.int64)
        np.cumsum(np.bincount(rows, minlength=tensor.shape[0]), out=pointers[1:])
        return {"row_ptrs": pointers, "col_ids": columns, "values": tensor.values}

    def decode(self, arrays: Mapping[str, NDArray[Any]], shape: Sequence[int], value: str) -> SparseTensor:
        rows, columns = shape
        values = value_array(arrays, "values", value)
        col_ids = id_array(arrays, "col_ids", len(values))
        pointers = id_array(arrays, "row_ptrs", rows + 1)
        require_pointers("row_ptrs", pointers, "col_ids", len(values))
        require_range("col_ids", col_ids, columns)
        ids = expanded(pointers), col_ids
        require_sorted("row, col_ids", ids)
        return SparseTensor(shape=tuple(shape), ids=ids, values=values, value=value)


FORMAT = Csr
