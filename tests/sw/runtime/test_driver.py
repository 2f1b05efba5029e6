"""The driver against a register file of plain Python."""

import ast
import inspect
from dataclasses import replace

import pytest

from gen.design import MOST_SCRATCH_SLOTS, load_design
from sw.runtime import driver as module
from sw.runtime.driver import PHASES, UNITS, Driver, DriverError, Stuck, words
from sw.runtime.registers import COUNTERS, IDENTITY, REGISTERS, VERSION, WORD_OFFSETS, ErrorCode, pack_fields
from tests.sw.runtime.test_memory_image import filled


class Registers:
    """Words by offset; every access is remembered. The upper word of a pair is that of the last lower read."""

    def __init__(self, design):
        self.words = dict.fromkeys(WORD_OFFSETS.values(), 0)
        self.log = []
        constants = {
            "ID": IDENTITY,
            "VERSION": VERSION,
            "PES": design.pe.count,
            "MERGE_RADIX": design.pe.merge_radix,
            "LANES": design.lanes,
            "SRAM_LINES": design.sram_lines,
            "BANKS": design.buffer.banks,
            "ADDRESS_WIDTH": design.axi.address_bits,
            "VALUE_TYPE": 2,
        }
        for name, value in constants.items():
            self.set(name, value)

    def set(self, name, value):
        for offset, word in words(name, value):
            self.words[offset] = word

    def read(self, offset):
        self.log.append(("read", offset))
        return self.words[offset]

    def write(self, offset, value):
        self.log.append(("write", offset))
        assert 0 <= value < 1 << 32
        self.words[offset] = value


@pytest.fixture
def tiny():
    return load_design("tiny")


@pytest.fixture
def registers(tiny):
    return Registers(tiny)


@pytest.fixture
def driver(registers):
    return Driver(registers)


def test_identifies_its_design(driver, tiny):
    found = driver.identify(tiny)
    assert found["PES"] == 2 and found["SRAM_LINES"] == 512


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("ID", 0xFFFFFFFF, "^no accelerator here: ID reads 0xffffffff, not 0x464c4f4d$"),
        ("VERSION", 0x00020000, "^register map of version 2, this driver knows version 1$"),
        ("PES", 3, "^PES of the hardware is 3, design tiny says 2$"),
        ("VALUE_TYPE", 4, "^VALUE_TYPE of the hardware is 4, design tiny says 2$"),
    ],
)
def test_foreign_hardware_is_refused(driver, registers, tiny, name, value, message):
    registers.set(name, value)
    with pytest.raises(DriverError, match=message):
        driver.identify(tiny)


def test_newer_minor_version_is_accepted(driver, registers, tiny):
    registers.set("VERSION", VERSION + 5)
    driver.identify(tiny)


def test_load_writes_every_register(driver, registers, tiny):
    image = filled(tiny)
    driver.load(image)
    for name, value in image.registers.items():
        assert driver.read(name) == value
    written = {offset for kind, offset in registers.log if kind == "write"}
    configuration = [item for item in REGISTERS.values() if item.role in ("configuration", "address")]
    assert written == {offset for item in configuration for offset, _ in words(item.name, 0)}


def test_windows_need_hardware_that_has_them(driver, registers, tiny):
    image = filled(tiny)
    image = replace(image, registers={**image.registers, "MODES": pack_fields("MODES", b_buffering=1, windows=1)})
    driver.load(image)
    registers.set("VERSION", 0x00010003)
    registers.log.clear()
    with pytest.raises(
        DriverError, match=r"^the hardware knows no such windows of k: its register map must be 1\.4 or newer$"
    ):
        driver.load(image)
    assert not [offset for kind, offset in registers.log if kind == "write"]
    driver.load(filled(tiny))


def test_64_bit_registers_are_read_low_word_first(driver, registers):
    registers.set("CYCLES", 0x1234_5678_9ABC)
    assert driver.read("CYCLES") == 0x1234_5678_9ABC
    offset = REGISTERS["CYCLES"].offset
    assert registers.log == [("read", offset), ("read", offset + 4)]


def test_values_that_do_not_fit_are_refused(driver):
    with pytest.raises(ValueError, match="^TILE_I = 4294967296: must be from 0 to 4294967295$"):
        driver.write("TILE_I", 1 << 32)


def test_start_and_soft_reset(driver, registers):
    control = REGISTERS["CONTROL"].offset
    driver.start()
    assert registers.words[control] == 0b101
    driver.soft_reset()
    assert registers.words[control] == 0b110


