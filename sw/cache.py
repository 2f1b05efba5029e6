"""Where things are kept between runs, and where they go when they cannot be kept."""

import multiprocessing.util
import os
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TypeVar

from sw.folders import make as make_folder
from sw.folders import remove_empty
from sw.notes import note

__all__ = ["cache_folder", "keep", "platform_folder"]

T = TypeVar("T")
# With less room than this a tool that fails is taken to have failed for want of it.
ROOM = 512 << 20


def platform_folder() -> Path:
    """``$XDG_CACHE_HOME/fiberloom``, else ``~/.cache/fiberloom``. A user without a home has none that can be written."""
    root = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(root).absolute() / "fiberloom"


def cache_folder() -> Path:
    """``$FIBERLOOM_CACHE``, else the platform's cache folder."""
    named = os.environ.get("FIBERLOOM_CACHE")
    return Path(named).absolute() if named else platform_folder()


def keep(what: str, folder: Path, make: Callable[[Path], T]) -> T:
    """What ``make`` makes in the folder; where that cannot be written or is full, in a temporary one that goes with the process.

    A note says so once. Raises what ``make`` raises, when the folder is not to blame or the temporary one is no better.
    """
    added: list[Path] = []
    try:
        added = make_folder(folder)
        return make(folder)
    except OSError as error:
        why = error.strerror or str(error)
    except Exception:  # compilers say in their own way that the disk is full; anything else is raised again
        if _has_room(folder):
            raise
        why = "no room"
    finally:
        remove_empty(added)
    made = make(_temporary())
    note(
        what, f"{what} cannot be kept in {folder} ({why}): made for this run alone; XDG_CACHE_HOME names another place"
    )
    return made


def _has_room(folder: Path) -> bool:
    try:
        return shutil.disk_usage(folder).free >= ROOM
    except OSError:
        return False


@cache
def _temporary() -> Path:
    folder = tempfile.mkdtemp(prefix="fiberloom-")
    # Also at the end of processes that do not end as a program does: multiprocessing's.
    multiprocessing.util.Finalize(None, shutil.rmtree, (folder, True), exitpriority=1)
    return Path(folder)
