"""ZVC: a bit for each place, and the values of those whose bit is 1."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..array_checks import FormatError, value_array
from ..bit_fields import byte_count
from ..sparse_tensor import SparseTensor
from ..storage_format import Field, Layout, Region, places, value_field

__all__ = ["FORMAT", "Zvc"]


class Zvc:
    """``mask``: place p, row-major, is bit p mod 8 of byte p div 8. ``values``: of the places whose bit is 1.

    A bit says whether a value is zero, so that a stored zero becomes a place without an entry.
    """

    orders: ClassVar[tuple[int, ...]] = (2, 3)
    keeps_zeros: ClassVar[bool] = False

    def counts(self, tensor: SparseTensor) -> dict[str, int]:
        return {"nnz": tensor.without_zeros().nnz}

    def layout(self, shape: Sequence[int], counts: Mapping[str, int], value: str) -> Layout:
        mask = Region("mask", places(shape), (Field("mask", 1, kind="bit"),))
        values = Region("values", counts["nnz"], (value_field("values", value),))
        return Layout(value, (mask, values))

    def encode(self, tensor: SparseTensor) -> dict[str, NDArray[Any]]:
        stored = tensor.without_zeros()
        positions = stored.positions()
        mask = np.zeros(byte_count(places(tensor.shape)), np.uint8)
        if len(positions):
            at = positions >> np.uint64(3)
            begins = np.flatnonzero(np.concatenate([[True], at[1:] != at[:-1]]))
            bits = np.uint8(1) << (positions & np.uint64(7)).astype(np.uint8)
            mask[at[begins].astype(np.intp)] = np.bitwise_or.reduceat(bits, begins)
        return {"mask": mask, "values": stored.values}

    def decode(self, arrays: Mapping[str, NDArray[Any]], shape: Sequence[int], value: str) -> SparseTensor:
        values = value_array(arrays, "values", value)
        mask = self._mask(arrays, places(shape))
        used = np.flatnonzero(mask)
        byte, bit = np.nonzero(np.unpackbits(mask[used], bitorder="little").reshape(-1, 8))
        if len(byte) != len(values):
            raise FormatError(f"mask has {len(byte)} bits that are 1 and values {len(values)} entries: must be as many")
        if (values == 0).any():
            raise FormatError(f"values has 0 at entry {int(np.argmin(values != 0))}: must have no zeros")
        positions = used[byte].astype(np.uint64) << np.uint64(3) | bit.astype(np.uint64)
        return SparseTensor.from_positions(shape, positions, values, value)

    def _mask(self, arrays: Mapping[str, NDArray[Any]], count: int) -> NDArray[np.uint8]:
        mask = arrays.get("mask")
        if mask is None or mask.dtype != np.uint8 or mask.shape != (byte_count(count),):
            found = "missing" if mask is None else f"{mask.dtype} {mask.shape}"
            raise FormatError(f"mask is {found}: must be {byte_count(count)} bytes, a bit for each of {count} places")
        if count % 8 and mask[-1] >> count % 8:
            raise FormatError(f"mask has bits behind place {count - 1}, the last one: must be 0")
        return mask


FORMAT = Zvc
