"""How well Swiftiles meets its target: overbooking rate of the initial estimate and after scaling. Paper: Tailors, 6.3.

    python -m benchmarks.swiftiles [--tiles 400 | --nonzeros 8192] [--k-first] [--y 0.1] [--seeds 10] [--docs PAGE] [OPERAND]...

As in the paper a tile is a number of coordinates, its occupancy counts nonzeros, and the rate is the share of all tiles, empty
ones too, that hold more than the buffer. Tiles are squares, as in the paper's figure 1; with ``--k-first`` the coordinates are
spent on rank K first and on rank N then. The buffer holds the operand's nonzeros divided by ``--tiles`` (400 is what 8,192
nonzeros are to the paper's amazon0312), or ``--nonzeros`` of any operand. A share of a tenth says little of a few tiles: operands
that the first estimate cuts into fewer than ``--least`` are left out, and named. Generated operands are shown and are in no mean.

Second table: mean absolute error by k, the samples above the quantile (figure 12); each figure is a mean over seeds. Third, with
``--figure13``: the occupancies of one operand before and after scaling. ``--figure1`` looks at nothing but tiles of the paper's
figure 1. ``--docs`` puts all tables between their markers.
"""

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sw.stats.occupancy import occupancy, sample_occupancies
from sw.stats.pattern import Index, Pattern

from .operand_sets import MIXED
from .stand_ins import is_generated
from .stand_ins import operand as load
from .table_markers import stamp, write_table

SAMPLES = (1, 2, 5, 10, 20, 50)
# Of the buffer: what figure 13's distributions are read at.
PARTS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
# Of figure 1's tile: 51.4 million points.
SIDE = 7168
COMMAND = "python -m benchmarks.swiftiles"

Shape = tuple[int, int]


def shape(points: float, pattern: Pattern, k_first: bool = False) -> Shape:
    """``(T_k, T_n)`` of a tile of so many coordinates: a square, longer along one rank where the other ends; or K first."""
    T_k = max(1, min(pattern.rows, round(points if k_first else points**0.5)))
    T_n = max(1, min(pattern.columns, round(points / T_k)))
    return max(T_k, min(pattern.rows, round(points / T_n))), T_n


def rate(pattern: Pattern, tile: Shape, capacity: float) -> float:
    """Share of the tiles that overbook."""
    found = occupancy(pattern, *tile)
    return float((found.nonempty > capacity).sum()) / found.tiles


def occupancies(pattern: Pattern, tile: Shape) -> Index:
    """Of all tiles, empty ones too, rising."""
    found = occupancy(pattern, *tile)
    return np.sort(np.concatenate((np.zeros(found.tiles - len(found.nonempty), np.int64), found.nonempty)))


def quantile(seen: Index, y: float) -> int:
    """What a share y of the occupancies exceeds; at least 1, so that tiles can be scaled by it."""
    return max(1, int(seen[max(0, len(seen) - max(1, round(y * len(seen))) - 1)]))


