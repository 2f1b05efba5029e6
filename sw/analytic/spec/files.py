"""Files with actual data: masks of 0 and 1, and matrices in any form that Fiberloom reads."""

from pathlib import Path

import numpy as np

from ..densities.actual import Actual
from .document import Document, Steps

__all__ = ["actual_density"]

MASK_SUFFIXES = (".txt", ".mask")
# Of a matrix: a byte each.
MOST_PLACES = 1 << 28


def actual_density(document: Document, steps: Steps, name: str, extents: tuple[int, ...]) -> Actual:
    """Where the nonzeros of a tensor with these extents are. Raises SpecError.

    A mask is text of 0 and 1, the first rank of the projection fastest. Anything else is an operand: a matrix, whose rows and
    columns are the two ranks that have more than one coordinate.
    """
    path = Path(name)
    if not path.is_absolute():
        path = document.folder(str(steps[0])) / path
    if path.suffix in MASK_SUFFIXES:
        return Actual(_mask(document, steps, path, name, extents))
    return Actual(_matrix(document, steps, path, name, extents))


def _mask(document: Document, steps: Steps, path: Path, name: str, extents: tuple[int, ...]) -> np.ndarray:
    if not path.is_file():
        raise document.error(steps, "no such file", name)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise document.error(steps, f"cannot be read ({error.strerror or error})", name) from None
    digits = np.frombuffer(content, dtype=np.uint8)
    digits = digits[~np.isin(digits, np.frombuffer(b" \t\r\n", dtype=np.uint8))]
    if not np.isin(digits, np.frombuffer(b"01", dtype=np.uint8)).all():
        raise document.error(steps, "must be a file of the digits 0 and 1", name)
    points = int(np.prod(extents))
    if digits.size != points:
        shape = " x ".join(map(str, extents))
        raise document.error(steps, f"has {digits.size:,} digits: must have {shape} = {points:,}", name)
    return np.ascontiguousarray((digits == ord("1")).reshape(extents[::-1]).transpose())


def _matrix(document: Document, steps: Steps, path: Path, name: str, extents: tuple[int, ...]) -> np.ndarray:
    # Imported here: most specifications need no matrix, and the readers load SciPy.
    from sw.operands import UserError, load

    long = [length for length in extents if length > 1]
    if len(long) > 2:
        raise document.error(steps, "must be a mask: the tensor has more than two ranks", name)
    try:
        matrix = load(str(path) if path.exists() else name).matrix
    except UserError as error:
        raise document.error(steps, str(error), name) from None
    rows, columns = (*long, 1, 1)[:2]
    if matrix.shape != (rows, columns):
        raise document.error(steps, f"is {matrix.shape[0]} x {matrix.shape[1]}: must be {rows} x {columns}", name)
    if rows * columns > MOST_PLACES:
        raise document.error(steps, f"is {rows} x {columns}: must have at most {MOST_PLACES:,} places", name)
    return np.asarray(matrix.astype(bool).toarray()).reshape(extents)
