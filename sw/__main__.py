"""``python -m sw``: the same as ``fiberloom``."""

from sw.cli.app import main

if __name__ == "__main__":
    raise SystemExit(main())
