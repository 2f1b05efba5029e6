"""The model tier against the hardware on small matrices of extreme shape that no constant of the model was chosen on.

    python -m benchmarks.shapes [--unseen] [--design edge] [--set SECTION.FIELD=VALUE] [--docs PAGE] [SHAPE...]

Rules of the model were found on some of them; with ``--unseen`` on others, on which none was. C = A x A under ``auto``, ``fp32``.
Prints a row for each shape; exits with 1 where the traffic of the two differs.
"""

import sys
from collections.abc import Callable, Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from benchmarks.table_markers import PrintedTable, benchmark_parser
from gen.design import load_design
from sw.model.judge import judge
from sw.model.machine import run_model
from sw.operands import to_csr
from sw.operands.operand import Operand, canonical_csr
from sw.plan.plan import plan
from sw.policies.registry import schedule
from sw.runtime.simulation.engine import run_rtl

SEED = 11
Indices = NDArray[np.int64]


def matrix(rows: Indices, columns: Indices, size: int) -> sp.csr_array:
    """Ones at these places; a place that comes twice is one nonzero."""
    found = sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=(size, size))
    found.data[:] = 1.0
    return found


def scattered(size: int, nonzeros: int) -> sp.csr_array:
    """Places drawn evenly."""
    rng = np.random.default_rng(SEED)
    return matrix(rng.integers(0, size, nonzeros), rng.integers(0, size, nonzeros), size)


def cross(size: int) -> sp.csr_array:
    """The diagonal, one full row and one full column."""
    every, first = np.arange(size), np.zeros(size, np.int64)
    return matrix(np.r_[every, first, every], np.r_[every, every, first], size)


def power_law(scale: int, nonzeros: int) -> sp.csr_array:
    """R-MAT with the shares of Graph500."""
    rng = np.random.default_rng(SEED)
    rows, columns = np.zeros(nonzeros, np.int64), np.zeros(nonzeros, np.int64)
    for _ in range(scale):
        quadrant = rng.choice(4, size=nonzeros, p=[0.57, 0.19, 0.19, 0.05])
        rows, columns = 2 * rows + quadrant // 2, 2 * columns + quadrant % 2
    return matrix(rows, columns, 1 << scale)


def blocks(count: int, side: int, gap: int) -> sp.csr_array:
    """Full blocks on the diagonal with empty rows between them."""
    row, column = (part.ravel() for part in np.meshgrid(np.arange(side), np.arange(side), indexing="ij"))
    begins = np.repeat(np.arange(count) * (side + gap), side * side)
    return matrix(begins + np.tile(row, count), begins + np.tile(column, count), count * (side + gap))


def band(size: int, half: int) -> sp.csr_array:
    """All diagonals up to ``half`` away from the main one."""
    rows = np.repeat(np.arange(size), 2 * half + 1)
    columns = rows + np.tile(np.arange(-half, half + 1), size)
    inside = (columns >= 0) & (columns < size)
    return matrix(rows[inside], columns[inside], size)


SHAPES: dict[str, Callable[[], sp.csr_array]] = {
    "3,000 rows, 7,700 scattered nonzeros": lambda: scattered(3000, 7700),
    "800 rows, 7,200 scattered nonzeros": lambda: scattered(800, 7200),
    "5,000 rows, 9,000 scattered nonzeros": lambda: scattered(5000, 9000),
    "cross of 900 rows": lambda: cross(900),
    "cross of 400 rows": lambda: cross(400),
    "R-MAT, 2,048 rows, 12,000 nonzeros": lambda: power_law(11, 12_000),
    "R-MAT, 512 rows, 9,000 nonzeros": lambda: power_law(9, 9_000),
    "R-MAT, 8,192 rows, 16,000 nonzeros": lambda: power_law(13, 16_000),
    "30 blocks of 25, 15 empty rows between": lambda: blocks(30, 25, 15),
    "60 blocks of 10, 10 empty rows between": lambda: blocks(60, 10, 10),
    "150 blocks of 6, 3 empty rows between": lambda: blocks(150, 6, 3),
    "5 blocks of 80, 40 empty rows between": lambda: blocks(5, 80, 40),
    "full, 120 rows": lambda: blocks(1, 120, 0),
    "band of 21, 1,500 rows": lambda: band(1500, 10),
    "band of 3, 6,000 rows": lambda: band(6000, 1),
    "band of 61, 600 rows": lambda: band(600, 30),
    "400 rows, 9,500 scattered nonzeros": lambda: scattered(400, 9500),
    "rows of Pareto's lengths, 900": lambda: pareto(900, 5),
    "7,000 rows, 8,000 scattered nonzeros": lambda: scattered(7000, 8000),
    "arrow of 2 rows and columns, 500 rows": lambda: arrow(500, 2),
}


