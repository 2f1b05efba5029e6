"""How far HYTE's sampled estimates are from the truth: effectual MACs and nonzeros of tiled C. Paper: HYTE, 5.1 and 8.4.

    python -m benchmarks.estimates [--seeds 10] [--docs PAGE] [OPERAND]...

C = A x A, or A x A^T where A is not square. Samples as the paper's: a share sp = 1 / sqrt(N) of the rows of A and of the columns
of B, and the sk = sqrt(N) smallest hash values (for operands below 10^6 nonzeros at least 200). Figures are mean absolute
errors over seeds.
"""

import math
import sys
from collections.abc import Sequence

import numpy as np

from benchmarks.operand_sets import MIXED
from benchmarks.table_markers import PrintedTable, benchmark_parser
from sw.operands import load
from sw.stats.effmac import estimate_effmac, exact_effmac
from sw.stats.nnzc import exact_nnzc, sketch_counts
from sw.stats.pattern import Pattern, sample_coordinates

LEAST_SKETCH = 200


def errors(A: Pattern, B: Pattern, seeds: int) -> tuple[float, float, float]:
    """Mean absolute relative errors of effMAC, nnzC_K and nnzC_{K/128}."""
    share = 1 / math.sqrt(A.rows)
    size = max(LEAST_SKETCH, math.isqrt(A.rows))
    T_k = 1 << max(0, (A.columns - 1).bit_length() - 7)
    macs, whole, tiled = exact_effmac(A, B), exact_nnzc(A, B, A.columns), exact_nnzc(A, B, T_k)
    found = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        rows, columns = sample_coordinates(A.rows, share, rng), sample_coordinates(B.columns, share, rng)
        counts = sketch_counts(A, B, rows=rows, columns=columns, size=size, seed=seed)
        found.append(
            (estimate_effmac(A, B, rows, columns) / macs, counts.nnz_tk(A.columns) / whole, counts.nnz_tk(T_k) / tiled)
        )
    first, second, third = np.abs(np.array(found) - 1).mean(axis=0)
    return float(first), float(second), float(third)


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table."""
    parser = benchmark_parser(__file__, __doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("operands", nargs="*", default=MIXED, metavar="OPERAND")
    options = parser.parse_args(arguments)
    printed = PrintedTable(parser, options)
    printed.head(("operand", "rows", "nonzeros", "effMAC", "nnzC_K", "nnzC_K/128"))
    table = []
    for name in options.operands:
        known = load(name)
        other = known if known.shape[0] == known.shape[1] else known.transposed()
        A, B = Pattern.of(known.matrix), Pattern.of(other.matrix)
        table.append(errors(A, B, options.seeds))
        printed.row((known.name, f"{A.rows:,}", f"{A.nnz:,}", *(f"{e:.0%}" for e in table[-1])))
    printed.row(("**mean**", "", "", *(f"{e:.0%}" for e in np.mean(table, axis=0))))
    printed.write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
