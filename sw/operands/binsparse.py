"""binsparse files: an HDF5 container with one array for each part of the matrix and a JSON descriptor.

Format: GraphBLAS, "Binary Sparse Format Specification", version 0.1; matrices in its pre-defined formats.
"""

import json
import re
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sw.formats.canonical import Matrix, RangeError, canonical, negated

from .errors import MissingToolError, OperandError
from .memory import require_memory
from .operand import canonical_csr

__all__ = ["FORMATS", "read_binsparse", "write_binsparse"]

VERSION = "0.1"
# Layouts for writing; reading takes more of them.
FORMATS = ("CSR", "CSC", "COO")
ARRAYS = {
    "CSR": ("pointers_to_1", "indices_1"),
    "CSC": ("pointers_to_1", "indices_1"),
    "DCSR": ("indices_0", "pointers_to_1", "indices_1"),
    "DCSC": ("indices_0", "pointers_to_1", "indices_1"),
    "COO": ("indices_0", "indices_1"),
    "COOR": ("indices_0", "indices_1"),
    "COOC": ("indices_0", "indices_1"),
}
BY_COLUMN = ("CSC", "DCSC", "COOC")
STRUCTURES = ("symmetric_lower", "symmetric_upper", "skew_symmetric_lower", "skew_symmetric_upper")
TYPES = ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float32", "float64", "bint8")

Indices = NDArray[np.int64]


def _fail(source: str, complaint: str) -> NoReturn:
    raise OperandError(f"{source}: {complaint}")


def _h5py(source: str) -> Any:
    try:
        import h5py
    except ModuleNotFoundError:
        raise MissingToolError(f"{source}: binsparse files need h5py: pip install h5py") from None
    return h5py


def read_binsparse(path: Path, source: str, as_stored: bool = False) -> tuple[sp.csr_array, bool]:
    """Reads a file; returns the matrix and whether a second triangle was added to what is stored.

    CSR, CSC, COO (COOR, COOC), DCSR and DCSC; values real, whole, ``bint8`` or one for all (``iso``). ``as_stored`` leaves
    a symmetric matrix as the triangle that the file holds. Raises OperandError, MissingToolError without h5py.
    """
    h5py = _h5py(source)
    try:
        with h5py.File(path, "r") as file:
            descriptor = _descriptor(file, source)
            arrays = _arrays(h5py, file, descriptor, source)
    except OSError as error:
        _fail(source, f"not a complete HDF5 file ({' '.join(str(error).split())[:100]})")
    except (RuntimeError, KeyError, TypeError, ValueError) as error:
        _fail(source, f"not a readable binsparse file ({' '.join(str(error).split())[:100]})")
    shape = descriptor["shape"]
    rows, columns = _places(descriptor["format"], arrays, shape, source)
    values = _values(arrays["values"], descriptor["data_types"]["values"], len(rows), source)
    expanded = False
    structure = descriptor.get("structure")
    if structure is not None:
        rows, columns, values, expanded = _mirrored(structure, rows, columns, values, shape, as_stored, source)
    matrix = sp.coo_array((values, (rows, columns)), shape=tuple(shape))
    whole = canonical_csr(matrix, source)
    if whole.nnz != len(rows):
        _fail(source, f"{len(rows) - whole.nnz} coordinates are there twice: must be distinct")
    return whole, expanded


def _descriptor(file: Any, source: str) -> dict[str, Any]:
    """The descriptor, its entries checked as far as reading needs them."""
    text = file.attrs.get("binsparse")
    if text is None:
        _fail(source, "an HDF5 file without a binsparse descriptor (an attribute `binsparse` of its root)")
    try:
        content = json.loads(text if isinstance(text, str | bytes) else str(text))
    except ValueError as error:
        _fail(source, f"its binsparse descriptor is not JSON ({error})")
    found = content.get("binsparse", content) if isinstance(content, dict) else None
    if not isinstance(found, dict):
        _fail(source, "its binsparse descriptor is not a JSON object")
    layout = found.get("format")
    if isinstance(layout, dict):
        _fail(source, f"a custom binsparse format: must be one of {', '.join(ARRAYS)}")
    if layout not in ARRAYS:
        _fail(source, f"binsparse format {layout!r}: must be one of {', '.join(ARRAYS)}")
    shape = found.get("shape")
    if (
        not isinstance(shape, list)
        or len(shape) != 2
        or not all(isinstance(size, int) and not isinstance(size, bool) and size >= 0 for size in shape)
    ):
        _fail(source, f"binsparse shape {shape!r}: must be two whole numbers, rows and columns")
    types = found.get("data_types")
    names = (*ARRAYS[layout], "values")
    if not isinstance(types, dict) or not all(isinstance(types.get(name), str) for name in names):
        _fail(source, f"binsparse data_types: must say the types of {', '.join(names)}")
    return found


