"""Tiles whose rows of B go to lines and entries that a list names, drawn at random: the list, and what each load must leave.

Made from the contract (docs/blocks/accessors.md, docs/memory_image.md), not from any plan: rows come and go as they like.
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .partition import POISON, Load, Segment, data_lines
from .sparse import Operand

__all__ = ["PlannedRows", "PlannedTile"]

LINE_BITS = 16


@dataclass
class PlannedTile:
    """A tile that loads the rows at ``begin + 1`` and on of the list; the first ``placed`` of them find place.

    ``before``: segments in place when the tile before has been loaded.
    """

    begin: int
    rows: list[int]
    placed: int
    metadata: int
    load: Load
    occupied: int
    before: list[Segment]

    def announced(self, columns: int) -> dict[str, Any]:
        """As the controller announces it."""
        ring = {"kept": 1, "entry": 0, "line": 0, "lines": self.placed, "metadata": self.metadata}
        size = {"begin_k": self.begin, "size_k": 1 + len(self.rows), "size_j": columns}
        return size | {"whole_j": 1, "last_j": 1, "from_pointers_b": 1, "ring": ring}

    @property
    def uses(self) -> list[tuple[int, int, Segment]]:
        """What A's columns may name: an entry, the load that its row comes with, and the row's segment."""
        assert self.load.standing is not None
        standing = [(segment.entry, 0, segment) for segment in self.load.standing]
        return standing + [(segment.entry, n, segment) for n, segment in enumerate(self.load.segments) if n]


class PlannedRows:
    """Tiles one after the other in ``lines`` lines from ``base`` on; ``fifo`` lines before the metadata have another use."""

    def __init__(
        self,
        operand: Operand,
        rng: random.Random,
        *,
        lanes: int,
        base: int,
        lines: int,
        fifo: int,
        metadata: int,
        tiles: int,
    ) -> None:
        self.operand = operand
        self.rng = rng
        self.lanes = lanes
        self.base = base
        self.metadata = metadata
        self.capacity = lines - fifo - metadata  # lines for data
        self.live: list[Segment] = []  # of rows in place
        self.rows: list[int] = []  # of the list
        self.places: list[tuple[int, int]] = []  # line and entry of each
        self.tiles = [self._tile() for _ in range(tiles)]

    @property
    def positions(self) -> NDArray[np.uint32]:
        """The begin positions: behind each stands where its row goes. The first place is no row's."""
        begins = self.operand.pointers[:-1][self.rows]
        places = [line | entry << LINE_BITS for line, entry in self.places]
        pairs = np.stack([begins.astype(np.uint32), np.array(places, np.uint32)], axis=1).ravel()
        return np.concatenate([np.full(2, POISON, np.uint32), pairs])

    @property
    def pointers(self) -> NDArray[np.uint32]:
        """Where the list's rows end, behind a word of no meaning and that of the first place."""
        ends = self.operand.pointers[1:][self.rows].astype(np.uint32)
        return np.concatenate([np.full(2, POISON, np.uint32), ends])

    def reads(self, tile: PlannedTile) -> dict[str, int]:
        """Beats by the reader's clients: where the new rows are and where they go, and the nonzeros of those that find place."""
        first, count, words = tile.begin + 1, len(tile.rows), 2 * self.lanes

        def beats(items: Iterable[int], per_beat: int) -> int:
            return len({item // per_beat for item in items})

        nonzeros = [
            segment.memory + n
            for segment in tile.load.segments[1 : 1 + tile.placed]
            for n in range(len(segment.nonzeros))
        ]
        return {
            "positions": beats(range(2 * first, 2 * (first + count)), words),
            "pointers": beats(range(first + 1, first + 1 + count), words),
            "elements": beats(nonzeros, self.lanes),
        }

    def _tile(self) -> PlannedTile:
        rng, entries = self.rng, self.metadata * self.lanes
        before = list(self.live)
        standing = [segment for segment in before if rng.random() < rng.choice([0.2, 0.9])][: entries // 2]
        free = set(range(self.capacity)) - {line - self.base for segment in standing for line in self._lines(segment)}
        numbers = list(set(range(entries)) - {segment.entry for segment in standing})
        rng.shuffle(numbers)
        if rng.random() < 0.3:
            numbers.sort(key=lambda entry: entry not in (0, entries - 1))
        want = sorted(
            rng.sample(range(len(self.operand.rows)), rng.randint(1, min(len(numbers), rng.choice([2, 9, 40]))))
        )
        placed: dict[int, int] = {}  # line of each row that finds place
        by: list[int] = []
        for row in rng.sample(want, len(want)):
            line = self._run(free, -(-len(self.operand.rows[row]) // self.lanes))
            if line < 0 or rng.random() < 0.1:
                by.append(row)
                continue
            placed[row] = line
            free -= set(range(line, line + -(-len(self.operand.rows[row]) // self.lanes)))
        rows = [*sorted(placed), *by]
        segments = [Segment(0, [], None, 0)]  # which stands for the rows in place
        for row, entry in zip(rows, numbers, strict=False):
            nonzeros = self.operand.rows[row]
            position = (self.base + placed[row]) * self.lanes if row in placed else None
            segments.append(Segment(entry, nonzeros, position, self.operand.position(row, 0)))
            # The line of a row without nonzeros, or of one that goes by, has no meaning.
            line = placed[row] if row in placed and nonzeros else rng.getrandbits(LINE_BITS)
            self.places.append((line, entry))
        begin = len(self.rows)
        self.rows += rows
        new = [segment for segment in segments[1:] if segment.position is not None]
        data = {line for segment in new for line in self._lines(segment)}
        taken = {segment.entry for segment in segments[1:]}
        survive = [s for s in before if s.entry not in taken and not data.intersection(self._lines(s))]
        self.live = survive + new
        occupied = self.metadata + max((line + 1 - self.base for line in data), default=0)
        load = Load(segments, 1, data, entries, standing)
        return PlannedTile(begin, rows, len(placed), self.metadata, load, occupied, before)

    def _lines(self, segment: Segment) -> range:
        return data_lines(segment, self.lanes)

    def _run(self, free: set[int], lines: int) -> int:
        """The first of so many free lines, often the first or the last there are; -1 for none."""
        if not lines:
            return 0
        starts = [n for n in range(self.capacity - lines + 1) if all(n + m in free for m in range(lines))]
        return self.rng.choice([starts[0], starts[-1], self.rng.choice(starts)]) if starts else -1
