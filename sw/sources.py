"""The source that results come from, as a digest: results kept from before a change of it are not taken for today's."""

import hashlib
import importlib.util
from functools import cache
from pathlib import Path

__all__ = ["source_digest"]

SOURCES = ("*.py", "*.cpp", "*.hpp", "*.v", "*.sv", "*.toml")


@cache
def source_digest(packages: tuple[str, ...]) -> str:
    """16 hexadecimal digits for the files of these packages; one that is not installed counts as empty."""
    found = hashlib.sha256()
    for package in packages:
        spec = importlib.util.find_spec(package)
        if spec is None or spec.origin is None:
            continue
        folder = Path(spec.origin).parent
        for path in sorted(path for pattern in SOURCES for path in folder.rglob(pattern)):
            found.update(path.relative_to(folder).as_posix().encode())
            found.update(path.read_bytes())
    return found.hexdigest()[:16]
