"""How fast the compiled simulation is: cycles a second, beside a cocotb-driven run of the same work, build time, memory.

    python -m benchmarks.simulation [--designs edge server] [--operand pyamg:airfoil] [--long pyamg:bar] [--docs PAGE]

Each design is built from nothing in a folder of its own, so that the time is that of a first run. Cycles a second are those
of the longer operand: with one thread by processor time, so that other work on the machine does not count, and with as many
as there are processors by the wall clock. The cocotb run drives the same Verilog under Verilator, through Python at each
clock cycle.
"""

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.table_markers import ROOT, PrintedTable, benchmark_parser
from gen.design import Design, load_design
from gen.elaborate import accelerator
from sw.operands import load
from sw.policies.registry import schedule
from sw.runtime.simulation.engine import THREADS, simulation_threads
from verif.runner import run_bench

COLUMNS = ("design", "PEs", "build", "memory", "operand", "cycles", "cycles/s", "threads", "cocotb cycles/s", "ratio")


def compiled(design: str, operand: str, cache: Path) -> tuple[dict[str, float], int, float, float]:
    """Seconds by phase, cycles, processor seconds of the whole command, and peak memory in MiB of its largest process."""
    command = [sys.executable, "-m", "sw", "run", operand, "--config", design, "--tiling", "hyte", "--json"]
    with tempfile.TemporaryDirectory() as out:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [*command, "--out", out],
            cwd=ROOT,
            env=os.environ | {"XDG_CACHE_HOME": str(cache)},
            capture_output=True,
            text=True,
            check=False,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError(f"{design}, {operand}: {done.stderr.strip()}")
    record = json.loads(done.stdout)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return record["seconds"], record["cycles"], used, after.ru_maxrss / 1024


def rate(design: str, operand: str, cache: Path, threads: int) -> tuple[int, float]:
    """Cycles of a run of what is built already, and cycles in a second: of the processor's time where threads are one."""
    script = (
        "import sys, time\n"
        "from gen.design import load_design\n"
        "from sw.operands import load, to_csr\n"
        "from sw.plan.plan import plan\n"
        "from sw.policies.registry import schedule\n"
        "from sw.runtime.simulation.engine import run_rtl\n"
        "design, operand = load_design(sys.argv[1]), load(sys.argv[2])\n"
        "matrix = to_csr(operand, design.pe.value)\n"
        "scheme = schedule('hyte', operand.matrix, operand.matrix, design)\n"
        "clock = time.process_time if sys.argv[3] == '1' else time.perf_counter\n"
        "for _ in range(2):\n"
        "    began = clock()\n"
        "    found = run_rtl(design, plan(scheme, matrix, matrix, design))\n"
        "    print(found.counters['cycles'], clock() - began)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, design, operand, str(threads)],
        cwd=ROOT,
        env=os.environ | {"XDG_CACHE_HOME": str(cache), THREADS: str(threads)},
        capture_output=True,
        text=True,
        check=True,
    )
    runs = [line.split() for line in done.stdout.splitlines()]
    cycles = int(runs[-1][0])
    return cycles, cycles / min(float(seconds) for _, seconds in runs)


def driven(design: Design, operand: str) -> float:
    """Cycles a second of the cocotb-driven run, by the wall clock of the simulator's process."""
    pattern = load(operand).matrix
    with tempfile.TemporaryDirectory() as folder:
        scheme = Path(folder) / "scheme.json"
        scheme.write_text(schedule("hyte", pattern, pattern, design).to_json())
        result = run_bench(
            accelerator(design),
            "bench_speed",
            environment={
                "FIBERLOOM_DESIGN": design.name,
                "FIBERLOOM_VALUE": design.pe.value,
                "FIBERLOOM_OPERAND": operand,
                "FIBERLOOM_SCHEME": str(scheme),
            },
        )
    if result.problems:
        raise RuntimeError("; ".join(result.problems))
    found = re.search(r"same work: (\d+) cycles ([\d.]+) seconds", result.log)
    if found is None:
        raise RuntimeError("the cocotb run printed no figures")
    return int(found[1]) / float(found[2])


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table."""
    parser = benchmark_parser(__file__, __doc__)
    parser.add_argument("--designs", nargs="+", default=["edge", "server"])
    parser.add_argument("--operand", default="pyamg:airfoil")
    parser.add_argument("--long", default="pyamg:bar")
    options = parser.parse_args(arguments)
    printed = PrintedTable(parser, options)
    printed.head(COLUMNS)
    for name in options.designs:
        design = load_design(name)
        with tempfile.TemporaryDirectory() as cache:
            began = time.perf_counter()
            seconds, _, used, memory = compiled(name, options.operand, Path(cache))
            build = seconds["generate"] + seconds["build"]
            cycles, speed = rate(name, options.long, Path(cache), 1)
            threads = simulation_threads(design)
            _, shared = rate(name, options.long, Path(cache), threads)
            print(
                f"{name}: {time.perf_counter() - began:.0f} s, {used:.0f} s of processor time for the first run",
                file=sys.stderr,
            )
        slow = driven(design, options.operand)
        cells = [name, str(design.pe.count), f"{build:.0f} s", f"{memory:.0f} MiB", options.long, f"{cycles:,}"]
        cells += [f"{speed:,.0f}", f"{threads}: {shared:,.0f}", f"{slow:,.0f}", f"{max(speed, shared) / slow:.0f}"]
        printed.row(cells)
    printed.write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
