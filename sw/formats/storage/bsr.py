"""BSR: CSR of blocks, each with all of its values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..array_checks import (
    FormatError,
    expanded,
    id_array,
    pointers_of,
    require_pointers,
    require_range,
    require_sorted,
    value_array,
)
from ..sparse_tensor import SparseTensor, row_major_order
from ..storage_format import Field, Layout, Region, coordinate_bits, pointer_bits, value_field

__all__ = ["FORMAT", "Bsr"]


@dataclass(frozen=True)
class Bsr:
    """``row_ptrs``: of each row of blocks; ``col_ids``: column of each block, in blocks; ``blocks``: their values.

    Blocks at the border may reach beyond the matrix, where their values are 0. A zero in a block is a place without an entry,
    stored or not.

    ``block``: rows and columns of a block.
    """

    block: tuple[int, ...] = (2, 2)

    orders: ClassVar[tuple[int, ...]] = (2,)
    keeps_zeros: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if len(self.block) != 2 or min(self.block) < 1:
            raise ValueError(f"Block must be two numbers from 1, not {'x'.join(map(str, self.block))}")

    def _grid(self, shape: Sequence[int]) -> tuple[int, int]:
        """Rows and columns of blocks."""
        (rows, columns), (high, wide) = shape, self.block
        return -(-rows // high), -(-columns // wide)

    def _blocks(self, stored: SparseTensor) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Block row and column of each block, sorted, and the number of the block of each entry."""
        rows, columns = (rank // side for rank, side in zip(stored.ids, self.block, strict=True))
        order = row_major_order(self._grid(stored.shape), (rows, columns))
        rows, columns = rows[order], columns[order]
        new = np.ones(len(order), np.bool_)
        new[1:] = (rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1])
        owner = np.empty(len(order), np.int64)
        owner[order] = np.cumsum(new) - 1
        return rows[new], columns[new], owner

    def counts(self, tensor: SparseTensor) -> dict[str, int]:
        return {"blocks": len(self._blocks(tensor.without_zeros())[0])}

    def layout(self, shape: Sequence[int], counts: Mapping[str, int], value: str) -> Layout:
        blocks, (high, wide), grid = counts["blocks"], self.block, self._grid(shape)
        regions = (
            Region("row_ptrs", grid[0] + 1, (Field("row_ptrs", pointer_bits(blocks)),)),
            Region("col_ids", blocks, (Field("col_ids", coordinate_bits(grid[1])),)),
            Region("blocks", blocks * high * wide, (value_field("blocks", value),)),
        )
        return Layout(value, regions, {"blocks": (blocks, high, wide)})

    def encode(self, tensor: SparseTensor) -> dict[str, NDArray[Any]]:
        stored = tensor.without_zeros()
        rows, columns, owner = self._blocks(stored)
        high, wide = self.block
        blocks = np.zeros((len(rows), high, wide), stored.values.dtype)
        blocks[owner, stored.ids[0] % high, stored.ids[1] % wide] = stored.values
        height = self._grid(tensor.shape)[0]
        return {"row_ptrs": pointers_of(rows, height), "col_ids": columns, "blocks": blocks}

    def decode(self, arrays: Mapping[str, NDArray[Any]], shape: Sequence[int], value: str) -> SparseTensor:
        (height, width), (high, wide) = self._grid(shape), self.block
        blocks = value_array(arrays, "blocks", value, None, high, wide)
        col_ids = id_array(arrays, "col_ids", len(blocks))
        pointers = id_array(arrays, "row_ptrs", height + 1)
        require_pointers("row_ptrs", pointers, "col_ids", len(blocks))
        require_range("col_ids", col_ids, width)
        row_ids = expanded(pointers)
        require_sorted("block row, col_ids", (row_ids, col_ids))
        number, row, column = np.nonzero(blocks)
        ids = row_ids[number] * high + row, col_ids[number] * wide + column
        outside = (ids[0] >= shape[0]) | (ids[1] >= shape[1])
        if outside.any():
            at = int(np.argmax(outside))
            raise FormatError(
                f"blocks has a value at {ids[0][at]}, {ids[1][at]}: must be 0 outside of {shape[0]} x {shape[1]}"
            )
        return SparseTensor.from_entries(shape, ids, blocks[number, row, column], value)


FORMAT = Bsr
