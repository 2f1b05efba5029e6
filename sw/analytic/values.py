"""Values of many mappings, evaluated at once, and those of one of them."""

from dataclasses import fields
from functools import cache
from typing import Annotated, Any, TypeVar, get_args

import numpy as np

__all__ = ["Batched", "Count", "Real", "at"]

# A value of each mapping: an array with an entry for each, or one number for all. Of a single analysis, a number.
Real = Any
# The same, and whole numbers.
Count = Annotated[Any, "whole"]

Found = TypeVar("Found")


class Batched:
    """Base of what holds such values: a dataclass whose fields are values, or lists, tuples and tables of them."""


def at(found: Found, index: int) -> Found:
    """The same of one mapping, in plain numbers."""
    return _at(found, index, whole=False)


def _at(found: Any, index: int, *, whole: bool) -> Any:
    if isinstance(found, np.ndarray):
        value = found[index].item()
        return int(value) if whole else value
    if isinstance(found, Batched):
        # Without the checks of a constructor, which were made for the values of all mappings.
        kind: Any = type(found)
        record = object.__new__(kind)
        own = {name: _at(found.__dict__[name], index, whole=counts) for name, counts in _fields_of(kind)}
        record.__dict__.update(own)
        return record
    if isinstance(found, dict):
        return {key: _at(value, index, whole=whole) for key, value in found.items()}
    if isinstance(found, list | tuple):
        return type(found)([_at(value, index, whole=whole) for value in found])
    return int(found) if whole and isinstance(found, float | np.number) else found


@cache
def _fields_of(kind: Any) -> tuple[tuple[str, bool], ...]:
    """Name of each field of a dataclass, and whether it counts."""
    return tuple((each.name, _is_whole(each.type)) for each in fields(kind))


def _is_whole(annotation: Any) -> bool:
    return annotation == Count or any(_is_whole(inner) for inner in get_args(annotation))
