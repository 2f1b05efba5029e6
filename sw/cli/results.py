"""Results that are kept from sweep to sweep, one file each, under the digest of what they depend on."""

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from sw.operands import UserError

__all__ = ["Store"]


class Store:
    """A folder of result records, each beside a digest of its text: what was damaged later is as good as not kept.

    Files appear whole; two sweeps that keep the same result write the same.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.json"

    def get(self, key: str) -> dict[str, Any] | None:
        """The record, or None where there is none that can be read."""
        try:
            digest, _, text = self._path(key).read_text(encoding="utf-8").partition("\n")
            if digest != _digest(text):
                return None
            record = json.loads(text)
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
                text = json.dumps(record)
                with os.fdopen(handle, "w", encoding="utf-8") as stream:
                    stream.write(f"{_digest(text)}\n{text}")
                os.replace(name, path)
            except BaseException:
                os.unlink(name)
                raise
        except OSError as error:
            raise UserError(f"{self.folder}: cannot keep results ({error.strerror or error})") from None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
