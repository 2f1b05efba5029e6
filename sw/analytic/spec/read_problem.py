"""The section ``problem``: dimensions, tensors, how nonzeros lie."""

from collections.abc import Mapping
from typing import Any

from ..densities.banded import Banded
from ..densities.blocks import Blocks
from ..densities.n_of_m import NOfM
from ..densities.protocol import Density
from ..densities.structured import FixedStructured
from ..densities.uniform import Hypergeometric
from ..problem import Problem, Tensor, Term, Workload
from .document import Document, Steps
from .einsum import EinsumError, shape_of
from .extensions import Extensions
from .fields import Count, Flag, Name, Names, Section, Share, validated
from .files import actual_density

__all__ = ["read_workload"]

UNIFORM = ("hypergeometric", "uniform")
STRUCTURED = ("fixed_structured",)
ACTUAL = ("real_data", "actual_data")
# Nonzeros of a banded matrix, whose tiles are counted one by one.
MOST_BANDED = 20_000_000
# Operations of a workload.
MOST_COMPUTES = 10**30
DISTRIBUTIONS = (*UNIFORM, *STRUCTURED, "block", "n_of_m", "banded", *ACTUAL)


class _Coefficient(Section):
    name: Name
    default: Count = 1


class _DataSpace(Section):
    name: Name
    projection: list[Any]
    read_write: Flag = False


class _Shape(Section):
    dimensions: Names
    data_spaces: list[_DataSpace]
    name: Name = "problem"
    coefficients: list[_Coefficient] = []
    version: Any = None


class _Problem(Section):
    shape: _Shape | None = None
    einsum: Name | None = None
    instance: dict[str, Any]
    version: Any = None


class _Share(Section):
    value: Share


class _Count(Section):
    value: Count


class _Density(Section):
    distribution: Name
    density: Share | None = None
    band_width: Count | None = None
    data_file_path: Name | None = None
    workload_tensor_size: Count | None = None
    block: list[Count] | None = None
    n: Count | None = None
    m: Count | None = None
    rank: Count | None = None


def read_workload(document: Document, names: Mapping[str, Any], extensions: Extensions) -> Workload:
    """Raises SpecError."""
    content = document.require("problem")
    found = validated(_Problem, content, document, ("problem",), names)
    shape, instance = _shape(document, found), found.instance
    if not shape.dimensions:
        raise document.error(("problem", "shape", "dimensions"), "must name a dimension")
    _distinct(document, ("problem", "shape", "dimensions"), shape.dimensions)
    _distinct(document, ("problem", "shape", "data_spaces"), [space.name for space in shape.data_spaces])
    coefficients = {each.name: each.default for each in shape.coefficients}
    others = ("densities", "commonDensity", "version")
    for key, value in instance.items():
        if key not in (*shape.dimensions, *coefficients, *others):
            known = ", ".join((*shape.dimensions, *coefficients, *others[:2]))
            raise document.error(("problem", "instance", key), f"no such key: must be one of {known}", value)
    for name in coefficients:
        if name in instance:
            coefficients[name] = _positive(document, ("problem", "instance", name), instance[name], names)
    bounds = []
    for name in shape.dimensions:
        if name not in instance:
            raise document.error(("problem", "instance", name), "is missing")
        bounds.append(_positive(document, ("problem", "instance", name), instance[name], names))
    tensors = tuple(
        Tensor(
            space.name,
            _projection(
                document,
                ("problem", "shape", "data_spaces", number, "projection"),
                space.projection,
                shape,
                coefficients,
            ),
            space.read_write,
        )
        for number, space in enumerate(shape.data_spaces)
    )
    if sum(tensor.is_output for tensor in tensors) != 1:
        raise document.error(("problem", "shape", "data_spaces"), "must have one data space with read_write: true")
    if all(tensor.is_output for tensor in tensors):
        raise document.error(("problem", "shape", "data_spaces"), "must have a data space that is read only")
    problem = Problem(shape.name, shape.dimensions, tuple(bounds), tensors)
    if problem.computes > MOST_COMPUTES:
        raise document.error(("problem", "instance"), f"must give at most {MOST_COMPUTES:.0e} operations")
    return Workload(problem, _densities(document, problem, instance, names, extensions))


def _shape(document: Document, found: _Problem) -> _Shape:
    """The shape, or that of an Einsum."""
    if (found.shape is None) == (found.einsum is None):
        raise document.error(("problem",), "must have a shape or an einsum" + (", not both" if found.shape else ""))
    if found.shape is not None:
        return found.shape
    try:
        return _Shape.model_validate(shape_of(str(found.einsum), found.instance))
    except EinsumError as error:
        raise document.error(("problem", "einsum"), str(error), found.einsum) from None


def _distinct(document: Document, steps: Steps, found: Any) -> None:
    double = next((name for number, name in enumerate(found) if name in found[:number]), None)
    if double is not None:
        raise document.error(steps, f"{double} is given twice")


def _positive(document: Document, steps: Steps, value: Any, names: Mapping[str, Any]) -> int:
    found = _single(_Count, document, steps, value, names)
    if found < 1:
        raise document.error(steps, "must be at least 1", value)
    return int(found)


def _single(model: Any, document: Document, steps: Steps, value: Any, names: Mapping[str, Any]) -> Any:
    """One value, checked as the field of a section is."""
    from pydantic import ValidationError

    try:
        return model.model_validate({"value": value}, context={"names": names}).value
    except ValidationError as error:
        complaint = error.errors(include_url=False)[0]
    allowed = str(complaint.get("ctx", {}).get("error", complaint["msg"]))
    raise document.error(steps, allowed, value)


