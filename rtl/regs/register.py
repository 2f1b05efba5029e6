"""What a register map is declared of: registers, fields, their roles, error codes. Pure Python."""

from dataclasses import dataclass, field
from enum import Enum

__all__ = [
    "ADDRESS_BITS",
    "Access",
    "ErrorDescription",
    "Field",
    "Register",
    "Role",
    "address",
    "check_map",
    "configuration",
    "constant",
    "result",
]

ADDRESS_BITS = 12


class Access(Enum):
    """How software reaches a field."""

    READ = "r"  # writes are refused
    READ_WRITE = "rw"
    PULSE = "w1p"  # writing 1 acts for one cycle; reads 0
    CLEAR = "w1c"  # writing 1 clears


class Role(Enum):
    """Where a register's contents come from or go to."""

    CONSTANT = "constant"  # fixed for the build: identity and parameters of the design
    CONTROL = "control"  # the register file's own control and status
    CONFIGURATION = "configuration"  # shown to the hardware, locked while a run is busy
    ADDRESS = "address"  # configuration that holds a byte address
    RESULT = "result"  # value from the hardware
    COUNTER = "counter"  # 64-bit value from the counter bank


@dataclass(frozen=True)
class Field:
    """``width`` bits from bit ``lsb`` of a register."""

    name: str
    lsb: int
    width: int
    access: Access
    description: str


@dataclass(frozen=True)
class Register:
    """One register of ``width`` 32 or 64 bits at byte ``offset``."""

    name: str
    offset: int
    role: Role
    description: str
    width: int = 32
    fields: tuple[Field, ...] = field(default=())

    @property
    def key(self) -> str:
        """Name in lower case: what the field is called in the hardware's structs."""
        return self.name.lower()

    @property
    def writable(self) -> bool:
        return any(item.access is not Access.READ for item in self.fields)

    @property
    def words(self) -> tuple[tuple[str, int], ...]:
        """Name and offset of each 32-bit word."""
        if self.width == 32:
            return ((self.name, self.offset),)
        return ((f"{self.name}_LO", self.offset), (f"{self.name}_HI", self.offset + 4))


@dataclass(frozen=True)
class ErrorDescription:
    """Value of ERROR_CODE, and what ERROR_DETAIL then says."""

    code: int
    name: str
    description: str
    detail: str


def constant(name: str, offset: int, description: str) -> Register:
    return Register(name, offset, Role.CONSTANT, description, 32, (Field("value", 0, 32, Access.READ, description),))


def configuration(name: str, offset: int, description: str, width: int = 32) -> Register:
    value = Field("value", 0, width, Access.READ_WRITE, description)
    return Register(name, offset, Role.CONFIGURATION, description, 64 if width > 32 else 32, (value,))


def address(name: str, offset: int, description: str) -> Register:
    value = Field("value", 0, 64, Access.READ_WRITE, description)
    return Register(name, offset, Role.ADDRESS, description, 64, (value,))


def result(name: str, offset: int, description: str, role: Role = Role.RESULT) -> Register:
    return Register(name, offset, role, description, 64, (Field("value", 0, 64, Access.READ, description),))


def check_map(registers: tuple[Register, ...]) -> None:
    """Raises ValueError where registers or fields overlap."""
    taken: set[int] = set()
    names: set[str] = set()
    for register in registers:
        for name, offset in register.words:
            if offset % 4 or offset >= 1 << ADDRESS_BITS or offset in taken or name in names:
                raise ValueError(f"Register {name} at 0x{offset:03x} is misplaced or declared twice")
            taken.add(offset)
            names.add(name)
        used = 0
        for item in register.fields:
            mask = ((1 << item.width) - 1) << item.lsb
            if item.width < 1 or mask & used or mask >> register.width:
                raise ValueError(f"Field {register.name}.{item.name} overlaps another or leaves the register")
            used |= mask
