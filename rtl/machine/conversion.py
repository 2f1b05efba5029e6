"""A on its way in out of another format: what the registers say of it, and where its converter stands in the machine."""

from typing import Any

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data
from amaranth.lib.wiring import connect

from ..accessor.converted_a import ConvertedA
from ..regs.converter_map import FORMATS
from ..regs.map import ORDERS
from ..tiling.run_control import Phase
from ..tiling.settings import modes
from ..types import POSITION_WIDTH

__all__ = ["connect_conversion", "conversion"]


def conversion() -> data.StructLayout:
    """CONVERSION and COUNT as the registers hold them."""
    return data.StructLayout({"enable": 1, "source": 3, "row": 6, "source_run": 6, "count": POSITION_WIDTH})


def connect_conversion(m: Module, owner: Any, converted: ConvertedA) -> None:
    """Stands between run control and accessor A, and between that and the selection gate."""
    control, want, told = owner.control, owner.scheme, owner.conversion
    connect(m, control.compute_a, converted.tile)
    connect(m, converted.fetched_tile, owner.a.tile)
    connect(m, owner.a.selections, converted.fetched)
    connect(m, converted.selections, owner.gate.nonzeros)
    # Where i is cut, j may only be cut outside: the rows of A come in order, once a pass.
    i_outside = Cat(want.order == n for n, name in enumerate(ORDERS) if name.index("i") < name.index("j")).any()
    both_cut = (want.tile[0] < want.extent[0]) & (want.tile[1] < want.extent[1])
    others = want.buffering.a | want.gathered | owner.tune.enable | (want.tile[2] < want.extent[2])
    refused, checked = Signal(), Signal()
    m.d.sync += [
        refused.eq(others | (i_outside & both_cut)),
        checked.eq(control.running & (control.phase != Phase.CHECK)),
    ]
    m.d.comb += [
        converted.enable.eq(told.enable),
        converted.allowed.eq(~refused | ~checked),
        converted.modes.eq(modes(want)),
    ]
    source, arrays = converted.settings, owner.operands.a
    m.d.comb += [
        source.formats.source.eq(told.source),
        source.formats.target.eq(FORMATS.index("csr")),
        source.widths.row.eq(told.row),
        source.widths.column.eq(want.coordinates.a),
        source.widths.source_run.eq(told.source_run),
        source.rows.eq(want.extent[0]),
        source.columns.eq(want.extent[2]),
        source.count.eq(told.count),
        source.source_records.eq(arrays["elements"]),
        source.source_frame.eq(arrays.pointers),
    ]
