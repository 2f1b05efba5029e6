"""Matrices that are compressed along one rank: where each of its fibers begins, and the other coordinate of each entry."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .array_checks import expanded, id_array, pointers_of, require_pointers, require_range, require_sorted, value_array
from .sparse_tensor import SparseTensor
from .storage_format import Field, Layout, Region, coordinate_bits, pointer_bits, value_field

__all__ = ["Compressed"]

RANKS = ("row", "col")


class Compressed:
    """What CSR and CSC share. ``rank``: the one whose fibers follow each other, 0 for rows and 1 for columns."""

    rank: ClassVar[int]
    orders: ClassVar[tuple[int, ...]] = (2,)
    keeps_zeros: ClassVar[bool] = True

    @property
    def _names(self) -> tuple[str, str]:
        """Of the pointers and of the coordinates."""
        return f"{RANKS[self.rank]}_ptrs", f"{RANKS[1 - self.rank]}_ids"

    def counts(self, tensor: SparseTensor) -> dict[str, int]:
        return {"nnz": tensor.nnz}

    def layout(self, shape: Sequence[int], counts: Mapping[str, int], value: str) -> Layout:
        ptrs, ids = self._names
        nnz = counts["nnz"]
        fields = (value_field("values", value), Field(ids, coordinate_bits(shape[1 - self.rank])))
        pointers = Region(ptrs, shape[self.rank] + 1, (Field(ptrs, pointer_bits(nnz)),))
        return Layout(value, (pointers, Region("entries", nnz, fields)))

    def encode(self, tensor: SparseTensor) -> dict[str, NDArray[Any]]:
        ptrs, ids = self._names
        # Entries come row by row: the other coordinate rises inside a column already.
        order = np.argsort(tensor.ids[self.rank], kind="stable") if self.rank else slice(None)
        pointers = pointers_of(tensor.ids[self.rank], tensor.shape[self.rank])
        return {ptrs: pointers, ids: tensor.ids[1 - self.rank][order], "values": tensor.values[order]}

    def decode(self, arrays: Mapping[str, NDArray[Any]], shape: Sequence[int], value: str) -> SparseTensor:
        ptrs, ids = self._names
        values = value_array(arrays, "values", value)
        inner = id_array(arrays, ids, len(values))
        pointers = id_array(arrays, ptrs, shape[self.rank] + 1)
        require_pointers(ptrs, pointers, ids, len(values))
        require_range(ids, inner, shape[1 - self.rank])
        outer = expanded(pointers)
        require_sorted(f"{('row', 'column')[self.rank]}, {ids}", (outer, inner))
        if self.rank:
            return SparseTensor.from_entries(shape, (inner, outer), values, value)
        return SparseTensor(shape=tuple(shape), ids=(outer, inner), values=values, value=value)
