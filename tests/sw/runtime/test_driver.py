"""The driver against a register file of plain Python."""

import pytest

from gen.design import MOST_SCRATCH_SLOTS, load_design
from sw.runtime.driver import Driver, DriverError, Stuck
from sw.runtime.registers import (
    CONVERSION,
    COUNTERS,
    IDENTITY,
    PHASES,
    REGISTERS,
    UNITS,
    VERSION,
    WORD_OFFSETS,
    ErrorCode,
    pack_fields,
    words,
)
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
            "COUNTERS": len(COUNTERS),
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
        ("VERSION", 0x00010005, "^register map of version 1, this driver knows version 2$"),
        ("PES", 3, "^PES of the hardware is 3, design tiny says 2$"),
        ("VALUE_TYPE", 4, "^VALUE_TYPE of the hardware is 4, design tiny says 2$"),
    ],
)
def test_foreign_hardware_is_refused(driver, registers, tiny, name, value, message):
    registers.set(name, value)
    with pytest.raises(DriverError, match=message):
        driver.identify(tiny)


def test_what_the_hardware_converts_is_that_of_its_design():
    """Bits of PACKED: records, A, B, C."""
    for tensors, packed in (("", 1), ("a", 3), ("b", 5), ("ab", 7), ("c", 9), ("ac", 11), ("bc", 13), ("abc", 15)):
        design = load_design("tiny", ["memory.records=packed", *(f"memory.converts_{t}=true" for t in tensors)])
        registers = Registers(design)
        registers.set("PACKED", packed)
        assert Driver(registers).identify(design)["PACKED"] == packed
        for bit in (1, 2, 4, 8):
            registers.set("PACKED", packed ^ bit)
            message = f"^PACKED of the hardware is {packed ^ bit}, design tiny says {packed}$"
            with pytest.raises(DriverError, match=message):
                Driver(registers).identify(design)


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
    configuration = [item for item in configuration if item.name not in sum(CONVERSION.values(), ())]
    assert written == {offset for item in configuration for offset, _ in words(item.name, 0)}


def test_64_bit_registers_are_read_low_word_first(driver, registers):
    registers.set("CYCLES", 0x1234_5678_9ABC)
    assert driver.read("CYCLES") == 0x1234_5678_9ABC
    offset = REGISTERS["CYCLES"].offset
    assert registers.log == [("read", offset), ("read", offset + 4)]


class Running(Registers):
    """Every 64-bit value goes on by one at each access; a lower word that is read keeps the upper one for one read."""

    def __init__(self, design, begin):
        super().__init__(design)
        self.now = begin
        self.kept = None
        self.halves = {
            item.offset + 4 * upper: (item.name, upper)
            for item in REGISTERS.values()
            if item.width == 64 and not item.writable
            for upper in (False, True)
        }

    def read(self, offset):
        if offset not in self.halves:
            return super().read(offset)
        name, upper = self.halves[offset]
        kept, self.kept = self.kept, None
        now, self.now = self.now, self.now + 1
        if not upper:
            self.kept = name, now >> 32
            return now & 0xFFFFFFFF
        return kept[1] if kept and kept[0] == name else now >> 32


@pytest.mark.parametrize("begin", [(1 << 32) - 1, (1 << 32) - 2, (7 << 32) - 1, (1 << 48) - 1])
def test_halves_are_of_one_moment_while_the_counter_passes_2_to_the_32(tiny, begin):
    """In every way that the driver reads what runs."""
    running = [item.name for item in REGISTERS.values() if item.width == 64 and not item.writable]
    assert {"CYCLES", "C_NNZ", "ERROR_DETAIL"} <= set(running)
    for name in running:
        bus = Running(tiny, begin)
        assert Driver(bus).read(name) == begin, name
        assert bus.now == begin + 2
    for name in (counter.lower() for counter in COUNTERS):
        # Counters are read one after another, two accesses each: this one is what passes.
        bus = Running(tiny, begin - 2 * [known.lower() for known in COUNTERS].index(name))
        assert Driver(bus).counters()[name] == begin
    bus = Running(tiny, begin)
    assert f"did not end in {begin} cycles" in Driver(bus).stuck()
    bus = Running(tiny, begin)
    bus.set("STATUS", 0b110)
    bus.set("ERROR_CODE", ErrorCode.C_ELEMENTS_OVERFLOW)
    assert f"{begin}" in str(Driver(bus).error())


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
    busy = ("a_accessor", "leaf_queue", "dispatcher", "processing_elements")
    registers.set("WAITING", pack_fields("WAITING", phase=PHASES.index("computing"), **dict.fromkeys(busy, 1)))
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
    message = "c_elements_overflow: The nonzeros of C exceed C_ELEMENTS_BYTES. (bytes needed so far: 4800)"
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


def test_every_field_of_waiting_has_words(driver, registers):
    """Each phase and each unit alone; a phase that a later map may have is told by its number."""
    for number, words_of in enumerate(PHASES):
        registers.set("WAITING", pack_fields("WAITING", phase=number))
        assert driver.waiting() == f"{words_of}; not idle: nothing"
    for name, words_of in UNITS.items():
        registers.set("WAITING", pack_fields("WAITING", **{name: 1}))
        assert driver.waiting() == f"idle; not idle: {words_of}"
    assert set(REGISTERS["WAITING"].fields) == {"phase", *UNITS}
    registers.set("WAITING", pack_fields("WAITING", phase=len(PHASES)))
    assert driver.waiting() == f"phase {len(PHASES)}; not idle: nothing"


def test_parts_of_scratch_are_those_of_the_design():
    """What the register manual says of C_SCRATCH_BYTES is how a design cuts it."""
    from rtl.regs.map import REGISTERS as DECLARED

    (described,) = (register.description for register in DECLARED if register.name == "C_SCRATCH_BYTES")
    assert described.endswith(f"the largest power of two up to PES and {MOST_SCRATCH_SLOTS}.")
