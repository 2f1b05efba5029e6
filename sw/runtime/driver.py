"""The driver: everything software does with the accelerator's registers, over any bus that reads and writes words.

The same few lines run against the compiled simulation, a bench and a board: a bus is two methods.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from sw.formats.csr import Csr

from .memory_image import MemoryImage
from .register_driver import DriverError, RegisterBus, RegisterDriver
from .registers import ACCELERATOR, COUNTERS, PHASES, UNITS, VALUE_TYPES, ErrorCode, field_value

if TYPE_CHECKING:
    from gen.design import Design

__all__ = ["Driver", "DriverError", "RegisterBus", "Stuck"]


class Stuck(DriverError):
    """A run did not end in time; the text says what the units wait for."""


class Driver(RegisterDriver):
    """One accelerator behind a register bus; ``load`` before ``start``."""

    MAP = ACCELERATOR

    def identify(self, design: "Design | None" = None) -> dict[str, int]:
        """Parameters of the hardware. Raises DriverError when it is no accelerator, or not that of ``design``."""
        found_parameters = self.parameters()
        if design is not None:
            expected = {
                "PES": design.pe.count,
                "MERGE_RADIX": design.pe.merge_radix,
                "LANES": design.lanes,
                "SRAM_LINES": design.sram_lines,
                "BANKS": design.buffer.banks,
                "ADDRESS_WIDTH": design.axi.address_bits,
                "VALUE_TYPE": VALUE_TYPES.index(design.pe.value) + 8 * (design.pe.arithmetic != design.pe.value),
                "PACKED": design.packed | sum(2 << "abc".index(tensor) for tensor in design.converts),
            }
            for name, value in expected.items():
                if found_parameters[name] != value:
                    raise DriverError(
                        f"{name} of the hardware is {found_parameters[name]}, design {design.name} says {value}"
                    )
        return found_parameters

    def load(self, image: MemoryImage) -> None:
        """Write the configuration of a run."""
        self.write_all(image.registers)

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

    def counters(self) -> dict[str, int]:
        """Every performance counter by its name in lower case; those that the build lacks have nothing to count."""
        built = self.read("COUNTERS")
        return {name.lower(): self.read(name) if number < built else 0 for number, name in enumerate(COUNTERS)}

    def result(self, image: MemoryImage) -> Csr:
        """C as the run left it in the image's memory."""
        return image.c(self.read("C_NNZ"))
