"""The installed command: finds the rooms, then hands over to the command line."""

import sys

from .rooms import find_rooms

__all__ = ["main"]

INTERRUPTED = 130


def main() -> int:
    """Runs ``fiberloom``. Returns its exit code."""
    find_rooms()
    try:
        from sw.cli.app import main as run
    except KeyboardInterrupt:  # before there is anybody to say so
        print("fiberloom: interrupted: nothing is kept; the same command starts anew", file=sys.stderr)
        return INTERRUPTED
    return run()


if __name__ == "__main__":
    raise SystemExit(main())
