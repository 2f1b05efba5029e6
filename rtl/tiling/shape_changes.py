"""How a tile's shape may change from one tile to the next."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import enum
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..types import COORDINATE_WIDTH

__all__ = ["CANDIDATES", "STAY", "Change", "LegalChanges"]

# Changes of (T_k, T_j): 1 doubled, 0 as it is, -1 halved. Of those that do as well the first is taken.
CANDIDATES = ((1, 1), (1, 0), (0, 1), (0, 0), (1, -1), (-1, 1), (0, -1), (-1, 0), (-1, -1))
STAY = CANDIDATES.index((0, 0))


class Change(enum.Enum, shape=2):
    """What becomes of one side of the tile."""

    STAY = 0
    DOUBLE = 1
    HALVE = 2


class LegalChanges(Block):
    """Tells which candidates keep tiles aligned, in bounds and their metadata in the partition. One shape a cycle.

    Parameters
    ----------
    lanes, line_address_width : int
        As those of :class:`.tuning.TuningUnit`.

    Members
    -------
    side_k, side_j, extent_k, extent_j, movable, halvable, lines, fifo_lines : In
        As the tuning unit's.
    legal : Out(len(CANDIDATES))
        Of what stood at the inputs for ``latency`` cycles: a bit for each of ``CANDIDATES``.

    Timing
    ------
    ``latency`` cycles, 3; one shape a cycle.
    """

    latency = 3

    def __init__(self, *, lanes: int, line_address_width: int) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 1, 64)
        self.line_address_width = check_integer("Line address width", line_address_width, 1, COORDINATE_WIDTH)
        super().__init__(
            {
                **{name: In(COORDINATE_WIDTH) for name in ("side_k", "side_j", "extent_k", "extent_j")},
                "movable": In(2),
                "halvable": In(2),
                "lines": In(line_address_width + 1),
                "fifo_lines": In(line_address_width + 1),
                "legal": Out(len(CANDIDATES)),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        shift = (self.lanes - 1).bit_length()
        doubled = Signal(COORDINATE_WIDTH + 1)
        most_rows = Signal(COORDINATE_WIDTH + 1)
        may_double = Signal(2)
        may_halve = Signal(2)
        m.d.sync += [
            doubled.eq(Mux(self.side_k << 1 < self.extent_k, self.side_k << 1, self.extent_k)),
            most_rows.eq((self.lines - self.fifo_lines - 1) << shift),
            may_double[0].eq(self.movable[0] & (self.side_j < self.extent_j) & ~self.side_j[-1]),
            may_double[1].eq(
                self.movable[1] & (self.side_k < self.extent_k) & ~self.side_k[-1] & (doubled <= most_rows)
            ),
            may_halve.eq(self.movable & self.halvable),
        ]
        for n, (k, j) in enumerate(CANDIDATES):
            of_k, of_j = ({1: may_double[side], -1: may_halve[side], 0: 1}[c] for side, c in ((1, k), (0, j)))
            m.d.sync += self.legal[n].eq(of_k & of_j)
        return m
