"""Tailors: a buffet that keeps working when its tile does not fit, one operation at a time.

Written beside section 3.3 of the Tailors paper; ``tests/papers/test_tailors_figure5.py`` reproduces its figure 5.
Where text and figure differ (when the FIFO offset returns to zero) this follows the figure: at the overwriting fill
that begins the bumped data again.
"""

from typing import Generic, TypeVar

from .buffet import IllegalOperation, Stall

__all__ = ["IllegalOperation", "Stall", "TailorsBuffer"]

Entry = TypeVar("Entry")


class TailorsBuffer(Generic[Entry]):
    """A buffer of ``capacity`` entries whose last ``fifo`` become the FIFO-managed region once the tile overbooks it.

    While overbooked, the entries after the buffet-managed region are *bumped*: the parent streams them in order, pass after pass,
    through the FIFO-managed region. A position counts them from the first.

    ``tile_length`` is the number of entries of the tile from index 0 on, at the first overwriting fill; 0 means
    unbounded: the bumped data never begins again.
    """

    def __init__(self, capacity: int, fifo: int, tile_length: int = 0) -> None:
        if not 1 <= fifo <= capacity:
            raise ValueError(f"FIFO-managed region must be from 1 to {capacity} entries, not {fifo!r}")
        self.capacity = capacity
        self.fifo = fifo
        self.tile_length = tile_length
        self.regular: list[Entry] = []  # buffet-managed entries; all of them while not overbooked
        self.region: list[Entry] = []  # FIFO-managed region, least recent first
        self.fifo_offset = 0  # position of region[0]
        self.bumped = 0  # bumped entries of the tile, present or not; 0 when unbounded
        self.overbooked = False
        self.shrunk = False  # a shrink freed space while overbooked: the next wrap backfills it
        self.backfilling = False  # no longer overbooked, but part of the tile has not been streamed again yet

    @property
    def occupancy(self) -> int:
        return len(self.regular) + len(self.region)

    @property
    def credit(self) -> int:
        return 0 if self.overbooked or self.backfilling else self.capacity - len(self.regular)

    def _locate(self, index: int) -> int:
        """Buffer offset of tile index ``index``, counted as figure 5 draws it."""
        if index < len(self.regular):
            return index
        if not self.overbooked:
            raise Stall
        position = index - len(self.regular)
        distance = position - self.fifo_offset
        if self.bumped:
            if position >= self.bumped:
                raise IllegalOperation("INDEX_BEYOND_TILE")
            distance %= self.bumped
        if not 0 <= distance < len(self.region):
            raise Stall
        return len(self.regular) + distance

    def buffer_offset(self, index: int) -> int:
        return self._locate(index)

    def fill(self, entry: Entry) -> None:
        if self.overbooked and not self.shrunk:
            raise IllegalOperation("FILL_WHILE_OVERBOOKED")
        if not self.credit:
            raise Stall
        self.regular.append(entry)

    def overwrite(self, entry: Entry) -> None:
        """OWFill."""
        if self.overbooked:
            position = self.fifo_offset + len(self.region)
            if self.bumped and self.shrunk and position % self.bumped == 0:
                self.overbooked, self.shrunk, self.backfilling = False, False, True
                self.region.clear()
                self.fifo_offset = 0
                self._backfill(entry)
            else:
                self._rotate(entry)
        elif self.backfilling and len(self.regular) < self.capacity:
            self._backfill(entry)
        elif len(self.regular) < self.capacity:
            raise IllegalOperation("OVERWRITE_BEFORE_FULL")
        elif not self.backfilling and 0 < self.tile_length <= self.capacity:
            raise IllegalOperation("OVERWRITE_OF_FITTING_TILE")
        else:
            self._split(entry)

    def _split(self, entry: Entry) -> None:
        """The first overwriting fill clears the FIFO-managed region out of the buffet-managed one."""
        kept = self.capacity - self.fifo
        if self.backfilling:
            self.bumped += self.fifo
        else:
            self.bumped = self.tile_length - kept if self.tile_length else 0
        del self.regular[kept:]
        self.region = [entry]
        self.fifo_offset = self.fifo
        self.overbooked, self.backfilling = True, False

    def _rotate(self, entry: Entry) -> None:
        """Later ones drop the least recent entry of the region when it is full."""
        if len(self.region) == self.fifo:
            self.region.pop(0)
            self.fifo_offset += 1
            if self.fifo_offset == self.bumped:
                self.fifo_offset = 0
        self.region.append(entry)

    def _backfill(self, entry: Entry) -> None:
        """After a shrink, the bumped data of the next pass extends the buffet-managed region."""
        self.regular.append(entry)
        self.bumped -= 1
        self.backfilling = self.bumped > 0

    def read(self, index: int) -> Entry:
        offset = self._locate(index)
        return (self.regular + self.region)[offset]

    def update(self, index: int, entry: Entry) -> None:
        offset = self._locate(index)
        if offset < len(self.regular):
            self.regular[offset] = entry
        else:
            self.region[offset - len(self.regular)] = entry

    def shrink(self, count: int) -> None:
        """Free ``count`` entries at the head: buffet-managed ones, or all there are, which ends an overbooked tile."""
        if self.overbooked and count == self.occupancy:
            self.__init__(self.capacity, self.fifo, self.tile_length)  # type: ignore[misc]
        elif count > len(self.regular):
            raise IllegalOperation("SHRINK_BEYOND_OCCUPANCY")
        else:
            del self.regular[:count]
            self.shrunk |= self.overbooked and count > 0
