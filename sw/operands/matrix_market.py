"""Matrix Market files (``.mtx``, ``.mtx.gz``) in all forms that hold real numbers.

Format: NIST, "The Matrix Market Exchange Formats". SciPy reads the numbers; the form is checked here, line by line, so
that a damaged file is refused with the line at fault instead of being read as something else.
"""

import codecs
import gzip
import io
import math
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import scipy.io
import scipy.sparse as sp
from numpy.typing import NDArray

from sw.formats.canonical import RangeError, negated
from sw.formats.distinct import distinct

from . import scan
from .errors import OperandError
from .memory import require_memory
from .operand import COORDINATE_LIMIT, canonical_csr

__all__ = ["read_matrix_market"]

BANNER = "%%MatrixMarket matrix <coordinate|array> <real|integer|pattern> <general|symmetric|skew-symmetric|hermitian>"
FORMATS = ("coordinate", "array")
# What a value is made of, as `scan` counts it. Only hermitian files may be complex, and only with real values: such a
# file is how others write a real symmetric matrix whose type happened to be complex.
FIELDS = {"real": 2, "double": 2, "integer": 1, "unsigned-integer": 1, "pattern": 0, "complex": 3}
NAMES = {3: "complex", 2: "real", 1: "integer", 0: "pattern"}
# Longer ones first: that of UTF-32 begins with that of UTF-16.
MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF8: "UTF-8",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
SYMMETRIES = ("general", "symmetric", "skew-symmetric", "hermitian")


@dataclass(frozen=True, kw_only=True)
class _Header:
    """The content of banner and size line. ``line`` is the size line (from 1), ``end`` the byte after it."""

    layout: str
    field: str
    symmetry: str
    rows: int
    columns: int
    stored: int
    line: int
    end: int


def read_matrix_market(path: Path, source: str, as_stored: bool = False) -> tuple[sp.csr_array, bool]:
    """Reads a file; returns the matrix and whether a second triangle was added to what is stored.

    ``as_stored`` leaves a symmetric, skew-symmetric or hermitian file as the triangle it holds. In the ``array`` layout
    zeros are not stored; in the ``coordinate`` layout every listed entry is. Raises OperandError.
    """
    text = _read_bytes(path, source)
    header = _read_header(text, source)
    body = text[header.end :]
    _check_body(body, header, source)
    if header.layout == "array":
        return _read_array(body, header, source, as_stored)
    return _read_coordinate(body, header, source, as_stored)


def _fail(source: str, line: int | None, complaint: str) -> NoReturn:
    where = source if line is None else f"{source}:{line}"
    raise OperandError(f"{where}: {complaint}")


def _read_bytes(path: Path, source: str) -> bytes:
    try:
        if path.name.endswith(".gz"):
            with gzip.open(path, "rb") as stream:
                text = stream.read()
        else:
            text = path.read_bytes()
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        _fail(source, None, f"not a complete gzip file ({error})")
    except OSError as error:
        _fail(source, None, f"cannot be read ({error.strerror or error})")
    if not text.strip():
        _fail(source, None, "empty file: a Matrix Market file begins with '%%MatrixMarket matrix ...'")
    return text


def _read_header(text: bytes, source: str) -> _Header:
    mark = next((mark for mark in MARKS if text.startswith(mark)), None)
    if mark is not None:
        _fail(source, 1, f"begins with the byte-order mark of {MARKS[mark]}: must be plain ASCII text, without a mark")
    end = text.find(b"\n")
    first = text[: end if end >= 0 else len(text)].decode("latin-1").strip()
    words = first.split()
    if not words or words[0].lower() != "%%matrixmarket":
        _fail(source, 1, f"not a Matrix Market file: begins with {first[:40]!r}, must begin with '%%MatrixMarket'")
    if len(words) != 5 or words[1].lower() != "matrix":
        _fail(source, 1, f"banner {first[:80]!r} is not '{BANNER}'")
    layout, field, symmetry = (word.lower() for word in words[2:])
    if layout not in FORMATS:
        _fail(source, 1, f"format {layout!r}: must be {' or '.join(FORMATS)}")
    if symmetry not in SYMMETRIES:
        _fail(source, 1, f"symmetry {symmetry!r}: must be one of {', '.join(SYMMETRIES)}")
    if field == "complex" and symmetry != "hermitian":
        _fail(source, 1, "field 'complex': must be real, integer or pattern (the accelerator holds one number a value)")
    if field not in FIELDS:
        _fail(source, 1, f"field {field!r}: must be real, integer or pattern")
    if field == "pattern" and layout == "array":
        _fail(source, 1, "an array of pattern: a pattern needs the coordinate format")

    line = 1
    while end >= 0:
        begin, line = end + 1, line + 1
        end = text.find(b"\n", begin)
        content = text[begin : end if end >= 0 else len(text)].strip()
        if content and not content.startswith(b"%"):
            break
    else:
        _fail(source, line, "ends before the size line")
    sizes = content.decode("latin-1").split()
    names = "rows, columns and entries" if layout == "coordinate" else "rows and columns"
    count = 3 if layout == "coordinate" else 2
    shown = " ".join(sizes)[:60]
    if len(sizes) != count or not all(re.fullmatch(r"[-+]?[0-9]+", size) for size in sizes):
        _fail(source, line, f"size line {shown!r}: must be {count} numbers ({names})")
    if any(size.startswith("-") for size in sizes):
        _fail(source, line, f"size line {shown!r}: {names} must be at least 0")
    rows, columns = int(sizes[0]), int(sizes[1])
    if max(rows, columns) > COORDINATE_LIMIT:
        _fail(source, line, f"shape {rows} x {columns}: at most {COORDINATE_LIMIT} rows and columns")
    if symmetry != "general" and rows != columns:
        _fail(source, line, f"a {symmetry} matrix of {rows} x {columns}: must be square")
    if layout == "coordinate":
        stored = int(sizes[2])
    elif symmetry == "general":
        stored = rows * columns
    else:
        stored = rows * (rows - 1) // 2 + (0 if symmetry == "skew-symmetric" else rows)
    return _Header(
        layout=layout,
        field=field,
        symmetry=symmetry,
        rows=rows,
        columns=columns,
        stored=stored,
        line=line,
        end=end + 1 if end >= 0 else len(text),
    )


