"""Example matrices of PyAMG: real ones that install with the package."""

from importlib import util
from pathlib import Path

import scipy.io
import scipy.sparse as sp

from gen.design import did_you_mean

from .errors import MissingToolError, OperandError
from .operand import canonical_csr

__all__ = ["pyamg_file", "pyamg_names", "read_pyamg"]


def _folder() -> Path | None:
    found = util.find_spec("pyamg")
    if found is None or found.origin is None:
        return None
    return Path(found.origin).parent / "gallery" / "example_data"


def pyamg_names() -> list[str]:
    """The examples; none when PyAMG is not installed."""
    folder = _folder()
    return [] if folder is None else sorted(path.stem for path in folder.glob("*.mat"))


def pyamg_file(name: str, source: str) -> Path:
    """The path of an example. Raises MissingToolError without PyAMG, OperandError when there is no such example."""
    folder = _folder()
    if folder is None:
        raise MissingToolError(f"{source}: PyAMG is not installed: pip install pyamg")
    if name not in pyamg_names():
        hint = did_you_mean(name, pyamg_names())
        raise OperandError(f"{source}: no such example: must be one of {', '.join(pyamg_names())}{hint}")
    return folder / f"{name}.mat"


def read_pyamg(name: str, source: str) -> sp.csr_array:
    """The matrix ``A`` of one of PyAMG's example files, read from the installed wheel."""
    content = scipy.io.loadmat(pyamg_file(name, source))
    if not sp.issparse(content.get("A")):
        raise OperandError(f"{source}: this example holds no sparse matrix A")
    return canonical_csr(content["A"], source)
