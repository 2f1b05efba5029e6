"""The C example of a generated folder: a driver that runs one small multiplication and checks every word of the result."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from rtl.regs.map import REGISTERS
from rtl.regs.register import Role

from .smoke import SmokeRun

__all__ = ["EXAMPLE", "EXAMPLE_DATA", "example_files"]

EXAMPLE = "sw/fiberloom_example.c"
EXAMPLE_DATA = "sw/fiberloom_example.h"
_SOURCE = Path(__file__).with_name("fiberloom_example.c")
_BY_NAME = {register.name: register for register in REGISTERS}
COLUMNS = 12


def example_files(run: SmokeRun, *, origin: str) -> dict[str, str]:
    """The driver and its data, the multiplication of the smoke bench, by relative path."""
    settings = [
        f"    {{0x{_BY_NAME[name].offset:03x}, {_BY_NAME[name].width}, {int(_BY_NAME[name].role is Role.ADDRESS)}, "
        f"UINT64_C(0x{value:x})}}, /* {name} */"
        for name, value in run.registers.items()
    ]
    content = bytearray()
    regions = []
    for region in run.regions:
        filled = region.content.rstrip(bytes([run.poison]))
        regions.append(f"    {{UINT64_C(0x{region.base:x}), {len(region.content)}, {len(content)}, {len(filled)}}},")
        content += filled
    base = min(region.base for region in run.regions)
    return {
        EXAMPLE: _SOURCE.read_text(encoding="utf-8").replace("@ORIGIN@", origin),
        EXAMPLE_DATA: "\n".join(
            [
                "/* Data of fiberloom_example.c, and what it needs of the system around it.",
                f"   {origin} */",
                "#ifndef FIBERLOOM_EXAMPLE_H",
                "#define FIBERLOOM_EXAMPLE_H",
                "",
                "#include <stddef.h>",
                "#include <stdint.h>",
                "",
                f"/* {run.description} */",
                f"#define EXAMPLE_PRODUCT \"{run.product}\"",
                f"#define EXAMPLE_BASE UINT64_C(0x{base:x}) /* where the arrays lie unless they are moved */",
                f"#define EXAMPLE_BUDGET UINT64_C({run.budget}) /* looks at STATUS before the run is given up */",
                "",
                _PLATFORM,
                "struct example_setting { uint32_t offset; uint8_t bits; uint8_t is_address; uint64_t value; };",
                f"static const struct example_setting example_settings[{len(settings)}] = {{",
                *settings,
                "};",
                "",
                "/* Memory of the run: address, bytes, and what of example_content goes to its begin. */",
                "struct example_region { uint64_t address; size_t bytes; size_t first; size_t filled; };",
                f"static const struct example_region example_regions[{len(regions)}] = {{",
                *regions,
                "};",
                *_array("uint8_t", "example_content", [str(byte) for byte in content]),
                *_results(run.results),
                f"#define EXAMPLE_ROWS {run.rows}",
                "/* C: its row pointers, then coordinate and value of each nonzero. */",
                *_array("uint32_t", "example_c", [f"0x{word:x}" for word in run.expected]),
                "#endif",
                "",
            ]
        ),
    }  # fmt: skip


_PLATFORM = """\
/* What differs from system to system. */
struct fiberloom_platform {
    void *context;
    /* A 32-bit register by its byte offset. */
    uint32_t (*read)(void *context, uint32_t offset);
    void (*write)(void *context, uint32_t offset, uint32_t value);
    /* Memory at an address of the accelerator as this processor sees it, or NULL. Caches are off, or kept coherent. */
    uint8_t *(*memory)(void *context, uint64_t address, size_t bytes);
    /* Waits for the interrupt, or for some time. */
    void (*wait)(void *context);
    /* Shows a line: PASS or FAIL, and why. */
    void (*print)(void *context, const char *line);
    /* Where the arrays may lie: EXAMPLE_BASE, or another address of the accelerator on a multiple of 4096. */
    uint64_t memory_base;
};

/* 0: every word of C is right. Prints one line. */
int fiberloom_example(const struct fiberloom_platform *platform);
"""


def _array(kind: str, name: str, items: Sequence[str]) -> list[str]:
    lines = [", ".join(items[n : n + COLUMNS]) for n in range(0, len(items), COLUMNS)]
    return [f"static const {kind} {name}[{len(items)}] = {{", *(f"    {line}," for line in lines), "};"]


def _results(results: Mapping[str, int]) -> list[str]:
    """Registers that are checked after the run."""
    lines = [f"    {{0x{_BY_NAME[name].offset:03x}, {_BY_NAME[name].width}, 0, {value}}}, /* {name} */"
             for name, value in results.items()]  # fmt: skip
    return [f"static const struct example_setting example_results[{len(lines)}] = {{", *lines, "};"]