def _check_body(body: bytes, header: _Header, source: str) -> None:
    indices = 2 if header.layout == "coordinate" else 0
    field = FIELDS[header.field]
    # A size line may promise more than the bytes can hold, and more than a machine integer can.
    expected = min(header.stored, len(body) + 1)
    verdict, line, begin, end, found, sides = scan.scan_body(
        np.frombuffer(body, dtype=np.uint8), indices, field, header.rows, header.columns, expected
    )
    at = header.line + 1 + line
    token = body[begin:end].decode("latin-1").strip()[:40]
    unit = "entries" if indices else "values"
    if verdict == scan.FIELDS:
        values = {0: [], 1: ["value"], 2: ["value"], 3: ["real part", "imaginary part"]}[field]
        wanted = ["row", "column"][:indices] + values
        _fail(source, at, f"{token!r}: must be {len(wanted)} fields ({', '.join(wanted)})")
    if verdict == scan.BAD_INDEX:
        _fail(source, at, f"index {token!r}: must be a whole number from 1")
    if verdict in (scan.BAD_ROW, scan.BAD_COLUMN):
        name, limit = ("row", header.rows) if verdict == scan.BAD_ROW else ("column", header.columns)
        allowed = f"allowed are 1 to {limit}" if limit else "the matrix has none"
        _fail(source, at, f"{name} {token} is out of range: {allowed}")
    if verdict == scan.BAD_VALUE:
        _fail(source, at, f"value {token!r}: must be {'an integer' if field == 1 else 'a real number'}")
    if verdict == scan.SURPLUS:
        _fail(source, at, f"more {unit} than the {header.stored} promised on line {header.line}")
    if found != header.stored:
        _fail(source, None, f"truncated: {found} {unit} of the {header.stored} promised on line {header.line}")
    if header.symmetry == "skew-symmetric" and sides & 4:
        _fail(source, None, "a skew-symmetric file with entries on the diagonal: they are zero and must not be stored")


def _parse(body: bytes, header: _Header, source: str, symmetry: str) -> Any:
    """SciPy's reader on a clean header and body: it knows neither late comments nor leading plus signs."""
    plain = body
    if b"%" in plain:
        plain = re.sub(rb"(?m)^[ \t]*%.*\n?", b"", plain)
    if b"+" in plain:
        plain = re.sub(rb"(?<![^\s])\+", b"", plain)
    field = NAMES[FIELDS[header.field]]
    size = f"{header.rows} {header.columns}" + (f" {header.stored}" if header.layout == "coordinate" else "")
    banner = f"%%MatrixMarket matrix {header.layout} {field} {symmetry}\n{size}\n"
    try:
        matrix = scipy.io.mmread(io.BytesIO(banner.encode() + plain))
    except OverflowError:
        limits = np.iinfo(np.int64)
        for line, words in _data_lines(body, header):
            if not limits.min <= int(words[-1]) <= limits.max:
                shown = words[-1].decode("latin-1")[:40]
                _fail(source, line, f"value {shown} is out of range: int64 holds {limits.min} to {limits.max}")
        raise
    except ValueError as error:
        _fail(source, None, f"not readable as Matrix Market ({error})")
    if field == "complex":
        matrix = _real_part(matrix, source)
    if field in ("real", "complex"):
        values = matrix.data if header.layout == "coordinate" else matrix
        _check_overflow(values, body, header, source)
    return matrix


