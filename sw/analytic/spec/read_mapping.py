"""The section ``mapping``: loops of each level and what each level keeps."""

import re
from collections.abc import Mapping as Table
from dataclasses import dataclass, field
from typing import Any

from ..architecture import Architecture
from ..mapping import TIME, Loop, Mapping
from ..problem import Problem
from .document import Document, Steps
from .fields import Count, Name, Names, Section, Words, validated
from .read_architecture import Component

__all__ = ["read_mapping"]

KEEPING = ("datatype", "dataspace", "bypass", "bypassing")
KINDS = ("temporal", "spatial", *KEEPING)


class _Entry(Section):
    target: Name
    type: Name
    factors: Words = ()
    permutation: Words = ()
    split: Count | None = None
    keep: Names = ()
    bypass: Names = ()
    stream: Names = ()
    no_link_transfer: Names = ()
    no_multicast_no_reduction: Names = ()


@dataclass
class _Level:
    """What the entries say of one level. Loops: dimension and factor, innermost first; a factor of 0 takes what is left."""

    temporal: list[tuple[int, int]] | None = None
    spatial: list[tuple[int, int]] | None = None
    split: int | None = None
    keep: set[int] = field(default_factory=set)
    bypass: set[int] = field(default_factory=set)
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
    mapping = Mapping(problem, loops, keeps)
    for tensor, space in enumerate(problem.tensors):
        if not mapping.keepers(tensor):
            raise document.error(("mapping",), f"{space.name} is bypassed at every level: must be kept at one")
    return mapping


def _apply(
    document: Document, steps: Steps, entry: _Entry, levels: list[_Level], problem: Problem, architecture: Architecture
) -> None:
    if entry.type not in KINDS:
        raise document.error((*steps, "type"), f"must be one of {', '.join(KINDS)}", entry.type)
    named = [n for n, level in enumerate(architecture.levels) if level.name == entry.target]
    if not named:
        known = ", ".join(level.name for level in reversed(architecture.levels))
        raise document.error((*steps, "target"), f"must be one of {known}", entry.target)
    spatial = [n for n in named if architecture.levels[n].is_spatial]
    storage = [n for n in named if not architecture.levels[n].is_spatial]
    if entry.no_multicast_no_reduction:
        raise document.error(
            (*steps, "no_multicast_no_reduction"),
            "must be empty: anything else is not supported",
            entry.no_multicast_no_reduction,
        )
    if entry.type == "spatial":
        level = levels[(spatial or storage)[0]]
        level.split = entry.split
    elif storage:
        level = levels[storage[0]]
    else:
        raise document.error((*steps, "type"), "must be spatial: the target is a container", entry.type)
    level.steps = steps
    if entry.type in KEEPING:
        level.says = True
        level.keep |= _tensors(document, (*steps, "keep"), entry.keep, problem)
        level.bypass |= _tensors(document, (*steps, "bypass"), entry.bypass, problem)
        both = level.keep & level.bypass
        if both:
            name = problem.tensors[min(both)].name
            raise document.error((*steps, "bypass"), f"{name} is kept, too: must be one of both")
        return
    loops = _ordered(
        _permutation(document, (*steps, "permutation"), entry.permutation, problem),
        _factors(document, (*steps, "factors"), entry.factors, problem),
    )
    if (level.spatial if entry.type == "spatial" else level.temporal) is not None:
        raise document.error(steps, f"{entry.target} has a {entry.type} entry already: must have one")
    if entry.type == "spatial":
        level.spatial = loops
    else:
        level.temporal = loops


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
    level.keep |= _tensors(document, (*steps, "keep"), found.keep, problem)
    level.bypass |= _tensors(document, (*steps, "bypass"), found.bypass, problem)


def _tensors(document: Document, steps: Steps, names: tuple[str, ...], problem: Problem) -> set[int]:
    known = [tensor.name for tensor in problem.tensors]
    for name in names:
        if name not in known:
            raise document.error(steps, f"must be of {', '.join(known)}", name)
    return {known.index(name) for name in names}


def _factors(document: Document, steps: Steps, words: str | tuple[str, ...], problem: Problem) -> dict[int, int]:
    """``M=4 K=0`` or ``M4 K0``."""
    names = sorted(problem.dimensions, key=len, reverse=True)
    pattern = re.compile(rf"^({'|'.join(map(re.escape, names))})\s*(?:<=|=)?\s*(\d+)(,\d+)?$")
    found: dict[int, int] = {}
    text = words if isinstance(words, str) else " ".join(words)
    for word in re.sub(r"\s*=\s*", "=", text).replace(", ", " ").split():
        match = pattern.match(word)
        if match is None:
            raise document.error(
                steps, f"must be factors such as {names[0]}=4, of {', '.join(problem.dimensions)}", word
            )
        dimension = problem.dimensions.index(match[1])
        if match[3]:
            raise document.error(steps, "must be a factor without a remainder: imperfect ones are not supported", word)
        if dimension in found:
            raise document.error(steps, f"{match[1]} is given twice", text)
        found[dimension] = int(match[2])
    return found


def _permutation(document: Document, steps: Steps, words: str | tuple[str, ...], problem: Problem) -> list[int]:
    """Dimensions, innermost first: names, or letters in one word."""
    parts = list(words) if isinstance(words, tuple) else words.replace(",", " ").split()
    if isinstance(words, str) and not all(name in problem.dimensions for name in parts):
        parts = list("".join(parts))
    order = []
    for name in parts:
        if name not in problem.dimensions:
            raise document.error(steps, f"must be of {', '.join(problem.dimensions)}, innermost first", name)
        if problem.dimensions.index(name) in order:
            raise document.error(steps, f"{name} is given twice")
        order.append(problem.dimensions.index(name))
    return order + [number for number in range(len(problem.dimensions)) if number not in order]


def _ordered(order: list[int], factors: dict[int, int]) -> list[tuple[int, int]]:
    return [(dimension, factors.get(dimension, 1)) for dimension in order]


def _complete(document: Document, levels: list[_Level], problem: Problem) -> None:
    """Replaces factors of 0, and refuses those whose product is not the bound."""
    for dimension, bound in enumerate(problem.bounds):
        loops = [
            (found, place, factor)
            for level in levels
            for found in (level.spatial, level.temporal)
            if found is not None
            for place, (number, factor) in enumerate(found)
            if number == dimension
        ]
        name = problem.dimensions[dimension]
        rest = [(found, place) for found, place, factor in loops if not factor]
        product = 1
        for _, _, factor in loops:
            product *= factor or 1
        written = " x ".join(str(factor) for _, _, factor in reversed(loops) if factor > 1) or "1"
        if len(rest) > 1:
            raise document.error(("mapping",), f"{name}=0 stands {len(rest)} times: must stand once at most")
        if rest and bound % product == 0:
            rest[0][0][rest[0][1]] = (dimension, bound // product)
        elif product != bound:
            raise document.error(
                ("mapping",), f"factors of {name}: {written} = {product}: must {'divide' if rest else 'be'} {bound}"
            )


def _loops(level: _Level, problem: Problem) -> tuple[Loop, ...]:
    """Spatial loops, the first ``split`` of them along x, inside temporal ones."""
    every = [(dimension, 1) for dimension in range(len(problem.dimensions))]
    found = []
    for place, (dimension, bound) in enumerate(level.spatial or []):
        if bound > 1:
            found.append(Loop(dimension, bound, "x" if level.split is None or place < level.split else "y"))
    return (*found, *(Loop(dimension, bound, TIME) for dimension, bound in level.temporal or every))
