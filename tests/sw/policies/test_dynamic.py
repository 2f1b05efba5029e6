"""DRT's and HARP's tiles by their definitions, and the rules for lists of tiles."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from sw.formats.memory_csr import ELEMENT_BYTES
from sw.plan.thresholds import SHARES
from sw.policies.registry import schedule
from sw.scheme.errors import SchemeError
from sw.scheme.explicit_tiles import steps
from sw.scheme.scheme import Scheme
from sw.scheme.shares import shared_buffer
from tests.sw.cost.machines import EDGE, TINY
from tests.sw.stats.matrices import MATRICES, banded, canonical, mesh, noise, power_law

MATRIX = {"mesh": mesh(30), "banded": banded(900, 12), "power_law": power_law(900), "noise": noise(700, 700, 0.02)}


def capacities(machine):
    parts, fifo = shared_buffer(machine, SHARES["drt"][0], 0.5)
    return (
        max(parts["A"], int(SHARES["drt"][0] * machine.bytes)) // ELEMENT_BYTES,
        (parts["B"] - fifo["B"]) // ELEMENT_BYTES,
    )


@pytest.mark.parametrize("machine", [TINY, replace(EDGE, bytes=32 << 10)], ids=["tiny", "32K"])
@pytest.mark.parametrize("name", MATRIX)
def test_drt_tiles_fit_and_could_not_have_grown(name, machine):
    """By dense counting: each tile fits; one micro-tile more along any side that was free would not."""
    matrix, side = MATRIX[name], 4
    dense = matrix.toarray() != 0
    size = matrix.shape[0]
    capacity_a, capacity_b = capacities(machine)
    scheme = schedule("drt", matrix, matrix, machine, micro=side)

    def fit_a(i, end_i, k, end_k):
        return dense[i:end_i, k:end_k].sum() + (-(-end_i // side) * side - i) <= capacity_a

    def fit_b(k, end_k, j, end_j):
        return dense[k:end_k, j:end_j].sum() + (-(-end_k // side) * side - k) <= capacity_b

    for i, end_i, j, end_j, k, end_k in scheme.tiles:
        assert fit_a(i, end_i, k, end_k) or end_i - i == side
        assert fit_b(k, end_k, j, end_j)
        free_k, free_j = i == 0, i == 0 and k == 0
        assert end_i == size or not fit_a(i, end_i + side, k, end_k)
        if free_k and end_k < size:
            more = end_k + side
            assert not (fit_a(i, end_i, k, more) and fit_b(k, more, j, end_j))
        if free_j and end_j < size:
            assert not fit_b(k, end_k, j, end_j + side)


def test_drt_grows_k_before_i_before_j():
    """An even matrix: the first tile has grown alike along all three until A's part is full, then along j alone."""
    matrix = noise(2048, 2048, 0.05)
    scheme = schedule("drt", matrix, matrix, replace(EDGE, bytes=64 << 10), micro=8)
    _, end_i, _, end_j, _, end_k = scheme.tiles[0]
    assert 0 <= end_k - end_i <= 16
    assert end_j > end_k


@pytest.mark.parametrize("name", MATRIX)
def test_harp_super_tiles_could_not_have_taken_another_pseudo_tile(name):
    matrix, pseudo = MATRIX[name], 8
    scheme = schedule("harp", matrix, matrix, TINY, pseudo=pseudo)
    parts, fifo = scheme.buffer_bytes["B"], scheme.fifo_bytes["B"]
    capacity = (parts - fifo) // ELEMENT_BYTES - (TINY.lanes - 1)

    def asked(i, end):
        used = np.unique(matrix.indices[matrix.indptr[i] : matrix.indptr[end]])
        return int(np.diff(matrix.indptr)[used].sum()) + len(used)

    for i, end, *_ in scheme.tiles:
        assert asked(i, end) <= capacity or end - i <= pseudo
        if end < matrix.shape[0]:
            assert end % pseudo == 0
            assert asked(i, min(end + pseudo, matrix.shape[0])) > capacity


def test_both_adapt_to_what_is_there():
    """The dense corner gets smaller tiles than the sparse rest."""
    matrix = noise(1024, 1024, 0.005).tolil()
    matrix[:256, :256] = 1
    matrix = type(MATRIX["noise"])(matrix.tocsr())
    drt = schedule("drt", matrix, matrix, replace(EDGE, bytes=64 << 10))
    areas = {j: (end_j - j) * (end_k - k) for j, end_j, k, end_k in reversed(steps(drt.tiles)) if k == 0}
    assert max(areas.values()) > 2 * areas[0]
    matrix = canonical(sp.block_diag([banded(512, 40), banded(3000, 1)]))
    harp = schedule("harp", matrix, matrix, replace(EDGE, bytes=32 << 10))
    heights = [t[1] - t[0] for t in harp.tiles]
    assert max(heights) > 2 * min(heights)


@settings(max_examples=40, deadline=None)
@given(
    name=st.sampled_from(["drt", "harp"]),
    sides=st.tuples(*[st.integers(1, 80)] * 3),
    density=st.floats(0, 0.6),
    seed=st.integers(0, 99),
)
def test_tiles_cover_everything_once(name, sides, density, seed):
    I, J, K = sides  # noqa: E741 - extents, as in the papers
    scheme = schedule(name, noise(I, K, density, seed), noise(K, J, density, seed + 1), TINY)
    seen = np.zeros((I, J, K), int)
    for i, end_i, j, end_j, k, end_k in scheme.tiles:
        seen[i:end_i, j:end_j, k:end_k] += 1
    assert (seen == 1).all()
    assert Scheme.from_json(scheme.to_json()) == scheme


