"""Names of Verilog modules, the block's and only those of its parameters that differ within the design; names that are free."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from rtl.lib.block import Block, Digest, base_name, suffix

__all__ = ["LONGEST", "short_names", "unused"]

LONGEST = 40


def short_names(blocks: Mapping[str, Block]) -> dict[str, str]:
    """A name for each block, by its full one. No two are alike, and none is longer than ``LONGEST``."""
    alike: dict[str, list[str]] = {}
    for name, block in blocks.items():
        alike.setdefault(base_name(block), []).append(name)
    found: dict[str, str] = {}
    taken = set(alike)
    for base, names in alike.items():
        for name, short in zip(names, _told_apart(base, [blocks[name] for name in names]), strict=True):
            # A block whose own name looks like another's with parameters.
            while short in taken - {base}:
                short += "x"
            taken.add(short)
            found[name] = short
    return found


def _told_apart(base: str, blocks: Sequence[Block]) -> list[str]:
    if len(blocks) == 1:
        return [base]
    sets = [block.parameters() for block in blocks]
    keys = list(dict.fromkeys(key for values in sets for key in values))
    differ = [key for key in keys if len({str(values.get(key)) for values in sets}) > 1]
    differ = [key for key in differ if not any(isinstance(values.get(key), Digest) for values in sets)]
    for count in [len(differ), *range(1, len(differ))]:
        for chosen in combinations(differ, count):
            names = [
                re.sub(r"\W", "_", "_".join([base, *(suffix(key, values[key]) for key in chosen if key in values)]))
                for values in sets
            ]
            if len(set(names)) == len(names) and max(map(len, names)) <= LONGEST:
                return names
    return [f"{base}_{number}" for number in range(1, len(blocks) + 1)]


def unused(name: str, taken: Iterable[str]) -> str:
    """``name``, or with the lowest number from 2 on behind it where it is taken."""
    if name not in taken:
        return name
    number = 2
    while f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}"
