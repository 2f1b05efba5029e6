"""The table of a sweep as a Parquet file."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sw.operands.errors import MissingToolError
from sw.runtime.rows import COLUMNS

__all__ = ["require_parquet", "write_parquet"]

INSTALL = "sweep needs pyarrow for its table: pip install 'fiberloom[sweep]'"


def require_parquet() -> Any:
    """Pyarrow. Raises MissingToolError without it, before hours are spent."""
    try:
        import pyarrow
    except ModuleNotFoundError:
        raise MissingToolError(INSTALL) from None
    return pyarrow


def write_parquet(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Writes rows with the columns and types of ``sw.runtime.rows.COLUMNS``."""
    arrow = require_parquet()
    import pyarrow.parquet

    types = {bool: arrow.bool_(), str: arrow.string(), int: arrow.int64(), float: arrow.float64()}
    schema = arrow.schema([(name, types[kind]) for name, kind in COLUMNS.items()])
    with path.open("wb") as stream:  # Arrow opens no file whose name is no text
        pyarrow.parquet.write_table(arrow.Table.from_pylist(list(rows), schema=schema), stream)
