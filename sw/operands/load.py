"""From what a user types to an operand."""

from pathlib import Path

from .archives import read_npz, refuse_tns
from .datasets import fetch_suitesparse, mycielskian, read_pyamg
from .errors import OperandError
from .matrix_market import read_matrix_market
from .operand import Operand

__all__ = ["KINDS", "load"]

KINDS = ".mtx, .mtx.gz, .npz, pyamg:NAME, mycielskian:N or suitesparse:Group/Name"


def load(spec: str, *, as_stored: bool = False) -> Operand:
    """Reads a file or a named data set.

    Parameters
    ----------
    spec: path of a ``.mtx``, ``.mtx.gz`` or ``.npz`` file, or ``pyamg:NAME``, ``mycielskian:N``,
        ``suitesparse:Group/Name`` (downloaded once).
    as_stored: keep only the stored triangle of a symmetric Matrix Market file (to line up with results of tools that do
        not expand).

    Raises OperandError (one line naming the file, the line in it when known, the value and what is allowed), or
    MissingToolError when the data set needs something that is not there.
    """
    kind, separator, argument = spec.partition(":")
    if separator and kind == "mycielskian":
        return Operand(name=f"mycielskian{argument}", source=spec, matrix=mycielskian(argument, spec))
    if separator and kind == "pyamg":
        return Operand(name=argument, source=spec, matrix=read_pyamg(argument, spec))
    if separator and kind == "suitesparse":
        path = fetch_suitesparse(argument, spec)
        matrix, expanded = read_matrix_market(path, spec, as_stored)
        return Operand(name=argument.split("/")[-1], source=spec, matrix=matrix, symmetric_expanded=expanded)

    path = Path(spec)
    name = path.name.lower()
    if not name.endswith((".mtx", ".mtx.gz", ".npz", ".tns")):
        raise OperandError(f"{spec}: not an operand: must be {KINDS}")
    if not path.exists():
        raise OperandError(f"{spec}: no such file")
    if path.is_dir():
        raise OperandError(f"{spec}: is a folder: must be {KINDS}")
    if name.endswith(".tns"):
        refuse_tns(spec)
    if name.endswith(".npz"):
        return Operand(name=path.name[:-4], source=spec, matrix=read_npz(path, spec))
    matrix, expanded = read_matrix_market(path, spec, as_stored)
    stem = path.name[: -len(".mtx.gz")] if name.endswith(".mtx.gz") else path.name[: -len(".mtx")]
    return Operand(name=stem, source=spec, matrix=matrix, symmetric_expanded=expanded)
