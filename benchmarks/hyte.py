"""HYTE against Tailors, DRT and HARP: speedups, distance to the best static scheme, sweeps, dataflows. Paper: HYTE, section 8.

    python benchmarks/hyte.py [--fill 10] [--budget 30] [--only SECTION]... [--json FILE] [OPERAND]...

C = A x A on ``server``: 32 elements, 68 GB/s, gustavson. The paper's operands (1.5 to 25 million nonzeros) are 3 to 50 times
as large as its 4 MiB; with ``--fill F`` the buffer is an F-th of the operand (8 bytes a nonzero) and stands for those 4 MiB, and
the sweeps' buffers are multiples of it. ``--fill 0`` leaves 4 MiB. Sections: ``policies`` (figures 6, 7 and 14), ``steps`` (8),
``chips`` (10), ``buffers`` (11), ``outer`` and ``inner`` (13). Records stay in the JSON file, one a line; what is there is not
run again.

``tailors`` is the policy swiftiles; ``static`` is hyte, ``hyte`` the faster of it with dynamic tuning and without, since both are
one bit of a schedule; ``best static`` is the policy optimal with that budget. Times are cycles at 1 GHz; ``with offline`` adds
the seconds of scheduling, on one core.
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from gen.design import Design, load_design
from sw.cost.candidates.grids import tiling_space
from sw.cost.predict import predict
from sw.formats.csr import Csr
from sw.model.engine import simulate
from sw.model.judge import judge
from sw.operands import Operand, load, to_csr
from sw.plan.plan import plan
from sw.policies.registry import schedule
from sw.scheme.scheme import Scheme
from sw.stats.workload import Workload

OPERANDS = (
    "pyamg:airfoil",
    "pyamg:bar",
    "pyamg:local_disc_galerkin_diffusion",
    "rmat:13:8:seed=1",
    "banded:20000:10:density=0.5:seed=1",
)
SECTIONS = ("policies", "steps", "chips", "buffers", "outer", "inner")
BASELINES = {"tailors": "swiftiles", "drt": "drt", "harp": "harp"}
CHIPS = (8, 16, 32, 64, 128)
BUFFERS = (0.25, 1, 4, 16)
STEPS = ("drt", "+ order, shares", "+ size", "+ shape", "+ dynamic")
STANDARD_PES, STANDARD_BYTES, STANDARD_BANKS = 32, 4 << 20, 32


def machine(
    nonzeros: int, fill: float, *, pes: int = STANDARD_PES, buffers: float = 1.0, dataflow: str = "gustavson"
) -> Design:
    """``server`` with so many elements, and a buffer in proportion to the operand."""
    size = STANDARD_BYTES if fill == 0 else 8 * nonzeros / fill
    banks = max(4, min(64, STANDARD_BANKS * pes // STANDARD_PES))
    line = 64 * banks
    held = max(4, round(size * buffers / line)) * line
    fifo = max(256, round(held / 64 / 64) * 64)
    changes = [f"pe.count={pes}", f"buffer.bytes={held}", f"buffer.fifo_bytes={fifo}", f"buffer.banks={banks}"]
    return load_design("server", [*changes, f"pe.dataflow={dataflow}"])


class Bench:
    """One operand in the forms that runs need."""

    def __init__(self, name: str) -> None:
        self.operand: Operand = load(name)
        self.csr: Csr = to_csr(self.operand, "fp32")
        self.matrix = self.operand.matrix

    def run(self, design: Design, scheme: Scheme) -> dict[str, Any]:
        found = simulate(design, plan(scheme, self.csr, self.csr, design))
        assert found.dram_bytes is not None
        return {
            "cycles": found.cycles,
            "bytes": {tensor: sum(kinds.values()) for tensor, kinds in found.dram_bytes.items()},
            "macs": found.counters["macs"],
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

    def tuned(self, design: Design) -> dict[str, Any]:
        """hyte, and the same with dynamic tuning where B is kept; the faster of both."""
        scheme = self.schedule(design, "hyte")
        plain = self.run(design, scheme)
        if not scheme.buffers("B"):
            return plain
        tuned = self.run(design, replace(scheme, tuning=True))
        return min(plain, tuned, key=lambda record: int(record["cycles"]))

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


def points(section: str, bench: Bench, fill: float, budget: int) -> Iterator[tuple[str, Any]]:
    """Names of the runs of a section, and what makes each."""
    nnz = bench.csr.nnz
    if section in ("policies", "outer", "inner"):
        dataflow = "gustavson" if section == "policies" else section
        design = machine(nnz, fill, dataflow=dataflow)
        for name, policy in {**BASELINES, "static": "hyte"}.items():
            yield name, lambda policy=policy: bench.policy(design, policy)
        if section == "policies":
            yield "hyte", lambda: bench.tuned(design)
        yield "best static", lambda: bench.policy(design, "optimal", budget=budget)
    elif section == "steps":
        yield "steps", lambda: bench.steps(machine(nnz, fill))
    else:
        for size in CHIPS if section == "chips" else BUFFERS:
            scale = size / STANDARD_PES if section == "chips" else size
            design = machine(nnz, fill, pes=int(size) if section == "chips" else STANDARD_PES, buffers=scale)
            yield f"tailors {size}", lambda design=design: bench.policy(design, "swiftiles")
            yield f"hyte {size}", lambda design=design: bench.tuned(design)


def mean(values: Iterable[float]) -> float:
    """Geometric mean."""
    logs = [math.log(v) for v in values]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


Rows = dict[str, dict[str, dict[str, Any]]]


def speedups(rows: Rows, ours: str) -> str:
    """Each operand's speedups over the baselines, and over the best static scheme."""
    others = [*BASELINES, "best static"]
    extra = ["offline share", "with offline over drt"]
    lines = [f"| operand | MACs | cycles | {' | '.join(f'over {o}' for o in others)} | {' | '.join(extra)} |"]
    lines.append("| --- |" + " ---: |" * (len(others) + len(extra) + 2))
    ratios: dict[str, list[float]] = {name: [] for name in (*others, *extra)}
    for operand, runs in rows.items():
        own = runs[ours]
        for other in others:
            ratios[other].append(runs[other]["cycles"] / own["cycles"])
        spent = own["cycles"] * 1e-9 + own["offline"]
        ratios["offline share"].append(own["offline"] / spent)
        ratios["with offline over drt"].append(runs["drt"]["cycles"] * 1e-9 / spent)
        cells = [f"{ratios[name][-1]:.2f}" for name in (*others, *extra)]
        lines.append(f"| {operand} | {own['macs']:,} | {own['cycles']:,} | {' | '.join(cells)} |")
    cells = [f"{mean(ratios[name]):.2f}" for name in (*others, *extra)]
    return "\n".join([*lines, f"| **mean** | | | {' | '.join(cells)} |"])


