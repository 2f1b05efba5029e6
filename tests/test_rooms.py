"""Imports run one way: the table of design.md section 6, read from the `import` statements."""

import ast
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("rtl", "gen", "sw", "verif", "tests", "constraints", "fiberloom")

# Rooms below a room, lowest first: a room imports those in the rows before its own, and its own row's no others.
RTL_ROWS = (
    ("leaf_lines", "lib", "storage"),
    ("types",),
    ("arith",),
    ("buffer", "memory", "regs"),
    ("mint",),
    ("accessor", "tiling", "pe", "network"),
    ("engine",),
    ("reset_control", "machine", "accelerator", "converter"),
)
SW_ROWS = (
    ("energy", "folders", "names", "notes", "plugins", "sources", "tile_sizes"),
    ("cache", "jit", "formats"),
    ("timing", "engine_result"),
    ("operands", "golden", "stats"),
    ("scheme",),
    ("plan",),
    ("cost",),
    ("policies", "tensor"),
    ("model", "analytic", "sage"),
    ("runtime",),
    ("report",),
)
# Rooms of the analytical model, which has a folder for each step.
ANALYTIC_ROWS = (
    ("conventions", "errors", "processes", "values"),
    ("densities", "formats"),
    ("architecture", "features", "problem"),
    ("mapping",),
    ("mapspace", "nests"),
    ("dataflow",),
    ("sparse",),
    ("hardware",),
    ("spec",),
    ("analysis",),
    ("explain", "result", "search", "design_operands", "design_spec"),
    ("design_comparison",),
)
# Numba by way of `sw.jit`, which goes on where nothing can be kept.
DATA_LIBRARIES = {"numpy", "scipy"}
# What rooms of sw may have beside the data libraries: each reads or draws something of its own.
SW_LIBRARIES = {
    "jit": {"numba"},
    "plan": {"sknetwork"},
    "operands": {"google", "h5py", "networkx", "onnx", "pooch", "pyamg", "requests", "safetensors"},
    "report": {"jinja2", "pyarrow"},
    "analytic": {"jinja2", "pydantic", "yaml"},
    "cli": {"distributed", "numba", "typer", "rich"},
}
# Numbers of the hardware that need no hardware library: design files and benches read them too.
NUMBERS = {"rtl.leaf_lines", "rtl.storage"}
# Benches that put whole operands into memory and drive the registers, as the compiled simulation does.
DRIVERS = ("bench_accelerator", "bench_converter", "bench_speed")
# What the simulation's monitors look into: shapes of the streams between units, the phases.
PAYLOADS = {"rtl.tiling.settings", "rtl.types"}


def modules_of(tree: ast.AST, package: str, *, types: bool = False) -> list[str]:
    """Full names of what a file imports. `TYPE_CHECKING` blocks load nothing: they are read where `types` are asked for.

    With `types` each name that a `from` brings is there too, since it may be a module.
    """
    found: list[str] = []
    for node in ast.iter_child_nodes(tree):
        if (
            not types
            and isinstance(node, ast.If)
            and "TYPE_CHECKING" in ast.unparse(node.test)
            and not isinstance(node.test, ast.BoolOp)
        ):
            for other in node.orelse:
                found += modules_of(ast.Module([other], []), package)
            continue
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            found += [module] if node.module else []
            found += [f"{module}.{alias.name}" for alias in node.names] if types or not node.module else []
        found += modules_of(node, package, types=types)
    return found


def imports_of(path: Path, *, types: bool = False) -> list[str]:
    package = ".".join(path.relative_to(ROOT).parts[:-1])
    return modules_of(ast.parse(path.read_text(encoding="utf-8")), package, types=types)


def rows_allow(rows: tuple[tuple[str, ...], ...], room: str, other: str) -> bool:
    place = {name: n for n, row in enumerate(rows) for name in row}
    return room == other or place.get(other, len(rows)) < place.get(room, len(rows))


