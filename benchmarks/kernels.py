"""The kernels of HYTE's section 8.2 under every tiling, in the model tier, every product checked against SciPy.

    python -m benchmarks.kernels [--config edge] [--features OPERAND...] [--graphs OPERAND...] [--json FILE] [--docs PAGE]

F^T x F and F x D for tall and thin matrices F (one that is wider than tall is taken transposed), D dense with ``--width``
columns; F^T x S for graphs S, F the starting nodes of ``--width`` searches (one step of a multi-source breadth-first
search). Records stay in the JSON file, line by line, and what is there is not run again.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.operand_sets import geometric_mean, name_of
from benchmarks.table_markers import PrintedTable, benchmark_parser
from gen.design import Design, load_design
from sw.cli.evaluate import Bench, evaluate, parse_tilings
from sw.operands import UserError, load

TILINGS = ("prescient", "swiftiles", "drt", "harp", "hyte", "hyte+tuning", "d2t2", "auto")
FEATURES = ("pyamg:local_disc_galerkin_diffusion", "uniform:20000:256:0.01")
GRAPHS = ("rmat:13:16",)
KERNELS = ("F^T x F", "F x D", "F^T x S")
MOST_TILES = 200_000


def pairs(features: Iterable[str], graphs: Iterable[str], width: int) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Kernel, operand, and what a bench of it is made from."""
    thin = {}
    for name in features:
        rows, columns = load(name).shape
        thin[name] = rows < columns
    for name, wide in thin.items():
        words = {"left": name, "right": None, "transpose_a": not wide, "transpose_b": wide}
        yield "F^T x F", name, words
    for name, wide in thin.items():
        words = {"left": name, "right": f"dense:K:{width}:values=real", "transpose_a": wide, "transpose_b": False}
        yield "F x D", name, words
    for name in graphs:
        words = {"left": f"sources:K:{width}", "right": name, "transpose_a": True, "transpose_b": False}
        yield "F^T x S", name, words


def measure(
    kernel: str, operand: str, words: dict[str, Any], wanted: list[str], design: Design
) -> list[dict[str, Any]]:
    """A row for each tiling that could be run; what failed is told and left out."""
    bench = Bench(**words, as_stored=False)
    found = []
    for tiling in parse_tilings(wanted):
        try:
            done = evaluate(bench, design, tiling, "model", seed=0, command="", most_tiles=MOST_TILES)
        except UserError as error:  # it does not fit the design, or cuts into too many tiles
            print(f"{kernel} {operand} {tiling.name}: {error}", file=sys.stderr)
            continue
        record = done.record
        if not record["correct"]:
            raise SystemExit(f"{kernel} {operand} {tiling.name}: differs from SciPy")
        scheme = record["scheme"]
        found.append(
            {
                "kernel": kernel,
                "operand": operand,
                "shape": bench.shape,
                "nnz": record["operands"]["A" if kernel != "F^T x S" else "B"]["nnz"],
                "macs": record["macs"],
                "tiling": tiling.name,
                "tile": [scheme["T_i"], scheme["T_j"], scheme["T_k"]],
                "order": scheme["order"],
                "tiles": len(done.scheme.tiles),
                "cycles": record["cycles"],
                "bytes": record["dram_bytes"]["total"],
                "schedule_seconds": record["seconds"]["schedule"],
            }
        )
        print(f"{kernel} {operand} {tiling.name}: {record['cycles']:,}", file=sys.stderr)
    return found


def table(rows: list[dict[str, Any]], kernel: str, tilings: Iterable[str]) -> str:
    """Cycles over those of static ``hyte``, as the paper's speedups are read, and the shape that ``hyte`` and ``auto`` take."""
    rows = [r for r in rows if r["kernel"] == kernel]
    by = {(r["operand"], r["tiling"]): r for r in rows}
    names = [name for name in tilings if any(r["tiling"] == name for r in rows)]
    lines = [f"| {kernel} | I x J x K | nonzeros | hyte, cycles | {' | '.join(names)} | T_i x T_j x T_k: hyte | auto |"]
    lines.append("| --- " * (len(names) + 6) + "|")
    over: dict[str, list[float]] = {name: [] for name in names}
    for operand in dict.fromkeys(r["operand"] for r in rows):
        best = by[operand, "hyte"]
        cells = []
        for name in names:
            if (operand, name) not in by:
                cells.append("")
                continue
            over[name].append(by[operand, name]["cycles"] / best["cycles"])
            cells.append(f"{over[name][-1]:.2f}")
        shape = " x ".join(f"{size:,}" for size in best["shape"])
        tiles = [" x ".join(f"{size:,}" for size in by[operand, name]["tile"]) for name in ("hyte", "auto")]
        lines.append(
            f"| {name_of(operand)} | {shape} | {best['nnz']:,} | {best['cycles']:,} | {' | '.join(cells)} | {' | '.join(tiles)} |"
        )
    means = " | ".join(f"{geometric_mean(over[name]):.2f}" for name in names)
    lines.append(f"| **{kernel}, geometric mean** | | | | {means} | | |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints a table for each kernel."""
    parser = benchmark_parser(__file__, __doc__)
    parser.add_argument("--features", nargs="*", default=FEATURES, metavar="OPERAND")
    parser.add_argument("--graphs", nargs="*", default=GRAPHS, metavar="OPERAND")
    parser.add_argument("--width", type=int, default=64, help="columns of D, and searches")
    parser.add_argument("--config", default="edge")
    parser.add_argument("--tiling", action="append", help="repeatable")
    parser.add_argument("--json", type=Path, help="records so far and new ones, one a line")
    options = parser.parse_args(arguments)
    printed = PrintedTable(parser, options)
    tilings = options.tiling or list(TILINGS)
    design = load_design(options.config, ["pe.value=fp32"])
    rows: list[dict[str, Any]] = []
    if options.json is not None and options.json.exists():
        rows = [json.loads(line) for line in options.json.read_text(encoding="utf-8").splitlines()]
    for kernel, operand, words in pairs(options.features, options.graphs, options.width):
        known = {r["tiling"] for r in rows if (r["kernel"], r["operand"]) == (kernel, operand)}
        wanted = [name for name in tilings if name not in known]
        if not wanted:
            continue
        new = measure(kernel, operand, words, wanted, design)
        rows += new
        if options.json is not None:
            with options.json.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(r) + "\n" for r in new)
    asked = {*options.features, *options.graphs}
    for kernel in KERNELS:
        found = [r for r in rows if r["kernel"] == kernel and r["operand"] in asked]
        if found:
            printed.line(table(found, kernel, tilings))
            printed.line()
    printed.write()


if __name__ == "__main__":
    main()
