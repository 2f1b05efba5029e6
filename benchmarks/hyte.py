"""HYTE against Tailors, DRT and HARP: speedups, distance to the best static scheme, sweeps, dataflows. Paper: HYTE, section 8.

    python -m benchmarks.hyte [--budget 8] [--only SECTION]... [--json FILE] [--write docs/papers.md] [OPERAND]...

C = A x A on ``server``: 32 elements, 4 MiB, 68 GB/s, gustavson, records of 32 + 32 bits. Operands: also
``stencil:NxM``, ``box:NxMxL`` (:mod:`benchmarks.stand_ins`). Sections: ``policies`` (figures 6 and 7), ``energy`` (9), ``steps``
(8), ``chips`` (10), ``buffers`` (11), ``outer`` and ``inner`` (13), ``samples`` (14), ``sizes``, ``shapes`` and ``orders`` (1),
``harp`` (hyte over the simulator's HARP where the operand is so many times the buffer, with this memory and with theirs).
Records stay in the JSON file, one a line; what is there is not run again.

Baselines by the papers' methods are ``swiftiles``, ``drt``, ``harp``; those of HYTE's published simulator ``even_columns``
(Tailors), ``even_squares`` (DRT), ``even_rows`` (HARP). ``static`` is hyte, ``hyte`` the faster of it with tuning and without,
since both are one bit of a schedule; ``by cost`` the same with the simulator's rule, in the model alone; ``best static`` the
best run of so many schemes of hyte's space, the cheapest by the cost model. Times are cycles at 1 GHz, offline times
seconds of one core.
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.stand_ins import operand as load
from benchmarks.table_markers import stamp, write_table
from gen.design import Design, DesignError, load_design
from sw.cost.candidates.grids import ranked, tiling_space
from sw.cost.candidates.share_of_b import ShareOfB, scheme_for_b
from sw.cost.predict import predict
from sw.formats.csr import Csr
from sw.model.judge import judge
from sw.model.tier import simulate
from sw.model.tuning_rules import ByCost, run_with_rule
from sw.model.walk import Rule
from sw.operands import Operand, to_csr
from sw.plan.plan import plan
from sw.policies.registry import schedule
from sw.scheme.scheme import Scheme
from sw.scheme.terms import GUSTAVSON
from sw.stats.workload import Workload

OPERANDS = ("stencil:500x500", "box:34x34x34", "banded:100000:10:density=0.5:seed=1")
SECTIONS = (
    "policies",
    "energy",
    "steps",
    "chips",
    "buffers",
    "outer",
    "inner",
    "samples",
    "sizes",
    "shapes",
    "orders",
    "harp",
)
METHODS = ("swiftiles", "drt", "harp")
EVEN = ("even_columns", "even_squares", "even_rows")
CHIPS = (8, 16, 32, 64, 128)
# Of 4 MiB; two thirds hold as many nonzeros of 8 bytes as theirs does of 12.
BUFFERS = (0.25, 0.667, 1, 4, 16)
# Tiles of a mean of so many times what fits, 0: all of B (figure 1a).
SIZES = (1, 2, 4, 8, 16, 0)
# T_j is so many times as long, T_k shorter, as where both take half of B's cuts (figure 1b).
SHAPES = (1 / 16, 1 / 4, 1, 4, 16)
# B over the buffer, and GB/s: of 40.8 bytes a cycle and 12 bytes a nonzero, in nonzeros of 8 bytes (section ``harp``).
OVERFLOWS = (2, 8, 32)
STANDARD_GBPS, SIMULATOR_GBPS = 68.0, 27.2
INNERMOST = ("ijk", "ikj", "jki")
# Shares of rows and columns; 0 stands for 1 / sqrt(N).
SAMPLES = (0.1, 0.01, 0.001, 0)
STEPS = ("drt", "+ order, shares", "+ size", "+ shape", "+ dynamic")
PAPERS_CHIPS = ("27.4", "11.8", "7.4", "5.2", "3.4")
PAPERS_BUFFERS = ("24.9", "", "7.4", "3.0", "1.5")
STANDARD_PES, STANDARD_BYTES, STANDARD_BANKS = 32, 4 << 20, 32
# Section 8.1: memory, the accelerator, a core of the host.
PICOJOULES_A_BIT, CHIP_WATTS, HOST_WATTS = 20.0, 10.55, 8.5


def machine(
    *, pes: int = STANDARD_PES, buffers: float = 1.0, dataflow: str = "gustavson", gbps: float = STANDARD_GBPS
) -> Design:
    """``server`` with so many elements, so much of 4 MiB, a 64th of it managed as a FIFO, and so much of memory."""
    banks = max(4, min(64, STANDARD_BANKS * pes // STANDARD_PES))
    line = 64 * banks
    size = round(STANDARD_BYTES * buffers / line) * line
    fifo = max(256, round(size / 64 / 64) * 64)
    changes = [f"pe.count={pes}", f"buffer.bytes={size}", f"buffer.fifo_bytes={fifo}", f"buffer.banks={banks}"]
    return load_design("server", [*changes, f"pe.dataflow={dataflow}", f"dram.bandwidth_gbps={gbps}"])


class Bench:
    """One operand in the forms that runs need."""

    def __init__(self, name: str) -> None:
        self.operand: Operand = load(name)
        self.csr: Csr = to_csr(self.operand, "fp32")
        self.matrix = self.operand.matrix

    def run(self, design: Design, scheme: Scheme, rule: Rule | None = None) -> dict[str, Any]:
        planned = plan(scheme, self.csr, self.csr, design)
        found = simulate(design, planned) if rule is None else run_with_rule(design, planned, rule)
        assert found.dram_bytes is not None
        return {
            "cycles": found.cycles,
            "bytes": {tensor: sum(kinds.values()) for tensor, kinds in found.dram_bytes.items()},
            "macs": found.counters["macs"],
            "nonzeros": self.csr.nnz,
            "offline": scheme.seconds,
            "tile": [scheme.T_i, scheme.T_j, scheme.T_k],
            "order": scheme.order,
            "tiles": len(scheme.tiles),
        }

    def schedule(self, design: Design, policy: str, **options: Any) -> Scheme:
        """The scheme, with seconds of processor time instead of those by the clock: other work does not count."""
        began = time.process_time()
        scheme = schedule(policy, self.matrix, self.matrix, design, judge=judge(design), **options)
        return replace(scheme, seconds=time.process_time() - began)

    def policy(self, design: Design, policy: str, **options: Any) -> dict[str, Any]:
        return self.run(design, self.schedule(design, policy, **options))

    def tuned(self, design: Design, by_cost: bool = False) -> dict[str, Any]:
        """hyte, and the same with dynamic tuning where B is kept; the faster of both."""
        scheme = self.schedule(design, "hyte")
        plain = self.run(design, scheme)
        if not scheme.buffers("B"):
            return plain
        if by_cost:
            workload = Workload(self.matrix, self.matrix, lanes=design.lanes)
            tuned = self.run(design, replace(scheme, tuning=True), ByCost(workload, design, scheme))
        else:
            tuned = self.run(design, replace(scheme, tuning=True))
        return min(plain, tuned, key=lambda record: int(record["cycles"]))

    def best(self, design: Design, budget: int) -> dict[str, Any]:
        """The fastest of the schemes of hyte's space that the cost model puts first."""
        workload = Workload(self.matrix, self.matrix, lanes=design.lanes)
        if design.pe.dataflow == GUSTAVSON:
            schemes = [scheme for scheme, _ in ranked(workload, design)[:budget]]
        else:
            schemes = [self.schedule(design, "optimal", budget=budget)]
        runs = (self.run(design, scheme) for scheme in schemes)
        return min(runs, key=lambda record: int(record["cycles"]))

    def tiled(self, design: Design, order: str, T_j: int, T_k: int) -> dict[str, Any]:
        """B in tiles of that shape, A and C streamed."""
        share = ShareOfB(design)
        I, J = self.csr.rows, self.csr.columns  # noqa: E741 - extents, as in the papers
        scheme = scheme_for_b("figure 1", share, (I, J, I), max(1, T_j), max(1, min(T_k, share.most_rows(I))), order)
        return self.run(design, scheme)

    def steps(self, design: Design) -> dict[str, dict[str, Any]]:
        """Figure 8: drt, then what hyte's search adds, each choice by the cost model."""
        workload = Workload(self.matrix, self.matrix, lanes=design.lanes)
        drt = self.schedule(design, "drt")
        sizes = {"j": workload.J, "k": workload.K}
        legal = tiling_space(workload, design)

        def side(rank: str) -> int:
            """The power of two next to drt's mean side, the whole rank where that is closer."""
            first = {"j": 2, "k": 4}[rank]
            count = len({tile[first] for tile in drt.tiles})
            mean = sizes[rank] / count
            return sizes[rank] if count == 1 else 1 << round(math.log2(mean))

        own = (side("k"), side("j"))
        square = [s for s in legal if min(s.T_k, workload.K) == workload.K and s.T_j == workload.J or s.T_k == s.T_j]
        same = [s for s in legal if (s.T_k, s.T_j) == own] or square

        def best(schemes: list[Scheme]) -> Scheme:
            return min(schemes, key=lambda s: predict(workload, design, s).cycles)

        found = {"drt": self.run(design, drt)}
        for name, schemes in (("+ order, shares", same), ("+ size", [*square, *same]), ("+ shape", legal)):
            found[name] = self.run(design, best(schemes))
        found["+ dynamic"] = self.tuned(design)
        return found


