"""Weights of neural networks: a tensor of a ``.safetensors`` or ``.onnx`` file as a matrix.

The first dimension gives the rows, all others together the columns, row-major: a convolution (out, in, kh, kw) becomes
out x in kh kw, as im2col unfolds it.
"""

import difflib
import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from .errors import MissingToolError, OperandError
from .files import require_file
from .memory import require_memory
from .operand import canonical_csr

__all__ = ["NETWORKS", "read_weight", "split_weight", "weight_names", "weight_operand_name"]

NETWORKS = (".safetensors", ".onnx")
EXPECTED = "must be FILE.safetensors:TENSOR or FILE.onnx:TENSOR"
# Types of values, as each form of file calls them.
SAFETENSORS_TYPES = ("F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8", "BOOL")
ONNX_TYPES = (
    "DOUBLE", "FLOAT", "FLOAT16", "BFLOAT16",
    "INT64", "INT32", "INT16", "INT8", "UINT64", "UINT32", "UINT16", "UINT8", "BOOL",
)  # fmt: skip
# A layer's name stands for this part of it.
WEIGHT = ".weight"
MOST_NAMES = 5
# Bytes that a value takes while it becomes an entry of a matrix.
VALUE_BYTES = 16


@dataclass(frozen=True)
class _Weight:
    """``kind``: of its values, as the file calls it. ``read``: gives the array, or a matrix of what is stored."""

    shape: tuple[int, ...]
    kind: str
    read: Callable[[], Any]


@dataclass(frozen=True)
class _Network:
    """``tensors`` by name; ``layers``: names that stand for a tensor, and its own; ``types`` that its values may have."""

    types: tuple[str, ...]
    tensors: dict[str, _Weight] = field(default_factory=dict)
    layers: dict[str, str] = field(default_factory=dict)


def split_weight(spec: str) -> tuple[Path, str] | None:
    """File and tensor of ``FILE.onnx:TENSOR``, the tensor empty where it is left out; None for all other operands."""
    found = re.match(rf"(.*?(?:{'|'.join(map(re.escape, NETWORKS))}))(?::(.*))?$", spec, re.IGNORECASE | re.DOTALL)
    return None if found is None else (Path(found[1]), found[2] or "")


def weight_operand_name(path: Path, tensor: str) -> str:
    """For tables and file names."""
    return re.sub(r"[^\w.-]+", "-", f"{path.stem}-{tensor}")


def read_weight(path: Path, tensor: str, source: str) -> sp.csr_array:
    """A tensor as a matrix, its zeros not stored.

    Parameters
    ----------
    tensor: its name, that of a layer with a tensor ``LAYER.weight``, or of a node of an ONNX graph, whose first weights it means.
    source: names the operand in messages.

    Raises OperandError, and MissingToolError without the library that reads the file.
    """
    with _opened(path, source) as network:
        name = _name(network, tensor, path, source)
        weight = network.tensors[name]
        if weight.kind not in network.types:
            raise OperandError(f"{source}: values are {weight.kind}: must be one of {', '.join(network.types)}")
        if len(weight.shape) < 2:
            raise OperandError(
                f"{source}: {len(weight.shape)} dimension{'' if len(weight.shape) == 1 else 's'}: must be two or more"
            )
        require_memory(VALUE_BYTES * math.prod(weight.shape), source)
        values = weight.read()
        rows, columns = weight.shape[0], math.prod(weight.shape[1:])
        if sp.issparse(values):
            return canonical_csr(values, source)
        return canonical_csr(sp.csr_array(_wide(values).reshape(rows, columns)), source)


def weight_names(path: Path, source: str) -> list[str]:
    """Tensors of a file that can be matrices, in its order. Raises as :func:`read_weight`."""
    with _opened(path, source) as network:
        return _matrices(network)


def _matrices(network: _Network) -> list[str]:
    return [name for name, weight in network.tensors.items() if len(weight.shape) > 1 and weight.kind in network.types]


def _name(network: _Network, asked: str, path: Path, source: str) -> str:
    """The tensor that a name stands for."""
    if asked in network.tensors:
        return asked
    if asked and f"{asked}{WEIGHT}" in network.tensors:
        return f"{asked}{WEIGHT}"
    if asked in network.layers:
        return network.layers[asked]
    names = _matrices(network)
    if not names:
        raise OperandError(f"{source}: holds no tensor of two or more dimensions")
    if not asked:
        more = ", ..." if len(names) > MOST_NAMES else ""
        raise OperandError(f"{source}: names no tensor: {EXPECTED}, one of {', '.join(names[:MOST_NAMES])}{more}")
    known = [*names, *network.layers]
    near = difflib.get_close_matches(asked, known, n=MOST_NAMES, cutoff=0.4) or known[:MOST_NAMES]
    raise OperandError(f"{source}: {path.name} has no tensor {asked!r}: nearest of {len(names)} are {', '.join(near)}")


