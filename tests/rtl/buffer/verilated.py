"""Run a block as compiled C++ under Python: every port of its Verilog can be read and driven by name.

Amaranth's own simulator is right for a few thousand cycles; random tests of hundreds of thousands run here. Builds are
kept in ``build/verilated``, one folder per text of the Verilog.
"""

import ctypes
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from amaranth.back import verilog
from amaranth.hdl import Value
from amaranth.lib import wiring

from gen.verilator import environment, root, verilator
from sw.runtime.simulation.build import compiler

BUILD = Path(__file__).resolve().parents[3] / "build" / "verilated"
RUNTIME = ("verilated.cpp", "verilated_threads.cpp")
HEADER = "runtime.h"
#: The compiler's level for what runs in every cycle; what runs once, at the begin, is not worth its time.
LEVELS = {"always": "-O1", "once": "-O0"}

HARNESS = """
#include "Vdut.h"
#include "verilated.h"
double sc_time_stamp() { return 0; }
extern "C" {
void *make() { auto *d = new Vdut; d->clk = 0; d->rst = 0; d->eval(); return d; }
void drop(void *h) { delete static_cast<Vdut *>(h); }
void exchange(void *h, const uint32_t *in, uint32_t *out, int ticks, int rst) {
  auto *d = static_cast<Vdut *>(h);
  d->rst = rst;
  @INPUTS@
  d->eval();
  for (int n = 0; n < ticks; n++) { d->clk = 1; d->eval(); d->clk = 0; d->eval(); }
  @OUTPUTS@
}
}
"""


def _copy(name: str, width: int, at: int, is_input: bool) -> str:
    """C++ that moves one port between the model and the word array."""
    name = name.replace("__", "___05F")  # how Verilator spells a double underscore
    words = (width + 31) // 32
    if words > 2:
        pairs = [(f"d->{name}[{n}]", at + n) for n in range(words)]
    elif words == 2 and is_input:
        return f"d->{name} = (uint64_t)in[{at + 1}] << 32 | in[{at}];"
    elif words == 2:
        return f"out[{at}] = (uint32_t)d->{name}; out[{at + 1}] = (uint32_t)((uint64_t)d->{name} >> 32);"
    else:
        pairs = [(f"d->{name}", at)]
    return " ".join(f"{port} = in[{n}];" if is_input else f"out[{n}] = {port};" for port, n in pairs)


