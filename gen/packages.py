"""Versions of installed packages: part of what names a kept build."""

from collections.abc import Iterable
from importlib import metadata

__all__ = ["versions_of"]


def versions_of(packages: Iterable[str]) -> list[str]:
    """The version of each, empty for one that is not installed."""
    found = []
    for package in packages:
        try:
            found.append(metadata.version(package))
        except metadata.PackageNotFoundError:
            found.append("")
    return found
