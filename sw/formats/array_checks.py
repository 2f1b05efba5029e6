"""What the arrays of a storage format must be, looked at before anything is made of them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .csr import VALUE_DTYPES

__all__ = [
    "FormatError",
    "Ids",
    "expanded",
    "id_array",
    "pointers_of",
    "require_pointers",
    "require_range",
    "require_sorted",
    "value_array",
]

Ids = NDArray[np.int64]


class FormatError(ValueError):
    """A tensor that a format cannot hold, or arrays that hold no tensor of it. The text is one line."""


def id_array(arrays: Mapping[str, NDArray[Any]], name: str, *sizes: int | None) -> Ids:
    """The whole numbers of that name as int64. ``sizes``: of each rank of the array, None for any; without them a vector."""
    array = _present(arrays, name, sizes or (None,))
    if array.dtype.kind not in "iu":
        raise FormatError(f"{name} is of type {array.dtype}: must be whole numbers")
    if array.dtype == np.uint64 and len(array) and array.max() > np.iinfo(np.int64).max:
        raise FormatError(f"{name} has {array.max()}: must be below 2^63")
    return array.astype(np.int64, copy=False)


def value_array(arrays: Mapping[str, NDArray[Any]], name: str, value: str, *sizes: int | None) -> NDArray[Any]:
    """The values of that name in the type that holds ``value`` in NumPy."""
    array = _present(arrays, name, sizes or (None,))
    wanted = VALUE_DTYPES[value]
    if array.dtype != wanted:
        raise FormatError(f"{name} is of type {array.dtype}: {value} values are {wanted}")
    if value == "bf16" and (array.view(np.uint32) & 0xFFFF).any():
        raise FormatError(f"{name} has more digits than bf16 holds")
    return array


def _present(arrays: Mapping[str, NDArray[Any]], name: str, sizes: Sequence[int | None]) -> NDArray[Any]:
    if name not in arrays:
        raise FormatError(f"{name} is missing: there are {', '.join(sorted(arrays)) or 'no arrays'}")
    array = np.ascontiguousarray(arrays[name])
    wrong = array.ndim != len(sizes) or any(
        size not in (None, found) for size, found in zip(sizes, array.shape, strict=True)
    )
    if wrong:
        shape = " x ".join("any" if size is None else str(size) for size in sizes)
        raise FormatError(f"{name} is {_shape(array.shape)}: must be {shape}")
    return array


def _shape(sizes: Sequence[int]) -> str:
    return " x ".join(map(str, sizes)) if sizes else "a single number"


def require_range(name: str, ids: Ids, size: int) -> None:
    """Refuses an id outside 0 to ``size`` - 1."""
    if ids.size and not 0 <= (wrong := int(ids.min())) <= (most := int(ids.max())) < size:
        wrong = most if wrong >= 0 else wrong
        raise FormatError(f"{name} has {wrong}: must be from 0 to {size - 1}")


def require_pointers(name: str, pointers: Ids, target: str, count: int, *, empty: bool = True) -> None:
    """Refuses pointers that are no rise from 0 to ``count``, the length of ``target``.

    ``empty``: whether two of them may be the same, with nothing between them.
    """
    if not len(pointers) or pointers[0] != 0 or pointers[-1] != count:
        ends = f"from {pointers[0]} to {pointers[-1]}" if len(pointers) else "empty"
        raise FormatError(f"{name} is {ends}: must rise from 0 to {count}, the length of {target}")
    steps = np.diff(pointers)
    wrong = steps < (0 if empty else 1)
    if wrong.any():
        at = int(np.argmax(wrong))
        what = "falls" if steps[at] < 0 else "stays the same"
        raise FormatError(f"{name} {what} from {pointers[at]} to {pointers[at + 1]} at entry {at + 1}: must rise")


def require_sorted(names: str, ids: Sequence[Ids]) -> None:
    """Refuses tuples of ids, one rank after the other, that do not rise strictly."""
    if not ids or len(ids[0]) < 2:
        return
    same = np.ones(len(ids[0]) - 1, np.bool_)
    rising = np.zeros(len(ids[0]) - 1, np.bool_)
    for rank in ids:
        before, after = rank[:-1], rank[1:]
        rising |= same & (after > before)
        same &= after == before
    if not rising.all():
        at = int(np.argmin(rising))
        place = ", ".join(str(rank[at + 1]) for rank in ids)
        what = "are there twice" if same[at] else "come after larger ones"
        raise FormatError(f"{names}: {place} {what} at entry {at + 1}: must be sorted, each once")


def pointers_of(owners: Ids, count: int) -> Ids:
    """int64[``count`` + 1]: where the entries of each of ``count`` owners begin, whose numbers rise, and the end of the last."""
    pointers = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(owners, minlength=count), out=pointers[1:])
    return pointers


def expanded(pointers: Ids) -> Ids:
    """For each entry that pointers lead to, the number of the pointer that leads there."""
    return np.repeat(np.arange(len(pointers) - 1, dtype=np.int64), np.diff(pointers))