def scaled(
    pattern: Pattern, capacity: float, y: float, k: int | None, rng: np.random.Generator, k_first: bool = False
) -> Shape:
    """The tile after the three steps; ``k`` None: every tile is a sample, 0: none is, and the first estimate stays."""
    tile = shape(capacity * pattern.rows * pattern.columns / pattern.nnz, pattern, k_first)
    if k == 0:
        return tile
    if k is None:
        seen = occupancies(pattern, tile)
    else:
        seen = np.sort(sample_occupancies(pattern, *tile, math.ceil(k / y), rng))
    return shape(tile[0] * tile[1] * capacity / quantile(seen, y), pattern, k_first)


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Of one operand: tiles of the first estimate, and the rates that each k (0: the first estimate, None: all) leads to."""

    name: str
    generated: bool
    nnz: int
    tiles: int
    rates: dict[int | None, list[float]]

    def rate(self, k: int | None) -> float:
        return float(np.mean(self.rates[k]))

    def error(self, k: int | None, y: float) -> float:
        """Mean distance from the target, in points."""
        return 100 * float(np.mean([abs(r - y) for r in self.rates[k]]))


def estimate(operand: str, options: argparse.Namespace) -> Estimate | None:
    """All rates of an operand; None where the first estimate cuts it into too few tiles. Raises OperandError."""
    known = load(operand)
    pattern = Pattern.of(known.matrix)
    capacity = float(options.nonzeros or max(1.0, pattern.nnz / options.tiles))
    y, first = (
        options.y,
        shape(capacity * pattern.rows * pattern.columns / max(1, pattern.nnz), pattern, options.k_first),
    )
    tiles = -(-pattern.rows // first[0]) * -(-pattern.columns // first[1])
    if tiles < options.least:
        return None
    rates: dict[int | None, list[float]] = {}
    for k in (0, *SAMPLES, None):
        seeds = range(options.seeds if k else 1)
        shapes = [scaled(pattern, capacity, y, k, np.random.default_rng(seed), options.k_first) for seed in seeds]
        found = {tile: rate(pattern, tile, capacity) for tile in set(shapes)}
        rates[k] = [found[tile] for tile in shapes]
    return Estimate(name=known.name, generated=is_generated(operand), nnz=pattern.nnz, tiles=tiles, rates=rates)


def row(found: Estimate) -> str:
    """A row of the first table."""
    name = f"{found.name} (generated)" if found.generated else found.name
    return f"| {name} | {found.nnz:,} | {found.tiles:,} | {found.rate(0):.1%} | {found.rate(10):.1%} |"


def tables(rows: Sequence[Estimate], y: float) -> list[str]:
    """Figures 11 and 12."""
    lines = ["| operand | nonzeros | tiles | initial estimate | after scaling |", "| --- | ---: | ---: | ---: | ---: |"]
    lines += [row(found) for found in rows]
    counted = [found for found in rows if not found.generated]
    if not counted:
        return lines

    def mean(values: Sequence[float]) -> float:
        return float(np.mean(values))

    before, after = (mean([found.rate(k) for found in counted]) for k in (0, 10))
    lines.append(f"| **mean of {len(counted)}** | | | {before:.1%} | {after:.1%} |")
    errors = {k: mean([found.error(k, y) for found in counted]) for k in counted[0].rates}
    lines.append(f"| **mean absolute error, points** | | | {errors[0]:.1f} | {errors[10]:.1f} |")
    lines += ["", "| k | " + " | ".join("all" if k is None else str(k) for k in errors) + " |"]
    lines.append("| --- |" + " ---: |" * len(errors))
    lines.append("| mean absolute error, points | " + " | ".join(f"{error:.1f}" for error in errors.values()) + " |")
    return lines


def distributions(operand: str, nonzeros: int, y: float) -> list[str]:
    """Figure 13: shares of the tiles that hold at most a part of the buffer; all tiles are examined, as there."""
    pattern = Pattern.of(load(operand).matrix)
    first = shape(nonzeros * pattern.rows * pattern.columns / pattern.nnz, pattern)
    seen = occupancies(pattern, first)
    last = shape(first[0] * first[1] * nonzeros / quantile(seen, y), pattern)
    shown = {
        "initial estimate": (first, seen.astype(np.float64)),
        "target, predicted": (last, seen * (nonzeros / quantile(seen, y))),
        "target, observed": (last, occupancies(pattern, last).astype(np.float64)),
    }
    lines = ["| tiles that hold at most | tile | " + " | ".join(f"{part:.0%}" for part in PARTS) + " |"]
    lines.append("| --- | ---: |" + " ---: |" * len(PARTS))
    for name, (tile, found) in shown.items():
        shares = " | ".join(f"{np.mean(found <= part * nonzeros):.1%}" for part in PARTS)
        lines.append(f"| {name} | {tile[0]:,} x {tile[1]:,} | {shares} |")
    return lines


def variation(operand: str, least: int) -> str | None:
    """A row of figure 1: the largest tile of SIDE x SIDE, and what a tenth of the tiles exceeds; None for too few tiles."""
    known = load(operand)
    seen = occupancies(Pattern.of(known.matrix), (SIDE, SIDE))
    if len(seen) < least:
        return None
    most, tenth = int(seen[-1]), quantile(seen, 0.1)
    name = f"{known.name} (generated)" if is_generated(operand) else known.name
    return f"| {name} | {len(seen):,} | {most:,} | {tenth:,} | {most / tenth:.0f} | {SIDE * SIDE / most:,.0f} |"


def variations(operands: Sequence[str], least: int) -> list[str]:
    """Figure 1 for all operands that have tiles enough."""
    lines = ["| operand | tiles | largest | 90 % hold at most | largest over that | points over the largest |"]
    lines.append("| --- |" + " ---: |" * 5)
    return lines + [row for operand in operands if (row := variation(operand, least)) is not None]


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--tiles", type=int, default=400, help="the buffer holds the nonzeros over this")
    size.add_argument("--nonzeros", type=int, help="the buffer holds this")
    parser.add_argument("--k-first", action="store_true", help="tiles span K before they grow along N")
    parser.add_argument("--least", type=int, default=50, help="tiles that an operand must have")
    parser.add_argument("--y", type=float, default=0.1)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--figure13", metavar="OPERAND", help="whose occupancies to show, with --nonzeros")
    parser.add_argument("--figure1", action="store_true", help="occupancies of tiles of 51.4 million points instead")
    parser.add_argument("--docs", type=Path, metavar="PAGE", help="where the tables are put between their markers")
    parser.add_argument("operands", nargs="*", default=MIXED, metavar="OPERAND")
    return parser


def main(words: Sequence[str] | None = None) -> int:
    """Prints the tables."""
    parser = arguments()
    options = parser.parse_args(words)
    for name, least in (("tiles", 1), ("nonzeros", 1), ("least", 1), ("seeds", 1)):
        if (value := getattr(options, name)) is not None and value < least:
            parser.error(f"--{name} must be at least {least}, not {value}")
    if not 0 < options.y < 1:
        parser.error(f"--y must be between 0 and 1, not {options.y:g}")
    if options.figure13 and not options.nonzeros:
        parser.error("--figure13 needs --nonzeros")
    if options.figure1:
        lines = [*variations(options.operands, options.least), "", stamp(f"{COMMAND} --figure1")]
        print("\n".join(lines))
        if options.docs is not None:
            write_table(options.docs, "swiftiles --figure1", lines)
        return 0
    rows = []
    for operand in options.operands:
        found = estimate(operand, options)
        if found is None:
            print(f"{operand}: fewer than {options.least} tiles, left out", file=sys.stderr, flush=True)
        else:
            rows.append(found)
            print(row(found), file=sys.stderr, flush=True)
    size = f"--nonzeros {options.nonzeros}" if options.nonzeros else f"--tiles {options.tiles}"
    lines = [*tables(rows, options.y), "", stamp(f"{COMMAND} {size}{' --k-first' * options.k_first}")]
    print("\n".join(lines))
    if options.docs is not None:
        write_table(options.docs, f"swiftiles {size}", lines)
    if options.figure13:
        lines = [*distributions(options.figure13, options.nonzeros, options.y), "", stamp(f"{COMMAND} --figure13")]
        print("\n".join(["", *lines]))
        if options.docs is not None:
            write_table(options.docs, "swiftiles --figure13", lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
