"""COO: the coordinates of each entry and its value, sorted row-major."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from numpy.typing import NDArray

from ..array_checks import id_array, require_range, require_sorted, value_array
from ..sparse_tensor import SparseTensor
from ..storage_format import Field, Layout, Region, coordinate_bits, value_field

__all__ = ["FORMAT", "Coo"]


def _names(order: int) -> tuple[str, ...]:
    """Arrays of coordinates, the outermost rank first."""
    return ("row_ids", "col_ids") if order == 2 else tuple(f"ids_{rank}" for rank in range(order))


class Coo:
    """``row_ids``, ``col_ids`` (of tensors ``ids_0``, ``ids_1``, ``ids_2``) and ``values``. Stored zeros stay."""

    orders: ClassVar[tuple[int, ...]] = (2, 3)
    keeps_zeros: ClassVar[bool] = True

    def counts(self, tensor: SparseTensor) -> dict[str, int]:
        return {"nnz": tensor.nnz}

    def layout(self, shape: Sequence[int], counts: Mapping[str, int], value: str) -> Layout:
        ids = [Field(name, coordinate_bits(size)) for name, size in zip(_names(len(shape)), shape, strict=True)]
        fields = (value_field("values", value), *ids)
        return Layout(value, (Region("entries", counts["nnz"], fields),))

    def encode(self, tensor: SparseTensor) -> dict[str, NDArray[Any]]:
        return dict(zip(_names(tensor.order), tensor.ids, strict=True)) | {"values": tensor.values}

    def decode(self, arrays: Mapping[str, NDArray[Any]], shape: Sequence[int], value: str) -> SparseTensor:
        names = _names(len(shape))
        values = value_array(arrays, "values", value)
        ids = tuple(id_array(arrays, name, len(values)) for name in names)
        for name, rank, size in zip(names, ids, shape, strict=True):
            require_range(name, rank, size)
        require_sorted(", ".join(names), ids)
        return SparseTensor(shape=tuple(shape), ids=ids, values=values, value=value)


FORMAT = Coo
