"""The installed command: finds the rooms, then hands over to the command line."""

import sys
from pathlib import Path

__all__ = ["main"]


def main() -> int:
    """Runs ``fiberloom``. Returns its exit code."""
    here = Path(__file__).resolve().parent
    # A wheel carries the rooms beside this file, so that nothing called `gen` or `sw` lies in site-packages.
    rooms = here if (here / "sw").is_dir() else here.parent
    if str(rooms) not in sys.path:
        sys.path.insert(0, str(rooms))
    from sw.cli.app import main as run

    return run()


if __name__ == "__main__":
    raise SystemExit(main())
