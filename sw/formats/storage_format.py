"""What a storage format tells: the arrays that hold a tensor, their exact size, and where each bit of them lies in memory.

:class:`.memory_format.MemoryFormat` is about rows: where the accelerator finds row r of a CSR matrix, in a region that may have
gaps. A storage format knows no rows. It tells how a whole tensor becomes arrays and bits, and back; a converter reads and
writes it from end to end. The bytes are the same: the accelerator's packed records are the storage format ``csr`` with pointers
of 32 bits, and a test compares them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from .array_checks import FormatError
from .bit_fields import byte_count, pack_fields, unpack_fields
from .csr import VALUE_DTYPES
from .sparse_tensor import VALUE_BITS, SparseTensor, numbers, patterns

__all__ = [
    "LARGEST_ARRAYS",
    "Field",
    "Layout",
    "Region",
    "StorageFormat",
    "coordinate_bits",
    "pack",
    "places",
    "pointer_bits",
    "require_bound",
    "through_memory",
    "unpack",
    "value_field",
]

Arrays = dict[str, NDArray[Any]]
#: Bytes that the unpacked arrays of one tensor may take. Time and memory of a conversion are linear in them.
LARGEST_ARRAYS = 1 << 31


def coordinate_bits(size: int) -> int:
    """Bits of a number from 0 to ``size`` - 1: ceil(log2 size)."""
    return (size - 1).bit_length()


def pointer_bits(count: int) -> int:
    """Bits of a number from 0 to ``count``: ceil(log2(count + 1))."""
    return count.bit_length()


@dataclass(frozen=True)
class Field:
    """A part of each record of a region.

    Parameters
    ----------
    array: whose entries these are, in row-major order. bits: of each of them.
    bias: what is added before an entry becomes bits, so that none is below 0.
    column: of an array of several columns, which one.
    kind: ``id`` is a whole number, ``value`` a value of the tensor, ``bit`` a bit of an array of bytes.
    """

    array: str
    bits: int
    bias: int = 0
    column: int | None = None
    kind: str = "id"


def value_field(array: str, value: str) -> Field:
    """Values of a type. They are the first field of a record: the bits of a value then stand where no size moves them."""
    return Field(array, VALUE_BITS[value], kind="value")


@dataclass(frozen=True)
class Region:
    """Records that follow each other in memory, from an address of their own on."""

    name: str
    count: int
    fields: tuple[Field, ...]

    @property
    def width(self) -> int:
        """Bits of a record."""
        return sum(part.bits for part in self.fields)

    @property
    def bits(self) -> int:
        return self.count * self.width

    @property
    def bytes(self) -> int:
        return byte_count(self.bits)


@dataclass(frozen=True)
class Layout:
    """All regions of a tensor in memory.

    ``value``: type of the values. ``shapes``: of the arrays that are no vectors with an entry for each record.
    """

    value: str
    regions: tuple[Region, ...]
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def bits(self) -> int:
        """The exact size: what section III.A of MINT counts."""
        return sum(region.bits for region in self.regions)

    @property
    def bytes(self) -> int:
        """Bytes of memory; each region fills whole ones."""
        return sum(region.bytes for region in self.regions)

    @property
    def array_bytes(self) -> int:
        """Bytes of the unpacked arrays."""
        sizes = {"value": VALUE_DTYPES[self.value].itemsize, "id": np.dtype(np.int64).itemsize}
        return sum(
            region.bytes if part.kind == "bit" else region.count * sizes[part.kind]
            for region in self.regions
            for part in region.fields
        )


class StorageFormat(Protocol):
    """One format is one file in :mod:`sw.formats.storage`, a class with these members that is called ``FORMAT`` there.

    Its constructor takes the format's own parameters by name, all with a default, and keeps each under its name.

    Attributes
    ----------
    orders: of the tensors that it holds: 2 for matrices.
    keeps_zeros: whether a stored zero stays one; else it becomes a place without an entry.
    """

    orders: ClassVar[tuple[int, ...]]
    keeps_zeros: ClassVar[bool]

    def counts(self, tensor: SparseTensor) -> dict[str, int]:
        """The numbers beside shape and value type on which the size depends. Nothing large is made for them."""

    def layout(self, shape: Sequence[int], counts: Mapping[str, int], value: str) -> Layout:
        """Where each bit lies."""

    def encode(self, tensor: SparseTensor) -> Arrays:
        """The arrays; whole numbers are int64, values of the tensor's type."""

    def decode(self, arrays: Mapping[str, NDArray[Any]], shape: Sequence[int], value: str) -> SparseTensor:
        """The tensor that the arrays hold. Raises FormatError for arrays that hold none."""


