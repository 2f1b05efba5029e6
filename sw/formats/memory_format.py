"""What a memory format tells: the arrays that hold a matrix, where a row lies in them, how their words are packed.

A storage format (:mod:`.storage_format`) holds a whole tensor of any order, packed to the bit. A memory format is what the
accelerator reads row by row.
"""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .csr import Csr

__all__ = ["MemoryFormat"]


class MemoryFormat(Protocol):
    """One format is one file that has these members. The memory image reads them, never a word itself.

    Attributes
    ----------
    arrays: names of the arrays, in the order of their addresses. A tensor's region and its register of the address are named
        after the tensor and the array: ``a_elements``, ``A_ELEMENTS``.
    record_bits: bits of a nonzero in the array ``elements``.
    word_bytes: bytes of a position in any other array.
    """

    arrays: tuple[str, ...]
    word_bytes: int

    @property
    def record_bits(self) -> int: ...

    def sizes(self, rows: int, nonzeros: int) -> dict[str, int]:
        """Bytes of each array of a matrix of this size."""

    def row_ranges(self, matrix: Csr) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """For each row the position of its first nonzero in ``elements``, and the one after its last."""

    def pack(
        self, ends: NDArray[np.uint32], coordinates: NDArray[np.uint32], bits: NDArray[np.uint32]
    ) -> dict[str, NDArray[Any]]:
        """The arrays as memory holds them, for rows that end at ``ends``: begins are told otherwise where they leave gaps."""

    def unpack(
        self, arrays: Mapping[str, NDArray[np.uint8]], rows: int, nonzeros: int
    ) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.uint32]]:
        """Pointers, coordinates and value patterns out of bytes of memory, which may go on behind what is held.

        Raises FormatError.
        """
