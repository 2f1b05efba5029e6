"""A tensor that is converted on its way: from its first byte to its last, once a pass over its rows."""

from sw.plan.kept_matrix import KeptMatrix

__all__ = ["ConvertedTensor"]


class ConvertedTensor:
    """Counts the beats of A, B or C.

    Parameters
    ----------
    counter: of its beats. stored: how it lies in memory; None where it is not converted. bus_bytes: of a beat.
    rows: of the tensor. beats: what a run counts, by reference (:mod:`.reads`).
    """

    def __init__(
        self, counter: str, stored: KeptMatrix | None, bus_bytes: int, rows: int, beats: dict[str, int]
    ) -> None:
        self.enabled = stored is not None
        self.beats_of_pass = 0 if stored is None else stored.kept.beats(bus_bytes)
        self.rows = rows
        self.beats = beats
        self.passes = 0
        self._counter = counter
        self._last_begin = 0
        self._read = self.beats_of_pass  # of the present pass

    def stream(self, rows: tuple[int, int]) -> int:
        """A tile's rows come, or leave. Returns the beats that move with them.

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
