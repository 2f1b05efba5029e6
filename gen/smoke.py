"""The smoke bench of a generated folder: a testbench that needs a Verilog simulator and nothing else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rtl.regs.map import IDENTITY, PHASE_BITS, PHASES, REGISTERS, UNITS, VERSION, Register, value_code

from .design import Design
from .verilator import MAKE_VARIABLES
from .verilog import Verilog, netlist

__all__ = [
    "BENCH",
    "BENCH_TOP",
    "BUILD_FLAGS",
    "EXPECTED",
    "MAKEFILE",
    "MEMORY",
    "NETLIST",
    "STIMULUS",
    "SmokeRegion",
    "SmokeRun",
    "makefile",
    "smoke_files",
]

BENCH = "tb/smoke_tb.sv"
MEMORY = "tb/smoke_memory.hex"
EXPECTED = "tb/smoke_expected.hex"
MAKEFILE = "tb/Makefile"
NETLIST = "tb/netlist.v"
# Of a block alone: what drives it.
STIMULUS = "tb/smoke_stimulus.hex"
BENCH_TOP = "smoke_tb"
_TEMPLATE = Path(__file__).with_name("smoke_tb.sv")
_BY_NAME = {register.name: register for register in REGISTERS}

# So that the bench compiles whatever Verilator was built with.
BUILD_FLAGS = (*(word for text in MAKE_VARIABLES for word in ("-MAKEFLAGS", text)), "-CFLAGS", "-std=gnu++20")
_MAKEFILE = """\
# The smoke bench in one simulator or the other: make icarus, make verilator.

IVERILOG ?= iverilog
VVP ?= vvp
VERILATOR ?= verilator
VERILATOR_FLAGS ?=
# Some builds of Verilator ask g++ for an older C++ than delays need, for a compiled header in clang's way, or for `python`.
BUILD_FLAGS ?= @build_flags@

.PHONY: icarus verilator clean

icarus:
\tmkdir -p build
\tcd .. && $(IVERILOG) -g2012 -s smoke_tb -o tb/build/smoke.vvp tb/netlist.v tb/smoke_tb.sv
\tcd .. && $(VVP) -n tb/build/smoke.vvp

# Verilator's own makefile works in no folder with a space in its name.
verilator:
\tcd .. && build=$$(mktemp -d) && { \\
\t    $(VERILATOR) --binary --timing -Wno-fatal -Wno-lint -Wno-style -Wno-TIMESCALEMOD --top-module smoke_tb \\
\t        --Mdir "$$build" $(BUILD_FLAGS) $(VERILATOR_FLAGS) -f files.f tb/smoke_tb.sv && "$$build/Vsmoke_tb"; \\
\t    code=$$?; rm -rf "$$build"; exit $$code; }