@contextmanager
def _opened(path: Path, source: str) -> Iterator[_Network]:
    require_file(path, source, EXPECTED)
    opened = _safetensors if path.name.lower().endswith(NETWORKS[0]) else _onnx
    with opened(path, source) as network:
        yield network


def _missing(error: ModuleNotFoundError, source: str) -> MissingToolError:
    return MissingToolError(f"{source}: needs {error.name}, which is not installed: pip install 'fiberloom[pruned]'")


@contextmanager
def _safetensors(path: Path, source: str) -> Iterator[_Network]:
    try:
        from safetensors import SafetensorError, safe_open
    except ModuleNotFoundError as error:
        raise _missing(error, source) from None
    try:
        with safe_open(path, framework="numpy") as file:
            network = _Network(SAFETENSORS_TYPES)
            for name in file.keys():  # noqa: SIM118 - the library's file has keys() and cannot be iterated
                part = file.get_slice(name)
                network.tensors[name] = _Weight(
                    tuple(part.get_shape()), part.get_dtype(), partial(file.get_tensor, name)
                )
            yield network
    except (SafetensorError, OSError) as error:
        raise OperandError(f"{source}: not a complete .safetensors file ({_one_line(error)})") from None
    except ModuleNotFoundError as error:  # bfloat16
        raise _missing(error, source) from None


@contextmanager
def _onnx(path: Path, source: str) -> Iterator[_Network]:
    try:
        import onnx
        from google.protobuf.message import DecodeError
        from onnx import numpy_helper
        from onnx.checker import ValidationError
    except ModuleNotFoundError as error:
        raise _missing(error, source) from None
    # Data of large models lie in files beside the model.
    to_array = partial(numpy_helper.to_array, base_dir=str(path.parent))

    def weight(tensor: Any) -> _Weight:
        kind = onnx.TensorProto.DataType.Name(tensor.data_type)
        return _Weight(tuple(tensor.dims), kind, partial(to_array, tensor))

    try:
        graph = onnx.load(str(path), load_external_data=False).graph
        network = _Network(ONNX_TYPES)
        network.tensors.update((tensor.name, weight(tensor)) for tensor in graph.initializer)
        for node in graph.node:
            if node.op_type == "Constant":
                network.tensors.update(
                    (node.output[0], weight(given.t)) for given in node.attribute if given.name == "value"
                )
        for tensor in graph.sparse_initializer:
            found = weight(tensor.values)
            shape = tuple(tensor.dims)
            read = partial(_stored, found.read, weight(tensor.indices).read, shape)
            network.tensors[tensor.values.name] = _Weight(shape, found.kind, read)
        for node in graph.node:
            used = [name for name in node.input if name in network.tensors and len(network.tensors[name].shape) > 1]
            if node.name and used:
                network.layers.setdefault(node.name, used[0])
        yield network
    except DecodeError as error:
        raise OperandError(f"{source}: not a complete .onnx file ({_one_line(error)})") from None
    except (OSError, ValueError, TypeError, RuntimeError, ValidationError) as error:
        raise OperandError(f"{source}: cannot be read ({_one_line(error)})") from None


def _stored(read_values: Callable[[], Any], read_places: Callable[[], Any], shape: tuple[int, ...]) -> sp.coo_array:
    """A sparse tensor as a matrix: its places are positions, row-major, or a coordinate a rank."""
    values, places = _wide(read_values()), read_places()
    columns = math.prod(shape[1:])
    if places.ndim == 2:
        places = np.ravel_multi_index(tuple(places.T), shape)
    if places.size and not 0 <= places.min() <= places.max() < shape[0] * columns:
        raise ValueError(f"positions {places.min()} to {places.max()} in {shape[0] * columns} places")
    return sp.coo_array((values, np.divmod(places, max(1, columns))), shape=(shape[0], columns))


def _wide(values: Any) -> Any:
    """SciPy has no floating types of 16 bits; binary32 holds each of their values."""
    return values.astype(np.float32) if values.dtype.itemsize == 2 and values.dtype.kind not in "iu" else values


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:120] or type(error).__name__
