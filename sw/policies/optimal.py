"""Every scheme of the space in the model tier, the best of them: what the other policies are measured against."""

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from sw.cost.candidates.evaluator import Judge
from sw.cost.candidates.grids import small_space
from sw.cost.candidates.resident import listed_schemes
from sw.cost.partial_rows import cheaper
from sw.cost.passes import NO_PASSES, Passes
from sw.cost.predict import Prediction
from sw.cost.protocol import Machine
from sw.operands.errors import OperandError
from sw.plan.thresholds import OPTIMAL_BUDGET, SHAPES_A_RUN
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
    others: Callable[[], Iterable[Scheme]] = tuple,
    budget: int = OPTIMAL_BUDGET,
    state: str | None = None,
    **options: Any,
) -> Scheme:
    """Runs schemes in the model tier, the most promising by the cost model first.

    Parameters
    ----------
    A, B: sparse, I x K and K x J.
    seed: of the samples from which the workload's statistics are estimated.
    judge: cycles by the model tier; needed. passes: conversions, of which those of A and B are not part of every scheme.
    others: what the other policies choose. Each is run as well, whatever the budget, where hardware can, so that none is better.
    budget: schemes of the space that are run at most in this call; the best of those known is returned.
    state: file of results so far, one JSON line each; what it holds for these operands, this design and this state of
        the source is not run again, and a call that is interrupted loses nothing.

    The space: tile shapes of :func:`sw.cost.candidates.grids.small_space`, every side of short ranks among them, all six
    orders, B kept or streamed, A or C kept in a half, a quarter or not at all; and lists, of ever fewer rows of A
    (:mod:`sw.cost.candidates.resident`). Of shapes ``SHAPES_A_RUN`` for each run of the budget are predicted, the least
    bounds first: a budget that has all of them leaves nothing out.

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
    space = _space(workload, design, passes, SHAPES_A_RUN * budget)
    known = _Known(Path(state) if state is not None else None, _fingerprint(workload, design))
    best: tuple[int, Scheme] | None = None
    refused: Exception | None = None

    def run(scheme: Scheme) -> None:
        """One of the space that the budget allows, or of another policy."""
        nonlocal best, refused
        cycles = known.get(scheme)
        if cycles is None:
            try:
                cycles = judge(scheme, workload.a, workload.b)
            except (MemoryError, OperandError) as error:
                refused = error  # no room for this one: others are smaller
                return
            known.add(scheme, cycles)
        cycles = passes.over(scheme).whole(cycles)
        if best is None or cycles < best[0]:
            best = cycles, scheme

    for scheme, prediction in space:
        if known.get(scheme) is None:
            if budget < 1:
                continue
            budget -= 1
        run(replace(scheme, predicted=prediction.as_dict()))
    for scheme in others():
        if not scheme.uneven and not (passes.fixes_a and scheme.rewrites_a):
            run(scheme)
    if best is None:
        assert refused is not None  # the budget is one at least
        raise refused
    predicted = {name: number for name, number in best[1].predicted.items() if name != "judged_cycles"}
    return replace(best[1], policy="optimal", predicted=predicted | {"cycles": best[0]}, alternatives=[])


def _space(workload: Workload, design: Machine, passes: Passes, most: int) -> list[tuple[Scheme, Prediction]]:
    """All schemes, of the ``most`` best shapes, the cheapest by the cost model first, each with the passes that it needs."""
    found: dict[str, tuple[Scheme, Prediction]] = {}
    for base in small_space(workload, design, most):
        for order in ORDERS:
            scheme = replace(base, policy="optimal", order=order)
            try:
                scheme.validate(design, workload.I, workload.J, workload.K)
            except SchemeError:
                continue
            counts = dict(zip("ijk", scheme.tiles_per_rank(workload.I, workload.J, workload.K), strict=True))
            moving = "".join(rank for rank in order if counts[rank] > 1)  # orders of ranks with one tile are all alike
            key = f"{moving} {scheme.T_i} {scheme.T_j} {scheme.T_k} {scheme.buffer_bytes} {scheme.mode}"
            if key not in found:
                found[key] = cheaper(workload, design, scheme)
    for scheme, prediction in [] if passes.fixes_a else listed_schemes("optimal", workload, design):
        scheme.validate(design, workload.I, workload.J, workload.K)
        found[f"{scheme.load} {scheme.T_i}"] = scheme, prediction
    whole = ((scheme, prediction.plus(passes.over(scheme))) for scheme, prediction in found.values())
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
        kept = ["order", "T_i", "T_j", "T_k", "buffer_bytes", "fifo_bytes", "mode", "scratch_bytes", "partial_rows"]
        if scheme.load != LOAD_TILE:
            kept.append("load")  # lists follow from T_i
        return json.dumps({name: getattr(scheme, name) for name in kept}, sort_keys=True)

    def get(self, scheme: Scheme) -> int | None:
        return self.cycles.get(self._name(scheme))

    def add(self, scheme: Scheme, cycles: int) -> None:
        self.cycles[self._name(scheme)] = cycles
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"for": self.fingerprint, "scheme": self._name(scheme), "cycles": cycles}) + "\n")
