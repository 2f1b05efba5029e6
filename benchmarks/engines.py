"""Both intra-tile engines with as many MACs, in the model tier: a table of products, and cycles over density.

    fiberloom synth --config edge --target ecp5 --out build/area-edge
    fiberloom synth --config flex_edge --target ecp5 --out build/area-flex_edge
    python -m benchmarks.engines [--docs PAGE] pairs [--config edge] [--areas build/area-edge build/area-flex_edge] [A,B ...]
    python -m benchmarks.engines [--docs PAGE] densities [--size 2000] [--plot engines.svg]

``pairs``: C = A x B for each A,B, A alone for A x A; where none is named, real matrices times themselves and layers of a network
(512 x 512 weights, dense, pruned and N:M, times 64 activations). ``--areas``: folders of ``fiberloom synth`` for the design and
its counterpart, for cycles by LUT. ``densities``: uniform A and B of one density, and B dense. Tilings are those of ``auto``, so
that the densest products take minutes each.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.table_markers import PrintedTable, benchmark_parser
from gen.design import Design, counterpart, load_design
from sw.cli.evaluate import Bench, Tiling, evaluate
from sw.cli.memory_formats import ACCELERATORS_OWN
from sw.formats.csr import Csr
from sw.model.judge import judge
from sw.model.tier import simulate
from sw.plan.plan import plan
from sw.policies.registry import schedule
from sw.report.curves import Curve, Panel, curves

PAIRS = (
    "pyamg:airfoil",
    "pyamg:bar",
    "pyamg:local_disc_galerkin_diffusion",
    "mycielskian:9",
    "dense:512:512,dense:512:64",
    "uniform:512:512:0.5,dense:512:64",
    "uniform:512:512:0.1,dense:512:64",
    "uniform:512:512:0.01,dense:512:64",
    "nm:512:512:2:4,dense:512:64",
    "nm:512:512:1:4,dense:512:64",
)
# In percent.
DENSITIES = (0.0001, 0.001, 0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
SHAPES = ("A and B of the density", "B dense, 64 columns")
AUTO = Tiling(name="auto", policy="auto")


def both(config: str) -> tuple[Design, Design]:
    """The design with ``fp32`` values, and its counterpart."""
    design = load_design(config, ["pe.value=fp32"])
    return design, counterpart(design)


def pairs(designs: Sequence[Design], operands: Sequence[str], luts: Sequence[int]) -> str:
    """The table, in Markdown; each product is checked against SciPy."""
    head = "| A x B | MACs | engine | cycles | PE use | MACs a cycle | bytes | energy, uJ |"
    lines = [head + (" MACs a cycle, by 10^6 LUT |" if luts else ""), "| --- | ---: | --- " + "| ---: " * 5 + "|"]
    if luts:
        lines[1] += " ---: |"
    for pair in operands:
        left, _, right = pair.partition(",")
        bench = Bench(left, right or None, transpose_a=False, transpose_b=False, as_stored=False)
        for number, design in enumerate(designs):
            record = evaluate(bench, design, AUTO, "model", seed=0, command="").record
            if not record["correct"]:
                raise SystemExit(f"{pair}: differs from SciPy")
            speed = record["macs"] / record["cycles"]
            name = f"{left} x {right or left}" if not number else ""
            lines.append(
                f"| {name} | {'' if number else format(record['macs'], ',')} | `{design.pe.dataflow}` | {record['cycles']:,} | "
                f"{record['pe_utilization']:.1%} | {speed:.2f} | {record['dram_bytes']['total']:,} | "
                f"{record['energy_pJ']['total'] / 1e6:,.1f} |"
                + (f" {1e6 * speed / luts[number]:.2f} |" if luts else "")
            )
    return "\n".join(lines)


def cycles(design: Design, a: Csr, b: Csr) -> int:
    """Of the model tier, with the tiling of ``auto``."""
    matrices = a.to_scipy(), b.to_scipy()
    scheme = schedule("auto", *matrices, design, seed=0, judge=judge(design), passes=None)
    found = simulate(design, plan(scheme, a, b, design)).cycles
    assert found is not None
    return found


def densities(designs: Sequence[Design], size: int, percents: Sequence[float]) -> list[dict[str, Any]]:
    """Cycles of both engines for each shape and density; densities that give no nonzero are left out."""
    found = []
    for shape in SHAPES:
        for percent in percents:
            if percent / 100 * size * size < 1:
                continue
            left, right = (f"uniform:{size}:{size}:{percent / 100:.10g}:seed={seed}" for seed in (1, 2))
            right = right if shape == SHAPES[0] else f"dense:{size}:64"
            bench = Bench(left, right, transpose_a=False, transpose_b=False, as_stored=False)
            _, a, b = bench.stored("fp32", ACCELERATORS_OWN)
            row: dict[str, Any] = {"shape": shape, "percent": percent, "nnz": a.nnz}
            for design in designs:
                row[design.pe.dataflow] = cycles(design, a, b)
            print(json.dumps(row), file=sys.stderr, flush=True)
            found.append(row)
    return found


def density_table(rows: Sequence[dict[str, Any]], dataflows: Sequence[str]) -> str:
    """Cycles by shape and density, and those of the second engine over the first."""
    first, second = dataflows
    lines = [f"| 2 operands | density, % | `{first}` | `{second}` | over it |", "| --- | ---: | ---: | ---: | ---: |"]
    for row in rows:
        lines.append(
            f"| {row['shape']} | {row['percent']:g} | {row[first]:,} | {row[second]:,} | {row[second] / row[first]:.2f} |"
        )
    return "\n".join(lines)


def density_plot(rows: Sequence[dict[str, Any]], dataflows: Sequence[str]) -> str:
    """Cycles over density, a panel for each shape, as an SVG document."""
    most = max(row[name] for row in rows for name in dataflows)
    least = min(row[name] for row in rows for name in dataflows)
    panels = [
        Panel(
            title=shape,
            x_name="density, %",
            y_name="cycles",
            curves=[
                Curve(name=name, points=[(row["percent"], row[name]) for row in rows if row["shape"] == shape])
                for name in dataflows
            ],
            y_range=(least / 2, most * 2),
        )
        for shape in dict.fromkeys(row["shape"] for row in rows)
    ]
    return curves(panels)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = benchmark_parser(__file__, __doc__)
    parser.add_argument("--config", default="edge")
    parts = parser.add_subparsers(dest="part", required=True)
    one = parts.add_parser("pairs")
    one.add_argument("operands", nargs="*", metavar="A[,B]")
    one.add_argument("--areas", nargs=2, type=Path, metavar="DIR", help="of `fiberloom synth`")
    other = parts.add_parser("densities")
    other.add_argument("--size", type=int, default=2000)
    other.add_argument("--percent", type=float, nargs="*", default=DENSITIES)
    other.add_argument("--plot", type=Path, metavar="FILE.svg")
    options = parser.parse_args(arguments)
    printed = PrintedTable(parser, options)
    designs = both(options.config)
    dataflows = [design.pe.dataflow for design in designs]
    if options.part == "pairs":
        records = [json.loads((path / "synth.json").read_text(encoding="utf-8")) for path in options.areas or ()]
        luts = [record["modules"][0]["luts"] for record in records]
        printed.line(pairs(designs, options.operands or PAIRS, luts))
        if luts:
            counts = ", ".join(f"`{name}` {count:,}" for name, count in zip(dataflows, luts, strict=True))
            printed.line(f"\nLUT4 of the whole designs on an ECP5: {counts}.")
        printed.write()
        return 0
    rows = densities(designs, options.size, options.percent)
    printed.line(density_table(rows, dataflows))
    printed.write()
    if options.plot is not None:
        options.plot.write_text(density_plot(rows, dataflows), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
