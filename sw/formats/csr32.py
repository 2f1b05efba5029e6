"""CSR of 32 + 32 bits, the format that the accelerator reads and writes.

``pointers``: where each row begins, and the end of the last one. ``elements``: coordinate, then value, of each nonzero.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .array_checks import FormatError
from .csr import Csr

__all__ = ["CSR32", "Csr32"]

_WORD = np.dtype("<u4")
_ELEMENT = np.dtype([("coordinate", _WORD), ("bits", _WORD)])


class Csr32:
    """A :class:`.memory_format.MemoryFormat`; the hardware's part is ``rtl.storage``."""

    arrays: tuple[str, ...] = ("pointers", "elements")
    element_bytes = _ELEMENT.itemsize
    word_bytes = _WORD.itemsize

    def sizes(self, rows: int, nonzeros: int) -> dict[str, int]:
        return {"pointers": self.word_bytes * (rows + 1), "elements": self.element_bytes * nonzeros}

    def row_ranges(self, matrix: Csr) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        pointers = matrix.pointers.astype(_WORD)
        return pointers[:-1], pointers[1:]

    def pack(
        self, ends: NDArray[np.uint32], coordinates: NDArray[np.uint32], bits: NDArray[np.uint32]
    ) -> dict[str, NDArray[Any]]:
        pairs = np.empty(len(bits), _ELEMENT)
        pairs["coordinate"], pairs["bits"] = coordinates, bits
        return {"pointers": np.concatenate([np.zeros(1, _WORD), ends]), "elements": pairs}

    def unpack(
        self, arrays: Mapping[str, NDArray[np.uint8]], rows: int, nonzeros: int
    ) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.uint32]]:
        size = self.sizes(rows, nonzeros)
        pointers = arrays["pointers"][: size["pointers"]].view(_WORD).astype(np.int64)
        if pointers[0] != 0 or (np.diff(pointers) < 0).any() or pointers[-1] != nonzeros:
            raise FormatError(
                f"row pointers in memory are not a rise from 0 to {nonzeros}: "
                f"first {pointers[0]}, last {pointers[-1]}, {int((np.diff(pointers) < 0).sum())} falls"
            )
        pairs = arrays["elements"][: size["elements"]].view(_ELEMENT)
        return pointers, np.ascontiguousarray(pairs["coordinate"]), np.ascontiguousarray(pairs["bits"])


CSR32 = Csr32()
