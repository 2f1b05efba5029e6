"""The section ``mapping``: loops of each level and what each level keeps."""

import re
from collections.abc import Mapping as Table
from dataclasses import dataclass, field
from math import prod
from typing import Any

from ..architecture import Architecture
from ..mapping import TIME, Loop, Mapping
from ..problem import Problem
from .document import Document, Steps
from .fields import Count, Name, Names, Section, Words, validated
from .read_architecture import Component

__all__ = ["KEEPING", "Rule", "factors_of", "level_of", "permutation_of", "read_mapping", "tensors_of"]

KEEPING = ("datatype", "dataspace", "bypass", "bypassing")
KINDS = ("temporal", "spatial", *KEEPING)


class Rule(Section):
    """What mappings and constraints say of a level."""

    target: Name
    type: Name
    factors: Words = ()
    permutation: Words = ()
    split: Count | None = None
    keep: Names = ()
    bypass: Names = ()


class _Entry(Rule):
    stream: Names = ()
    no_link_transfer: Names = ()
    no_multicast_no_reduction: Names = ()


@dataclass
class _Factor:
    """A loop. bound: 0 takes what is left. residual: None where none is written."""

    dimension: int
    bound: int = 1
    residual: int | None = None

    @property
    def last(self) -> int:
        """Iterations at the last iteration of all outer loops over the dimension."""
        return self.bound if self.residual is None else self.residual

    def __str__(self) -> str:
        return str(self.bound) if self.residual is None else f"{self.bound},{self.residual}"


@dataclass
class _Level:
    """What the entries say of one level. Loops: innermost first."""

    temporal: list[_Factor] | None = None
    spatial: list[_Factor] | None = None
    split: int | None = None
    keep: set[int] = field(default_factory=set)
    bypass: set[int] = field(default_factory=set)
    apart: set[int] = field(default_factory=set)
    says: bool = False
    steps: Steps = ()


def read_mapping(
    document: Document, problem: Problem, architecture: Architecture, found: list[Component], names: Table[str, Any]
) -> Mapping:
    """A level keeps what nothing bypasses. Raises SpecError."""
    content = document.require("mapping")
    if not isinstance(content, list):
        raise document.error(("mapping",), "must be a list of entries", content)
    levels = [_Level() for _ in architecture.levels]
    for number, entry in enumerate(content):
        steps: Steps = ("mapping", number)
        _apply(document, steps, validated(_Entry, entry, document, steps, names), levels, problem, architecture)
    for level, component in enumerate(reversed(found[:-1])):
        _constrained(document, component, levels[level], problem, names)
    _complete(document, levels, problem)
    loops = tuple(_loops(level, problem) for level in levels)
    keeps = tuple(
        tuple(
            not storage.is_spatial and (tensor not in level.bypass or tensor in level.keep)
            for tensor in range(len(problem.tensors))
        )
        for storage, level in zip(architecture.levels, levels, strict=True)
    )
    apart = tuple(frozenset(level.apart) for level in levels)
    mapping = Mapping(problem, loops, keeps, apart if any(apart) else ())
    for tensor, space in enumerate(problem.tensors):
        if not mapping.keepers(tensor):
            raise document.error(("mapping",), f"{space.name} is bypassed at every level: must be kept at one")
    return mapping


