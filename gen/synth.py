"""Cells of each block by Yosys: every distinct module alone, and summed over the hierarchy.

A module is synthesised once with its children as black boxes, so 32 equal PEs cost the time of one, and no cell is
optimised across the borders of blocks: the sums are upper bounds of a flattened synthesis.
"""

import json
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from rtl.lib.block import Block

from .design import Design, DesignError, did_you_mean
from .elaborate import accelerator
from .platform import EmittedModule
from .rtlil_text import for_synthesis
from .verilog import converted
from .yosys import quoted, run_jobs

__all__ = ["TARGETS", "ModuleCells", "Synthesis", "black_box", "check_target", "synthesise", "synthesise_block"]

# Memories with at least this many bits stay memories in the generic target: macros hold them, not flip-flops.
MEMORY_BITS = 1024
_MEMORY = "memory"
# Called with the number of finished modules and of all modules.
Progress = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True)
class _Target:
    """How to synthesise for a technology, and which of its cells are what."""

    commands: tuple[str, ...]
    flip_flops: str
    luts: str
    memories: str
    # Types, as Yosys selects them, at which a path ends, besides Yosys' own.
    ends: tuple[str, ...] = ()


_GENERIC = (
    "synth -run begin:fine",
    # Only words count here: `$mem_v2` has its size as a parameter.
    f"chtype -set {_MEMORY} {{big}}",
    "synth -run fine:check",
)
TARGETS = {
    "generic": _Target(commands=_GENERIC, flip_flops=r"\$_.*DFF.*|\$_DLATCH.*", luts="", memories=_MEMORY),
    "ecp5": _Target(
        commands=("synth_ecp5",),
        flip_flops="TRELLIS_FF",
        luts="LUT4",
        memories="DP16KD|TRELLIS_DPR16X4",
        ends=("TRELLIS_FF", "DP16KD"),
    ),
    "xilinx": _Target(
        commands=("synth_xilinx -family xc7 -noiopad -noclkbuf",),
        flip_flops="FD[RSCP]E.*",
        luts="LUT[1-6]",
        memories="RAMB.*|RAM(32|64|128|256).*",
        ends=("FD?E*", "RAMB*"),
    ),
    "ice40": _Target(
        commands=("synth_ice40",),
        flip_flops="SB_DFF.*",
        luts="SB_LUT4",
        memories="SB_RAM40_4K.*",
        ends=("SB_DFF*", "SB_RAM40_4K*"),
    ),
}


@dataclass(frozen=True, kw_only=True)
class ModuleCells:
    """One distinct module.

    instances : how many the design has. own : cells of one instance without its children. total : with them, by cell type.
    memory_bits : in memories that stay memories, with the children's. depth : cells on the longest path between registers
    or ports, within this module.
    """

    name: str
    block: str
    instances: int
    own: dict[str, int]
    total: dict[str, int]
    memory_bits: int
    depth: int


@dataclass(frozen=True, kw_only=True)
class Synthesis:
    """Cells of every distinct module, parents before children, the top first."""

    target: str
    design: str
    yosys: str
    modules: tuple[ModuleCells, ...]

    def kinds(self, cells: Mapping[str, int]) -> dict[str, int]:
        """Cells sorted into flip-flops, LUTs, memories and the rest."""
        target = TARGETS[self.target]
        found = dict.fromkeys(("luts", "flip_flops", "memories", "other"), 0)
        for cell, number in cells.items():
            for kind in ("flip_flops", "luts", "memories"):
                if re.fullmatch(getattr(target, kind) or "-", cell):
                    found[kind] += number
                    break
            else:
                found["other"] += number
        return found

    def summary(self) -> str:
        """A sentence: cells of the top with all below it, and the longest path."""
        top = self.modules[0]
        kinds = self.kinds(top.total)
        counted = ", ".join(f"{count:,} {kind.replace('_', ' ')}" for kind, count in kinds.items() if count)
        slowest = max(self.modules, key=lambda module: module.depth)
        bits = f"; {top.memory_bits:,} bits in memories" if top.memory_bits else ""
        return (
            f"Area by Yosys {self.yosys}, target {self.target}: {sum(top.total.values()):,} cells ({counted}){bits}. "
            f"The longest path within a module is {slowest.depth} cells, in `{slowest.name}`."
        )

    def record(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "target": self.target,
            "design": self.design,
            "yosys": self.yosys,
            "modules": [
                {
                    "name": module.name,
                    "block": module.block,
                    "instances": module.instances,
                    "cells": sum(module.total.values()),
                    **self.kinds(module.total),
                    "memory_bits": module.memory_bits,
                    "own_cells": sum(module.own.values()),
                    "depth": module.depth,
                    "by_type": dict(sorted(module.total.items())),
                }
                for module in self.modules
            ],
        }


