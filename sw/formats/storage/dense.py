"""Dense: every value, row-major."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..array_checks import value_array
from ..sparse_tensor import SparseTensor
from ..storage_format import Layout, Region, places, value_field

__all__ = ["FORMAT", "Dense"]


class Dense:
    """``values``: one for each place. A stored zero is a zero like any other."""

    orders: ClassVar[tuple[int, ...]] = (2, 3)
    keeps_zeros: ClassVar[bool] = False

    def counts(self, tensor: SparseTensor) -> dict[str, int]:
        return {}

    def layout(self, shape: Sequence[int], counts: Mapping[str, int], value: str) -> Layout:
        values = Region("values", places(shape), (value_field("values", value),))
        return Layout(value, (values,), {"values": tuple(shape)})

    def encode(self, tensor: SparseTensor) -> dict[str, NDArray[Any]]:
        stored = tensor.without_zeros()
        values = np.zeros(tensor.shape, tensor.values.dtype)
        values.reshape(-1)[stored.positions().astype(np.intp)] = stored.values
        return {"values": values}

    def decode(self, arrays: Mapping[str, NDArray[Any]], shape: Sequence[int], value: str) -> SparseTensor:
        values = value_array(arrays, "values", value, *shape).reshape(-1)
        positions = np.flatnonzero(values)
        return SparseTensor.from_positions(shape, positions.astype(np.uint64), values[positions], value)


FORMAT = Dense