def _apply(
    document: Document, steps: Steps, entry: _Entry, levels: list[_Level], problem: Problem, architecture: Architecture
) -> None:
    if entry.type not in KINDS:
        raise document.error((*steps, "type"), f"must be one of {', '.join(KINDS)}", entry.type)
    level = levels[level_of(document, steps, entry.target, entry.type, architecture)]
    if entry.no_multicast_no_reduction and entry.type != "spatial":
        raise document.error((*steps, "no_multicast_no_reduction"), "must stand in the spatial entry of the level")
    level.apart |= tensors_of(document, (*steps, "no_multicast_no_reduction"), entry.no_multicast_no_reduction, problem)
    if entry.type == "spatial":
        level.split = entry.split
    level.steps = steps
    if entry.type in KEEPING:
        level.says = True
        level.keep |= tensors_of(document, (*steps, "keep"), entry.keep, problem)
        level.bypass |= tensors_of(document, (*steps, "bypass"), entry.bypass, problem)
        both = level.keep & level.bypass
        if both:
            name = problem.tensors[min(both)].name
            raise document.error((*steps, "bypass"), f"{name} is kept, too: must be one of both")
        return
    loops = _ordered(
        _permutation(document, (*steps, "permutation"), entry.permutation, problem),
        factors_of(document, (*steps, "factors"), entry.factors, problem),
    )
    if (level.spatial if entry.type == "spatial" else level.temporal) is not None:
        raise document.error(steps, f"{entry.target} has a {entry.type} entry already: must have one")
    if entry.type == "spatial":
        level.spatial = loops
    else:
        level.temporal = loops


def level_of(document: Document, steps: Steps, target: str, kind: str, architecture: Architecture) -> int:
    """The level that an entry is for; a component with copies is two, one of them for the loops side by side."""
    named = [n for n, level in enumerate(architecture.levels) if level.name == target]
    if not named:
        known = ", ".join(level.name for level in reversed(architecture.levels))
        raise document.error((*steps, "target"), f"must be one of {known}", target)
    spatial = [n for n in named if architecture.levels[n].is_spatial]
    storage = [n for n in named if not architecture.levels[n].is_spatial]
    if kind == "spatial":
        return (spatial or storage)[0]
    if not storage:
        raise document.error((*steps, "type"), "must be spatial: the target is a container", kind)
    return storage[0]


class _Keeping(Section):
    keep: Names = ()
    bypass: Names = ()
    keep_only: Names = ()


def _constrained(
    document: Document, component: Component, level: _Level, problem: Problem, names: Table[str, Any]
) -> None:
    """A level of dialect v0.4 of which the mapping says nothing keeps what its own constraints say."""
    constraints = component.content.get("constraints")
    if level.says or component.is_spatial or not isinstance(constraints, dict) or "dataspace" not in constraints:
        return
    steps = (*component.steps, "constraints", "dataspace")
    found = validated(_Keeping, constraints["dataspace"], document, steps, names)
    level.keep |= tensors_of(document, (*steps, "keep"), found.keep, problem)
    level.bypass |= tensors_of(document, (*steps, "bypass"), found.bypass, problem)


def tensors_of(document: Document, steps: Steps, names: tuple[str, ...], problem: Problem) -> set[int]:
    known = [tensor.name for tensor in problem.tensors]
    for name in names:
        if name not in known:
            raise document.error(steps, f"must be of {', '.join(known)}", name)
    return {known.index(name) for name in names}


def factors_of(
    document: Document, steps: Steps, words: str | tuple[str, ...], problem: Problem
) -> dict[int, tuple[int, int | None]]:
    """``M=4 K=0`` or ``M4 K0``; with a remainder ``M=4,3``."""
    names = sorted(problem.dimensions, key=len, reverse=True)
    pattern = re.compile(rf"^({'|'.join(map(re.escape, names))})\s*(?:<=|=)?\s*(\d+)(?:,(\d+))?$")
    found: dict[int, tuple[int, int | None]] = {}
    text = words if isinstance(words, str) else " ".join(words)
    for word in re.sub(r"\s*=\s*", "=", text).replace(", ", " ").split():
        match = pattern.match(word)
        if match is None:
            raise document.error(
                steps, f"must be factors such as {names[0]}=4, of {', '.join(problem.dimensions)}", word
            )
        dimension, bound, residual = problem.dimensions.index(match[1]), int(match[2]), match[3]
        if residual is not None and not 1 <= int(residual) <= bound:
            raise document.error(steps, f"must have a remainder between 1 and {bound}", word)
        if dimension in found:
            raise document.error(steps, f"{match[1]} is given twice", text)
        found[dimension] = (bound, None if residual is None else int(residual))
    return found