def check_target(target: str) -> None:
    """Raises DesignError for an unknown target."""
    if target not in TARGETS:
        raise DesignError(f"--target {target}: must be one of {', '.join(TARGETS)}{did_you_mean(target, TARGETS)}")


def synthesise(design: Design, target: str, progress: Progress | None = None, name: str | None = None) -> Synthesis:
    """Every block of a design, its top called ``name``. Raises DesignError for an unknown target or a design without hardware."""
    check_target(target)
    return synthesise_block(accelerator(design), target, origin=design.name, progress=progress, name=name)


def synthesise_block(
    block: Block, target: str, *, origin: str, progress: Progress | None = None, name: str | None = None
) -> Synthesis:
    """A block and everything below it."""
    top, modules = converted(block, name=name)

    def finished(count: int) -> None:
        if progress is not None:
            progress(count, len(modules))

    with tempfile.TemporaryDirectory(prefix="fiberloom-") as scratch:
        results = _synthesised(list(modules.values()), modules, TARGETS[target], Path(scratch), finished)
    instances: Counter[str] = Counter({top.name: 1})
    for module in reversed(modules.values()):  # parents before children
        for child, number in module.children:
            instances[child] += number * instances[module.name]
    totals: dict[str, Counter[str]] = {}
    bits: dict[str, int] = {}
    for module in modules.values():
        totals[module.name] = Counter(results[module.name][0])
        bits[module.name] = _memory_bits(module.rtlil)
        for child, number in module.children:
            for cell, cells in totals[child].items():
                totals[module.name][cell] += number * cells
            bits[module.name] += number * bits[child]
    return Synthesis(
        target=target,
        design=origin,
        yosys=_yosys_version(),
        modules=tuple(
            ModuleCells(
                name=module.name,
                block=f"{type(module.block).__module__}.{type(module.block).__qualname__}",
                instances=instances[module.name],
                own=results[module.name][0],
                total=dict(totals[module.name]),
                memory_bits=bits[module.name],
                depth=results[module.name][1],
            )
            for module in reversed(modules.values())
        ),
    )


def _synthesised(
    todo: Sequence[EmittedModule],
    modules: Mapping[str, EmittedModule],
    target: _Target,
    scratch: Path,
    finished: Callable[[int], None],
) -> dict[str, tuple[dict[str, int], int]]:
    """Own cells and depth of each module."""
    jobs = []
    for module in todo:
        source = scratch / f"{module.name}.il"
        stubs = "".join(black_box(modules[child].rtlil) for child, _ in module.children)
        source.write_text(stubs + for_synthesis(module.rtlil), encoding="utf-8")
        big = " ".join(f"{module.name}/c:{name}" for name in _big_memories(module.rtlil))
        steps = [command.format(big=big) for command in target.commands if big or "{big}" not in command]
        # Black boxes are no paths; as paths they would close loops that do not exist.
        kinds = [*(child for child, _ in module.children), _MEMORY, *target.ends]
        boxes = " ".join(f"{module.name}/t:{kind} %d" for kind in kinds)
        jobs.append(
            [
                f"read_rtlil {quoted(source)}",
                f"hierarchy -check -top {module.name}",
                *steps,
                f"tee -q -o {quoted(scratch / f'{module.name}.json')} stat -json {module.name}",
                f"tee -q -o {quoted(scratch / f'{module.name}.ltp')} ltp -noff {module.name} {boxes}",
            ]
        )
    run_jobs(jobs, finished=finished)
    results = {}
    for module in todo:
        statistics = json.loads((scratch / f"{module.name}.json").read_text(encoding="utf-8"))["modules"][
            f"\\{module.name}"
        ]
        path = re.search(r"\(length=(\d+)\)", (scratch / f"{module.name}.ltp").read_text(encoding="utf-8"))
        children = {child for child, _ in module.children}
        cells = {name: count for name, count in statistics["num_cells_by_type"].items() if name not in children}
        results[module.name] = (cells, int(path[1]) if path else 0)
    return results


def _big_memories(text: str) -> list[str]:
    found = re.findall(r"(?m)^  memory width (\d+) size (\d+) \\(\S+)$", text)
    return [name for width, size, name in found if int(width) * int(size) >= MEMORY_BITS]


def _memory_bits(text: str) -> int:
    found = re.findall(r"(?m)^  memory width (\d+) size (\d+) \\(\S+)$", text)
    return sum(int(width) * int(size) for width, size, _ in found if int(width) * int(size) >= MEMORY_BITS)


def black_box(text: str) -> str:
    """A module's name and ports alone."""
    name = re.search(r"(?m)^module (\S+)$", text)
    ports = re.findall(r"(?m)^  wire width \d+ (?:input|output) \d+ .*$", text)
    return "\n".join(["attribute \\blackbox 1", f"module {name[1] if name else ''}", *ports, "end", ""])


def _yosys_version() -> str:
    return metadata.version("pyosys")
