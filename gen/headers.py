"""Texts derived from the register map: SystemRDL, C header, and the constants that the driver uses.

The C header is written here and not by PeakRDL-cheader, whose struct has neither offsets as constants nor a place for
error codes, nor the order in which a 64-bit pair must be read. The SystemRDL text serves those who use such tools.

``python -m gen.derived`` rewrites those that are kept in the tree.
"""

from collections.abc import Sequence
from pathlib import Path

from rtl.regs import converter_map
from rtl.regs import map as declaration
from rtl.regs.counter_list import COUNTERS
from rtl.regs.map import ERRORS, REGISTERS
from rtl.regs.register import Access, ErrorDescription, Field, Register
from rtl.regs.source_formats import CONVERTED

__all__ = [
    "CONSTANTS_FILE",
    "CONVERTER_FILE",
    "ERRORS",
    "REGISTERS",
    "c_header",
    "converter_constants",
    "python_constants",
    "python_tuple",
    "system_rdl",
    "word_fields",
]

CONSTANTS_FILE = Path(__file__).resolve().parent.parent / "sw" / "runtime" / "register_constants.py"
CONVERTER_FILE = CONSTANTS_FILE.with_name("converter_constants.py")

_RDL_ACCESS = {
    Access.READ: "sw = r; hw = w;",
    Access.READ_WRITE: "sw = rw; hw = r; reset = 0;",
    Access.PULSE: "sw = w; hw = r; singlepulse; reset = 0;",
    Access.CLEAR: "sw = rw; hw = w; woclr; reset = 0;",
}


# Registers whose value is the same in every design.
_RDL_RESETS = {"ID": declaration.IDENTITY, "VERSION": declaration.VERSION, "COUNTERS": len(COUNTERS)}
# Registers whose value is one of a list of names.
_RDL_ENUMS: dict[str, tuple[str, dict[str, int]]] = {
    "ERROR_CODE": ("error_code", {error.name: error.code for error in ERRORS}),
    "ORDER": ("inter_tile_order", {name: number for number, name in enumerate(declaration.ORDERS)}),
    "VALUE_TYPE": ("value_type", declaration.VALUE_CODES),
}


def word_fields(register: Register, word: int) -> list[tuple[Field, int, int]]:
    """Fields within one 32-bit word of a register, each with its highest and lowest bit there."""
    found = []
    for item in register.fields:
        low = max(item.lsb - 32 * word, 0)
        high = min(item.lsb + item.width - 1 - 32 * word, 31)
        if 0 <= low <= high:
            found.append((item, high, low))
    return found


def system_rdl() -> str:
    """The register map in SystemRDL 2.0, one 32-bit register for each word."""

    def quoted(text: str) -> str:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

    lines = [
        "// Registers of the Fiberloom accelerator. Generated, do not edit.",
        "addrmap fiberloom {",
        '    name = "Fiberloom accelerator registers";',
        "    default regwidth = 32;",
        "    default accesswidth = 32;",
    ]
    for name, values in _RDL_ENUMS.values():
        lines += ["", f"    enum {name} {{", *(f"        {key} = {value};" for key, value in values.items()), "    };"]
    for register in REGISTERS:
        for word, (name, offset) in enumerate(register.words):
            lines += ["", "    reg {", f"        desc = {quoted(register.description)};"]
            more = f" reset = 0x{_RDL_RESETS[name]:x};" if name in _RDL_RESETS else ""
            more += f" encode = {_RDL_ENUMS[name][0]};" if name in _RDL_ENUMS else ""
            lines += [
                f"        field {{ desc = {quoted(item.description)}; {_RDL_ACCESS[item.access]}{more} }} "
                f"{item.name}[{high}:{low}];"
                for item, high, low in word_fields(register, word)
            ]
            lines.append(f"    }} {name} @ 0x{offset:03x};")
    return "\n".join([*lines, "};", ""])


def _c_define(name: str, value: str, comment: str = "") -> str:
    text = f"#define FIBERLOOM_{name:<32} {value}"
    return f"{text:<60} /* {comment} */" if comment else text


