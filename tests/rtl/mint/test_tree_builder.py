"""The tree builder knows the nodes of a CSF tree: against the definition, and against the arrays of the format."""

import random

import numpy as np
import pytest

from rtl.mint.prefix_sum import FORMS
from rtl.mint.tree_builder import TreeBuilder
from sw.formats.sparse_tensor import SparseTensor
from sw.formats.storage.csf import Csf
from sw.golden.mint import tree_nodes
from tests.rtl.mint.vectors import PAUSES, run_vectors

SIZES = {
    "two_lanes": {"inputs": 2, "width": 3, "count_bits": 8},
    "four": {"inputs": 4, "width": 32},
    "eight": {"inputs": 8, "width": 5, "count_bits": 64, "form": "highly_parallel"},
}


def tensor(rng, highest, count):
    """Sorted entries, many of one i or of one i, j; first and last coordinates among them."""
    sides = [sorted({0, highest, *(rng.randint(0, highest) for _ in range(n))}) for n in (2, 3, 6)]
    return sorted({tuple(rng.choice(side) for side in sides) for _ in range(count)})


def tensors(dut, seed):
    """One after the other: of many entries, of one, of none; some with entries that do not rise."""
    rng = random.Random(seed)
    highest = (1 << dut.width) - 1
    found = [tensor(rng, highest, count) for count in (60, 1, 0, 25)]
    wrong = tensor(rng, highest, 20)
    found.append([*wrong[:5], wrong[4], *wrong[3:], wrong[0]])
    found.append(tensor(rng, highest, 30))
    return found


def vectors_of(entries, lanes, rng, full=False):
    """Ragged vectors, or full ones, of which the last one ends the tensor; lanes without an entry hold anything."""
    parts, at = [], 0
    while at < len(entries):
        size = lanes if full else rng.randint(0, lanes)
        parts.append(entries[at : at + size])
        at += size
    parts = parts or [[]]
    return [(part, n == len(parts) - 1) for n, part in enumerate(parts)]


def payload(part, last, lanes, rng, width):
    spare = [tuple(rng.getrandbits(width) for _ in range(3)) for _ in range(lanes - len(part))]
    items = [dict(zip("ijk", place, strict=True)) for place in (*part, *spare)]
    return {"items": items, "count": len(part), "last": last}


def check(dut, found, *, seed=1, full=False, **conditions):
    """Runs the tensors through it; gives what came out of each, and the cycles."""
    rng = random.Random(seed)
    cut = [vectors_of(entries, dut.inputs, rng, full) for entries in found]
    vectors = [payload(part, last, dut.inputs, rng, dut.width) for parts in cut for part, last in parts]
    came = run_vectors(dut, vectors, **conditions)
    cycles = [cycle for _, cycle in came]
    outputs, at = [], 0
    for entries, parts in zip(found, cut, strict=True):
        mine = [vector for vector, _ in came[at : at + len(parts)]]
        at += len(parts)
        assert [(vector.count, vector.last) for vector in mine] == [(len(part), last) for part, last in parts]
        items, before = [], 0
        for vector in mine:
            assert vector.entries == before
            before += vector.count
            items += [vector.items[n] for n in range(vector.count)]
            assert all(item.new_i == item.new_j == item.falls == 0 for item in list(vector.items)[vector.count :])
        new_i, new_j, falls, fibers = tree_nodes(entries)
        assert [(item.i, item.j, item.k) for item in items] == entries
        assert [item.new_i for item in items] == new_i
        assert [item.new_j for item in items] == new_j
        assert [item.falls for item in items] == falls
        assert [item.fibers for item in items] == fibers
        assert mine[-1].items[dut.inputs - 1].fibers == (fibers[-1] if fibers else 0)
        outputs.append(mine)
    return outputs, cycles


@pytest.mark.parametrize("backpressure", PAUSES)
@pytest.mark.parametrize("idle", PAUSES)
@pytest.mark.parametrize("size", SIZES)
def test_nodes_of_trees(size, idle, backpressure):
    dut = TreeBuilder(**SIZES[size])
    check(dut, tensors(dut, size), idle=PAUSES[idle], backpressure=PAUSES[backpressure])


@pytest.mark.parametrize("form", FORMS)
def test_a_vector_a_cycle(form):
    dut = TreeBuilder(inputs=4, width=6, form=form)
    assert dut.latency == FORMS[form](inputs=4, width=1, sum_width=40).latency + 1
    _, cycles = check(dut, tensors(dut, form), full=True)
    assert cycles == [1 + dut.latency + n for n in range(len(cycles))]


def test_arrays_are_those_of_the_format():
    """What the docstring says of each array, gathered from a random tensor's vectors."""
    rng = np.random.default_rng(4)
    shape = (6, 5, 9)
    ids = tuple(part.astype(np.int64) for part in np.nonzero(rng.random(shape) < 0.15))
    what = SparseTensor(shape=shape, ids=ids, values=np.ones(len(ids[0]), np.int8), value="int8")
    wanted = Csf().encode(what)
    entries = [tuple(int(part) for part in place) for place in zip(*ids, strict=True)]
    outputs, _ = check(TreeBuilder(inputs=4, width=4), [entries])
    found = {name: [] for name in ("ids_0", "ptrs_1", "ids_1", "ptrs_2", "ids_2")}
    for vector in outputs[0]:
        for n in range(vector.count):
            item = vector.items[n]
            found["ids_0"] += [item.i] * item.new_i
            found["ptrs_1"] += [item.fibers - 1] * item.new_i
            found["ids_1"] += [item.j] * item.new_j
            found["ptrs_2"] += [vector.entries + n] * item.new_j
            found["ids_2"].append(item.k)
    end = outputs[0][-1]
    found["ptrs_1"].append(end.items[3].fibers)
    found["ptrs_2"].append(end.entries + end.count)
    assert all(found[name] == wanted[name].tolist() for name in found)


@pytest.mark.parametrize("count", [1, 3, 8])
def test_a_reset_begins_a_tensor(count):
    """Coordinates and numbers of before are gone."""
    dut = TreeBuilder(inputs=4, width=6)
    rng = random.Random(count)
    before, after = tensor(rng, 63, 80), tensor(rng, 63, 25)
    first = [payload(part, False, 4, rng, 6) for part, _ in vectors_of(before, 4, rng, full=True)[:count]]
    parts = vectors_of(after, 4, rng)
    came = run_vectors(
        dut,
        [*first, *(payload(part, last, 4, rng, 6) for part, last in parts)],
        reset_after=count,
        backpressure=PAUSES["some"],
    )
    items = [vector.items[n] for vector, _ in came for n in range(vector.count)]
    assert [(item.i, item.j, item.k) for item in items] == after
    assert [item.fibers for item in items] == tree_nodes(after)[3]
    assert not any(item.falls for item in items) and came[0][0].entries == 0


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"inputs": 3}, r"^Inputs must be a power of two from 2 to 32, not 3$"),
        ({"width": 33}, r"^Coordinate width must be an integer from 1 to 32, not 33$"),
        ({"count_bits": 7}, r"^Count bits must be an integer from 8 to 64, not 7$"),
        ({"form": "tree"}, r"^Prefix sum must be one of serial_chain, work_efficient, highly_parallel, not 'tree'$"),
    ],
)
def test_refuses_impossible_parameters(sizes, message):
    with pytest.raises(ValueError, match=message):
        TreeBuilder(**sizes)
