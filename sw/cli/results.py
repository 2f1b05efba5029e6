"""Results that are kept from sweep to sweep, one file each, under the digest of what they depend on."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from sw.operands import UserError

__all__ = ["Store"]


class Store:
    """A folder of result records. Files appear whole; two sweeps that keep the same result write the same."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.json"

    def get(self, key: str) -> dict[str, Any] | None:
        """The record, or None where there is none that can be read."""
        try:
            record = json.loads(self._path(key).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return record if isinstance(record, dict) else None

    def put(self, key: str, record: dict[str, Any]) -> None:
        """Keeps a record. Raises UserError when the folder cannot be written."""
        path = self._path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=".partial-")
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as stream:
                    json.dump(record, stream)
                os.replace(name, path)
            except BaseException:
                os.unlink(name)
                raise
        except OSError as error:
            raise UserError(f"{self.folder}: cannot keep results ({error.strerror or error})") from None