def shares(rows: Rows) -> str:
    """Figure 7: bytes by tensor over all bytes of static, mean over operands."""
    names = [*BASELINES, "static", "best static"]
    lines = ["| bytes over static's | A | B | C | all |", "| --- | ---: | ---: | ---: | ---: |"]
    for name in names:
        parts = []
        for tensors in ("A", "B", "C", "ABC"):
            values = [
                sum(runs[name]["bytes"][t] for t in tensors) / sum(runs["static"]["bytes"].values())
                for runs in rows.values()
            ]
            parts.append(sum(values) / len(values))
        lines.append(f"| {name} | " + " | ".join(f"{value:.2f}" for value in parts) + " |")
    return "\n".join(lines)


def sweep(rows: Rows, sizes: Iterable[float], unit: str) -> str:
    """Means of hyte over tailors, and of each over its own first size."""
    sizes = list(sizes)
    first = sizes[0]
    lines = [f"| {unit} | " + " | ".join(f"{size:g}" for size in sizes) + " |", "| --- |" + " ---: |" * len(sizes)]

    def row(title: str, value: Any) -> None:
        lines.append(
            f"| {title} | " + " | ".join(f"{mean(value(r, s) for r in rows.values()):.2f}" for s in sizes) + " |"
        )

    row("hyte over tailors", lambda r, s: r[f"tailors {s}"]["cycles"] / r[f"hyte {s}"]["cycles"])
    for name in ("hyte", "tailors"):
        row(f"{name} over its first", lambda r, s, n=name: r[f"{n} {first}"]["cycles"] / r[f"{n} {s}"]["cycles"])
    return "\n".join(lines)


