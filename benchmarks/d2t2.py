"""D2T2 on the machine of its paper: exact traffic of its tiles against square ones, Tailors, DRT and searching everything.

    python -m benchmarks.d2t2 [--figure FIGURE]... [--errors] [--json FILE] [--write docs/papers.md] OPERAND...

C = A x A^T, traffic with values, coordinates and segments, buffers that hold a dense ``tile x tile`` tile (paper: 128 x 128,
128 KiB; sections 5 and 6). ``conservative``: such tiles. ``prescient``: the largest square ones of which all fit. ``d2t2``: RF
by the predicted traffic, then TileFactor. ``sized``: TileFactor for each RF, then the predicted traffic. ``searched``: every RF
grown as far as all tiles fit, the least exact traffic.
``drt``: boxes of micro-tiles of 32 x 32; ``repacked`` read as one tile each.
``tailors``: squares by Swiftiles at 10 %; ``waiting`` adds what streams again where both tiles overbook.

Figures: ``6c`` (order ikj, DRT), ``6b`` (order ijk, Tailors, and 6a), ``8`` (shapes and Corrs, and 9, the ablation), ``table 5``
(tiles of 32 x 32, Opal).
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.csf_machine.pair import REORDER, Pair, Shape
from benchmarks.csf_machine.rivals import drt_traffic, overbooked_bytes, swiftiles_side
from benchmarks.stand_ins import operand as load
from benchmarks.table_markers import stamp, write_table
from sw.cost.tile_traffic import TrafficModel
from sw.operands.operand import canonical_csr
from sw.stats.csf import WORD_BYTES, csf_words, tile_grid
from sw.stats.d2t2 import tile_statistics
from sw.stats.effmac import exact_effmac
from sw.stats.pattern import Pattern
from sw.stats.tiled_traffic import partial_products, tiled_traffic

ORDER = "ikj"
OPAL_TILE = 32
# Table 5 and what it says of each; N_biocarta (3.34) and tols2000 (1.60) are not at hand.
OPAL = {"bcsstm26": 1.56, "bwm2000": 3.08, "G33": 1.70, "progas": 2.51, "qiulp": 1.45, "west2021": 1.34}
# Section 6.7: below this sum of Corrs matrices want outer products.
LITTLE_REUSE = 1.6
# Up to this RF a tile counts as near a square.
SQUARE_ENOUGH = 16
# An operand of fewer words than this many buffers hold is nearly whole in one tile of any kind.
FEW_BUFFERS = 4
# ExTensor: bytes a cycle of memory, multipliers.
MEMORY, ELEMENTS = 68.25, 128
# What figure 6b counts besides: C as if each of its tiles left once, and the operands alone.
SQUARES, COUNTED = ("prescient", "tailors", "sized"), ("C once", "A and B")
Record = dict[str, Any]


def mean(values: Iterable[float]) -> float:
    """Geometric."""
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def predicted(pair: Pair, shapes: Iterable[Shape], model: TrafficModel) -> Shape:
    """The shape of the least predicted traffic, the first of equals."""
    return min(shapes, key=lambda shape: model.predict(shape, pair.order).total)


def chosen(pair: Pair) -> dict[str, Shape]:
    """Shapes of the static kinds."""
    shapes = [pair.reshaped(power) for power in REORDER]
    tried = [shape for power in REORDER if (shape := pair.searched(power)) is not None]
    found = {
        "conservative": pair.reshaped(0),
        "prescient": pair.prescient(),
        "d2t2": pair.sized(predicted(pair, shapes, pair.statistics)),
        "sized": predicted(pair, map(pair.sized, shapes), pair.statistics),
    }
    return found | {"searched": min([*tried, *found.values()], key=lambda shape: pair.exact(shape).total)}


def record(operand: str, pair: Pair, shapes: dict[str, Shape], more: Record) -> Record:
    found = {kind: pair.exact(shape).total for kind, shape in shapes.items()}
    tiles = pair.a.nnz * 2 / pair.words
    return {
        "operand": Path(operand).name.removesuffix(".npz"),
        "bytes": found | more,
        "shapes": shapes,
        "buffers": tiles,
    }


def gustavson(operand: str, T: int) -> Record:
    """Figure 6c, and seconds of tiling, statistics and optimisation (figure 7)."""
    pair = Pair(load(operand), T, "ikj")
    tile_grid(pair.a, T, T), pair.statistics  # compiled code is loaded before anything is timed
    began = time.process_time()
    for matrix in (pair.a, pair.b):
        tile_grid(matrix, T, T)
    tiling = time.process_time() - began
    began = time.process_time()
    model = TrafficModel(tile_statistics(pair.a, T), tile_statistics(pair.b, T, shifts=T))
    statistics = time.process_time() - began - tiling
    began = time.process_time()
    predicted(pair, [pair.reshaped(power) for power in REORDER], model)
    optimisation = time.process_time() - began
    more = {"drt": drt_traffic(pair), "repacked": drt_traffic(pair, repacked=True)}
    times = {"tiling": tiling, "statistics": max(0.0, statistics), "optimisation": optimisation}
    return record(operand, pair, chosen(pair), more) | {"seconds": times}


def inner(operand: str, T: int) -> Record:
    """Figures 6a and 6b."""
    pair = Pair(load(operand), T, "ijk")
    side = swiftiles_side(pair)
    shapes = chosen(pair) | {"tailors": pair.clipped((side, side, side))}
    waiting = pair.exact(shapes["tailors"]).total + overbooked_bytes(pair, shapes["tailors"])
    counted = {of: {kind: without_parts(pair, shapes[kind], of) for kind in SQUARES} for of in COUNTED}
    found = record(operand, pair, shapes, {"waiting": waiting})
    return found | {"macs": exact_effmac(pair.a, pair.b), "counted": counted}


def without_parts(pair: Pair, shape: Shape, counted: str) -> float:
    """Bytes of A and B, and of C as if a tile of it stayed on chip till its last k step, or none of it moved."""
    moved = pair.exact(shape)
    if counted == "A and B":
        return moved.A + moved.B
    whole = partial_products(pair.a, pair.b, *shape[:2], pair.extent[2])
    return moved.A + moved.B + WORD_BYTES * float(csf_words(whole.nonzeros, whole.fibers, whole.tiles))


def correlations(operand: str, T: int) -> Record:
    """Figures 8 and 9: shapes by the whole model, without Corrs, and by their sum alone; RF of the first and of the best."""
    pair = Pair(load(operand), T, "ikj")
    shapes = {pair.reshaped(power): power for power in reversed(REORDER)}
    corrs = float(pair.statistics.b.corrs.sum())
    with_corrs = predicted(pair, shapes, pair.statistics)
    without = predicted(pair, shapes, pair.uncorrelated)
    alone = pair.reshaped(max(REORDER) if corrs < LITTLE_REUSE else 0)
    best = min(shapes, key=lambda shape: pair.exact(shape).total)
    kinds = {"with Corrs": with_corrs, "without": without, "Corrs alone": alone}
    sized = {kind: pair.sized(shape) for kind, shape in kinds.items()}
    grown = [pair.sized(shape) for shape in shapes]
    sized["sized"] = predicted(pair, grown, pair.statistics)
    sized["sized without"] = predicted(pair, grown, pair.uncorrelated)
    found = record(operand, pair, sized, {})
    return found | {"corrs": corrs, "predicted RF": 2.0 ** shapes[with_corrs], "best RF": 2.0 ** shapes[best]}


def opal(operand: str, T: int) -> Record:
    """Table 5, for which the paper gives speedups; Opal's buffers hold tiles of 32 x 32."""
    pair = Pair(load(operand), OPAL_TILE, "ikj")
    return record(operand, pair, chosen(pair), {})