def allowed(path: Path, module: str) -> bool:
    """Whether the file may import the module."""
    parts, wanted = path.relative_to(ROOT).with_suffix("").parts, module.split(".")
    top, room = wanted[0], parts[1] if len(parts) > 2 else parts[-1]
    if top in sys.stdlib_module_names:
        return True
    if parts[0] == "rtl":
        if top == "amaranth":
            return ".".join(parts) not in NUMBERS
        same_row = room in RTL_ROWS[-1] and len(wanted) > 1 and wanted[1] in RTL_ROWS[-1]
        if top != "rtl" or len(wanted) < 2:
            return False
        return rows_allow(RTL_ROWS, room, wanted[1]) or same_row
    if parts == ("gen", "design") or parts == ("gen", "fields"):
        return top in {"pydantic", "pydantic_core", "tomli"} or module in NUMBERS | {"gen.fields"}
    if parts[0] == "gen":
        return top in {"amaranth", "rtl", "gen", "pyosys"}
    if parts[0] == "sw":
        # The compiled simulation is an engine that makes its own hardware.
        simulation = parts[1:3] == ("runtime", "simulation") and (top == "gen" or module in PAYLOADS)
        if parts[1] == "analytic" and wanted[:2] == ["sw", "analytic"]:
            return rows_allow(ANALYTIC_ROWS, parts[2] if len(parts) > 2 else "", wanted[2] if len(wanted) > 2 else "")
        return simulation or sw_allows(room, top, module, wanted)
    if parts[0] == "verif":
        return verif_allows(parts[-1] if parts[-1] in DRIVERS else room, top, module)
    if parts[0] == "constraints":
        return module == "gen.design"
    if parts[0] == "fiberloom":
        # The version is all that it takes of gen; frames are made where there is pandas.
        if module in ("gen", "sw.cli.app", "sw.cli.from_python", "sw.cli.worker"):
            return True
        return top == "fiberloom" or (top == "pandas" and parts[1] == "results")
    return True


def sw_allows(room: str, top: str, module: str, wanted: list[str]) -> bool:
    if top in DATA_LIBRARIES | SW_LIBRARIES.get(room, set()):
        return True
    if room in ("cli", "__main__"):
        return top in ("sw", "gen", "rtl") or module in ("fiberloom.worker", "fiberloom.__main__")
    if top == "gen":
        return module == "gen.design"
    if top != "sw":
        return False
    # Policies do not import each other; the row's own shared parts are in one room with them.
    return len(wanted) > 1 and (rows_allow(SW_ROWS, room, wanted[1]))


def verif_allows(room: str, top: str, module: str) -> bool:
    if top in ("cocotb", "cocotb_tools", "cocotbext", "find_libpython", "gen", "verif", "tomli", *DATA_LIBRARIES):
        return True
    if module in NUMBERS or (room == "formal" and top in ("rtl", "amaranth")):
        return True
    # Every engine against every other: the soak and what compares counters are above them all.
    if room == "soak" and module.startswith(("sw.model", "sw.runtime", "sw.engine_result", "sw.scheme.", "sw.plan.")):
        return True
    if room == "counters" and module.startswith(("sw.model", "sw.runtime", "sw.engine_result")):
        return True
    # Builds are kept where those of the compiled simulation are.
    if room == "runner" and module.startswith("sw.runtime.simulation."):
        return True
    if room == "agents" and module.startswith("amaranth.lib"):  # payloads are described by Amaranth's layouts
        return True
    return module.startswith(("sw.golden", "sw.formats", "sw.cache", "sw.notes")) or (
        room in (*DRIVERS, "stored", "planned_list")
        and module.startswith(("sw.runtime", "sw.scheme.", "sw.plan.", "sw.operands.errors", "sw.operands"))
    )


def sources() -> list[Path]:
    return sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py") if "__pycache__" not in path.parts)


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_run_one_way(path):
    wrong = [module for module in imports_of(path) if not allowed(path, module)]
    assert not wrong, f"{path.relative_to(ROOT)} may not import {', '.join(wrong)}"