def pareto(size: int, seed: int) -> sp.csr_array:
    """Few rows are long, most have some nonzeros: their numbers are of a Pareto distribution."""
    rng = np.random.default_rng(seed)
    lengths = [int(min(size, 1 + 2 * rng.pareto(1.1))) for _ in range(size)]
    columns = [rng.choice(size, length, replace=False) for length in lengths]
    return matrix(np.repeat(np.arange(size), lengths), np.concatenate(columns), size)


def arrow(size: int, width: int) -> sp.csr_array:
    """The diagonal, and the first ``width`` rows and columns."""
    full, own = np.repeat(np.arange(width), size), np.tile(np.arange(size), width)
    diagonal = np.arange(size)
    return matrix(np.concatenate([diagonal, full, own]), np.concatenate([diagonal, own, full]), size)


def mesh(side: int) -> sp.csr_array:
    """A square of points, each with its four neighbours."""
    line = sp.diags_array([np.ones(side - 1), np.ones(side), np.ones(side - 1)], offsets=[-1, 0, 1])
    neighbours = sp.diags_array([np.ones(side - 1), np.ones(side - 1)], offsets=[-1, 1])
    found = sp.coo_array(sp.kron(sp.eye_array(side), line) + sp.kron(neighbours, sp.eye_array(side)))
    return matrix(found.row, found.col, side * side)


UNSEEN: dict[str, Callable[[], sp.csr_array]] = {
    "1,500 rows, 4,300 scattered nonzeros": lambda: scattered(1500, 4300),
    "6,300 rows, 7,100 scattered nonzeros": lambda: scattered(6300, 7100),
    "300 rows, 6,000 scattered nonzeros": lambda: scattered(300, 6000),
    "cross of 250 rows": lambda: cross(250),
    "R-MAT, 1,024 rows, 5,000 nonzeros": lambda: power_law(10, 5_000),
    "R-MAT, 4,096 rows, 9,000 nonzeros": lambda: power_law(12, 9_000),
    "20 blocks of 14, 6 empty rows between": lambda: blocks(20, 14, 6),
    "100 blocks of 8": lambda: blocks(100, 8, 0),
    "band of 9, 2,500 rows": lambda: band(2500, 4),
    "band of 31, 500 rows": lambda: band(500, 15),
    "rows of Pareto's lengths, 1,300": lambda: pareto(1300, 8),
    "rows of Pareto's lengths, 2,500": lambda: pareto(2500, 6),
    "arrow of 3 rows and columns, 420 rows": lambda: arrow(420, 3),
    "mesh of 40 x 40 points": lambda: mesh(40),
    "mesh of 70 x 70 points": lambda: mesh(70),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table."""
    parser = benchmark_parser(__file__, __doc__)
    parser.add_argument("shapes", nargs="*", metavar="SHAPE", help="beginnings of names; default: all")
    parser.add_argument("--unseen", action="store_true", help="those on which no rule of the model was found")
    parser.add_argument("--design", default="edge")
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.FIELD=VALUE", help="changes the design")
    options = parser.parse_args(arguments)
    printed = PrintedTable(parser, options)
    design = load_design(options.design, ["pe.value=fp32", *options.set])
    apart: list[float] = []
    same = True
    printed.head(("shape", "MACs", "cycles", "model"))
    for name, make in (UNSEEN if options.unseen else SHAPES).items():
        if options.shapes and not name.startswith(tuple(options.shapes)):
            continue
        operand = Operand(name=name, source=name, matrix=canonical_csr(make(), name))
        values = to_csr(operand, design.pe.value)
        scheme = schedule("auto", operand.matrix, operand.matrix, design, judge=judge(design))
        planned = plan(scheme, values, values, design)
        found = run_rtl(design, planned)
        if found.error is not None:
            raise RuntimeError(f"{name}: {found.error}")
        model = run_model(design, planned)
        cycles = found.counters["cycles"]
        apart.append(model.counters["cycles"] / cycles - 1)
        same &= found.dram_bytes == model.dram_bytes
        printed.row((name, f"{model.counters['macs']:,}", f"{cycles:,}", f"{apart[-1]:+.1%}"))
    if apart:
        printed.line()
        printed.line(f"The model is {np.mean(np.abs(apart)):.1%} off in the mean, {max(map(abs, apart)):.1%} at worst.")
    if same:
        printed.write()
    return int(not same)


if __name__ == "__main__":
    sys.exit(main())