def _arrays(h5py: Any, file: Any, descriptor: dict[str, Any], source: str) -> dict[str, NDArray[Any]]:
    names = (*ARRAYS[descriptor["format"]], "values")
    missing = [name for name in names if not isinstance(file.get(name), h5py.Dataset)]
    if missing:
        _fail(source, f"has no dataset {', '.join(missing)}")
    require_memory(2 * sum(file[name].size * file[name].dtype.itemsize for name in names), source)
    found = {name: np.asarray(file[name][()]) for name in names}
    for name, array in found.items():
        if array.ndim != 1 or (name != "values" and array.dtype.kind not in "iu"):
            _fail(source, f"dataset {name} is {array.dtype} {array.shape}: must be a vector of whole numbers")
    if descriptor.get("fill"):
        fill = file.get("fill_value")
        if fill is None or np.any(np.asarray(fill[()]) != 0):
            _fail(source, "fill_value: must be 0 (the accelerator leaves out zeros alone)")
    promised = descriptor.get("number_of_stored_values")
    if isinstance(promised, int) and promised != len(found["indices_1"]):
        _fail(source, f"truncated: {len(found['indices_1'])} of {promised} stored values")
    return found


def _places(layout: str, arrays: dict[str, NDArray[Any]], shape: list[int], source: str) -> tuple[Indices, Indices]:
    """Row and column of each stored value."""
    by_column = layout in BY_COLUMN
    outer_size, inner_size = (shape[1], shape[0]) if by_column else (shape[0], shape[1])
    inner = _checked("indices_1", arrays["indices_1"], inner_size, source)
    if "pointers_to_1" in arrays:
        outer_names = (
            _checked("indices_0", arrays["indices_0"], outer_size, source)
            if "indices_0" in arrays
            else np.arange(outer_size, dtype=np.int64)
        )
        pointers = arrays["pointers_to_1"]
        wanted = len(outer_names) + 1
        if len(pointers) != wanted:
            _fail(source, f"pointers_to_1 has {len(pointers)} entries: must have {wanted}")
        if pointers[0] != 0 or pointers[-1] != len(inner) or np.any(pointers[1:] < pointers[:-1]):
            _fail(source, f"pointers_to_1 must rise from 0 to {len(inner)}, the number of stored values")
        begins = pointers.astype(np.int64)
        outer = np.repeat(outer_names, begins[1:] - begins[:-1])
    else:
        outer = _checked("indices_0", arrays["indices_0"], outer_size, source)
        if len(outer) != len(inner):
            _fail(source, f"indices_0 has {len(outer)} entries and indices_1 {len(inner)}: must be equally many")
    return (inner, outer) if by_column else (outer, inner)


def _checked(name: str, array: NDArray[Any], size: int, source: str) -> Indices:
    if len(array) and (int(array.max()) >= size or int(array.min()) < 0):
        wrong = int(array.max()) if int(array.max()) >= size else int(array.min())
        _fail(source, f"{name} holds {wrong}: must be from 0 to {size - 1}")
    return array.astype(np.int64)


def _values(stored: NDArray[Any], kind: str, count: int, source: str) -> NDArray[Any]:
    inner = re.fullmatch(r"iso\[(.*)\]", kind)
    plain = inner.group(1) if inner else kind
    if plain not in TYPES:
        _fail(source, f"values are {kind}: must be one of {', '.join(TYPES)}, or iso[...] of one")
    if stored.dtype != np.dtype("uint8" if plain == "bint8" else plain) and not (
        plain == "bint8" and stored.dtype.kind in "iub"
    ):
        _fail(source, f"dataset values is {stored.dtype}, its descriptor says {kind}")
    if plain == "bint8":
        stored = (stored != 0).astype(np.int64)
    wanted = 1 if inner else count
    if len(stored) != wanted:
        _fail(source, f"values has {len(stored)} entries: must have {wanted}")
    return np.full(count, stored[0]) if inner else stored


