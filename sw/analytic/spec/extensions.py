"""Densities and formats of one's own, from a Python file that the user names."""

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..densities.protocol import Density
from ..errors import SpecError
from ..formats.protocol import RankFormat

__all__ = ["Extensions", "load_extensions"]

# What makes the model of a tensor: the entry of the specification, and the extents of the tensor.
DensityMaker = Callable[[Mapping[str, Any], tuple[int, ...]], Density]
OF_A_DENSITY = ("mean", "maximum", "empty", "occupancies", "fullest", "name")
OF_A_FORMAT = ("units", "name", "is_compressed", "metadata_bits")


@dataclass(frozen=True)
class Extensions:
    """By the names that specifications use."""

    densities: dict[str, DensityMaker] = field(default_factory=dict)
    formats: dict[str, RankFormat] = field(default_factory=dict)

    def density(self, name: str, content: Mapping[str, Any], extents: tuple[int, ...]) -> Density:
        """Raises ValueError, with what is allowed, where the entry is none that the maker takes."""
        found = self.densities[name](content, extents)
        missing = [member for member in OF_A_DENSITY if not hasattr(found, member)]
        if missing:
            raise ValueError(f"must be a density model: it has no {', '.join(missing)}")
        return found


def load_extensions(paths: Sequence[Path]) -> Extensions:
    """Runs the files; each has ``DENSITIES``, ``FORMATS`` or both. Raises SpecError."""
    found = Extensions()
    for path in paths:
        module = _module(path)
        tables = {name: getattr(module, name, {}) for name in ("DENSITIES", "FORMATS")}
        if not any(tables.values()) or not all(isinstance(table, dict) for table in tables.values()):
            raise SpecError(f"--load {path}: must have a dictionary DENSITIES or FORMATS")
        for name, maker in tables["DENSITIES"].items():
            if not callable(maker):
                raise SpecError(f"--load {path}: DENSITIES[{name!r}]: must be a function of an entry and extents")
        for name, kind in tables["FORMATS"].items():
            missing = [member for member in OF_A_FORMAT if not hasattr(kind, member)]
            if missing:
                raise SpecError(f"--load {path}: FORMATS[{name!r}]: has no {', '.join(missing)}: must be a rank format")
        found.densities.update({str(name).replace("-", "_"): maker for name, maker in tables["DENSITIES"].items()})
        found.formats.update({str(name).upper(): kind for name, kind in tables["FORMATS"].items()})
    return found


def _module(path: Path) -> Any:
    if not path.is_file():
        raise SpecError(f"--load {path}: no such file")
    place = importlib.util.spec_from_file_location(f"fiberloom_extension_{path.stem}", path)
    if place is None or place.loader is None:
        raise SpecError(f"--load {path}: must be a Python file")
    module = importlib.util.module_from_spec(place)
    try:
        place.loader.exec_module(module)
    except Exception as error:  # noqa: BLE001 - whatever the user's file raises is a mistake in it
        raise SpecError(f"--load {path}: cannot be loaded ({type(error).__name__}: {error})") from None
    return module