def points(section: str, bench: Bench, budget: int) -> Iterator[tuple[str, Any]]:
    """Names of the runs of a section, and what makes each."""
    standard = machine()
    if section in ("policies", "outer", "inner"):
        dataflow = "gustavson" if section == "policies" else section
        design = machine(dataflow=dataflow)
        for policy in (*METHODS, *(EVEN if section == "policies" else ())):
            yield policy, partial(bench.policy, design, policy)
        yield "static", partial(bench.policy, design, "hyte")
        if section == "policies":
            yield "hyte", partial(bench.tuned, design)
            yield "by cost", partial(bench.tuned, design, by_cost=True)
        yield "best static", partial(bench.best, design, budget)
    elif section == "steps":
        yield "steps", partial(bench.steps, standard)
    elif section in ("chips", "buffers"):
        for size in CHIPS if section == "chips" else BUFFERS:
            scale = size / STANDARD_PES if section == "chips" else size
            design = machine(pes=int(size) if section == "chips" else STANDARD_PES, buffers=scale)
            for policy in ("swiftiles", "even_columns"):
                yield f"{policy} {size}", partial(bench.policy, design, policy)
            yield f"hyte {size}", partial(bench.tuned, design)
    elif section == "samples":
        for share in SAMPLES:
            fraction = share or bench.csr.rows**-0.5
            yield f"{share:g}", partial(bench.policy, standard, "hyte", fraction=fraction)
    elif section == "harp":
        for gbps, times in product((STANDARD_GBPS, SIMULATOR_GBPS), OVERFLOWS):
            design = machine(buffers=8 * bench.csr.nnz / times / STANDARD_BYTES, gbps=gbps)
            for policy in ("even_rows", "hyte"):
                yield f"{policy} {times} {gbps:g}", partial(bench.policy, design, policy)
    else:
        yield from tile_points(section, bench)


