"""Refuses operands that cannot fit this machine before they take it down."""

import os

from .errors import OperandError

__all__ = ["require_memory"]


def require_memory(needed: int, source: str) -> None:
    """Raises OperandError when ``needed`` bytes exceed the physical memory; does nothing where that is unknown."""
    try:
        present = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return
    if needed > present > 0:
        raise OperandError(
            f"{source}: needs about {needed / 2**30:.1f} GiB to hold, this machine has {present / 2**30:.1f} GiB"
        )
