"""Results that are kept from sweep to sweep, one file each, under the digest of what they depend on."""

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from sw import folders
from sw.notes import note

__all__ = ["Store"]


class Store:
    """A folder of result records, each with a digest of its text: a record that was damaged later counts as missing.

    Files appear complete; two sweeps that keep the same result write the same. ``kept``: every record could be kept.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kept = True

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.json"

    def get(self, key: str) -> dict[str, Any] | None:
        """The record, or None if none can be read."""
        try:
            digest, _, text = self._path(key).read_text(encoding="utf-8").partition("\n")
            if digest != _digest(text):
                return None
            record = json.loads(text)
        except (OSError, ValueError):
            return None
        return record if isinstance(record, dict) else None

    def put(self, key: str, record: dict[str, Any]) -> None:
        """Keeps a record. Where that cannot be done a note says so, and ``kept`` is False from then on."""
        path = self._path(key)
        made: list[Path] = []
        try:
            made = folders.make(path.parent)
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
            where = f"{self.folder}: cannot keep results ({error.strerror or error})"
            note("results", f"{where}: the next sweep runs them again; FIBERLOOM_CACHE names another place")
            self.kept = False
        finally:
            folders.remove_empty(made)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
