"""Area of the converter's builds (MINT section VII.B): separate, merged, merged with the adders and dividers of a host.

    python -m benchmarks.builds --liberty /usr/share/qflow/tech/osu018/osu018_stdcells.lib --docs docs/benchmarks.md
    python -m benchmarks.builds --target ecp5 --docs docs/benchmarks.md

The library is that of ``benchmarks.cells``; with ``--target ecp5`` LUT sites are counted: LUT4 + 2 x CCU2C + 6 x DPR16X4. Every
distinct module is mapped once and counted as often as it stands in a build; nothing is optimised across modules, in any build.
Memories of 16 words and more are not counted in cells. It takes an hour; ``--kept`` lets a run that was stopped go on.
``--docs`` puts the tables into a page, between their markers.
"""

import hashlib
import json
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gen import parameters
from gen.design import Design, DesignError, load_design
from gen.platform import ModuleEmitter
from gen.yosys import ToolError, quoted, run_jobs
from rtl.arith.int_add import IntAdd
from rtl.arith.int_multiply import IntMultiply
from rtl.converter import Converter, ConverterRegisters
from rtl.lib.block import Block
from rtl.mint.converter.conversions import conversions_named
from rtl.mint.converter.cores import STYLES
from rtl.mint.divmod import ReciprocalDivmod, RestoringDivmod
from rtl.mint.host.adder_array import AdderArray
from rtl.mint.host.host_array import HostArray

from .cells import MEMORY_WORDS
from .table_markers import PrintedTable, benchmark_parser

SETS = ("figure_8", "all")
MACS = 16384
#: Parts of a merged converter: name in the table, modules.
PARTS = (
    ("divide and mod, with what waits beside it", "cell_finder"),
    ("the dividers of positions alone", "reciprocal_divmod_l[0-9]+_w64_d33"),
    ("block rows and columns, fibers, two dividers each lane", "block_finder"),
    ("the dividers of blocks alone", "reciprocal_divmod_l[0-9]+_(w32_d25|w33_d33)"),
    ("tree of CSF", "tree_(builder|nodes)"),
    ("prefix sums", "(serial_chain|work_efficient|highly_parallel)_sum"),
    ("multipliers of positions", "position_maker"),
    ("transposer", "transposer"),
    ("bit unpackers and packers", "bit_(un)?packer"),
    ("memory engine", "memory_engine"),
)
SITES = {"LUT4": 1, "CCU2C": 2, "TRELLIS_DPR16X4": 6}
OVERLAYS: Mapping[str, Mapping[str, Any]] = {
    "bare": {"form": "none"},
    "serial chain of 16": {"form": "serial_chain", "inputs": 16, "limbs": 1},
    "work-efficient of 16": {"form": "work_efficient", "inputs": 16, "limbs": 1},
    "highly parallel of 32": {"form": "highly_parallel", "inputs": 32, "limbs": 1},
    "highly parallel of 16": {"form": "highly_parallel", "inputs": 16, "limbs": 1},
}


