"""CSR as the accelerator reads and writes it: row pointers, and the nonzeros as packed records.

``pointers``: 32 bits each, where each row begins, and the end of the last one. ``elements``: record p begins at bit p x w: the
value, the coordinate above it, w their bits together. The array ends with a whole word. Plain records are nonzeros as they are
on chip: a word of coordinate, and one of value.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .array_checks import FormatError
from .bit_fields import pack_fields, unpack_fields
from .csr import Csr
from .sparse_tensor import VALUE_BITS
from .storage_format import coordinate_bits

__all__ = ["CSR32", "ELEMENT_BYTES", "WORD_BITS", "WORD_BYTES", "MemoryCsr", "memory_csr"]

# Of a coordinate and of a value on chip.
WORD_BITS = 32
_WORD = np.dtype("<u4")
WORD_BYTES = _WORD.itemsize
_ELEMENT = np.dtype([("coordinate", _WORD), ("bits", _WORD)])
# Of a nonzero on chip.
ELEMENT_BYTES = _ELEMENT.itemsize


class MemoryCsr:
    """A :class:`.memory_format.MemoryFormat`; the hardware's part is ``rtl.storage`` and ``rtl.mint.reader``.

    Parameters
    ----------
    coordinate_bits: of a coordinate. value: type of the values, whose bits alone are stored; None for plain records.
    """

    arrays: tuple[str, ...] = ("pointers", "elements")
    word_bytes = _WORD.itemsize

    def __init__(self, coordinate_bits: int = WORD_BITS, value: str | None = None) -> None:
        self.coordinate_bits = coordinate_bits
        self.value = value
        self.value_bits = WORD_BITS if value is None else VALUE_BITS[value]

    @property
    def record_bits(self) -> int:
        return self.coordinate_bits + self.value_bits

    @property
    def plain(self) -> bool:
        """Nonzeros lie in memory as they are on chip."""
        return self.value is None

    def sizes(self, rows: int, nonzeros: int) -> dict[str, int]:
        return {
            "pointers": self.word_bytes * (rows + 1),
            "elements": self.word_bytes * -(-self.record_bits * nonzeros // WORD_BITS),
        }

    def row_ranges(self, matrix: Csr) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        pointers = matrix.pointers.astype(_WORD)
        return pointers[:-1], pointers[1:]

    def pack(
        self, ends: NDArray[np.uint32], coordinates: NDArray[np.uint32], bits: NDArray[np.uint32]
    ) -> dict[str, NDArray[Any]]:
        pointers = np.concatenate([np.zeros(1, _WORD), ends])
        if self.plain:
            pairs = np.empty(len(bits), _ELEMENT)
            pairs["coordinate"], pairs["bits"] = coordinates, bits
            return {"pointers": pointers, "elements": pairs}
        fields = self._narrowed(bits).astype(np.uint64), coordinates.astype(np.uint64)
        packed = pack_fields(fields, (self.value_bits, self.coordinate_bits), len(bits))
        records = np.zeros(self.sizes(0, len(bits))["elements"], np.uint8)
        records[: len(packed)] = packed
        return {"pointers": pointers, "elements": records}

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
        records = arrays["elements"][: size["elements"]]
        if self.plain:
            pairs = records.view(_ELEMENT)
            return pointers, np.ascontiguousarray(pairs["coordinate"]), np.ascontiguousarray(pairs["bits"])
        values, coordinates = unpack_fields(records, (self.value_bits, self.coordinate_bits), nonzeros)
        return pointers, coordinates.astype(np.uint32), self._widened(values.astype(np.uint32))

    def _narrowed(self, bits: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """The bits of values out of their words: the upper ones of a bf16, the lower ones of others."""
        away = WORD_BITS - self.value_bits
        return bits >> np.uint32(away) if self.value == "bf16" else bits & np.uint32((1 << self.value_bits) - 1)

    def _widened(self, bits: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """The words of values out of their bits: integers keep their sign."""
        away = np.uint32(WORD_BITS - self.value_bits)
        raised = bits << away
        return raised if self.value == "bf16" else (raised.view(np.int32) >> away.astype(np.int32)).view(np.uint32)


CSR32 = MemoryCsr()


def memory_csr(packed: bool, value: str, columns: int) -> MemoryCsr:
    """The format of a matrix: ``packed`` to the bits of its coordinates and values, or not."""
    return MemoryCsr(coordinate_bits(columns), value) if packed else CSR32
