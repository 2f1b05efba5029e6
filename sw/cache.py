"""Where things are kept between runs. Imports nothing of Fiberloom: it is asked before anything compiled is loaded."""

import os
from pathlib import Path

__all__ = ["cache_folder"]


def cache_folder() -> Path:
    """``$FIBERLOOM_CACHE``, else the platform's cache folder (``~/.cache/fiberloom``)."""
    if os.environ.get("FIBERLOOM_CACHE"):
        return Path(os.environ["FIBERLOOM_CACHE"])
    import pooch

    return Path(pooch.os_cache("fiberloom"))
