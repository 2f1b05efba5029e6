"""All that ``fiberloom generate`` writes for a design or a block, as texts by relative path."""

import json
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rtl.lib.block import Block
from rtl.regs.axi_lite import DESIGN_PARAMETERS, RegisterFile

from . import __version__, constraints
from .block_bench import bench_files, record
from .blocks import BlockKind, build_block
from .c_example import example_files
from .design import Design
from .elaborate import accelerator
from .folder import MANIFEST
from .fusesoc import block_core, core
from .headers import c_header, system_rdl
from .instance import INSTANCE, instance
from .ipxact import component
from .lint import WAIVERS
from .pages import pages
from .place import measure
from .ports import Port
from .readme import README, block_readme, design_readme
from .regdoc import register_map
from .smoke import SmokeRun, smoke_files
from .synth import Progress, Synthesis, synthesise, synthesise_block
from .verilog import FILE_LIST, Verilog, converted, design_digest, emit, emit_design, netlist

__all__ = ["RTL_FOLDER", "block_products", "products"]

RTL_FOLDER = "rtl"
SDC = "constraints/accelerator.sdc"
XDC = "constraints/accelerator.xdc"
BLOCK_SDC = "constraints/block.sdc"
BLOCK_XDC = "constraints/block.xdc"
COMPONENT = "component.xml"
AREA = "area.json"
# The target that place and route is for.
PLACED = "ecp5"
WIDTH = 120
LINT_WAIVERS = "lint/waivers.vlt"


def products(
    design: Design,
    smoke: SmokeRun | None = None,
    area: str | None = None,
    progress: Progress | None = None,
    name: str | None = None,
) -> dict[str, str]:
    """Relative path to text.

    Parameters
    ----------
    smoke : a bench that runs it is among the files.
    area : a target of :mod:`gen.synth`: the pages of the blocks then have their cells. ``progress`` is called with how far
        that is.
    name : of the top module, and what the others' names then begin with.

    Raises DesignError for a design without hardware, ToolError when Yosys is missing.
    """
    verilog = emit_design(design, name)
    origin = f"design {design.name} ({design_digest(design)})"
    texts = _common(verilog)
    sources = list(texts)
    top = next(module for module in verilog.modules if module.name == verilog.top)
    texts |= _lists(sources, _generated(origin))
    cells = synthesise(design, area, progress, name) if area is not None else None
    placed = _placed(cells, lambda: accelerator(design), name)
    texts |= _area(cells, placed) | {
        "fiberloom.core": core(
            design,
            sources=sources,
            top=verilog.top,
            waivers=LINT_WAIVERS,
            sdc=SDC,
            xdc=XDC,
            bench=smoke is not None,
        ),
        README: design_readme(
            design.name,
            _generated(origin),
            design.line_bytes,
            _identity(verilog),
            top=verilog.top,
            bench=smoke is not None,
            asynchronous_reset=design.clock.asynchronous_reset,
            measured=_measured(design, cells, placed),
        ),
        "design.json": design.model_dump_json(indent=2) + "\n",
        SDC: constraints.sdc(
            design,
            top=verilog.top,
            inputs=[port.name for port in top.ports if port.is_input],
            outputs=[port.name for port in top.ports if not port.is_input],
        ),
        XDC: constraints.xdc(design, top=verilog.top),
        "sw/fiberloom_regs.h": c_header(),
        "docs/registers.md": "# Registers of the Fiberloom accelerator\n\n" + register_map(),
        "docs/registers.rdl": system_rdl(),
    }
    texts |= _integration(verilog, "accelerator", design.description, sources, _generated(origin), SDC)
    texts |= pages(verilog, origin=_generated(origin), area=cells)
    if smoke is not None:
        texts |= smoke_files(design, smoke, verilog, origin=_generated(origin))
        texts |= example_files(smoke, origin=_generated(origin))
    return texts | {MANIFEST: verilog.manifest(RTL_FOLDER, texts)}


def block_products(
    kind: BlockKind,
    values: Mapping[str, Any],
    area: str | None = None,
    progress: Progress | None = None,
    name: str | None = None,
    design: Design | None = None,
) -> tuple[str, dict[str, str]]:
    """The name of the top module, and relative path to text, of a block alone; ``name`` as for :func:`products`.

    ``design``: whose clock the block has; without it there are no constraints.

    Raises DesignError where the parameters do not go together, ToolError when Yosys is missing.
    """
    given = ", ".join(f"{name}={_shown(value)}" for name, value in values.items())
    origin = f"block {kind.name}" + (f" ({given})" if given else "")
    verilog = emit(build_block(kind, values), origin=origin, name=name)
    texts = _common(verilog)
    sources = list(texts)
    cells = (
        synthesise_block(build_block(kind, values), area, origin=origin, progress=progress, name=name) if area else None
    )
    placed = _placed(cells, lambda: build_block(kind, values), name)
    texts |= _area(cells, placed) | _lists(sources, _generated(origin))
    pins = _pins(verilog)
    # A whole core, which has its clock among its ports, is too large to be recorded.
    bench = all(port.name != constraints.CLOCK for port in pins)
    texts[f"{kind.name}.core"] = block_core(
        kind.name, kind.summary, sources=sources, top=verilog.top, waivers=LINT_WAIVERS, bench=bench
    )
    clocked = design is not None and any(port.name == constraints.BLOCK_CLOCK for port in pins)
    if design is not None and clocked:
        inputs, outputs = ([port.name for port in pins if port.is_input == way] for way in (True, False))
        clock = constraints.BLOCK_CLOCK
        texts[BLOCK_SDC] = constraints.sdc(design, top=verilog.top, inputs=inputs, outputs=outputs, clock=clock)
        texts[BLOCK_XDC] = constraints.xdc(design, top=verilog.top, clock=clock)
    if bench:
        texts |= bench_files(
            record(lambda: build_block(kind, values)),
            name=kind.name,
            top=verilog.top,
            pins=pins,
            netlist=netlist(verilog.modules),
            origin=_generated(origin),
        )
    sdc = BLOCK_SDC if clocked else None
    texts |= _integration(verilog, "block", kind.summary, sources, _generated(origin), sdc)
    texts[README] = block_readme(
        kind.name, kind.summary, _generated(origin), verilog.top, clocked, bench, _figures(cells, placed)
    )
    texts |= pages(verilog, origin=_generated(origin), area=cells)
    return verilog.top, texts | {MANIFEST: verilog.manifest(RTL_FOLDER, texts)}


