"""The converter behind its registers: a memory engine, and one core for all conversions or one for each."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib.wiring import In, Out, connect, flipped

from ...lib.block import Block
from ...lib.check import check_integer
from ...lib.counter import EventCounter, popcount
from ...memory.axi4 import Axi4Signature
from ...memory.memory_engine import MemoryEngine
from ...regs.converter_map import FORMATS
from ..host.hosted_sum import HOST
from ..prefix_sum import FORMS as SUMS
from .conversions import ALL, Conversions, check_conversions
from .core import CORE_PORTS, ConverterCore, show_ports
from .settings import ERROR_CODES, settings_layout

__all__ = ["STYLES", "ConverterCores"]

READER_DEPTH = 128
#: MINT section V: separate converters, merged, merged with the adders and dividers of a host.
STYLES = ("b", "m", "mr")


class ConverterCores(Block):
    """One conversion from ``start`` to ``done``: by a core that has all of them (``m``), or by the one that has it (``b``).

    In ``mr`` prefix sums and divisions are those of a host, which computes while nothing is converted.

    Cores share a memory engine, settings and counters. A conversion that no core has is refused by the first one.

    Parameters
    ----------
    style : str
        One of :data:`STYLES`.
    conversions : Conversions
        Those that it is built for.
    form : str
        Network of the prefix sums, one of :data:`rtl.mint.prefix_sum.FORMS`; in ``mr`` laid over the host.
    beat_bits, address_width, burst_beats, value, counters, sram_bytes, lane_bits
        See :class:`rtl.mint.converter.core.ConverterCore`.
    outstanding : int
        See :class:`rtl.memory.memory_engine.MemoryEngine`.

    Members
    -------
    settings : In(settings_layout), start : In(1)
        Constant from ``start``, a pulse after the reset, on.
    done : Out(1), error : Out(8), detail : Out(64)
        As :class:`rtl.mint.converter.control.ConverterControl`.
    entries, cycles, read_beats, written_beats, passes : Out
        What the run has done so far.
    bus : Out(Axi4Signature)
    claimed, owned, sum_valid, sum, sums_valid, sums, division_valid, division, divided_valid, divided
        Those of :class:`rtl.mint.host.host_array.HostArray`, in ``mr``.
    halt : In(1), bus_busy : Out(1)
        See :class:`rtl.memory.memory_engine.MemoryEngine`.

    Timing
    ------
    That of its cores: they are joined by multiplexers.
    """

    def __init__(
        self,
        *,
        style: str = "m",
        conversions: Conversions = ALL,
        form: str,
        outstanding: int,
        address_width: int,
        **sizes: Any,
    ) -> None:
        if style not in STYLES:
            raise ValueError(f"Style must be one of {', '.join(STYLES)}, not {style!r}")
        if form not in SUMS:
            raise ValueError(f"Prefix sum must be one of {', '.join(SUMS)}, not {form!r}")
        check_conversions(conversions)
        check_integer("Address width", address_width, 13, 64)
        self.style = style
        self.conversions = conversions
        built = conversions.separate() if style == "b" else [conversions]
        self.form = form
        #: Members that go to a host.
        self.host_ports: dict[str, Any] = {"claimed": Out(1), **CORE_PORTS} if style == "mr" else {}
        inner = HOST if style == "mr" else form
        self.cores = [ConverterCore(conversions=one, form=inner, address_width=address_width, **sizes) for one in built]
        self.core = self.cores[0]
        self.memory = MemoryEngine(
            data_width=self.core.beat_bits,
            address_width=address_width,
            readers=2,
            writers=5 if conversions.tensors else 3 if conversions.blocks else 2,
            outstanding=outstanding,
            burst_beats=self.core.burst_beats,
            reader_depth=READER_DEPTH,
        )
        bus = Axi4Signature(data_width=self.core.beat_bits, address_width=address_width, id_width=self.memory.id_width)
        super().__init__(
            {
                "settings": In(settings_layout(address_width)),
                "start": In(1),
                "done": Out(1),
                "error": Out(8),
                "detail": Out(64),
                "entries": Out(64),
                "cycles": Out(64),
                "read_beats": Out(64),
                "written_beats": Out(64),
                "passes": Out(6),
                "bus": Out(bus),
                "halt": In(1),
                "bus_busy": Out(1),
                **self.host_ports,
            }
        )

    def parameters(self) -> dict[str, Any]:
        own = {"form": self.form, "outstanding": self.memory.outstanding, "style": self.style}
        return self.core.parameters() | own | {"conversions": self.conversions.name}

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.memory_engine = memory = self.memory
        settings = self.settings
        connect(m, memory.bus, flipped(self.bus))
        m.d.comb += [
            *(getattr(memory, name).eq(settings[name]) for name in ("write_begin", "write_end")),
            memory.halt.eq(self.halt),
            self.bus_busy.eq(memory.busy),
        ]
        fault = Signal()
        code = Signal(8)
        detail = Signal(64)
        for found in reversed(memory.faults()):
            with m.If(found.found):
                m.d.comb += [fault.eq(1), code.eq(ERROR_CODES[found.name]), detail.eq(found.detail)]
        counted = Signal(range(self.core.lanes + 1))
        for n, (core, chosen) in enumerate(zip(self.cores, self._chosen(), strict=True)):
            m.submodules[f"core{n}"] = core
            m.d.comb += [
                core.settings.eq(settings),
                core.start.eq(self.start & chosen),
                core.write_idle.eq(Cat(*memory.write_idle).all()),
                core.memory_fault.eq(fault),
                core.memory_code.eq(code),
                core.memory_detail.eq(detail),
            ]
            with m.If(chosen):
                m.d.comb += [
                    *(getattr(self, name).eq(getattr(core, name)) for name in ("done", "error", "detail", "passes")),
                    counted.eq(core.counted),
                ]
                for name, ports in (
                    ("read_request", 2),
                    ("write_request", memory.writers),
                    ("write_data", memory.writers),
                ):
                    for port in range(ports):
                        _join(m, getattr(core, name)[port], getattr(memory, name)[port])
                for port in range(2):
                    _join(m, memory.read_data[port], core.read_data[port])
        self._count(m, counted)
        if self.style == "mr":
            # The host is claimed from the start of a run to its end.
            claimed = Signal()
            with m.If(self.start):
                m.d.sync += claimed.eq(1)
            with m.Elif(self.done):
                m.d.sync += claimed.eq(0)
            m.d.comb += self.claimed.eq(claimed & ~self.done)
            show_ports(m, self, self.core, CORE_PORTS)
        return m

    def _chosen(self) -> list[Any]:
        """Which core has the conversion that is set."""
        if len(self.cores) == 1:
            return [Const(1, 1)]
        formats = self.settings.formats
        found = [
            (formats.source == FORMATS.index(source)) & (formats.target == FORMATS.index(target))
            for source, target in self.conversions.pairs
        ]
        return [found[0] | ~Cat(*found).any(), *found[1:]]

    def _count(self, m: Module, entries: Any) -> None:
        memory = self.memory
        events = {
            "entries": entries,
            "cycles": Const(1),
            "read_beats": popcount(memory.read_beat),
            "written_beats": popcount(memory.write_beat),
        }
        running = Signal()
        with m.If(self.start):
            m.d.sync += running.eq(1)
        for name, step in events.items():
            m.submodules[f"{name}_counter"] = counter = EventCounter(width=64, step_width=len(step))
            m.d.comb += getattr(self, name).eq(counter.count)
            with m.If(running & ~self.done):
                m.d.comb += counter.step.eq(step)


def _join(m: Module, given: Any, taken: Any) -> None:
    m.d.comb += [taken.valid.eq(given.valid), taken.payload.eq(given.payload), given.ready.eq(taken.ready)]
