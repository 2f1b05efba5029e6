"""The driver's view of the registers: offsets, fields, error codes and counters by name.

Everything derives from :mod:`sw.runtime.register_constants`, which is generated from the hardware's own declaration.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from . import register_constants as constants
from .register_constants import CONVERSION, CONVERTED, IDENTITY, PHASES, UNITS, VALUE_TYPES, VERSION, ErrorCode

__all__ = [
    "ACCELERATOR",
    "CONVERSION",
    "CONVERTED",
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
    "RegisterMap",
    "error_message",
    "field_value",
    "pack_fields",
    "words",
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


Entries = Mapping[str, tuple[int, int, str, tuple[tuple[str, int, int, str], ...]]]


class RegisterMap:
    """The registers of one block and its error codes, out of the literals of a generated module.

    ``block``: its name in messages. ``identity``, ``version``: what ID and VERSION read. ``word_offsets``: of every 32-bit
    word; 64-bit registers appear as NAME_LO and NAME_HI.
    """

    def __init__(
        self, block: str, identity: int, version: int, entries: Entries, errors: Mapping[int, tuple[str, str, str]]
    ) -> None:
        self.block = block
        self.identity = identity
        self.version = version
        self.errors = errors
        self.registers: dict[str, Register] = {}
        self.word_offsets: dict[str, int] = {}
        for name, (offset, width, role, fields) in entries.items():
            self.registers[name] = Register(
                name, offset, width, role, {entry[0]: RegisterField(*entry) for entry in fields}
            )
            names = (name,) if width == 32 else (f"{name}_LO", f"{name}_HI")
            self.word_offsets |= {word: offset + 4 * n for n, word in enumerate(names)}

    def words(self, register: str, value: int) -> list[tuple[int, int]]:
        """Offset and contents of each 32-bit word of a register."""
        item = self.registers[register]
        if not 0 <= value < 1 << item.width:
            raise ValueError(f"{register} = {value}: must be from 0 to {(1 << item.width) - 1}")
        pairs = [(item.offset, value & 0xFFFFFFFF)]
        return pairs if item.width == 32 else [*pairs, (item.offset + 4, value >> 32)]

    def field_value(self, register: str, field: str, word: int) -> int:
        """Value of one field in the contents ``word`` of a register."""
        item = self.registers[register].fields[field]
        return (word & item.mask) >> item.lsb

    def pack_fields(self, register: str, **values: int) -> int:
        """Contents of a register from field values; fields that are not named are zero."""
        word = 0
        fields = self.registers[register].fields
        for name, value in values.items():
            item = fields.get(name)
            if item is None:
                raise ValueError(f"Register {register} has no field {name!r}: it has {', '.join(fields)}")
            if not 0 <= value < 1 << item.width:
                raise ValueError(f"{register}.{name} = {value}: must be from 0 to {(1 << item.width) - 1}")
            word |= value << item.lsb
        return word

    def error_message(self, code: int, detail: int) -> str:
        """One sentence for an error code and its detail, as the driver reports it."""
        if code not in self.errors:
            return f"unknown error {code} (detail 0x{detail:x})"
        name, description, meaning = self.errors[code]
        if code == 0:
            return description
        shown = f"0x{detail:x}" if any(word in meaning for word in ("address", "offset", "value of")) else str(detail)
        if "register" in meaning:
            register = next((known for known, offset in self.word_offsets.items() if offset == detail), None)
            shown = register if register is not None else shown
        return f"{name}: {description} ({meaning}: {shown})"


ACCELERATOR = RegisterMap("accelerator", IDENTITY, VERSION, constants.REGISTERS, constants.ERRORS)
REGISTERS = ACCELERATOR.registers
WORD_OFFSETS = ACCELERATOR.word_offsets
words, field_value = ACCELERATOR.words, ACCELERATOR.field_value
pack_fields, error_message = ACCELERATOR.pack_fields, ACCELERATOR.error_message

# Counter names in register order.
COUNTERS: tuple[str, ...] = tuple(constants.COUNTERS)