class Verilated:
    """One instance of a compiled block. ``poke`` inputs, ``settle`` and ``peek`` outputs, ``tick`` the clock."""

    def __init__(self, component: wiring.Component) -> None:
        self._inputs: dict[str, tuple[int, int]] = {}
        self._outputs: dict[str, tuple[int, int]] = {}
        sizes = {True: 0, False: 0}
        copies: dict[bool, list[str]] = {True: [], False: []}
        for path, member, value in component.signature.flatten(component):
            name, width = "__".join(str(part) for part in path), len(Value.cast(value))
            is_input = member.flow is wiring.In
            copies[is_input].append(_copy(name, width, sizes[is_input], is_input))
            (self._inputs if is_input else self._outputs)[name] = (sizes[is_input], width)
            sizes[is_input] += (width + 31) // 32
        harness = HARNESS.replace("@INPUTS@", "\n  ".join(copies[True])).replace(
            "@OUTPUTS@", "\n  ".join(copies[False])
        )
        self._library = ctypes.CDLL(str(_compile(verilog.convert(component, name="dut", emit_src=False), harness)))
        self._library.make.restype = ctypes.c_void_p
        self._library.drop.argtypes = [ctypes.c_void_p]
        self._in = (ctypes.c_uint32 * max(sizes[True], 1))()
        self._out = (ctypes.c_uint32 * max(sizes[False], 1))()
        self._library.exchange.argtypes = [ctypes.c_void_p, type(self._in), type(self._out), ctypes.c_int, ctypes.c_int]
        self._model = self._library.make()
        self.cycles = 0
        self.reset()

    def reset(self, cycles: int = 2) -> None:
        self._library.exchange(self._model, self._in, self._out, cycles, 1)
        self.settle()

    def poke(self, name: str, value: int) -> None:
        at, width = self._inputs[name]
        value &= (1 << width) - 1
        for n in range((width + 31) // 32):
            self._in[at + n] = value >> 32 * n & 0xFFFFFFFF

    def peek(self, name: str) -> int:
        at, width = self._outputs[name]
        if width <= 32:
            return self._out[at]
        return sum(self._out[at + n] << 32 * n for n in range((width + 31) // 32))

    def settle(self) -> None:
        """Let the outputs follow the inputs, without a clock edge."""
        self._library.exchange(self._model, self._in, self._out, 0, 0)

    def tick(self, cycles: int = 1) -> None:
        self._library.exchange(self._model, self._in, self._out, cycles, 0)
        self.cycles += cycles

    def close(self) -> None:
        if self._model is not None:
            self._library.drop(self._model)
            self._model = None


def _run(folder: Path, *command: str) -> str:
    variables = environment(verilator())
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=variables)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def _runtime(cxx: str, flags: list[str], include: Path) -> Path:
    """Folder with Verilator's own run-time library and its header, both slow to compile and the same for every block.

    Its text decides which: another Verilator may come to lie in the same folder.
    """
    texts = [(include / name).read_text() for name in (*RUNTIME, "verilated.h")]
    key = hashlib.sha256("\0".join([cxx, *flags, *LEVELS.values(), *texts]).encode()).hexdigest()[:8]
    folder = BUILD / f"runtime-{key}"
    if not folder.exists():
        scratch = folder.with_name(f"{folder.name}.{os.getpid()}")
        (scratch / f"{HEADER}.gch").mkdir(parents=True)
        (scratch / HEADER).write_text('#include "verilated.h"\n')
        sources = [str(include / name) for name in RUNTIME]
        _run(scratch, cxx, "-shared", "-O1", *flags, *sources, "-pthread", "-o", "runtime.so")
        # clang++ looks for no such thing, and reads the header.
        for level in () if Path(cxx).name.startswith("clang") else LEVELS.values():
            _run(scratch, cxx, *flags, level, "-x", "c++-header", HEADER, "-o", f"{HEADER}.gch/{level}")
        _move(scratch, folder)
    return folder


def _move(scratch: Path, folder: Path) -> None:
    try:
        scratch.rename(folder)
    except OSError:
        # Another process was faster with the same.
        shutil.rmtree(scratch)


def _compile(text: str, harness: str) -> Path:
    folder = BUILD / hashlib.sha256((text + harness).encode()).hexdigest()[:16]
    library = folder / "dut.so"
    if library.exists():
        return library
    scratch = folder.with_name(f"{folder.name}.{os.getpid()}")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    (scratch / "dut.v").write_text(text)
    tool, cxx = verilator(), compiler()
    include = root(tool) / "include"
    flags = ["-fPIC", "-std=gnu++17", "-DVERILATOR=1", "-DVM_SC=0", "-DVM_TRACE=0", "-DVM_COVERAGE=0"]
    flags += [f"-I{include}", f"-I{include}/vltstd"]
    runtime = _runtime(cxx, flags, include)
    options = ["-Wno-fatal", "-Wno-lint", "--top-module", "dut", "--prefix", "Vdut", "--output-split", "0"]
    _run(scratch, tool, "--cc", *options, "--Mdir", "obj", "dut.v")
    # Two texts instead of one a file: Verilator's headers take longer to read than most blocks.
    for name, level in LEVELS.items():
        parts = [
            path for path in sorted((scratch / "obj").glob("*.cpp")) if ("__Slow" in path.name) is (name == "once")
        ]
        text = "".join(f'#include "{path.name}"\n' for path in parts) + (harness if name == "always" else "")
        (scratch / "obj" / f"{name}.cpp").write_text(text)
        begin = ["-include", str(runtime / HEADER)]
        _run(scratch, cxx, *flags, level, *begin, "-Iobj", "-c", f"obj/{name}.cpp", "-o", f"obj/{name}.o")
    _run(scratch, cxx, "-shared", "obj/always.o", "obj/once.o", str(runtime / "runtime.so"), "-o", "dut.so")
    shutil.rmtree(scratch / "obj")
    _move(scratch, folder)
    return library