def tile_points(section: str, bench: Bench) -> Iterator[tuple[str, Any]]:
    """Figure 1: tiles of B of other sizes, shapes and orders."""
    design, rows = machine(), bench.csr.rows
    share = ShareOfB(design)
    tiles = bench.csr.nnz / max(1, share.capacity(min(rows, share.most_rows_by_half(rows))))
    if section == "sizes":
        for size in SIZES:
            width = rows if size == 0 else min(rows, math.ceil(rows * size / tiles))
            yield f"{size}", partial(bench.tiled, design, "ijk", width, rows)
        return
    cuts = max(4, math.ceil(tiles)) ** 0.5
    side = math.ceil(rows / cuts)
    if section == "shapes":
        for ratio in SHAPES:
            T_j = min(rows, math.ceil(side * ratio**0.5))
            T_k = min(rows, math.ceil(side * side / T_j))
            yield f"{ratio:g}", partial(bench.tiled, design, "ijk", math.ceil(side * side / T_k), T_k)
    for order in INNERMOST if section == "orders" else ():
        yield order, partial(bench.tiled, design, order, side, side)


def large(rows: "Rows") -> "Rows":
    """Operands that are larger than the buffer, over which means are taken; all where none is."""
    found = {name: runs for name, runs in rows.items() if 8 * next(iter(runs.values()))["nonzeros"] > STANDARD_BYTES}
    return found or rows