def c_header() -> str:
    """C99 header: offsets, field masks, error codes, orders, value types, counter names and access functions."""
    lines = [
        "/* Registers of the Fiberloom accelerator. Generated, do not edit. */",
        "#ifndef FIBERLOOM_REGS_H",
        "#define FIBERLOOM_REGS_H",
        "",
        "#include <stdint.h>",
        "",
        _c_define("IDENTITY", f"UINT32_C(0x{declaration.IDENTITY:08x})"),
        _c_define("MAP_VERSION", f"UINT32_C(0x{declaration.VERSION:08x})"),
        "",
        "/* Offsets in bytes. A 64-bit register is the pair NAME_LO, NAME_HI. */",
    ]
    for register in REGISTERS:
        for name, offset in register.words:
            lines.append(_c_define(name, f"0x{offset:03x}", register.description if offset == register.offset else ""))
    lines += ["", "/* Fields: lowest bit and mask in place. */"]
    for register in REGISTERS:
        whole = len(register.fields) == 1 and register.fields[0].width == register.width
        for item in () if whole else register.fields:
            name = f"{register.name}_{item.name.upper()}"
            mask = ((1 << item.width) - 1) << item.lsb
            lines.append(_c_define(f"{name}_SHIFT", f"{item.lsb}"))
            lines.append(_c_define(f"{name}_MASK", f"UINT32_C(0x{mask:08x})", item.description))
    orders = {name: number for number, name in enumerate(declaration.ORDERS)}
    for prefix, codes in (("ORDER", orders), ("VALUE", declaration.VALUE_CODES)):
        lines.append("")
        lines += [_c_define(f"{prefix}_{name.upper()}", f"{number}") for name, number in codes.items()]
    lines += ["", "enum fiberloom_error {"]
    lines += [
        f"    FIBERLOOM_ERROR_{e.name.upper()} = {e.code}, /* {e.description} Detail: {e.detail}. */" for e in ERRORS
    ]
    lines += ["};", "", "/* Counters: number n is the 64-bit register at FIBERLOOM_COUNTER_BASE + 8 * n. */"]
    lines.append(_c_define("COUNTER_BASE", f"0x{declaration.COUNTER_BASE:03x}"))
    lines.append(_c_define("COUNTER_COUNT", f"{len(COUNTERS)}"))
    lines += ["#define FIBERLOOM_COUNTER_NAMES \\"]
    lines += [f'    "{counter.name}", \\' for counter in COUNTERS]
    lines += [
        "",
        "static inline void fiberloom_write(volatile uint32_t *base, uint32_t offset, uint32_t value)",
        "{",
        "    base[offset / 4] = value;",
        "}",
        "",
        "static inline uint32_t fiberloom_read(volatile uint32_t *base, uint32_t offset)",
        "{",
        "    return base[offset / 4];",
        "}",
        "",
        "static inline void fiberloom_write64(volatile uint32_t *base, uint32_t offset, uint64_t value)",
        "{",
        "    base[offset / 4] = (uint32_t)value;",
        "    base[offset / 4 + 1] = (uint32_t)(value >> 32);",
        "}",
        "",
        "/* The lower half first: reading it keeps the upper half of the same moment. */",
        "static inline uint64_t fiberloom_read64(volatile uint32_t *base, uint32_t offset)",
        "{",
        "    uint32_t low = base[offset / 4];",
        "    return ((uint64_t)base[offset / 4 + 1] << 32) | low;",
        "}",
        "",
        "#endif",
        "",
    ]
    return "\n".join(lines)


def _register_lines(registers: Sequence[Register]) -> list[str]:
    """The registers as a literal."""
    lines = [
        "# name: (offset, width, role, ((field, lowest bit, width, access), ...))",
        "REGISTERS: dict[str, tuple[int, int, str, tuple[tuple[str, int, int, str], ...]]] = {",
    ]
    for register in registers:
        head = f'    "{register.name}": (0x{register.offset:03X}, {register.width}, "{register.role.value}", '
        fields = [f'("{item.name}", {item.lsb}, {item.width}, "{item.access.value}")' for item in register.fields]
        if len(fields) == 1:
            lines.append(f"{head}({fields[0]},)),")
        else:
            lines += [
                f'    "{register.name}": (',
                f"        0x{register.offset:03X},",
                f"        {register.width},",
                f'        "{register.role.value}",',
                "        (",
                *(f"            {text}," for text in fields),
                "        ),",
                "    ),",
            ]
    return [*lines, "}"]