def cells(row: Iterable[Any]) -> str:
    return f"| {' | '.join(str(cell) for cell in row)} |"


def header(names: list[str]) -> list[str]:
    return [cells(names), cells(["---", *["---:"] * (len(names) - 1)])]


def over(rows: list[Record], kind: str, of: str = "d2t2") -> float:
    """How many times the bytes of ``of`` the kind moves, geometric mean."""
    return mean(row["bytes"][kind] / row["bytes"][of] for row in rows)


def shape_of(row: Record, kind: str) -> str:
    return f"{row['shapes'][kind][0]} x {row['shapes'][kind][2]}"


def traffic_table(rows: list[Record], kinds: list[str], paper: dict[str, str]) -> list[str]:
    """MB of each operand, the shapes, means over d2t2 and over sized, and the paper's."""
    lines = header(["operand, MB", *kinds, "T_i x T_k: prescient", "d2t2", "sized"])
    for row in rows:
        each = [f"{row['bytes'][kind] / 1e6:.2f}" for kind in kinds]
        lines.append(cells([row["operand"], *each, *(shape_of(row, k) for k in ("prescient", "d2t2", "sized"))]))
    many = [row for row in rows if row["buffers"] > FEW_BUFFERS]
    for of in ("d2t2", "sized", "prescient"):
        lines.append(cells([f"**over {of}**", *(f"{over(rows, kind, of):.2f}" for kind in kinds), "", "", ""]))
    if many:
        of_many = (f"{over(many, kind, 'sized'):.2f}" for kind in kinds)
        lines.append(cells([f"over sized, {len(many)} of more than {FEW_BUFFERS} buffers", *of_many, "", "", ""]))
    lines.append(cells(["the paper", *(paper.get(kind, "") for kind in kinds), "", "", ""]))
    return lines


