"""Small sparse operands for benches of the accessors: rows of nonzeros, their arrays in memory, tiles over them."""

import itertools
import random
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Operand", "tiles_of"]


@dataclass(frozen=True)
class Operand:
    """Compressed sparse rows; a nonzero is its coordinate and the bits of its value."""

    columns: int
    rows: list[list[tuple[int, int]]]

    @classmethod
    def draw(cls, rng: random.Random, rows: int, columns: int, density: float) -> "Operand":
        """Rows at random; every fifth is empty."""
        return cls(
            columns,
            [
                [(c, rng.getrandbits(32)) for c in range(columns) if row % 5 != 3 and rng.random() < density]
                for row in range(rows)
            ],
        )

    @property
    def pointers(self) -> NDArray[np.uint32]:
        return np.cumsum([0, *map(len, self.rows)]).astype(np.uint32)

    @property
    def nonzeros(self) -> NDArray[np.uint32]:
        return np.array(list(itertools.chain(*self.rows)), np.uint32).reshape(-1, 2)

    def segment(self, row: int, begin: int, size: int) -> list[tuple[int, int]]:
        """Nonzeros of a row in this many columns from ``begin``."""
        return [nonzero for nonzero in self.rows[row] if begin <= nonzero[0] < begin + size]

    def position(self, row: int, begin: int) -> int:
        """Where in the array of nonzeros the segment from column ``begin`` begins."""
        return int(self.pointers[row]) + sum(coordinate < begin for coordinate, _ in self.rows[row])


def tiles_of(
    operand: Operand, tensor: str, tile: tuple[int, int], *, rows_outside: bool = True
) -> list[dict[str, Any]]:
    """Tiles of A (``tensor`` a: i x k) or B (b: k x j), each once, with the flags that their accessor reads."""
    row, column = ("i", "k") if tensor == "a" else ("k", "j")
    starts = range(0, len(operand.rows), tile[0]), range(0, operand.columns, tile[1])
    places = list(itertools.product(*starts))
    if not rows_outside:
        places.sort(key=lambda place: place[1])
    return [
        {
            f"begin_{row}": r,
            f"size_{row}": min(tile[0], len(operand.rows) - r),
            f"begin_{column}": c,
            f"size_{column}": min(tile[1], operand.columns - c),
            f"whole_{column}": int(tile[1] >= operand.columns),
            f"from_pointers_{tensor}": int(c == 0),
            f"advance_{tensor}": int(c + tile[1] < operand.columns),
        }
        for r, c in places
    ]
