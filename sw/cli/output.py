"""Result files: written beside their final place and moved there when all of them are complete."""

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sw.operands.errors import UserError

__all__ = ["as_json", "as_text", "check_folder", "write_files"]

Writer = Callable[[Path], None]


def as_text(content: str) -> Writer:
    """Writes ``content`` as it is."""

    def write(path: Path) -> None:
        path.write_text(content, encoding="utf-8")

    return write


def as_json(content: Any) -> Writer:
    """Writes ``content`` as JSON with a final newline."""
    return as_text(json.dumps(content, indent=2) + "\n")


def check_folder(folder: Path) -> None:
    """Makes the folder and refuses one that cannot be written, before hours are spent on what goes there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--out {folder}: cannot be written ({error.strerror or error})") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UserError(f"--out {folder}: cannot be written (permission denied)")


def write_files(folder: Path, files: dict[str, Writer]) -> None:
    """Writes all files or, if one fails, none. A file that was there is replaced in one step.

    Raises UserError when the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".fiberloom-") as scratch:
            for name, write in files.items():
                write(Path(scratch) / name)
            for name in files:
                os.replace(Path(scratch) / name, folder / name)
    except OSError as error:
        raise UserError(f"--out {folder}: cannot be written ({error.strerror or error})") from None