def _error_lines(errors: Sequence[ErrorDescription]) -> list[str]:
    """The errors as a literal."""
    lines = [
        "",
        "# code: (name, what happened, what ERROR_DETAIL says)",
        "ERRORS: dict[int, tuple[str, str, str]] = {",
    ]
    lines += [f'    {e.code}: ("{e.name}", "{e.description}", "{e.detail}"),' for e in errors]
    return [*lines, "}"]


def python_constants() -> str:
    """Text of ``sw/runtime/register_constants.py``: plain literals, so that the driver needs no hardware library."""
    lines = [
        '"""Register map of the accelerator as plain data. Generated by ``python -m gen.derived``, do not edit."""',
        "",
        "from enum import IntEnum",
        "",
        f"IDENTITY = 0x{declaration.IDENTITY:08X}",
        f"VERSION = 0x{declaration.VERSION:08X}",
        f"ADDRESS_BITS = {declaration.ADDRESS_BITS}",
        f"COUNTER_BASE = 0x{declaration.COUNTER_BASE:03X}",
        "",
        f"VALUE_TYPES = {python_tuple(declaration.VALUE_TYPES)}",
        "# Formats that the accelerator converts A, B and C from and to on their way; registers of such a build.",
        f"CONVERTED = {python_tuple(CONVERTED)}",
        "CONVERSION = {",
        *(f'    "{tensor}": {python_tuple(names)},' for tensor, names in declaration.CONVERSION.items()),
        "}",
        "# What WAITING.phase says, by its value; what its other fields stand for.",
        *_lines("PHASES = (", [f'"{words}",' for words in declaration.PHASES.values()], ")"),
        *_lines("UNITS = {", [f'"{name}": "{words}",' for name, words in declaration.UNITS.items()], "}"),
        "",
    ]
    lines += [*_register_lines(REGISTERS), *_error_lines(ERRORS)]
    lines += ["", "", "class ErrorCode(IntEnum):", '    """Values of ERROR_CODE."""', ""]
    lines += [f"    {e.name.upper()} = {e.code}" for e in ERRORS]
    lines += ["", "", "# name: (unit, keeps a maximum, description), in register order"]
    lines.append("COUNTERS: dict[str, tuple[str, bool, str]] = {")
    lines += [f'    "{c.name}": ("{c.unit}", {c.peak}, "{c.description}"),' for c in COUNTERS]
    return "\n".join([*lines, "}", ""])


def converter_constants() -> str:
    """Text of ``sw/runtime/converter_constants.py``: the same of the converter's map."""
    lines = [
        '"""Register map of the converter as plain data. Generated by ``python -m gen.derived``, do not edit."""',
        "",
        f"IDENTITY = 0x{converter_map.IDENTITY:08X}",
        f"VERSION = 0x{converter_map.VERSION:08X}",
        f"POINTER_BITS = {converter_map.POINTER_BITS}",
        f"BLOCK_BITS = {converter_map.BLOCK_BITS}",
        "",
        "# What FORMATS says of the source and of the target, by the value of a field.",
        f"SOURCES = {python_tuple(converter_map.SOURCES)}",
        f"FORMATS = {python_tuple(converter_map.FORMATS)}",
        "# What is converted: source and target.",
        *_lines("PAIRS = (", [f"{python_tuple(pair)}," for pair in converter_map.PAIRS], ")"),
        "",
        *_register_lines(converter_map.REGISTERS),
        *_error_lines(converter_map.ERRORS),
    ]
    return "\n".join([*lines, ""])


def _lines(head: str, items: list[str], end: str) -> list[str]:
    return [head, *(f"    {item}" for item in items), end]


def python_tuple(items: tuple[str, ...]) -> str:
    return "(" + ", ".join(f'"{item}"' for item in items) + ("," if len(items) == 1 else "") + ")"
