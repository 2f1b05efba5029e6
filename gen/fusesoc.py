"""Design to a FuseSoC core file (CAPI2) over the generated files."""

from collections.abc import Sequence

from . import __version__
from .design import Design

__all__ = ["core"]


def core(design: Design, *, sources: Sequence[str], top: str, sdc: str, xdc: str) -> str:
    """Text of ``fiberloom.core``. Paths are those of the files beside it; ``sources`` in the order of compilation."""
    lines = [
        "CAPI=2:",
        "",
        f'name: "fiberloom:accelerator:{design.name.replace("-", "_")}:{__version__}"',
        f'description: "Sparse tensor accelerator: {_plain(design.description)}"',
        "",
        "filesets:",
        "  rtl:",
        "    file_type: systemVerilogSource",
        "    files:",
        *(f"      - {source}" for source in sources),
        "  sdc:",
        "    files:",
        f"      - {sdc}: {{file_type: SDC}}",
        "  xdc:",
        "    files:",
        f"      - {xdc}: {{file_type: xdc}}",
        "",
        "targets:",
        "  default: &default",
        "    filesets:",
        "      - rtl",
        f"    toplevel: {top}",
        "  lint:",
        "    <<: *default",
        "    default_tool: verilator",
        "    tools:",
        "      verilator:",
        "        mode: lint-only",
        "  synth:",
        "    <<: *default",
        "    default_tool: vivado",
        "    filesets_append:",
        '      - "tool_vivado? (xdc)"',
        '      - "!tool_vivado? (sdc)"',
        "",
    ]
    return "\n".join(lines)


def _plain(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