clean:
\trm -rf build
"""


@dataclass(frozen=True, kw_only=True)
class SmokeRegion:
    """Memory from ``base`` on: its bytes before the run, and whether the accelerator may write it."""

    base: int
    content: bytes
    writable: bool


@dataclass(frozen=True, kw_only=True)
class SmokeRun:
    """One multiplication as plain data.

    description : what is multiplied and how it is cut. product : its shape, for the line that says PASS.
    registers : value of every configuration and address register by name.
    regions : the memory. poison : the byte in memory that nothing was stored in.
    results : value of every register that is checked after the run, by name.
    rows, expected : C's rows; its row pointers, and coordinate and value of each nonzero, as 32-bit words.
    budget : cycles after which the run is given up.
    """

    description: str
    product: str
    registers: Mapping[str, int]
    regions: Sequence[SmokeRegion]
    poison: int
    results: Mapping[str, int]
    rows: int
    expected: Sequence[int]
    budget: int


def smoke_files(design: Design, run: SmokeRun, verilog: Verilog, *, origin: str) -> dict[str, str]:
    """Bench, memory image, expected words, makefile and the netlist for Icarus, by relative path."""
    ports = next(module for module in verilog.modules if module.name == verilog.top).ports
    line = design.bus_bytes
    base = min(region.base for region in run.regions)
    end = max(region.base + len(region.content) for region in run.regions)
    nnz = (len(run.expected) - run.rows - 1) // 2
    starts = {name: run.registers[name] for name in ("C_POINTERS", "C_ELEMENTS")}
    ends = {
        f"{name}_END": f"{region.base + len(region.content):x}"
        for name, start in starts.items()
        for region in run.regions
        if region.base == start
    }
    fields = {item.name: item.lsb for item in _BY_NAME["STATUS"].fields}
    texts: dict[str, object] = {
        "ORIGIN": origin,
        "TOP": verilog.top,
        "CASE": run.description,
        "PRODUCT": run.product,
        "DATA_BITS": design.axi.data_bits,
        "ADDRESS_BITS": design.axi.address_bits,
        "ID_BITS": next(port.width for port in ports if port.name == "m_axi_arid"),
        "BASE": f"{base:x}",
        "LINES": (end - base) // line,
        "LATENCY": design.memory_latency_cycles,
        "BUDGET": run.budget,
        "ROWS": run.rows,
        "NNZ": nnz,
        "POISON": f"{run.poison:02x}",
        **{name: f"{start:x}" for name, start in starts.items()},
        **ends,
        "READABLE": _inside(run.regions),
        "WRITABLE": _inside([region for region in run.regions if region.writable]),
        "PHASE_TOP": PHASE_BITS - 1,
        "PHASES": "\n".join(f'        {n}: $display("  phase: {phase}");' for n, phase in enumerate(PHASES.values())),
        "UNITS": "\n".join(
            f'      if (waiting[{n}]) $display("  not idle: {unit}");'
            for n, unit in enumerate(UNITS.values(), PHASE_BITS)
        ),
        "CONFIGURATION": _calls("write_register", run.registers),
        "IDENTITY": _calls("check_register", _identity(design)),
        "RESULT": _calls("check_register", run.results),
        **{name: f"{_BY_NAME[name].offset:03x}" for name in ("CONTROL", "STATUS", "WAITING", "ERROR_CODE")},
        "ERROR_DETAIL": f"{_BY_NAME['ERROR_DETAIL'].offset:03x}",
        "START": f"{sum(1 << item.lsb for item in _BY_NAME['CONTROL'].fields if item.name in ('start', 'irq_enable')):x}",
        **{f"{name.upper()}_BIT": fields[name] for name in ("done", "busy", "error")},
    }
    bench = _TEMPLATE.read_text(encoding="utf-8")
    for name, text in texts.items():
        bench = bench.replace(f"@{name}@", str(text))
    return {
        BENCH: bench,
        MEMORY: _memory_image(run, base, line),
        EXPECTED: "".join(f"{word:08x}\n" for word in run.expected),
        MAKEFILE: makefile(),
        NETLIST: f"// {origin}\n\n{netlist(verilog.modules)}",
    }


def makefile() -> str:
    """Runs the bench of the folder, whichever it is."""
    return _MAKEFILE.replace("@build_flags@", " ".join(BUILD_FLAGS))


def _identity(design: Design) -> dict[str, int]:
    """Registers whose values identify a design."""
    return {
        "ID": IDENTITY,
        "VERSION": VERSION,
        "PES": design.pe.count,
        "MERGE_RADIX": design.pe.merge_radix,
        "LANES": design.lanes,
        "SRAM_LINES": design.sram_lines,
        "BANKS": design.buffer.banks,
        "ADDRESS_WIDTH": design.axi.address_bits,
        "VALUE_TYPE": value_code(design.pe.arithmetic),
    }


def _calls(task: str, values: Mapping[str, int]) -> str:
    """One call for each 32-bit word of the registers."""
    lines = []
    for name, value in values.items():
        register: Register = _BY_NAME[name]
        for part, (word, offset) in enumerate(register.words):
            lines.append(f"      {task}(12'h{offset:03x}, 32'h{value >> 32 * part & 0xFFFFFFFF:08x});  // {word}")
    return "\n".join(lines)


def _inside(regions: Sequence[SmokeRegion]) -> str:
    """Whether ``first`` and ``last`` lie in one of the regions."""
    return " ||\n        ".join(
        f"first >= 64'h{region.base:x} && last < 64'h{region.base + len(region.content):x}" for region in regions
    )


def _memory_image(run: SmokeRun, base: int, line: int) -> str:
    """Lines for $readmemh, the highest byte first; those of poison alone are left to the bench."""
    blank = bytes([run.poison]) * line
    texts = []
    for region in sorted(run.regions, key=lambda region: region.base):
        follows = False
        for place in range(0, len(region.content), line):
            content = region.content[place : place + line]
            if content == blank:
                follows = False
                continue
            if not follows:
                texts.append(f"@{(region.base - base + place) // line:x}")
                follows = True
            texts.append(content[::-1].hex())
    return "".join(f"{text}\n" for text in texts)
