"""Versions of installed packages: part of what names a kept build."""

from functools import cache
from importlib import metadata

__all__ = ["versions_of"]


@cache
def versions_of(packages: tuple[str, ...]) -> tuple[str, ...]:
    """The version of each, empty for one that is not installed. Asked once a process."""
    found = []
    for package in packages:
        try:
            found.append(metadata.version(package))
        except metadata.PackageNotFoundError:
            found.append("")
    return tuple(found)
