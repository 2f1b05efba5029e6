"""An operand from standard input: a file of any form that operands may have, told apart by its first bytes."""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import OperandError

__all__ = ["NAME", "SOURCE", "STANDARD_INPUT", "spooled"]

# What is typed, and how messages and results call it.
STANDARD_INPUT = "-"
SOURCE = "standard input"
NAME = "stdin"
# First bytes of every form but Matrix Market, whose text has its own banner.
ENDINGS = {b"\x1f\x8b": ".mtx.gz", b"PK": ".npz", b"\x89HDF": ".h5"}


@contextmanager
def spooled() -> Iterator[Path]:
    """All of standard input as a file with the ending of its form, which is removed at the end. Raises OperandError."""
    stream = None if sys.stdin is None else getattr(sys.stdin, "buffer", None)
    if stream is None:
        raise OperandError(f"{STANDARD_INPUT}: {SOURCE} is closed: must be a matrix, as in cat A.mtx | fiberloom run -")
    if stream.isatty():
        raise OperandError(
            f"{STANDARD_INPUT}: {SOURCE} is a terminal: must be a matrix, as in cat A.mtx | fiberloom run -"
        )
    with tempfile.TemporaryDirectory(prefix="fiberloom-") as folder:
        path = Path(folder) / NAME
        with path.open("wb") as file:
            shutil.copyfileobj(stream, file)
        with path.open("rb") as file:
            first = file.read(4)
        if not first:
            raise OperandError(f"{SOURCE}: is empty: must be a matrix")
        ending = next((ending for mark, ending in ENDINGS.items() if first.startswith(mark)), ".mtx")
        yield path.rename(path.with_name(NAME + ending))