def circle(graph: dict[str, set[str]]) -> list[str]:
    """Modules that import each other, the first one at the end again; none where imports run one way."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_file_imports_one_that_imports_it():
    """Not by way of others either, nor for a type alone."""
    files = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in sources()
    }
    graph = {name: set(imports_of(path, types=True)) & set(files) for name, path in files.items()}
    assert sum(map(len, graph.values())) > 1000
    assert circle(graph) == []


def test_circles_are_seen():
    guarded = ast.parse("if TYPE_CHECKING:\n    from .scheme import Scheme\n")
    assert modules_of(guarded, "sw.scheme", types=True) == ["sw.scheme.scheme", "sw.scheme.scheme.Scheme"]
    assert circle({"scheme": {"rules"}, "rules": {"shares", "scheme"}, "shares": set()}) == [
        "scheme",
        "rules",
        "scheme",
    ]
    assert circle({"scheme": {"rules"}, "rules": {"shares"}}) == []


def test_the_whole_tree_is_read():
    files = {str(path.relative_to(ROOT)) for path in sources()}
    assert {"rtl/accelerator.py", "gen/verilog.py", "sw/cli/app.py", "sw/runtime/simulation/engine.py"} <= files


@pytest.mark.parametrize(
    ("file", "module"),
    [
        ("rtl/lib/stream.py", "rtl.buffer.tailors"),
        ("rtl/arith/common.py", "gen.design"),
        ("rtl/pe/gustavson.py", "numpy"),
        ("rtl/buffer/tailors.py", "rtl.memory.axi4"),
        ("rtl/pe/gustavson.py", "rtl.accelerator"),
        ("gen/design.py", "rtl.types"),
        ("rtl/storage.py", "amaranth"),
        ("gen/verilog.py", "sw.policies"),
        ("sw/golden/spgemm.py", "amaranth"),
        ("sw/golden/spgemm.py", "numba"),
        ("sw/golden/spgemm.py", "sw.model.walk"),
        ("sw/formats/csr.py", "gen.verilog"),
        ("sw/policies/hyte.py", "sw.model.walk"),
        ("sw/cost/predict.py", "sw.policies.hyte"),
        ("sw/plan/plan.py", "sw.cost.predict"),
        ("sw/scheme/rules.py", "sw.plan.plan"),
        ("sw/model/machine.py", "sw.report.html"),
        ("sw/model/machine.py", "sw.runtime.result"),
        ("sw/analytic/dataflow/traffic.py", "sw.analytic.sparse.counts"),
        ("sw/analytic/sparse/step.py", "sw.analytic.hardware.energy"),
        ("sw/analytic/densities/uniform.py", "sw.analytic.problem"),
        ("sw/analytic/spec/load.py", "sw.runtime.result"),
        ("sw/sage/choice.py", "sw.runtime.result"),
        ("sw/sage/choice.py", "sw.model.machine"),
        ("sw/sage/workload.py", "numba"),
        ("sw/runtime/driver.py", "cocotb"),
        ("sw/runtime/driver.py", "gen.verilog"),
        ("sw/runtime/simulation/engine.py", "verif.runner"),
        ("sw/cli/pipeline.py", "verif.counters"),
        ("verif/benches/bench_regs.py", "rtl.regs.map"),
        ("verif/agents/axi4.py", "sw.policies.hyte"),
        ("fiberloom/api.py", "numpy"),
        ("fiberloom/api.py", "sw.cli.run"),
    ],
)
def test_forbidden_imports_are_seen(file, module):
    assert not allowed(ROOT / file, module)


def test_relative_and_late_imports_are_seen():
    text = "from ..model import walk\nfrom . import scheme\ndef late():\n    import amaranth.hdl\n"
    assert modules_of(ast.parse(text), "sw.policies") == ["sw.model", "sw.policies.scheme", "amaranth.hdl"]
    guarded = "if TYPE_CHECKING:\n    import rtl\nelse:\n    import json\n"
    assert modules_of(ast.parse(guarded), "sw") == ["json"]


def test_policies_do_not_import_each_other():
    policies = {path.stem: path for path in (ROOT / "sw" / "policies").glob("*.py")}
    shared = {"__init__", "registry"}
    assert {"uniform", "hyte", "auto", "manual", "dataflows"} <= set(policies)
    for policy in set(policies) - shared:
        others = {f"sw.policies.{other}" for other in set(policies) - {policy}}
        assert not others & set(imports_of(policies[policy])), policy


def test_command_line_starts_without_hardware_libraries():
    """Top-level imports of the commands reach neither Amaranth nor cocotb."""
    for path in (ROOT / "sw" / "cli").glob("*.py"):
        top_level = ast.Module(
            [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.Import | ast.ImportFrom)], []
        )
        heavy = [name for name in modules_of(top_level, "sw.cli") if name.split(".")[0] in ("gen", "rtl", "verif")]
        assert not heavy, path.name


def test_nothing_of_the_hardware_is_transformed_from_outside():
    """An inserted reset or enable would stop at the border of a block when it becomes an instance."""
    for path in (ROOT / "rtl").rglob("*.py"):
        text = path.read_text()
        assert "ResetInserter" not in text and "EnableInserter" not in text, path.name
