"""Ranges of k: schemes that say them are read as schemes whose tiles load what they use; what bands gain by that."""

import json
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from gen.design import load_design
from sw.cost.candidates.evaluator import Bench
from sw.cost.candidates.resident import listed_schemes
from sw.cost.predict import predict
from sw.model.judge import judge
from sw.model.tier import simulate
from sw.operands import to_csr
from sw.operands.operand import Operand, canonical_csr
from sw.plan.plan import plan
from sw.policies.registry import schedule
from sw.scheme.errors import SchemeError
from sw.scheme.scheme import Scheme
from sw.stats.pattern import Pattern
from sw.stats.workload import Workload
from tests.sw.stats.matrices import banded, canonical, noise

TINY = load_design("tiny")
SMALL = load_design("edge", ["buffer.bytes=16384", "buffer.fifo_bytes=1024"])
SHAPE = (10, 20, 30)
# As `to_json` wrote it while tiles said which range of k they span.
DOCUMENT = {
    "policy": "forced",
    "order": "kij",
    "T_i": 4,
    "T_j": 20,
    "T_k": 12,
    "buffer_bytes": {"A": 256, "B": 1024, "C": 0},
    "fifo_bytes": {"A": 64, "B": 128},
    "mode": {"A": "streaming", "B": "buffering", "C": "streaming"},
    "tuning": False,
    "tiles": [[0, 4, 0, 20, 0, 12], [4, 8, 0, 20, 5, 5], [8, 10, 0, 20, 18, 30]],
    "load": "window",
    "seconds": 0.5,
    "predicted": {"cycles": 9, "dram_bytes": 7},
    "alternatives": [],
}


def test_a_scheme_of_windows_loads_what_its_tiles_use() -> None:
    found = Scheme.from_json(json.dumps(DOCUMENT)).clip(*SHAPE)
    found.validate(TINY, *SHAPE)
    assert (found.load, found.tiles, found.T_i, found.T_j, found.T_k, found.order) == ("list", [], 4, 20, 30, "kij")
    assert found.gathers and not found.uneven and found.buffer_bytes == DOCUMENT["buffer_bytes"]
    assert found.seconds == 0.5 and found.predicted == DOCUMENT["predicted"]
    assert Scheme.from_json(found.to_json()) == found
    assert found.tiles_per_rank(*SHAPE) == (3, 1, 1)


@pytest.mark.parametrize("T_i", [4, 16, 60])
@pytest.mark.parametrize("name", ["narrow band", "wide band", "noise"])
def test_a_scheme_of_windows_still_runs(name: str, T_i: int) -> None:
    A = OPERANDS[name]
    a = to_csr(Operand(name="A", source="made here", matrix=canonical_csr(A, "A")), SMALL.pe.value)
    side, tiles = A.shape[0], []
    for first in range(0, side, T_i):
        end = min(side, first + T_i)
        used = A.indices[A.indptr[first] : A.indptr[end]]
        tiles.append(
            [first, end, 0, side, int(used.min()), int(used.max()) + 1] if len(used) else [first, end, 0, side, 0, 0]
        )
    longest = max(tile[5] - tile[4] for tile in tiles)
    parts, fifo = {"A": 256, "B": 16128, "C": 0}, {"A": 64, "B": 1024}
    given = DOCUMENT | {
        "T_i": T_i,
        "T_j": side,
        "T_k": longest,
        "tiles": tiles,
        "buffer_bytes": parts,
        "fifo_bytes": fifo,
    }
    found = Scheme.from_dict(given).clip(side, side, side)
    found.validate(SMALL, side, side, side)
    counters = simulate(SMALL, plan(found, a, a, SMALL)).counters
    assert counters["macs"] == int(np.diff(A.indptr)[A.indices].sum()) and counters["tiles_total"] == len(tiles)


def test_a_band_needs_no_list() -> None:
    """All rows of B from the first to the last, each used: the tiles' windows are ranges of k."""
    for A, ranges in (
        (banded(900, 4), True),
        (banded(900, 4).T @ banded(900, 4), True),
        (noise(200, 200, 0.02), False),
    ):
        a = Pattern.of(canonical(A))
        scheme = replace(listed_schemes("x", Workload(a, a, lanes=2), SMALL)[0][0], T_i=20)
        met = plan(scheme, a, a, SMALL)
        assert met.rows_of_b is not None and (met.rows_of_b.rows is None) is ranges


