"""ExTensor against a walk that moves every entry by itself, and what must hold of its tiles and of larger machines."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from benchmarks.extensor.accesses import accesses, output
from benchmarks.extensor.energy import PICOJOULES
from benchmarks.extensor.machine import ExTensor
from benchmarks.extensor.run import run_extensor, tile_for
from benchmarks.extensor.shapes import Tiling, overbooked
from benchmarks.extensor.tiles import Operands, tile_set
from benchmarks.extensor.work import block_cycles
from sw.stats.effmac import exact_effmac
from sw.stats.pattern import Pattern
from tests.sw.stats.matrices import MATRICES, power_law

SMALL = ExTensor(pes=3, global_bytes=2 * 8 * 24, pe_bytes=8 * 6, global_fifo_bytes=32, pe_fifo_bytes=8)
MACHINES = {
    "as it is": SMALL,
    "buffets": replace(SMALL, tailors=False),
    "more elements": replace(SMALL, pes=8),
    "all tiles": replace(SMALL, skips_empty=False),
    "by fiber": replace(SMALL, slides=False),
}
TILINGS = {
    "k whole": Tiling((7, 99), (6, 99), (2, 99), (3, 99)),
    "k cut in elements": Tiling((7, 99), (6, 99), (2, 5), (3, 5)),
    "k cut twice": Tiling((8, 9), (6, 9), (3, 4), (2, 4)),
    "points": Tiling((1, 1), (1, 1), (1, 1), (1, 1)),
    "all": Tiling((99, 99), (99, 99), (99, 99), (99, 99)),
}


def pair(seed, density=0.2, shape=(19, 23, 17)):
    rng = np.random.default_rng(seed)
    m, k, n = shape
    return (
        sp.csr_array(sp.random_array((m, k), density=density, rng=rng)),
        sp.csr_array(sp.random_array((k, n), density=density, rng=rng)),
    )


def operands(a, b):
    return Operands.of(Pattern.of(a), Pattern.of(b))


def cuts(size, step):
    return [range(at, min(size, at + step)) for at in range(0, size, step)]


class Tile:
    """Entries of a tile in the order of its fibers, and a buffer that keeps the first of them when not all fit."""

    def __init__(self, dense, rows, ks, capacity, resident):
        block = dense[np.ix_(list(rows), list(ks))]
        self.fibers = int(np.any(block, axis=1).sum())
        self.entries = int(block.sum()) + self.fibers
        self.keeps = self.entries if self.entries <= capacity else resident

    def load(self):
        return self.entries

    def pass_again(self):
        return sum(1 for place in range(self.entries) if place >= self.keeps)


def grid(machine, tiling):
    """Rows and columns of elements, and the passes over A and B: every grid is tried, the fewest passes win."""
    m, n = (len(cuts(outer[0], inner[0])) for outer, inner in ((tiling.a, tiling.pe_a), (tiling.b, tiling.pe_b)))
    found = []
    for rows in range(1, machine.pes + 1):
        for columns in range(1, machine.pes // rows + 1):
            over_a = 1 if tiling.pe_a[1] >= tiling.a[1] else math.ceil(n / columns)
            found.append((over_a + math.ceil(m / rows), min(rows, m), -min(columns, n), over_a, math.ceil(m / rows)))
    _, rows, columns, over_a, over_b = min(found)
    return rows, -columns, over_a, over_b


def walk(machine, tiling, a, b):
    """Counts by moving through all loops of the machine, one tile at a time."""
    A, B = a.toarray() != 0, b.toarray().T != 0
    found = Counter()
    depth = A.shape[1]
    whole = tiling.a[1] >= depth
    _, _, over_a, over_b = grid(machine, tiling)
    glob = machine.global_entries, machine.global_resident
    for m1 in cuts(A.shape[0], tiling.a[0]):
        in_place = None
        for n1 in cuts(B.shape[0], tiling.b[0]):
            for k1 in cuts(depth, tiling.a[1]):
                tile_a, tile_b = Tile(A, m1, k1, *glob), Tile(B, n1, k1, *glob)
                if not tile_a.entries or not tile_b.entries:
                    if not machine.skips_empty:
                        found["B"] += tile_b.load()
                        found["A"] += 0 if whole else tile_a.load()
                    continue
                for name, tile, passes in (("A", tile_a, over_a), ("B", tile_b, over_b)):
                    for number in range(passes):
                        if number == 0 and not (name == "A" and whole and in_place == m1):
                            found[name] += tile.load()
                        else:
                            found[name] += tile.pass_again()
                            found["streamed"] += tile.pass_again()
                            found["passed_global"] += tile.entries
                in_place = m1
                visit(machine, tiling, A, B, (m1, n1, k1), found)
        if whole and in_place is None and not machine.skips_empty:  # it met nothing
            found["A"] += Tile(A, m1, range(depth), *glob).load()
    return found


def visit(machine, tiling, A, B, place, found):
    m1, n1, k1 = place
    pe = machine.pe_entries, machine.pe_resident
    _, columns, over_a, over_b = grid(machine, tiling)
    stays = tiling.pe_a[1] >= tiling.a[1]
    blocks = Counter()
    for k0 in cuts(len(k1), tiling.pe_a[1]):
        of_a = [(m0, *part(A, m1, m0, k1, k0, pe)) for m0 in cuts(len(m1), tiling.pe_a[0])]
        of_b = [(n0, *part(B, n1, n0, k1, k0, pe)) for n0 in cuts(len(n1), tiling.pe_b[0])]
        of_a, of_b = ([sub for sub in subs if sub[1].entries] for subs in (of_a, of_b))
        found["global_reads"] += over_a * sum(sub.load() for _, sub, _ in of_a) if of_b else 0
        found["global_reads"] += over_b * sum(sub.load() for _, sub, _ in of_b) if of_a else 0
        for m0, sub_a, block_a in of_a:
            for e in range(columns if stays else len(of_b)):
                element(machine, sub_a, of_b[e :: columns if stays else len(of_b)], found)
            for n0, _, block_b in of_b:
                blocks[m0, n0] += int((block_a.astype(int) @ block_b.astype(int).T).sum())
    matches = sum(blocks.values())
    busy = min(machine.pes, len(cuts(tiling.a[0], tiling.pe_a[0])) * len(cuts(tiling.b[0], tiling.pe_b[0])))
    found["blocks"] += max(math.ceil(matches / busy), *blocks.values()) if blocks else 0


def element(machine, sub_a, own, found):
    """An element that a subtile of A is written to, with those of B that it meets while it stays."""
    loading = True
    for _, sub_b, _ in own:
        found["pe_writes"] += sub_b.load()
        if not machine.slides and sub_a.pass_again():
            again = sub_b.pass_again() * (sub_a.fibers - 1)
            found.update({"global_reads": again, "restreamed": again, "pe_writes": again, "passed_pe": again})
        for _ in range(0, sub_b.entries if machine.slides else 1, machine.pe_entries):
            if loading:
                found["pe_writes"] += sub_a.load()
            else:
                again = sub_a.pass_again()
                found.update(
                    {"global_reads": again, "restreamed": again, "pe_writes": again, "passed_pe": sub_a.entries}
                )
            loading = False


def part(dense, outer, inner, outer_k, inner_k, pe):
    rows, ks = [outer[r] for r in inner], [outer_k[k] for k in inner_k]
    return Tile(dense, rows, ks, *pe), dense[np.ix_(rows, ks)]


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
@pytest.mark.parametrize("tiling", TILINGS.values(), ids=TILINGS)
@pytest.mark.parametrize("seed", range(3))
def test_every_entry_is_counted_as_a_walk_moves_it(seed, tiling, machine):
    a, b = pair(seed, 0.2 if seed else 0.02)
    run = run_extensor(machine, tiling, operands(a, b))
    found, expected = run.accesses, walk(machine, tiling, a, b)
    assert (found.dram["A"], found.dram["B"], found.streamed) == (expected["A"], expected["B"], expected["streamed"])
    product = (a != 0).astype(int) @ (b != 0).astype(int)
    assert found.dram["Z"] == product.nnz + np.count_nonzero(np.diff(product.tocsr().indptr))
    z = output(operands(a, b), tiling)
    held = z.updates if tiling.a[1] < a.shape[1] else 0
    assert found.global_reads == expected["global_reads"] + held
    assert found.global_writes == expected["A"] + expected["B"] + held
    assert found.restreamed == expected["restreamed"]
    assert found.pe_writes == expected["pe_writes"]
    assert found.passed == {"global": expected["passed_global"], "pe": expected["passed_pe"]}
    assert block_cycles(machine, tiling, operands(a, b)) == expected["blocks"]
    assert run.macs == product.sum()
    assert found.pe_reads == 2 * run.macs


def test_matches_are_shared_out_to_the_elements_that_have_a_block():
    ops = operands(*pair(2))
    blocks = Tiling((8, 9), (6, 9), (4, 9), (3, 9))
    for pes, busy in ((1, 1), (3, 3), (4, 4), (128, 4)):
        run = run_extensor(replace(SMALL, pes=pes), blocks, ops)
        assert run.time["compute"] == math.ceil(run.macs / busy)
        assert block_cycles(replace(SMALL, pes=pes), blocks, ops) >= run.time["compute"]
    assert block_cycles(replace(SMALL, pes=1), blocks, ops) == run.macs


def test_updates_of_partial_elements_are_one_a_k_step():
    a, b = pair(5)
    steps = (range(9), range(9, 18), range(18, 23))
    expected = sum(((a[:, list(k)] != 0).astype(int) @ (b[list(k)] != 0).astype(int)).nnz for k in steps)
    tiling = Tiling((8, 9), (6, 9), (3, 9), (2, 9))
    assert output(operands(a, b), tiling).updates == expected


@pytest.mark.parametrize("k_first", [False, True])
@pytest.mark.parametrize("name", MATRICES)
def test_conservative_and_prescient_tiles_always_fit(name, k_first):
    matrix = MATRICES[name]
    ops = operands(matrix, sp.csr_array(matrix.T))
    machine = replace(ExTensor().scaled(0.002), tailors=False)
    for variant in ("N", "P"):
        found = run_extensor(machine, tile_for(variant, machine, ops, k_first=k_first), ops).accesses
        assert found.streamed == 0, variant
        assert found.overbooked == {"global": 0.0, "pe": 0.0}


def test_one_row_more_overflows_the_prescient_tile():
    matrix = power_law(400)
    ops = operands(matrix, sp.csr_array(matrix.T))
    machine = ExTensor().scaled(0.002)
    found = tile_for("P", machine, ops, k_first=True)
    worst = [int(tile_set(ops.a, shape).entries.max()) for shape in (found.a, (found.a[0] + 1, found.a[1]))]
    assert worst[0] <= machine.global_entries < worst[1]
    worst = [
        int(tile_set(ops.a, found.a, shape).entries.max()) for shape in (found.pe_a, (found.pe_a[0] + 1, found.pe_a[1]))
    ]
    assert worst[0] <= machine.pe_entries < worst[1]


def test_squares_are_square_and_the_largest_that_fit():
    matrix = MATRICES["banded"]
    ops = operands(matrix, sp.csr_array(matrix.T))
    machine = ExTensor().scaled(0.0002)
    found = tile_for("P", machine, ops)
    worst = [int(tile_set(ops.a, (side, side)).entries.max()) for side in (found.a[0], found.a[0] + 1)]
    assert found.a[0] == found.a[1] == found.b[0]
    assert worst[0] <= machine.global_entries < worst[1]
    larger = tile_for("OB", machine, ops, y=0.5)
    assert larger.a[0] == larger.a[1] > found.a[0]


def test_the_papers_fixed_tiles():
    ops = operands(*pair(0, 0.001, (3000, 3000, 3000)))
    found = tile_for("N", ExTensor(), ops)
    assert (found.a, found.pe_a) == ((1280, 1280), (128, 128))


@pytest.mark.parametrize("name", ["banded", "mesh", "noise", "power_law"])
def test_a_larger_share_overbooks_larger_tiles(name):
    matrix = MATRICES[name]
    ops = operands(matrix, sp.csr_array(matrix.T))
    machine = ExTensor().scaled(0.002)
    found = [overbooked(machine, ops, y=y) for y in (0.0, 0.1, 0.5, 1.0)]
    sizes = [tiling.a[0] * tiling.a[1] for tiling in found]
    assert sizes == sorted(sizes)
    assert found[1] == overbooked(machine, ops, y=0.1)


@pytest.mark.parametrize("tiling", TILINGS.values(), ids=TILINGS)
def test_more_of_anything_never_costs_cycles(tiling):
    ops = operands(*pair(7, 0.3))

    def cycles(**more):
        return run_extensor(replace(SMALL, **more), tiling, ops).cycles

    for name, values in {
        "pes": (1, 2, 3, 5, 8, 128),
        "global_bytes": (64, 128, 256, 512, 4096),
        "pe_bytes": (16, 24, 32, 48, 64, 512),
        "dram_bytes_per_cycle": (1.0, 8.0, 64.0, 512.0),
    }.items():
        found = [cycles(**{name: value}) for value in values]
        assert found == sorted(found, reverse=True), name


def test_energy_is_that_of_the_accesses():
    ops = operands(*pair(1))
    run = run_extensor(SMALL, TILINGS["k cut twice"], ops)
    moved = run.accesses
    assert run.energy["dram"] == PICOJOULES["dram"] * (moved.dram["A"] + moved.dram["B"] + moved.dram["Z"])
    assert run.energy["mac"] == pytest.approx(4.6 * exact_effmac(ops.a, ops.b))
    assert run.total_energy == pytest.approx(sum(run.energy.values()))


def test_empty_operands_cost_nothing():
    ops = operands(sp.csr_array((5, 6)), sp.csr_array((6, 4)))
    for variant in ("N", "P", "OB"):
        run = run_extensor(SMALL, tile_for(variant, SMALL, ops), ops)
        assert (run.cycles, run.total_energy) == (0, 0)


def test_bad_parameters_are_named():
    ops = operands(*pair(0))
    with pytest.raises(ValueError, match="^Variant must be N, P or OB, not 'X'$"):
        tile_for("X", SMALL, ops)
    with pytest.raises(ValueError, match="^Share of overbooked tiles must be from 0 to 1, not 2$"):
        overbooked(SMALL, ops, y=2)
    with pytest.raises(ValueError, match="^ExTensor's pes must be above zero, not 0$"):
        ExTensor(pes=0)
    with pytest.raises(ValueError, match="^A has 23 columns but B has 19 rows$"):
        operands(pair(0)[0], pair(0)[0])
    with pytest.raises(ValueError, match="must have the same k"):
        Tiling((1, 2), (1, 3), (1, 1), (1, 1))
    assert accesses(SMALL, TILINGS["all"], ops, 0, output(ops, TILINGS["all"])).pe_reads == 0