BOX = [0, 9, 0, 9, 0, 9]


@pytest.mark.parametrize(
    ("tiles", "match"),
    [
        (3, r"tiles = 3: must be a list of tiles$"),
        ([[0, 9, 0, 9, 0]], r"tiles\[0\] = \[0, 9, 0, 9, 0\]: must be \[i, end_i"),
        ([[0, 9, 0, 9, 5, 5]], r"tiles\[0\]"),
        ([[0, 9.0, 0, 9, 0, 9]], r"tiles\[0\]"),
    ],
)
def test_tiles_that_are_none_are_refused(tiles, match):
    scheme = schedule("drt", MATRICES["one"], MATRICES["one"], TINY)
    with pytest.raises(SchemeError, match="^scheme: " + match):
        replace(scheme, tiles=tiles)


@pytest.mark.parametrize(
    ("tiles", "message"),
    [
        ([[0, 9, 0, 9, 0, 8]], "length of tiles = 1: must be more: the tiles end before i, j, k = 9, 9, 9$"),
        ([[0, 9, 0, 9, 0, 4], [0, 9, 0, 9, 5, 9]], r"tiles\[1\] = \[0, 9, 0, 9, 5, 9\]: "),
        ([[0, 9, 0, 9, 0, 10]], r"tiles\[0\] = "),
        ([[0, 5, 0, 9, 0, 9], [5, 9, 0, 9, 0, 8]], r"tiles\[1\] = "),
        ([[0, 9, 0, 4, 0, 5], [0, 9, 0, 5, 5, 9]], r"tiles\[1\] = "),
        ([BOX, BOX], r"tiles\[1\] = "),
    ],
)
def test_tiles_that_leave_out_or_overlap_are_refused(tiles, message):
    matrix = noise(9, 9, 0.5)
    scheme = replace(schedule("drt", matrix, matrix, TINY), tiles=tiles)
    with pytest.raises(SchemeError, match=f"^scheme: {message}"):
        scheme.validate(TINY, 9, 9, 9)


def listed(*tiles, **fields):
    """A scheme of these tiles of 9 x 9 x 9, with their longest sides."""
    matrix = noise(9, 9, 0.5)
    sides = {f"T_{rank}": max(t[r + 1] - t[r] for t in tiles) for rank, r in zip("ijk", (0, 2, 4), strict=True)}
    return replace(schedule("drt", matrix, matrix, TINY), **({"tiles": [*tiles]} | sides | fields))


HALVES = [[0, 4, 0, 9, 0, 9], [4, 9, 0, 9, 0, 9]]
CUT_J = [[0, 9, 0, 4, 0, 9], [0, 9, 4, 9, 0, 9]]
CUT_K = [[0, 9, 0, 9, 0, 4], [0, 9, 0, 9, 4, 9]]
MODE = {"A": "streaming", "B": "buffering", "C": "streaming"}


@pytest.mark.parametrize(
    ("tiles", "fields", "message"),
    [
        (
            CUT_K,
            {"load": "used"},
            r"tiles\[0\] = \[0, 9, 0, 9, 0, 4\]: must be \[0, 9, 0, 9, 0, 9\]: j and k are whole",
        ),
        (
            CUT_J,
            {"load": "used"},
            r"tiles\[0\] = \[0, 9, 0, 4, 0, 9\]: must be \[0, 9, 0, 9, 0, 9\]: j and k are whole",
        ),
        (HALVES, {"T_i": 4}, "T_i = 4: must be 5, the longest side of tiles along i$"),
        (HALVES, {"T_i": 9}, "T_i = 9: must be 5, the longest side of tiles along i$"),
        (CUT_K, {"T_k": 1}, "T_k = 1: must be 5, the longest side of tiles along k$"),
        (CUT_J, {"T_j": 1}, "T_j = 1: must be 5, the longest side of tiles along j$"),
        (HALVES, {"mode": MODE | {"A": "buffering"}}, "mode = .*: must be buffering for B alone beside tiles$"),
        (HALVES, {"mode": MODE | {"B": "streaming"}, "load": "used"}, "mode = .*: must be buffering for B alone"),
        (CUT_K, {"mode": MODE | {"C": "buffering"}}, "mode = .*: must be buffering for B alone"),
        (HALVES, {"order": "ijk"}, "order = 'ijk': must be jki beside tiles: i moves first, then k, then j$"),
    ],
)
def test_what_no_model_does_with_a_list_is_refused(tiles, fields, message):
    listed(BOX).validate(TINY, 9, 9, 9)
    listed(*HALVES).validate(TINY, 9, 9, 9)
    listed(*HALVES, load="used").validate(TINY, 9, 9, 9)
    with pytest.raises(SchemeError, match=f"^scheme: {message}"):
        listed(*tiles, **fields).validate(TINY, 9, 9, 9)


def test_loading_what_is_used_goes_with_tiles():
    scheme = schedule("drt", MATRICES["one"], MATRICES["one"], TINY)
    with pytest.raises(
        SchemeError, match="^scheme: load = 'used': must be tile, list, reuse, planned, or used or window beside tiles$"
    ):
        replace(scheme, tiles=[], load="used")


@pytest.mark.parametrize(("name", "option"), [("drt", {"micro": 0}), ("harp", {"pseudo": True})])
def test_impossible_options_are_refused(name, option):
    with pytest.raises(SchemeError, match=f"^scheme: option {next(iter(option))} = "):
        schedule(name, MATRICES["one"], MATRICES["one"], TINY, **option)
