"""Cycles against an array that is walked: tile by tile, row by row, cycle by cycle of the bus, nonzero by nonzero in each PE."""

from dataclasses import dataclass, field

import numpy as np
import pytest
import scipy.sparse as sp

from sw.sage.array import Array, compute_options
from sw.sage.constants import Constants
from sw.sage.workload import counted

#: Four PEs of two MACs, 16 words each; a bus of five words.
ARRAY = Array(macs=8, vector=2, pe_bytes=64, bus_bits=160, comparators=2)
WORDS, PES, V = 5, 4, 2


@dataclass
class Pe:
    """A column: places with what they hold. ``busy``: operations, of which V go in a cycle."""

    column: dict[int, float]
    sparse: bool
    busy: float = 0.0
    sums: dict[int, float] = field(default_factory=dict)

    def take(self, row: int, pairs: list[tuple[int, float]], *, dense: bool) -> None:
        for k, value in pairs:
            if not dense and self.sparse:
                self.busy += V * -(-len(self.column) // V)  # compares the id with all of them, two a cycle
            elif not dense:
                self.busy += 1
            if k in self.column:
                self.sums[row] = self.sums.get(row, 0.0) + value * self.column[k]

    def end_row(self, *, dense: bool) -> None:
        if dense:
            self.busy += V * -(-len(self.column) // V)


def beats_of(row: np.ndarray, acf: str) -> list[list[tuple[int, float]]]:
    pairs = [(k, float(value)) for k, value in enumerate(row) if acf == "dense" or value]
    most = {"dense": WORDS - 1, "csr": (WORDS - 1) // 2, "coo": WORDS // 3}[acf]
    return [pairs[at : at + most] for at in range(0, len(pairs), most)]


def walked(a: np.ndarray, b: np.ndarray, acf_a: str, acf_b: str) -> tuple[float, np.ndarray]:
    """Cycles and the product."""
    total, found = 0.0, np.zeros((a.shape[0], b.shape[1]))
    for first in range(0, b.shape[1], PES):
        pes = []
        for column in b[:, first : first + PES].T:
            kept = {k: float(value) for k, value in enumerate(column) if acf_b == "dense" or value}
            total += len(kept) * (1 if acf_b == "dense" else 2) / WORDS
            pes.append(Pe(kept, sparse=acf_b == "csc"))
        sent = 0
        for number, row in enumerate(a):
            for pairs in beats_of(row, acf_a):
                sent += 1
                for pe in pes:
                    pe.take(number, pairs, dense=acf_a == "dense")
            for pe in pes:
                pe.end_row(dense=acf_a == "dense")
        total += max(sent, max(pe.busy for pe in pes) / V)
        for n, pe in enumerate(pes):
            for number, value in pe.sums.items():
                found[number, first + n] = value
    return total, found


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("acf_b", ["dense", "csc"])
@pytest.mark.parametrize("acf_a", ["dense", "csr", "coo"])
def test_cycles_are_those_of_a_walk(acf_a, acf_b, seed):
    rng = np.random.default_rng(seed)
    depth = 16 if acf_b == "dense" else 8
    tiles = 1 + seed % 3 if acf_b == "dense" else 1
    a = rng.integers(1, 9, (13, depth)) * (rng.random((13, depth)) < 0.1 + 0.15 * seed)
    b = rng.integers(1, 9, (depth, PES * tiles)) * (rng.random((depth, PES * tiles)) < 0.6)
    b[0] = 1  # no column is empty, which would leave a PE to the others
    cycles, product = walked(a, b, acf_a, acf_b)
    assert (product == a @ b).all()
    workload = counted("spgemm", *(sp.csr_array(each.astype(np.float64)) for each in (a, b)))
    (found,) = compute_options(workload, acf_a, acf_b, ARRAY, Constants())
    assert found.cycles == pytest.approx(cycles)
