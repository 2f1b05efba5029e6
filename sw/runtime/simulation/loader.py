"""The compiled simulation under Python: memory as NumPy arrays, register accesses, runs of millions of cycles."""

import ctypes
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from .probes import NAMES, SAMPLES_BASE

__all__ = ["CHANNELS", "Activity", "BusTiming", "Finding", "Region", "Simulation", "SimulationError", "Statistics"]

OKAY = 0
# A chunk lasts about this long, so that progress moves and an interrupt from the keyboard is obeyed.
CHUNK_SECONDS = 0.25
FIRST_CHUNK = 20_000
LARGEST_CHUNK = 5_000_000
RESET_CYCLES = 8
CHANNELS = ("AR", "AW", "W", "R", "B")
KINDS = ("read outside", "write outside", "write to read-only")


class SimulationError(RuntimeError):
    """The simulated hardware did not do what its ports promise; the text says what was seen."""


@dataclass(frozen=True, kw_only=True)
class BusTiming:
    """How the memory behind the bus behaves.

    Parameters
    ----------
    read_latency: cycles from the acceptance of a read burst to its first beat.
    write_latency: cycles from the last beat of a write burst to its acknowledgement.
    jitter: added to both at random, from 0 to this many cycles.
    write_jitter: added to the acknowledgement at random besides.
    outstanding: bursts that the memory holds in each direction.
    beats_per_cycle: R and W beats together, on average; 1 is a bus whose memory moves one line a cycle.
    stall: chance from 0 to 1 that a channel pauses in a cycle.
    reorder: different identifiers are answered out of order, beats of their reads interleaved.
    seed: of jitter, stalls and reordering.
    """

    read_latency: int = 40
    write_latency: int = 20
    jitter: int = 0
    write_jitter: int = 0
    outstanding: int = 64
    beats_per_cycle: float = 1.0
    stall: float = 0.0
    reorder: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("read_latency", "write_latency", "outstanding"):
            if getattr(self, name) < 1:
                raise ValueError(f"Bus timing {name} must be at least 1, not {getattr(self, name)!r}")
        for name in ("jitter", "write_jitter", "seed"):
            if getattr(self, name) < 0:
                raise ValueError(f"Bus timing {name} must be at least 0, not {getattr(self, name)!r}")
        if not 0 < self.beats_per_cycle <= 2:
            raise ValueError(f"Bus timing beats_per_cycle must be above 0 and at most 2, not {self.beats_per_cycle!r}")
        if not 0 <= self.stall < 1:
            raise ValueError(f"Bus timing stall must be from 0 to below 1, not {self.stall!r}")


@dataclass(frozen=True, kw_only=True)
class Region:
    """``data`` (any contiguous array) at byte address ``base``; writes are refused unless ``writable``."""

    name: str
    base: int
    data: NDArray[np.generic]
    writable: bool = False

    @property
    def end(self) -> int:
        return self.base + self.data.nbytes


@dataclass(frozen=True)
class Finding:
    """A beat that went where it may not go: ``kind`` is one of ``KINDS``, ``size`` in bytes."""

    kind: str
    cycle: int
    address: int
    size: int

    @property
    def write(self) -> bool:
        return self.kind != KINDS[0]


@dataclass(frozen=True, kw_only=True)
class Statistics:
    """What happened on the bus since the simulation began.

    Parameters
    ----------
    cycles: clock cycles, register accesses included.
    read_bursts, write_bursts, read_beats, write_beats: by handshake.
    busy_cycles: cycles with a beat.
    outside: accesses outside every region; guard: writes to read-only regions; injected: answers with a fault.
    protocol: violations of AXI rules by the design.
    early_reads: read bursts that touch lines of a write that is not acknowledged yet.
    messages: the first of these events, with cycle and address.
    """

    cycles: int
    read_bursts: int
    write_bursts: int
    read_beats: int
    write_beats: int
    busy_cycles: int
    outside: int
    guard: int
    protocol: int
    injected: int
    early_reads: int
    messages: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        """No access went where it may not go, and no AXI rule was broken."""
        return not (self.outside or self.guard or self.protocol)


