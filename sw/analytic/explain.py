"""How the counters of one tensor at one level came about, in words."""

from collections.abc import Iterator
from math import prod

from .analysis import Analysis
from .errors import SpecError
from .mapping import Place
from .sparse.counts import ACTIONS, Accesses
from .sparse.leaders import Elimination

__all__ = ["explain", "loops_text"]


def explain(analysis: Analysis, subject: str) -> list[str]:
    """Lines for ``LEVEL.TENSOR``. Raises SpecError for one that the mapping does not keep."""
    spec = analysis.spec
    kept = {
        f"{spec.architecture.levels[level].name}.{spec.workload.problem.tensors[tensor].name}": (level, tensor)
        for level, tensor in spec.mapping.walk()
    }
    if subject not in kept:
        from gen.design import did_you_mean

        raise SpecError(f"--explain {subject}: must be one of {', '.join(kept)}{did_you_mean(subject, kept)}")
    level, tensor = kept[subject]
    return [
        subject,
        *_dense(analysis, level, tensor),
        *_sparse(analysis, level, tensor),
        *_hardware(analysis, level, tensor),
    ]


def loops_text(analysis: Analysis, places: list[Place]) -> str:
    """Loops, outermost first."""
    names = analysis.spec.workload.problem.dimensions
    shown = [
        f"{names[place.loop.dimension]}={_bound(place)}{'' if not place.loop.is_spatial else f' ({place.loop.axis})'}"
        for place in reversed(places)
        if place.loop.bound > 1
    ]
    return " ".join(shown) or "none"


def _bound(place: Place) -> str:
    """As factors are written."""
    return f"{place.loop.bound}" if place.residual == place.loop.bound else f"{place.loop.bound},{place.residual}"


def _dense(analysis: Analysis, level: int, tensor: int) -> Iterator[str]:
    mapping, found = analysis.spec.mapping, analysis.traffic[level, tensor]
    space = mapping.problem.tensors[tensor]
    inner = mapping.inner_keeper(tensor, level)
    below = "the compute units" if inner < 0 else analysis.spec.architecture.levels[inner].name
    between, outside = list(mapping.between(inner, level)), list(mapping.between(level, len(mapping.loops)))
    yield f"  tile: {' x '.join(map(str, found.extents))} = {found.size:,} words"
    yield f"  loops down to {below}: {loops_text(analysis, between)}; outside: {loops_text(analysis, outside)}"
    sweep = found.sweep
    if sweep is None:
        yield "  loops have remainders: words are those of the mean instance"
    elif mapping.outer_keeper(tensor, level) is None:
        yield "  fills: 0, the outermost level that keeps it"
    else:
        slides = sweep.steps > 1 and sweep.step != sweep.first
        window = f"({sweep.first:,} + {sweep.steps - 1} x {sweep.step:,})" if slides else f"{sweep.first:,}"
        times = sweep.whole if slides else sweep.whole * sweep.steps
        elided = sweep.words - found.fills
        less = f" - {elided:,} that are the first at their place" if elided else ""
        yield f"  fills: {window} words x {times:,} times = {sweep.words:,}{less}"
    if sweep is None:
        return
    children = found.spread
    arrivals = found.updates if space.is_output else found.reads
    what = "updates" if space.is_output else "reads"
    yield f"  {what}: {arrivals // children:,} at each child x {children} children that differ = {arrivals:,}"
    if space.is_output:
        yield f"  reads: {found.updates:,} updates - {found.partition:,} that are the first at their place = {found.reads:,}"


def _sparse(analysis: Analysis, level: int, tensor: int) -> Iterator[str]:
    spec, sparse = analysis.spec, analysis.sparse
    tile, density = sparse.occupancy[level, tensor], spec.workload.density(spec.workload.problem.tensors[tensor])
    yield f"  nonzeros ({density.name}): {tile.mean:g} of {tile.size:,} on average, {tile.maximum:,} words at most"
    if tile.arrives < 1:
        yield f"  tiles that arrive: {tile.arrives:.6f}; the level outside knows which are empty"
    for number, rank in enumerate(tile.ranks):
        yield (
            f"  rank {number} ({rank.rank.format.name}, {rank.shape:,} coordinates): {rank.mean[0]:g} words of metadata of "
            f"{rank.bits[0]} bits, {rank.mean[1]:g} payloads of {rank.bits[1]} bits"
        )
    for found in sparse.eliminations:
        if found.target == tensor and found.level >= level:
            yield f"  {_elimination(analysis, found)}"
    over = sparse.overbooked.get((level, tensor))
    if over is not None:
        yield (
            f"  overbooked: {over.capacity:,} words for a tile; {over.share:.6f} of the tiles do not fit, {over.bumped:g} words "
            f"of a tile stay outside on average; {over.refetched:,} words are fetched once more"
        )
    counters = sparse.counters[level, tensor]
    for action in ACTIONS:
        if not counters.data(action).dense:
            continue
        yield f"  {action}: {_split(counters.data(action))}"
        for number, words in enumerate(counters.formats[action]):
            parts = [
                f"{name} {_split(each)}"
                for name, each in (("metadata", words.metadata), ("payload", words.payload))
                if each.dense
            ]
            if parts:
                yield f"    rank {number}: {'; '.join(parts)}"


def _elimination(analysis: Analysis, found: Elimination) -> str:
    spec = analysis.spec
    names = [tensor.name for tensor in spec.workload.problem.tensors]
    where = spec.architecture.levels[found.level].name
    tiles = []
    for (leader, empty), box in zip(found.leaders, found.boxes, strict=True):
        extents = spec.workload.problem.tensors[leader].extents(box)
        size = prod(extents)
        what = "a word" if size == 1 else f"a tile of {' x '.join(map(str, extents))}"
        tiles.append(f"{what} of {names[leader]} is empty with probability {empty:.6f}")
    kind = found.kind.replace("_", "-")
    share = f"{found.share:.6f} of all accesses" + (
        "" if found.of_nonzeros == found.share else f", {found.of_nonzeros:.6f} of those to nonzeros"
    )
    return f"{kind} at {where}: {'; '.join(tiles) or 'no leader tile decides'}: {share}"


def _split(found: Accesses) -> str:
    gone = found.dense - found.actual - found.gated - found.skipped
    more = f" and {-gone:,} fetched once more" if gone < 0 else ""
    parts = (
        (found.actual, "actual"),
        (found.gated, "gated"),
        (found.skipped, "skipped"),
        (max(0, gone), "that do not exist"),
    )
    return f"{found.dense:,}{more} = " + (" + ".join(f"{number:,} {name}" for number, name in parts if number) or "0")


def _hardware(analysis: Analysis, level: int, tensor: int) -> Iterator[str]:
    one, mean = analysis.tensor_energy[level, tensor], analysis.uses[level].mean[tensor]
    yield f"  energy: {one:,.2f} pJ at one instance x {mean:g} instances on average = {one * mean:,.2f} pJ"
    yield f"  cycles of the level: {analysis.cycles.levels[level]:,}; of the compute units: {analysis.cycles.compute:,}"
