"""Tensors on their way in or out in another format: what the registers say, and where their converters stand in the machine."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Value
from amaranth.lib import data
from amaranth.lib.wiring import connect

from ..accessor.converted_a import ConvertedA
from ..accessor.converted_b import ConvertedB
from ..accessor.converted_c import ConvertedC
from ..accessor.converted_operand import ConvertedOperand
from ..lib.signals import signals
from ..regs.converter_map import FORMATS
from ..regs.map import ORDERS
from ..tiling.run_control import Phase
from ..tiling.settings import modes
from ..types import POSITION_WIDTH

__all__ = ["connect_conversion", "connect_converters", "conversion", "converters"]

Converter = ConvertedOperand | ConvertedC


def conversion(tensor: str) -> data.StructLayout:
    """CONVERSION of a tensor as the registers hold it, and COUNT of an operand."""
    count = {} if tensor == "c" else {"count": POSITION_WIDTH}
    return data.StructLayout({"enable": 1, "format": 3, "row": 6, "run": 6, **count})


def connect_conversion(told: Any, register: Any, *count: Value) -> Iterator[Any]:
    """Assignments that tell a tensor's registers; of C there is no ``count``."""
    yield from (told.count.eq(value) for value in count)
    yield from (told[name].eq(register[name]) for name in ("enable", "format", "row", "run"))


def converters(tensors: str, *, group: int, lanes: int, burst_beats: int, **sizes: Any) -> dict[str, Converter]:
    """Those of ``tensors``, by tensor. ``group``: lanes of the selection gate. ``sizes``: what all have."""
    makers: dict[str, Callable[[], Converter]] = {
        "a": lambda: ConvertedA(lanes=group, **sizes),
        "b": lambda: ConvertedB(lanes=lanes, **sizes),
        "c": lambda: ConvertedC(lanes=lanes, burst_beats=burst_beats, **sizes),
    }
    return {tensor: makers[tensor]() for tensor in tensors}


def connect_converters(m: Module, owner: Any, made: Mapping[str, Converter]) -> None:
    """Puts each in its place. Without one of A that operand's tiles go to its accessor, and what this makes to the gate.

    What is stored of C is said by its converter, or by its accessor.
    """
    if "a" not in made:
        connect(m, owner.control.compute_a, owner.a.tile)
        connect(m, owner.a.selections, owner.gate.nonzeros)
    if "c" not in made:
        m.d.comb += owner.stored.eq(owner.c.stored)
    for tensor, converted in made.items():
        m.submodules[f"converted_{tensor}"] = converted
        {"a": _connect_a, "b": _connect_b, "c": _connect_c}[tensor](m, owner, converted)


def _connect_a(m: Module, owner: Any, converted: ConvertedA) -> None:
    """Stands between run control and accessor A, and between that and the selection gate."""
    control, want = owner.control, owner.scheme
    connect(m, control.compute_a, converted.tile)
    connect(m, converted.fetched_tile, owner.a.tile)
    connect(m, owner.a.selections, converted.fetched)
    connect(m, converted.selections, owner.gate.nonzeros)
    # Where i is cut, j may only be cut outside: the rows of A come in order, once a pass.
    i_outside = Cat(want.order == n for n, name in enumerate(ORDERS) if name.index("i") < name.index("j")).any()
    both_cut = (want.tile[0] < want.extent[0]) & (want.tile[1] < want.extent[1])
    others = want.buffering.a | want.gathered | owner.tune.enable | (want.tile[2] < want.extent[2])
    _configure(m, owner, converted, others | (i_outside & both_cut), (want.extent[0], want.extent[2]))


def _connect_b(m: Module, owner: Any, converted: ConvertedB) -> None:
    """Gives accessor B the rows that it loads."""
    control, want, b = owner.control, owner.scheme, owner.b
    connect(m, b.converted_tile, converted.tile)
    connect(m, converted.segments, b.converted_segments)
    m.d.comb += [
        b.converted.eq(converted.enable),
        b.converted_idle.eq(converted.idle),
        # The last tile has come, so that what is left is nobody's.
        converted.finishing.eq(control.running & control.present.last & (control.phase != Phase.LOAD_B)),
    ]
    # Rows are whole, and each tile's lie side by side.
    others = ~want.buffering.b | want.gathered | owner.tune.enable | (want.tile[1] < want.extent[1])
    _configure(m, owner, converted, others, (want.extent[2], want.extent[1]))


def _connect_c(m: Module, owner: Any, converted: ConvertedC) -> None:
    """Takes the final rows of accessor C."""
    c, told, regions = owner.c, owner.conversion.c, owner.regions
    connect(m, c.to_conversion, converted.words)
    target = converted.settings
    m.d.comb += [
        c.converted.eq(told.enable),
        c.conversion_idle.eq(converted.idle),
        owner.stored.eq(Mux(told.enable, converted.records, c.stored)),
        converted.flush.eq(c.conversion_flush),
        converted.written.eq(owner.clients.written(converted)),
        *_shape(owner, converted, (owner.scheme.extent[0], owner.scheme.extent[1])),
        target.formats.source.eq(FORMATS.index("csr")),
        target.formats.target.eq(told.format),
        target.widths.target_run.eq(told.run),
        target.target_records.eq(regions["elements"]),
        target.target_records_bytes.eq(regions["elements_bytes"]),
        target.target_frame.eq(regions.pointers),
        target.target_frame_bytes.eq(~Const(0, len(target.target_frame_bytes))),  # its size follows from the shape
    ]


def _shape(owner: Any, converted: Converter, extent: tuple[Value, Value]) -> Iterator[Any]:
    """What the registers say of the shape of a tensor. ``extent``: rows and columns."""
    settings, tensor = converted.settings, converted.TENSOR
    yield from (settings.rows.eq(extent[0]), settings.columns.eq(extent[1]))
    yield settings.widths.row.eq(owner.conversion[tensor].row)
    yield settings.widths.column.eq(owner.scheme.coordinates[tensor])


def _configure(m: Module, owner: Any, converted: ConvertedOperand, others: Value, extent: tuple[Value, Value]) -> None:
    """What the registers say. ``others``: the scheme reads the operand in another way. ``extent``: rows and columns."""
    control, want, tensor = owner.control, owner.scheme, converted.TENSOR
    told, arrays = owner.conversion[tensor], owner.operands[tensor]
    refused, checked = signals("refused checked")
    m.d.sync += [
        refused.eq(others),
        checked.eq(control.running & (control.phase != Phase.CHECK)),
    ]
    source = converted.settings
    m.d.comb += [
        converted.enable.eq(told.enable),
        converted.allowed.eq(~refused | ~checked),
        converted.modes.eq(modes(want)),
        *_shape(owner, converted, extent),
        source.formats.source.eq(told.format),
        source.formats.target.eq(FORMATS.index("csr")),
        source.widths.source_run.eq(told.run),
        source.count.eq(told.count),
        source.source_records.eq(arrays["elements"]),
        source.source_frame.eq(arrays.pointers),
    ]
