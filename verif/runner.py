"""Builds and runs the bench of a block under Verilator or Icarus, and says what came of each test.

Builds are kept beside those of the compiled simulation, one for each text of the Verilog, so that a bench whose block has
not changed starts at once. Entries appear by renaming: runs side by side do not disturb each other.
"""

import contextlib
import hashlib
import json
import os
import secrets
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.etree import ElementTree

from gen.packages import versions_of
from gen.verilator import MAKE_VARIABLES, root
from sw.runtime.simulation.build import BuildError, ToolMissing, cache_folder, verilator

from .agents.layouts import BLOCK_FILE, describe
from .coverage import COVERAGE_FILE, plan
from .packed import packed

__all__ = ["SIMULATORS", "BenchResult", "icarus", "libpython", "run_bench", "verilog_of"]

SIMULATORS = ("verilator", "icarus")
ROOT = Path(__file__).resolve().parent.parent
TIMESCALE = ("1ns", "1ps")
# Whose version decides what a build is.
BUILDERS = ("cocotb", "verilator")
# Block benches need no fast code.
MAKEFLAGS = " ".join(MAKE_VARIABLES) + " OPT_FAST=-O1 OPT_SLOW=-O0 OPT_GLOBAL=-O1"
VERILATOR_ARGUMENTS = ("-Wno-fatal", "-Wno-lint", "-Wno-style", "--no-timing", "--output-split", "60000")
# cocotb makes every signal visible, which keeps Verilator from simplifying anything. Benches touch ports only.
EXPOSE = '`verilator_config\npublic_flat_rw -module "{top}" -var "*"\n'
# What Icarus gets: see _for_icarus.
ICARUS_FORM = ("proc", "opt_clean", "write_verilog -noattr")
LOG_LINES = 40


@dataclass(frozen=True)
class BenchResult:
    """What came of one run of a bench.

    Parameters
    ----------
    passed: names of the tests that passed.
    failed: name and message of those that did not.
    coverage: what is wrong with the bins of the testplan, a line each.
    plan, hits: the testplan, and how often each of its bins was hit; empty for a bench without bins.
    log: the simulator's output.
    """

    passed: list[str]
    failed: dict[str, str]
    coverage: list[str] = field(default_factory=list)
    plan: str = ""
    hits: dict[str, int] = field(default_factory=dict)
    log: str = ""

    @property
    def problems(self) -> list[str]:
        """Everything that is wrong, a line each."""
        found = [f"{name}: {message}" for name, message in self.failed.items()]
        found += self.coverage
        return found if self.passed or self.failed else [*found, "no test ran"]


def icarus() -> str:
    """Path of Icarus Verilog."""
    found = shutil.which("iverilog")
    if found is None or shutil.which("vvp") is None:
        raise ToolMissing("Icarus Verilog is not there: apt install iverilog")
    return found


def libpython() -> str:
    """Path of Python as a shared library: a simulator cannot load the interpreter otherwise."""
    import find_libpython

    found: str | None = find_libpython.find_libpython()
    if found is None:
        name = f"libpython3.{sys.version_info.minor}"
        raise ToolMissing(f"cocotb needs {name}.so, which is not there: apt install {name}")
    return found


def run_bench(
    block: Any,
    bench: str,
    *,
    simulator: str = "verilator",
    only: str | None = None,
    environment: Mapping[str, str] | None = None,
    seed: int = 1,
    waves: Path | None = None,
    like: Any = None,
    build: str = "",
) -> BenchResult:
    """Run ``verif.benches.{bench}`` on a block.

    Parameters
    ----------
    block: instance of ``rtl.lib.block.Block``, or Verilog text by file name with the top module's name under ``"top"``.
    like: with Verilog text: the block whose parameters and payload layouts the bench reads (see ``verif.agents.layouts``).
    bench: module name in ``verif.benches``.
    simulator: one of ``SIMULATORS``.
    only: run only the tests whose name (``bench.test/parameters``) this regular expression finds; bins are not asked for then.
    build: name of this build in the testplan's excuses.
    environment: further variables for the bench.
    seed: of cocotb's random numbers.
    waves: folder for a waveform, ``{top}.fst`` of Icarus or ``dump.vcd`` of Verilator (a build of its own).

    Raises ToolMissing or BuildError; failing tests are in the result.
    """
    if simulator not in SIMULATORS:
        raise ValueError(f"Simulator must be one of {', '.join(SIMULATORS)}, not {simulator!r}")
    libpython()
    sources, top = verilog_of(block)
    known = like if like is not None else block
    description = None
    if not isinstance(known, Mapping):
        sources, top = packed(known, sources, top)
        description = json.dumps(describe(known))
    folder = _build(sources, top, simulator, waves is not None)
    with TemporaryDirectory(prefix="fiberloom-bench-") as scratch:
        run_folder = waves.resolve() if waves is not None else Path(scratch)
        run_folder.mkdir(parents=True, exist_ok=True)
        variables = dict(environment or {})
        if description is not None:
            (run_folder / "block.json").write_text(description)
            variables[BLOCK_FILE] = str(run_folder / "block.json")
        return _test(folder, run_folder, top, simulator, bench, only, variables, seed, waves is not None, build)


