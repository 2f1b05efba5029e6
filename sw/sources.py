"""The source that results come from, as a digest: results kept from before a change of it are not taken for today's."""

import hashlib
import importlib.util
import re
import sys
from functools import cache
from pathlib import Path

__all__ = ["module_digest", "source_digest"]

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


@cache
def module_digest(module: str) -> str:
    """16 hexadecimal digits for the source of a loaded module and of those that it imports from its package, and so on."""
    package = module.partition(".")[0]
    found, open_ends = {module}, [module]
    while open_ends:
        name = open_ends.pop()
        text = _source(name)
        for imported in re.findall(r"^(?:from|import) ([\w.]+)", text, re.MULTILINE):
            other = importlib.util.resolve_name(imported, name.rpartition(".")[0])
            if other.partition(".")[0] == package and other in sys.modules and other not in found:
                found.add(other)
                open_ends.append(other)
    digest = hashlib.sha256()
    for name in sorted(found):
        digest.update(f"{name}\n{_source(name)}\n".encode())
    return digest.hexdigest()[:16]


def _source(module: str) -> str:
    path = getattr(sys.modules.get(module), "__file__", None)
    return Path(path).read_text(encoding="utf-8") if path and path.endswith(".py") else ""
