"""Overbooked tiles against a buffer that is filled word by word, on operands drawn from the density model."""

from collections import deque
from pathlib import Path

import numpy as np
import pytest

from sw.analytic.analysis import Analysis, InvalidMapping, analyze
from sw.analytic.errors import SpecError
from sw.analytic.explain import explain
from sw.analytic.result import record
from sw.analytic.spec.load import load_spec

SPEC = Path("sparse_product")
SIDE, TILES, PASSES = 64, 8, 8
# Words for B and Z: K x N = 64 x 8 and M x N = 8 x 8.
OTHERS = SIDE * 8 + SIDE // TILES * 8


def analysed(density: float, capacity: int, fifo: int, *more: str) -> Analysis:
    """Tiles of 8 rows of A, each used for eight blocks of columns of B. A may be too large for its part of the buffer."""
    changes = (
        f"problem.instance.densities.A.density={density}",
        f'mapping.DRAM={{target: DRAM, type: temporal, factors: ["M={TILES}", "N={PASSES}"], permutation: [N, M]}}',
        f'mapping.Buffer={{target: Buffer, type: temporal, factors: ["M={SIDE // TILES}", "K={SIDE}"], permutation: [K, M]}}',
        "architecture.nodes.DRAM.sparse_optimizations={representation_format: {data_spaces: [{name: A, "
        "ranks: [{format: UOP}, {format: UOP}, {format: CP}]}]}}",
        f"architecture.nodes.Buffer.attributes.depth={capacity + OTHERS}",
        "architecture.nodes.Buffer.attributes.overbooks=A",
        f"architecture.nodes.Buffer.attributes.fifo_words={fifo}",
    )
    return analyze(load_spec([SPEC], (*changes, *more)))


def fetched(words: int, capacity: int, fifo: int) -> int:
    """Words that a buffer fetches while a tile is read from its first word to its last, several times over.

    While the buffer has space each word stays. The first that finds none makes the last ``fifo`` places a queue, in which a word
    takes the place of the oldest.
    """
    count, stays, stream = 0, set(), deque[int]()
    limit = capacity
    for _ in range(PASSES):
        for word in range(words):
            if word in stays or word in stream:
                continue
            count += 1
            if len(stays) < limit:
                stays.add(word)
                continue
            if limit == capacity:
                limit = capacity - fifo
                last = sorted(stays)[limit:]
                stays -= set(last)
                stream = deque(last, maxlen=fifo)
            stream.append(word)
    return count


def test_the_buffer_by_hand():
    """Four places, two of them a queue, a tile of six: words 2 to 5 come anew at each pass."""
    assert fetched(6, 4, 2) == 6 + (PASSES - 1) * 4 and fetched(4, 4, 2) == 4


@pytest.mark.parametrize("fifo", [1, 8])
@pytest.mark.parametrize(("density", "capacity"), [(0.1, 48), (0.1, 54), (0.1, 60), (0.3, 150), (0.02, 12)])
def test_traffic_of_drawn_operands(density, capacity, fifo):
    found = analysed(density, capacity, fifo)
    buffer, dram = found.sparse.counters[1, 0], found.sparse.counters[2, 0]
    random = np.random.default_rng(7)
    nonzeros = int(np.ceil(density * SIDE * SIDE))
    exact = []
    for _ in range(200):
        flat = np.zeros(SIDE * SIDE, dtype=bool)
        flat[random.choice(flat.size, nonzeros, replace=False)] = True
        tiles = flat.reshape(TILES, -1).sum(axis=1).tolist()
        exact.append(sum(fetched(words, capacity, fifo) for words in tiles))
    mean, error = np.mean(exact), np.std(exact, ddof=1) / np.sqrt(len(exact))
    over = found.sparse.overbooked[1, 0]
    assert 0 < over.share < 1 and over.capacity == capacity
    # Counters are of an instance in use; an empty tile uses none.
    filled = buffer.fills.actual * found.sparse.occupancy[1, 0].arrives
    assert abs(filled - mean) <= min(0.1 * mean, 4 * error + 2), (filled, mean, error)
    assert abs(dram.reads.actual - filled) <= 2
    assert buffer.fills.actual > over.refetched > 0


def test_tiles_that_fit_are_as_without():
    found, plain = analysed(0.1, 500, 16), analysed(0.1, 500, 16, "architecture.nodes.Buffer.attributes.overbooks=B")
    assert found.sparse.overbooked[1, 0].share == found.sparse.overbooked[1, 0].refetched == 0
    assert found.energy == plain.energy and found.cycles == plain.cycles


def test_format_data_of_what_is_fetched_once_more_comes_with_it():
    found, whole = analysed(0.1, 48, 8), analysed(0.1, 500, 8)
    for place, action in (((1, 0), "fills"), ((2, 0), "reads")):
        words, before = found.sparse.counters[place], whole.sparse.counters[place]
        more = words.data(action).actual / before.data(action).actual
        assert more > 1.5
        assert words.formats[action][0].metadata.actual == pytest.approx(
            before.formats[action][0].metadata.actual * more, abs=2
        )
    assert found.energy["DRAM"] > whole.energy["DRAM"] and found.cycles.total >= whole.cycles.total


def test_a_dense_tile_is_bumped_in_part():
    """B is dense: 512 words of which 400 have a place, and 16 of these stream the rest."""
    found = analyze(
        load_spec(
            [SPEC],
            (
                "architecture.nodes.Buffer.attributes.depth=1322",
                "architecture.nodes.Buffer.attributes.overbooks=B",
                "architecture.nodes.Buffer.attributes.fifo_words=16",
                "architecture.nodes.Buffer.sparse_optimizations.action_optimization=[]",
            ),
        )
    )
    over = found.sparse.overbooked[1, 1]
    assert (over.capacity, over.share, over.bumped) == (400, 1.0, 512 - 384)
    # Each of the 64 rows of A reads all of B's tile.
    assert over.refetched == 63 * 128 * 8
    assert found.sparse.counters[2, 1].reads.actual == 4096 + over.refetched


def test_what_is_said_of_it():
    found = analysed(0.1, 48, 8)
    own = record(found)["levels"][0]["tensors"]["A"]["overbooking"]
    assert set(own) == {"capacity", "share", "bumped", "refetched"} and own["capacity"] == 48
    assert "overbooking" not in record(found)["levels"][0]["tensors"]["B"]
    lines = explain(found, "Buffer.A")
    assert any(line.startswith("  overbooked: 48 words for a tile; 0.") for line in lines)
    assert not any(" -" in line.partition("=")[2] for line in lines)


@pytest.mark.parametrize(
    ("change", "allowed"),
    [
        ("overbooks=Z", "must be one of A, B"),
        ("fifo_words=48", "words for tiles of A: 48: must be at least 49: fifo_words 48 and a word that stays"),
        ("depth=20", "words for tiles of A: -556: must be at least 9"),
        ("allow_overbooking=true", "must be false: overbooks names the tensor"),
    ],
)
def test_mistakes(change, allowed):
    with pytest.raises((SpecError, InvalidMapping)) as caught:
        analysed(0.1, 48, 8, f"architecture.nodes.Buffer.attributes.{change}")
    assert allowed in str(caught.value)