def verilog_of(block: Any) -> tuple[dict[str, str], str]:
    """Verilog by file name, and the name of the top module."""
    if isinstance(block, Mapping):
        return {name: text for name, text in block.items() if name != "top"}, block["top"]
    from gen.verilog import emit
    from sw.runtime.simulation.sources import without_head

    emitted = emit(block, origin="a bench")
    return {name: without_head(emitted.files[name]) for name in emitted.sources}, emitted.top


def _build(sources: dict[str, str], top: str, simulator: str, waves: bool) -> Path:
    """Folder with the compiled simulation."""
    from cocotb_tools.runner import VerilatorControlFile

    tool = icarus() if simulator == "icarus" else verilator()
    parts = [
        simulator,
        tool,
        top,
        str(waves),
        *VERILATOR_ARGUMENTS,
        MAKEFLAGS,
        EXPOSE,
        *ICARUS_FORM,
        *versions_of(BUILDERS),
    ]
    parts += [part for item in sorted(sources.items()) for part in item]
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]
    folder = cache_folder().with_name("benches") / key
    if folder.exists():
        return folder
    scratch = folder.with_name(f"{key}.{os.getpid()}.{secrets.token_hex(3)}")
    scratch.mkdir(parents=True)
    files: list[Any] = []
    for name, text in sources.items():
        (scratch / name).write_text(text)
        files.append(scratch / name)
    arguments: tuple[str, ...] = ("-g2012",)
    if simulator == "icarus":
        files = [_for_icarus(files, top, scratch / "icarus.v")]
    else:
        arguments = VERILATOR_ARGUMENTS
        (scratch / "expose.vlt").write_text(EXPOSE.format(top=top))
        files.append(VerilatorControlFile(scratch / "expose.vlt"))
    log = scratch / "build.log"
    common = [simulator, tool, str(waves), *VERILATOR_ARGUMENTS, MAKEFLAGS, *versions_of(BUILDERS)]
    runtime = cache_folder().with_name("bench-runtime") / hashlib.sha256("\0".join(common).encode()).hexdigest()[:24]
    try:
        with _environment(tool) as links:
            _runner(simulator, runtime, links).build(
                sources=files,
                hdl_toplevel=top,
                build_args=arguments,
                build_dir=scratch,
                timescale=TIMESCALE,
                waves=waves,
                log_file=log,
                always=True,
            )
    except (SystemExit, RuntimeError, OSError) as problem:
        said = log.read_text(errors="replace").splitlines() if log.exists() else [str(problem)]
        raise BuildError(f"{simulator} refused {top}:\n" + "\n".join(said[-LOG_LINES:])) from None
    else:
        if simulator == "verilator":
            _keep_runtime(runtime, scratch)
        for pattern in ("*.cpp", "*.o", "*.d", "*.gch", "*.a", "*.h", "*.dat"):
            for path in scratch.glob(pattern):
                path.unlink()
        try:
            scratch.rename(folder)
        except OSError:
            if not folder.exists():
                raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return folder


def _for_icarus(files: list[Path], top: str, target: Path) -> Path:
    """The same netlist without processes for combinational logic.

    Icarus 11 takes a part of a vector in ``always_comb`` for the whole vector, and so finds loops where there are none: some
    blocks then never come to rest within a time step.
    """
    from gen.yosys import quoted, run_jobs

    reads = [f"read_verilog -sv {quoted(path)}" for path in files]
    *passes, write = ICARUS_FORM
    run_jobs([[*reads, f"hierarchy -top {top}", *passes, f"{write} {quoted(target)}"]])
    return target


# Verilator's own C++ takes longer to compile than most blocks, and is the same for all of them.
RUNTIME_OBJECTS = "verilated*.o"  # not cocotb's main program: it knows the size of the model


def _keep_runtime(runtime: Path, scratch: Path) -> None:
    if runtime.exists():
        return
    own = runtime.with_name(f"{runtime.name}.{os.getpid()}.{secrets.token_hex(3)}")
    own.mkdir(parents=True)
    for path in scratch.glob(RUNTIME_OBJECTS):
        shutil.copyfile(path, own / path.name)
    try:
        own.rename(runtime)
    except OSError:
        shutil.rmtree(own, ignore_errors=True)