def gains(rows: Rows) -> str:
    """Figure 8: cycles of drt over those of each step."""
    lines = ["| operand | " + " | ".join(STEPS) + " |", "| --- |" + " ---: |" * len(STEPS)]
    over: dict[str, list[float]] = {step: [] for step in STEPS}
    for operand, runs in rows.items():
        found = runs["steps"]
        for step in STEPS:
            over[step].append(found["drt"]["cycles"] / found[step]["cycles"])
        lines.append(f"| {operand} | " + " | ".join(f"{over[step][-1]:.2f}" for step in STEPS) + " |")
    return "\n".join([*lines, "| **mean** | " + " | ".join(f"{mean(over[step]):.2f}" for step in STEPS) + " |"])


def table(section: str, rows: Rows) -> str:
    if section == "policies":
        return f"{speedups(rows, 'hyte')}\n\n{shares(rows)}"
    if section in ("outer", "inner"):
        return f"{speedups(rows, 'static')}\n\n{shares(rows)}"
    if section == "steps":
        return gains(rows)
    return sweep(rows, CHIPS, "elements") if section == "chips" else sweep(rows, BUFFERS, "buffer")


def main() -> int:
    """Prints the tables; returns 1 when an operand could not be read or run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("operands", nargs="*", default=OPERANDS, metavar="OPERAND")
    parser.add_argument("--fill", type=float, default=10.0, help="operand over the buffer that stands for 4 MiB")
    parser.add_argument("--budget", type=int, default=30, help="runs of the policy optimal")
    parser.add_argument("--only", action="append", choices=SECTIONS, help="repeatable; all sections without it")
    parser.add_argument("--json", type=Path, help="records so far and new ones, one a line")
    options = parser.parse_args()
    if options.fill < 0 or options.budget < 1:
        parser.error("--fill must be at least 0 and --budget at least 1")
    known: dict[tuple[Any, ...], Any] = {}
    if options.json is not None and options.json.exists():
        for line in options.json.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            known[tuple(entry["key"])] = entry["record"]
    failed = False
    sections = options.only or list(SECTIONS)
    rows: dict[str, Rows] = {section: {} for section in sections}
    warm = Bench("rmat:6:4:seed=1")  # compiled code is loaded before anything is timed
    for dataflow in ("gustavson", "outer", "inner"):
        for policy in (*BASELINES.values(), "hyte"):
            warm.policy(machine(warm.csr.nnz, 1, dataflow=dataflow), policy)
    for name in options.operands:
        try:
            bench = Bench(name)
        except ValueError as problem:
            print(f"{name}: {problem}", file=sys.stderr)
            failed = True
            continue
        for section in sections:
            found: dict[str, dict[str, Any]] = {}
            for point, make in points(section, bench, options.fill, options.budget):
                key = (
                    bench.operand.name,
                    section,
                    point,
                    options.fill,
                    options.budget if point == "best static" else 0,
                )
                if key not in known:
                    known[key] = make()
                    if options.json is not None:
                        with options.json.open("a", encoding="utf-8") as file:
                            file.write(json.dumps({"key": key, "record": known[key]}) + "\n")
                found[point] = known[key]
            rows[section][bench.operand.name] = found
            print(f"{bench.operand.name} {section}", file=sys.stderr, flush=True)
    for section in sections:
        if rows[section]:
            print(f"{section}\n\n{table(section, rows[section])}\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
