"""Result files: written next to their final place and moved there when all of them are complete."""

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sw import folders, notes
from sw.names import SHOWN
from sw.operands.errors import UserError

from .console import plain_text

__all__ = [
    "as_json",
    "as_text",
    "check_folder",
    "default_folder",
    "keep_record",
    "keep_scheme",
    "remove_empty",
    "write_files",
]

Writer = Callable[[Path], None]
FOLDER = Path("out")
RECORD, SCHEME = "result.json", "scheme.json"
# Folders that this command made, the outer ones first.
_made: list[Path] = []


def as_text(content: str) -> Writer:
    """Writes ``content`` as UTF-8; names that are no text are escaped as on the screen."""

    def write(path: Path) -> None:
        path.write_text(content, encoding="utf-8", errors=SHOWN)

    return write


def as_json(content: Any) -> Writer:
    """Writes ``content`` as JSON with a final newline."""
    return as_text(json.dumps(plain_text(content), indent=2) + "\n")


def check_folder(folder: Path, option: str = "--out") -> None:
    """Makes the folder and refuses one that cannot be written, before hours are spent on its content.

    The command's end removes it where nothing was written (:func:`remove_empty`).
    """
    try:
        _made.extend(folders.make(folder))
    except OSError as error:
        raise UserError(f"{option} {folder}: cannot be written ({error.strerror or error})") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UserError(f"{option} {folder}: cannot be written (permission denied)")


def remove_empty() -> None:
    """Removes those folders that this command made and that hold nothing."""
    folders.remove_empty(_made)
    _made.clear()


def default_folder(operand: str, command: str, tier: str = "") -> Path:
    """Where results of ``run``, ``schedule`` and ``compare`` go without ``--out``: no command or tier into another's folder.

    A command's default has the short name.
    """
    what = {"run": "", "schedule": "-scheme", "compare": "-tilings"}[command]
    usual = {"run": "rtl", "compare": "model"}.get(command, "")
    return FOLDER / f"{operand}{what}{f'-{tier}' if tier != usual else ''}"


def keep_scheme(folder: Path, used: Path | None) -> None:
    """Refuses a folder with a scheme that no run wrote: the run's own scheme would replace it.

    ``used``: the scheme that the run takes as it is, which may be that one.
    """
    scheme = folder / SCHEME
    if not scheme.is_file() or (folder / RECORD).exists():
        return
    if used is None or not used.exists() or not used.samefile(scheme):
        raise UserError(
            f"--out {folder}: holds a {SCHEME} that no run wrote and that would be lost: give another folder, "
            f"or run that scheme as it is with --scheme {scheme}"
        )


def keep_record(folder: Path) -> None:
    """Refuses a folder with the record of a run: another scheme in it would not be the one that was run."""
    if (folder / RECORD).is_file():
        raise UserError(
            f"--out {folder}: holds the {RECORD} of a run, whose {SCHEME} would be lost: give another folder"
        )


def write_files(folder: Path, files: dict[str, Writer], gone: tuple[str, ...] = (), option: str = "--out") -> None:
    """Writes all files or, if one fails, none. A file that was there is replaced in one step, one of ``gone`` removed.

    Raises UserError when the folder cannot be written.
    """
    try:
        _made.extend(folders.make(folder))
        with tempfile.TemporaryDirectory(dir=folder, prefix=".fiberloom-") as scratch:
            for name, write in files.items():
                write(Path(scratch) / name)
            for name in files:
                os.replace(Path(scratch) / name, folder / name)
                notes.detail(f"written {folder / name}, {(folder / name).stat().st_size:,} bytes")
            for name in gone:
                (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise UserError(f"{option} {folder}: cannot be written ({error.strerror or error})") from None