def mean(values: Iterable[float]) -> float:
    """Geometric mean."""
    logs = [math.log(v) for v in values]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


Rows = dict[str, dict[str, dict[str, Any]]]


def header(names: Iterable[str]) -> list[str]:
    names = list(names)
    return [f"| {' | '.join(names)} |", f"| --- |{' ---: |' * (len(names) - 1)}"]


def speedups(rows: Rows, ours: str, paper: dict[str, str]) -> str:
    """Each operand's speedups over the baselines, the rules of tuning and the best static scheme."""
    others = [name for name in next(iter(rows.values())) if name != ours]

    def ratios(runs: dict[str, dict[str, Any]]) -> list[float]:
        own = runs[ours]
        share = own["offline"] / (own["cycles"] * 1e-9 + own["offline"])
        return [*(runs[other]["cycles"] / own["cycles"] for other in others), share]

    def line(title: str, macs: str, cycles: str, found: list[float]) -> str:
        cells = [title, macs, cycles, *(f"{ratio:.2f}" for ratio in found[:-1]), f"{found[-1]:.0%}"]
        return f"| {' | '.join(cells)} |"

    lines = header(["operand", "MACs", "cycles", *(f"over {other}" for other in others), "offline share"])
    for operand, runs in rows.items():
        lines.append(line(operand, f"{runs[ours]['macs']:,}", f"{runs[ours]['cycles']:,}", ratios(runs)))
    each = zip(*(ratios(runs) for runs in large(rows).values()), strict=True)
    lines.append(line("**mean**", "", "", [mean(values) for values in each]))
    said = [paper.get(other, "") for other in others]
    return "\n".join([*lines, f"| the paper | | | {' | '.join(said)} | {paper.get('offline', '')} |"])


def shares(rows: Rows) -> str:
    """Figure 7: bytes by tensor over all bytes of static, mean over operands."""
    lines = header(["bytes over static's", "A", "B", "C", "all"])
    for name in next(iter(rows.values())):
        parts = []
        for tensors in ("A", "B", "C", "ABC"):
            values = [
                sum(runs[name]["bytes"][t] for t in tensors) / sum(runs["static"]["bytes"].values())
                for runs in large(rows).values()
            ]
            parts.append(sum(values) / len(values))
        lines.append(f"| {name} | " + " | ".join(f"{value:.2f}" for value in parts) + " |")
    return "\n".join(lines)


def joules(run: dict[str, Any]) -> tuple[float, float, float]:
    """Memory, the chip, the host."""
    memory = 8e-12 * PICOJOULES_A_BIT * sum(run["bytes"].values())
    return memory, 1e-9 * CHIP_WATTS * run["cycles"], HOST_WATTS * run["offline"]


