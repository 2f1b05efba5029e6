"""Which mutations are tried, in which order: the same for the same seed and source."""

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence

from .operators import Mutation, mutations

__all__ = ["candidates"]


def candidates(texts: Mapping[str, str], seed: int) -> dict[str, list[Mutation]]:
    """For each file that has hardware, in random order, its mutations: every kind of change once before any kind twice.

    A file's order depends on its own text and the seed, not on other files.
    """
    found = {}
    for file in sorted(texts):
        by_operator: dict[str, list[Mutation]] = defaultdict(list)
        for mutation in mutations(file, texts[file]):
            by_operator[mutation.operator].append(mutation)
        rng = random.Random(f"{seed} {file}")
        if by_operator:
            found[file] = _interleaved([by_operator[name] for name in sorted(by_operator)], rng)
    files = list(found)
    random.Random(seed).shuffle(files)
    return {file: found[file] for file in files}


def _interleaved(kinds: Sequence[list[Mutation]], rng: random.Random) -> list[Mutation]:
    kinds = [rng.sample(kind, len(kind)) for kind in kinds]
    order: list[Mutation] = []
    for turn in range(max(map(len, kinds))):
        waiting = [kind[turn] for kind in kinds if turn < len(kind)]
        order += rng.sample(waiting, len(waiting))
    return order
