"""How many tiles there are along each rank."""

from typing import Any

from amaranth.hdl import Module, Mux
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..lib.divide import CeilingDivider
from ..types import COORDINATE_WIDTH
from .tuning import tune_config

__all__ = ["TileCounts"]


class TileCounts(Block):
    """Divides the three ranks by the sides of their tiles; where shapes are tuned, by the smallest sides.

    One division a rank, all at once: ``latency`` cycles from ``start`` to ``done``, and none begins before.

    Parameters
    ----------
    tuning : bool
        T_j and T_k may be halved as often as ``tune.level`` says; else there is no ``tune``.

    Members
    -------
    extent, tile : In(ArrayLayout(COORDINATE_WIDTH, 3))
        In the order i, j, k. Sampled with ``start``; with a side of 0 a count means nothing.
    tune : In(tune_config)
    start : In(1)
        Pulse.
    done : Out(1), tiles : Out(ArrayLayout(COORDINATE_WIDTH, 3))
        ``done`` is high while ``tiles`` holds the counts of the last start.

    Timing
    ------
    ``latency`` cycles; one division a rank at a time.
    """

    latency = COORDINATE_WIDTH + 1

    def __init__(self, *, tuning: bool = False) -> None:
        self.tuning = bool(tuning)
        ranks = data.ArrayLayout(COORDINATE_WIDTH, 3)
        super().__init__(
            {
                **({"tune": In(tune_config())} if self.tuning else {}),
                "extent": In(ranks),
                "tile": In(ranks),
                "start": In(1),
                "done": Out(1),
                "tiles": Out(ranks),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        for rank, name in enumerate("ijk"):
            m.submodules[f"tiles_{name}"] = divider = CeilingDivider(width=COORDINATE_WIDTH)
            side = self.tile[rank]
            if self.tuning and name != "i":
                level = self.tune.level[rank - 1]
                side = side >> Mux(self.tune.enable, level, 0)
            m.d.comb += [
                divider.start.eq(self.start),
                divider.dividend.eq(self.extent[rank]),
                divider.divisor.eq(side),
                self.tiles[rank].eq(divider.quotient),
            ]
        m.d.comb += self.done.eq(divider.done)
        return m
