"""``python -m sw``: the same as ``fiberloom``."""

from fiberloom.__main__ import main

if __name__ == "__main__":
    raise SystemExit(main())
