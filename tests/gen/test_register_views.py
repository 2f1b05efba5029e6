"""Three texts say what the registers are: each offset, mask, shift and number of one is that of the others.

An independent compiler elaborates the SystemRDL text, the C compiler evaluates every macro of the header, and Python
imports the driver's constants.
"""

import re
import shutil
import subprocess
from types import ModuleType
from typing import Any

import pytest
import systemrdl

from gen.headers import c_header, python_constants, system_rdl
from sw.runtime import register_constants, registers
from sw.scheme.terms import ORDERS
from tests.rtl.regs.lite_bench import OKAY, PARAMETERS, Lite, register_file, simulate
from tests.tools import needs_tool


@pytest.fixture(scope="module")
def compiler() -> str:
    found = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    assert found is not None
    return found


@pytest.fixture(scope="module")
def words(tmp_path_factory) -> dict[str, Any]:
    """Words of the map by name, as the SystemRDL compiler sees them."""
    source = tmp_path_factory.mktemp("rdl") / "fiberloom.rdl"
    source.write_text(system_rdl(), encoding="utf-8")
    compiler = systemrdl.RDLCompiler()
    compiler.compile_file(str(source))
    return {node.inst_name: node for node in compiler.elaborate().top.registers()}


def access(field: Any) -> str:
    """The access of a field in the words of the driver's constants."""
    if field.get_property("singlepulse"):
        return "w1p" if field.is_sw_writable and not field.is_sw_readable else "?"
    if (effect := field.get_property("onwrite")) is not None:
        return "w1c" if effect.name == "woclr" and field.is_sw_readable else "?"
    return {(True, False): "r", (True, True): "rw"}[field.is_sw_readable, field.is_sw_writable]


def mask(field: Any) -> int:
    return ((1 << field.width) - 1) << field.low


def numbers(field: Any) -> dict[str, int]:
    """The names of a field's values."""
    encode = field.get_property("encode")
    return {} if encode is None else {member.name: int(member) for member in encode}


def encoded(words: dict[str, Any], register: str) -> dict[str, int]:
    (field,) = words[register].fields()
    return numbers(field)


def joined(words: dict[str, Any]) -> dict[str, tuple[int, int, tuple[tuple[str, int, int, str], ...]]]:
    """(offset, width, fields) of whole registers: halves of 64 bits put together."""
    found: dict[str, tuple[int, int, tuple[tuple[str, int, int, str], ...]]] = {}
    for name, node in words.items():
        fields = tuple((f.inst_name, f.low, f.width, access(f)) for f in node.fields())
        if not name.endswith("_HI"):
            found[name.removesuffix("_LO")] = (node.absolute_address, 32, fields)
            continue
        offset, _, low = found[name.removesuffix("_HI")]
        assert node.absolute_address == offset + 4 and low == fields, f"{name} does not go on where its lower half ends"
        whole = tuple((field, lsb, 64, kind) for field, lsb, width, kind in fields if (lsb, width) == (0, 32))
        found[name.removesuffix("_HI")] = (offset, 64, whole)
    return found


def loaded(text: str) -> ModuleType:
    module = ModuleType("loaded")
    exec(text, module.__dict__)
    return module


@pytest.mark.parametrize("source", ["written now", "kept in the tree"])
def test_python_constants_are_those_of_system_rdl(words, source):
    constants: Any = loaded(python_constants()) if source == "written now" else register_constants
    found = {name: (offset, width, fields) for name, (offset, width, _, fields) in constants.REGISTERS.items()}
    assert found == joined(words)
    errors = encoded(words, "ERROR_CODE")
    assert {name: code for code, (name, *_) in constants.ERRORS.items()} == errors
    assert {code.name.lower(): code.value for code in constants.ErrorCode} == errors
    assert dict(zip(ORDERS, range(99), strict=False)) == encoded(words, "ORDER")
    plain = {name: code for name, code in encoded(words, "VALUE_TYPE").items() if code < 8}
    assert dict(zip(constants.VALUE_TYPES, range(99), strict=False)) == plain
    reset = {
        name: field.get_property("reset") for name in ("ID", "VERSION", "COUNTERS") for field in words[name].fields()
    }
    assert reset == {"ID": constants.IDENTITY, "VERSION": constants.VERSION, "COUNTERS": len(constants.COUNTERS)}
    assert 1 << constants.ADDRESS_BITS == 4096 > max(node.absolute_address for node in words.values())
    for number, name in enumerate(constants.COUNTERS):
        assert words[f"{name}_LO"].absolute_address == constants.COUNTER_BASE + 8 * number, name


