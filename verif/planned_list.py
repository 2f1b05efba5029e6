"""What a memory image says of rows of B that have places of their own: which place of the list each nonzero of A names.

It follows the registers and arrays as ``docs/memory_image.md`` describes them, tile by tile, with entries and lines of its own.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sw.runtime.memory_image import MemoryImage
from sw.runtime.registers import field_value

__all__ = ["OUTSIDE", "UNTOLD", "PlannedList", "Window", "planned_list"]

Ints = NDArray[np.int64]
# In place of a place: the entry or the load is none; what lies there depends on the time, or on what was there before the run.
OUTSIDE, UNTOLD = -1, -2


class Window(NamedTuple):
    """A tile's part of the list.

    Parameters
    ----------
    begin: the place that stands for all rows that are there already; those that are loaded follow.
    size: how many places, that one included; 0 where the tile loads nothing and uses nothing.
    kept: 1 with ``size``.
    placed: how many of those that are loaded find place.
    early: the tile before may still be computed while this one is loaded. metadata: lines of entries.
    """

    begin: int
    size: int
    kept: int
    placed: int
    early: bool
    metadata: int


@dataclass
class PlannedList:
    """Windows of the tiles, and of each place of the list its row's begin and end in B's nonzeros, its line and its entry.

    ``loaded``: place whose row each entry has, in the order in which rows come; ``owner``: of each line.
    """

    tiles: list[Window]
    tile_rows: int
    entry_bits: int
    begins: Ints
    ends: Ints
    line: Ints
    entry: Ints
    lanes: int
    loaded: dict[int, int] = field(default_factory=dict)
    owner: dict[int, int] = field(default_factory=dict)
    away: set[int] = field(default_factory=set)

    def lines_of(self, place: int) -> range:
        """Lines of the partition that the row takes where it finds place."""
        first, nonzeros = int(self.line[place]), int(self.ends[place] - self.begins[place])
        return range(first, first + -(-max(0, nonzeros) // self.lanes))

    def early_after(self, tile: int) -> bool:
        """Whether what the tile after this one loads may come while this one is computed."""
        return tile + 1 < len(self.tiles) and self.tiles[tile + 1].early

    def taken(self, window: Window) -> tuple[set[int], set[int]]:
        """Entries and lines that a tile fills."""
        first, end = window.begin + window.kept, window.begin + window.size
        lines = {line for place in range(first, min(end, first + window.placed)) for line in self.lines_of(place)}
        return set(self.entry[first:end].tolist()), lines

    def load(self, window: Window) -> None:
        """All rows of a tile come."""
        for number in range(window.kept, window.size):
            place = window.begin + number
            self.loaded[int(self.entry[place])] = place
            if number - window.kept < window.placed:
                self.owner.update(dict.fromkeys(self.lines_of(place), place))
                self.away.discard(place)
            else:
                self.away.add(place)

    def intact(self, place: int) -> bool:
        """The entry still names the row, and no other row has come into its lines."""
        if self.loaded.get(int(self.entry[place])) != place:
            return False
        return place in self.away or all(self.owner.get(line) == place for line in self.lines_of(place))

    def named(self, pointers: Ints, coordinates: Ints) -> Ints:
        """The place that each nonzero of A names: OUTSIDE, or UNTOLD, where it names none.

        A row may be used from its own load on; where a nonzero names an earlier one it may find what the entry had before. What
        the next tile loads early may come before the nonzero, too.
        """
        entry, load = coordinates & ((1 << self.entry_bits) - 1), coordinates >> self.entry_bits
        found = np.full(len(coordinates), UNTOLD, np.int64)
        for tile, window in enumerate(self.tiles):
            rows = np.minimum((tile * self.tile_rows, (tile + 1) * self.tile_rows), len(pointers) - 1)
            at = np.arange(*pointers[rows])
            for n in at[load[at] == 0]:
                found[n] = self.loaded.get(int(entry[n]), UNTOLD)
            self.load(window)
            entries, lines = self.taken(self.tiles[tile + 1]) if self.early_after(tile) else (set(), set())
            mine = load[at] > 0
            found[at[mine]] = window.begin + load[at[mine]]
            outside = (load[at] >= max(1, window.size)) | (entry[at] >= window.metadata * self.lanes)
            found[at[outside]] = OUTSIDE
            known: dict[tuple[int, int], bool] = {}
            for n in at[(found[at] >= 0)]:
                key = int(found[n]), int(entry[n])
                if key not in known:
                    stays = key[1] not in entries and (key[0] in self.away or lines.isdisjoint(self.lines_of(key[0])))
                    known[key] = stays and int(self.entry[key[0]]) == key[1] and self.intact(key[0])
                if not known[key]:
                    found[n] = UNTOLD
        return found


def planned_list(image: MemoryImage, lanes: int) -> PlannedList:
    """As memory has it. ``lanes``: nonzeros in a line."""
    registers = image.registers
    places, tiles = registers["SHAPE_K"], -(-registers["SHAPE_I"] // registers["TILE_I"])
    table = image.regions["a_tile_map"].data.view("<u8")[: 2 * tiles].reshape(-1, 2).tolist()
    rows = image.regions["b_positions"].data.view("<u4")[: 2 * places].astype(np.int64).reshape(-1, 2)
    found = [
        Window(
            begin=low & 0xFFFFFFFF,
            size=high & 0xFFFFFF,
            kept=high >> 24 & 0x7FFFFF,
            placed=low >> 48,
            early=bool(high >> 47 & 1),
            metadata=high >> 48,
        )
        for low, high in table
    ]
    return PlannedList(
        tiles=found,
        tile_rows=registers["TILE_I"],
        entry_bits=field_value("MODES", "entry_bits", registers["MODES"]),
        begins=rows[:, 0],
        ends=image.regions["b_pointers"].data.view("<u4")[1 : places + 1].astype(np.int64),
        line=rows[:, 1] & 0xFFFF,
        entry=rows[:, 1] >> 16,
        lanes=lanes,
    )
