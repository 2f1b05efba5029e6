"""Policies, storage formats and blocks of a user's own, from Python files that the user names."""

import os
import sys
import traceback
import types
from collections.abc import Iterable
from pathlib import Path
from typing import Any

__all__ = ["TABLES", "PluginError", "blamed", "label", "load", "sources", "table", "use"]

# Dictionaries that a file may have, and what each holds. The last two are those of the analytical model, which reads them itself.
TABLES = {
    "POLICIES": "tiling policies",
    "STORAGE_FORMATS": "storage formats",
    "BLOCKS": "blocks of `fiberloom generate`",
    "DENSITIES": "densities of `fiberloom analyze`",
    "FORMATS": "formats of a rank of `fiberloom analyze`",
}
# What an entry must be, of those that are checked here.
OWN = {
    "POLICIES": "a function of A, B, design and seed",
    "STORAGE_FORMATS": "a class with the members of a format",
    "BLOCKS": "a class that derives from rtl.lib.block.Block",
}
# Characters with a meaning of their own where names are typed.
RESERVED = set(",+*?[]: \t\n")


class PluginError(Exception):
    """A file that brings nothing usable, or a mistake in it. The text is one line."""

    exit_code = 2


class _Plugin:
    """A file that was run: its text, and the dictionaries that it has."""

    def __init__(self, path: str, text: str) -> None:
        self.path, self.text = path, text
        self.tables = _tables(path, _run(path, text))


# By absolute path, in the order of loading. What is loaded stays: names are found wherever the process asks for them.
_loaded: dict[str, _Plugin] = {}


def load(paths: Iterable[Path]) -> None:
    """Runs each file, unless it was run with the same text before. Raises PluginError."""
    found = []
    for path in paths:
        if not path.is_file():
            raise PluginError(f"--plugin {path}: no such file")
        try:
            found.append((str(path.resolve()), path.read_text(encoding="utf-8")))
        except (OSError, UnicodeDecodeError) as error:
            raise PluginError(
                f"--plugin {path}: cannot be read ({getattr(error, 'strerror', None) or error})"
            ) from None
    use(found)


def use(texts: Iterable[Iterable[str]]) -> None:
    """Files by their paths and texts, as :func:`sources` gives them, which need not be on this computer."""
    for path, text in texts:
        if path not in _loaded or _loaded[path].text != text:
            plugin = _Plugin(path, text)
            for other in _loaded.values():
                for kind, names in plugin.tables.items():
                    twice = sorted(set(names) & set(other.tables[kind])) if other.path != path else []
                    if twice:
                        raise PluginError(
                            f"--plugin {path}: {kind}[{twice[0]!r}]: must be another name: {other.path} has it"
                        )
            _loaded[path] = plugin


def sources() -> list[tuple[str, str]]:
    """Path and text of each file that was loaded."""
    return [(plugin.path, plugin.text) for plugin in _loaded.values()]


def table(kind: str) -> dict[str, Any]:
    """What all loaded files have of one of ``TABLES``, by name."""
    return {name: entry for plugin in _loaded.values() for name, entry in plugin.tables[kind].items()}


def label(kind: str, name: str) -> str:
    """The file that has the entry, for a complaint about it."""
    path = next(plugin.path for plugin in _loaded.values() if name in plugin.tables[kind])
    return f"--plugin {_near(path)}: {kind}[{name!r}]"


def blamed(error: BaseException) -> str | None:
    """File, line and kind of an error that was raised in, or by what is called from, a loaded file; None for others."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename in _loaded:
            return f"{frame.filename}:{frame.lineno}: {type(error).__name__}: {' '.join(str(error).split())}"
    return None


def _run(path: str, text: str) -> types.ModuleType:
    module = types.ModuleType(f"fiberloom_plugin_{Path(path).stem}")
    module.__file__ = path
    # Data classes look for their module by its name.
    sys.modules[module.__name__] = module
    try:
        exec(compile(text, path, "exec"), module.__dict__)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever the user's file raises is a mistake in it
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
        line = getattr(error, "lineno", None) if isinstance(error, SyntaxError) else next(iter(lines), None)
        where = f":{line}" if line else ""
        told = error.msg if isinstance(error, SyntaxError) else " ".join(str(error).split())
        raise PluginError(f"--plugin {_near(path)}{where}: cannot be loaded ({type(error).__name__}: {told})") from None
    return module


def _near(path: str) -> str:
    """The path as it is seen from here, where it is below."""
    here = os.getcwd() + os.sep
    return path.removeprefix(here)


def _tables(path: str, module: types.ModuleType) -> dict[str, dict[str, Any]]:
    place = f"--plugin {_near(path)}"
    found = {kind: getattr(module, kind, {}) for kind in TABLES}
    if not all(isinstance(entries, dict) for entries in found.values()) or not any(found.values()):
        raise PluginError(f"{place}: must have a dictionary {', '.join([*TABLES][:-1])} or {[*TABLES][-1]}")
    for kind, what in OWN.items():
        for name, entry in found[kind].items():
            if not isinstance(name, str) or not name or RESERVED & set(name):
                raise PluginError(
                    f"{place}: {kind}: {name!r}: must be a name without spaces, commas, colons, +, * and brackets"
                )
            if not callable(entry):
                raise PluginError(f"{place}: {kind}[{name!r}]: must be {what}")
    return found
