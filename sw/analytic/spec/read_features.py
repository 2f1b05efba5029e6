"""Sparse acceleration features: the section ``sparse_optimizations``, or what components of dialect v0.4 say of themselves."""

from collections.abc import Mapping
from typing import Any

from ..architecture import Architecture
from ..features import ActionOption, ActionSaf, Features, FormattedRank, Representation
from ..formats.protocol import RankFormat
from ..formats.registry import FORMATS
from ..problem import Problem
from .document import Document, Steps
from .extensions import Extensions
from .fields import Count, Flag, Name, Names, Section, validated
from .read_architecture import Component

__all__ = ["read_features"]

ACTIONS = ("gating", "skipping", "skipping_spatial", "position_skipping")
COMPUTE = ("gating", "skipping")
ORDERS = {"inner_to_outer": True, "outer_to_inner": False}


class _Rank(Section):
    format: Name
    metadata_word_bits: Count | None = None
    payload_word_bits: Count | None = None
    flattened_rankIDs: list[Any] | None = None


class _DataSpace(Section):
    name: Name
    ranks: list[_Rank]
    rank_application_order: Name = "outer-to-inner"
    tensor_compressed: Flag | None = None


class _Format(Section):
    data_spaces: list[_DataSpace]


class _Option(Section):
    target: Name
    condition_on: Names = ()


class _Action(Section):
    type: Name
    options: list[_Option] | None = None
    target: Name | None = None
    condition_on: Names = ()


class _Compute(Section):
    type: Name


class _Target(Section):
    name: Name
    representation_format: _Format | None = None
    action_optimization: list[_Action] = []
    compute_optimization: list[_Compute] = []


class _Targets(Section):
    targets: list[Any]
    version: Any = None


def read_features(
    document: Document,
    problem: Problem,
    architecture: Architecture,
    found: list[Component],
    names: Mapping[str, Any],
    notes: list[str],
    extensions: Extensions,
) -> Features:
    """Raises SpecError."""
    entries: list[tuple[Steps, Any]] = []
    section = document.content.get("sparse_optimizations")
    if section is not None:
        targets = validated(_Targets, section, document, ("sparse_optimizations",), names).targets
        entries += [(("sparse_optimizations", "targets", number), entry) for number, entry in enumerate(targets)]
    for component in found:
        own = component.content.get("sparse_optimizations")
        if own and not component.is_spatial:
            steps = (*component.steps, "sparse_optimizations")
            if not isinstance(own, dict):
                raise document.error(steps, "must be a mapping", own)
            entries.append((steps, {"name": component.name, **own}))
    formats = {**FORMATS, **extensions.formats}
    return _Reader(document, problem, architecture, names, notes, formats).read(entries)