def test_driver_packs_and_finds_each_field_in_its_bits(words):
    """By the masks of SystemRDL; a field that is packed alone leaves every other bit zero."""
    for name, (_, width, fields) in joined(words).items():
        for field, lsb, bits, _ in fields:
            ones = ((1 << bits) - 1) << lsb
            assert registers.REGISTERS[name].fields[field].mask == ones
            assert registers.pack_fields(name, **{field: (1 << bits) - 1}) == ones
            assert registers.field_value(name, field, ones) == (1 << bits) - 1
            assert registers.field_value(name, field, (1 << width) - 1 & ~ones) == 0


@needs_tool("compiler")
def test_every_macro_of_the_c_header_is_that_of_system_rdl(words, compiler, tmp_path):
    """Each macro that has a value, each error code, each counter's name: none is missing, none is over."""
    text = c_header()
    (tmp_path / "fiberloom_regs.h").write_text(text, encoding="utf-8")
    macros = re.findall(r"^#define (FIBERLOOM_\w+) +\S", text, re.MULTILINE)
    macros.remove("FIBERLOOM_COUNTER_NAMES")
    codes = re.findall(r"^    (FIBERLOOM_ERROR_\w+) = ", text, re.MULTILINE)
    prints = [f'    printf("{name} %llu\\n", (unsigned long long)({name}));' for name in macros + codes]
    lines = [
        "#include <stdio.h>",
        '#include "fiberloom_regs.h"',
        "static const char *names[] = { FIBERLOOM_COUNTER_NAMES };",
    ]
    lines += ["int main(void) {", *prints, "    for (unsigned n = 0; n < sizeof names / sizeof *names; n++)"]
    lines += ['        printf("name:%s %u\\n", names[n], FIBERLOOM_COUNTER_BASE + 8 * n);', "    return 0;", "}"]
    (tmp_path / "print.c").write_text("\n".join([*lines, ""]), encoding="utf-8")
    subprocess.run(
        [compiler, "-std=c99", "-Wall", "-Wextra", "-Werror", "-o", "print", "print.c"], cwd=tmp_path, check=True
    )
    output = subprocess.run([tmp_path / "print"], check=True, capture_output=True, text=True).stdout
    printed = {name: int(value) for name, value in (line.split() for line in output.splitlines())}

    expected = {name: node.absolute_address for name, node in words.items()}
    for name, node in words.items():
        fields = [field for field in node.fields() if mask(field) != 0xFFFFFFFF]
        expected |= {f"{name}_{field.inst_name.upper()}_SHIFT": field.low for field in fields}
        expected |= {f"{name}_{field.inst_name.upper()}_MASK": mask(field) for field in fields}
    for prefix, register in (("ERROR", "ERROR_CODE"), ("ORDER", "ORDER"), ("VALUE", "VALUE_TYPE")):
        expected |= {f"{prefix}_{key.upper()}": number for key, number in encoded(words, register).items()}
    counters = sorted(
        (node.absolute_address, name)
        for name, node in words.items()
        if node.absolute_address >= words["CYCLES_LO"].absolute_address and name.endswith("_LO")
    )
    expected |= {"COUNTER_BASE": counters[0][0], "COUNTER_COUNT": len(counters)}
    for macro, register in (("IDENTITY", "ID"), ("MAP_VERSION", "VERSION")):
        expected[macro] = next(iter(words[register].fields())).get_property("reset")
    expected = {f"FIBERLOOM_{name}": value for name, value in expected.items()}
    expected |= {f"name:{name.removesuffix('_LO')}": address for address, name in counters}
    assert printed == expected


