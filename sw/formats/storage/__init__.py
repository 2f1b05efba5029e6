"""Storage formats by name: every module of this package is one, and its class ``FORMAT`` the format."""

import importlib
import inspect
import pkgutil
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..storage_format import StorageFormat

__all__ = ["parameter_names", "storage_format", "storage_names"]


def storage_names() -> tuple[str, ...]:
    """The names of all formats: those of the files here."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__)))


def _class_of(name: str) -> Any:
    if name not in storage_names():
        raise ValueError(f"Format must be one of {', '.join(storage_names())}, not {name!r}")
    return importlib.import_module(f"{__package__}.{name}").FORMAT


def parameter_names(name: str) -> tuple[str, ...]:
    """Parameters of the format called ``name``."""
    return tuple(inspect.signature(_class_of(name)).parameters)


def storage_format(name: str, **parameters: Any) -> "StorageFormat":
    """The format called ``name``. Raises ValueError where there is none, and for parameters that it does not take."""
    found: StorageFormat = _class_of(name)(**parameters)
    return found