def gustavson_table(rows: list[Record]) -> str:
    kinds = ["conservative", "prescient", "drt", "repacked", "d2t2", "sized", "searched"]
    paper = {"conservative": "4.17", "prescient": "1.83", "drt": "1.13", "d2t2": "1.00", "searched": "0.92 (won)"}
    tiling = {name: mean(max(1e-9, r["seconds"][name]) / r["seconds"]["tiling"] for r in rows) for name in
              ("statistics", "optimisation")}  # fmt: skip
    times = ", ".join(f"{name} {share:.0%} of the time of tiling" for name, share in tiling.items())
    return "\n".join([*traffic_table(rows, kinds, paper), "", f"{times} (figure 7; the paper: 9.3 %, 7.9 %)"])


def inner_table(rows: list[Record]) -> str:
    kinds = ["conservative", "prescient", "tailors", "waiting", "d2t2", "sized", "searched"]
    paper = {"prescient": "4.85", "tailors": "2.54", "waiting": "2.54", "d2t2": "1.00"}
    lines = traffic_table(rows, kinds, paper)

    def cycles(row: Record, kind: str) -> float:
        return float(max(row["bytes"][kind] / MEMORY, row["macs"] / ELEMENTS))

    traffic = [math.log(r["bytes"]["prescient"] / r["bytes"]["sized"]) for r in rows]
    speedup = [math.log(cycles(r, "prescient") / cycles(r, "sized")) for r in rows]
    bound = sum(r["macs"] / ELEMENTS > r["bytes"]["sized"] / MEMORY for r in rows)
    fast, less = math.exp(sum(speedup) / len(rows)), over(rows, "prescient", "sized")
    said = f"{fast:.2f} times as fast as prescient, with {less:.2f} times less traffic"
    linear = f", correlation {np.corrcoef(traffic, speedup)[0, 1]:.3f}" if len(rows) > 2 else ""
    lines += ["", *header([f"over sized, {len(rows)}; of more than {FEW_BUFFERS} buffers", *SQUARES[:-1]])]
    for of in COUNTED:
        each = (
            f"{mean(r['counted'][of][kind] / r['counted'][of]['sized'] for r in rows):.2f}; "
            f"{mean(r['counted'][of][kind] / r['counted'][of]['sized'] for r in rows if r['buffers'] > FEW_BUFFERS):.2f}"
            for kind in SQUARES[:-1]
        )
        lines.append(cells([of, *each]))
    return "\n".join(
        [*lines, "", f"sized is {said}{linear}; {bound} of {len(rows)} operands are bound by multipliers (figure 6a)"]
    )