def permutation_of(document: Document, steps: Steps, words: str | tuple[str, ...], problem: Problem) -> list[int]:
    """Dimensions, innermost first: names, or letters in one word."""
    parts = list(words) if isinstance(words, tuple) else words.replace(",", " ").split()
    if isinstance(words, str) and not all(name in problem.dimensions for name in parts):
        parts = list("".join(parts))
    order: list[int] = []
    for name in parts:
        if name not in problem.dimensions:
            raise document.error(steps, f"must be of {', '.join(problem.dimensions)}, innermost first", name)
        if problem.dimensions.index(name) in order:
            raise document.error(steps, f"{name} is given twice")
        order.append(problem.dimensions.index(name))
    return order


def _permutation(document: Document, steps: Steps, words: str | tuple[str, ...], problem: Problem) -> list[int]:
    """All dimensions, those that are not listed outside the others."""
    order = permutation_of(document, steps, words, problem)
    return order + [number for number in range(len(problem.dimensions)) if number not in order]


def _ordered(order: list[int], factors: dict[int, tuple[int, int | None]]) -> list[_Factor]:
    return [_Factor(dimension, *factors.get(dimension, (1, None))) for dimension in order]


def _complete(document: Document, levels: list[_Level], problem: Problem) -> None:
    """Replaces factors of 0, and refuses those whose product is not the bound."""
    for dimension, bound in enumerate(problem.bounds):
        loops = [
            factor
            for level in levels
            for own in (level.spatial, level.temporal)
            for factor in own or ()
            if factor.dimension == dimension
        ]
        name = problem.dimensions[dimension]
        rest = [factor for factor in loops if not factor.bound]
        product = prod(factor.bound or 1 for factor in loops)
        written = " x ".join(str(factor) for factor in reversed(loops) if factor.bound > 1) or "1"
        if len(rest) > 1:
            raise document.error(("mapping",), f"{name}=0 stands {len(rest)} times: must stand once at most")
        if any(factor.residual is not None for factor in loops):
            _require_remainders(document, loops, name, bound, written)
        elif rest and bound % product == 0:
            rest[0].bound = bound // product
        elif product != bound:
            raise document.error(
                ("mapping",),
                f"factors of {name}: {written}{f' = {product}' if ' x ' in written else ''}: "
                f"must {'divide' if rest else 'be'} {bound}",
            )


def _require_remainders(document: Document, loops: list[_Factor], name: str, bound: int, written: str) -> None:
    """The last point, in the digits of the loops: each loop's last index is its remainder less one."""
    product = prod(factor.bound or 1 for factor in loops)
    for factor in loops:
        factor.bound = factor.bound or -(-bound // product)
    inside, points = 1, 1
    for factor in loops:
        points += (factor.last - 1) * inside
        inside *= factor.bound
    digits, inside = [], 1
    for factor in loops:
        digits.append((bound - 1) // inside % factor.bound + 1)
        inside *= factor.bound
    stated = all(factor.last == digit for factor, digit in zip(loops, digits, strict=True))
    if inside < bound or not stated:
        raise document.error(("mapping",), f"factors of {name}: {written} = {points} points: must be {bound}")
    for factor in reversed(loops):  # a loop outside all others never runs beyond its remainder
        factor.bound = factor.last
        if factor.bound > 1:
            break


def _loops(level: _Level, problem: Problem) -> tuple[Loop, ...]:
    """Spatial loops, the first ``split`` of them along x, inside temporal ones."""
    every = [_Factor(dimension) for dimension in range(len(problem.dimensions))]
    found = []
    for place, factor in enumerate(level.spatial or []):
        if factor.bound > 1:
            axis = "x" if level.split is None or place < level.split else "y"
            found.append(Loop(factor.dimension, factor.bound, axis))
    return (*found, *(Loop(factor.dimension, factor.bound, TIME) for factor in level.temporal or every))
