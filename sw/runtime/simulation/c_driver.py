"""Runs the C example of a generated folder against the compiled simulation: its driver as a library, its bus the simulation's."""

import ctypes
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from sw.runtime.smoke import smoke_case

from .build import ToolMissing
from .engine import bus_timing, library_of, open_simulation
from .loader import Simulation
from .sources import accelerator_sources

if TYPE_CHECKING:
    from gen.design import Design

__all__ = ["COMPILERS", "drive"]

COMPILERS = ("cc", "gcc", "clang")
STRICT = ("-std=c99", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror")
SOURCE = "sw/fiberloom_example.c"
# Cycles between two looks at STATUS.
PAUSE_CYCLES = 500

_READ = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p, ctypes.c_uint32)
_WRITE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32)
_MEMORY = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t)
_PRINT = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)
_WAIT = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Platform(ctypes.Structure):
    """``struct fiberloom_platform`` of the example."""

    _fields_ = [
        ("context", ctypes.c_void_p),
        ("read", _READ),
        ("write", _WRITE),
        ("memory", _MEMORY),
        ("wait", _WAIT),
        ("print", _PRINT),
        ("memory_base", ctypes.c_uint64),
    ]


def compiled(folder: Path, scratch: Path) -> Path:
    """The folder's driver as a library, without a warning. Raises ToolMissing, and ValueError where it does not compile."""
    compiler = next((found for name in COMPILERS if (found := shutil.which(name))), None)
    if compiler is None:
        raise ToolMissing("the C example needs a C compiler, which is missing: apt install gcc")
    library = scratch / "fiberloom_example.so"
    command = [compiler, *STRICT, "-shared", "-fPIC", "-o", str(library), str(folder / SOURCE)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", check=False)
    if done.returncode:
        raise ValueError(done.stderr.strip())
    return library


def drive(folder: Path, design: "Design") -> list[str]:
    """What the driver says: a line that begins with PASS, or with FAIL and why; complaints of the bus after it.

    Parameters
    ----------
    folder: generated for ``design``. Its driver fills memory, configures, starts, waits and compares; only the bus is ours.

    Raises ToolMissing without a C compiler, ValueError where the driver does not compile.
    """
    with tempfile.TemporaryDirectory(prefix="fiberloom-driver-") as scratch:
        driver = ctypes.CDLL(str(compiled(folder, Path(scratch))))
        image = smoke_case(design).image
        for region in image.regions.values():
            if region.data.flags.writeable:
                region.data[:] = 0
        library = library_of(design, accelerator_sources(design))
        with open_simulation(library, image, bus_timing(design)) as simulation:
            said: list[str] = []
            platform = _platform(simulation, said)
            driver.fiberloom_example.restype = ctypes.c_int
            driver.fiberloom_example(ctypes.byref(platform))
            statistics = simulation.statistics
            return said + ([] if statistics.clean else statistics.messages)


def _platform(simulation: Simulation, said: list[str]) -> _Platform:
    def memory(_: int, address: int, size: int) -> int | None:
        for region in simulation.regions:
            if region.base <= address and address + size <= region.end:
                return int(region.data.ctypes.data) + address - region.base
        return None

    return _Platform(
        None,
        _READ(lambda _, offset: simulation.read(offset)),
        _WRITE(lambda _, offset, value: simulation.write(offset, value)),
        _MEMORY(memory),
        _WAIT(lambda _: simulation.run(PAUSE_CYCLES) and None),
        _PRINT(lambda _, line: said.append(line.decode())),
        min(region.base for region in simulation.regions),
    )