class Areas:
    """Areas of blocks, in the unit of the library or in LUT sites.

    Parameters
    ----------
    liberty: the cell library, or None for ECP5.
    kept: where areas of modules are kept, and found by the next run.
    """

    def __init__(self, liberty: Path | None, kept: Path | None = None) -> None:
        self.liberty = liberty
        self._emitter = ModuleEmitter()
        self._own: dict[str, tuple[float, dict[str, int]]] = {}
        self._file = kept
        self._kept = json.loads(kept.read_text(encoding="utf-8")) if kept and kept.exists() else {}

    def _key(self, name: str) -> str:
        text = f"{self.liberty} {self._emitter.modules[name].rtlil}"
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def add(self, blocks: Sequence[Block]) -> list[str]:
        """Maps what is new in the blocks; gives the names of their modules."""
        names = [self._emitter.add(block).name for block in blocks]
        for name in self._emitter.modules:
            if name not in self._own and (kept := self._kept.get(self._key(name))):
                self._own[name] = kept[0], kept[1]
        known = set(self._own)
        fresh = [name for name in self._emitter.modules if name not in known]
        if not fresh:
            return names
        print(f"{len(fresh)} modules", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory(prefix="fiberloom-") as scratch:
            folder = Path(scratch)
            text = "".join(module.rtlil for module in self._emitter.modules.values())
            (folder / "design.il").write_text(text, encoding="utf-8")
            boxes = " ".join(sorted(known))
            run_jobs(
                [
                    [
                        f"read_rtlil {quoted(folder / 'design.il')}",
                        "hierarchy -check",
                        *([f"blackbox {boxes}"] if boxes else []),
                        *self._mapping(),
                        f"tee -q -o {quoted(folder / 'cells.json')} stat -json {self._library()}",
                    ]
                ]
            )
            modules = json.loads((folder / "cells.json").read_text(encoding="utf-8"))["modules"]
        for name, found in modules.items():
            kinds = found["num_cells_by_type"]
            inside = {kind: count for kind, count in kinds.items() if kind in self._emitter.modules}
            area = sum(kinds.get(kind, 0) * n for kind, n in SITES.items())
            if self.liberty:  # Yosys counts the modules inside that it has mapped
                mapped = ((modules.get(f"\\{kind}") or modules.get(kind), count) for kind, count in inside.items())
                area = found.get("area", 0.0) - sum(m["area"] * n for m, n in mapped if m and "area" in m)
            if (plain := name.lstrip("\\")) in fresh:
                self._own[plain] = area, inside
                self._kept[self._key(plain)] = area, inside
        if self._file:
            self._file.write_text(json.dumps(self._kept), encoding="utf-8")
        return names

    def _library(self) -> str:
        return f"-liberty {quoted(self.liberty)}" if self.liberty else ""

    def _mapping(self) -> list[str]:
        if self.liberty is None:
            return ["synth_ecp5 -noflatten -noabc9"]
        return [
            "synth -run begin:fine",
            f"chtype -set memory t:$mem_v2 r:SIZE>={MEMORY_WORDS} %i",
            "synth -run fine:check",
            f"dfflibmap {self._library()}",
            f"abc {self._library()}",
            "opt_clean -purge",
        ]

    def whole(self, name: str) -> float:
        """A module with everything below it."""
        own, inside = self._own[name]
        return own + sum(count * self.whole(child) for child, count in inside.items())

    def part(self, name: str, pattern: str) -> float:
        """What the modules below it take whose names match, with everything below them."""
        return sum(
            count * (self.whole(child) if re.fullmatch(f"{pattern}(_.*)?", child) else self.part(child, pattern))
            for child, count in self._own[name][1].items()
        )


def tables(areas: Areas, design: Design, sets: Sequence[str]) -> str:
    """What the figures of the paper are compared with, in Markdown."""
    unit = areas.liberty.stem if areas.liberty else "ECP5, LUT sites"
    constants = dict.fromkeys(("BEAT_BYTES", "LANES", "COUNTERS", "SRAM_BYTES", "VALUE_TYPE"), 1)
    file = ConverterRegisters(address_width=design.axi.address_bits, constants=constants)
    registers = areas.whole(areas.add([file])[0])
    host = areas.whole(areas.add([HostArray(form="none")])[0])
    shared = areas.whole(areas.add([HostArray(form=design.converter.prefix_sum)])[0])
    found: dict[tuple[str, str], float] = {}
    parts: dict[str, dict[str, float]] = {}
    outside: dict[tuple[str, str], float] = {}
    for chosen in sets:
        for style in STYLES:
            sizes = parameters.converter(design) | {"style": style, "conversions": chosen}
            name = areas.add([Converter(**sizes).core])[0]
            found[chosen, style] = areas.whole(name) + registers + (shared - host if style == "mr" else 0)
            outside[chosen, style] = areas.part(name, "memory_engine") + registers
            if style == "m":
                parts[chosen] = {what: areas.part(name, pattern) for what, pattern in PARTS} | {"registers": registers}
            print(f"{chosen} {style}: {found[chosen, style]:,.0f}", file=sys.stderr, flush=True)
    lines = [f"Cells of {unit}; design `{design.name}`.", ""]
    lines += ["| conversions | `b` | `m` | `mr` less the bare host | m / b | mr / m |", "| --- |" + " ---: |" * 5]
    for inner in (False, True):
        for chosen in sets:
            b, m, mr = (found[chosen, style] - inner * outside[chosen, style] for style in STYLES)
            label = f"{chosen}, {len(conversions_named(chosen).pairs)} pairs{', cores alone' if inner else ''}"
            lines.append(f"| {label} | {b:,.0f} | {m:,.0f} | {mr:,.0f} | {m / b:.2f} | {mr / m:.2f} |")
    lines += ["", "| part of `m` | " + " | ".join(sets) + " |", "| --- |" + " ---: |" * len(sets)]
    for what in parts[sets[0]]:
        shares = " | ".join(f"{100 * parts[chosen][what] / found[chosen, 'm']:.1f} %" for chosen in sets)
        lines.append(f"| {what} | {shares} |")
    arrays = areas.add([AdderArray(**overlay) for overlay in OVERLAYS.values()])
    multiplier, adder = (areas.whole(name) for name in areas.add([IntMultiply(width=32), IntAdd(width=32)]))
    bare = areas.whole(arrays[0])
    macs = bare + 256 * multiplier
    lines += [
        "",
        "| 16 x 16 array of int32 | area | over adders alone | over multipliers and adders |",
        "| --- |" + " ---: |" * 3,
    ]
    for label, name in zip(OVERLAYS, arrays, strict=True):
        more = areas.whole(name) - bare
        lines.append(f"| {label} | {bare + more:,.0f} | {100 * more / bare:.1f} % | {100 * more / macs:.1f} % |")
    lines.append(
        f"| host with eight dividers: bare {host:,.0f}, shared | {shared:,.0f} | {100 * (shared / host - 1):.1f} % | |"
    )
    lines += ["", *_dividers(areas, found[sets[0], "m"], parts[sets[0]])]
    array = MACS * (multiplier + adder)
    for chosen in sets:
        share = 100 * found[chosen, "m"] / array
        lines.append("")
        lines.append(
            f"`m` ({chosen}) is {share:.2f} % of {MACS:,} int32 MACs ({multiplier + adder:,.0f} each, by multiplication)."
        )
    return "\n".join(lines)


def _dividers(areas: Areas, merged: float, parts: Mapping[str, float]) -> list[str]:
    """What share of ``m`` all dividers would have were those of positions in their other form, and were there eight of them."""
    lines = ["| dividers of `m`, first row of the tables above | area | share of `m` |", "| --- | ---: | ---: |"]
    own, others = parts["the dividers of positions alone"], parts["the dividers of blocks alone"]
    beside = ", and those of blocks" if others else ""
    for kind in (ReciprocalDivmod, RestoringDivmod):
        one = areas.whole(areas.add([kind(lanes=1, width=64, divisor_width=33)])[0])
        for lanes in (4, 8):
            area = lanes * one + others
            share = 100 * area / (merged - own - others + area)
            lines.append(f"| {lanes} times one lane of `{kind.__name__}`{beside} | {area:,.0f} | {share:.0f} % |")
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    parser = benchmark_parser(__file__, __doc__)
    parser.add_argument("--liberty", type=Path, metavar="FILE", help="the cell library")
    parser.add_argument("--target", choices=("cells", "ecp5"), default="cells")
    parser.add_argument("--config", default="edge")
    parser.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE", help="a change of the design")
    parser.add_argument("--conversions", action="append", metavar="WHICH", help="figure_8, all; as in the design file")
    parser.add_argument("--kept", type=Path, metavar="FILE", help="areas of modules, for the next run")
    options = parser.parse_args(arguments)
    printed = PrintedTable(parser, options)
    if options.target == "cells" and (options.liberty is None or not options.liberty.is_file()):
        raise ToolError(f"There is no library {options.liberty}; Debian: apt-get install qflow-tech-osu018")
    areas = Areas(options.liberty if options.target == "cells" else None, options.kept)
    printed.line(tables(areas, load_design(options.config, options.set), options.conversions or SETS))
    printed.write()
    return 0


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except (DesignError, ToolError) as error:
        print(error, file=sys.stderr)
        raise SystemExit(error.exit_code) from None
