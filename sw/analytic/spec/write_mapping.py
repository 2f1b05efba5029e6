"""A mapping as the section of a specification."""

from typing import Any

import yaml

from ..architecture import Architecture
from ..mapping import Mapping, Place
from ..problem import Problem
from .document import Document
from .read_architecture import is_new_dialect

__all__ = ["mapping_text"]


def mapping_text(document: Document, mapping: Mapping, architecture: Architecture) -> str:
    """YAML in the dialect of the architecture, outermost level first."""
    new, problem = is_new_dialect(document), mapping.problem
    entries: list[dict[str, Any]] = []
    for level in reversed(range(len(architecture.levels))):
        storage = architecture.levels[level]
        own = [place for place in mapping.places if place.level == level]
        side_by_side = [place for place in own if place.loop.is_spatial]
        if not storage.is_spatial:
            names = [tensor.name for tensor in problem.tensors]
            kept = [name for name, here in zip(names, mapping.keeps[level], strict=True) if here]
            bypassed = [name for name in names if name not in kept]
            entries.append(
                {
                    "target": storage.name,
                    "type": "dataspace" if new else "bypass",
                    "keep": kept,
                    "bypass": bypassed,
                }
            )
            time = [place for place in own if not place.loop.is_spatial]
            entries.append({"target": storage.name, "type": "temporal", **_loops(time, problem, new=new)})
        if side_by_side:
            split = sum(place.loop.axis == "x" for place in side_by_side)
            loops = _loops(side_by_side, problem, new=new)
            entry = {"target": storage.name, "type": "spatial", **loops, "split": split}
            apart = [tensor.name for number, tensor in enumerate(problem.tensors) if mapping.is_apart(level, number)]
            key = "no_multicast_no_reduction" if new else "no-multicast-no-reduction"
            entries.append(entry | ({key: apart} if apart else {}))
    text: str = yaml.safe_dump({"mapping": entries}, sort_keys=False, default_flow_style=None, width=120)
    return text


def _loops(places: list[Place], problem: Problem, *, new: bool) -> dict[str, Any]:
    """All dimensions, those without a loop as factors of 1 outside the others."""
    by_dimension = {place.loop.dimension: place for place in places}
    order = [*by_dimension, *(d for d in range(len(problem.bounds)) if d not in by_dimension)]
    factors = []
    for dimension in order:
        place = by_dimension.get(dimension)
        bound = "1" if place is None else str(place.loop.bound)
        if place is not None and place.residual != place.loop.bound:
            bound += f",{place.residual}"
        factors.append(f"{problem.dimensions[dimension]}={bound}")
    names = [problem.dimensions[dimension] for dimension in order]
    if new:
        return {"factors": factors, "permutation": names}
    letters = all(len(name) == 1 for name in problem.dimensions)
    return {"factors": " ".join(factors), "permutation": "".join(names) if letters else " ".join(names)}
