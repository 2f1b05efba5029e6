"""The model against the RTL where rows have more nonzeros than a job takes leaves: one cause at a time.

    python -m benchmarks.long_rows [--design tiny] [--pes 1 2 4] [--latency 100 400] [--docs PAGE]

A has 200 rows, whose nonzeros are given in turn, and 60 columns; every row of B has as many nonzeros as the table says. One tile.
"""

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from benchmarks.table_markers import PrintedTable, benchmark_parser
from gen.design import Design, load_design
from sw.model.machine import run_model
from sw.operands import Operand, to_csr
from sw.operands.operand import canonical_csr
from sw.plan.plan import plan
from sw.runtime.simulation.engine import run_rtl
from sw.scheme.scheme import Scheme
from sw.scheme.shares import default_partition
from sw.scheme.terms import ONLY_B

ROWS, INNER, COLUMNS = 200, 60, 300
# Nonzeros of A's rows, in turn, and of each row of B.
CASES = (
    ((4,), 2),
    ((4,), 6),
    ((4,), 12),
    ((4,), 24),
    ((5,), 1),
    ((5,), 6),
    ((8,), 6),
    ((8,), 12),
    ((16,), 1),
    ((16,), 6),
    ((16,), 12),
    ((17,), 6),
    ((24,), 6),
    ((40,), 6),
    ((2, 8), 2),
    ((2, 8), 6),
    ((2, 2, 2, 8), 6),
    ((3, 5), 6),
    ((1, 16), 6),
)


def matrix(counts: Sequence[int], columns: int, rng: np.random.Generator) -> sp.csr_array:
    """Rows of so many nonzeros at columns drawn without a pattern."""
    places = np.concatenate([np.sort(rng.choice(columns, count, replace=False)) for count in counts])
    pointers = np.concatenate([[0], np.cumsum(counts)])
    return sp.csr_array((np.ones(len(places)), places, pointers), shape=(len(counts), columns))


def cycles(design: Design, lengths: tuple[int, ...], fiber: int) -> tuple[int, int]:
    """Of the RTL and of the model."""
    rng = np.random.default_rng(0)
    pair = matrix(np.resize(lengths, ROWS).tolist(), INNER, rng), matrix([fiber] * INNER, COLUMNS, rng)
    a, b = (to_csr(Operand(name="x", source="x", matrix=canonical_csr(one, "x")), design.pe.value) for one in pair)
    buffer_bytes, fifo_bytes = default_partition(design, partial_rows=False)
    scheme = Scheme(
        policy="one tile",
        order="jik",
        T_i=ROWS,
        T_j=COLUMNS,
        T_k=INNER,
        buffer_bytes=buffer_bytes,
        fifo_bytes=fifo_bytes,
        mode=ONLY_B,
    )
    planned = plan(scheme, a, b, design)
    found, model = run_rtl(design, planned), run_model(design, planned)
    if found.error is not None or found.dram_bytes != model.dram_bytes:
        raise RuntimeError(f"{lengths}, {fiber}: {found.error or 'bytes differ from the model'}")
    return found.counters["cycles"], model.counters["cycles"]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = benchmark_parser(__file__, __doc__)
    parser.add_argument("--design", default="tiny")
    parser.add_argument("--pes", nargs="+", type=int, default=[1, 2, 4])
    parser.add_argument("--latency", nargs="+", type=int, default=[100, 400], help="nanoseconds")
    parser.add_argument("--rows", type=int, nargs="+", help="numbers of the table's rows, from 0; default: all")
    options = parser.parse_args(arguments)
    printed = PrintedTable(parser, options)
    machines = [(pes, latency) for pes in options.pes for latency in options.latency]
    head = [f"{pes} PE{'s' * (pes > 1)}, {latency} ns" for pes, latency in machines]
    printed.head(("nonzeros of A's rows", "of B's", *head))
    errors = []
    for lengths, fiber in [CASES[row] for row in options.rows] if options.rows else CASES:
        cells = []
        for pes, latency in machines:
            design = load_design(options.design, [f"pe.count={pes}", f"dram.latency_ns={latency}"])
            found, said = cycles(design, lengths, fiber)
            errors.append(abs(said / found - 1))
            cells.append(f"{found:,}, {said / found - 1:+.1%}")
        printed.row((", ".join(map(str, lengths)), str(fiber), *cells))
    printed.line()
    printed.line(
        f"The model is {np.mean(errors):.1%} off in the mean of {len(errors)} runs, {max(errors):.1%} at worst."
    )
    printed.write()


if __name__ == "__main__":
    main()
