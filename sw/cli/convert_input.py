"""What ``convert`` reads: a matrix, a tensor of order 3, or the folder of an earlier convert."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sw.formats.sparse_tensor import SparseTensor
    from sw.operands import Operand
    from sw.operands.tensors import Tensor

__all__ = ["ARRAYS", "RECORD", "load_tensor"]

RECORD, ARRAYS = "result.json", "tensor.npz"
ORDERS = (2, 3)


def load_tensor(
    spec: "str | Operand | Tensor", value: str, as_stored: bool
) -> "tuple[str, SparseTensor, dict[str, Any]]":
    """Name and tensor, and of the folder of an earlier convert its format's parameters by the format's name."""
    import os

    from sw.formats.array_checks import FormatError
    from sw.formats.sparse_tensor import SparseTensor
    from sw.operands import OperandError, load, to_csr
    from sw.operands.load_tensor import is_tensor, load_any_tensor
    from sw.operands.tensors import Tensor

    try:
        if isinstance(spec, str) and spec and os.path.isdir(spec):
            return _from_folder(Path(spec), spec, value)
        if isinstance(spec, Tensor) or (isinstance(spec, str) and (is_tensor(spec) or _holds_coordinates(spec))):
            found = spec if isinstance(spec, Tensor) else load_any_tensor(spec)
            if len(found.shape) not in ORDERS:
                raise OperandError(f"{spec}: {len(found.shape)} ranks: must be 2 or 3")
            found = found.kept(tuple(range(len(found.shape))))
            return found.name, _tensor(str(spec), found.shape, tuple(found.coordinates.T), found.values, value), {}
        operand = load(spec, as_stored=as_stored)
        return operand.name, SparseTensor.from_csr(to_csr(operand, value)), {}
    except FormatError as error:
        raise OperandError(f"{spec}: {error}") from None


def _holds_coordinates(spec: str) -> bool:
    """Whether this is an archive of a tensor's coordinates, which a matrix of SciPy's is not."""
    import zipfile

    from sw.operands.files import require_file
    from sw.operands.load import KINDS

    if not spec.lower().endswith(".npz"):
        return False
    require_file(Path(spec), spec, KINDS)
    try:
        with zipfile.ZipFile(spec) as archive:
            names = archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return False
    return "coords.npy" in names and "format.npy" not in names


def _tensor(spec: str, shape: tuple[int, ...], ids: tuple[Any, ...], values: Any, value: str) -> "SparseTensor":
    """Sorted entries with values of the design's type."""
    import numpy as np
    import scipy.sparse as sp

    from sw.formats.csr import VALUE_DTYPES
    from sw.formats.sparse_tensor import SparseTensor
    from sw.operands import Operand, OperandError, to_design_values

    # One row of all values: what a value type cannot hold is refused in one place for all operands.
    places = np.arange(len(values))
    row = sp.csr_array((values, places, np.array([0, len(values)])), shape=(1, max(1, len(values))))
    try:
        bits = to_design_values(Operand(name=spec, source=spec, matrix=row), value)
    except OperandError as error:
        text = re.sub(r"row 1, column (\d+)", lambda match: _place(ids, int(match[1]) - 1), str(error))
        raise OperandError(text) from None
    kind = VALUE_DTYPES[value]
    typed = bits.view(np.float32 if kind.kind == "f" else np.int32).astype(kind, copy=False)
    return SparseTensor(shape=shape, ids=tuple(np.ascontiguousarray(rank) for rank in ids), values=typed, value=value)


def _place(ids: tuple[Any, ...], entry: int) -> str:
    """Coordinates from 1, as messages have them."""
    return f"coordinates {', '.join(str(int(rank[entry]) + 1) for rank in ids)}"


def _from_folder(folder: Path, spec: str, value: str) -> "tuple[str, SparseTensor, dict[str, Any]]":
    """The tensor that an earlier convert wrote."""
    import json
    import zipfile

    import numpy as np

    from sw.formats.array_checks import FormatError, id_array
    from sw.formats.csr import VALUE_DTYPES
    from sw.formats.sparse_tensor import require_shape
    from sw.formats.storage import storage_format, storage_names
    from sw.names import shown
    from sw.operands import OperandError
    from sw.operands.load import KINDS

    expected = f"must be the folder of an earlier convert, {KINDS}"
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        with (folder / ARRAYS).open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: np.asarray(archive[name]) for name in archive.files}
    except FileNotFoundError as error:
        raise OperandError(f"{spec}: is a folder without {Path(str(error.filename)).name}: {expected}") from None
    except (OSError, ValueError, EOFError, AttributeError, RecursionError, zipfile.BadZipFile) as error:
        raise OperandError(f"{spec}: cannot be read ({' '.join(str(error).split())[:120]}): {expected}") from None
    kind = record.get("to") if isinstance(record, dict) else None
    written = record.get("value") if isinstance(record, dict) else None
    if kind not in storage_names() or written not in VALUE_DTYPES:
        raise OperandError(f"{spec}: {RECORD} is no convert's: {expected}")
    try:
        parameters = {
            name: tuple(content) if isinstance(content, list) else content
            for name, content in record.get("parameters", {}).get(kind, {}).items()
        }
        found = storage_format(kind, **parameters)
    except (AttributeError, TypeError, ValueError) as error:
        raise OperandError(f"{spec}: {RECORD} has no parameters of {kind} ({' '.join(str(error).split())})") from None
    try:
        shape = tuple(int(size) for size in id_array(arrays, "shape"))
        if len(shape) not in found.orders:
            raise FormatError(f"shape has {len(shape)} ranks: {kind} takes {' or '.join(map(str, found.orders))}")
        require_shape(shape)
        tensor = found.decode(arrays, shape, written)
    except FormatError as error:
        raise OperandError(f"{spec}: damaged {kind} tensor: {error}") from None
    name = shown(folder.resolve().name)
    if written == value:
        return name, tensor, {kind: parameters}
    return name, _tensor(spec, shape, tensor.ids, tensor.values, value), {kind: parameters}
