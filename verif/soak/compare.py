"""One case in every engine, and all that does not agree."""

from collections.abc import Callable
from typing import Any

from sw.golden.compare import check_against_scipy, compare_bits
from sw.golden.spgemm import multiply
from sw.golden.tuned_walk import TunedWalk, tuned_walk
from sw.golden.tuning import PartitionB
from sw.model.machine import EXACT_COUNTERS, run_model
from verif.fastsim.engine import run_rtl

from .cases import Case

__all__ = ["disagreements"]

# Of a case of the most MACs on the slowest design: one element of radix 2 whose every line waits for a slow memory.
MOST_CYCLES = 20_000_000


def disagreements(case: Case, hardware: Callable[..., Any] = run_rtl) -> list[str]:
    """Runs golden product, model and hardware; a line for each thing that differs, empty if all is well.

    Values and structure bit for bit, SciPy within the bound of the sum, traffic to the byte, counters that are exact,
    the tuner's decisions; memory behind the result untouched, AXI rules kept.
    """
    design, scheme, a, b = case.design, case.scheme, case.a, case.b
    walk = _walk(case) if scheme.tuning else None
    golden = multiply(a, b, design.pe.merge_radix, design.pe.arithmetic, scheme, walk)
    model = run_model(design, scheme, a, b)
    found = hardware(design, scheme, a, b, max_cycles=MOST_CYCLES, poison=True, dram=case.timing)
    problems = [] if found.error is None else [f"hardware: {found.error}"]
    if found.c is None:
        return problems or ["hardware: no result"]
    for name, verdict in (
        ("golden", compare_bits(golden.structural, found.c)),
        ("SciPy", check_against_scipy(a, b, found.c, value=design.pe.arithmetic)),
    ):
        if not verdict.correct:
            problems.append(f"{name}: {verdict}")
    if found.dram_bytes != model.dram_bytes:
        problems.append(f"traffic: hardware {found.dram_bytes}, model {model.dram_bytes}")
    pairs: list[tuple[str, Any, Any]] = [
        (name, found.counters.get(name), model.counters.get(name)) for name in EXACT_COUNTERS
    ]
    pairs += [(f"A {key}", found.buffer["A"][key], model.buffer["A"][key]) for key in ("peak_bytes", "hits", "bumped")]
    problems += [f"{name}: hardware {one}, model {other}" for name, one, other in pairs if one != other]
    if walk is not None:
        changes = [(change["tile"], change["T_j"], change["T_k"]) for change in model.adjustments]
        if changes != walk.adjustments:
            problems.append(f"tuning: model {changes}, golden {walk.adjustments}")
    return problems


def _walk(case: Case) -> TunedWalk:
    design, scheme = case.design, case.scheme
    lines, fifo = (size["B"] // design.line_bytes for size in (scheme.buffer_bytes, scheme.fifo_bytes))
    partition = PartitionB(lines=lines, fifo_lines=fifo, lanes=design.lanes)
    return tuned_walk((scheme.T_i, scheme.T_j, scheme.T_k), scheme.order, case.a, case.b, partition)
