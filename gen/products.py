"""All that ``fiberloom generate`` writes for a design, as texts by relative path."""

import os
import tempfile
from pathlib import Path

from . import constraints
from .design import Design
from .fusesoc import core
from .headers import c_header, system_rdl
from .regdoc import register_map
from .verilog import FILE_LIST, MANIFEST, Verilog, emit_design

__all__ = ["RTL_FOLDER", "products", "write_products"]

RTL_FOLDER = "rtl"
SDC = "constraints/accelerator.sdc"
XDC = "constraints/accelerator.xdc"


def products(design: Design) -> dict[str, str]:
    """Relative path to text. Raises DesignError for a design without hardware, ToolError when Yosys is missing."""
    return _texts(design, emit_design(design))


def _texts(design: Design, verilog: Verilog) -> dict[str, str]:
    top = next(module for module in verilog.modules if module.name == verilog.top)
    sources = [f"{RTL_FOLDER}/{name}" for name in verilog.sources]
    texts = {path: verilog.files[name] for path, name in zip(sources, verilog.sources, strict=True)}
    return texts | {
        FILE_LIST: "".join(f"{path}\n" for path in sources),
        MANIFEST: verilog.files[MANIFEST],
        "fiberloom.core": core(design, sources=sources, top=verilog.top, sdc=SDC, xdc=XDC),
        "design.json": design.model_dump_json(indent=2) + "\n",
        SDC: constraints.sdc(
            design,
            inputs=[port.name for port in top.ports if port.is_input],
            outputs=[port.name for port in top.ports if not port.is_input],
        ),
        XDC: constraints.xdc(design),
        "sw/fiberloom_regs.h": c_header(),
        "docs/registers.md": "# Registers of the Fiberloom accelerator\n\n" + register_map(),
        "docs/registers.rdl": system_rdl(),
    }


def write_products(folder: Path, texts: dict[str, str]) -> list[Path]:
    """Writes the files beside their places and moves them there when all are complete; removes Verilog of an earlier
    design from the folder. Raises OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fiberloom-") as scratch:
        for name, text in texts.items():
            path = Path(scratch) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        for name in texts:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
        for name in texts:
            os.replace(Path(scratch) / name, folder / name)
    for stale in (folder / RTL_FOLDER).glob("*.sv"):
        if f"{RTL_FOLDER}/{stale.name}" not in texts:
            stale.unlink()
    return [folder / name for name in texts]