def pack(layout: Layout, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[np.uint8]]:
    """The bytes of each region."""
    found = {}
    for region in layout.regions:
        first = region.fields[0]
        if first.kind == "bit":
            found[region.name] = arrays[first.array][: region.bytes]
        elif first.kind == "value" and len(region.fields) == 1:
            bits = patterns(np.ascontiguousarray(arrays[first.array]).reshape(-1), layout.value)
            found[region.name] = bits.astype(bits.dtype.newbyteorder("<"), copy=False).view(np.uint8)
        else:
            columns = [_as_words(part, arrays[part.array], layout.value) for part in region.fields]
            found[region.name] = pack_fields(columns, [part.bits for part in region.fields], region.count)
    return found


def _as_words(part: Field, array: NDArray[Any], value: str) -> NDArray[np.uint64]:
    if part.kind == "value":
        return patterns(np.ascontiguousarray(array).reshape(-1), value).astype(np.uint64)
    column = array.reshape(-1) if part.column is None else array[:, part.column]
    return (column + part.bias).astype(np.uint64)


def unpack(layout: Layout, memory: Mapping[str, NDArray[np.uint8]]) -> Arrays:
    """The arrays out of the bytes of each region, which may go on behind what is stored. Raises FormatError."""
    found: Arrays = {}
    columns: dict[str, list[NDArray[Any]]] = {}
    for region in layout.regions:
        data = memory[region.name]
        if len(data) < region.bytes:
            raise FormatError(f"region {region.name} has {len(data)} bytes: must have {region.bytes}")
        data = np.ascontiguousarray(data[: region.bytes])
        first = region.fields[0]
        if first.kind == "bit":
            found[first.array] = data
            continue
        if first.kind == "value" and len(region.fields) == 1:
            words: list[NDArray[Any]] = [data.view(f"<u{first.bits // 8}")]
        else:
            words = [*unpack_fields(data, [part.bits for part in region.fields], region.count)]
        for part, entries in zip(region.fields, words, strict=True):
            array = numbers(entries, layout.value) if part.kind == "value" else entries.astype(np.int64) - part.bias
            if part.column is None:
                found[part.array] = array.reshape(layout.shapes.get(part.array, (region.count,)))
            else:
                columns.setdefault(part.array, []).append(array)
    return found | {name: np.stack(parts, axis=1) for name, parts in columns.items()}


def require_bound(layout: Layout) -> None:
    """Refuses a tensor whose arrays in this format are above ``LARGEST_ARRAYS``. Raises FormatError."""
    if layout.array_bytes > LARGEST_ARRAYS:
        raise FormatError(f"arrays of {layout.array_bytes:,} bytes: must be at most {LARGEST_ARRAYS:,}")


def through_memory(form: StorageFormat, layout: Layout, tensor: SparseTensor) -> tuple[Arrays, SparseTensor]:
    """The arrays of a tensor, and the tensor as it comes back from its bytes in memory.

    Raises FormatError above the bound (:func:`require_bound`), before an array is made.
    """
    require_bound(layout)
    arrays = form.encode(tensor)
    return arrays, form.decode(unpack(layout, pack(layout, arrays)), tensor.shape, tensor.value)


def places(shape: Sequence[int]) -> int:
    """All places of a tensor, stored or not."""
    return prod(shape)
