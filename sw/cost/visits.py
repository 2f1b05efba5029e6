"""Which tiles a scheme visits, and what moves between them: what the traffic of each operand is counted over."""

import numpy as np
from numpy.typing import NDArray

from sw.scheme.scheme import Scheme
from sw.stats.workload import Workload

__all__ = ["TileVisits"]


class TileVisits:
    """The tiles that one scheme visits on one workload.

    After construction: ``tiles`` visited, ``working`` those that have work, ``selections`` of fibers by nonzeros of A.
    """

    def __init__(self, workload: Workload, scheme: Scheme) -> None:
        self.workload = workload
        self.scheme = scheme
        self.N_i, self.N_j, self.N_k = scheme.tiles_per_rank(workload.I, workload.J, workload.K)
        self._walk()
        self.selections = self._selections()

    def _innermost(self, rank: str) -> bool:
        """Whether nothing but ``rank`` moves between consecutive tiles, as far as there is more than one tile."""
        counts = {"i": self.N_i, "j": self.N_j, "k": self.N_k}
        inner = self.scheme.order[self.scheme.order.index(rank) + 1 :]
        return all(counts[r] == 1 for r in inner)

    def _walk(self) -> None:
        """Which tiles are visited: those whose parts of A and B both hold something."""
        s, workload = self.scheme, self.workload
        self.b_tiles = workload.tiles("B", s.T_k, s.T_j) if self.N_k * self.N_j > 1 else None
        occupied_j = np.diff(self.b_tiles.pointers) if self.b_tiles else np.array([int(workload.b.nnz > 0)])
        if self.N_i == 1:
            steps = np.add.reduceat(workload.uses, np.arange(0, workload.K, s.T_k))
            self.a_nonzeros = steps.astype(np.float64)
            self.a_rows_of_tiles = (steps > 0).astype(np.int64)
        else:
            tiles = workload.tiles("A", s.T_i, s.T_k)
            self.a_nonzeros = np.bincount(tiles.columns, tiles.occupancy, self.N_k).astype(np.float64)
            self.a_rows_of_tiles = np.bincount(tiles.columns, minlength=self.N_k)
        self.occupied_j = occupied_j
        self.visits_k = self.a_rows_of_tiles * occupied_j  # tiles with work in each k step
        working = int(self.visits_k.sum())
        ends = self.N_i * self.N_j
        if (
            self.scheme.order[2] == "k" or self.scheme.joins
        ):  # empty tiles are left out, save the last k step's, which end the rows
            self.tiles = min(self.N_i * self.N_j * self.N_k, working + ends - int(self.visits_k[-1]))
        else:
            self.tiles = self.N_i * self.N_j * self.N_k
        self.working = working

    def _column_nonzeros(self) -> NDArray[np.float64]:
        """Nonzeros of B in each j tile, where there is more than one tile of B."""
        tiles = self.b_tiles
        assert tiles is not None
        return np.bincount(tiles.columns, tiles.occupancy, self.N_j).astype(np.float64)

    def _selections(self) -> float:
        """Nonzeros of A that look for a fiber segment, all visits together."""
        per_j = self.visits_k / np.maximum(1, self.a_rows_of_tiles)
        return float(self.a_nonzeros @ per_j)

    def _moves_on(self, kept: bool) -> NDArray[np.bool_]:
        """Where j is inside k, the k steps in which A's positions move on: at the last j tile, if visited, or at the load."""
        moves = np.zeros(self.N_k, np.bool_)
        tiles = self.b_tiles
        assert tiles is not None  # N_k > 1
        moves[tiles.rows[kept | (tiles.columns == self.N_j - 1)]] = True
        return moves

    def _passed_a(self) -> float:
        """Nonzeros of A up to the end of each visited tile, from where the last visit of its rows left off."""
        s = self.scheme
        if self.b_tiles is None or s.order.index("j") < s.order.index("k"):
            # Each sweep along k reads everything up to the last tile that it visits.
            last = np.full(self.N_j, 0)
            tiles = self.b_tiles
            if tiles is None:
                last[:] = self.N_k
            else:
                np.maximum.at(last, tiles.columns, tiles.rows + 1)
            through = np.concatenate([[0.0], np.cumsum(self.a_nonzeros)])
            return float(through[last].sum())
        kept = s.buffers("A") and self._innermost("j")
        moves = self._moves_on(kept)
        through = np.cumsum(self.a_nonzeros)
        passed = np.where(moves, through, 0.0)
        since = np.concatenate([[0.0], np.maximum.accumulate(passed)[:-1]])
        scans = np.minimum(1, self.occupied_j) if kept else self.occupied_j
        return float((through - since) @ scans)

    def _advances(self, visits_k: NDArray[np.int64], kept: bool) -> float:
        """How often the begin positions of a tile's rows are written: for the next k step, so not in the last one."""
        order = self.scheme.order
        if order.index("j") > order.index("k"):
            visits_k = np.where(self._moves_on(kept), self.a_rows_of_tiles, 0)
        return float(visits_k[:-1].sum())

    @property
    def keeps_b(self) -> bool:
        """B's tile stays in place from one visit to the next."""
        return self._innermost("i") or self.N_j * self.N_k == 1

    def _reloads(self) -> NDArray[np.int64]:
        """How often the B tiles of each k step are loaded."""
        if self.keeps_b:
            return np.minimum(1, self.a_rows_of_tiles)
        return self.a_rows_of_tiles

    def _parts(self) -> float:
        """Nonzeros of the parts of rows that wait for the last k step: ``nnzC_Tk`` but for its own share, by MACs."""
        workload, s = self.workload, self.scheme
        if self.N_k == 1:
            return 0.0
        last = (self.N_k - 1) * s.T_k
        macs = float(workload.uses[last:] @ workload.b.row_lengths[last:]) / max(1.0, workload.effmac)
        return workload.output.nnz_tk(s.T_k) * (1 - macs)

    def _carried(self) -> float:
        """Nonzeros of partial rows that leave, all k steps together; with k innermost, empty tiles are passed by."""
        s, counts = self.scheme, self.workload.output
        if self.N_k == 1:
            return 0.0
        if s.order[2] != "k" or len(counts.first_k) == 0:
            return counts.carried(s.T_k)
        first = counts.first_k // s.T_k
        column = counts.columns // s.T_j
        if self.N_i == 1 and self.b_tiles is not None:
            # Steps of each j tile that are not skipped, from the sampled nonzero's first one on, without the last step.
            key = np.sort(self.b_tiles.columns * self.N_k + self.b_tiles.rows)
            from_here = np.searchsorted(key, column * self.N_k + first)
            before_last = np.searchsorted(key, column * self.N_k + self.N_k - 1)
        else:
            tiles = self.workload.tiles("A", s.T_i, s.T_k)
            row = counts.rows // s.T_i
            key = np.sort(tiles.rows * self.N_k + tiles.columns)
            from_here = np.searchsorted(key, row * self.N_k + first)
            before_last = np.searchsorted(key, row * self.N_k + self.N_k - 1)
        return counts.weighed(np.maximum(0, before_last - from_here))
