"""DIA: whole diagonals, as SciPy has them."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..array_checks import FormatError, id_array, require_range, require_sorted, value_array
from ..distinct import distinct
from ..sparse_tensor import SparseTensor
from ..storage_format import Field, Layout, Region, coordinate_bits, value_field

__all__ = ["FORMAT", "Dia"]


class Dia:
    """``offsets``: column less row of each diagonal that has a value, rising; ``diagonals``: a row for each of them.

    The value in column j stands at place j of its diagonal. Diagonals end at the last column that has a value. A zero in a
    diagonal is a place without an entry, stored or not.
    """

    orders: ClassVar[tuple[int, ...]] = (2,)
    keeps_zeros: ClassVar[bool] = False

    def counts(self, tensor: SparseTensor) -> dict[str, int]:
        rows, columns = tensor.without_zeros().ids
        return {"diagonals": len(distinct(columns - rows)), "length": int(columns.max(initial=-1)) + 1}

    def layout(self, shape: Sequence[int], counts: Mapping[str, int], value: str) -> Layout:
        rows, columns = shape
        diagonals, length = counts["diagonals"], counts["length"]
        # Of -(rows - 1) to columns - 1.
        offset = Field("offsets", coordinate_bits(rows + columns - 1), bias=rows - 1)
        values = value_field("diagonals", value)
        regions = Region("offsets", diagonals, (offset,)), Region("diagonals", diagonals * length, (values,))
        return Layout(value, regions, {"diagonals": (diagonals, length)})

    def encode(self, tensor: SparseTensor) -> dict[str, NDArray[Any]]:
        stored = tensor.without_zeros()
        rows, columns = stored.ids
        offsets = distinct(columns - rows)
        diagonals = np.zeros((len(offsets), int(columns.max(initial=-1)) + 1), stored.values.dtype)
        diagonals[np.searchsorted(offsets, columns - rows), columns] = stored.values
        return {"offsets": offsets, "diagonals": diagonals}

    def decode(self, arrays: Mapping[str, NDArray[Any]], shape: Sequence[int], value: str) -> SparseTensor:
        offsets = id_array(arrays, "offsets")
        diagonals = value_array(arrays, "diagonals", value, len(offsets), None)
        require_range("offsets plus rows - 1", offsets + (shape[0] - 1), shape[0] + shape[1] - 1)
        require_sorted("offsets", (offsets,))
        number, column = np.nonzero(diagonals)
        row = column - offsets[number]
        outside = (row < 0) | (row >= shape[0]) | (column >= shape[1])
        if outside.any():
            at = int(np.argmax(outside))
            raise FormatError(
                f"diagonals has a value at {row[at]}, {column[at]}: must be 0 outside of {shape[0]} x {shape[1]}"
            )
        return SparseTensor.from_entries(shape, (row, column), diagonals[number, column], value)


FORMAT = Dia
