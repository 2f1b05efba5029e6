"""What is derived from the register map agrees with it: SystemRDL, C header, Python constants, manual."""

import re
import shutil
import subprocess
import sys

import pytest
import systemrdl

from gen.facts import FACTS_FILE, hardware_facts
from gen.headers import (
    CONSTANTS_FILE,
    CONVERTER_FILE,
    c_header,
    converter_constants,
    python_constants,
    system_rdl,
)
from gen.regdoc import CONVERTER_PAGE, MANUAL_FILE, manual_with_map, register_map
from rtl.regs import converter_map
from rtl.regs.counter_list import COUNTERS
from rtl.regs.map import ERRORS, ORDERS, REGISTERS
from sw.runtime import registers
from sw.scheme import terms
from tests.tools import needs_tool

WORDS = {name: offset for register in REGISTERS for name, offset in register.words}


def test_constants_of_the_driver_are_current():
    assert CONSTANTS_FILE.read_text(encoding="utf-8") == python_constants(), "run `python -m gen.derived`"
    assert CONVERTER_FILE.read_text(encoding="utf-8") == converter_constants(), "run `python -m gen.derived`"
    assert FACTS_FILE.read_text(encoding="utf-8") == hardware_facts(), "run `python -m gen.derived`"


def test_manual_is_current():
    text = MANUAL_FILE.read_text(encoding="utf-8")
    assert text == manual_with_map(text, register_map()), "run `python -m gen.derived`"
    page = CONVERTER_PAGE.read_text(encoding="utf-8")
    wanted = manual_with_map(page, register_map(converter_map.REGISTERS, converter_map.ERRORS))
    assert page == wanted, "run `python -m gen.derived`"
    for name, offset in WORDS.items():
        assert re.search(
            rf"^\| 0x{offset - 4 if name.endswith('_HI') else offset:03x} \| .*`{name}`", text, re.MULTILINE
        )


def test_manual_without_its_marker_is_refused():
    with pytest.raises(ValueError, match="has lost the line that begins its generated part$"):
        manual_with_map("# Registers\n", "")


def test_driver_sees_the_declaration():
    assert registers.WORD_OFFSETS == WORDS
    assert registers.COUNTERS == tuple(counter.name for counter in COUNTERS)
    assert {code.value: code.name.lower() for code in registers.ErrorCode} == {e.code: e.name for e in ERRORS}
    assert terms.ORDERS == ORDERS
    for register in REGISTERS:
        seen = registers.REGISTERS[register.name]
        assert (seen.offset, seen.width, seen.writable) == (register.offset, register.width, register.writable)
        assert [(f.name, f.lsb, f.width) for f in seen.fields.values()] == [
            (f.name, f.lsb, f.width) for f in register.fields
        ]


def test_driver_does_not_load_the_hardware_library():
    code = (
        "import sys, sw.runtime.registers; sys.exit(any(m.split('.')[0] in ('amaranth', 'rtl') for m in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=CONSTANTS_FILE.parents[2]).returncode == 0


def test_fields_pack_and_unpack():
    assert registers.pack_fields("MODES", a_buffering=1, c_buffering=1) == 0b101
    assert registers.field_value("STATUS", "error", 0b0100) == 1
    with pytest.raises(
        ValueError,
        match="^Register MODES has no field 'd': it has a_buffering, b_buffering, c_buffering, windows, listed, joined, planned, "
        "entry_bits$",
    ):
        registers.pack_fields("MODES", d=1)
    with pytest.raises(ValueError, match=r"^ORDER\.value = 256: must be from 0 to 255$"):
        registers.pack_fields("ORDER", value=256)


@pytest.mark.parametrize(
    ("code", "detail", "message"),
    [
        (0, 0, "No error."),
        (1, 0x1040, "axi_read: A read was answered with SLVERR or DECERR. (byte address of the burst: 0x1040)"),
        (4, 0x14C, "bad_partition: A partition is too small or outside the SRAM. (offset of the register: B_LINES)"),
        (6, 100, "c_elements_overflow: The nonzeros of C exceed C_ELEMENTS_BYTES. (bytes needed so far: 100)"),
        (200, 3, "unknown error 200 (detail 0x3)"),
    ],
)
def test_error_messages(code, detail, message):
    assert registers.error_message(code, detail) == message


def test_system_rdl_compiles_to_the_same_offsets(tmp_path):
    source = tmp_path / "fiberloom.rdl"
    source.write_text(system_rdl(), encoding="utf-8")
    compiler = systemrdl.RDLCompiler()
    compiler.compile_file(str(source))
    top = compiler.elaborate().top
    found = {node.inst_name: node for node in top.registers()}
    assert {name: node.absolute_address for name, node in found.items()} == WORDS
    fields = {(f.inst_name, f.low, f.width, f.is_sw_readable, f.is_sw_writable) for f in found["CONTROL"].fields()}
    assert fields == {("start", 0, 1, False, True), ("soft_reset", 1, 1, False, True), ("irq_enable", 2, 1, True, True)}
    assert all(not f.is_sw_writable for f in found["CYCLES_HI"].fields())
    assert all(f.is_sw_writable for f in found["A_POINTERS_HI"].fields())


@needs_tool("compiler")
def test_c_header_compiles_and_reads_back(tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("g++")
    assert compiler is not None
    (tmp_path / "fiberloom_regs.h").write_text(c_header(), encoding="utf-8")
    prints = [f'    printf("{name} %d\\n", (int)FIBERLOOM_{name});' for name in WORDS]
    prints += [f'    printf("error_{e.name} %d\\n", (int)FIBERLOOM_ERROR_{e.name.upper()});' for e in ERRORS]
    prints += ['    printf("mask %d\\n", (int)FIBERLOOM_STATUS_IRQ_PENDING_MASK);']
    source = "\n".join(
        [
            "#include <stdio.h>",
            '#include "fiberloom_regs.h"',
            "static const char *names[] = { FIBERLOOM_COUNTER_NAMES };",
            "int main(void) {",
            "    static volatile uint32_t space[1024];",
            "    fiberloom_write64(space, FIBERLOOM_A_POINTERS_LO, UINT64_C(0x123456789a));",
            "    if (fiberloom_read64(space, FIBERLOOM_A_POINTERS_LO) != UINT64_C(0x123456789a)) return 1;",
            "    if (sizeof names / sizeof *names != FIBERLOOM_COUNTER_COUNT) return 2;",
            *prints,
            "    return 0;",
            "}",
        ]
    )
    (tmp_path / "check.c").write_text(source, encoding="utf-8")
    flags = ["-Wall", "-Wextra", "-Werror", "-o", "check", "check.c"]
    subprocess.run([compiler, *flags], cwd=tmp_path, check=True)
    result = subprocess.run([tmp_path / "check"], check=True, capture_output=True, text=True)
    printed = {name: int(value) for name, value in (line.split() for line in result.stdout.splitlines())}
    assert printed == WORDS | {f"error_{e.name}": e.code for e in ERRORS} | {"mask": 8}


def test_register_map_lists_every_error_and_field():
    text = register_map()
    for error in ERRORS:
        assert f"| {error.code} | `{error.name}` |" in text
    assert "| `STATUS` | 3 | `irq_pending` | read, write 1 to clear | Set when a run ends. |" in text
