"""Folders that are made for results, and go again where none came. Imports nothing of Fiberloom."""

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

__all__ = ["make", "remove_empty"]


def make(folder: Path) -> list[Path]:
    """Makes the folder with those above it; returns the ones that were missing, the outer ones first. Raises OSError."""
    missing = [path.absolute() for path in (folder, *folder.parents) if not os.path.lexists(path)][::-1]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        remove_empty(missing)
        raise
    return missing


def remove_empty(made: Iterable[Path]) -> None:
    """Removes those of the folders, given the outer ones first, that hold nothing."""
    for folder in reversed(list(made)):
        with contextlib.suppress(OSError):  # gone, or not empty
            folder.rmdir()
