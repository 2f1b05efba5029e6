"""From what a user types to an operand."""

from functools import partial
from pathlib import Path

from gen.design import did_you_mean
from sw.names import shown

from .archives import read_npz, refuse_tns
from .binsparse import read_binsparse
from .collections import fetch_collection, read_edges
from .errors import OperandError
from .examples import read_pyamg
from .files import require_file
from .generators import GENERATORS, generate
from .im2col import IM2COL, read_im2col
from .matrix_market import read_matrix_market
from .networks import NETWORKS, read_weight, split_weight, weight_operand_name
from .operand import Operand
from .standard_input import SOURCE, STANDARD_INPUT, spooled
from .tensor_generators import TENSOR_GENERATORS
from .tensors import Tensor

__all__ = ["FILES", "KINDS", "load"]

FILES = (".mtx", ".mtx.gz", ".npz", ".h5", ".hdf5")
SOURCES = ("pyamg", "suitesparse", "snap", IM2COL, *GENERATORS)
_NAMES = f"pyamg:NAME, suitesparse:Group/Name, snap:NAME, a generator ({', '.join(GENERATORS)}) or im2col:...:OPERAND"
_WEIGHTS = ", ".join(f"{ending}:TENSOR" for ending in NETWORKS)
KINDS = f"{', '.join(FILES)}, {_WEIGHTS}, {STANDARD_INPUT} (standard input), {_NAMES}"


def load(spec: str | Operand | Tensor, *, as_stored: bool = False) -> Operand:
    """Reads a file or a named data set; an operand that is there already is the result.

    Parameters
    ----------
    spec: path of a ``.mtx``, ``.mtx.gz``, ``.npz`` or binsparse (``.h5``, ``.hdf5``) file, weights of a network as
        ``FILE.safetensors:TENSOR`` or ``FILE.onnx:TENSOR``, or ``pyamg:NAME``,
        ``suitesparse:Group/Name`` or ``snap:NAME`` (downloaded once), a generator's name as ``rmat:10:8:seed=1``, images
        unfolded for a convolution (:mod:`.im2col`), or ``-`` for one of these files on standard input.
    as_stored: keep only the stored triangle of a symmetric file (to line up with results of tools that do not expand).

    Raises OperandError (one line naming the file, the line in it when known, the value and what is allowed), or
    MissingToolError when the data set needs something that is not installed or cannot be reached.
    """
    if isinstance(spec, Operand):
        return spec
    if isinstance(spec, Tensor):
        raise OperandError(f"{spec}: {len(spec.shape)} dimensions: an operand must be a matrix")
    kind, separator, argument = spec.partition(":")
    if separator and kind in GENERATORS:
        name = f"{kind}{argument}" if kind == "mycielskian" else spec.replace(":", "-").replace("=", "")
        return Operand(name=name, source=spec, matrix=generate(kind, argument, spec))
    if separator and kind == IM2COL:
        return read_im2col(argument, spec, partial(load, as_stored=as_stored))
    if separator and kind == "pyamg":
        return Operand(name=argument, source=spec, matrix=read_pyamg(argument, spec))
    if separator and kind == "suitesparse":
        path, _ = fetch_collection(kind, argument, spec)
        matrix, expanded = read_matrix_market(path, spec, as_stored)
        return Operand(name=argument.split("/")[-1], source=spec, matrix=matrix, symmetric_expanded=expanded)
    if separator and kind == "snap":
        path, entry = fetch_collection(kind, argument, spec)
        once = entry.once and not as_stored
        return Operand(name=argument, source=spec, matrix=read_edges(path, spec, once), symmetric_expanded=once)
    if separator and kind in ("frostt", *TENSOR_GENERATORS):
        refuse_tns(spec)

    if not spec:
        raise OperandError(f"an operand's name is empty: must be {KINDS}")
    if spec == STANDARD_INPUT:
        with spooled() as path:
            return _from_file(path, SOURCE, as_stored)
    if (weight := split_weight(spec)) is not None:
        named = weight_operand_name(*weight)
        return Operand(name=named, source=shown(spec), matrix=read_weight(*weight, shown(spec)))
    path = Path(spec)
    if not path.name.lower().endswith((*FILES, ".tns", ".tns.gz")):
        hint = did_you_mean(kind, SOURCES) if separator else did_you_mean("".join(path.suffixes), FILES)
        raise OperandError(f"{spec}: not an operand: must be {KINDS}{hint}")
    require_file(path, spec, KINDS)
    return _from_file(path, shown(spec), as_stored)


def _from_file(path: Path, source: str, as_stored: bool) -> Operand:
    """The matrix of a file, by its ending. ``source``: for messages and records."""
    name, stem = path.name.lower(), shown(path.name)
    if name.endswith((".tns", ".tns.gz")):
        refuse_tns(source)
    if name.endswith(".npz"):
        return Operand(name=stem[:-4], source=source, matrix=read_npz(path, source))
    if name.endswith((".h5", ".hdf5")):
        matrix, expanded = read_binsparse(path, source, as_stored)
        stem = stem[: stem.lower().rindex(".h")]
        stem = stem[:-4] if stem.lower().endswith(".bsp") else stem
        return Operand(name=stem, source=source, matrix=matrix, symmetric_expanded=expanded)
    matrix, expanded = read_matrix_market(path, source, as_stored)
    stem = stem[: -len(".mtx.gz")] if name.endswith(".mtx.gz") else stem[: -len(".mtx")]
    return Operand(name=stem, source=source, matrix=matrix, symmetric_expanded=expanded)
