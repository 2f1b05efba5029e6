"""Splits the accesses of each level, and hands what a SAF removes on to the levels inside (paper, section 5.3.4)."""

from collections.abc import Mapping as Table

import numpy as np

from ..architecture import Storage
from ..dataflow.traffic import Traffic
from ..mapping import Keeping
from ..values import Count, Real
from .counts import ACTIONS, Accesses, Counters, FormatAccesses
from .leaders import Elimination
from .occupancy import Occupancy

__all__ = ["eliminate", "existing", "translate"]


def existing(traffic: Traffic, tile: Occupancy, *, is_output: bool, of_uses: float | None = None) -> Counters:
    """Accesses that exist: a level that knows where the zeros are makes none to them. of_uses: the share of nonzeros in what the
    compute units take, where a window takes some words more often than others."""

    def left(words: Count, share: Real) -> Count:
        return words - np.floor(words * (1.0 - share)) if tile.has_metadata else words

    used = tile.density if of_uses is None else of_uses / tile.arrives
    counters = Counters(
        Accesses(traffic.reads, left(traffic.reads, used)),
        Accesses(traffic.fills, left(traffic.fills, tile.density)),
        Accesses(traffic.updates, left(traffic.updates, used) if is_output else traffic.updates),
    )
    for action in ACTIONS:
        data = counters.data(action)
        rounds = 0 if data.is_none else data.dense / tile.points
        counters.formats[action] = [
            FormatAccesses(*(_of_rounds(units, rounds) for units in rank.mean)) for rank in tile.ranks
        ]
    return counters


def _of_rounds(units: Count, rounds: Count) -> Accesses:
    words = np.ceil(units * rounds) if isinstance(units, np.ndarray) and isinstance(rounds, np.ndarray) else 0
    return Accesses(words, words)


def eliminate(
    nests: Keeping,
    tensor: int,
    counters: Table[int, Counters],
    tiles: Table[int, Occupancy],
    eliminations: Table[int, Elimination],
    computes: Count,
    met: dict[int, Real],
    *,
    pessimistic: bool = False,
) -> Count:
    """Applies the SAFs of one tensor to its ``counters``, by level as its ``tiles``. Returns the computes that are left.

    A SAF splits the accesses of its own level; those that it removes are missing at each level inside, without a trace, up to the
    next level with a SAF, which splits what arrives there. That of an input also removes its computes. met: of each leader the
    probability that its tile is nonempty, as far as SAFs of other tensors have removed the computes of empty ones.
    """
    is_output = nests.problem.tensors[tensor].is_output
    done: set[int] = set()
    for level in sorted(eliminations, reverse=True):
        found = eliminations[level]
        if level in counters and level not in done and found.kind != "skipping_spatial":
            _split(nests, tensor, level, counters, found.kind, found.removed(tiles[level]))
        inside = sorted((inner for inner in {*counters, *eliminations} if inner < level), reverse=True)
        for inner in inside:
            if inner in counters:
                _lose(counters[inner], found.removed(tiles[inner]))
            if inner in eliminations:
                own = eliminations[inner]
                if inner in counters and own.kind != "skipping_spatial":
                    left = 1.0 - found.removed(tiles[inner])
                    share = 1.0 - (1.0 - own.removed(tiles[inner])) / np.where(left > 0, left, 1.0)
                    share = np.where(left > 0, np.clip(share, 0.0, 1.0), 1.0)
                    _split(nests, tensor, inner, counters, own.kind, share)
                done.add(inner)
                break
        else:
            if not is_output:
                removed = computes * _new_share(found, met)
                removed = np.maximum(0.0, np.ceil(removed) - 1) if pessimistic else np.floor(removed)
                computes = computes - removed
    return computes


def _new_share(found: Elimination, met: dict[int, Real]) -> Real:
    """Computes that a SAF removes, of those that are left. A leader that another SAF has, too, is not asked twice: of two tiles
    of it the smaller one decides, which lies in the other."""
    left: Real = 1.0
    twice = False
    for leader, empty in found.leaders:
        before, nonempty = met.get(leader), 1.0 - empty
        twice = twice or before is not None
        if before is None:
            left, met[leader] = left * nonempty, nonempty
        else:
            met[leader] = np.minimum(before, nonempty)
            left = left * np.where(before > 0, met[leader] / np.where(before > 0, before, 1.0), 1.0)
    return 1.0 - left if twice else found.share


def _lose(counters: Counters, share: Real) -> None:
    """Accesses that an outer level removes do not exist here."""
    for action in ACTIONS:
        words = [counters.data(action)]
        words += [each for rank in counters.formats[action] for each in (rank.metadata, rank.payload)]
        for accesses in words:
            if not accesses.is_none:
                accesses.actual = accesses.actual - np.floor(accesses.actual * share)


def _split(nests: Keeping, tensor: int, level: int, counters: Table[int, Counters], kind: str, share: Real) -> None:
    """Gates or skips a share of reads and updates; of format data only the ranks that the level inside receives. Fills are those
    of the level outside and stay."""
    own = counters[level]
    rounded = np.ceil if nests.problem.tensors[tensor].is_output else np.floor
    own.reads.split(kind, rounded(own.reads.actual * share))
    if not own.updates.is_none:
        own.updates.split(kind, np.floor(own.updates.actual * share))
    child = nests.inner_keeper(tensor, level)
    received = len(own.formats["reads"]) if child < 0 else len(counters[child].formats["reads"])
    for action in ("reads", "updates"):
        for rank in own.formats[action][:received]:
            for accesses in (rank.metadata, rank.payload):
                if not accesses.is_none:
                    accesses.split(kind, np.floor(accesses.actual * share))


def translate(
    nests: Keeping,
    levels: tuple[Storage, ...],
    occupancy: Table[tuple[int, int], Occupancy],
    counters: Table[tuple[int, int], Counters],
) -> None:
    """Counts what is decompressed and compressed between a compressed level and an uncompressed one inside."""
    for level, tensor in nests.walk():
        outer = nests.outer_keeper(tensor, level)
        if outer is None or occupancy[level, tensor].is_compressed or not occupancy[outer, tensor].is_compressed:
            continue
        counters[level, tensor].decompressions = counters[level, tensor].fills.actual
        if nests.problem.tensors[tensor].is_output:
            counters[level, tensor].compressions = counters[outer, tensor].updates.actual
