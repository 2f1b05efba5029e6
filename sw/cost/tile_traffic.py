"""D2T2's prediction of a tiling's traffic from the statistics of both operands. Paper: D2T2, sections 4.2 and 5.1.

Input traffic is the expected size of a tile times how often it is read; output traffic the expected size of a partial
result times how often one leaves. The operands count as independent: a tile of A meets one of B by chance.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sw.stats.csf import WORD_BYTES, csf_words
from sw.stats.d2t2 import TileStatistics
from sw.stats.tiled_traffic import TiledTraffic, reads_again

__all__ = ["TrafficModel"]


@dataclass(frozen=True)
class TrafficModel:
    """Predicts tiles of any shape from statistics of square ones.

    Parameters
    ----------
    a: of A (I x K), outer rank i. b: of B (K x J), outer rank k, same side T, with ``Corrs``.
    correlated: divide by the sum of Corrs; without it partial products are taken to seldom meet (section 6.7).
    carried: partial rows are carried along as on our machine: at each k step they leave whole and come back, and where
        j is cut the rows of C are put together at the end; and each tile reads where its rows' segments lie, those of
        empty ones too. Without it each tile of partial results leaves once, and memory adds up, as in the paper.
    """

    a: TileStatistics
    b: TileStatistics
    correlated: bool = True
    carried: bool = False

    def predict(self, shape: tuple[int, int, int], order: str, *, keep_a: bool = True) -> TiledTraffic:
        """Traffic of tiles ``shape`` = (T_i, T_j, T_k).

        Parameters
        ----------
        order: inter-tile order, outermost rank first.
        keep_a: a tile of A stays while j moves, where the order has j innermost; without it A is read for each j.
        """
        a, b = self.a, self.b
        T_i, T_j, T_k = shape
        counts = {"i": -(-a.rows // T_i), "j": -(-b.columns // T_j), "k": -(-a.columns // T_k)}
        rereads = reads_again(order, counts)
        # Tiles that are read once, whatever their shape: SizeTile times their number does not change with the shape.
        words_a, words_b = a.tiles * a.size_tile, b.tiles * b.size_tile
        # Tiles of A that a tile of B meets (18), and the other way round; one at least where there are any.
        i_of_k = max(_extent(a.rows, T_i, a.T, a.row_corrs) * a.probability, _share(a.column_tiles))
        j_of_k = max(_extent(b.columns, T_j, b.T, b.column_corrs) * b.probability, _share(b.row_tiles))
        reads_a = max(1.0, j_of_k) if rereads["A"] or not keep_a else 1.0
        reads_b = max(1.0, i_of_k) if rereads["B"] else 1.0
        visits = counts["k"] * i_of_k * j_of_k
        rows_a = rows_b = 0.0
        if self.carried:
            walked = visits if order[2] == "k" else float(np.prod(list(counts.values())))
            words_c = self._carried_words(counts, walked)
            rows_a = (walked if rereads["A"] or not keep_a else walked / counts["j"]) * T_i * _positions(counts["k"])
            rows_b = counts["k"] * counts["j"] * reads_b * T_k * _positions(counts["j"])
        else:
            nonzeros = self._output(T_k)
            fibers = min(nonzeros, self._output_fibers(T_k) * max(1.0, j_of_k))
            words_c = csf_words(nonzeros, fibers, min(visits, nonzeros))
        return TiledTraffic(
            WORD_BYTES * (words_a * b.outer_rows * reads_a + rows_a),
            WORD_BYTES * (words_b * min(1.0, i_of_k) * reads_b + rows_b),
            WORD_BYTES * words_c,
            visits,
        )

    def _output(self, T_k: int) -> float:
        """Nonzeros of all partial results of k tiles of ``T_k``."""
        return self._macs() / (_sum_to(self.b.corrs, T_k) if self.correlated else 1.0)

    def _carried_words(self, counts: dict[str, int], visits: float) -> float:
        """Rows of C that grow from one k step to the next: half of their nonzeros are in it in the mean step."""
        area = float(self.a.rows) * self.b.columns
        nonzeros = min(area, self._output(self.b.T))
        steps = min(float(counts["k"]), max(1.0, visits / (counts["i"] * counts["j"])))
        assembled = 2 * nonzeros if counts["j"] > 1 else 0.0
        return 2 * (nonzeros * (steps - 1) + nonzeros + assembled) + 2 * self.a.rows * counts["j"] * steps

    def _macs(self) -> float:
        """Partial products: tile pairs that chance brings together, times what such a pair gives by their densities.

        The mean over pairs is that of all pairs that share a k tile, the sample being everything (section 5.1).
        """
        a, b = self.a, self.b
        pairs = a.column_tiles @ b.row_tiles
        if pairs == 0:
            return 0.0
        depth = min(a.T, a.columns)
        size = float(a.column_nonzeros.astype(np.float64) @ b.row_nonzeros) / float(pairs) / depth
        return a.tiles * b.tiles / len(a.column_tiles) * size

    def _output_fibers(self, T_k: int) -> float:
        """Rows of partial results, for one tile along j: rows of A's tiles that meet a row of B."""
        a, b = self.a, self.b
        row = float(a.inner_row.mean())
        narrow = -np.expm1(np.log1p(-min(row, 1 - 1e-9)) * min(1.0, T_k / a.T)) * a.T / T_k if T_k < a.T else row
        wide = min(1.0, a.T / T_k) if T_k > a.T else 1.0
        of_a = a.tiles * a.T * max(narrow * wide, 1e-12)
        each = max(1.0, a.tiles * a.nonzeros / max(1.0, of_a))
        met = -np.expm1(each * np.log1p(-min(float(b.inner_row.mean()) * b.outer_rows, 1 - 1e-9)))
        return float(of_a * met)


def _extent(size: int, T: int, base: int, corrs: NDArray[np.float64]) -> float:
    """E(|o'|) (equation 18): tiles of side T along a rank, as many as seem not to lie on one another."""
    if base >= size or base >= T:
        return max(1.0, size / T)
    return max(1.0, size / base / _sum_to(corrs, min(T, size) / base))


def _positions(cuts: int) -> int:
    """Words of metadata of a row in a tile: a pointer, or where its segment begins, ends, and that written back."""
    return 3 if cuts > 1 else 1


def _share(counts: NDArray[np.int64]) -> float:
    return float(np.count_nonzero(counts)) / len(counts)


def _sum_to(values: NDArray[np.float64], count: float) -> float:
    """Sum of the first ``count`` values, of a last one as far as it counts; nothing beyond the last known one."""
    whole = min(int(count), len(values))
    found = float(values[:whole].sum())
    if whole < len(values):
        found += (count - whole) * float(values[whole])
    return max(found, 1.0)
