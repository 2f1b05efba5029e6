"""Every register by its declaration, snapshots of 64-bit values, and the bus rules."""

import random
import re

import pytest
from amaranth.hdl import Value

from rtl.regs.axi_lite import DESIGN_PARAMETERS, RegisterBank, RegisterFile
from rtl.regs.counter_list import COUNTERS
from rtl.regs.counters import CounterBank
from rtl.regs.map import IDENTITY, REGISTERS, VERSION, Role
from rtl.regs.register import result
from tests.rtl.regs.lite_bench import OKAY, PARAMETERS, SLVERR, Lite, register_file, simulate

BY_NAME = {register.name: register for register in REGISTERS}
WORDS = {name: offset for register in REGISTERS for name, offset in register.words}
CONSTANTS = {"ID": IDENTITY, "VERSION": VERSION, "COUNTERS": len(COUNTERS), **PARAMETERS}


def implemented(register, word, address_width):
    """Bits of a writable word that the hardware keeps."""
    if register.role is Role.ADDRESS:
        return ((1 << address_width) - 1) >> 32 * word & 0xFFFFFFFF
    bits = sum(((1 << item.width) - 1) << item.lsb for item in register.fields)
    return bits >> 32 * word & 0xFFFFFFFF


def counters(dut, held):
    """Answers as a counter bank with these values does: one cycle after it is asked, and for one cycle."""

    async def task(ctx):
        while True:
            asked, number = ctx.get(dut.counter_read), ctx.get(dut.counter_number)
            await ctx.tick()
            value = held.get(BY_NAME[COUNTERS[number].name], 0) if asked else 0xBAD0BAD0_BAD0BAD0
            ctx.set(dut.counter, value)

    return task


@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_constants_and_unmapped_words(stall):
    async def task(ctx):
        lite = Lite(ctx, dut.bus, stall=stall)
        for offset in range(0, 4096, 4):
            name = next((known for known, place in WORDS.items() if place == offset), None)
            value, response = await lite.read(offset)
            if name is None:
                assert (value, response) == (0, SLVERR), hex(offset)
                if offset % 64 == 60:
                    assert await lite.write(offset, 0xFFFFFFFF) == SLVERR, hex(offset)
            else:
                assert (value, response) == (CONSTANTS.get(name, 0), OKAY), name

    dut = register_file()
    simulate(dut, task)


def test_read_only_words_refuse_writes():
    async def task(ctx):
        lite = Lite(ctx, dut.bus)
        for register in REGISTERS:
            if not register.writable:
                for name, offset in register.words:
                    assert await lite.write(offset, 0xFFFFFFFF) == SLVERR, name
                    assert await lite.read(offset) == (CONSTANTS.get(name, 0), OKAY), name

    dut = register_file()
    simulate(dut, task)


@pytest.mark.parametrize("address_width", [32, 40, 64])
def test_configuration(address_width):
    """Every configuration word keeps what it is given, alone, byte by byte, and shows it to the hardware."""
    configuration = [register for register in REGISTERS if register.role in (Role.CONFIGURATION, Role.ADDRESS)]

    async def task(ctx):
        lite = Lite(ctx, dut.bus)
        rng = random.Random(address_width)
        held = {}
        for register in configuration:
            for word, (name, offset) in enumerate(register.words):
                kept = implemented(register, word, address_width)
                value = rng.getrandbits(32)
                if register.role is Role.ADDRESS:
                    value &= kept
                strobe = rng.choice([0xF, 0xF, 0x1, 0x6, 0x8, 0x0])
                assert await lite.write(offset, value, strobe, data_first=rng.random() < 0.3) == OKAY, name
                mask = sum(0xFF << 8 * n for n in range(4) if strobe >> n & 1)
                held[name] = value & mask & kept
        for register in configuration:
            shown = ctx.get(Value.cast(dut.settings[register.key]))
            assert shown == sum(held[name] << 32 * word for word, (name, _) in enumerate(register.words)), register.name
            for name, offset in register.words:
                assert await lite.read(offset) == (held[name], OKAY), name

    dut = register_file(address_width)
    simulate(dut, task)


def test_strobes_keep_the_other_bytes():
    async def task(ctx):
        lite = Lite(ctx, dut.bus)
        assert await lite.write(WORDS["SHAPE_I"], 0x11223344) == OKAY
        assert await lite.write(WORDS["SHAPE_I"], 0xAABBCCDD, strobe=0b0101) == OKAY
        assert (await lite.read(WORDS["SHAPE_I"]))[0] == 0x11BB33DD
        assert ctx.get(dut.settings.shape_i) == 0x11BB33DD

    dut = register_file()
    simulate(dut, task)


def test_address_bits_beyond_the_design_are_refused():
    async def task(ctx):
        lite = Lite(ctx, dut.bus)
        high = WORDS["B_ELEMENTS_HI"]
        assert await lite.write(high, 0xAB) == OKAY
        assert await lite.write(high, 0x1CD) == SLVERR
        assert await lite.write(high, 0x1CD, strobe=0b0010) == SLVERR
        assert (await lite.read(high))[0] == 0xAB
        assert await lite.write(high, 0x1CD, strobe=0b0001) == OKAY
        assert ctx.get(dut.settings.b_elements) == 0xCD << 32

    dut = register_file()
    simulate(dut, task)