def _mirrored(
    structure: object,
    rows: Indices,
    columns: Indices,
    values: NDArray[Any],
    shape: list[int],
    as_stored: bool,
    source: str,
) -> tuple[Indices, Indices, NDArray[Any], bool]:
    if structure not in STRUCTURES:
        _fail(source, f"binsparse structure {structure!r}: must be one of {', '.join(STRUCTURES)}")
    name = str(structure)
    if shape[0] != shape[1]:
        _fail(source, f"{name} of {shape[0]} x {shape[1]}: must be square")
    wrong = rows < columns if name.endswith("lower") else rows > columns
    if wrong.any():
        at = int(np.argmax(wrong))
        _fail(source, f"{name} with an element at row {rows[at]}, column {columns[at]}: must be in the other triangle")
    skew = name.startswith("skew")
    off = rows != columns
    if skew and not off.all() and np.any(values[~off] != 0):
        _fail(source, f"{name} with values on the diagonal: they are zero")
    if as_stored:
        return rows, columns, values, False
    mirrored = values[off]
    if skew:
        try:
            mirrored = negated(mirrored)
            values = values.astype(mirrored.dtype)  # both triangles in one type: unsigned ones have no other sign
        except RangeError as error:
            at = int(np.flatnonzero(off)[error.entry])
            _fail(source, f"row {rows[at] + 1}, column {columns[at] + 1}: {error.complaint}")
        except ValueError as error:
            _fail(source, str(error))
    return (
        np.concatenate([rows, columns[off]]),
        np.concatenate([columns, rows[off]]),
        np.concatenate([values, mirrored]),
        True,
    )


def write_binsparse(
    path: Path, matrix: Matrix, layout: str = "CSR", *, symmetric: bool = False, name: str = ""
) -> None:
    """Writes a matrix as a binsparse file.

    Parameters
    ----------
    layout: one of ``FORMATS``. symmetric: store the lower triangle alone; the matrix must be symmetric.
    name: of the file for messages; that of ``path`` when empty.

    Values that are all the same are stored once (``iso``); indices take 32 bits where that is enough. Raises
    MissingToolError without h5py, ValueError for a layout or a matrix that cannot be written so, OSError.
    """
    if not (isinstance(matrix, sp.csr_array) and matrix.has_canonical_format):
        matrix = canonical(matrix)
    if layout not in FORMATS:
        raise ValueError(f"Layout must be one of {', '.join(FORMATS)}, not {layout!r}")
    h5py = _h5py(name or str(path))
    if symmetric:
        if matrix.shape[0] != matrix.shape[1] or (matrix != matrix.T).nnz:
            raise ValueError("A matrix must be symmetric to be stored as one triangle")
        matrix = sp.csr_array(sp.tril(matrix, format="csr"))
    index = np.uint32 if max(*matrix.shape, 1) <= np.iinfo(np.uint32).max else np.uint64
    stored: Any = matrix.tocsc() if layout == "CSC" else matrix.tocoo() if layout == "COO" else matrix
    if layout == "COO":
        arrays = {"indices_0": stored.row.astype(index), "indices_1": stored.col.astype(index)}
    else:
        stored.sort_indices()
        arrays = {"pointers_to_1": stored.indptr.astype(np.uint64), "indices_1": stored.indices.astype(index)}
    data = stored.data
    iso = len(data) > 1 and bool(np.all(data == data[0]))
    types = {name: str(array.dtype) for name, array in arrays.items()}
    types["values"] = f"iso[{data.dtype}]" if iso else str(data.dtype)
    descriptor = {
        "version": VERSION,
        "format": layout,
        "shape": [int(size) for size in matrix.shape],
        "number_of_stored_values": int(matrix.nnz),
        "data_types": types,
        **({"structure": "symmetric_lower"} if symmetric else {}),
    }
    with h5py.File(path, "w") as file:
        for name, array in (*arrays.items(), ("values", data[:1] if iso else data)):
            file.create_dataset(name, data=array)
        file.attrs["binsparse"] = json.dumps({"binsparse": descriptor})
