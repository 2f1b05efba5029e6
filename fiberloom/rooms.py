"""Where the rooms are: in a wheel beside this file, so that nothing called `gen` or `sw` lies in site-packages."""

import sys
from pathlib import Path

__all__ = ["find_rooms"]


def find_rooms() -> None:
    """Puts the folder of the rooms on the path, unless it is there."""
    here = Path(__file__).resolve().parent
    rooms = here if (here / "sw").is_dir() else here.parent
    if str(rooms) not in sys.path:
        sys.path.insert(0, str(rooms))
