"""Every scheme of the space in the model tier, the best of them: what the other policies are measured against."""

import hashlib
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from sw.cost.candidates.evaluator import Judge
from sw.cost.candidates.grids import tiling_space
from sw.cost.candidates.resident import listed_schemes
from sw.cost.passes import NO_PASSES, Passes
from sw.cost.predict import Prediction, predict
from sw.cost.protocol import Machine
from sw.operands.errors import OperandError
from sw.plan.thresholds import OPTIMAL_BUDGET
from sw.scheme.errors import SchemeError
from sw.scheme.scheme import Scheme
from sw.scheme.terms import LOAD_TILE, ORDERS
from sw.sources import source_digest
from sw.stats.workload import Workload

__all__ = ["optimal"]


def optimal(
    A: sp.csr_array,
    B: sp.csr_array,
    design: Machine,
    *,
    seed: int = 0,
    judge: Judge | None = None,
    passes: Passes = NO_PASSES,
    budget: int = OPTIMAL_BUDGET,
    state: str | None = None,
    **options: Any,
) -> Scheme:
    """Runs schemes in the model tier, the most promising by the cost model first.

    Parameters
    ----------
    A, B: sparse, I x K and K x J.
    seed: of the samples from which the workload's statistics are estimated.
    judge: cycles by the model tier; needed. passes: conversions, of which that of A is not part of every scheme.
    budget: schemes that are run at most in this call; the best of those known is returned.
    state: file of results so far, one JSON line each; what it holds for these operands, this design and this state of
        the source is not run again, and a call that is interrupted loses nothing.

    The space: sides that are powers of two or whole along all three ranks, all six orders, B kept or streamed, A kept in a
    half, a quarter or not at all; and lists, of ever fewer rows of A (:mod:`sw.cost.candidates.resident`).

    Raises SchemeError without a judge, for a budget that is no integer of at least 1, for a ``state`` that cannot be read
    and where the design's buffer holds no tile; TypeError for any other option; OSError where ``state`` cannot be written.
    """
    if options:
        raise TypeError(f"optimal takes the options budget and state, not {', '.join(options)}")
    if isinstance(budget, bool) or not isinstance(budget, int) or budget < 1:
        raise SchemeError("option budget", budget, "an integer of at least 1")
    if judge is None:
        raise SchemeError("policy", "optimal", "used where the model tier can be run")
    workload = Workload(A, B, lanes=design.lanes, seed=seed)
    space = _space(workload, design, passes)
    known = _Known(Path(state) if state is not None else None, _fingerprint(workload, design))
    best: tuple[int, int, Scheme, Prediction] | None = None
    refused: Exception | None = None
    for number, (scheme, prediction) in enumerate(space):
        cycles = known.get(scheme)
        if cycles is None and budget > 0:
            budget -= 1
            try:
                cycles = judge(scheme, workload.a, workload.b)
            except (MemoryError, OperandError) as error:
                refused = error  # no room for this one: others are smaller
                continue
            known.add(scheme, cycles)
        if cycles is not None:
            cycles += passes.over_a(scheme).cycles
            if best is None or cycles < best[0]:
                best = cycles, number, scheme, prediction
    if best is None:
        assert refused is not None  # the budget is one at least
        raise refused
    return replace(best[2], policy="optimal", predicted=best[3].as_dict() | {"cycles": best[0]})


def _space(workload: Workload, design: Machine, passes: Passes) -> list[tuple[Scheme, Prediction]]:
    """All schemes, the cheapest by the cost model first, each with the pass over A that it needs."""
    found: dict[str, tuple[Scheme, Prediction]] = {}
    for base in tiling_space(workload, design, tile_i=True):
        for order in ORDERS:
            scheme = replace(base, order=order)
            try:
                scheme.validate(design, workload.I, workload.J, workload.K)
            except SchemeError:
                continue
            counts = dict(zip("ijk", scheme.tiles_per_rank(workload.I, workload.J, workload.K), strict=True))
            moving = "".join(rank for rank in order if counts[rank] > 1)  # orders of ranks with one tile are all alike
            key = f"{moving} {scheme.T_i} {scheme.T_j} {scheme.T_k} {scheme.buffer_bytes} {scheme.mode}"
            if key not in found:
                found[key] = scheme, predict(workload, design, scheme)
    for scheme, prediction in [] if passes.fixes_a else listed_schemes("optimal", workload, design):
        scheme.validate(design, workload.I, workload.J, workload.K)
        found[f"{scheme.load} {scheme.T_i}"] = scheme, prediction
    whole = ((scheme, prediction.plus(passes.over_a(scheme))) for scheme, prediction in found.values())
    return sorted(whole, key=lambda c: (c[1].cycles, c[1].dram_bytes))


def _fingerprint(workload: Workload, design: Machine) -> str:
    """Names the operands' patterns, what the model knows of the design, and the model itself."""
    digest = hashlib.sha256()
    for matrix in (workload.a, workload.b):
        digest.update(np.array([matrix.rows, matrix.columns], np.int64).tobytes())
        digest.update(matrix.pointers.tobytes())
        digest.update(matrix.coordinates.tobytes())
    digest.update(repr(design).encode())
    digest.update(source_digest(("sw",)).encode())
    return digest.hexdigest()[:32]


class _Known:
    """Results of earlier runs, in a file where there is one."""

    def __init__(self, path: Path | None, fingerprint: str) -> None:
        self.path = path
        self.fingerprint = fingerprint
        self.cycles: dict[str, int] = {}
        if path is None or not path.exists():
            return
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise SchemeError("option state", str(path), f"a file that can be read ({error.strerror})") from None
        for line in lines:
            try:
                entry = json.loads(line)
                if entry["for"] == fingerprint:
                    self.cycles[entry["scheme"]] = int(entry["cycles"])
            except (ValueError, KeyError, TypeError):
                continue  # a line that an interruption cut short

    @staticmethod
    def _name(scheme: Scheme) -> str:
        kept = ["order", "T_i", "T_j", "T_k", "buffer_bytes", "fifo_bytes", "mode"]
        if scheme.load != LOAD_TILE:
            kept.append("load")  # lists follow from T_i
        return json.dumps({name: asdict(scheme)[name] for name in kept}, sort_keys=True)

    def get(self, scheme: Scheme) -> int | None:
        return self.cycles.get(self._name(scheme))

    def add(self, scheme: Scheme, cycles: int) -> None:
        self.cycles[self._name(scheme)] = cycles
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"for": self.fingerprint, "scheme": self._name(scheme), "cycles": cycles}) + "\n")
