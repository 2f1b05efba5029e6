"""The driver's view of the registers: offsets, fields, error codes and counters by name.

Everything derives from :mod:`sw.runtime.register_constants`, which is generated from the hardware's own declaration.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from . import register_constants as constants
from .register_constants import IDENTITY, PHASES, UNITS, VALUE_TYPES, VERSION, ErrorCode

__all__ = [
    "COUNTERS",
    "IDENTITY",
    "PHASES",
    "REGISTERS",
    "UNITS",
    "VALUE_TYPES",
    "VERSION",
    "WORD_OFFSETS",
    "ErrorCode",
    "Register",
    "RegisterField",
    "error_message",
    "field_value",
    "pack_fields",
    "register_table",
]


@dataclass(frozen=True)
class RegisterField:
    """``width`` bits from bit ``lsb``; ``access``: r, rw, w1p (writing 1 acts) or w1c (writing 1 clears)."""

    name: str
    lsb: int
    width: int
    access: str

    @property
    def mask(self) -> int:
        """The field's bits in place."""
        return ((1 << self.width) - 1) << self.lsb


@dataclass(frozen=True)
class Register:
    """A register of 32 bits, or of 64 bits whose upper word is four bytes above ``offset``."""

    name: str
    offset: int
    width: int
    role: str
    fields: dict[str, RegisterField]

    @property
    def writable(self) -> bool:
        return any(item.access != "r" for item in self.fields.values())


def register_table(
    entries: Mapping[str, tuple[int, int, str, tuple[tuple[str, int, int, str], ...]]],
) -> dict[str, Register]:
    """Registers by name, out of the literal of a generated module."""
    table = {}
    for name, (offset, width, role, fields) in entries.items():
        table[name] = Register(name, offset, width, role, {entry[0]: RegisterField(*entry) for entry in fields})
    return table


REGISTERS: dict[str, Register] = register_table(constants.REGISTERS)

# Offset of every 32-bit word; 64-bit registers appear as NAME_LO and NAME_HI.
WORD_OFFSETS: dict[str, int] = {}
for _register in REGISTERS.values():
    if _register.width == 32:
        WORD_OFFSETS[_register.name] = _register.offset
    else:
        WORD_OFFSETS[f"{_register.name}_LO"] = _register.offset
        WORD_OFFSETS[f"{_register.name}_HI"] = _register.offset + 4

# Counter names in register order.
COUNTERS: tuple[str, ...] = tuple(constants.COUNTERS)


def field_value(register: str, field: str, word: int) -> int:
    """Value of one field in the contents ``word`` of a register."""
    item = REGISTERS[register].fields[field]
    return (word & item.mask) >> item.lsb


def pack_fields(register: str, **values: int) -> int:
    """Contents of a register from field values; fields that are not named are zero."""
    word = 0
    for name, value in values.items():
        item = REGISTERS[register].fields.get(name)
        if item is None:
            raise ValueError(
                f"Register {register} has no field {name!r}: it has {', '.join(REGISTERS[register].fields)}"
            )
        if not 0 <= value < 1 << item.width:
            raise ValueError(f"{register}.{name} = {value}: must be from 0 to {(1 << item.width) - 1}")
        word |= value << item.lsb
    return word


def error_message(code: int, detail: int) -> str:
    """One sentence for an error code and its detail, as the driver reports it."""
    if code not in constants.ERRORS:
        return f"unknown error {code} (detail 0x{detail:x})"
    name, description, meaning = constants.ERRORS[code]
    if code == 0:
        return description
    shown = f"0x{detail:x}" if any(word in meaning for word in ("address", "offset", "value")) else str(detail)
    if "register" in meaning:
        register = next((known for known, offset in WORD_OFFSETS.items() if offset == detail), None)
        shown = register if register is not None else shown
    return f"{name}: {description} ({meaning}: {shown})"