@pytest.mark.parametrize("name", ["CYCLES", "BUFFER_PEAK_C", "C_NNZ"])
def test_halves_of_a_counter_belong_together(name):
    register = BY_NAME[name]
    other = WORDS["MACS_LO"]

    held = {BY_NAME["MACS"]: 0x22222222_33333333}

    async def task(ctx):
        lite = Lite(ctx, dut.bus)

        def shows(value):
            held[register] = value
            if register.role is Role.RESULT:
                ctx.set(dut.results[register.key], value)

        shows(0x00000001_FFFFFFFF)
        assert await lite.read(register.offset) == (0xFFFFFFFF, OKAY)
        shows(0x00000002_00000000)
        assert await lite.read(register.offset + 4) == (1, OKAY), "the upper half is of another moment"
        assert await lite.read(register.offset + 4) == (2, OKAY), "a kept half is given once"
        assert await lite.read(register.offset) == (0, OKAY)
        assert await lite.read(other + 4) == (0x22222222, OKAY), "the kept half belongs to another register"
        assert await lite.read(other) == (0x33333333, OKAY)
        assert await lite.read(other + 4) == (0x22222222, OKAY)
        assert await lite.read(register.offset + 4) == (2, OKAY)

    dut = register_file()
    simulate(dut, task, counters(dut, held))


def test_every_counter_is_at_its_place():
    held = {BY_NAME[counter.name]: (n + 1) << 32 | n + 101 for n, counter in enumerate(COUNTERS)}

    async def task(ctx):
        lite = Lite(ctx, dut.bus)
        for n, counter in enumerate(COUNTERS):
            assert await lite.read(0x400 + 8 * n) == (n + 101, OKAY), counter.name
            assert await lite.read(0x404 + 8 * n) == (n + 1, OKAY), counter.name

    dut = register_file()
    simulate(dut, task, counters(dut, held))


def test_counters_are_asked_for_no_faster_than_a_bank_answers():
    asked = []

    async def task(ctx):
        bus = dut.bus
        ctx.set(bus.rready, 1)
        ctx.set(bus.arvalid, 1)
        for n in range(100):
            ctx.set(bus.araddr, WORDS["JOBS_LO"] if n < 90 else WORDS["TILE_K"])
            if ctx.get(dut.counter_read):
                asked.append(n)
            await ctx.tick()
        gaps = {after - before for before, after in zip(asked, asked[1:], strict=False)}
        assert gaps == {CounterBank.read_spacing}
        assert asked[-1] < 93

    dut = register_file()
    simulate(dut, task)


def test_reads_and_writes_at_the_same_time():
    async def writer(ctx):
        lite = Lite(ctx, dut.bus, stall=0.3, seed=1)
        for n in range(60):
            assert await lite.write(WORDS["TILE_J"], n, data_first=n % 5 == 0) == OKAY
            assert ctx.get(dut.settings.tile_j) == n
        done.append(True)

    async def reader(ctx):
        lite = Lite(ctx, dut.bus, stall=0.3, seed=2)
        latest = 0
        while not done:
            value, response = await lite.read(WORDS["TILE_J"])
            assert response == OKAY and value >= latest
            latest = value
        assert latest > 30

    done = []
    dut = register_file()
    simulate(dut, reader, writer)


def test_back_to_back_writes():
    async def task(ctx):
        bus = dut.bus
        ctx.set(bus.bready, 1)
        ctx.set(bus.awaddr, WORDS["TILE_K"])
        ctx.set(bus.wstrb, 0xF)
        ctx.set(bus.awvalid, 1)
        ctx.set(bus.wvalid, 1)
        sent = answered = 0
        for _ in range(40):
            ctx.set(bus.wdata, sent)
            assert ctx.get(bus.awready) == ctx.get(bus.wready)
            sent += ctx.get(bus.wready)
            answered += ctx.get(bus.bvalid)
            await ctx.tick()
        assert sent == 20 and answered == 19, "one write every second cycle"
        assert ctx.get(dut.settings.tile_k) == sent - 1

    dut = register_file()
    simulate(dut, task)


def test_refuses_wrong_parameters():
    missing = {name: 0 for name in DESIGN_PARAMETERS if name != "PES"}
    with pytest.raises(ValueError, match="missing or unknown PES$"):
        RegisterFile(address_width=40, parameters=missing)
    with pytest.raises(ValueError, match="missing or unknown COLOUR$"):
        RegisterFile(address_width=40, parameters={**PARAMETERS, "COLOUR": 1})
    with pytest.raises(ValueError, match=re.escape("Design parameter PES must fit 32 bits, not -1")):
        RegisterFile(address_width=40, parameters={**PARAMETERS, "PES": -1})
    with pytest.raises(ValueError, match="^Address width must be from 1 to 64, not 65$"):
        RegisterFile(address_width=65, parameters=PARAMETERS)


@pytest.mark.parametrize("offsets", [(0x410, 0x418, 0x420), (0x400, 0x408, 0x418)])
def test_refuses_counters_whose_places_are_no_numbers(offsets):
    counters = [result(f"N{offset}", offset, "A count.", Role.COUNTER) for offset in offsets]
    with pytest.raises(ValueError, match="^Counters of a bank must lie side by side from a multiple of 32 bytes on$"):
        RegisterBank(registers=counters, address_width=40, constants={}, bank=True)