class _Reader:
    """Collects what the entries say."""

    def __init__(
        self,
        document: Document,
        problem: Problem,
        architecture: Architecture,
        names: Mapping[str, Any],
        notes: list[str],
        formats: Mapping[str, RankFormat],
    ) -> None:
        self.document = document
        self.problem = problem
        self.names = names
        self.notes = notes
        self.formats = formats
        self.compute_name = architecture.compute.name
        self.levels = {
            storage.name: level for level, storage in enumerate(architecture.levels) if not storage.is_spatial
        }
        self.representations: dict[tuple[int, int], Representation] = {}
        self.actions: dict[int, list[ActionSaf]] = {}
        self.compute: set[str] = set()

    def read(self, entries: list[tuple[Steps, Any]]) -> Features:
        for steps, entry in entries:
            self._target(steps, validated(_Target, entry, self.document, steps, self.names))
        return Features(
            self.representations, {level: tuple(safs) for level, safs in self.actions.items()}, frozenset(self.compute)
        )

    def _target(self, steps: Steps, target: _Target) -> None:
        if target.name != self.compute_name and target.name not in self.levels:
            known = ", ".join((*reversed(self.levels), self.compute_name))
            raise self.document.error((*steps, "name"), f"must be one of {known}", target.name)
        for number, compute in enumerate(target.compute_optimization):
            kind = compute.type.replace("-", "_")
            if kind not in COMPUTE:
                where = (*steps, "compute_optimization", number, "type")
                raise self.document.error(where, f"must be one of {', '.join(COMPUTE)}", compute.type)
            self.compute.add(kind)
        if target.name not in self.levels:
            if target.representation_format or target.action_optimization:
                raise self.document.error(steps, f"{target.name} computes: must have compute_optimization only")
            return
        level = self.levels[target.name]
        if target.representation_format is not None:
            where = (*steps, "representation_format", "data_spaces")
            for number, space in enumerate(target.representation_format.data_spaces):
                tensor = self._tensor((*where, number, "name"), space.name)
                if (level, tensor) in self.representations:
                    raise self.document.error(
                        (*where, number, "name"), f"has a representation at {target.name} already", space.name
                    )
                self.representations[level, tensor] = self._representation((*where, number), space)
        for number, action in enumerate(target.action_optimization):
            saf = self._action((*steps, "action_optimization", number), action)
            self.actions.setdefault(level, []).append(saf)
        self._require_one_kind(steps, target.name, level)

    def _require_one_kind(self, steps: Steps, name: str, level: int) -> None:
        kinds: dict[int, set[bool]] = {}
        for saf in self.actions.get(level, ()):
            for option in saf.options:
                kinds.setdefault(option.target, set()).add(saf.kind == "skipping_spatial")
        for tensor, found in kinds.items():
            if len(found) > 1:
                what = self.problem.tensors[tensor].name
                raise self.document.error(
                    (*steps, "action_optimization"),
                    f"{what} at {name}: must not be skipped in space and gated or skipped in time",
                )

    def _tensor(self, steps: Steps, name: str) -> int:
        known = [tensor.name for tensor in self.problem.tensors]
        if name not in known:
            raise self.document.error(steps, f"must be one of {', '.join(known)}", name)
        return known.index(name)

    def _representation(self, steps: Steps, space: _DataSpace) -> Representation:
        order = space.rank_application_order.replace("-", "_")
        if order not in ORDERS:
            raise self.document.error(
                (*steps, "rank_application_order"),
                "must be inner-to-outer or outer-to-inner",
                space.rank_application_order,
            )
        if not space.ranks:
            raise self.document.error((*steps, "ranks"), "must have a rank")
        ranks = [self._rank((*steps, "ranks", number), rank) for number, rank in enumerate(space.ranks)]
        return Representation(tuple(reversed(ranks)), ORDERS[order])

    def _rank(self, steps: Steps, rank: _Rank) -> FormattedRank:
        name = rank.format.upper()
        if name not in self.formats:
            raise self.document.error((*steps, "format"), f"must be one of {', '.join(self.formats)}", rank.format)
        return FormattedRank(
            self.formats[name],
            rank.metadata_word_bits,
            rank.payload_word_bits,
            self._flattened(steps, rank.flattened_rankIDs),
        )

    def _flattened(self, steps: Steps, lists: list[Any] | None) -> frozenset[int] | None:
        """In dialect v0.3 the key is ``flattened-rankIDs``; the published tool does not read ``flattened_rankIDs`` there."""
        if lists is None:
            return None
        where = (*steps, "flattened_rankIDs")
        old = "sparse_optimizations" == steps[0]
        if old and self.document.spelling(where) == "flattened_rankIDs":
            text = f"{self.document.written(where)}: is not read in dialect v0.3, where the key is flattened-rankIDs"
            if text not in self.notes:
                self.notes.append(text)
            return None
        dimensions = [str(name) for each in lists for name in (each if isinstance(each, list) else [each])]
        for name in dimensions:
            if name not in self.problem.dimensions:
                raise self.document.error(where, f"must be of {', '.join(self.problem.dimensions)}", name)
        return frozenset(self.problem.dimensions.index(name) for name in dimensions)

    def _action(self, steps: Steps, action: _Action) -> ActionSaf:
        kind = action.type.replace("-", "_")
        if kind == "spatial_skipping":
            kind = "skipping_spatial"
        if kind not in ACTIONS:
            allowed = ", ".join(name.replace("_", "-") for name in ACTIONS)
            raise self.document.error((*steps, "type"), f"must be one of {allowed}", action.type)
        given = list(action.options or [])
        if action.target is not None:
            given.append(_Option(target=action.target, condition_on=action.condition_on))
        if not given:
            raise self.document.error(steps, "must have options, or target and condition-on")
        options = []
        for number, option in enumerate(given):
            where = (*steps, "options", number) if action.options else steps
            target = self._tensor((*where, "target"), option.target)
            leaders = tuple(self._tensor((*where, "condition_on"), name) for name in option.condition_on)
            if target in leaders:
                raise self.document.error((*where, "condition_on"), "must not be the target itself", option.target)
            if not leaders and kind != "position_skipping":
                raise self.document.error((*where, "condition_on"), "must name a data space")
            options.append(ActionOption(target, leaders))
        if kind == "skipping_spatial" and len(options) > 1:
            raise self.document.error(steps, "must have one option: skipping-spatial takes no choice")
        return ActionSaf(kind, tuple(options))