def _projection(
    document: Document, steps: Steps, projection: list[Any], shape: _Shape, coefficients: Mapping[str, int]
) -> tuple[tuple[Term, ...], ...]:
    """A list for each rank, of terms ``[DIMENSION]`` or ``[DIMENSION, COEFFICIENT]``."""
    ranks = []
    for number, rank in enumerate(projection):
        terms = []
        if not isinstance(rank, list) or not rank:
            raise document.error((*steps, number), "must be a list of [dimension] or [dimension, coefficient]", rank)
        for place, term in enumerate(rank):
            here = (*steps, number, place)
            words = [str(word) for word in term] if isinstance(term, list) else []
            if not 1 <= len(words) <= 2:
                raise document.error(here, "must be [dimension] or [dimension, coefficient]", term)
            if words[0] not in shape.dimensions:
                raise document.error(here, f"must be one of {', '.join(shape.dimensions)}", words[0])
            if len(words) == 2 and words[1] not in coefficients:
                known = ", ".join(coefficients) or "those of problem.shape.coefficients"
                raise document.error(here, f"must be one of {known}", words[1])
            terms.append(Term(shape.dimensions.index(words[0]), coefficients[words[1]] if len(words) == 2 else 1))
        ranks.append(tuple(terms))
    return tuple(ranks)


def _densities(
    document: Document,
    problem: Problem,
    instance: Mapping[str, Any],
    names: Mapping[str, Any],
    extensions: Extensions,
) -> dict[str, Density]:
    given = instance.get("densities") or {}
    steps: Steps = ("problem", "instance", "densities")
    if not isinstance(given, dict):
        raise document.error(steps, "must be a mapping of data spaces", given)
    known = [tensor.name for tensor in problem.tensors]
    for name in given:
        if name not in known:
            raise document.error((*steps, name), f"no such data space: must be one of {', '.join(known)}", given[name])
    common = instance.get("commonDensity")
    found: dict[str, Density] = {}
    of_all: Steps = ("problem", "instance", "commonDensity")
    for tensor in problem.tensors:
        here, content = ((*steps, tensor.name), given[tensor.name]) if tensor.name in given else (of_all, common)
        own = str(content.get("distribution")).replace("-", "_") if isinstance(content, dict) else ""
        if isinstance(content, dict) and own in extensions.densities:
            try:
                found[tensor.name] = extensions.density(own, content, tensor.extents(problem.bounds))
            except (KeyError, TypeError, ValueError) as error:
                reason = f"{error.args[0]} is missing" if isinstance(error, KeyError) else str(error)
                raise document.error(here, reason, content) from None
        elif content is not None or tensor.name in given:
            found[tensor.name] = _density(document, here, content, problem, tensor, names, (*extensions.densities,))
        else:
            found[tensor.name] = FixedStructured(1.0)
    return found


def _density(
    document: Document,
    steps: Steps,
    content: Any,
    problem: Problem,
    tensor: Tensor,
    names: Mapping[str, Any],
    others: tuple[str, ...],
) -> Density:
    if not isinstance(content, dict):
        return FixedStructured(_single(_Share, document, steps, content, names))
    found = validated(_Density, content, document, steps, names)
    name = found.distribution.replace("-", "_")
    if name not in DISTRIBUTIONS:
        raise document.error(
            (*steps, "distribution"), f"must be one of {', '.join((*DISTRIBUTIONS, *others))}", found.distribution
        )
    extents = tensor.extents(problem.bounds)
    if name in ACTUAL:
        if found.data_file_path is None:
            raise document.error((*steps, "data_file_path"), "is missing")
        return actual_density(document, (*steps, "data_file_path"), found.data_file_path, extents)
    if name == "n_of_m":
        return _n_of_m(document, steps, found, extents)
    if name == "banded":
        if found.band_width is None:
            raise document.error((*steps, "band_width"), "is missing")
        if len(extents) != 2 or extents[0] != extents[1]:
            shape = " x ".join(map(str, extents))
            raise document.error((*steps, "distribution"), f"must not be banded: {tensor.name} is {shape}, not square")
        banded = Banded(extents[0], found.band_width)
        if banded.nonzeros > MOST_BANDED:
            allowed = f"must give at most {MOST_BANDED:,} nonzeros, not {banded.nonzeros:,}"
            raise document.error((*steps, "band_width"), allowed, found.band_width)
        return banded
    if found.density is None:
        raise document.error((*steps, "density"), "is missing")
    density = found.density
    if name in STRUCTURED:
        return FixedStructured(density)
    if name == "block":
        block = tuple(found.block or ())
        if len(block) != len(extents) or not all(block):
            allowed = f"must be a list of {len(extents)} lengths, one for each rank of {tensor.name}"
            raise document.error((*steps, "block"), allowed, found.block)
        return Blocks(density, extents, block)
    return Hypergeometric.of(density, found.workload_tensor_size or tensor.size(problem.bounds))


def _n_of_m(document: Document, steps: Steps, found: _Density, extents: tuple[int, ...]) -> NOfM:
    """Groups lie along the last rank where nothing is said."""
    if found.n is None or found.m is None:
        raise document.error((*steps, "n" if found.n is None else "m"), "is missing")
    if not 1 <= found.m or found.n > found.m:
        raise document.error((*steps, "n"), f"must be at most m = {found.m}, which must be at least 1", found.n)
    rank = len(extents) - 1 if found.rank is None else found.rank
    if rank >= len(extents):
        raise document.error((*steps, "rank"), f"must be between 0 and {len(extents) - 1}", found.rank)
    return NOfM(found.n, found.m, rank)
