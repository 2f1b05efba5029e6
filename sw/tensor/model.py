"""D2T2's prediction of the traffic of TTM and MTTKRP from statistics of their operands. Paper: D2T2, sections 4, 5.1.

Input traffic is the expected size of a tile times how often it is read, output traffic the expected size of a partial
result times how often one leaves. The operands count as independent of each other.
"""

from dataclasses import dataclass

import numpy as np

from sw.stats.csf import WORD_BYTES, csf_words

from .csf import tensor_words
from .d2t2 import MatrixStatistics, TensorStatistics, matrix_statistics, tensor_statistics
from .kernels import Problem, Sides, TensorKernel
from .occupancy import merged
from .traffic import TensorTraffic

__all__ = ["TensorTrafficModel"]


@dataclass(frozen=True)
class TensorTrafficModel:
    """Predicts tiles of any sides from statistics of cubes and squares of one side.

    Parameters
    ----------
    kernel, extent: what is computed, and the sizes of its ranks in its order.
    tensor, matrices: statistics of the operands.
    """

    kernel: TensorKernel
    extent: Sides
    tensor: TensorStatistics
    matrices: tuple[MatrixStatistics, ...]

    @classmethod
    def of(cls, problem: Problem, T: int) -> "TensorTrafficModel":
        """The model with statistics of tiles of side ``T``."""
        found = tuple(matrix_statistics(matrix, T) for matrix in problem.matrices)
        return cls(problem.kernel, problem.extent, tensor_statistics(problem, T), found)

    def predict(self, sides: Sides) -> TensorTraffic:
        """Traffic of tiles ``sides``, in the kernel's order of ranks."""
        kernel, a = self.kernel, self.tensor
        counts = [-(-size // side) for size, side in zip(self.extent, sides, strict=True)]
        tiles, slices, fibers = self._levels(sides)
        words_a = tensor_words(float(a.nonzeros), fibers, slices, tiles)
        # What the matrices' tiles are like, and how likely one is where a tile of A asks for it.
        found = [
            self._matrix(matrix, (sides[r], sides[3]))
            for r, matrix in zip(kernel.contracted, self.matrices, strict=True)
        ]
        chance = 1.0
        for r, (number, _) in zip(kernel.contracted, found, strict=True):
            chance *= min(1.0, number / (counts[r] * counts[3]))
        visits = tiles * counts[3] * chance
        used = -np.expm1(counts[3] * np.log1p(-min(chance, 1 - 1e-12)))
        read = []
        for r, (number, words) in zip(kernel.contracted, found, strict=True):
            size = words / max(1.0, number)
            if counts[3] > 1:
                read.append(WORD_BYTES * visits * size)
            elif counts[r] > 1:
                times = tiles if r == 2 else min(tiles, a.prefixes[r].at(sides))
                read.append(WORD_BYTES * times * used * size)
            else:
                read.append(WORD_BYTES * words * min(1.0, tiles))
        macs = self._macs()
        return TensorTraffic(
            WORD_BYTES * words_a * float(used),
            tuple(float(number) for number in read),
            WORD_BYTES * self._output(sides, counts[3], macs, (tiles, slices, fibers), visits),
            visits,
            macs,
        )

    def _levels(self, sides: Sides) -> tuple[float, float, float]:
        """Nonempty tiles, slices and fibers in all tiles: each at most as many as of the next."""
        most = float(self.tensor.nonzeros)
        found: list[float] = []
        for level in reversed(self.tensor.levels):
            most = min(most, level.at(sides))
            found.insert(0, most)
        return found[0], found[1], found[2]

    @staticmethod
    def _matrix(matrix: MatrixStatistics, sides: tuple[int, int]) -> tuple[float, float]:
        """Nonempty tiles of a matrix, and the words of all of them together."""
        fibers = min(float(matrix.nonzeros), matrix.levels[1].at(sides))
        number = min(fibers, matrix.levels[0].at(sides))
        return number, csf_words(float(matrix.nonzeros), fibers, number)

    def _macs(self) -> float:
        """Products: a nonzero of A meets the rows of its coordinates, whose nonzeros meet each other by chance."""
        columns = self.extent[3]
        total = max(1, self.tensor.nonzeros)
        found = float(self.tensor.nonzeros) * columns
        for marginal, matrix in zip(self.tensor.marginals, self.matrices, strict=True):
            found *= float(marginal.astype(np.float64) @ matrix.row_lengths) / total / columns
        return found

    def _output(
        self, sides: Sides, counts: int, macs: float, levels: tuple[float, float, float], visits: float
    ) -> float:
        """Words of all partial products: how many products fall together, then how the rest spreads over fibers."""
        weights = {r: matrix.corrs for r, matrix in zip(self.kernel.contracted, self.matrices, strict=True)}
        nonzeros = macs * merged(*self.tensor.nonzero_occupancy.others(sides, weights))
        above = nonzeros
        fibers = []
        for level in reversed(range(1, self.kernel.kept + 1)):
            # Nonzeros of one of A's fibers (slices) fall into some of the tiles along the free rank.
            cells = levels[level]
            each = nonzeros / max(1.0, cells)
            hit = -counts * np.expm1(each * np.log1p(-1 / counts)) if counts > 1 else min(1.0, each)
            above = min(above, cells * float(hit))
            fibers.append(above)
        tiles = min(above, visits)
        return 2 * nonzeros + 2 * sum(fibers) + (self.kernel.kept + 2) * tiles