def energies(rows: Rows) -> str:
    """Figure 9, from the records of ``policies``: hyte's energy and its parts, and over those of the baselines."""
    others = (*METHODS, *EVEN)

    def ratios(runs: dict[str, dict[str, Any]]) -> list[float]:
        memory, chip, _ = joules(runs["hyte"])
        return [memory / (memory + chip), *((memory + chip) / sum(joules(runs[other])[:2]) for other in others)]

    lines = header(["operand", "online, mJ", "memory", *(f"over {other}" for other in others), "host, mJ"])
    for operand, runs in rows.items():
        memory, chip, host = joules(runs["hyte"])
        part, *over = ratios(runs)
        cells = [
            operand,
            f"{1e3 * (memory + chip):.2f}",
            f"{part:.0%}",
            *(f"{r:.2f}" for r in over),
            f"{1e3 * host:.0f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    part, *over = [mean(values) for values in zip(*map(ratios, large(rows).values()), strict=True)]
    lines.append(f"| **mean** | | {part:.0%} | {' | '.join(f'{r:.2f}' for r in over)} | |")
    said = {"drt": "0.19", "even_squares": "0.19"}
    return "\n".join([*lines, f"| the paper | | 76% | {' | '.join(said.get(o, '') for o in others)} | minor |"])


def relative(rows: Rows, of: str, names: dict[str, str], offline: bool = False) -> str:
    """Cycles of ``of`` over those of each run, so that more is faster; with bytes of C, or seconds offline, beside."""
    points = list(next(iter(rows.values())))
    beside = [f"offline s: {p}" for p in points] if offline else [f"bytes of C: {p}" for p in points]
    lines = header(["operand", *(names.get(p, p) for p in points), *beside])
    for operand, runs in rows.items():
        speed = [f"{runs[of]['cycles'] / runs[p]['cycles']:.2f}" for p in points]
        last = [f"{runs[p]['offline']:.2f}" if offline else f"{runs[p]['bytes']['C'] / 1e6:.0f} MB" for p in points]
        lines.append(f"| {operand} | {' | '.join([*speed, *last])} |")
    means = [f"{mean(runs[of]['cycles'] / runs[p]['cycles'] for runs in large(rows).values()):.2f}" for p in points]
    return "\n".join([*lines, f"| **mean** | {' | '.join([*means, *[''] * len(points)])} |"])


def sweep(rows: Rows, sizes: Iterable[float], unit: str) -> str:
    """hyte over Tailors of either kind, by operand and in the mean, and of each over its own first size."""
    sizes = list(sizes)
    lines = header([unit, *(f"{size:g}" for size in sizes)])

    def row(title: str, value: Any, over: Rows) -> None:
        cells = [f"{mean(value(r, s) for r in over.values()):.2f}" for s in sizes]
        lines.append(f"| {title} | {' | '.join(cells)} |")

    def faster(policy: str) -> Any:
        return lambda r, s: r[f"{policy} {s}"]["cycles"] / r[f"hyte {s}"]["cycles"]

    for operand in rows:
        row(f"{operand}: over even_columns", faster("even_columns"), {operand: rows[operand]})
    for policy in ("even_columns", "swiftiles"):
        row(f"**hyte over {policy}**", faster(policy), large(rows))
    for name in ("hyte", "even_columns", "swiftiles"):
        row(
            f"{name} over its first",
            lambda r, s, n=name: r[f"{n} {sizes[0]}"]["cycles"] / r[f"{n} {s}"]["cycles"],
            large(rows),
        )
    paper = PAPERS_CHIPS if unit == "elements" else PAPERS_BUFFERS
    return "\n".join([*lines, f"| the paper, hyte over Tailors | {' | '.join(paper)} |"])


def gains(rows: Rows) -> str:
    """Figure 8: cycles of drt over those of each step."""
    steps = {operand: runs["steps"] for operand, runs in rows.items()}
    lines = header(["operand", *STEPS])

    def line(title: str, over: Rows) -> str:
        each = [mean(found["drt"]["cycles"] / found[step]["cycles"] for found in over.values()) for step in STEPS]
        return f"| {title} | {' | '.join(f'{gain:.2f}' for gain in each)} |"

    lines += [line(operand, {operand: found}) for operand, found in steps.items()]
    paper = "1.00 | 1.20 | 1.96 | 3.36 | 3.87"  # 1.20, and more by 1.63, 1.72 and 1.15
    return "\n".join([*lines, line("**mean**", large(steps)), f"| the paper | {paper} |"])


def overflows(rows: Rows) -> str:
    """Cycles of even_rows over those of hyte, by how many times the buffer B is; bytes for the first memory beside."""
    kinds = list(product((STANDARD_GBPS, SIMULATOR_GBPS), OVERFLOWS))
    names = [f"{times} x, {gbps:g} GB/s" for gbps, times in kinds]
    lines = header(["operand", "MACs a nonzero", *names, *(f"bytes, {times} x" for times in OVERFLOWS)])

    def ratios(runs: dict[str, dict[str, Any]]) -> list[float]:
        pairs = [[runs[f"{policy} {times} {gbps:g}"] for policy in ("even_rows", "hyte")] for gbps, times in kinds]
        moved = [sum(a["bytes"].values()) / sum(b["bytes"].values()) for a, b in pairs[: len(OVERFLOWS)]]
        return [*(float(a["cycles"] / b["cycles"]) for a, b in pairs), *moved]

    for operand, runs in rows.items():
        of = next(iter(runs.values()))
        cells = [operand, f"{of['macs'] / of['nonzeros']:.0f}", *(f"{ratio:.2f}" for ratio in ratios(runs))]
        lines.append(f"| {' | '.join(cells)} |")
    means = [mean(values) for values in zip(*map(ratios, rows.values()), strict=True)]
    lines.append(f"| **mean** | | {' | '.join(f'{value:.2f}' for value in means)} |")
    return "\n".join(
        [*lines, f"| the paper | | {' | '.join(['5.2'] * len(kinds))} | {' | '.join([''] * len(OVERFLOWS))} |"]
    )


PAPERS = {"swiftiles": "7.4", "even_columns": "7.4", "drt": "3.9", "even_squares": "3.9", "harp": "5.2", "even_rows": "5.2",
          "static": "1.15", "best static": "1.0", "offline": "16.2%"}  # fmt: skip
BY_DATAFLOW = {"outer": "best baseline 1.7", "inner": "best baseline 2.7"}


def table(section: str, rows: Rows) -> str:
    if section == "policies":
        return f"{speedups(rows, 'hyte', PAPERS)}\n\n{shares(rows)}"
    if section in BY_DATAFLOW:
        return f"{speedups(rows, 'static', {'drt': BY_DATAFLOW[section]})}\n\n{shares(rows)}"
    if section == "energy":
        return energies(rows)
    if section == "harp":
        return overflows(rows)
    if section == "steps":
        return gains(rows)
    if section == "samples":
        return relative(rows, "0", {"0": "1 / sqrt(N)"}, offline=True)
    if section == "sizes":
        return relative(rows, "1", {"0": "whole"})
    if section in ("shapes", "orders"):
        return relative(rows, "1" if section == "shapes" else "ijk", {})
    return sweep(rows, CHIPS, "elements") if section == "chips" else sweep(rows, BUFFERS, "buffer, x 4 MiB")


def main() -> int:
    """Prints the tables; returns 1 when an operand could not be read or run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("operands", nargs="*", default=OPERANDS, metavar="OPERAND")
    parser.add_argument("--budget", type=int, default=8, help="schemes that `best static` runs")
    parser.add_argument("--only", action="append", choices=SECTIONS, help="repeatable; all sections without it")
    parser.add_argument("--json", type=Path, help="records so far and new ones, one a line")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the tables between their markers")
    options = parser.parse_args()
    if options.budget < 1:
        parser.error("--budget must be at least 1")
    known: dict[tuple[Any, ...], Any] = {}
    if options.json is not None and options.json.exists():
        for line in options.json.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            known[tuple(entry["key"])] = entry["record"]
    failed = False
    sections = options.only or list(SECTIONS)
    rows: dict[str, Rows] = {section: {} for section in sections}
    warm = Bench("rmat:6:4:seed=1")  # compiled code is loaded before anything is timed
    for dataflow in ("gustavson", "outer", "inner") if {"outer", "inner"} & set(sections) else ("gustavson",):
        for policy in (*METHODS, "hyte"):
            warm.policy(machine(dataflow=dataflow), policy)
    for name in options.operands:
        try:
            bench = Bench(name)
        except ValueError as problem:
            print(f"{name}: {problem}", file=sys.stderr)
            failed = True
            continue
        if bench.csr.rows != bench.csr.columns:
            shape = f"{bench.csr.rows:,} x {bench.csr.columns:,}"
            print(f"{name}: left out: {shape}, C = A x A needs a square", file=sys.stderr)
            continue
        for section in sections:
            found: dict[str, dict[str, Any]] = {}
            kind = "policies" if section == "energy" else section  # of the same runs
            try:
                for point, make in points(kind, bench, options.budget):
                    key = (bench.operand.name, kind, point, options.budget if point == "best static" else 0)
                    if key not in known:
                        known[key] = make()
                        if options.json is not None:
                            with options.json.open("a", encoding="utf-8") as file:
                                file.write(json.dumps({"key": key, "record": known[key]}) + "\n")
                    found[point] = known[key]
            except DesignError as problem:  # a buffer of a share of B is too small for the machine
                print(f"{name}, {section}: left out: {problem}", file=sys.stderr)
                continue
            rows[section][bench.operand.name] = found
            print(f"{bench.operand.name} {section}", file=sys.stderr, flush=True)
    for section in sections:
        if rows[section]:
            text = table(section, rows[section])
            print(f"{section}\n\n{text}\n")
            if options.write is not None:
                command = f"python -m benchmarks.hyte --only {section}"
                write_table(options.write, f"HYTE, {section}", [*text.split("\n"), "", stamp(command)])
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
