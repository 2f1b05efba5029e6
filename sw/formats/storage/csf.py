"""CSF: a tree of the coordinates of a tensor of order 3, rank by rank."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..array_checks import expanded, id_array, require_pointers, require_range, require_sorted, value_array
from ..sparse_tensor import SparseTensor
from ..storage_format import Field, Layout, Region, coordinate_bits, pointer_bits, value_field

__all__ = ["FORMAT", "Csf"]


def _begins(tensor: SparseTensor) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The entries with which an i begins, and those with which an i, j begins."""
    i, j, _ = tensor.ids
    new_i = np.diff(i, prepend=-1) != 0
    return np.flatnonzero(new_i), np.flatnonzero(new_i | (np.diff(j, prepend=-1) != 0))


class Csf:
    """``ids_0``: each i that has entries; ``ptrs_1``: where the j of each begin in ``ids_1``; ``ptrs_2``: where the k of each
    i, j begin in ``ids_2`` and ``values``. Stored zeros stay.
    """

    orders: ClassVar[tuple[int, ...]] = (3,)
    keeps_zeros: ClassVar[bool] = True

    def counts(self, tensor: SparseTensor) -> dict[str, int]:
        first, second = _begins(tensor)
        return {"ids_0": len(first), "ids_1": len(second), "nnz": tensor.nnz}

    def layout(self, shape: Sequence[int], counts: Mapping[str, int], value: str) -> Layout:
        first, second, nnz = counts["ids_0"], counts["ids_1"], counts["nnz"]
        ids = [Field(f"ids_{rank}", coordinate_bits(size)) for rank, size in enumerate(shape)]
        regions = (
            Region("ids_0", first, (ids[0],)),
            Region("ptrs_1", first + 1, (Field("ptrs_1", pointer_bits(second)),)),
            Region("ids_1", second, (ids[1],)),
            Region("ptrs_2", second + 1, (Field("ptrs_2", pointer_bits(nnz)),)),
            Region("entries", nnz, (value_field("values", value), ids[2])),
        )
        return Layout(value, regions)

    def encode(self, tensor: SparseTensor) -> dict[str, NDArray[Any]]:
        i, j, k = tensor.ids
        first, second = _begins(tensor)
        return {
            "ptrs_1": np.append(np.searchsorted(second, first), len(second)).astype(np.int64),
            "ptrs_2": np.append(second, tensor.nnz).astype(np.int64),
            "ids_0": i[first],
            "ids_1": j[second],
            "ids_2": k,
            "values": tensor.values,
        }

    def decode(self, arrays: Mapping[str, NDArray[Any]], shape: Sequence[int], value: str) -> SparseTensor:
        values = value_array(arrays, "values", value)
        i, j = (id_array(arrays, f"ids_{rank}") for rank in range(2))
        k = id_array(arrays, "ids_2", len(values))
        pointers_1 = id_array(arrays, "ptrs_1", len(i) + 1)
        pointers_2 = id_array(arrays, "ptrs_2", len(j) + 1)
        for rank, ids in enumerate((i, j, k)):
            require_range(f"ids_{rank}", ids, shape[rank])
        require_pointers("ptrs_1", pointers_1, "ids_1", len(j), empty=False)
        require_pointers("ptrs_2", pointers_2, "ids_2", len(k), empty=False)
        require_sorted("ids_0", (i,))
        i_of_j = i[expanded(pointers_1)]
        require_sorted("ids_0, ids_1", (i_of_j, j))
        owner = expanded(pointers_2)
        found = i_of_j[owner], j[owner], k
        require_sorted("ids_0, ids_1, ids_2", found)
        return SparseTensor(shape=tuple(shape), ids=found, values=values, value=value)


FORMAT = Csf