def _pins(verilog: Verilog) -> list[Port]:
    """All ports of the top module: clock and reset of a block are not members of its signature."""
    ports = next(module for module in verilog.modules if module.verilog == verilog.top).ports
    text = verilog.files[f"{verilog.top}.sv"]
    implied = [
        name
        for name in (constraints.BLOCK_CLOCK, constraints.BLOCK_RESET)
        if re.search(rf"(?m)^ *input +logic +{name}\b", text)
    ]
    return [*(Port(name=name, width=1, is_input=True, member=name) for name in implied), *ports]


def _integration(
    verilog: Verilog, library: str, description: str, sources: Sequence[str], origin: str, sdc: str | None
) -> dict[str, str]:
    """What puts the hardware into somebody's design: an instance to copy, and a component for tools that assemble chips."""
    ports = _pins(verilog)
    files = {"systemVerilogSource": sources} | ({"SDC": [sdc]} if sdc else {})
    registers = library == "accelerator"
    return {
        INSTANCE: instance(verilog.top, ports, origin),
        COMPONENT: component(
            verilog.top, library=library, description=description, ports=ports, files=files, registers=registers
        ),
    }


def _placed(cells: Synthesis | None, make: Callable[[], Block], name: str | None) -> dict[str, Any] | None:
    """The clock that place and route reaches for the block that ``make`` makes; None for a target that has none."""
    if cells is None or cells.target != PLACED:
        return None
    top, modules = converted(make(), name=name)
    return measure(top.name, modules, cells.modules[0].total)


def _area(cells: Synthesis | None, placed: dict[str, Any] | None) -> dict[str, str]:
    """The figures as a file."""
    return {} if cells is None else {AREA: json.dumps(cells.record() | {"placed": placed}, indent=2) + "\n"}


def _figures(cells: Synthesis | None, placed: dict[str, Any] | None) -> str:
    """Area and clock in sentences; empty where nothing was measured."""
    if cells is None:
        return ""
    if placed is None:
        clock = f"Place and route is for the target {PLACED} alone."
    elif placed["mhz"] is None:
        clock = f"Place and route for {placed['device']} reached no clock: {placed['reason']}."
    else:
        counted = ", ".join(f"{count:,} {kind}" for kind, count in placed["cells"].items() if count)
        clock = (
            f"Clock: {placed['mhz']} MHz, reached by place and route for {placed['device']}, out of context, with {counted}. "
            "That is one placement: others differ by up to 10 %."
        )
    return _wrapped(f"{cells.summary()} {clock} `{AREA}` has the figures.")


def _wrapped(text: str) -> str:
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)


def _measured(design: Design, cells: Synthesis | None, placed: dict[str, Any] | None) -> str:
    """What is known of clock and area."""
    clock = design.clock
    reached = (
        f"reached by place and route on {clock.part}"
        if clock.part
        else "asked for; no place and route of this design has reached it"
    )
    figures = _figures(cells, placed) or "Area and clock: `fiberloom generate --area ecp5` writes them here."
    return f"Constraints: {clock.mhz:g} MHz, {reached}.\n\n{figures}"


def _identity(verilog: Verilog) -> dict[str, int]:
    """Values of the registers that say what the hardware is."""
    block = next(module.block for module in verilog.modules if isinstance(module.block, RegisterFile))
    return {name: block.constants[name] for name in DESIGN_PARAMETERS}


def _shown(value: Any) -> str:
    """As it is typed."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _generated(origin: str) -> str:
    return f"Generated by Fiberloom {__version__} for {origin}. Do not edit."


def _common(verilog: Verilog) -> dict[str, str]:
    """The Verilog by path, children first."""
    return {f"{RTL_FOLDER}/{file}": verilog.files[file] for file in verilog.sources}


def _lists(sources: Sequence[str], origin: str) -> dict[str, str]:
    """The file list, and the warnings that Verilator may give about the files."""
    waivers = WAIVERS.read_text(encoding="utf-8")
    return {
        FILE_LIST: "".join(f"{path}\n" for path in sources),
        LINT_WAIVERS: waivers.replace("\n", f"\n// {origin}\n", 1),
    }
