"""Places and routes blocks for ECP5 over several seeds: cells, highest clock frequency, and the critical path by name.

    python -m benchmarks.timing --block rtl.buffer.tailors:TailorsBuffer width=32 entries=256
    python -m benchmarks.timing --block tailors entries=256
    python -m benchmarks.timing --config edge --module 'fp_add.*' --module 'merge_level.*'
    python -m benchmarks.timing --config edge
    python -m benchmarks.timing --all

The first form takes a block by its class and parameters, the second by its name in `fiberloom generate --list-blocks`, with
the parameters of the design where none are given, the third modules of a design whose names match, each with
everything below it in one piece, the fourth lists the modules of the design, the last makes the
table of docs/timing.md (hours; `--seeds 1` or `--only` for less; with `--json` what the file has of the same hardware and seeds
is not placed again). `--left-out` makes modules black boxes, which
counts cells without them and does not place. Needs nextpnr: `pip install 'fiberloom[pnr]'`.

Inputs and outputs are no pins and have no delay: the frequency is that of paths between registers. Logic that finds its
place by chance differs by 10 % from seed to seed, so the middle of five is the number to compare.
"""

import ast
import hashlib
import importlib
import json
import re
import statistics
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.table_markers import PrintedTable, benchmark_parser
from gen.blocks import block_kind, build_block, settings
from gen.design import Design, DesignError, load_design
from gen.elaborate import accelerator
from gen.place import NEXTPNR, Placed, nextpnr, place, whole
from gen.platform import EmittedModule
from gen.verilog import converted
from gen.yosys import ToolError

