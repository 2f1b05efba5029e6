"""Constraints of a mapspace: sections of dialect v0.3, and those at components and containers in v0.4."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..architecture import Architecture
from ..mapspace import LevelRules, LoopRules
from ..problem import Problem
from .document import Document, Steps
from .fields import Count, Names, Section, Words, validated
from .read_architecture import Component
from .read_mapping import KEEPING, Rule, factors_of, level_of, permutation_of, tensors_of

__all__ = ["read_constraints"]

SECTIONS = ("architecture_constraints", "mapspace_constraints", "constraints", "mapspace")


class _Targets(Section):
    targets: list[Any] = []
    constraints: list[Any] = []
    version: Any = None
    template: Any = None


class _Loops(Section):
    factors: Words = ()
    permutation: Words = ()
    split: Count | None = None


class _Dataspace(Section):
    keep: Names = ()
    bypass: Names = ()
    keep_only: Names = ()


class _Own(Section):
    """Of a component or container."""

    temporal: Any = None
    spatial: Any = None
    dataspace: Any = None


class _Level:
    def __init__(self) -> None:
        self.loops: dict[str, LoopRules] = {}
        self.keep: set[int] = set()
        self.bypass: set[int] = set()

    def rules(self) -> LevelRules:
        return LevelRules(
            self.loops.get("temporal", LoopRules()),
            self.loops.get("spatial", LoopRules()),
            frozenset(self.keep),
            frozenset(self.bypass),
        )


def read_constraints(
    document: Document, problem: Problem, architecture: Architecture, found: list[Component], names: Mapping[str, Any]
) -> tuple[LevelRules, ...]:
    """For each level, innermost first. Raises SpecError; also where two constraints contradict each other."""
    levels = [_Level() for _ in architecture.levels]
    for steps, entry in _entries(document, names):
        rule = validated(Rule, entry, document, steps, names)
        if rule.type not in ("temporal", "spatial", *KEEPING):
            allowed = ", ".join(("temporal", "spatial", *KEEPING))
            raise document.error((*steps, "type"), f"must be one of {allowed}", rule.type)
        level = levels[level_of(document, steps, rule.target, rule.type, architecture)]
        if rule.type in KEEPING:
            _keep(document, steps, level, rule.keep, rule.bypass, problem)
        else:
            _loops(document, steps, level, rule.type, rule, problem)
    for level, component in zip(levels, reversed(found[:-1]), strict=True):
        if component.content.get("constraints") is not None:
            _at_component(document, component, level, problem, names, alone=not _shares(component, found))
    return tuple(level.rules() for level in levels)


def _shares(component: Component, found: list[Component]) -> bool:
    """Whether a component with copies is two levels: one of its own, and one for the loops side by side."""
    return sum(other.steps == component.steps for other in found) > 1


def _entries(document: Document, names: Mapping[str, Any]) -> Iterator[tuple[Steps, Any]]:
    for section in SECTIONS:
        content = document.content.get(section)
        if content is None:
            continue
        if isinstance(content, list):
            yield from (((section, number), entry) for number, entry in enumerate(content))
            continue
        validated(_Targets, content, document, (section,), names)
        for key in ("targets", "constraints"):
            yield from (((section, key, number), entry) for number, entry in enumerate(content.get(key) or []))


def _at_component(
    document: Document,
    component: Component,
    level: _Level,
    problem: Problem,
    names: Mapping[str, Any],
    *,
    alone: bool,
) -> None:
    """alone: no other level is of the component, so that all that it says must be of this one."""
    steps = (*component.steps, "constraints")
    own = validated(_Own, component.content["constraints"], document, steps, names)
    for kind in ("temporal", "spatial", "dataspace"):
        said = getattr(own, kind) is not None
        if said and alone and component.is_spatial != (kind == "spatial"):
            has = "copies" if kind == "spatial" else "storage"
            raise document.error((*steps, kind), f"must be at a component with {has}: {component.name} has none")
        if said and kind != "dataspace" and component.is_spatial == (kind == "spatial"):
            here = (*steps, kind)
            _loops(document, here, level, kind, validated(_Loops, getattr(own, kind), document, here, names), problem)
    if own.dataspace is not None and not component.is_spatial:
        here = (*steps, "dataspace")
        rule = validated(_Dataspace, own.dataspace, document, here, names)
        others = [tensor.name for tensor in problem.tensors if tensor.name not in rule.keep_only]
        _keep(document, here, level, (*rule.keep, *rule.keep_only), rule.bypass, problem)
        if rule.keep_only:
            _keep(document, here, level, (), tuple(name for name in others if name not in rule.keep), problem)


def _keep(
    document: Document, steps: Steps, level: _Level, keep: tuple[str, ...], bypass: tuple[str, ...], problem: Problem
) -> None:
    level.keep |= tensors_of(document, (*steps, "keep"), keep, problem)
    level.bypass |= tensors_of(document, (*steps, "bypass"), bypass, problem)
    both = level.keep & level.bypass
    if both:
        raise document.error(steps, f"{problem.tensors[min(both)].name} is kept and bypassed: must be one")


def _loops(document: Document, steps: Steps, level: _Level, kind: str, rule: Rule | _Loops, problem: Problem) -> None:
    """Adds to what other constraints of the level say."""
    before = level.loops.get(kind, LoopRules())
    text = rule.factors if isinstance(rule.factors, str) else " ".join(rule.factors)
    words = re.sub(r"\s*(<=|=)\s*", r"\1", text).split()
    exact, most = dict(before.exact), dict(before.most)
    for found, own in (
        (exact, [word for word in words if "<=" not in word]),
        (most, [word for word in words if "<=" in word]),
    ):
        for dimension, (factor, residual) in factors_of(document, (*steps, "factors"), tuple(own), problem).items():
            if residual is not None:
                raise document.error((*steps, "factors"), "must have no remainder: a search has none", text)
            if found.setdefault(dimension, factor) != factor:
                name = problem.dimensions[dimension]
                raise document.error((*steps, "factors"), f"another constraint says {name}={found[dimension]}", text)
    order = tuple(permutation_of(document, (*steps, "permutation"), rule.permutation, problem))
    if order and before.order and order != before.order:
        raise document.error((*steps, "permutation"), "another constraint has another order", rule.permutation)
    split = before.split if rule.split is None else rule.split
    level.loops[kind] = LoopRules(exact, most, order or before.order, split)
