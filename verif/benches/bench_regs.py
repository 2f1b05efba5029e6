"""Register file on the bus: every register by its declaration, driven by cocotbext-axi's AXI4-Lite manager.

Testplan: ``verif/testplans/regs.toml``. Fits any build of ``RegisterFile`` whose ADDRESS_WIDTH
register has its ``address_width``.
"""

import itertools
import logging
import random
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ReadOnly, RisingEdge
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiResp

from gen.headers import REGISTERS
from verif.coverage import Coverage

WORDS = {name: offset for register in REGISTERS for name, offset in register.words}
CONFIGURED = [register for register in REGISTERS if register.role.value in ("configuration", "address")]
ADDRESSES = [register for register in REGISTERS if register.role.value == "address"]
COUNTERS = [register for register in REGISTERS if register.role.value == "counter"]
coverage = Coverage("regs")
START, SOFT_RESET, IRQ_ENABLE = 1, 2, 4
BUSY, DONE, ERROR, IRQ_PENDING = 1, 2, 4, 8


class RegisterBench:
    """Bus manager, hardware side, and shorthand for words with their response."""

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.starts = 0

    async def begin(self, stalls: bool) -> None:
        dut = self.dut
        dut.rst.value = 1
        for name in ("busy", "done", "error_code", "error_detail", "results", "counter"):
            getattr(dut, name).value = 0
        for name in (
            "awvalid",
            "awaddr",
            "awprot",
            "wvalid",
            "wdata",
            "wstrb",
            "bready",
            "arvalid",
            "araddr",
            "arprot",
            "rready",
        ):
            getattr(dut, f"bus__{name}").value = 0
        Clock(dut.clk, 10, unit="ns").start()
        for _ in range(3):
            await RisingEdge(dut.clk)
        self.master = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "bus_"), dut.clk, dut.rst)
        self.master.write_if.log.setLevel(logging.WARNING)  # one logger for both directions
        if stalls:
            write, read = self.master.write_if, self.master.read_if
            for k, channel in enumerate(
                (write.aw_channel, write.w_channel, write.b_channel, read.ar_channel, read.r_channel)
            ):
                rng = random.Random(k)
                channel.set_pause_generator(itertools.cycle([rng.random() < 0.5 for _ in range(101)]))
        dut.rst.value = 0
        for _ in range(2):
            await RisingEdge(dut.clk)
        cocotb.start_soon(self._watch())

    async def _watch(self) -> None:
        """Counts starts, and covers channels that are active at the same time."""
        dut = self.dut
        while True:
            await ReadOnly()
            self.starts += int(dut.start.value)
            address, data = bool(dut.bus__awvalid.value), bool(dut.bus__wvalid.value)
            written, read = bool(dut.bus__bvalid.value), bool(dut.bus__rvalid.value)
            coverage.hit("address_first", address and not data)
            coverage.hit("data_first", data and not address)
            coverage.hit(
                "answer_waited", (written and not dut.bus__bready.value) or (read and not dut.bus__rready.value)
            )
            coverage.hit("both_directions", written and read)
            coverage.hit("interrupt", bool(dut.irq.value))
            await RisingEdge(dut.clk)

    async def read(self, name: str) -> int:
        answer = await self.master.read(WORDS[name], 4)
        assert answer.resp == AxiResp.OKAY, name
        return int.from_bytes(answer.data, "little")

    async def write(self, name: str, value: int) -> AxiResp:
        return (await self.master.write(WORDS[name], value.to_bytes(4, "little"))).resp

    async def finish(self, code: int, detail: int) -> None:
        """The hardware's end of a run."""
        await RisingEdge(self.dut.clk)
        self.dut.error_code.value = code
        self.dut.error_detail.value = detail
        self.dut.done.value = 1
        await RisingEdge(self.dut.clk)
        self.dut.done.value = 0
        self.dut.error_code.value = 0
        self.dut.error_detail.value = 0


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(stalls=[False, True])
async def every_word(dut: Any, stalls: bool) -> None:
    """Mapped words answer OKAY, unmapped SLVERR; read-only words refuse writes and keep their value."""
    bench = RegisterBench(dut)
    await bench.begin(stalls)
    writable = {name for register in REGISTERS if register.writable for name, _ in register.words}
    named = {offset: name for name, offset in WORDS.items()}
    for offset in range(0, 4096, 4):
        answer = await bench.master.read(offset, 4)
        assert answer.resp == (AxiResp.OKAY if offset in named else AxiResp.SLVERR), hex(offset)
        coverage.hit("unmapped", offset not in named)
        if named.get(offset) not in writable:
            refused = await bench.master.write(offset, b"\xff\xff\xff\xff")
            assert refused.resp == AxiResp.SLVERR, hex(offset)
            coverage.hit("read_only", offset in named)
            assert (await bench.master.read(offset, 4)).data == answer.data, hex(offset)
    assert await bench.read("ID") == 0x464C4F4D
    assert await bench.read("COUNTERS") == len(COUNTERS)
    coverage.save()


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(stalls=[False, True])
async def configuration(dut: Any, stalls: bool) -> None:
    """Configuration keeps its writes, whole words and single bytes, and passes all of it to the hardware."""
    bench = RegisterBench(dut)
    await bench.begin(stalls)
    rng = random.Random(3)
    address_width = await bench.read("ADDRESS_WIDTH")
    written: dict[str, int] = {}
    for register in CONFIGURED:
        width = address_width if register in ADDRESSES else sum(item.width for item in register.fields)
        for word, (name, offset) in enumerate(register.words):
            mask = ((1 << width) - 1) >> 32 * word & 0xFFFFFFFF
            written[name] = rng.getrandbits(32) & mask
            assert await bench.write(name, written[name]) == AxiResp.OKAY, name
            byte = rng.randrange(4)
            value = rng.getrandbits(8) & mask >> 8 * byte
            assert (await bench.master.write(offset + byte, bytes([value]))).resp == AxiResp.OKAY, name
            written[name] = written[name] & ~(0xFF << 8 * byte) | value << 8 * byte
            coverage.hit("one_byte")
    config = int(dut.settings.value)
    for name in written:
        assert await bench.read(name) == written[name], name
    position = 0
    for register in CONFIGURED:  # the struct follows the map
        width = address_width if register in ADDRESSES else sum(item.width for item in register.fields)
        shown = config >> position & ((1 << width) - 1)
        assert shown == sum(written[name] << 32 * word for word, (name, _) in enumerate(register.words)), register.name
        position += width
    coverage.save()


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(stalls=[False, True])
async def reads_beside_writes(dut: Any, stalls: bool) -> None:
    """Reads and writes in flight together: each is answered by its own value."""
    bench = RegisterBench(dut)
    await bench.begin(stalls)
    assert await bench.write("TILE_J", 77) == AxiResp.OKAY
    for value in range(30):
        writing = cocotb.start_soon(bench.write("TILE_I", value))
        assert await bench.read("TILE_J") == 77
        assert await writing == AxiResp.OKAY
        assert await bench.read("TILE_I") == value
    coverage.save()


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def a_run(dut: Any) -> None:
    """Start, lock, end with an error, interrupt, acknowledge, start again."""
    bench = RegisterBench(dut)
    await bench.begin(False)
    assert await bench.write("TILE_I", 9) == AxiResp.OKAY
    assert await bench.write("CONTROL", START | IRQ_ENABLE) == AxiResp.OKAY
    assert await bench.read("STATUS") == BUSY
    assert await bench.write("TILE_I", 10) == AxiResp.SLVERR
    coverage.hit("locked")
    assert await bench.write("CONTROL", START | IRQ_ENABLE) == AxiResp.OKAY
    assert await bench.read("TILE_I") == 9 and bench.starts == 1
    await bench.finish(7, 0x12_3456_789A)
    assert await bench.read("STATUS") == DONE | ERROR | IRQ_PENDING
    assert dut.irq.value
    assert await bench.read("ERROR_CODE") == 7
    assert await bench.read("ERROR_DETAIL_LO") == 0x3456789A and await bench.read("ERROR_DETAIL_HI") == 0x12
    assert await bench.write("STATUS", IRQ_PENDING) == AxiResp.OKAY
    assert await bench.read("STATUS") == DONE | ERROR and not dut.irq.value
    assert await bench.write("CONTROL", START) == AxiResp.OKAY
    assert await bench.read("STATUS") == BUSY and await bench.read("ERROR_CODE") == 0 and bench.starts == 2
    assert await bench.write("CONTROL", SOFT_RESET) == AxiResp.OKAY
    assert await bench.read("STATUS") == 0 and await bench.read("TILE_I") == 9
    coverage.hit("error_kept")
    coverage.hit("soft_reset_busy")
    coverage.save()


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def counters_that_run(dut: Any) -> None:
    """While all counters change every cycle, lower and upper word of each belong to one moment."""
    bench = RegisterBench(dut)
    await bench.begin(False)

    async def count() -> None:
        for k in itertools.count():
            # Equal halves, another value every cycle: a torn read has different halves.
            await RisingEdge(dut.clk)
            number = int(dut.counter_number.value) if dut.counter_read.value else 0xFF
            dut.counter.value = (k << 8 | number) * 0x1_0000_0001

    cocotb.start_soon(count())
    for n, register in enumerate(COUNTERS):
        (low, _), (high, _) = register.words
        first, second = await bench.read(low), await bench.read(high)
        assert first == second, f"{register.name}: halves of different moments"
        assert first & 0xFF == n, f"{register.name} shows another counter"
        coverage.hit("halves_together")
    coverage.save()


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def reset_in_the_middle(dut: Any) -> None:
    """A reset with a response outstanding leaves an idle, cleared register file."""
    bench = RegisterBench(dut)
    await bench.begin(False)
    await bench.write("SHAPE_I", 5)
    await bench.write("CONTROL", START | IRQ_ENABLE)
    pending = cocotb.start_soon(bench.master.read(WORDS["SHAPE_I"], 4))
    await RisingEdge(dut.clk)
    await RisingEdge(dut.clk)
    coverage.hit("reset", not pending.done())
    dut.rst.value = 1
    await RisingEdge(dut.clk)
    await RisingEdge(dut.clk)
    await ReadOnly()
    assert not dut.bus__rvalid.value and not dut.bus__bvalid.value and not dut.irq.value
    await RisingEdge(dut.clk)
    pending.cancel()
    dut.rst.value = 0
    for _ in range(3):
        await RisingEdge(dut.clk)
    assert await bench.read("STATUS") == 0
    assert await bench.read("SHAPE_I") == 0
    assert await bench.read("CONTROL") == 0
    coverage.save()
