"""Design to a FuseSoC core file (CAPI2) over the generated files."""

from collections.abc import Sequence

from . import __version__
from .design import Design
from .smoke import BENCH, BENCH_TOP, EXPECTED, MEMORY, NETLIST, STIMULUS

__all__ = ["block_core", "core"]


def _bench_files(*images: str) -> list[str]:
    """Icarus gets the modules in the form that it can run. The images keep their paths, by which the bench opens them."""
    return [
        "  netlist:",
        "    files:",
        f"      - {NETLIST}: {{file_type: verilogSource}}",
        "  bench:",
        "    files:",
        f"      - {BENCH}: {{file_type: systemVerilogSource}}",
        *(f"      - {image}: {{file_type: user, copyto: {image}}}" for image in images),
    ]


_BENCH_TARGET = (
    "  sim:",
    "    default_tool: icarus",
    "    filesets:",
    '      - "!tool_icarus? (rtl)"',
    '      - "tool_icarus? (netlist)"',
    "      - bench",
    f"    toplevel: {BENCH_TOP}",
    "    tools:",
    "      icarus:",
    "        iverilog_options: [-g2012]",
    "      verilator:",
    "        mode: binary",
    "        verilator_options: [--timing, -Wno-fatal]",
)


def core(design: Design, *, sources: Sequence[str], top: str, waivers: str, sdc: str, xdc: str, bench: bool) -> str:
    """Text of ``fiberloom.core``. Paths are those of the files beside it; ``sources`` in the order of compilation.

    waivers : warnings that Verilator may give.
    bench : the smoke bench is among the files, and a target ``sim`` runs it.
    """
    lines = [
        "CAPI=2:",
        "",
        f'name: "fiberloom:accelerator:{design.name.replace("-", "_")}:{__version__}"',
        f'description: "Sparse tensor accelerator: {_plain(design.description)}"',
        "",
        *_filesets(sources, waivers),
        "  sdc:",
        "    files:",
        f"      - {sdc}: {{file_type: SDC}}",
        "  xdc:",
        "    files:",
        f"      - {xdc}: {{file_type: xdc}}",
        *(_bench_files(MEMORY, EXPECTED) if bench else ()),
        "",
        *_targets(top),
        "  synth:",
        "    <<: *default",
        "    default_tool: vivado",
        "    filesets_append:",
        '      - "tool_vivado? (xdc)"',
        '      - "!tool_vivado? (sdc)"',
        *(_BENCH_TARGET if bench else ()),
        "",
    ]
    return "\n".join(lines)


def block_core(name: str, description: str, *, sources: Sequence[str], top: str, waivers: str, bench: bool) -> str:
    """Text of a block's core file; ``bench``: there is one."""
    lines = [
        "CAPI=2:",
        "",
        f'name: "fiberloom:block:{name}:{__version__}"',
        f'description: "{_plain(description)}"',
        "",
        *_filesets(sources, waivers),
        *(_bench_files(STIMULUS, EXPECTED) if bench else ()),
        "",
        *_targets(top),
        *(_BENCH_TARGET if bench else ()),
        "",
    ]
    return "\n".join(lines)


def _plain(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _filesets(sources: Sequence[str], waivers: str) -> list[str]:
    """The filesets that every core has."""
    return [
        "filesets:",
        "  rtl:",
        "    file_type: systemVerilogSource",
        "    files:",
        *(f"      - {source}" for source in sources),
        "  waivers:",
        "    files:",
        f"      - {waivers}: {{file_type: vlt}}",
    ]


def _targets(top: str) -> list[str]:
    """The targets that every core has: its Verilog, and that checked by Verilator."""
    return [
        "targets:",
        "  default: &default",
        "    filesets:",
        "      - rtl",
        f"    toplevel: {top}",
        "  lint:",
        "    <<: *default",
        "    default_tool: verilator",
        # Verilator must read the waivers before it reads the rest.
        "    filesets:",
        "      - waivers",
        "      - rtl",
        "    tools:",
        "      verilator:",
        "        mode: lint-only",
        "        verilator_options: [-Wall]",
    ]
