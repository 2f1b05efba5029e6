"""Figure 4 of MINT: bits of a random matrix in each format beside those of CSR, by density and by a growing side.

    python -m benchmarks.formats [--plot docs/formats.svg] [--layouts] [--docs PAGE]

Prints the smallest format at the paper's four densities (11k x 11k, fp32). ``--plot`` writes the curves: (a) 11k x 11k over
the density with values of 32, 16 and 8 bits, (b) 1k x K over K with 16 bits at a density of 0.01 %. The paper compares the
energy of moving a matrix, which is proportional to its bits. Its text does not tell the density of (b). ``--layouts`` prints
the diagrams of docs/formats.md.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.table_markers import PrintedTable, benchmark_parser
from sw.formats.compactness import COMPARED, expected_bits, smallest
from sw.formats.layout_text import EXAMPLES, layout_text
from sw.formats.storage import storage_format, storage_names
from sw.report.curves import Curve, Panel, curves

SIDE = 11_000
STARS = (1e-8, 0.1, 0.5, 1.0)
STEPS = 8
HEIGHT_B, DENSITY_B = 1_000, 1e-4
SHOWN = (0.1, 100.0)


def over_density(value: str) -> Panel:
    """Figure 4a: bits over those of CSR, density in percent."""
    densities = [10 ** (n / STEPS) for n in range(-8 * STEPS, 1)]
    lines = []
    for name in COMPARED:
        points = []
        for density in densities:
            csr, own = (expected_bits(one, (SIDE, SIDE), density, value) for one in ("csr", name))
            points.append((100 * density, own / csr))
        lines.append(Curve(name=name, points=points))
    title = f"(a) 11k x 11k, {value}"
    stars = [100 * density for density in STARS]
    return Panel(title=title, x_name="density, %", y_name="bits / csr", curves=lines, y_range=SHOWN, marks=stars)


def over_columns() -> Panel:
    """Figure 4b: bits over those of CSR, K from 1k to 1M."""
    sides = [round(10 ** (3 + n / STEPS)) for n in range(3 * STEPS + 1)]
    lines = []
    for name in COMPARED:
        points = []
        for side in sides:
            csr, own = (expected_bits(one, (HEIGHT_B, side), DENSITY_B, "bf16") for one in ("csr", name))
            points.append((float(side), own / csr))
        lines.append(Curve(name=name, points=points))
    title = f"(b) 1k x K, bf16, density {100 * DENSITY_B:g} %"
    return Panel(title=title, x_name="K", y_name="bits / csr", curves=lines, y_range=SHOWN)


def layouts() -> str:
    """The diagram of every format, for each order of tensors that it holds."""
    found = []
    for name in storage_names():
        form = storage_format(name)
        order = min(form.orders)
        found.append(f"{name}\n{layout_text(form, EXAMPLES[order])}")
    return "\n\n\n".join(found)


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table."""
    parser = benchmark_parser(__file__, __doc__)
    parser.add_argument("--plot", type=Path, help="an SVG file to write")
    parser.add_argument("--layouts", action="store_true", help="print the diagrams of docs/formats.md instead")
    options = parser.parse_args(arguments)
    if options.layouts:
        print(layouts())
        return 0
    printed = PrintedTable(parser, options)
    printed.head(("density", *COMPARED, "smallest"))
    for density in STARS:
        bits = [f"{expected_bits(name, (SIDE, SIDE), density, 'fp32'):,}" for name in COMPARED]
        printed.row((f"{100 * density:g} %", *bits, smallest((SIDE, SIDE), density, "fp32")))
    printed.write()
    if options.plot is not None:
        panels = [*(over_density(value) for value in ("fp32", "bf16", "int8")), over_columns()]
        options.plot.write_text(curves(panels), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
