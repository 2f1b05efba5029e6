"""Several operators side by side, compiled, fed with the same long list of operands.

The general harness of the tests exchanges ports with Python every cycle; millions of operand pairs need the loop over
cycles in C++, which is what this file adds.
"""

import ctypes
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
from amaranth.back import verilog
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from gen.verilator import environment, root, verilator
from rtl.arith import Operator

BUILD = Path(__file__).resolve().parents[3] / "build" / "racks"

HARNESS = """
#include "Vrack.h"
#include "verilated.h"
double sc_time_stamp() { return 0; }
static uint32_t draw(uint32_t &s) { s ^= s << 13; s ^= s >> 17; s ^= s << 5; return s; }

// Presents pair after pair; in a cycle without advance the operands are noise. Each operator's n results are taken
// `latency` advancing cycles after their operands. Returns how often a result moved in a cycle without advance.
extern "C" uint64_t run(const uint32_t *a, const uint32_t *b, uint64_t n, const uint32_t *latency, uint32_t stalls_in_256,
                        uint32_t seed, uint32_t *out) {
  auto *d = new Vrack;
  uint64_t moved = 0, advances = 0;
  uint32_t before[COUNT], now[COUNT], longest = 0;
  for (int k = 0; k < COUNT; k++) if (latency[k] > longest) longest = latency[k];
  d->clk = 0; d->rst = 0; d->eval();
  while (advances < n + longest) {
    bool advance = (draw(seed) & 255) >= stalls_in_256;
    d->advance = advance;
    bool real = advance && advances < n;
    d->a = real ? a[advances] : draw(seed);
    d->b = real ? b[advances] : draw(seed);
    d->clk = 1; d->eval(); d->clk = 0; d->eval();
    @RESULTS@
    advances += advance;
    for (int k = 0; k < COUNT; k++) {
      if (!advance) moved += advances >= latency[k] && now[k] != before[k];
      else if (advances >= latency[k] && advances - latency[k] < n) out[n * k + advances - latency[k]] = now[k];
      before[k] = now[k];
    }
  }
  delete d;
  return moved;
}
"""


class _Rack(wiring.Component):
    def __init__(self, operators: dict[str, Operator]) -> None:
        self.operators = operators
        results = {f"result{n}": Out(32) for n in range(len(operators))}
        super().__init__({"a": In(32), "b": In(32), "advance": In(1), **results})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for n, (name, operator) in enumerate(self.operators.items()):
            m.submodules[name] = operator
            m.d.comb += [operator.a.eq(self.a), operator.b.eq(self.b), operator.advance.eq(self.advance)]
            m.d.comb += getattr(self, f"result{n}").eq(operator.result)
        return m


def compile_rack(operators: dict[str, Operator]) -> Callable[..., dict[str, np.ndarray]]:
    """Build the operators, or take an earlier build of the same Verilog; returns ``run(a, b, stalls_in_256=0, seed=1)``.

    ``run`` gives the results by name, in the order of the operands: entry n of each belongs to pair n, provided the
    stated latencies are right. It raises AssertionError if a result moved without ``advance``.
    """
    latency = np.array([operator.latency for operator in operators.values()], dtype=np.uint32)
    names = list(operators)
    taken = " ".join(f"now[{n}] = d->result{n};" for n in range(len(names)))
    harness = f"#define COUNT {len(names)}\n" + HARNESS.replace("@RESULTS@", taken)
    rack = _build(verilog.convert(_Rack(operators), name="rack", emit_src=False), harness)
    words = np.ctypeslib.ndpointer(np.uint32, flags="C_CONTIGUOUS")
    library = ctypes.CDLL(str(rack))
    library.run.argtypes = [words, words, ctypes.c_uint64, words, ctypes.c_uint32, ctypes.c_uint32, words]
    library.run.restype = ctypes.c_uint64

    def run(a: np.ndarray, b: np.ndarray, *, stalls_in_256: int = 0, seed: int = 1) -> dict[str, np.ndarray]:
        out = np.zeros((len(names), len(a)), dtype=np.uint32)
        a, b = (np.ascontiguousarray(a, dtype=np.uint32), np.ascontiguousarray(b, dtype=np.uint32))
        moved = library.run(a, b, len(a), latency, stalls_in_256, seed, out)
        assert moved == 0, f"results moved {moved} times without advance"
        return dict(zip(names, out, strict=True))

    return run


def _build(text: str, harness: str) -> Path:
    """Compile into a folder of its own, then move it into place, so that tests running in parallel cannot collide."""
    folder = BUILD / hashlib.sha256((text + harness).encode()).hexdigest()[:16]
    if (folder / "rack.so").exists():
        return folder / "rack.so"
    scratch = folder.with_name(f"{folder.name}.{os.getpid()}")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    (scratch / "rack.v").write_text(text)
    (scratch / "harness.cpp").write_text(harness)
    tool = verilator()
    include = f"{root(tool)}/include"
    options = ["-Wno-fatal", "-Wno-lint", "--top-module", "rack", "--prefix", "Vrack", "--output-split", "0"]
    _call(scratch, tool, "--cc", *options, "--Mdir", "obj", "rack.v")
    flags = ["-fPIC", "-O1", "-std=gnu++17", "-DVERILATOR=1", "-DVM_SC=0", "-DVM_TRACE=0", "-DVM_COVERAGE=0"]
    flags += [f"-I{include}", f"-I{include}/vltstd", "-Iobj", "-pthread"]
    sources = [f"{include}/verilated.cpp", f"{include}/verilated_threads.cpp", "harness.cpp"]
    sources += [str(path.relative_to(scratch)) for path in sorted((scratch / "obj").glob("*.cpp"))]
    _call(scratch, "g++", "-shared", *flags, *sources, "-o", "rack.so")
    shutil.rmtree(scratch / "obj")
    try:
        scratch.rename(folder)
    except OSError:
        # Another process was faster with the same rack.
        shutil.rmtree(scratch)
    return folder / "rack.so"


def _call(folder: Path, *command: str) -> str:
    variables = environment(verilator())
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=variables)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout
