"""The judge of a run on wrong operands: unless it ends with an error, C must be the product of what lies in memory.

It follows the registers and the arrays in memory, as ``docs/memory_image.md`` describes them, and nothing of the plan that
made them. SciPy multiplies: neither the hardware nor the golden product takes part.
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sw.formats.csr import Csr
from sw.formats.memory_csr import CSR32, MemoryCsr
from sw.golden.arithmetic import in_slots
from sw.golden.compare import check_against_scipy
from sw.runtime.memory_image import MemoryImage
from sw.runtime.registers import field_value
from sw.scheme.terms import B_BY_COLUMNS

from .planned_list import OUTSIDE, UNTOLD, planned_list

if TYPE_CHECKING:
    from gen.design import Design

__all__ = ["put_nonzeros", "stored_nonzeros", "tells_rows", "wrong_product"]

Ints = NDArray[np.int64]
Words = NDArray[np.uint32]


def wrong_product(image: MemoryImage, c: Csr, design: "Design") -> str | None:
    """What is wrong with C as the product of what lies in memory; None if nothing is.

    Rows of B that no nonzero of A asks for do not count; where B lies by columns all of it does. Where strips share a row of C
    its columns may fall or repeat: nothing in memory says where a strip ends, and the sum is the product. Nor is C judged where a
    nonzero of A names a row of B too early or too late (:func:`tells_rows`).

    Parameters
    ----------
    image: A and B are read from it.
    c: what the run stored.
    design: on which it ran.
    """
    operands = _operands(image, design)
    if operands is None:
        return None
    if isinstance(operands, str):
        return f"{operands}, and the run ended without an error"
    a, b = operands
    strips = image.registers["SHAPE_I"] != image.rows
    verdict = check_against_scipy(a, b, _summed(c) if strips else c, "product of memory", design.pe.arithmetic)
    return None if verdict.correct else f"not the product of what lies in memory: {verdict.detail}"


def tells_rows(image: MemoryImage, design: "Design") -> bool:
    """Whether memory alone says which row of B each nonzero of A names.

    Where rows have planned places it does not if an entry has another row, or none, at the time that the nonzero says, or if the
    row's lines do.
    """
    return _operands(image, design) is not None


def _operands(image: MemoryImage, design: "Design") -> tuple[Csr, Csr] | str | None:
    """A and the rows of B that it asks for, as they lie in memory; or what is wrong with them.

    None where memory does not say which rows these are.
    """
    registers = image.registers
    by_columns = design.pe.dataflow in B_BY_COLUMNS
    fibers, extent = (image.columns, registers["SHAPE_K"]) if by_columns else (registers["SHAPE_K"], image.columns)
    a_begins, a_ends = _spans(image, "a_pointers", registers["SHAPE_I"])
    b_begins, b_ends = _spans(image, "b_pointers", fibers)
    planned = field_value("MODES", "planned", registers["MODES"])
    if field_value("MODES", "listed", registers["MODES"]):
        b_begins = _words(image, "b_positions")[:: 1 + planned][: registers["SHAPE_K"]].astype(np.int64)
    a = _gathered(image, "a", a_begins, a_ends)
    if a is None:
        return "row pointers of A fall or leave its elements"
    a_pointers, a_elements = a
    if planned:
        places = planned_list(image, design.lanes).named(a_pointers, a_elements[:, 0].astype(np.int64))
        if (places == OUTSIDE).any():
            return "elements of A lie outside"
        if (places == UNTOLD).any():
            return None
        a_elements = np.stack([places.astype(np.uint32), a_elements[:, 1]], axis=1)
    elif (a_elements[:, 0] >= registers["SHAPE_K"]).any():
        return "elements of A lie outside"
    used = np.full(fibers, by_columns)
    if not by_columns:
        used[a_elements[:, 0]] = True
    b = _gathered(image, "b", np.where(used, b_begins, 0), np.where(used, b_ends, 0))
    if b is None:
        return f"{'columns' if by_columns else 'rows'} of B fall or leave its elements"
    b_pointers, b_elements = b
    if (b_elements[:, 0] >= extent).any():
        return "elements of B lie outside"
    # The hardware's rows of A; those of the strips of a row of C follow one another.
    left = _csr(image.rows, registers["SHAPE_K"], a_pointers[image.starts], a_elements, image.value)
    right = _csr(fibers, extent, b_pointers, b_elements, image.value)
    return left, right.transposed() if by_columns else right


def stored_nonzeros(image: MemoryImage, tensor: str) -> Words:
    """Coordinate and value of all nonzeros that the array of A (``a``) or B (``b``) has bytes for."""
    records, form = _records(image, tensor)
    count = 8 * len(records) // form.record_bits
    arrays = {"pointers": np.array([0, count], np.uint32).view(np.uint8), "elements": records}
    _, coordinates, bits = form.unpack(arrays, 1, count)
    return np.stack((coordinates, bits), axis=1)


def put_nonzeros(image: MemoryImage, tensor: str, nonzeros: Words) -> None:
    """Writes them from the array's begin on; of a coordinate the bits that its record has."""
    records, form = _records(image, tensor)
    coordinates = nonzeros[:, 0] & np.uint32((1 << form.coordinate_bits) - 1)
    packed = form.pack(np.array([len(nonzeros)], np.uint32), coordinates, nonzeros[:, 1])["elements"].view(np.uint8)
    records[: len(packed)] = packed


def _records(image: MemoryImage, tensor: str) -> tuple[NDArray[np.uint8], MemoryCsr]:
    """The array of nonzeros, and its format as the registers say it."""
    registers, name = image.registers, f"{tensor}_elements"
    data = image.regions[name].data if name in image.regions else np.zeros(0, np.uint8)
    if image.stored.plain:
        return data, CSR32
    return data, MemoryCsr(field_value("COORDINATES", tensor, registers["COORDINATES"]), image.value)


def _gathered(image: MemoryImage, tensor: str, begins: Ints, ends: Ints) -> tuple[Ints, Words] | None:
    """Rows, each after the one before it: their pointers and their nonzeros. None where a row is none."""
    stored = stored_nonzeros(image, tensor)
    lengths = ends - begins
    if (lengths < 0).any() or ends.max(initial=0) > len(stored):
        return None
    pointers = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return pointers, stored[np.repeat(begins - pointers[:-1], lengths) + np.arange(pointers[-1])]


def _summed(c: Csr) -> Csr:
    """The same with columns that rise, those that repeat added up."""
    wide = c.to_scipy().astype(np.int64 if c.value.startswith("int") else np.float64)
    wide.sum_duplicates()
    kind = np.int32 if c.value.startswith("int") else np.float32
    return Csr.from_scipy(wide, in_slots(wide.data.astype(kind).view(np.uint32), c.value), c.value)


def _csr(rows: int, columns: int, pointers: Ints, nonzeros: Words, value: str) -> Csr:
    return Csr(
        rows=rows,
        columns=columns,
        pointers=pointers,
        coordinates=np.ascontiguousarray(nonzeros[:, 0]),
        bits=np.ascontiguousarray(nonzeros[:, 1]),
        value=value,
    )


def _words(image: MemoryImage, name: str) -> Words:
    return image.regions[name].data.view("<u4") if name in image.regions else np.zeros(0, np.uint32)


def _spans(image: MemoryImage, name: str, rows: int) -> tuple[Ints, Ints]:
    pointers = _words(image, name)[: rows + 1].astype(np.int64)
    return pointers[:-1], pointers[1:]
