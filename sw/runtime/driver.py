"""The driver: everything software does with the accelerator's registers, over any bus that reads and writes words.

The same few lines run against the compiled simulation, a bench and a board: a bus is two methods.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from sw.formats.csr import Csr

from .memory_image import MemoryImage
from .registers import (
    COUNTERS,
    IDENTITY,
    PHASES,
    REGISTERS,
    UNITS,
    VALUE_TYPES,
    VERSION,
    ErrorCode,
    error_message,
    field_value,
    pack_fields,
)

if TYPE_CHECKING:
    from gen.design import Design

__all__ = ["Driver", "DriverError", "RegisterBus", "Stuck"]


class RegisterBus(Protocol):
    """Access to 32-bit registers by byte offset."""

    def read(self, offset: int) -> int: ...

    def write(self, offset: int, value: int) -> None: ...


class DriverError(RuntimeError):
    """The accelerator is not the one expected, or a run ended with an error; the text is one line."""


class Stuck(DriverError):
    """A run did not end in time; the text says what the units wait for."""


class Driver:
    """One accelerator behind a register bus.

    ``load`` before ``start``; after ``start`` only reading is allowed until ``done``: the hardware answers writes
    of its configuration with an error.
    """

    def __init__(self, bus: RegisterBus) -> None:
        self.bus = bus

    def read(self, register: str) -> int:
        """Contents of a register of 32 or 64 bits. Of 64 bits the lower word comes first: it holds the upper one."""
        item = REGISTERS[register]
        low = self.bus.read(item.offset)
        return low if item.width == 32 else low | self.bus.read(item.offset + 4) << 32

    def write(self, register: str, value: int) -> None:
        for offset, word in words(register, value):
            self.bus.write(offset, word)

    def identify(self, design: "Design | None" = None) -> dict[str, int]:
        """Parameters of the hardware. Raises DriverError when it is no accelerator, or not that of ``design``."""
        if (found := self.read("ID")) != IDENTITY:
            raise DriverError(f"no accelerator here: ID reads 0x{found:08x}, not 0x{IDENTITY:08x}")
        version = self.read("VERSION")
        if version >> 16 != VERSION >> 16:
            raise DriverError(f"register map of version {version >> 16}, this driver knows version {VERSION >> 16}")
        found_parameters = {name: self.read(name) for name, item in REGISTERS.items() if item.role == "constant"}
        if design is not None:
            expected = {
                "PES": design.pe.count,
                "MERGE_RADIX": design.pe.merge_radix,
                "LANES": design.lanes,
                "SRAM_LINES": design.sram_lines,
                "BANKS": design.buffer.banks,
                "ADDRESS_WIDTH": design.axi.address_bits,
                "VALUE_TYPE": VALUE_TYPES.index(design.pe.value) + 8 * (design.pe.arithmetic != design.pe.value),
            }
            for name, value in expected.items():
                if found_parameters[name] != value:
                    raise DriverError(
                        f"{name} of the hardware is {found_parameters[name]}, design {design.name} says {value}"
                    )
        return found_parameters

    def load(self, image: MemoryImage) -> None:
        """Write the configuration of a run."""
        for name, value in image.registers.items():
            self.write(name, value)

    def start(self) -> None:
        """Begin the run, with the interrupt enabled."""
        self.write("CONTROL", pack_fields("CONTROL", start=1, irq_enable=1))

    def soft_reset(self) -> None:
        """End whatever runs; the configuration stays."""
        self.write("CONTROL", pack_fields("CONTROL", soft_reset=1, irq_enable=1))

    @property
    def busy(self) -> bool:
        return bool(field_value("STATUS", "busy", self.read("STATUS")))

    @property
    def done(self) -> bool:
        """The last run has ended, well or with an error."""
        return bool(field_value("STATUS", "done", self.read("STATUS")))

    def wait(self, advance: Callable[[], bool]) -> None:
        """Return when the run has ended.

        ``advance`` lets time pass and says whether to go on waiting; when it says no, Stuck is raised.
        """
        while not self.done:
            if not advance():
                if self.done:
                    return
                raise Stuck(self.stuck())

    def stuck(self) -> str:
        """One line about a run that does not end."""
        cycles, macs, rows = (self.read(name) for name in ("CYCLES", "MACS", "ROWS"))
        return (
            f"{ErrorCode.WATCHDOG.name.lower()}: the run did not end in {cycles} cycles "
            f"({macs} MACs, {rows} tile rows done): {self.waiting()}"
        )

    def waiting(self) -> str:
        """What is in flight now, in words."""
        word = self.read("WAITING")
        phase = field_value("WAITING", "phase", word)
        doing = PHASES[phase] if phase < len(PHASES) else f"phase {phase}"
        units = [name for field, name in UNITS.items() if field_value("WAITING", field, word)]
        return f"{doing}; not idle: {', '.join(units) if units else 'nothing'}"

    def error(self) -> str | None:
        """The error that ended the run as one line, or None."""
        if not field_value("STATUS", "error", self.read("STATUS")):
            return None
        return error_message(field_value("ERROR_CODE", "value", self.read("ERROR_CODE")), self.read("ERROR_DETAIL"))

    def check(self) -> None:
        """Raise DriverError when the run ended with an error."""
        if (message := self.error()) is not None:
            raise DriverError(message)

    def counters(self) -> dict[str, int]:
        """Every performance counter by its name in lower case."""
        return {name.lower(): self.read(name) for name in COUNTERS}

    def result(self, image: MemoryImage) -> Csr:
        """C as the run left it in the image's memory."""
        return image.c(self.read("C_NNZ"))


def words(register: str, value: int) -> list[tuple[int, int]]:
    """Offset and contents of each 32-bit word of a register."""
    item = REGISTERS[register]
    if not 0 <= value < 1 << item.width:
        raise ValueError(f"{register} = {value}: must be from 0 to {(1 << item.width) - 1}")
    pairs = [(item.offset, value & 0xFFFFFFFF)]
    return pairs if item.width == 32 else [*pairs, (item.offset + 4, value >> 32)]
