"""What goes in and out of the register file: bus, configuration, results."""

from collections.abc import Sequence
from typing import Any

from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from .map import REGISTERS, by_role
from .register import Access, Register, Role

__all__ = ["DESIGN_PARAMETERS", "Axi4LiteSignature", "configuration_layout", "result_layout"]

# Constant registers whose values come with the design; the others follow from the map itself.
DESIGN_PARAMETERS = tuple(
    register.name for register in by_role(Role.CONSTANT) if register.name not in ("ID", "VERSION", "COUNTERS")
)


class Axi4LiteSignature(wiring.Signature):
    """AXI4-Lite.

    Parameters
    ----------
    data_width : int
        32 or 64.
    address_width : int
        Bits of a byte address, 1 to 64.
    """

    def __init__(self, *, data_width: int, address_width: int) -> None:
        if data_width not in (32, 64):
            raise ValueError(f"AXI4-Lite data width must be 32 or 64, not {data_width!r}")
        if not isinstance(address_width, int) or not 1 <= address_width <= 64:
            raise ValueError(f"AXI4-Lite address width must be from 1 to 64, not {address_width!r}")
        self.data_width = data_width
        self.address_width = address_width
        super().__init__(
            {
                "awvalid": Out(1),
                "awready": In(1),
                "awaddr": Out(address_width),
                "awprot": Out(3),
                "wvalid": Out(1),
                "wready": In(1),
                "wdata": Out(data_width),
                "wstrb": Out(data_width // 8),
                "bvalid": In(1),
                "bready": Out(1),
                "bresp": In(2),
                "arvalid": Out(1),
                "arready": In(1),
                "araddr": Out(address_width),
                "arprot": Out(3),
                "rvalid": In(1),
                "rready": Out(1),
                "rdata": In(data_width),
                "rresp": In(2),
            }
        )


def configuration_layout(address_width: int, registers: Sequence[Register] = REGISTERS) -> data.StructLayout:
    """Everything that software configures, one field a register in lower case, addresses ``address_width`` bits wide.

    A register with several fields is a struct of them: ``modes.a_buffering``; its fields lie side by side from bit 0.
    """
    fields: dict[str, Any] = {}
    for register in registers:
        if register.role not in (Role.CONFIGURATION, Role.ADDRESS):
            continue
        if len(register.fields) > 1:
            fields[register.key] = data.StructLayout({item.name: item.width for item in register.fields})
        else:
            fields[register.key] = stored_width(register, address_width)
    return data.StructLayout(fields)


def result_layout(*roles: Role, registers: Sequence[Register] = REGISTERS) -> data.StructLayout:
    """Values that the hardware shows to software, one field a register in lower case."""
    return data.StructLayout({register.key: register.width for register in registers if register.role in roles})


def stored_width(register: Register, address_width: int) -> int:
    """Bits of a configuration register that the hardware keeps."""
    if register.role is Role.ADDRESS:
        return address_width
    return max(item.lsb + item.width for item in register.fields if item.access is Access.READ_WRITE)
