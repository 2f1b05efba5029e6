"""How far the model tier is from the hardware: every order and several designs on real matrices, whole tiles and cut ones.

    python -m benchmarks.model [--designs tiny edge server] [--json FILE] [--docs PAGE] OPERAND...

For each design and operand the scheme of ``hyte`` is run, and for each of the six inter-tile orders a scheme with every
dimension cut in two (and A and C streamed), so that begin positions, partial rows and the assembly pass are at work.
Both tiers run each; traffic and exact counters must be equal, cycles are compared. The table has a line for each design and
operand, ``--json`` each run.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.operand_sets import name_of
from benchmarks.table_markers import PrintedTable, benchmark_parser
from gen.design import Design, load_design
from sw.formats.csr import Csr
from sw.model.machine import EXACT_COUNTERS, run_model
from sw.operands import load, to_csr
from sw.plan.plan import plan
from sw.policies.registry import schedule
from sw.runtime.simulation.engine import run_rtl
from sw.scheme.scheme import Scheme
from sw.scheme.shares import default_partition
from sw.scheme.terms import BUFFERING, ORDERS, STREAMING

DESIGNS = ("tiny", "edge", "server")
OPERANDS = ("pyamg:airfoil", "pyamg:recirc_flow", "pyamg:unit_cube", "pyamg:knot", "pyamg:bar")
# The smallest design needs minutes for the largest operands.
TOO_LARGE = {"tiny": 200_000}


@dataclass(frozen=True)
class Row:
    """One run in both tiers."""

    design: str
    operand: str
    scheme: str
    cycles: int
    model: int
    same_traffic: bool
    same_counters: bool

    @property
    def deviation(self) -> float:
        return self.model / self.cycles - 1


def cut_in_two(design: Design, order: str, matrix: Csr) -> Scheme:
    """Half of each dimension, A and C streamed."""
    buffer_bytes, fifo_bytes = default_partition(design, partial_rows=True)
    half = [-(-n // 2) for n in (matrix.rows, matrix.columns, matrix.columns)]
    scheme = Scheme(
        policy="halves",
        order=order,
        T_i=half[0],
        T_j=half[1],
        T_k=half[2],
        buffer_bytes=buffer_bytes,
        fifo_bytes=fifo_bytes,
        mode={"A": STREAMING, "B": BUFFERING, "C": STREAMING},
    ).clip(matrix.rows, matrix.columns, matrix.columns)
    scheme.validate(design, matrix.rows, matrix.columns, matrix.columns)
    return scheme


def compare(design: Design, operand: str, matrix: Csr, name: str, scheme: Scheme) -> Row:
    """Runs both tiers."""
    planned = plan(scheme, matrix, matrix, design)
    found = run_rtl(design, planned)
    if found.error is not None:
        raise RuntimeError(f"{design.name}, {operand}, {name}: {found.error}")
    model = run_model(design, planned)
    return Row(
        design=design.name,
        operand=operand,
        scheme=name,
        cycles=found.counters["cycles"],
        model=model.counters["cycles"],
        same_traffic=found.dram_bytes == model.dram_bytes,
        same_counters=all(found.counters[counter] == model.counters[counter] for counter in EXACT_COUNTERS),
    )


def off(rows: Sequence[Row]) -> tuple[str, str]:
    """The mean and the worst of how far the model's cycles are off."""
    apart = [abs(row.deviation) for row in rows]
    return f"{sum(apart) / len(apart):.1%}", f"{max(apart):.1%}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table, and returns 1 where traffic or counters differ."""
    parser = benchmark_parser(__file__, __doc__)
    parser.add_argument("operands", nargs="*", default=OPERANDS)
    parser.add_argument("--designs", nargs="+", default=DESIGNS)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    printed = PrintedTable(parser, options)
    printed.head(("design", "operand", "runs", "cycles", "of `hyte`, model", "all, mean", "all, worst"), texts=2)
    found: list[Row] = []
    for name in options.designs:
        design = load_design(name, ["pe.value=fp32"])
        for operand in options.operands:
            known = load(operand)
            matrix = to_csr(known, design.pe.value)
            pattern = known.matrix
            macs = int((matrix.pointers[1:] - matrix.pointers[:-1])[matrix.coordinates].sum())
            if macs > TOO_LARGE.get(name, macs):
                continue
            schemes = {"hyte": schedule("hyte", pattern, pattern, design)}
            schemes |= {f"halves, {order}": cut_in_two(design, order, matrix) for order in ORDERS}
            rows = [compare(design, operand, matrix, kind, scheme) for kind, scheme in schemes.items()]
            first = rows[0]
            cells = (name_of(operand), str(len(rows)), f"{first.cycles:,}", f"{first.deviation:+.1%}", *off(rows))
            printed.row((name, *cells))
            found += rows
    same = sum(row.same_traffic and row.same_counters for row in found)
    mean, worst = off(found)
    printed.line()
    printed.line(f"Over all {len(found)} runs the model is {mean} off in the mean, {worst} at worst.")
    printed.line(f"Traffic and the exact counters are equal in {same} of them.")
    if same == len(found):
        printed.write()
    if options.json is not None:
        options.json.write_text(json.dumps([row.__dict__ for row in found], indent=1) + "\n")
    return int(same < len(found))


if __name__ == "__main__":
    sys.exit(main())
