"""Refuses names that do not lead to a file with an end."""

import difflib
import errno
import itertools
import stat
from pathlib import Path

from .errors import OperandError

__all__ = ["require_file"]

# Kinds of entries of a folder that are no regular files.
OTHERS = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)

# Entries of a folder that are looked at for one with nearly the same name.
MOST_NEIGHBOURS = 1000


def require_file(path: Path, spec: str, kinds: str) -> None:
    """Raises OperandError unless ``path`` leads to a regular file, before anything opens it: a pipe may never end or begin.

    Parameters
    ----------
    spec: as the user typed it. kinds: what it may be instead.
    """
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise OperandError(f"{spec}: no such file{_neighbour(path)}") from None
    except OSError as error:
        # Links that lead in a circle are not called so by Python itself.
        reason = "symbolic links in a circle" if error.errno == errno.ELOOP else error.strerror or str(error)
        raise OperandError(f"{spec}: cannot be read ({reason})") from None
    except ValueError as error:
        raise OperandError(f"{spec}: not a file name ({error})") from None
    if stat.S_ISDIR(mode):
        raise OperandError(f"{spec}: is a folder: must be {kinds}")
    for is_other, name in OTHERS:
        if is_other(mode):
            raise OperandError(f"{spec}: is {name}: must be a regular file")


def _neighbour(path: Path) -> str:
    """The file of the same folder whose name is nearest, endings apart."""
    try:
        entries = itertools.islice(path.parent.iterdir(), MOST_NEIGHBOURS)
        names = {_stem(entry.name): entry.name for entry in entries if entry.name.isprintable() and entry.is_file()}
    except (OSError, ValueError):
        return ""
    near = difflib.get_close_matches(_stem(path.name), names, n=1)
    return f" (did you mean {names[near[0]]}?)" if near else ""


def _stem(name: str) -> str:
    """The name without what all operands end in."""
    return name.removesuffix(".gz").rpartition(".")[0] or name
