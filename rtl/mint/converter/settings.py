"""What the registers of a converter say, as its blocks read it."""

from collections.abc import Collection
from typing import Any

from amaranth.hdl import Const, Mux, Value
from amaranth.lib import data

from ...regs.converter_map import ERRORS, FORMATS, REGISTERS, TENSOR_FORMATS
from ...regs.signature import configuration_layout
from .conversions import Conversions

__all__ = [
    "ERROR_CODES",
    "HAS_FRAME",
    "HAS_POINTERS",
    "HAS_RECORDS",
    "KEEPS_ZEROS",
    "changes_order",
    "is_one_of",
    "is_tensor",
    "record_widths",
    "settings_layout",
    "source_widths",
]

#: Values of ERROR_CODE by name.
ERROR_CODES = {error.name: error.code for error in ERRORS}
#: Formats with records, with a frame, and those in which a stored zero stays an entry. CSC is met as CSR of the transpose.
HAS_RECORDS = ("coo", "csr", "rlc", "zvc", "bsr", "csf")
HAS_POINTERS = ("csr", "bsr")
HAS_FRAME = ("dense", "zvc", *HAS_POINTERS, "csf")
KEEPS_ZEROS = ("coo", "csr", "csf")


def settings_layout(address_width: int) -> data.StructLayout:
    """All registers that software configures."""
    return configuration_layout(address_width, REGISTERS)


def is_one_of(code: Value, *formats: str, among: Collection[str] = FORMATS) -> Value:
    """Whether the value of FORMATS.source or FORMATS.target names one of these. It names none but those ``among``."""
    if not {*formats} & {*among}:
        return Const(0, 1)
    if {*among} <= {*formats}:
        return Const(1, 1)
    found: Any = 0
    for name in formats:
        found = found | (code == FORMATS.index(name))
    return found


def is_tensor(settings: Any, among: Collection[str] = FORMATS) -> Value:
    """Whether a tensor of order 3 is converted: the target, one of those ``among``, is of no matrix."""
    return is_one_of(settings.formats.target, *TENSOR_FORMATS, among=among)


def record_widths(settings: Any, code: Value, run: Value, among: Collection[str] = FORMATS) -> tuple[Value, Value]:
    """Bits of the two whole numbers of a record: row and column (COO), column alone (CSR, BSR), run (RLC), k alone (CSF),
    nothing (ZVC).
    """
    coo, by_row, rlc, csf = (
        is_one_of(code, *names, among=among) for names in (("coo",), HAS_POINTERS, ("rlc",), ("csf",))
    )
    second = Mux(csf, settings.widths.depth, Mux(coo | by_row, settings.widths.column, 0))
    return Mux(coo, settings.widths.row, Mux(rlc, run, 0)), second


def source_widths(settings: Any, conversions: Conversions) -> tuple[Value, Value, Value]:
    """Bits of the whole numbers of a record of the source: those of :func:`record_widths`, and k of a tensor (COO)."""
    reads = conversions.reads
    first, second = record_widths(settings, settings.formats.source, settings.widths.source_run, reads)
    return first, second, Mux(is_tensor(settings, conversions.writes), settings.widths.depth, 0)


def changes_order(settings: Any, conversions: Conversions) -> Value:
    """Whether entries are sorted: one format goes by columns, or rows of blocks have several rows and several blocks."""
    source = is_one_of(settings.formats.source, "csc", among=conversions.sources)
    target = is_one_of(settings.formats.target, "csc", among=conversions.targets)
    blocked = is_one_of(settings.formats.target, "bsr", among=conversions.targets)
    mixes = (settings.block_rows != 1) & (settings.grid_columns != 1)
    return Mux(blocked, source | mixes, source ^ target)