def _real_part(matrix: Any, source: str) -> Any:
    """The real part of a matrix that must have no other."""
    imaginary = matrix.imag.data if sp.issparse(matrix) else matrix.imag.ravel()
    # NaN is not zero.
    wrong = imaginary[imaginary != 0]
    if len(wrong):
        _fail(source, None, f"imaginary part {wrong[0]}: must be 0 (the accelerator holds one real number a value)")
    return matrix.real


def _data_lines(body: bytes, header: _Header) -> Iterator[tuple[int, list[bytes]]]:
    """The lines with entries: their numbers, from 1 in the whole file, and their words."""
    for line, text in enumerate(body.split(b"\n"), header.line + 1):
        words = text.split()
        if words and not words[0].startswith(b"%"):
            yield line, words


def _line_of(body: bytes, header: _Header, entry: int) -> int:
    """The line of the n-th stored entry."""
    return next(line for number, (line, _) in enumerate(_data_lines(body, header)) if number == entry)


def _negated(stored: NDArray[Any], body: bytes, header: _Header, source: str) -> NDArray[Any]:
    """The other triangle of a skew-symmetric file, of which every stored entry has one."""
    try:
        return negated(stored)
    except RangeError as error:
        _fail(source, _line_of(body, header, error.entry), error.complaint)


def _check_overflow(values: NDArray[np.float64], body: bytes, header: _Header, source: str) -> None:
    """An infinity is legal where the file says so, and an error where it is a finite number too large for float64."""
    if not np.isinf(values).any():
        return
    for line, words in _data_lines(body, header):
        word = words[2 if header.layout == "coordinate" else 0]
        if math.isinf(float(word)) and b"n" not in word.lower():
            shown, largest = word.decode("latin-1")[:40], np.finfo(np.float64).max
            _fail(source, line, f"value {shown} is out of range: float64 holds magnitudes up to {largest:.6e}")


def _read_coordinate(body: bytes, header: _Header, source: str, as_stored: bool) -> tuple[sp.csr_array, bool]:
    require_memory(16 * header.rows + 48 * header.stored, source)
    stored = _parse(body, header, source, "general")
    if header.field == "pattern":
        stored = sp.coo_array((np.ones(stored.nnz, np.int64), (stored.row, stored.col)), shape=stored.shape)

    def place(entry: int) -> str:
        # Mirror images follow what is stored.
        entry = entry if entry < stored.nnz else int(np.flatnonzero(stored.row != stored.col)[entry - stored.nnz])
        return f"{source}:{_line_of(body, header, entry)}"

    if header.symmetry == "general":
        return canonical_csr(stored, source, place), False
    rows, columns = stored.row, stored.col
    off_diagonal = rows != columns
    if np.any(rows < columns) and np.any(rows > columns):
        _refuse_both_triangles(rows, columns, header, source)
    if as_stored:
        return canonical_csr(stored, source, place), False
    mirrored = stored.data[off_diagonal]
    if header.symmetry == "skew-symmetric":
        mirrored = _negated(mirrored, body, header, source)
    whole = sp.coo_array(
        (
            np.concatenate([stored.data, mirrored]),
            (np.concatenate([rows, columns[off_diagonal]]), np.concatenate([columns, rows[off_diagonal]])),
        ),
        shape=stored.shape,
    )
    return canonical_csr(whole, source, place), True


def _refuse_both_triangles(
    rows: NDArray[np.integer], columns: NDArray[np.integer], header: _Header, source: str
) -> None:
    """Refuses an entry in both triangles: it would count twice after expansion."""
    below = rows > columns
    above = rows < columns
    lower = distinct(rows[below].astype(np.int64) * header.columns + columns[below])
    upper = distinct(columns[above].astype(np.int64) * header.columns + rows[above])
    common = np.intersect1d(lower, upper, assume_unique=True)
    if len(common):
        row, column = divmod(int(common[0]), header.columns)
        _fail(
            source,
            None,
            f"a {header.symmetry} file with entries ({row + 1}, {column + 1}) and ({column + 1}, {row + 1}): "
            "only one triangle may be stored",
        )


def _read_array(body: bytes, header: _Header, source: str, as_stored: bool) -> tuple[sp.csr_array, bool]:
    require_memory(48 * header.rows * header.columns, source)
    if header.rows == 0 or header.columns == 0:
        return sp.csr_array((header.rows, header.columns), dtype=np.float64), False
    dense = np.asarray(_parse(body, header, source, header.symmetry))
    if header.symmetry == "skew-symmetric":
        columns_below = [dense[column + 1 :, column] for column in range(header.columns)]
        _negated(np.concatenate(columns_below), body, header, source)
    expanded = header.symmetry != "general"
    if expanded and as_stored:
        dense, expanded = np.tril(dense), False
    return canonical_csr(sp.csr_array(dense), source), expanded
