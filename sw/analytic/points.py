"""Points of a sweep: every combination of the values of some paths."""

import re
from collections.abc import Sequence
from itertools import product

from .errors import SpecError

__all__ = ["sweep_points"]

RANGE = re.compile(r"([\d.eE+-]*[\d.])\.\.([\d.eE+-]*\d)(?:(:|\*)([\d.]+))?")
MOST_VALUES = 10_000


def sweep_points(sweeps: Sequence[str]) -> list[tuple[str, ...]]:
    """Each point as ``path=value`` of each sweep; one without a value where there is no sweep. Raises SpecError.

    A sweep is ``path=value,value``; a value may be a range, ``1..9``, ``0.1..0.9:0.2`` with a step, ``8..64*2`` with a factor.
    """
    axes = []
    for text in sweeps:
        path, equals, values = text.partition("=")
        found = [each for part in _parts(values) for each in _values(text, part)]
        if not equals or not path.strip() or not found:
            raise SpecError(f"--sweep {text}: must be path.to.key=value,value or a range")
        axes.append([f"{path.strip()}={value}" for value in found])
    points = 1
    for axis in axes:
        points *= len(axis)
    if points > MOST_VALUES:
        raise SpecError(f"--sweep {' '.join(sweeps)}: {points:,} points: must be at most {MOST_VALUES:,}")
    return list(product(*axes))


def _parts(values: str) -> list[str]:
    """Parts between commas that stand in no bracket."""
    found, depth = [""], 0
    for letter in values:
        depth += (letter in "[{(") - (letter in "]})")
        if letter == "," and not depth:
            found.append("")
        else:
            found[-1] += letter
    return [part.strip() for part in found if part.strip()]


def _values(text: str, part: str) -> list[str]:
    match = RANGE.fullmatch(part)
    if match is None:
        return [part]
    try:
        first, last, step = float(match[1]), float(match[2]), float(match[4] or 1)
    except ValueError:
        raise SpecError(f"--sweep {text}: {part}: must be a range of numbers") from None
    grows = step > 1 and first > 0 if match[3] == "*" else step > 0
    if not grows or last < first:
        raise SpecError(f"--sweep {text}: {part}: must be a range that grows, such as 0.1..0.9:0.2 or 8..64*2")
    found: list[str] = []
    value = first
    while value <= last * (1 + 1e-12):
        if len(found) == MOST_VALUES:
            raise SpecError(f"--sweep {text}: {part}: must have at most {MOST_VALUES:,} values")
        found.append(f"{value:.12g}")
        value = value * step if match[3] == "*" else first + len(found) * step
    return found
