"""The content of an operand as a digest, without parsing it."""

import hashlib
from pathlib import Path

from .collections import fetch_collection
from .downloads import digest
from .errors import OperandError
from .examples import pyamg_file
from .files import require_file
from .generators import GENERATORS
from .load import KINDS, load
from .networks import split_weight
from .standard_input import SOURCE, STANDARD_INPUT

__all__ = ["fingerprint"]


def fingerprint(spec: str) -> str:
    """A digest that is equal for equal content: of the file's bytes, of the matrix where it is one tensor of a
    network, or of the name where a generator makes it.

    Names of collections are downloaded when they are missing. Raises OperandError and MissingToolError for missing operands, as
    ``load`` does; a file that cannot be parsed is found later.
    """
    kind, separator, argument = spec.partition(":")
    if separator and kind in GENERATORS:
        return hashlib.sha256(f"generator {spec}".encode()).hexdigest()
    if separator and kind == "pyamg":
        return digest(pyamg_file(argument, spec))
    if separator and kind in ("suitesparse", "snap"):
        return digest(fetch_collection(kind, argument, spec)[0])
    if spec == STANDARD_INPUT:
        raise OperandError(f"{spec}: must be a file or a name: {SOURCE} can be read once only")
    if split_weight(spec) is not None:
        # What is in a file of weights, or beside it, and is not this tensor's does not count.
        matrix = load(spec).matrix
        content = hashlib.sha256(f"weights {matrix.shape} {matrix.data.dtype}".encode())
        for array in (matrix.indptr, matrix.indices, matrix.data):
            content.update(array.astype(array.dtype.newbyteorder("<")).tobytes())
        return content.hexdigest()
    require_file(Path(spec), spec, KINDS)
    try:
        return digest(Path(spec))
    except OSError as error:
        raise OperandError(f"{spec}: cannot be read ({error.strerror or error})") from None
