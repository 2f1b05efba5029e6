"""Rows and columns of entries from their positions."""

from typing import Any

from amaranth.hdl import Module, Value
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from ...lib.block import Block
from ...lib.check import check_power_of_two
from ...lib.stream import StreamQueue
from ..divmod import ReciprocalDivmod
from ..host.hosted_divmod import HOST_PORTS, HostedDivmod
from .streams import COORDINATE_BITS, POSITION_BITS, cell_group, position_group

__all__ = ["CellFinder"]


class CellFinder(Block):
    """Row = position div columns, column = position mod columns (MINT, figure 8d), by a reciprocal.

    Keyed positions (:class:`rtl.mint.converter.position_maker.PositionMaker`) pass the divider by.

    Parameters
    ----------
    lanes : int
        Entries a cycle, power of two from 1 to 16.
    value_bits : int
        Bits of a value, 8, 16 or 32.
    divides, hosted : bool
        False: there is no divider. Its dividers are those of a host.
    tensors : bool
        Entries have a coordinate above their position; those that are divided get 0.

    Members
    -------
    columns : In(stream(33))
        Columns of the matrix, before its first entry that is to be divided; at least 1. Taken when nothing is inside.
    passes : In(1)
        No entry is divided. Constant while an entry is inside.
    owned, division_valid, division, divided_valid, divided
        Where it is hosted, as :class:`rtl.mint.host.hosted_divmod.HostedDivmod`.
    groups : In(stream(position_group)), cells : Out(stream(cell_group))
        Every entry of the one comes out of the other, in order.

    Timing
    ------
    ``latency`` cycles, none where nothing is divided; a group a cycle; the first one ``ReciprocalDivmod.load_latency`` cycles
    after ``columns``.
    """

    def __init__(
        self, *, lanes: int, value_bits: int, divides: bool = True, hosted: bool = False, tensors: bool = False
    ) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 1, 16)
        self.value_bits = check_power_of_two("Value bits", value_bits, 8, 32)
        self.divides = bool(divides)
        self.hosted = bool(hosted)
        self.tensors = bool(tensors)
        self._divmod: HostedDivmod | ReciprocalDivmod
        if self.hosted:
            self._divmod = HostedDivmod(lanes=lanes)
        elif self.divides:
            self._divmod = ReciprocalDivmod(lanes=lanes, width=POSITION_BITS, divisor_width=COORDINATE_BITS + 1)
        super().__init__(
            {
                "columns": In(stream.Signature(COORDINATE_BITS + 1)),
                "passes": In(1),
                "groups": In(stream.Signature(position_group(lanes, value_bits, self.tensors))),
                "cells": Out(stream.Signature(cell_group(lanes, value_bits, self.tensors))),
                **(HOST_PORTS if self.hosted else {}),
            }
        )

    @property
    def latency(self) -> int:
        return self._divmod.latency if self.divides else 0

    def build(self, platform: Any) -> Module:
        m = Module()
        cells, groups = self.cells, self.groups
        m.d.comb += [cells.valid.eq(groups.valid), groups.ready.eq(cells.ready)]
        for name in groups.payload.shape().members:
            m.d.comb += cells.payload[name].eq(groups.payload[name])
        for n in range(self.lanes):
            m.d.comb += [
                cells.payload.rows[n].eq(groups.payload.positions[n][COORDINATE_BITS:]),
                cells.payload.columns[n].eq(groups.payload.positions[n][:COORDINATE_BITS]),
            ]
        if self.divides:
            with m.If(~self.passes):
                self._divide(m)
        return m

    def _divide(self, m: Module) -> None:
        """Entries go through the divider."""
        m.submodules.divmod = divmod = self._divmod
        if self.hosted:
            for name, member in HOST_PORTS.items():
                outer, inner = getattr(self, name), getattr(divmod, name)
                m.d.comb += outer.eq(inner) if member.flow is Out else inner.eq(outer)
        # What the divider has inside, and one more so that it never waits.
        shape = position_group(self.lanes, self.value_bits)
        m.submodules.along = along = StreamQueue(shape=shape, depth=self.latency + 1)
        m.d.comb += [
            divmod.divisor.valid.eq(self.columns.valid),
            divmod.divisor.payload.eq(self.columns.payload),
            self.columns.ready.eq(divmod.divisor.ready),
            divmod.dividends.valid.eq(self.groups.valid & along.i.ready),
            along.i.valid.eq(self.groups.valid & divmod.dividends.ready),
            self.groups.ready.eq(divmod.dividends.ready & along.i.ready),
            divmod.dividends.payload.eq(self.groups.payload.positions),
            self.cells.valid.eq(divmod.results.valid),
            divmod.results.ready.eq(self.cells.ready),
            along.o.ready.eq(divmod.results.valid & self.cells.ready),
        ]
        if self.tensors:
            m.d.comb += Value.cast(self.cells.payload.outers).eq(0)
        for name in shape.members:
            m.d.comb += along.i.payload[name].eq(self.groups.payload[name])
            m.d.comb += self.cells.payload[name].eq(along.o.payload[name])
        for n in range(self.lanes):
            m.d.comb += [
                self.cells.payload.rows[n].eq(divmod.results.payload.quotients[n]),
                self.cells.payload.columns[n].eq(divmod.results.payload.remainders[n]),
            ]
