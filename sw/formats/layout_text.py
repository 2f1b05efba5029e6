"""The bytes of a tensor in a storage format as a text diagram: `docs/formats.md` shows those of an example."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .sparse_tensor import SparseTensor
from .storage_format import Layout, Region, StorageFormat, pack

__all__ = ["EXAMPLES", "layout_text"]

_MATRIX = ((0, 1, 0, 0, 0, 2), (0, 0, 0, 0, 0, 0), (3, 0, 0, 4, 5, 0), (0, 0, 0, 0, 0, -1))
_TENSOR = (((0, 1), (0, 0), (2, 0)), ((0, 0), (0, 0), (0, 0)), ((0, 0), (3, 4), (0, -1)))


def _example(places: Any) -> SparseTensor:
    array = np.array(places, np.int8)
    ids = np.nonzero(array)
    return SparseTensor(shape=array.shape, ids=ids, values=array[ids], value="int8")


#: By order: a matrix of 4 x 6 and a tensor of 3 x 3 x 2, with values of 8 bits.
EXAMPLES = {2: _example(_MATRIX), 3: _example(_TENSOR)}


def layout_text(form: StorageFormat, tensor: SparseTensor) -> str:
    """Each region: its fields from the highest bit on, its records, and its bytes in the order of their addresses."""
    layout = form.layout(tensor.shape, form.counts(tensor), tensor.value)
    arrays = form.encode(tensor)
    memory = pack(layout, arrays)
    lines = [f"{layout.bits} bits in {layout.bytes} bytes"]
    for region in layout.regions:
        record = "1 bit" if region.width == 1 else f"{region.width} bits"
        whole = "1 byte" if region.bytes == 1 else f"{region.bytes} bytes"
        lines += ["", f"{region.name}: {region.count} x {record} = {region.bits} bits in {whole}"]
        lines += _box(region)
        lines += _records(layout, region, arrays)
        lines.append(f"  {'bytes':<12} {memory[region.name].tobytes().hex(' ') or '(none)'}")
    return "\n".join(lines)


def _box(region: Region) -> list[str]:
    """One record, its highest bit on the left."""
    cells, at = [], 0
    for part in region.fields:
        name = part.array if part.column is None else f"{part.array}[{part.column}]"
        bias = f" + {part.bias}" if part.bias else ""
        where = f"{at + part.bits - 1}:{at}" if part.bits > 1 else f"{at}" if part.bits else "no bit"
        cells.append(f" {where} {name}{bias} ")
        at += part.bits
    edge = "+".join("-" * len(cell) for cell in reversed(cells))
    return [f"  +{edge}+", f"  |{'|'.join(reversed(cells))}|", f"  +{edge}+"]


def _records(layout: Layout, region: Region, arrays: dict[str, NDArray[Any]]) -> Iterator[str]:
    """What each field holds, before its bias, by rising address."""
    for part in region.fields:
        array = arrays[part.array]
        if part.kind == "bit":
            entries = np.unpackbits(array, bitorder="little")[: region.count]
        else:
            entries = array.reshape(-1) if part.column is None else array[:, part.column]
        name = part.array if part.column is None else f"{part.array}[{part.column}]"
        yield f"  {name:<12} {' '.join(map(str, entries.tolist()))}".rstrip()
