"""The first page of a generated folder: what is in it and how to use it without its generator."""

from collections.abc import Mapping

from rtl.regs.axi_lite import DESIGN_PARAMETERS
from rtl.regs.map import IDENTITY, VERSION

__all__ = ["README", "block_readme", "design_readme"]

README = "README.md"
# For which the lint waivers were written; older ones do not know all of their names.
VERILATOR = "5.048"

_PORTS = """\
A port carries one field: `tile__payload__size_i` is the field `size_i` of what the stream `tile` carries,
`line__0__value` that of the first element of `line`. `stream_queue`, `stream_register` and `stream_skid` take a payload whole.
"""

_TOOLS = f"""\
## Tools

- Lint: `verilator --lint-only -Wall --top-module {{top}} lint/waivers.vlt -f files.f`, with Verilator {VERILATOR};
  `lint/waivers.vlt` says what may be reported, and why, in names that much older versions do not know all of.
- Icarus Verilog 11 reads part selects in `always_comb` wrongly: it says "sorry: constant selects in always_* processes",
  and a simulation may not end. {{icarus}}
- `files.f` lists the Verilog, children first. `manifest.json` has a digest of every file.

SPDX-License-Identifier: MIT
"""

_INTEGRATION = """\
`docs/instance.sv` is an instance of the top to copy, `component.xml` an IP-XACT component (IEEE 1685-2014) of its ports{more}.
"""

_BENCH = """\
`make -C tb icarus` or `make -C tb verilator` run the block's bench; it needs no Python. It drives every port as neighbours that
offer and take by chance, and compares every output, cycle by cycle, with what the block answers in the simulation of its source.
`tb/smoke_tb.sv` says how much of the outputs that reaches."""

_EXAMPLE = """
`sw/fiberloom_example.c` drives the hardware in C: it fills memory, configures, starts, waits and compares every word of one small
product. It asks the system for six functions (`sw/fiberloom_example.h`); `-DFIBERLOOM_MAIN` makes a program for Linux of it.
`fiberloom generate --smoke driver` compiles it and runs it against the compiled simulation.
"""

_DRIVE = """\
## Driving it

Registers are in `docs/registers.md`, `docs/registers.rdl` and, for C, `sw/fiberloom_regs.h`: words of 32 bits over AXI4-Lite.

1. Read `ID` and the parameters below.
2. Write shapes, tile shapes, order, modes, partitions, addresses, capacities and the window of what may be written.
3. Write `CONTROL` with `start` (and `irq_enable`).
4. Wait for `irq`, or poll `STATUS` until `done`.
5. If `error`, read `ERROR_CODE` and `ERROR_DETAIL`; else read `C_NNZ` and the counters.
6. Write 1 to `STATUS.irq_pending`, or just start again.

Of a 64-bit register `NAME_LO` is read first: that keeps the upper word for `NAME_HI`. Words that are not mapped, and
writes of read-only words or of configuration while a run is busy, are answered with SLVERR and have no effect. Arrays
begin at multiples of {line} bytes; elements are a 32-bit coordinate and a 32-bit value.

| register | value |
| --- | --- |
"""


_SYNCHRONOUS = "`aresetn` is synchronous: its end has to reach all registers in the same cycle."
_ASYNCHRONOUS = "`aresetn` may change at any time: a synchronizer inside brings it to the clock, two cycles late."


def design_readme(
    name: str,
    origin: str,
    line_bytes: int,
    parameters: Mapping[str, int],
    *,
    top: str,
    bench: bool,
    asynchronous_reset: bool,
    measured: str,
) -> str:
    """Of a whole accelerator. ``parameters``: values of the identity registers. ``bench``: the smoke bench is there.

    measured: what is known of clock and area.
    """
    rows = {"ID": f"0x{IDENTITY:08x}", "VERSION": f"0x{VERSION:08x}"} | {
        key: str(parameters[key]) for key in DESIGN_PARAMETERS
    }
    table = "".join(f"| `{key}` | {value} |\n" for key, value in rows.items())
    run = "`make -C tb icarus` or `make -C tb verilator` run the smoke bench; it needs no Python." if bench else ""
    icarus = "`tb/netlist.v` is the same hardware for it." if bench else "A netlist by Yosys helps."
    return "\n".join(
        [
            f"# Fiberloom accelerator, design {name}",
            "",
            origin,
            "",
            f"The top is `{top}` (`rtl/{top}.sv`); `docs/blocks/index.md` has a page for each module.",
            "`constraints/` has its clock and its ports for synthesis, `fiberloom.core` is for FuseSoC. The reset",
            _ASYNCHRONOUS if asynchronous_reset else _SYNCHRONOUS,
            *([run] if run else []),
            "",
            measured,
            "",
            _INTEGRATION.format(more=", buses, registers and files") + (_EXAMPLE if bench else ""),
            _PORTS,
            _DRIVE.format(line=line_bytes) + table,
            _TOOLS.format(top=top, icarus=icarus),
        ]
    )


def block_readme(name: str, summary: str, origin: str, top: str, constrained: bool, bench: bool, measured: str) -> str:
    """Of a block alone. ``constrained``: there are constraints. ``bench``: there is one.

    measured: of area and clock, or nothing.
    """
    icarus = "`tb/netlist.v` is the same hardware for it." if bench else "A newer Icarus or a netlist by Yosys helps."
    return "\n".join(
        [
            f"# Fiberloom block {name}",
            "",
            summary,
            "",
            origin,
            "",
            f"The top is `{top}` (`rtl/{top}.sv`); `docs/blocks/index.md` has a page for each module.",
            *(
                ["`constraints/` has the design's clock for it, as for synthesis out of context."]
                if constrained
                else []
            ),
            *([_BENCH] if bench else []),
            "",
            *([measured, ""] if measured else []),
            _INTEGRATION.format(more=" and files"),
            _PORTS,
            _TOOLS.format(top=top, icarus=icarus),
        ]
    )