# The table of docs/timing.md: what it is called, design, module by pattern or block by name and parameters.
TABLE = (
    ("floating-point adder", "edge", "fp_add.*"),
    ("floating-point multiplier", "edge", "fp_multiply.*"),
    ("pair combiner", "edge", "pair_combiner.*"),
    ("combiner cascade", "edge", "combiner_cascade.*"),
    ("scaler", "edge", "scaler.*"),
    ("merge level, 32 nodes", "edge", "merge_level_n32.*"),
    ("merge tree, R = 64", "edge", "merge_tree.*"),
    ("leaf buffer, R = 64", "edge", "leaf_buffer.*"),
    ("fiber packer", "edge", "fiber_packer.*"),
    ("processing element, R = 64", "edge", "gustavson_pe.*"),
    ("Tailors buffer, 256 x 32", "edge", ("tailors", "entries=256", "width=32")),
    ("plain buffet, 256 x 32", "edge", ("buffet", "entries=256", "width=32")),
    ("accessor A", "edge", "accessor_a.*"),
    ("accessor B", "edge", "accessor_b.*"),
    ("accessor C", "edge", "accessor_c.*"),
    ("segment scanner, in A and B", "edge", "segment_scanner.*"),
    ("run requester, in A and B", "edge", "run_requester.*"),
    ("pair reader", "edge", "pair_reader.*"),
    ("row splitter", "edge", "row_splitter.*"),
    ("segment loader, in B", "edge", "segment_loader_f[1-9].*"),
    ("segment player, in A", "edge", "segment_player.*"),
    ("partial store, in C", "edge", "partial_store.*"),
    ("fiber lookup", "edge", "fiber_lookup.*"),
    ("segment streamer", "edge", "segment_streamer.*"),
    ("tiling controller", "edge", "tiling_controller.*"),
    ("run control", "edge", "run_control.*"),
    ("tuning unit", "edge", "tuning_unit.*"),
    ("dispatcher", "edge", "dispatcher.*"),
    ("collector", "edge", "collector.*"),
    ("memory fetch", "edge", "memory_fetch.*"),
    ("memory engine", "edge", "memory_engine.*"),
    ("registers", "edge", "register_file.*"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = benchmark_parser(__file__, __doc__)
    parser.add_argument("--block", metavar="NAME|MODULE:CLASS", help="a block by name or class; its parameters follow")
    parser.add_argument("parameters", nargs="*", metavar="NAME=VALUE", help="parameters of --block, as Python literals")
    parser.add_argument("--config", default="edge", help="a design by name or file")
    parser.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE", help="a change of the design")
    parser.add_argument(
        "--module", action="append", default=[], metavar="PATTERN", help="modules of the design, by name"
    )
    parser.add_argument("--left-out", action="append", default=[], metavar="PATTERN", help="modules to count without")
    parser.add_argument("--seeds", type=int, default=5, help="placements of each block, from seed 1 on")
    parser.add_argument("--frequency", type=float, default=100.0, help="MHz that the placer aims at")
    parser.add_argument("--nextpnr", help=f"the tool; default: {NEXTPNR} beside Python or on the path")
    parser.add_argument("--json", type=Path, help="where to write all of it as JSON")
    parser.add_argument("--all", action="store_true", help="the table of docs/timing.md")
    parser.add_argument("--only", action="append", default=[], metavar="WORD", help="rows of --all that hold the word")
    options = parser.parse_args(arguments)
    if options.all:
        printed = PrintedTable(parser, options)
        _table(printed, options.only, options.seeds, options.frequency, options.nextpnr or nextpnr(), options.json)
        printed.write()
        return 0
    if options.block:
        design = load_design(options.config, options.set)
        top, modules = converted(_block(options.block, options.parameters, design))
        chosen = [top.name]
    else:
        _, modules = converted(accelerator(load_design(options.config, options.set)))
        chosen = [name for name in modules if any(re.fullmatch(pattern, name) for pattern in options.module)]
        if not chosen:
            print("\n".join(modules))
            return 0
    tool = options.nextpnr or nextpnr()
    record = []
    for name in chosen:
        entry = measured(name, modules, options.left_out, options.seeds, options.frequency, tool)
        record.append(entry)
        _show(entry)
        if options.json:
            options.json.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    return 0


def _table(
    printed: PrintedTable, only: Sequence[str], seeds: int, frequency: float, tool: str, json_file: Path | None
) -> None:
    """Prints the rows of ``TABLE`` as they are done."""
    printed.head(("block", "LUT4", "FF", "CCU2C", "DPR16X4", "DP16KD", "MHz", "longest path"))
    record = []
    known = json.loads(json_file.read_text(encoding="utf-8")) if json_file and json_file.exists() else []
    for label, config, what in TABLE:
        if only and not any(word in label for word in only):
            continue
        name, modules = table_module(config, what)
        same = {"label": label, "hardware": _digest(name, modules), "seeds": seeds, "frequency": frequency}
        entry = next((one for one in known if same.items() <= one.items()), None)
        entry = entry or same | measured(name, modules, [], seeds, frequency, tool)
        record.append(entry)
        cells = [f"{entry['cells'][cell]:,}" for cell in ("LUT4", "FF", "CCU2C", "DPR16X4", "DP16KD")]
        spread = f"{entry['median']} ({entry['least']} to {entry['most']})" if seeds > 1 else f"{entry['median']}"
        printed.row((label, *cells, spread, _short(entry["path"])))
        if json_file:
            json_file.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def _digest(name: str, modules: dict[str, EmittedModule]) -> str:
    """Of a module and everything below it."""
    found: dict[str, str] = {}
    wanted = [name]
    while wanted:
        module = modules[wanted.pop()]
        if module.name not in found:
            found[module.name] = module.rtlil
            wanted += [child for child, _ in module.children]
    return hashlib.sha256("".join(found[each] for each in sorted(found)).encode()).hexdigest()[:16]


@cache
def _design(config: str) -> dict[str, EmittedModule]:
    return converted(accelerator(load_design(config, [])))[1]


def table_module(config: str, what: str | tuple[str, ...]) -> tuple[str, dict[str, EmittedModule]]:
    """A row of ``TABLE``: the module's name, and all modules beside and below it."""
    if isinstance(what, str):
        modules = _design(config)
        return next(name for name in modules if re.fullmatch(what, name)), modules
    top, modules = converted(_block(what[0], what[1:], load_design(config, [])))
    return top.name, modules


def _short(path: Sequence[str]) -> str:
    """The ends of a path and what lies between, five signals at most."""
    names = [re.sub(r"(\$|_DO|_DI|_WRE).*", "", name) for name in path]
    kept = [name for n, name in enumerate(names) if n == 0 or name != names[n - 1]]
    if len(kept) > 5:
        kept = [*kept[:3], "...", *kept[-2:]]
    return " > ".join(f"`{name}`" if name != "..." else name for name in kept)


def _block(path: str, parameters: Sequence[str], design: Design) -> Any:
    if ":" not in path:
        kind = block_kind(path)
        return build_block(kind, settings(kind, parameters, design))
    module, _, name = path.partition(":")
    pairs = (parameter.partition("=") for parameter in parameters)
    return getattr(importlib.import_module(module), name)(**{key: _literal(value) for key, _, value in pairs})


def _literal(text: str) -> Any:
    """A Python literal, or an enum's member or class as `module:Class.MEMBER`."""
    if re.fullmatch(r"[\w.]+:[\w.]+", text):
        module, _, path = text.partition(":")
        found = importlib.import_module(module)
        for name in path.split("."):
            found = getattr(found, name)
        return found
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def measured(
    name: str,
    modules: dict[str, EmittedModule],
    left_out: Sequence[str],
    seeds: int,
    frequency: float,
    tool: str,
) -> dict[str, Any]:
    """Cells and placements of one module with everything below it."""
    with tempfile.TemporaryDirectory(prefix="fiberloom-") as scratch:
        folder = Path(scratch)
        cells, boxed = whole(name, modules, left_out, folder)
        placed = [] if boxed else [_found(folder, seed, frequency, tool) for seed in range(1, seeds + 1)]
    entry: dict[str, Any] = {"module": name, "cells": cells}
    if placed:
        speeds = [one.megahertz for one in placed]
        middle = sorted(placed, key=lambda one: one.megahertz)[len(placed) // 2]
        entry["megahertz"] = {one.seed: round(one.megahertz, 1) for one in placed}
        entry |= {"median": round(statistics.median(speeds), 1), "least": round(min(speeds), 1)}
        entry |= {"most": round(max(speeds), 1), "seed": middle.seed, "path": middle.path}
    return entry


def _found(folder: Path, seed: int, frequency: float, tool: str) -> Placed:
    found = place(folder, seed, frequency, tool)
    if found is None:
        raise ToolError("the block has no path from register to register")
    return found


def _show(entry: dict[str, Any]) -> None:
    cells = ", ".join(f"{count} {name}" for name, count in entry["cells"].items() if count)
    print(f"{entry['module']}: {cells}")
    if "median" in entry:
        each = ", ".join(f"{speed}" for speed in entry["megahertz"].values())
        print(f"  {entry['median']} MHz ({entry['least']} to {entry['most']}; seeds: {each})")
        print(f"  critical path, seed {entry['seed']}: {' > '.join(entry['path'])}", flush=True)


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except (DesignError, ToolError) as error:
        print(error, file=sys.stderr)
        raise SystemExit(error.exit_code) from None
