"""Refuses an operand that does not fit this machine's memory, before it exhausts it."""

import os
from pathlib import Path

from .errors import OperandError

__all__ = ["require_memory"]

# Memory limits of a container.
GROUP_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def require_memory(needed: int, source: str, cure: str = "") -> None:
    """Raises OperandError when ``needed`` bytes exceed the memory that this process may have; does nothing where that is unknown.

    Parameters
    ----------
    source: the operand that needs it. cure: what needs less memory, for the end of the line.
    """
    try:
        present = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return
    holds, most = "this machine has", min(present, *(limit or present for limit in map(_number, GROUP_LIMITS)))
    allowed = _address_space()
    if allowed is not None and allowed < most:
        holds, most = "this process may have", allowed
    if needed > most > 0:
        raise OperandError(
            f"{source}: needs about {needed / 2**30:.1f} GiB to hold, {holds} {most / 2**30:.1f} GiB{cure}"
        )


def _address_space() -> int | None:
    """What ``ulimit -v`` allows."""
    try:
        import resource
    except ModuleNotFoundError:
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if soft == resource.RLIM_INFINITY else soft


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
