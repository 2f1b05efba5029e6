"""The register file as an AXI4-Lite subordinate, and what a write does to what is read."""

from typing import Any

from amaranth.hdl import Assert, Assume, Cat, Cover, Module, Mux, Signal, Value

from .spec import Spec, fixed_value, free_inputs, implies

__all__ = ["RegisterPort"]

OKAY, SLVERR = 0, 2


class RegisterPort(Spec):
    """Every read and every write is answered once, in bounded time, by an answer that stays until it is taken.

    One word of configuration, any of those given, is watched: what a later read gives are the bytes of the writes that
    were answered with OKAY, nothing else changes the word, and while the machine is busy every write of it is refused.

    Parameters
    ----------
    registers : RegisterFile
        Any.
    words : dict of int to int
        Byte offset and width of words that can be written while the machine is idle. None: the rules of the bus only,
        with a second write on its way while the first waits for its answer to be taken.
    """

    def __init__(self, registers: Any, *, words: dict[int, int]) -> None:
        super().__init__()
        self.registers = registers
        self.words = words

    def claims(self, m: Module) -> None:
        m.submodules.registers = registers = self.registers
        free_inputs(m, registers)
        bus = registers.bus
        channels = {
            name: (getattr(bus, f"{name}valid"), getattr(bus, f"{name}ready"), payload)
            for name, payload in (
                ("aw", bus.awaddr),
                ("w", Cat(bus.wdata, bus.wstrb)),
                ("ar", bus.araddr),
                ("b", bus.bresp),
                ("r", Cat(bus.rdata, bus.rresp)),
            )
        }
        goes: dict[str, Value] = {}
        for name, (valid, ready, payload) in channels.items():
            goes[name] = valid & ready
            offered, before = Signal(name=f"{name}_offered"), Signal(len(payload), name=f"{name}_before")
            m.d.sync += [offered.eq(valid & ~ready), before.eq(Value.cast(payload))]
            claim = Assert if name in "br" else Assume
            m.d.comb += claim(implies(offered, valid & (Value.cast(payload) == before)), f"{name} keeps what it offers")

        # How many of each are taken and not answered.
        counts = {name: Signal(2, name=f"{name}_open") for name in ("aw", "w", "ar")}
        for name, count in counts.items():
            answered = goes["r"] if name == "ar" else goes["b"]
            m.d.sync += count.eq(count + goes[name] - answered)
        write_waits, read_waits = Signal(range(8)), Signal(range(8))
        m.d.sync += [
            write_waits.eq(Mux((counts["aw"] != 0) & (counts["w"] != 0) & ~bus.bvalid, write_waits + 1, 0)),
            read_waits.eq(Mux((counts["ar"] != 0) & ~bus.rvalid, read_waits + 1, 0)),
        ]
        m.d.comb += [
            Assert(implies(bus.bvalid, (counts["aw"] != 0) & (counts["w"] != 0)), "no answer without a whole write"),
            Assert(implies(bus.rvalid, counts["ar"] != 0), "no answer without a read"),
            *(Assert(count <= 2, "no more is taken than is remembered") for count in counts.values()),
            Assert(counts["ar"] <= 1, "one read at a time"),
            Assert(write_waits < registers.write_latency, "a write is answered in time"),
            Assert(read_waits < registers.read_latency, "a read is answered in time"),
            Assert(implies(bus.bvalid, (bus.bresp == OKAY) | (bus.bresp == SLVERR)), "answers are OKAY or SLVERR"),
            Assert(implies(bus.rvalid, (bus.rresp == OKAY) | (bus.rresp == SLVERR)), "answers are OKAY or SLVERR"),
            Assert(implies(bus.rvalid & (bus.rresp == SLVERR), bus.rdata == 0), "a refused read gives nothing"),
            Assert(~(registers.start & registers.soft_reset), "start and soft reset never come together"),
            Cover(goes["r"] & (bus.rresp == SLVERR)),
            Cover(goes["b"] & (bus.bresp == OKAY) & (counts["aw"] == (1 if self.words else 2))),
        ]
        if self.words:
            self._watched_word(m, goes, counts)

    def _watched_word(self, m: Module, goes: dict[str, Value], counts: dict[str, Signal]) -> None:
        registers, bus = self.registers, self.registers.bus
        offset = fixed_value(m, len(bus.awaddr), "watched_offset")
        width = Signal(range(33))
        with m.Switch(offset):
            for place, bits in self.words.items():
                with m.Case(place):
                    m.d.comb += width.eq(bits)
        m.d.comb += Assume(width != 0)
        mask = Signal(32)
        m.d.comb += mask.eq((1 << width) - 1)

        # One write at a time is followed here.
        address, data, strobe = Signal(len(bus.awaddr)), Signal(32), Signal(4)
        with m.If(goes["aw"]):
            m.d.sync += address.eq(bus.awaddr)
        with m.If(goes["w"]):
            m.d.sync += [data.eq(bus.wdata), strobe.eq(bus.wstrb)]
        m.d.comb += [
            Assume(implies(bus.awvalid, counts["aw"] == 0)),
            Assume(implies(bus.wvalid, counts["w"] == 0)),
        ]
        word = Signal(32)
        mine = (address[2:] == offset[2:]) & (strobe != 0)
        written = goes["b"] & mine & (bus.bresp == OKAY)
        bytes_written = Cat(strobe[n].replicate(8) for n in range(4))
        with m.If(written):
            m.d.sync += word.eq(((word & ~bytes_written) | (data & bytes_written)) & mask)
        reading = Signal()  # the read under way is of the watched word, and no write is
        with m.If(goes["ar"]):
            m.d.sync += reading.eq(bus.araddr[2:] == offset[2:])
        with m.If((counts["aw"] != 0) | (counts["w"] != 0)):
            m.d.sync += reading.eq(0)
        quiet = (counts["aw"] == 0) & (counts["w"] == 0)
        m.d.comb += [
            Assert(implies(bus.rvalid & reading & quiet, bus.rresp == OKAY), "the word can be read"),
            Assert(implies(bus.rvalid & reading & quiet, bus.rdata == word), "what was written is read"),
            Cover(goes["r"] & reading & quiet & (word == 0x5A) & (mask == 0xFFFFFFFF)),
        ]
        # Busy from before the write was taken until it is answered.
        locked = Signal()
        with m.If(goes["aw"] | goes["w"]):
            m.d.sync += locked.eq(registers.busy & Mux(quiet, 1, locked))
        with m.Elif(~registers.busy):
            m.d.sync += locked.eq(0)
        refused = bus.bvalid & locked & (address[2:] == offset[2:])
        m.d.comb += Assert(implies(refused, bus.bresp == SLVERR), "configuration is locked while the machine is busy")
