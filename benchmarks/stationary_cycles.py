"""How far the model tier of weight-stationary designs is from the hardware, over random products.

    python -m benchmarks.stationary_cycles [--config flex_tiny] [--products 40] [--seed 1] [--list] [--docs PAGE]

Shapes, densities, tile sides along i and k, and orders are drawn; j is cut by the number of PEs. Each product runs in the
compiled hardware, where every value is checked. Errors are the model's cycles over the hardware's, less one, for columns that
fit the PEs' buffers and for those that overflow them, k whole and cut.
"""

import random
import sys
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

import fiberloom
from benchmarks.table_markers import PrintedTable, benchmark_parser
from gen.design import load_design

DENSITIES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8)


def operand(rng: random.Random, rows: int, columns: int) -> Any:
    numbers = np.random.default_rng(rng.getrandbits(32))
    drawn = sp.random_array((rows, columns), density=rng.choice(DENSITIES), rng=numbers, format="csr")
    drawn.data = numbers.integers(1, 100, drawn.nnz).astype(np.int64)
    return sp.csr_array(drawn)


def errors(config: str, products: int, seed: int, *, listed: bool) -> dict[str, list[float]]:
    """By group of products."""
    design, rng = load_design(config), random.Random(seed)
    found = defaultdict(list)
    for _ in range(products):
        i, k, j = rng.choice([15, 40, 90, 200, 400]), rng.choice([8, 30, 60, 120, 200]), rng.choice([1, 2, 4, 7, 12])
        a, b = operand(rng, i, k), operand(rng, k, j)
        sides = {"T_i": rng.choice([i, i, -(-i // 3)]), "T_j": min(j, design.pe.count)}
        sides["T_k"] = rng.choice([k, k, max(4, k // 2), max(4, k // 4)])
        order = rng.choice(["ijk", "ikj", "jik", "jki", "kij", "kji"])
        if not a.nnz or not b.nnz:
            continue
        record = fiberloom.run(a, b, config=config, value="int32", order=order, **sides).record
        if not record["correct"]:
            raise SystemExit(f"{i} x {j} x {k}, {sides}, {order}: differs from the golden product")
        error = record["model"]["cycles"] / record["cycles"] - 1
        overflows = record["counters"]["pe_stall_input"] > 0
        group = f"{'overflow' if overflows else 'fit'}, k {'whole' if sides['T_k'] >= k else 'cut'}"
        found[group].append(error)
        if listed:
            print(
                f"{error:+.1%} {group}: {i} x {j} x {k}, {sides}, {order}, {record['cycles']:,}",
                file=sys.stderr,
                flush=True,
            )
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    parser = benchmark_parser(__file__, __doc__)
    parser.add_argument("--config", default="flex_tiny")
    parser.add_argument("--products", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--list", action="store_true", help="each product")
    options = parser.parse_args(arguments)
    printed = PrintedTable(parser, options)
    found = errors(options.config, options.products, options.seed, listed=options.list)
    found["all"] = [error for group in list(found.values()) for error in group]
    printed.head(("columns", "products", "mean", "worst"))
    for group, own in sorted(found.items()):
        sizes = np.abs(own)
        printed.row((group, str(len(own)), f"{sizes.mean():.1%}", f"{sizes.max():.1%}"))
    printed.write()


if __name__ == "__main__":
    main()
