"""An operand that is converted on its way in: read from its first byte to its last, once a pass over its rows."""

from sw.plan.stored_operand import StoredOperand

__all__ = ["ConvertedOperand"]


class ConvertedOperand:
    """Counts the beats of A, or of B.

    Parameters
    ----------
    tensor: ``a`` or ``b``. stored: how it lies in memory; None where it is not converted. bus_bytes: of a beat.
    rows: of the operand. beats: what a run counts, by reference (:mod:`.reads`).
    """

    def __init__(
        self, tensor: str, stored: StoredOperand | None, bus_bytes: int, rows: int, beats: dict[str, int]
    ) -> None:
        self.enabled = stored is not None
        self.beats_of_pass = 0 if stored is None else stored.kept.beats(bus_bytes)
        self.rows = rows
        self.beats = beats
        self.passes = 0
        self._counter = f"read_{tensor}_data"
        self._last_begin = 0
        self._read = self.beats_of_pass  # of the present pass

    def stream(self, rows: tuple[int, int]) -> int:
        """A tile's rows come. Returns the beats that come with them.

        These are what is left of the pass before, and those of rows before the tile's, as if rows were of one length.
        """
        first, last = rows
        before = self.beats[self._counter]
        if not self.passes or first <= self._last_begin:
            self.end_pass()
            self.passes, self._read = self.passes + 1, 0
        self._last_begin = first
        self._come(self.beats_of_pass * last // self.rows)
        return self.beats[self._counter] - before

    def end_pass(self) -> None:
        """What has not come yet comes; nothing where no tile has any of the operand."""
        self._come(self.beats_of_pass)

    def _come(self, through: int) -> None:
        self.beats[self._counter] += through - self._read
        self._read = through
