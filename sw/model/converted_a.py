"""A that is converted on its way in: read from its first byte to its last, once a pass over its rows."""

from sw.plan.stored_a import StoredA

from .walk import Tile

__all__ = ["ConvertedA"]


class ConvertedA:
    """Counts the beats of A.

    Parameters
    ----------
    stored: how A lies in memory; None where it is not converted. bus_bytes: of a beat. rows: of A.
    beats: what a run counts, by reference (:mod:`.reads`).
    """

    def __init__(self, stored: StoredA | None, bus_bytes: int, rows: int, beats: dict[str, int]) -> None:
        self.beats_of_pass = 0 if stored is None else stored.kept.beats(bus_bytes)
        self.rows = rows
        self.beats = beats
        self.passes = 0
        self._last_begin = 0
        self._read = self.beats_of_pass  # of the present pass

    def stream(self, tile: Tile, rows: tuple[int, int]) -> None:
        """A tile's rows come. The beats of rows before them come with them, as if rows were of one length."""
        if tile.carry:
            return
        first, last = rows
        if not self.passes or first <= self._last_begin:
            self.end_pass()
            self.passes, self._read = self.passes + 1, 0
        self._last_begin = first
        self._come(self.beats_of_pass * last // self.rows)

    def end_pass(self) -> None:
        """What has not come yet comes; nothing where no tile has any of A."""
        self._come(self.beats_of_pass)

    def _come(self, through: int) -> None:
        self.beats["read_a_data"] += through - self._read
        self._read = through