def test_hardware_resets_keeps_and_refuses_as_system_rdl_says(words):
    """After a reset, and after ones have been written to every word: busy never, so nothing is locked."""

    async def task(ctx: Any) -> None:
        lite = Lite(ctx, dut.bus)
        for name, node in words.items():
            reset = sum((field.get_property("reset") or 0) << field.low for field in node.fields())
            assert await lite.read(node.absolute_address) == (PARAMETERS.get(name, reset), OKAY), name
        for name, node in words.items():
            if name == "CONTROL":  # a start changes STATUS
                continue
            kept = sum(mask(field) for field in node.fields() if access(field) == "rw")
            response = await lite.write(node.absolute_address, 0xFFFFFFFF)
            assert (response == OKAY) == any(field.is_sw_writable for field in node.fields()), name
            if kept:
                assert await lite.read(node.absolute_address) == (kept, OKAY), name
        control = words["CONTROL"]
        held = sum(mask(field) for field in control.fields() if access(field) == "rw")
        assert await lite.write(control.absolute_address, held | 1 << 31) == OKAY
        assert await lite.read(control.absolute_address) == (held, OKAY)

    dut = register_file(64)
    simulate(dut, task)


# The lower word is the last of a page, the upper one the first of the next: the first access to each is seen.
TORN = r"""
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "fiberloom_regs.h"

static unsigned char *pages;
static size_t page;
static volatile uint64_t count; /* the counter, which goes on at each access */
static volatile int kept = -1;  /* the upper word that a read of the lower one keeps */

static void meet(int number, siginfo_t *info, void *context)
{
    size_t half = (size_t)((unsigned char *)info->si_addr - pages) / page;
    uint32_t *word = (uint32_t *)(pages + (half ? page : page - 4));
    (void)number;
    (void)context;
    if (half > 1 || mprotect(pages + half * page, page, PROT_READ | PROT_WRITE)) _exit(9);
    if (half) {
        *word = kept < 0 ? (uint32_t)(count >> 32) : (uint32_t)kept;
    } else {
        *word = (uint32_t)count;
        kept = (int)(count >> 32);
    }
    count++;
}

int main(void)
{
    static const uint64_t begins[] = {
        UINT64_C(0x1ffffffff), UINT64_C(0xffffffff), UINT64_C(0x5fffffffe), UINT64_C(0x7fffffff00000000)
    };
    struct sigaction action = {0};
    page = (size_t)sysconf(_SC_PAGESIZE);
    pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return 8;
    action.sa_sigaction = meet;
    action.sa_flags = SA_SIGINFO;
    if (sigaction(SIGSEGV, &action, NULL) || sigaction(SIGBUS, &action, NULL)) return 7;
    for (unsigned n = 0; n < sizeof begins / sizeof *begins; n++) {
        uint32_t offset = FIBERLOOM_CYCLES_LO;
        volatile uint32_t *base = (volatile uint32_t *)(pages + page - 4 - offset);
        if (mprotect(pages, 2 * page, PROT_NONE)) return 6;
        count = begins[n];
        kept = -1;
        uint64_t found = fiberloom_read64(base, offset);
        if (found != begins[n]) {
            printf("%llx was read as %llx\n", (unsigned long long)begins[n], (unsigned long long)found);
            return 1;
        }
    }
    return 0;
}
"""


@needs_tool("compiler")
@pytest.mark.parametrize("optimise", ["-O0", "-O2"])
def test_c_header_reads_the_halves_of_a_running_counter_of_one_moment(compiler, tmp_path, optimise):
    """The counter passes 2^32 between the two reads."""
    (tmp_path / "fiberloom_regs.h").write_text(c_header(), encoding="utf-8")
    (tmp_path / "torn.c").write_text(TORN, encoding="utf-8")
    subprocess.run(
        [compiler, "-std=gnu99", "-Wall", "-Wextra", optimise, "-o", "torn", "torn.c"], cwd=tmp_path, check=True
    )
    found = subprocess.run([tmp_path / "torn"], capture_output=True, text=True)
    assert (found.returncode, found.stdout) == (0, "")
