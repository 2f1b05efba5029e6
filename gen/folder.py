"""A generated folder: written completely or not at all, without files of an earlier run."""

import errno
import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

__all__ = ["GENERATOR", "MANIFEST", "write_folder"]

MANIFEST = "manifest.json"
GENERATOR = "fiberloom"


def write_folder(folder: Path, texts: Mapping[str, str]) -> list[Path]:
    """Writes the texts by relative path and removes the files that the manifest of the folder names and these do not:
    what an earlier run wrote. All other files stay.

    Raises OSError, before anything is changed where a path is in the way: its text then names the path.
    """
    _check(folder, texts)
    folder.mkdir(parents=True, exist_ok=True)
    stale = [name for name in _earlier(folder) if name not in texts and _is_file(folder / name)]
    for name in stale:
        _check_parent(folder / name)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fiberloom-") as scratch:
        for name, text in texts.items():
            path = Path(scratch) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        for name in stale:
            (folder / name).unlink()
        for name in texts:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
        # The manifest last: until then the earlier one still lists what may be removed.
        for name in sorted(texts, key=lambda name: name == MANIFEST):
            os.replace(Path(scratch) / name, folder / name)
    _remove_empty(folder, stale)
    return [folder / name for name in texts]


def _check(folder: Path, names: Iterable[str]) -> None:
    """Refuses what would stop the writing halfway."""
    for name in names:
        path = folder / name
        if path.is_dir():
            raise OSError(errno.EISDIR, f"{path} is a folder")
        _check_parent(path)
        # The finished files are moved to their places, which works within one file system only.
        if folder.exists() and _nearest(path).stat().st_dev != folder.stat().st_dev:
            raise OSError(errno.EXDEV, f"{_nearest(path)} is on another file system")


def _check_parent(path: Path) -> None:
    """Refuses a path whose folder is no folder, or in which files cannot be made and removed."""
    parent = _nearest(path)
    if not parent.is_dir():
        raise OSError(errno.ENOTDIR, f"{parent} is not a folder")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise OSError(errno.EACCES, f"{parent} is not writable")


def _nearest(path: Path) -> Path:
    """The folder of ``path``, or the nearest one above it that exists."""
    return next(parent for parent in path.parents if os.path.lexists(parent))


def _earlier(folder: Path) -> list[str]:
    """Names of the files that the manifest of the folder lists; none where it is not one of ours."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return []
    if not isinstance(manifest, dict) or not str(manifest.get("generator", "")).startswith(f"{GENERATOR} "):
        return []
    names = manifest.get("files")
    return [name for name in names if _is_inside(name)] if isinstance(names, list) else []


def _is_inside(name: object) -> bool:
    """A manifest may have been edited: it names nothing outside its folder."""
    if not isinstance(name, str) or "\0" in name:
        return False
    path = PurePosixPath(name)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts


def _is_file(path: Path) -> bool:
    return path.is_symlink() or path.is_file()


def _remove_empty(folder: Path, removed: Iterable[str]) -> None:
    """Removes the folders, inside ``folder``, that held nothing but the removed files."""
    parents = {parent for name in removed for parent in PurePosixPath(name).parents if parent.parts}
    for parent in sorted(parents, key=lambda parent: -len(parent.parts)):
        path = folder / parent
        if path.is_dir() and not path.is_symlink() and not any(path.iterdir()):
            path.rmdir()
