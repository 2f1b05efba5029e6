"""Register agent: the driver's register bus over cocotbext-axi's AXI4-Lite manager."""

import logging
from typing import Any

import cocotb
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiResp

from .pauses import Pattern

__all__ = ["RegisterAgent", "RegisterError"]

WORD_BYTES = 4


class RegisterError(RuntimeError):
    """A register access was answered with something else than OKAY."""


class RegisterAgent:
    """Reads and writes 32-bit registers.

    ``read`` and ``write`` are coroutines; ``blocking`` gives the plain methods that :class:`sw.runtime.driver.Driver`
    wants, for use inside ``cocotb.bridge``.
    """

    def __init__(self, dut: Any, prefix: str, clock: Any, reset: Any, *, reset_active_level: bool = True) -> None:
        bus = AxiLiteBus.from_prefix(dut, prefix)
        self.master = AxiLiteMaster(bus, clock, reset, reset_active_level=reset_active_level)
        self.master.write_if.log.setLevel(logging.WARNING)  # one logger for both directions

    def pause(self, pattern: Pattern) -> None:
        """Let every channel pause by this pattern."""
        write, read = self.master.write_if, self.master.read_if
        for channel in (write.aw_channel, write.w_channel, write.b_channel, read.ar_channel, read.r_channel):
            channel.set_pause_generator(pattern())

    async def read(self, offset: int) -> int:
        answer = await self.master.read(offset, WORD_BYTES)
        if answer.resp != AxiResp.OKAY:
            raise RegisterError(f"read of register 0x{offset:03x} was answered with {answer.resp.name}")
        return int.from_bytes(answer.data, "little")

    async def write(self, offset: int, value: int) -> None:
        answer = await self.master.write(offset, value.to_bytes(WORD_BYTES, "little"))
        if answer.resp != AxiResp.OKAY:
            raise RegisterError(f"write of register 0x{offset:03x} was answered with {answer.resp.name}")

    def blocking(self) -> "BlockingRegisters":
        return BlockingRegisters(self)


class BlockingRegisters:
    """The same registers for code without coroutines; usable in a function under ``cocotb.bridge``."""

    def __init__(self, agent: RegisterAgent) -> None:
        self.read = cocotb.resume(agent.read)
        self.write = cocotb.resume(agent.write)