def _test(
    folder: Path,
    run_folder: Path,
    top: str,
    simulator: str,
    bench: str,
    only: str | None,
    environment: Mapping[str, str],
    seed: int,
    waves: bool,
    build: str,
) -> BenchResult:
    results, log, coverage = run_folder / "results.xml", run_folder / "run.log", run_folder / "coverage.json"
    variables = {**environment, COVERAGE_FILE: str(coverage), "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    # Elsewhere pytest's assertions would get into code that Numba compiles, and that it then refuses.
    variables["COCOTB_REWRITE_ASSERTION_FILES"] = "*bench*.py"
    variables["LD_LIBRARY_PATH"] = os.pathsep.join(
        part for part in (_cocotb("libs_dir"), os.environ.get("LD_LIBRARY_PATH")) if part
    )
    # What went wrong is in the results, or there are none.
    with contextlib.suppress(SystemExit, RuntimeError):
        _runner(simulator).test(
            test_module=f"verif.benches.{bench}",
            hdl_toplevel=top,
            hdl_toplevel_lang="verilog",
            build_dir=folder,
            test_dir=run_folder,
            test_filter=only,
            seed=seed,
            results_xml=str(results),
            extra_env=variables,
            waves=waves,
            # The build's folder has another name by now than the one that the runner has put into the dump module.
            plusargs=[f"+dumpfile_path={run_folder / top}.fst"] if waves and simulator == "icarus" else [],
            log_file=log,
        )
    text = log.read_text(errors="replace") if log.exists() else ""
    if not results.exists():
        end = "\n".join(text.splitlines()[-LOG_LINES:])
        return BenchResult([], {bench: f"the simulation ended without results:\n{end}"}, log=text)
    passed, failed = _results(results)
    if not coverage.exists():
        return BenchResult(passed, failed, log=text)
    record = json.loads(coverage.read_text())
    wrong = plan(record["plan"]).problems(build, record["hits"]) if only is None else []
    return BenchResult(passed, failed, wrong, record["plan"], record["hits"], text)


def _results(path: Path) -> tuple[list[str], dict[str, str]]:
    """Tests that passed, and those that did not with their message."""
    passed, failed = [], {}
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name = case.get("name", "?")
        problem = next((item for kind in ("failure", "error") for item in case.iter(kind)), None)
        if problem is not None:
            said = problem.get("error_msg") or problem.get("message") or problem.text or "failed"
            failed[name] = said.strip()
        elif next(case.iter("skipped"), None) is None:
            passed.append(name)
    return passed, failed


def _cocotb(folder: str) -> str:
    from cocotb_tools import config

    return str(getattr(config, folder))


def _runner(simulator: str, runtime: Path | None = None, links: Path | None = None) -> Any:
    from cocotb_tools import runner

    if simulator == "icarus":
        return runner.get_runner("icarus")

    class PortsOnly(runner.Verilator):
        """cocotb's runner without making every signal of the design public, and with a compiled runtime."""

        def _build_command(self) -> list[list[str]]:
            commands: list[list[str]] = super()._build_command()
            commands = [[self._plain(word) for word in command if word != "--public-flat-rw"] for command in commands]
            if runtime is not None and runtime.exists():
                # After the makefile was written: objects older than it would be made again.
                commands.insert(1, ["cp", *map(str, sorted(runtime.iterdir())), str(self.build_dir)])
            return commands

        @staticmethod
        def _plain(word: str) -> str:
            """Makefiles and linker flags survive no spaces in names: cocotb's folders by the links made for them."""
            if links is None:
                return word
            libs = _cocotb("libs_dir")
            word = word.replace(f"-Wl,-rpath,{libs} ", "")
            return word.replace(libs, str(links / "libs")).replace(_cocotb("share_dir"), str(links / "share"))

    return PortsOnly()


class _environment:
    """While a build runs: a command called ``verilator`` on the path, what its makefile needs, a folder of links."""

    def __init__(self, tool: str) -> None:
        self.tool = tool
        self.before: dict[str, str | None] = {}

    def __enter__(self) -> Path:
        self.folder = TemporaryDirectory(prefix="fiberloom-tools-")
        for name in ("libs", "share"):
            (Path(self.folder.name) / name).symlink_to(_cocotb(f"{name}_dir"))
        changes = {"MAKEFLAGS": MAKEFLAGS}
        if Path(self.tool).name == "verilator":
            (Path(self.folder.name) / "verilator").symlink_to(self.tool)
            changes["PATH"] = os.pathsep.join([self.folder.name, os.environ.get("PATH", "")])
            changes["VERILATOR_ROOT"] = str(root(self.tool))
        self.before = {name: os.environ.get(name) for name in changes}
        os.environ.update(changes)
        return Path(self.folder.name)

    def __exit__(self, *details: object) -> None:
        for name, value in self.before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        self.folder.cleanup()
