"""Block density: blocks of fixed shape are full or empty, and the full ones lie anywhere."""

from dataclasses import dataclass
from math import ceil, prod

from .protocol import Occupancies
from .uniform import Hypergeometric

__all__ = ["Blocks"]


@dataclass(frozen=True)
class Blocks:
    """A tensor with the extents ``shape`` is cut into blocks with the extents ``block``; a share of these is full, rounded up.

    Tiles are taken as aligned with blocks: a tile smaller than a block lies inside one, a larger one covers whole blocks.
    """

    density: float
    shape: tuple[int, ...]
    block: tuple[int, ...]
    name: str = "block"

    def _grid(self) -> Hypergeometric:
        """Blocks as the points of a tensor of their own."""
        return Hypergeometric.of(self.density, prod(map(_covered, self.shape, self.block)))

    def _covers(self, extents: tuple[int, ...]) -> tuple[tuple[int, ...], float]:
        """Blocks that a tile covers along each rank, and its words in each of them."""
        blocks = tuple(map(_covered, extents, self.block))
        return blocks, prod(extents) / prod(blocks)

    def mean(self, extents: tuple[int, ...]) -> float:
        blocks, words = self._covers(extents)
        return self._grid().mean(blocks) * words

    def maximum(self, extents: tuple[int, ...]) -> int:
        blocks, words = self._covers(extents)
        return ceil(self._grid().maximum(blocks) * words)

    def empty(self, extents: tuple[int, ...]) -> float:
        return self._grid().empty(self._covers(extents)[0])

    def occupancies(self, extents: tuple[int, ...]) -> Occupancies:
        blocks, words = self._covers(extents)
        k, probability = self._grid().occupancies(blocks)
        return k * words, probability

    def fullest(self, extents: tuple[int, ...]) -> "Blocks":
        blocks, _ = self._covers(extents)
        return Blocks(self._grid().maximum(blocks) / prod(blocks), extents, self.block)


def _covered(length: int, block: int) -> int:
    return -(-length // block)
