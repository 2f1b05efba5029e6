"""Storage formats by name: every module of this package is one, and its class ``FORMAT`` the format; or a user's own."""

import importlib
import inspect
import pkgutil
from typing import TYPE_CHECKING, Any

from sw.plugins import PluginError, label, table

if TYPE_CHECKING:
    from ..storage_format import StorageFormat

__all__ = ["parameter_names", "storage_format", "storage_names"]

MEMBERS = ("orders", "keeps_zeros", "counts", "layout", "encode", "decode")


def storage_names() -> tuple[str, ...]:
    """The names of all formats: those of the files here, and a user's own. Raises PluginError where one of these is taken."""
    shipped = sorted(module.name for module in pkgutil.iter_modules(__path__))
    own = table("STORAGE_FORMATS")
    for name, kind in own.items():
        missing = [member for member in MEMBERS if not hasattr(kind, member)]
        if missing:
            raise PluginError(
                f"{label('STORAGE_FORMATS', name)}: has no {', '.join(missing)}: must be a storage format"
            )
        if name in shipped:
            raise PluginError(
                f"{label('STORAGE_FORMATS', name)}: must be another name than those of {', '.join(shipped)}"
            )
    return (*shipped, *own)


def _class_of(name: str) -> Any:
    if name not in storage_names():
        raise ValueError(f"Format must be one of {', '.join(storage_names())}, not {name!r}")
    own = table("STORAGE_FORMATS")
    if name in own:
        return own[name]
    return importlib.import_module(f"{__package__}.{name}").FORMAT


def parameter_names(name: str) -> tuple[str, ...]:
    """Parameters of the format called ``name``."""
    return tuple(inspect.signature(_class_of(name)).parameters)


def storage_format(name: str, **parameters: Any) -> "StorageFormat":
    """The format called ``name``. Raises ValueError where there is none, and for parameters that it does not take."""
    found: StorageFormat = _class_of(name)(**parameters)
    return found