def with_tile(number: int, *box: object) -> dict:
    """``DOCUMENT`` with one tile changed."""
    return {"tiles": [list(box) if n == number else tile for n, tile in enumerate(DOCUMENT["tiles"])]}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (with_tile(1, 4, 8, 0, 20, 6, 5), "tiles[1]"),
        (with_tile(2, 8, 10, 0, 20, 18), "tiles[2]"),
        (with_tile(1, 4, 8, 0, 20, -1, 5), "tiles[1]"),
        (with_tile(1, 4, 8, 0, 20, True, 5), "tiles[1]"),
        (with_tile(0, 0, 0, 0, 20, 0, 5), "tiles[0]"),
        ({"tiles": []}, "load"),
        ({"tiles": 7}, "load"),
        ({"load": "windows"}, "load"),
        ({"load": ["window"]}, "load"),
    ],
)
def test_what_is_no_window_is_refused(change: dict, field: str) -> None:
    with pytest.raises(SchemeError) as found:
        Scheme.from_dict(DOCUMENT | change)
    assert found.value.field == field


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"mode": DOCUMENT["mode"] | {"A": "buffering"}}, "mode"),
        ({"mode": DOCUMENT["mode"] | {"B": "streaming"}}, "mode"),
        ({"tuning": True}, "tuning"),
        ({"buffer_bytes": {"A": 256, "B": 100, "C": 0}}, "buffer_bytes.B"),
    ],
)
def test_what_does_not_go_with_windows_is_refused(change: dict, field: str) -> None:
    with pytest.raises(SchemeError) as found:
        Scheme.from_dict(DOCUMENT | change).clip(*SHAPE).validate(TINY, *SHAPE)
    assert found.value.field == field


def test_the_dataflows_without_hardware_have_none() -> None:
    design = load_design("server", ["pe.dataflow=outer"])
    plain = schedule("uniform", banded(60, 3), banded(60, 3), design)
    with pytest.raises(SchemeError, match=r"tiles = \[\[0, 60, 0, 60, 0, 60\]\]: must be left out"):
        replace(plain, tiles=[[0, 60, 0, 60, 0, 60]], load="used").validate(design, 60, 60, 60)
    with pytest.raises(SchemeError, match=r"load = 'list': must be left out"):
        replace(plain, load="list").validate(design, 60, 60, 60)
    with pytest.raises(SchemeError, match="tuning = True: must be left out"):
        replace(plain, tuning=True).validate(design, 60, 60, 60)


OPERANDS = {"narrow band": banded(900, 4), "wide band": banded(400, 30), "noise": noise(200, 200, 0.02)}


@pytest.mark.parametrize("design", [TINY, SMALL], ids=["tiny", "16K"])
@pytest.mark.parametrize("name", OPERANDS)
def test_predicted_traffic_is_close_to_what_moves(name: str, design) -> None:
    A = OPERANDS[name]
    workload = Workload(A, A, lanes=design.lanes, statistics="exact")
    found = listed_schemes("auto", workload, design)[:4]
    assert found
    a = to_csr(Operand(name="A", source="made here", matrix=canonical_csr(A, "A")), design.pe.value)
    for scheme, prediction in found:
        scheme.validate(design, *A.shape, A.shape[1])
        moved = simulate(design, plan(scheme, a, a, design)).dram_bytes
        assert moved is not None
        total = sum(sum(kinds.values()) for kinds in moved.values())
        # Rows of more leaves than a job takes pass through scratch memory: on `tiny` most do, which is an estimate.
        assert prediction.dram_bytes == pytest.approx(total, rel=0.1 if design is SMALL else 0.3)


def cycles(scheme: Scheme, A: sp.csr_array, design) -> int:
    return judge(design)(scheme, Pattern.of(A), Pattern.of(A))


def test_auto_keeps_rows_of_a_band_in_place() -> None:
    A = OPERANDS["narrow band"]
    chosen = schedule("auto", A, A, SMALL, judge=judge(SMALL))
    without = schedule("auto", A, A, SMALL, judge=judge(SMALL), lists=False)
    assert chosen.gathers and not without.gathers
    assert cycles(chosen, A, SMALL) < 0.7 * cycles(without, A, SMALL)
    alone = schedule("auto", A, A, SMALL)
    assert alone.gathers and alone.cycles == min(alone.cycles, *(other["cycles"] for other in alone.alternatives))


@pytest.mark.parametrize("design", [TINY, SMALL], ids=["tiny", "16K"])
@pytest.mark.parametrize("name", OPERANDS)
def test_auto_is_no_worse_than_a_grid(name: str, design) -> None:
    A = OPERANDS[name]
    chosen, grid = schedule("auto", A, A, design, judge=judge(design)), schedule("hyte", A, A, design)
    assert cycles(chosen, A, design) <= cycles(grid, A, design)


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_some_rows_tell_the_cycles_of_all(share: float) -> None:
    """The first tiles of a sample load more than they do among all rows."""
    A = noise(3000, 3000, 0.0013)
    scheme = schedule("auto", A, A, SMALL, load="planned")
    workload = Workload(A, A, lanes=SMALL.lanes, statistics="rows")
    prediction = predict(workload, SMALL, scheme)
    bench = Bench(workload, SMALL, judge(SMALL), 1e12)
    assert bench.cycles(scheme, prediction, share) == pytest.approx(bench.cycles(scheme, prediction, 1.0), rel=0.02)
