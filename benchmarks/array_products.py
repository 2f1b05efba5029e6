"""Products of weight-stationary PEs on the hardware and in the model tier.

    python -m benchmarks.array_products [--config flex] [--docs PAGE] [A,B ...]

C = A x B for each A,B with ``fp32`` values and the tilings of ``auto``, A on the PEs' bus in CSR, COO and Dense. Each product
runs on the compiled hardware, every value checked. The bus waits while nonzeros of columns that overflow their PEs come once
more.
"""

import sys
from collections.abc import Sequence

from benchmarks.table_markers import PrintedTable, benchmark_parser
from gen.design import load_design
from sw.cli.evaluate import Bench, Tiling, evaluate

PAIRS = (
    "uniform:300:300:0.02:seed=1,uniform:300:64:0.02:seed=2",
    "uniform:64:256:0.3:seed=3,uniform:256:32:0.5:seed=4",
    "uniform:500:400:0.1:seed=5,uniform:400:48:0.1:seed=6",
    "dense:48:96,dense:96:24",
    "dense:48:64,dense:64:24",
)
HEAD = ("A x B", "MACs", "A on the bus", "cycles", "the bus waits", "MACs a cycle", "model", "model over it")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = benchmark_parser(__file__, __doc__)
    parser.add_argument("operands", nargs="*", default=list(PAIRS), metavar="A,B", help="products")
    parser.add_argument("--config", default="flex", help="a design with weight-stationary PEs")
    options = parser.parse_args(arguments)
    printed = PrintedTable(parser, options)
    printed.head(HEAD)
    for pair in options.operands:
        left, _, right = pair.partition(",")
        bench = Bench(left, right or None, transpose_a=False, transpose_b=False, as_stored=False)
        for number, acf in enumerate(("csr", "coo", "dense")):
            design = load_design(options.config, ["pe.value=fp32", f"pe.acf_a={acf}"])
            run, model = (
                evaluate(bench, design, Tiling(name="auto", policy="auto"), engine, seed=0, command="").record
                for engine in ("rtl", "model")
            )
            if not (run["correct"] and model["correct"]):
                raise SystemExit(f"{pair}: differs from SciPy")
            name = f"{left} x {right or left}" if not number else ""
            macs = "" if number else f"{run['macs']:,}"
            waits = f"{run['counters']['pe_stall_input']:,}"
            speed = f"{run['macs'] / run['cycles']:.2f}"
            off = f"{model['cycles'] / run['cycles'] - 1:+.1%}"
            printed.row((name, macs, acf.upper(), f"{run['cycles']:,}", waits, speed, f"{model['cycles']:,}", off))
    printed.write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
