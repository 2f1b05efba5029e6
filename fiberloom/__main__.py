"""The installed command: finds the rooms, then hands over to the command line."""

from .rooms import find_rooms

__all__ = ["main"]


def main() -> int:
    """Runs ``fiberloom``. Returns its exit code."""
    find_rooms()
    from sw.cli.app import main as run

    return run()


if __name__ == "__main__":
    raise SystemExit(main())