def correlations_table(rows: list[Record]) -> str:
    lines = header(
        ["operand", "sum of Corrs", "RF predicted", "RF best", "without Corrs", "Corrs alone", "sized, without"]
    )
    compared = (("without", "with Corrs"), ("Corrs alone", "with Corrs"), ("sized without", "sized"))
    for row in sorted(rows, key=lambda row: float(row["corrs"])):
        relative = [f"{row['bytes'][of] / row['bytes'][kind]:.2f}" for kind, of in compared]
        shown = f"{row['corrs']:.2f}", f"{row['predicted RF']:g}", f"{row['best RF']:g}"
        lines.append(cells([row["operand"], *shown, *relative]))
    least = [min(r["bytes"][of] / r["bytes"][kind] for r in rows) for kind, of in compared]
    most = [max(r["bytes"][of] / r["bytes"][kind] for r in rows) for kind, of in compared]
    lines.append(cells(["**mean**", "", "", "", *(f"{over(rows, of, kind):.2f}" for kind, of in compared)]))
    lines.append(
        cells(["least, most", "", "", "", *(f"{low:.2f}, {high:.2f}" for low, high in zip(least, most, strict=True))])
    )
    lines.append(cells(["paper: least, most", "", "", "", "0.69, 1.10", "0.69, 1.10", ""]))
    right = [(row["best RF"] > SQUARE_ENOUGH) == (row["corrs"] < LITTLE_REUSE) for row in rows]
    said = f"{sum(right)} of {len(rows)} lie on the side of {LITTLE_REUSE} that the paper says (figure 8)"
    return "\n".join([*lines, "", f"{said}: RF above {SQUARE_ENOUGH} is best where the sum is less."])


def opal_table(rows: list[Record]) -> str:
    lines = header(["operand", "prescient over d2t2", "over sized", "paper, speedup", "ratio of sized"])
    for row in rows:
        won = [row["bytes"]["prescient"] / row["bytes"][kind] for kind in ("d2t2", "sized")]
        paper = OPAL.get(row["operand"])
        compared = [f"{paper:.2f}", f"{won[1] / paper:.2f}"] if paper else ["", ""]
        lines.append(cells([row["operand"], *(f"{w:.2f}" for w in won), *compared]))
    known = [row for row in rows if row["operand"] in OPAL]
    if known:
        means = [over(known, "prescient", kind) for kind in ("d2t2", "sized")]
        paper = mean(OPAL[row["operand"]] for row in known)
        shown = [*(f"{m:.2f}" for m in means), f"{paper:.2f}", f"{means[1] / paper:.2f}"]
        lines.append(cells([f"**mean**, {len(known)} of the paper", *shown]))
    return "\n".join(lines)


FIGURES: dict[str, tuple[Callable[[str, int], Record], Callable[[list[Record]], str]]] = {
    "6c": (gustavson, gustavson_table),
    "6b": (inner, inner_table),
    "8": (correlations, correlations_table),
    "table 5": (opal, opal_table),
}


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
        lines.append(f"| A x {name} | {' | '.join(f'{c:.0%}' for c in cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("operands", nargs="+", metavar="OPERAND")
    parser.add_argument("--figure", action="append", choices=list(FIGURES), help="repeatable; all of them without it")
    parser.add_argument("--tile", type=int, default=128, help="side of the dense tile that a buffer holds")
    parser.add_argument("--json", type=Path, help="also write every row to this file")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the tables between their markers")
    parser.add_argument(
        "--errors", action="store_true", help="how far predictions are from exact traffic, nothing else"
    )
    options = parser.parse_args()
    if options.tile < 1:
        parser.error("--tile must be at least 1")
    if options.errors:
        far: dict[str, dict[str, list[float]]] = {}
        for operand in options.operands:
            far[operand] = errors(operand, options.tile)
            said = {name: [f"{e:+.0%}" for e in each] for name, each in far[operand].items()}
            print(Path(operand).stem, said, file=sys.stderr)
        text = table_of_errors(far)
        print(text)
        if options.write is not None:
            command = "python -m benchmarks.d2t2 --errors OPERAND..."
            write_table(options.write, "D2T2, errors", [*text.split("\n"), "", stamp(command)])
        return
    everything = {}
    for figure in options.figure or FIGURES:
        measure, table = FIGURES[figure]
        rows = []
        for operand in options.operands:
            rows.append(measure(operand, options.tile))
            print(figure, operand, {k: round(v / 1e6, 1) for k, v in rows[-1]["bytes"].items()}, file=sys.stderr)
        everything[figure] = rows
        print(f"{figure}\n\n{table(rows)}\n")
        if options.write is not None:
            command = f'python -m benchmarks.d2t2 --figure "{figure}"'
            write_table(options.write, f"D2T2, {figure}", [*table(rows).split("\n"), "", stamp(command)])
    if options.json is not None:
        options.json.write_text(json.dumps(everything, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