def test_waits_until_done(driver, registers):
    steps = []

    def advance():
        steps.append(1)
        if len(steps) == 3:
            registers.set("STATUS", 0b1010)
        return True

    registers.set("STATUS", 1)
    assert driver.busy
    driver.wait(advance)
    assert len(steps) == 3 and driver.done and not driver.busy


def test_giving_up_says_what_is_waited_for(driver, registers):
    registers.set("CYCLES", 5000)
    registers.set("MACS", 77)
    registers.set("WAITING", 4 | 0b100001001001 << 3)
    with pytest.raises(Stuck) as caught:
        driver.wait(lambda: False)
    assert str(caught.value) == (
        "watchdog: the run did not end in 5000 cycles (77 MACs, 0 tile rows done): "
        "computing; not idle: A accessor, leaf queue, dispatcher, processing elements"
    )


def test_done_at_the_last_moment_is_done(driver, registers):
    def advance():
        registers.set("STATUS", 0b10)
        return False

    driver.wait(advance)


def test_errors_are_one_line(driver, registers):
    assert driver.error() is None
    driver.check()
    registers.set("STATUS", 0b110)
    registers.set("ERROR_CODE", ErrorCode.C_ELEMENTS_OVERFLOW)
    registers.set("ERROR_DETAIL", 4800)
    message = "c_elements_overflow: The elements of C exceed C_ELEMENTS_BYTES. (bytes needed so far: 4800)"
    assert driver.error() == message
    with pytest.raises(DriverError) as caught:
        driver.check()
    assert str(caught.value) == message


def test_counters_by_name(driver, registers):
    registers.set("MACS", 1 << 40)
    counters = driver.counters()
    assert list(counters) == [name.lower() for name in COUNTERS]
    assert counters["macs"] == 1 << 40


def test_result(driver, registers, tiny):
    registers.set("C_NNZ", 5)
    assert driver.result(filled(tiny)).nnz == 5


def test_names_of_phases_and_units_are_the_hardware_s():
    """WAITING is the phase and a bit a unit: as many names as the hardware has states and bits."""
    from rtl.tiling.run_control import Phase

    assert [phase.value for phase in Phase] == list(range(len(PHASES)))
    assert len(PHASES) == 1 << module.PHASE_BITS
    assert PHASES[Phase.LOAD_B.value] == "loading a tile" and PHASES[Phase.ASSEMBLE.value] == "assembling"


def test_each_unit_s_bit_is_the_machine_s():
    """The machine shows a bit for each of a list; the names, here and in the register manual, are in its order."""
    from rtl.machine import machine
    from rtl.regs.map import REGISTERS as DECLARED

    (shown,) = (
        node.value.elts
        for node in ast.walk(ast.parse(inspect.getsource(machine)))
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "idle_units"
    )
    units = {
        "A accessor": "a.idle",
        "B accessor": "b.idle",
        "B lookup": "lookup.idle",
        "leaf queue": "units.leaf_queue.level",
        "B streamer": "units.streamer.idle",
        "C re-entry": "units.reentry.idle",
        "dispatcher": "dispatcher.idle",
        "collector": "collector.idle",
        "memory fetch": "fetch.idle",
        "C accessor": "c.drained",
        "memory writes": "Cat(*units.engine.write_idle)",
        "processing elements": "~popcount([pe.busy for pe in units.pes])",
    }
    assert tuple(units) == UNITS
    assert len(shown) == len(UNITS)
    for expression, begin in zip(shown, units.values(), strict=True):
        assert ast.unparse(expression).startswith(begin)
    (described,) = (register.description for register in DECLARED if register.name == "WAITING")
    phases = ", ".join(f"{n} {phase}" for n, phase in enumerate(PHASES))
    bits = ", ".join(f"{n} {unit}" for n, unit in enumerate(UNITS, module.PHASE_BITS))
    assert f" phase: {phases}. " in described and described.endswith(f" not idle: {bits}.")


def test_parts_of_scratch_are_those_of_the_design():
    """What the register manual says of C_SCRATCH_BYTES is how a design cuts it."""
    from rtl.regs.map import REGISTERS as DECLARED

    (described,) = (register.description for register in DECLARED if register.name == "C_SCRATCH_BYTES")
    assert described.endswith(f"the largest power of two up to PES and {MOST_SCRATCH_SLOTS}.")
