"""From what a user types to an order-3 tensor."""

from pathlib import Path

from .collections import fetch_collection
from .errors import OperandError
from .files import require_file
from .tensor_generators import TENSOR_GENERATORS, generate_tensor
from .tensors import Tensor, read_tensor_npz, read_tns

__all__ = ["ORDER", "TENSOR_KINDS", "is_tensor", "load_any_tensor", "load_tensor"]

ORDER = 3
FILES = (".tns", ".tns.gz")
TENSOR_KINDS = f"{', '.join(FILES)}, .npz, frostt:NAME or a generator ({', '.join(TENSOR_GENERATORS)})"


def is_tensor(spec: str) -> bool:
    """Whether a name can be nothing but a tensor's; archives (``.npz``) may hold either."""
    return spec.partition(":")[0] in ("frostt", *TENSOR_GENERATORS) or spec.lower().endswith(FILES)


def load_any_tensor(spec: str) -> Tensor:
    """The tensor of any order as it is stored. Raises OperandError, MissingToolError."""
    kind, separator, argument = spec.partition(":")
    if separator and kind in TENSOR_GENERATORS:
        return generate_tensor(kind, argument, spec)
    if separator and kind == "frostt":
        return read_tns(fetch_collection(kind, argument, spec)[0], spec)
    path = Path(spec)
    if not path.name.lower().endswith((*FILES, ".npz")):
        raise OperandError(f"{spec}: not a tensor: must be {TENSOR_KINDS}")
    require_file(path, spec, TENSOR_KINDS)
    return read_tensor_npz(path, spec) if path.name.lower().endswith(".npz") else read_tns(path, spec)


def load_tensor(spec: str, ranks: tuple[int, ...] | None = None) -> Tensor:
    """Reads an order-3 tensor: sorted, each place once.

    Parameters
    ----------
    spec: a ``.tns``, ``.tns.gz`` or ``.npz`` file, ``frostt:NAME`` (downloaded once), or a generator's name.
    ranks: which of its ranks to keep and in which order, from 0; nonzeros that then fall together are summed. All of them
        when not given.

    Raises OperandError (one line), or MissingToolError when the data set cannot be had.
    """
    tensor = load_any_tensor(spec)
    wanted = tuple(range(len(tensor.shape))) if ranks is None else ranks
    if len(wanted) != ORDER:
        hint = "" if ranks is not None else ": say which three to keep"
        raise OperandError(f"{spec}: {len(wanted)} ranks: must be {ORDER}{hint}")
    return tensor.kept(wanted)
