"""What software does with any block of the generator behind a register bus: configure, start, wait, read the outcome."""

from collections.abc import Mapping
from typing import ClassVar, Protocol

from .registers import RegisterMap

__all__ = ["DriverError", "RegisterBus", "RegisterDriver"]


class RegisterBus(Protocol):
    """Access to 32-bit registers by byte offset."""

    def read(self, offset: int) -> int: ...

    def write(self, offset: int, value: int) -> None: ...


class DriverError(RuntimeError):
    """The hardware is not what was expected, or a run ended with an error; the text is one line."""


class RegisterDriver:
    """One block behind a register bus; ``MAP``: its registers.

    Its configuration is written before ``start``; after that only reading is allowed until ``done``: the hardware answers
    writes of its configuration with an error.
    """

    MAP: ClassVar[RegisterMap]

    def __init__(self, bus: RegisterBus) -> None:
        self.bus = bus

    def read(self, register: str) -> int:
        """Contents of a register of 32 or 64 bits. Of 64 bits the lower word comes first: it holds the upper one."""
        item = self.MAP.registers[register]
        low = self.bus.read(item.offset)
        return low if item.width == 32 else low | self.bus.read(item.offset + 4) << 32

    def write(self, register: str, value: int) -> None:
        for offset, word in self.MAP.words(register, value):
            self.bus.write(offset, word)

    def write_all(self, registers: Mapping[str, int]) -> None:
        """Write the configuration of a run."""
        for name, value in registers.items():
            self.write(name, value)

    def parameters(self) -> dict[str, int]:
        """Parameters of the hardware. Raises DriverError where there is no such block, or one of another version."""
        if (found := self.read("ID")) != self.MAP.identity:
            raise DriverError(f"no {self.MAP.block} here: ID reads 0x{found:08x}, not 0x{self.MAP.identity:08x}")
        version = self.read("VERSION")
        if version >> 16 != self.MAP.version >> 16:
            raise DriverError(
                f"register map of version {version >> 16}, this driver knows version {self.MAP.version >> 16}"
            )
        return {name: self.read(name) for name, item in self.MAP.registers.items() if item.role == "constant"}

    def start(self) -> None:
        """Begin the run, with the interrupt enabled."""
        self.write("CONTROL", self.MAP.pack_fields("CONTROL", start=1, irq_enable=1))

    def soft_reset(self) -> None:
        """End whatever runs; the configuration stays."""
        self.write("CONTROL", self.MAP.pack_fields("CONTROL", soft_reset=1, irq_enable=1))

    def _status(self, field: str) -> bool:
        return bool(self.MAP.field_value("STATUS", field, self.read("STATUS")))

    @property
    def busy(self) -> bool:
        return self._status("busy")

    @property
    def done(self) -> bool:
        """The last run has ended, well or with an error."""
        return self._status("done")

    def error(self) -> str | None:
        """The error that ended the run as one line, or None."""
        if not self._status("error"):
            return None
        code = self.MAP.field_value("ERROR_CODE", "value", self.read("ERROR_CODE"))
        return self.MAP.error_message(code, self.read("ERROR_DETAIL"))

    def check(self) -> None:
        """Raise DriverError when the run ended with an error."""
        if (message := self.error()) is not None:
            raise DriverError(message)
