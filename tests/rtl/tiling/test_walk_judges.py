"""What judges the tiling controller by its contract: takes a right walk, and no tile of which a field is wrong."""

from typing import Any

import numpy as np
import pytest

from sw.model.walk import Tile, TileWalk
from verif.benches.walk import ORDERS, Ring, ShapedWalk, Walk, WindowWalk, window

EXTENT, TILE = (10, 13, 7), (4, 5, 3)
COUNTS = (3, 3, 3)
# Of these any value may be right: what they mean is seen at later tiles.
MEANT_LATER = ("advance_a", "advance_b", "carry")


def occupied(density: float) -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    return rng.random((3, 3)) < density, rng.random((3, 3)) < density


def record(tile: Tile, last: bool) -> dict[str, int]:
    """As the controller announces it."""
    names = ("i", "j", "k")
    fields = {f"begin_{rank}": getattr(tile, rank) for rank in names}
    fields |= {f"size_{rank}": getattr(tile, f"size_{rank}") for rank in names}
    for name in ("carry", "partial_in", "k_step", "last_k", "whole_j", "whole_k"):
        fields[name] = int(getattr(tile, name))
    for name in ("advance_a", "advance_b", "from_pointers_a", "from_pointers_b"):
        fields[name] = int(getattr(tile, name))
    fields["last_j"] = int(tile.j + tile.size_j == EXTENT[1])
    position_index = tile.index_j * (EXTENT[0] + COUNTS[0]) + tile.i + tile.index_i
    return fields | {"position_index": position_index, "step": tile.k // TILE[2], "last": int(last)}


def records(order: str, density: float, *, keep_a: bool = False) -> list[dict[str, int]]:
    tiles = list(TileWalk(EXTENT, TILE, order, *occupied(density), line_bits=128, keep_a=keep_a))
    return [record(tile, n == len(tiles) - 1) for n, tile in enumerate(tiles)]


def walk(order: str, density: float, **options: bool) -> Walk:
    return Walk(EXTENT, TILE, order, *occupied(density), **options)


def shaped(order: str, density: float) -> ShapedWalk:
    """Operands that have something wherever their maps say so."""
    a, b = occupied(density)
    a = np.kron(a, np.ones((4, 3), np.bool_))[: EXTENT[0], : EXTENT[2]]
    b = np.kron(b, np.ones((3, 5), np.bool_))[: EXTENT[2], : EXTENT[1]]
    return ShapedWalk(EXTENT, TILE[0], order, a.astype(np.bool_), b.astype(np.bool_))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("density", [1.0, 0.5])
@pytest.mark.parametrize("judge", [walk, shaped])
def test_right_walks_are_taken(order: str, density: float, judge: Any) -> None:
    followed = judge(order, density)
    for got in records(order, density):
        assert followed.check(got) == []
    assert followed.ended if judge is walk else followed.end() == []


@pytest.mark.parametrize("order", ORDERS)
def test_right_walks_with_a_kept_are_taken(order: str) -> None:
    followed = walk(order, 0.6, keep_a=True)
    assert [line for got in records(order, 0.6, keep_a=True) for line in followed.check(got)] == []
    assert followed.ended


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("judge", [walk, shaped])
def test_a_wrong_field_of_any_tile_is_told(order: str, judge: Any) -> None:
    right = records(order, 1.0)
    for number, name in [(n, name) for n in range(len(right)) for name in right[n] if name not in MEANT_LATER]:
        if name.startswith("from_pointers"):
            # From the pointers is right wherever a row has not been passed; from positions everywhere but there.
            continue
        if name == "step" and judge is shaped:
            continue  # where shapes change no parts of rows are joined
        wrong = [dict(got) for got in right]
        wrong[number][name] += -1 if wrong[number][name] == 1 and not name.startswith(("begin", "size", "pos")) else 1
        followed = judge(order, 1.0)
        told = [line for got in wrong[: number + 1] for line in followed.check(got)]
        assert told or (judge is shaped and followed.end()), f"{name} of tile {number}"


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("judge", [walk, shaped])
def test_a_tile_that_is_left_out_is_told(order: str, judge: Any) -> None:
    right = records(order, 1.0)
    for number in range(len(right)):
        followed = judge(order, 1.0)
        told = [line for got in right[:number] + right[number + 1 :] for line in followed.check(got)]
        assert told or (followed.end() if judge is shaped else not followed.ended), f"tile {number}"


@pytest.mark.parametrize("order", ["ijk", "jki"])
def test_positions_that_have_passed_a_tile_are_told(order: str) -> None:
    """All sweeps go on from positions that the first has left, none begins again from the pointers."""
    right = records(order, 1.0)
    followed = walk(order, 1.0)
    told = [line for got in right for line in followed.check(got | {"from_pointers_a": 0, "from_pointers_b": 0})]
    assert any("positions are at column" in line for line in told)


def test_a_wrong_window_is_told() -> None:
    windows = [window(0, 3, 0, 3), window(1, 3, 2), window(4, 0), window(2, 2, 2)]
    for number in range(len(windows)):
        for name, change in (("begin_k", 1), ("size_k", 1), ("carry", 1), ("position_index", 1), ("last", 1)):
            followed = WindowWalk((7, 9, 8), (2, 9, 4), windows, Ring(2, 8, 4, 9))
            places = [place for _, place in followed.todo]
            for n, want in enumerate(windows):
                got: dict[str, Any] = {
                    "begin_i": 2 * n, "size_i": min(2, 7 - 2 * n), "begin_j": 0, "size_j": 9, "begin_k": want["begin"],
                    "size_k": want["size"], "carry": int(not want["size"]), "k_step": int(n == 0),
                    "position_index": 3 * n, "last": int(n == 3), "last_j": 1, "last_k": 1, "whole_j": 1, "whole_k": 1,
                    "from_pointers_a": 1, "from_pointers_b": 1, "partial_in": 0, "advance_a": 0, "advance_b": 0,
                    "ring": places[n],
                }  # fmt: skip
                if n == number:
                    assert followed.check(got | {name: got[name] ^ change}), f"{name} of window {number}"
                    break
                assert followed.check(got) == []
