"""Tables of D2T2 in the documentation: two cheap rows of each are made anew; and traffic of DRT and Tailors against walks."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.csf_machine.pair import Pair
from benchmarks.csf_machine.rivals import MICRO, drt_boxes, drt_traffic, overbooked_bytes, swiftiles_side
from benchmarks.d2t2 import FIGURES, without_parts
from benchmarks.table_markers import cells
from sw.operands import load

PAGE = Path(__file__).parents[2] / "docs" / "papers.md"
CHEAP = ("pyamg:airfoil", "pyamg:unit_cube")


@pytest.mark.parametrize("figure", FIGURES)
def test_two_rows_of_the_page(figure: str) -> None:
    measure, table = FIGURES[figure]
    known = cells(PAGE.read_text(encoding="utf-8"), f"D2T2, {figure}")
    text = table([measure(operand, 128) for operand in CHEAP])
    marked = f"<!-- x: y -->\n{text}\n<!-- end of x -->"
    for operand in CHEAP:
        assert cells(marked, "x")[operand] == known[operand]


def dense(pattern) -> np.ndarray:
    found = np.zeros((pattern.rows, pattern.columns), np.int64)
    found[np.repeat(np.arange(pattern.rows), pattern.row_lengths), pattern.coordinates] = 1
    return found


def csf(tile: np.ndarray) -> int:
    """Words of a tile, counted from the dense one."""
    return 2 * int(np.count_nonzero(tile)) + 2 * int(tile.any(axis=1).sum()) + 3 if tile.any() else 0


@pytest.mark.parametrize("T", [32, 48])
@pytest.mark.parametrize("repacked", [False, True])
def test_drt_moves_what_a_walk_over_dense_boxes_does(T: int, repacked: bool) -> None:
    pair = Pair(load("rmat:10:24:seed=3"), T)
    a, b = dense(pair.a), dense(pair.b)
    boxes = drt_boxes(pair).tolist()
    covered = np.zeros([-(-size // MICRO) for size in pair.extent], np.int64)
    words, read = 0, set()
    for i0, i1, j0, j1, k0, k1 in boxes:
        covered[i0:i1, j0:j1, k0:k1] += 1
        of_a = a[i0 * MICRO : i1 * MICRO, k0 * MICRO : k1 * MICRO]
        of_b = b[k0 * MICRO : k1 * MICRO, j0 * MICRO : j1 * MICRO]

        def micro(box: np.ndarray) -> int:
            sides = [range(0, n, MICRO) for n in box.shape]
            return sum(csf(box[r : r + MICRO, c : c + MICRO]) for r in sides[0] for c in sides[1])

        assert micro(of_a) <= pair.words and micro(of_b) <= pair.words
        if of_a.any() and of_b.any():
            size = csf if repacked else micro
            words += size(of_b) + csf(of_a @ of_b) + (0 if (i0, k0) in read else size(of_a))
            read.add((i0, k0))
    assert (covered == 1).all() and len(boxes) > 4
    assert drt_traffic(pair, repacked=repacked) == 4 * words


def test_c_is_counted_once_or_not_at_all() -> None:
    """Against tiles of C of a dense product; where k is whole there is nothing to leave out."""
    pair = Pair(load("rmat:9:12:seed=1"), 12, "ijk")
    c = dense(pair.a) @ dense(pair.b)
    I, J, K = pair.extent  # noqa: E741 - extents, as in the papers
    whole = sum(csf(c[i : i + 60, j : j + 90]) for i in range(0, I, 60) for j in range(0, J, 90))
    for shape in ((60, 90, 30), (60, 90, K)):
        moved = pair.exact(shape)
        assert without_parts(pair, shape, "A and B") == moved.A + moved.B
        assert without_parts(pair, shape, "C once") == moved.A + moved.B + 4 * whole
        assert (moved.C == 4 * whole) == (shape[2] == K)


def test_what_streams_again_is_what_a_walk_over_pairs_of_tiles_says() -> None:
    pair = Pair(load("rmat:9:12:seed=1"), 12, "ijk")
    a, b = dense(pair.a), dense(pair.b)
    side = 60
    words, both = 0, 0
    for i, j, k in np.ndindex(*(-(-size // side) for size in pair.extent)):
        of_a, of_b = a[i * side :, k * side :][:side, :side], b[k * side :, j * side :][:side, :side]
        over_a, over_b = csf(of_a) - pair.words, csf(of_b.T) - pair.words
        if over_a > 0 and over_b > 0:
            both += 1
            waits = (of_a.any(axis=1).sum() - 1) * over_b, (of_b.any(axis=0).sum() - 1) * over_a
            words += int(min(waits))
    assert both > 2 and overbooked_bytes(pair, (side, side, side)) == 4 * words
    assert overbooked_bytes(pair, pair.prescient()) == 0


def test_a_tenth_of_the_squares_overbooks() -> None:
    pair = Pair(load("rmat:10:8:seed=1"), 32)
    side = swiftiles_side(pair)
    tiles = [csf(dense(pair.a)[r : r + side, c : c + side]) for r in range(0, 1024, side) for c in range(0, 1024, side)]
    assert 0.02 < np.mean([words > pair.words for words in tiles]) < 0.3
    assert side > pair.prescient()[0]


def test_the_rest_of_tilefactor_goes_to_k() -> None:
    """Where i and j have ended: a buffer of so many tiles is used, none overflows."""
    pair = Pair(load("banded:600:3"), 32)
    short = pair.reshaped(7)
    grown = pair.sized(short)
    assert grown[:2] == pair.extent[:2] and grown[2] > 4 * short[2]
    assert pair.largest(grown) <= pair.words < 3 * pair.largest(grown)
