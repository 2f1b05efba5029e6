"""D2T2 on the machine of its paper: exact traffic of its tiles against square ones and against searching everything.

    python benchmarks/d2t2.py [--tile 128] [--errors] [--json FILE] OPERAND...

C = A x A^T in the order ikj, traffic with values, coordinates and segments, buffers that hold a dense ``tile x tile`` tile
(paper: 128 x 128, 128 KiB; sections 5 and 6). ``conservative``: such tiles. ``prescient``: the largest square ones of which
all fit. ``d2t2``: RF by the predicted traffic, then TileFactor. ``sized``: TileFactor for each RF, then the predicted traffic.
``searched``: every RF grown as far as all tiles fit, the least exact traffic.
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from sw.cost.tile_traffic import TrafficModel
from sw.operands import load
from sw.operands.operand import canonical_csr
from sw.stats.csf import csf_words, tile_grid
from sw.stats.d2t2 import tile_statistics
from sw.stats.pattern import Pattern
from sw.stats.tiled_traffic import tiled_traffic

ORDER = "ikj"
REORDER = range(-1, 8)  # RF 1/2 to 128
KINDS = ("conservative", "prescient", "d2t2", "sized", "searched")
Shape = tuple[int, int, int]  # T_i, T_j, T_k


class Pair:
    """A and A^T with buffers of ``words`` each."""

    def __init__(self, operand: str, T: int) -> None:
        matrix = load(operand)
        self.a, self.b = Pattern.of(matrix.matrix), Pattern.of(matrix.transposed().matrix)
        self.T = T
        self.words = int(csf_words(T * T, T, 1))

    def largest(self, shape: Shape) -> int:
        """Footprint of the largest tile of either operand."""
        T_i, T_j, T_k = shape
        grids = tile_grid(self.a, T_i, T_k), tile_grid(self.b, T_k, T_j)
        return max(int(grid.words.max(initial=0)) for grid in grids)

    def exact(self, shape: Shape) -> float:
        return tiled_traffic(self.a, self.b, shape, ORDER).total

    def grown(self, shape_of: Callable[[int], Shape], most: int) -> Shape:
        """The largest of ``shape_of(1) .. shape_of(most)`` of which all tiles fit, by bisection."""
        low, high = 1, most
        while low < high:
            middle = (low + high + 1) // 2
            if self.largest(shape_of(middle)) <= self.words:
                low = middle
            else:
                high = middle - 1
        return shape_of(low)

    def sized(self, shape: Shape) -> Shape:
        """As many of the largest tiles side by side as fit (TileFactor)."""
        factor = max(1, self.words // max(1, self.largest(shape)))
        return shape[0] * factor, shape[1] * factor, shape[2]

    def reshaped(self, power: int) -> Shape:
        """{i: T x RF, k: T / RF}, {k: T / RF, j: T x RF}."""
        long, short = int(self.T * 2.0**power), max(1, int(self.T * 2.0**-power))
        return long, long, short

    def clipped(self, shape: Shape) -> Shape:
        return min(shape[0], self.a.rows), min(shape[1], self.b.columns), min(shape[2], self.a.columns)


def measure(operand: str, T: int) -> dict[str, Any]:
    """Bytes of each kind, the shapes, and seconds of tiling, statistics and optimisation."""
    pair = Pair(operand, T)
    side = max(pair.a.rows, pair.b.columns, pair.a.columns)
    shapes = {"conservative": (T, T, T)}
    shapes["prescient"] = pair.grown(lambda n: (n, n, n), side)
    began = time.perf_counter()
    for matrix in (pair.a, pair.b):
        tile_grid(matrix, T, T)
    tiling = time.perf_counter() - began
    began = time.perf_counter()
    model = TrafficModel(tile_statistics(pair.a, T), tile_statistics(pair.b, T, shifts=T))
    statistics = time.perf_counter() - began - tiling
    began = time.perf_counter()
    best = min((pair.reshaped(p) for p in REORDER), key=lambda s: model.predict(pair.clipped(s), ORDER).total)
    optimisation = time.perf_counter() - began
    shapes["d2t2"] = pair.sized(best)
    sized = [pair.clipped(pair.sized(pair.reshaped(p))) for p in REORDER]
    shapes["sized"] = min(sized, key=lambda s: model.predict(s, ORDER).total)
    searched = []
    for power in REORDER:
        T_i, T_j, T_k = pair.reshaped(power)
        if pair.largest((T_i, T_j, T_k)) <= pair.words:
            searched.append(pair.grown(partial(enlarged, (T_i, T_j, T_k)), -(-side // T_i)))
    found = {kind: pair.exact(pair.clipped(shape)) for kind, shape in shapes.items()}
    each = {pair.clipped(shape): pair.exact(pair.clipped(shape)) for shape in {*searched, *shapes.values()}}
    shapes["searched"] = min(each, key=lambda s: each[s])
    found["searched"] = each[shapes["searched"]]
    return {
        "operand": operand,
        "bytes": found,
        "shapes": {kind: pair.clipped(shape) for kind, shape in shapes.items()},
        "seconds": {"tiling": tiling, "statistics": max(0.0, statistics), "optimisation": optimisation},
    }


def enlarged(shape: Shape, n: int) -> Shape:
    """``n`` tiles of the shape beside each other along i and j."""
    T_i, T_j, T_k = shape
    return n * T_i, n * T_j, T_k


def errors(operand: str, T: int) -> dict[str, list[float]]:
    """Predicted over exact traffic, less one, for RF 1/2 to 8 (figure 5): A times its transpose, a shifted one, a random one."""
    a = sp.csr_array(load(operand).matrix)
    transpose = canonical_csr(a.T, operand)
    shifted = canonical_csr(transpose[np.roll(np.arange(transpose.shape[0]), transpose.shape[0] // 3)], operand)
    even = sp.random_array(transpose.shape, density=a.nnz / (a.shape[0] * a.shape[1]), rng=np.random.default_rng(0))
    found: dict[str, list[float]] = {}
    for name, b in (("A^T", transpose), ("shifted A^T", shifted), ("random", canonical_csr(even, operand))):
        A, B = Pattern.of(a), Pattern.of(b)
        model = TrafficModel(tile_statistics(A, T), tile_statistics(B, T, shifts=T))
        found[name] = []
        for power in range(-1, 4):
            shape = (int(T * 2.0**power), int(T * 2.0**power), max(1, int(T * 2.0**-power)))
            found[name].append(model.predict(shape, ORDER).total / tiled_traffic(A, B, shape, ORDER).total - 1)
    return found


def table_of_errors(rows: dict[str, dict[str, list[float]]]) -> str:
    """Over all operands; RF 1 is the second of each list."""
    lines = ["| B | mean error | median | RF 1: mean | RF 1: within 15 % | worst |", "| --- " * 6 + "|"]
    for name in next(iter(rows.values())):
        found = np.abs([r[name] for r in rows.values()])
        at_one = found[:, 1]
        cells = (found.mean(), np.median(found), at_one.mean(), (at_one < 0.15).mean(), found.max())
        lines.append(f"| {name} | {' | '.join(f'{c:.0%}' for c in cells)} |")
    return "\n".join(lines)


def table(rows: list[dict[str, Any]]) -> str:
    """Traffic of each operand, and geometric means."""

    def mean(values: list[float]) -> float:
        return math.exp(sum(map(math.log, values)) / len(values))

    lines = [
        "| operand | conservative, MB | prescient | d2t2 | sized | searched | T_i x T_k: d2t2 | sized | searched |"
    ]
    lines.append("| --- " * 9 + "|")
    over = {kind: [r["bytes"][kind] / r["bytes"]["d2t2"] for r in rows] for kind in KINDS}
    for r in rows:
        cells = [Path(r["operand"]).stem, *(f"{r['bytes'][kind] / 1e6:.1f}" for kind in KINDS)]
        cells += [f"{r['shapes'][kind][0]} x {r['shapes'][kind][2]}" for kind in KINDS[2:]]
        lines.append(f"| {' | '.join(cells)} |")
    means = " | ".join(f"{mean(over[kind]):.2f}" for kind in KINDS)
    lines.append(f"| **over d2t2, geometric mean** | {means} | | | |")
    of_tiling = {
        name: mean([max(1e-9, r["seconds"][name]) / r["seconds"]["tiling"] for r in rows])
        for name in ("statistics", "optimisation")
    }
    lines.append("")
    lines.append(", ".join(f"{name} {share:.0%} of the time of tiling" for name, share in of_tiling.items()))
    return "\n".join(lines)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("operands", nargs="+", metavar="OPERAND")
    parser.add_argument("--tile", type=int, default=128)
    parser.add_argument("--json", type=Path, help="also write every row to this file")
    parser.add_argument(
        "--errors", action="store_true", help="how far predictions are from exact traffic, nothing else"
    )
    options = parser.parse_args()
    if options.errors:
        far: dict[str, dict[str, list[float]]] = {}
        for operand in options.operands:
            far[operand] = errors(operand, options.tile)
            said = {name: [f"{e:+.0%}" for e in each] for name, each in far[operand].items()}
            print(Path(operand).stem, said, file=sys.stderr)
        print(table_of_errors(far))
        return
    rows = []
    for operand in options.operands:
        rows.append(measure(operand, options.tile))
        print(operand, {k: round(v / 1e6, 1) for k, v in rows[-1]["bytes"].items()}, file=sys.stderr)
    print(table(rows))
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