class _Timing(ctypes.Structure):
    _fields_ = [
        ("read_latency", ctypes.c_uint32),
        ("write_latency", ctypes.c_uint32),
        ("jitter", ctypes.c_uint32),
        ("write_jitter", ctypes.c_uint32),
        ("outstanding", ctypes.c_uint32),
        ("stall", ctypes.c_uint32),
        ("reorder", ctypes.c_uint32),
        ("beats_per_cycle", ctypes.c_double),
        ("seed", ctypes.c_uint64),
    ]


_COUNTS = (
    "cycles",
    "read_bursts",
    "write_bursts",
    "read_beats",
    "write_beats",
    "busy_cycles",
    "outside",
    "guard",
    "protocol",
    "injected",
    "early_reads",
    "messages",
)


class _Statistics(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in _COUNTS]


class _Finding(ctypes.Structure):
    _fields_ = [
        ("cycle", ctypes.c_uint64),
        ("address", ctypes.c_uint64),
        ("size", ctypes.c_uint32),
        ("kind", ctypes.c_uint32),
    ]


def _load(library: Path) -> ctypes.CDLL:
    handle = ctypes.CDLL(str(library))
    pointer, u32, u64, integer = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int
    signatures = {
        "fl_open": (pointer, [ctypes.POINTER(_Timing), integer]),
        "fl_close": (None, [pointer]),
        "fl_region": (None, [pointer, u64, pointer, u64, integer]),
        "fl_inject": (None, [pointer, u64, integer, integer]),
        "fl_inject_beat": (None, [pointer, u64, integer, integer]),
        "fl_struck": (integer, [pointer, integer, ctypes.POINTER(u64)]),
        "fl_freeze": (None, [pointer, u32, u64, u64]),
        "fl_pardon": (None, [pointer]),
        "fl_finding": (integer, [pointer, integer, ctypes.POINTER(_Finding)]),
        "fl_reset": (None, [pointer, integer]),
        "fl_write": (integer, [pointer, u32, u32]),
        "fl_read": (integer, [pointer, u32, ctypes.POINTER(u32)]),
        "fl_write_many": (integer, [pointer, integer, pointer, pointer]),
        "fl_run": (integer, [pointer, u64]),
        "fl_account": (None, [pointer, u64, u64]),
        "fl_accounted": (None, [pointer, integer, ctypes.POINTER(u64), ctypes.POINTER(u64)]),
        "fl_elapsed": (u64, [pointer]),
        "fl_probe": (u64, [pointer, integer]),
        "fl_statistics": (None, [pointer, ctypes.POINTER(_Statistics)]),
        "fl_message": (ctypes.c_char_p, [pointer, integer]),
        "fl_quiet": (integer, [pointer]),
        "fl_trace": (integer, [pointer, ctypes.c_char_p, u64, u64]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(handle, name)
        function.restype, function.argtypes = result, arguments
    return handle


@dataclass(frozen=True, kw_only=True)
class Activity:
    """What monitors had counted every ``interval`` cycles of a run, and at its end, by name."""

    interval: int
    counts: dict[str, list[int]]


class Simulation:
    """One instance of a compiled design, reset and ready. A context manager; memory is released at its end.

    ``threads`` share the evaluation of a module that was compiled once; they change nothing but the time.
    Misuse raises ValueError; an answer other than OKAY to a register access raises SimulationError.
    """

    def __init__(
        self, library: Path, regions: Iterable[Region] = (), timing: BusTiming | None = None, threads: int = 1
    ) -> None:
        timing = timing or BusTiming()
        self._library = _load(library)
        settings = _Timing(
            timing.read_latency,
            timing.write_latency,
            timing.jitter,
            timing.write_jitter,
            timing.outstanding,
            round(timing.stall * 65536),
            timing.reorder,
            timing.beats_per_cycle,
            timing.seed,
        )
        self._accounts: list[str] = []
        self.regions = sorted(regions, key=lambda region: region.base)
        for region, after in zip(self.regions, self.regions[1:], strict=False):
            if region.end > after.base:
                raise ValueError(f"Memory regions {region.name} and {after.name} overlap")
        for region in self.regions:
            if not region.data.flags.c_contiguous or (region.writable and not region.data.flags.writeable):
                raise ValueError(f"Memory region {region.name} must be contiguous, and writeable if it is writable")
        self._handle: int | None = self._library.fl_open(ctypes.byref(settings), threads)
        for region in self.regions:
            self._library.fl_region(
                self._handle, region.base, region.data.ctypes.data, region.data.nbytes, region.writable
            )
        self.reset()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()

    def close(self) -> None:
        if self._handle is not None:
            self._library.fl_close(self._handle)
            self._handle = None

    def inject(self, address: int, *, write: bool, response: int = 2) -> None:
        """Answer accesses of the line that holds ``address`` with ``response`` (2 SLVERR, 3 DECERR)."""
        self._library.fl_inject(self._handle, address, write, response)

    def inject_beat(self, beat: int, *, write: bool, response: int = 2) -> None:
        """Answer one beat, the ``beat``-th of its direction from now on (0 is the next), with ``response``.

        A write burst is answered as a whole: with the response of its worst beat.
        """
        counts = self._counts()
        done = counts.write_beats if write else counts.read_beats
        self._library.fl_inject_beat(self._handle, done + beat, write, response)

    def struck(self, index: int = 0) -> int | None:
        """Address of the burst that the ``index``-th injected beat belonged to; None while that beat has not come."""
        address = ctypes.c_uint64()
        hit = self._library.fl_struck(self._handle, index, ctypes.byref(address))
        return address.value if hit else None

    def freeze(self, begin: int, cycles: int, channels: Iterable[str] = CHANNELS) -> None:
        """Let the memory do nothing on these channels for ``cycles`` cycles, ``begin`` cycles from now.

        What is offered already (RVALID, BVALID) stays offered.
        """
        mask = sum(1 << CHANNELS.index(channel) for channel in set(channels))
        at = self.cycles + begin
        self._library.fl_freeze(self._handle, mask, at, at + cycles)

    def account(self, name: str, base: int, size: int) -> None:
        """Count, in each run, the beats of the bursts that begin among these addresses."""
        self._library.fl_account(self._handle, base, size)
        self._accounts.append(name)

    @property
    def observed(self) -> dict[str, int]:
        """What the simulation itself has counted of the present run, or of the last one.

        Each monitor of :mod:`.probes`; ``elapsed``, the cycles from the start to the interrupt; of each account NAME the
        beats ``read NAME`` and ``write NAME``.
        """
        found = {name: self._library.fl_probe(self._handle, n) for n, name in enumerate(NAMES)}
        found["elapsed"] = self._library.fl_elapsed(self._handle)
        read, written = ctypes.c_uint64(), ctypes.c_uint64()
        for n, name in enumerate(self._accounts):
            self._library.fl_accounted(self._handle, n, ctypes.byref(read), ctypes.byref(written))
            found[f"read {name}"], found[f"write {name}"] = read.value, written.value
        return found

    def activity(self, pes: int) -> Activity:
        """How the monitors went on in the present run, or the last one; ``pes``: of the design."""
        names = [*NAMES, *(f"pe{n}" for n in range(pes))]
        noted, interval = (self._library.fl_probe(self._handle, SAMPLES_BASE + n) for n in range(2))
        notes = np.array(
            [self._library.fl_probe(self._handle, SAMPLES_BASE + 2 + n) for n in range(noted * len(names))], np.int64
        ).reshape(noted, len(names))
        end = [self._library.fl_probe(self._handle, n) for n in range(len(names))]
        return Activity(
            interval=interval, counts={name: [*notes[:, n].tolist(), end[n]] for n, name in enumerate(names)}
        )

    def pardon(self) -> None:
        """Nothing is injected or frozen any more, and what was found so far is forgotten."""
        self._library.fl_pardon(self._handle)

    @property
    def findings(self) -> list[Finding]:
        """The first beats outside the regions, and writes to read-only ones, in order."""
        found: list[Finding] = []
        raw = _Finding()
        while self._library.fl_finding(self._handle, len(found), ctypes.byref(raw)):
            found.append(Finding(KINDS[raw.kind], raw.cycle, raw.address, raw.size))
        return found

    def reset(self, cycles: int = RESET_CYCLES) -> None:
        """Reset by the pin, in the middle of whatever is going on; memory keeps its contents."""
        self._library.fl_reset(self._handle, cycles)

    def write(self, offset: int, value: int) -> None:
        """Write one 32-bit register."""
        self._check(self._library.fl_write(self._handle, offset, value & 0xFFFFFFFF), "write", offset)

    def write_many(self, writes: list[tuple[int, int]]) -> None:
        """Write 32-bit registers in order, in one call."""
        offsets = np.array([offset for offset, _ in writes], np.uint32)
        values = np.array([value & 0xFFFFFFFF for _, value in writes], np.uint32)
        done = self._library.fl_write_many(self._handle, len(writes), offsets.ctypes.data, values.ctypes.data)
        if done != len(writes):
            raise SimulationError(f"register write at 0x{offsets[done]:03x} was refused or not answered")

    def read(self, offset: int) -> int:
        """Read one 32-bit register."""
        value = ctypes.c_uint32()
        self._check(self._library.fl_read(self._handle, offset, ctypes.byref(value)), "read", offset)
        return value.value

    def run(self, budget: int, progress: Callable[[int, float], None] | None = None) -> bool:
        """Run until the interrupt is up (True) or ``budget`` cycles have passed (False).

        ``progress`` is called about four times a second with the cycles run so far and cycles a second.
        """
        spent, chunk, began = 0, FIRST_CHUNK, time.perf_counter()
        while spent < budget:
            size = min(chunk, budget - spent)
            at = time.perf_counter()
            before = self.cycles
            if self._library.fl_run(self._handle, size):
                return True
            now = time.perf_counter()
            spent += self.cycles - before
            chunk = int(min(LARGEST_CHUNK, max(FIRST_CHUNK / 20, size * CHUNK_SECONDS / max(now - at, 1e-6))))
            if progress is not None:
                progress(spent, spent / max(now - began, 1e-6))
        return bool(self._library.fl_run(self._handle, 0))

    def trace(self, path: Path, begin: int = 0, end: int = 1 << 62) -> None:
        """Write a waveform (VCD) of the cycles ``begin`` to ``end`` - 1; needs a library built with ``trace``."""
        if not self._library.fl_trace(self._handle, str(path).encode(), begin, end):
            raise ValueError("Waveforms need a library that was built with trace=True")

    @property
    def quiet(self) -> bool:
        """No burst is in flight."""
        return bool(self._library.fl_quiet(self._handle))

    @property
    def cycles(self) -> int:
        return self._counts().cycles

    @property
    def statistics(self) -> Statistics:
        counts = self._counts()
        messages: list[str] = []
        while (text := self._library.fl_message(self._handle, len(messages))) is not None:
            messages.append(text.decode())
        return Statistics(**{name: getattr(counts, name) for name in _COUNTS[:-1]}, messages=messages)

    def _counts(self) -> _Statistics:
        counts = _Statistics()
        self._library.fl_statistics(self._handle, ctypes.byref(counts))
        return counts

    @staticmethod
    def _check(response: int, what: str, offset: int) -> None:
        if response < 0:
            raise SimulationError(f"register {what} at 0x{offset:03x} was not answered")
        if response != OKAY:
            raise SimulationError(f"register {what} at 0x{offset:03x} was answered with response {response}")
