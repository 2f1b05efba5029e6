"""HiCOO: COO of blocks of a tensor of order 3, and inside a block short offsets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..array_checks import FormatError, expanded, id_array, require_pointers, require_range, require_sorted, value_array
from ..sparse_tensor import SparseTensor, row_major_order
from ..storage_format import Field, Layout, Region, coordinate_bits, pointer_bits, value_field

__all__ = ["FORMAT", "Hicoo"]


@dataclass(frozen=True)
class Hicoo:
    """``block_ptrs``: where the entries of each block begin; ``block_ids``: its coordinates, in blocks; ``offsets``: those of
    each entry in its block; ``values``. Blocks are sorted row-major, and so are entries in a block. Stored zeros stay.

    ``block``: sides of a block.
    """

    block: tuple[int, ...] = (2, 2, 2)

    orders: ClassVar[tuple[int, ...]] = (3,)
    keeps_zeros: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if len(self.block) != 3 or min(self.block) < 1:
            raise ValueError(f"Block must be three numbers from 1, not {'x'.join(map(str, self.block))}")

    def _grid(self, shape: Sequence[int]) -> list[int]:
        return [-(-size // side) for size, side in zip(shape, self.block, strict=True)]

    def _blocks(self, tensor: SparseTensor) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """The order of entries, block by block; where blocks begin in it; coordinates of each block."""
        found = [rank // side for rank, side in zip(tensor.ids, self.block, strict=True)]
        order = row_major_order(self._grid(tensor.shape), found)
        new = np.zeros(len(order), np.bool_)
        for rank in found:
            new |= np.diff(rank[order], prepend=-1) != 0
        begins = np.flatnonzero(new)
        return order, begins, np.stack([rank[order[begins]] for rank in found], axis=1)

    def counts(self, tensor: SparseTensor) -> dict[str, int]:
        return {"blocks": len(self._blocks(tensor)[1]), "nnz": tensor.nnz}

    def layout(self, shape: Sequence[int], counts: Mapping[str, int], value: str) -> Layout:
        blocks, nnz = counts["blocks"], counts["nnz"]
        ids = [Field("block_ids", coordinate_bits(size), column=n) for n, size in enumerate(self._grid(shape))]
        offsets = [Field("offsets", coordinate_bits(side), column=n) for n, side in enumerate(self.block)]
        regions = (
            Region("block_ptrs", blocks + 1, (Field("block_ptrs", pointer_bits(nnz)),)),
            Region("block_ids", blocks, tuple(ids)),
            Region("entries", nnz, (value_field("values", value), *offsets)),
        )
        return Layout(value, regions)

    def encode(self, tensor: SparseTensor) -> dict[str, NDArray[Any]]:
        order, begins, block_ids = self._blocks(tensor)
        offsets = [(rank % side)[order] for rank, side in zip(tensor.ids, self.block, strict=True)]
        return {
            "block_ptrs": np.append(begins, tensor.nnz).astype(np.int64),
            "block_ids": block_ids,
            "offsets": np.stack(offsets, axis=1),
            "values": tensor.values[order],
        }

    def decode(self, arrays: Mapping[str, NDArray[Any]], shape: Sequence[int], value: str) -> SparseTensor:
        values = value_array(arrays, "values", value)
        offsets = id_array(arrays, "offsets", len(values), 3)
        block_ids = id_array(arrays, "block_ids", None, 3)
        pointers = id_array(arrays, "block_ptrs", len(block_ids) + 1)
        require_pointers("block_ptrs", pointers, "offsets", len(values), empty=False)
        for rank, (size, side) in enumerate(zip(self._grid(shape), self.block, strict=True)):
            require_range(f"block_ids of rank {rank}", block_ids[:, rank], size)
            require_range(f"offsets of rank {rank}", offsets[:, rank], side)
        require_sorted("block_ids", tuple(block_ids.T))
        owner = expanded(pointers)
        require_sorted("block, offsets", (owner, *offsets.T))
        ids = tuple(block_ids[owner, n] * side + offsets[:, n] for n, side in enumerate(self.block))
        for rank, size in enumerate(shape):
            if len(values) and int(ids[rank].max()) >= size:
                raise FormatError(f"offsets lead to {int(ids[rank].max())} in rank {rank}: must be below {size}")
        return SparseTensor.from_entries(shape, ids, values, value)


FORMAT = Hicoo
