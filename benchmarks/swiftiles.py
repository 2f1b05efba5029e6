"""How well Swiftiles meets its target: overbooking rate of the initial estimate and after scaling. Paper: Tailors, 6.3.

    python benchmarks/swiftiles.py [--tiles 400] [--y 0.1] [--seeds 10] [OPERAND]...

As in the paper a tile is a number of coordinates, spent on rank K first and on rank N then; its occupancy counts nonzeros,
and the rate is the share of all tiles, empty ones too, that hold more than the buffer. The buffer holds the operand's nonzeros
divided by ``--tiles``: 400 is what 8 Ki nonzeros are to the paper's amazon0312. Second table: mean absolute error by k, the
samples above the quantile (figure 12); each figure is a mean over seeds.
"""

import argparse
import math
import sys

import numpy as np
from operand_sets import MIXED

from sw.operands import load
from sw.stats.occupancy import occupancy, sample_occupancies
from sw.stats.pattern import Pattern

SAMPLES = (1, 2, 5, 10, 20, 50)


def shape(points: float, pattern: Pattern) -> tuple[int, int]:
    """``(T_k, T_n)`` of a tile of so many coordinates, K first."""
    T_k = max(1, min(pattern.rows, round(points)))
    return T_k, max(1, min(pattern.columns, round(points / T_k)))


def rate(pattern: Pattern, tile: tuple[int, int], capacity: float) -> float:
    """Share of the tiles that overbook."""
    found = occupancy(pattern, *tile)
    return float((found.nonempty > capacity).sum()) / found.tiles


def scaled(pattern: Pattern, capacity: float, y: float, k: int | None, rng: np.random.Generator) -> tuple[int, int]:
    """The tile after the three steps; ``k`` None: every tile is a sample."""
    first = capacity * pattern.rows * pattern.columns / pattern.nnz
    tile = shape(first, pattern)
    if k is None:
        found = occupancy(pattern, *tile)
        seen = np.sort(np.concatenate((np.zeros(found.tiles - len(found.nonempty), np.int64), found.nonempty)))
    else:
        seen = np.sort(sample_occupancies(pattern, *tile, math.ceil(k / y), rng))
    quantile = max(1, int(seen[max(0, len(seen) - max(1, round(y * len(seen))) - 1)]))
    return shape(tile[0] * tile[1] * capacity / quantile, pattern)


def main() -> int:
    """Prints both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiles", type=int, default=400)
    parser.add_argument("--y", type=float, default=0.1)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("operands", nargs="*", default=MIXED, metavar="OPERAND")
    options = parser.parse_args()
    y = options.y
    begun: list[float] = []
    ended: list[float] = []
    errors: dict[int | None, list[float]] = {k: [] for k in (*SAMPLES, None)}
    print("| operand | nonzeros | initial estimate | after scaling |\n| --- | ---: | ---: | ---: |", flush=True)
    for name in options.operands:
        known = load(name)
        pattern = Pattern.of(known.matrix)
        capacity = max(1.0, pattern.nnz / options.tiles)
        initial = rate(pattern, shape(capacity * pattern.rows * pattern.columns / pattern.nnz, pattern), capacity)
        rates: dict[int | None, list[float]] = {}
        for k in errors:
            seeds = range(1 if k is None else options.seeds)
            tiles = [scaled(pattern, capacity, y, k, np.random.default_rng(seed)) for seed in seeds]
            known_rates = {tile: rate(pattern, tile, capacity) for tile in set(tiles)}
            rates[k] = [known_rates[tile] for tile in tiles]
            errors[k].append(float(np.mean([abs(r - y) for r in rates[k]])))
        begun.append(initial)
        ended.append(float(np.mean(rates[10])))
        print(f"| {known.name} | {pattern.nnz:,} | {initial:.1%} | {ended[-1]:.1%} |", flush=True)
    before, after = float(np.mean(begun)), float(np.mean(ended))
    print(f"| **mean** | | {before:.1%} | {after:.1%} |")
    off = 100 * float(np.mean(np.abs(np.array(begun) - y)))
    print(f"| **mean absolute error, points** | | {off:.1f} | {100 * np.mean(errors[10]):.1f} |")
    print("\n| k | " + " | ".join("all" if k is None else str(k) for k in errors) + " |")
    print("| --- |" + " ---: |" * len(errors))
    print("| mean absolute error, points | " + " | ".join(f"{100 * np.mean(e):.1f}" for e in errors.values()) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
