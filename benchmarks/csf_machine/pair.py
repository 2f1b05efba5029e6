"""Two operands on D2T2's machine: exact traffic of a shape, and the shapes of its schemes. Paper: D2T2, sections 5 and 6.

Either operand has a buffer that holds a dense ``T x T`` tile as compressed sparse fibers.
"""

from collections.abc import Callable
from functools import cached_property

from sw.cost.tile_traffic import TrafficModel
from sw.operands import Operand
from sw.stats.csf import csf_words, largest_tile
from sw.stats.d2t2 import tile_statistics
from sw.stats.pattern import Pattern
from sw.stats.tiled_traffic import TiledTraffic, tiled_traffic

__all__ = ["REORDER", "Pair", "Shape"]

# RF 1/2 to 128.
REORDER = range(-1, 8)
Shape = tuple[int, int, int]  # T_i, T_j, T_k


class Pair:
    """A and A^T, their tiles walked in ``order``, with buffers of ``words`` each."""

    def __init__(self, matrix: Operand, T: int, order: str = "ikj") -> None:
        self.a, self.b = Pattern.of(matrix.matrix), Pattern.of(matrix.transposed().matrix)
        self.T = T
        self.order = order
        self.words = int(csf_words(T * T, T, 1))
        self._exact: dict[Shape, TiledTraffic] = {}

    @property
    def extent(self) -> Shape:
        return self.a.rows, self.b.columns, self.a.columns

    @cached_property
    def statistics(self) -> TrafficModel:
        """D2T2's model from tiles of the conservative size."""
        return TrafficModel(tile_statistics(self.a, self.T), tile_statistics(self.b, self.T, shifts=self.T))

    @cached_property
    def uncorrelated(self) -> TrafficModel:
        """The same without Corrs (section 6.7)."""
        return TrafficModel(self.statistics.a, self.statistics.b, correlated=False)

    def largest(self, shape: Shape) -> int:
        """Words of the largest tile of either operand."""
        T_i, T_j, T_k = shape
        return max(largest_tile(self.a, T_i, T_k), largest_tile(self.b, T_k, T_j))

    def exact(self, shape: Shape) -> TiledTraffic:
        """What moves of tiles of this shape, by every nonzero."""
        if shape not in self._exact:
            self._exact[shape] = tiled_traffic(self.a, self.b, shape, self.order)
        return self._exact[shape]

    def clipped(self, shape: Shape) -> Shape:
        I, J, K = self.extent  # noqa: E741 - extents, as in the papers
        return min(shape[0], I), min(shape[1], J), min(shape[2], K)

    def reshaped(self, power: int) -> Shape:
        """{i: T x RF, k: T / RF}, {k: T / RF, j: T x RF} for RF = 2 ** power."""
        long, short = int(self.T * 2.0**power), max(1, int(self.T * 2.0**-power))
        return self.clipped((long, long, short))

    def enlarged(self, shape: Shape, factor: int) -> Shape:
        """``factor`` tiles of each operand beside one another at most: along i and j, and what these cannot take along k."""
        (T_i, T_j, T_k), (I, J, _) = shape, self.extent  # noqa: E741 - extents, as in the papers
        i, j = min(factor, -(-I // T_i)), min(factor, -(-J // T_j))
        return self.clipped((i * T_i, j * T_j, factor // max(i, j) * T_k))

    def sized(self, shape: Shape) -> Shape:
        """As many of the largest tiles side by side as fit: TileFactor (section 5.2.1)."""
        return self.enlarged(shape, max(1, self.words // max(1, self.largest(shape))))

    def grown(self, shape_of: Callable[[int], Shape], most: int) -> Shape:
        """The largest of ``shape_of(1) .. shape_of(most)`` of which all tiles fit, by bisection."""
        low, high = 1, most
        while low < high:
            middle = (low + high + 1) // 2
            if self.largest(shape_of(middle)) <= self.words:
                low = middle
            else:
                high = middle - 1
        return shape_of(low)

    def prescient(self) -> Shape:
        """The largest square of which all tiles fit."""
        return self.grown(lambda n: self.clipped((n, n, n)), max(self.extent))

    def searched(self, power: int) -> Shape | None:
        """An RF grown as far as all tiles fit; None where it does not fit as it is."""
        shape = self.reshaped(power)
        if self.largest(shape) > self.words:
            return None
        counts = [-(-size // side) for size, side in zip(self.extent, shape, strict=True)]
        return self.grown(lambda n: self.enlarged(shape, n), max(counts[:2]) * counts[2])
