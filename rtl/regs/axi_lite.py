"""Registers behind an AXI4-Lite port: any map, and the accelerator's."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from ..lib.block import Block, digest
from ..lib.onehot import onehot_select
from .counter_list import COUNTERS
from .map import IDENTITY, VERSION, built_registers
from .register import ADDRESS_BITS, Register, Role
from .signature import DESIGN_PARAMETERS, Axi4LiteSignature, configuration_layout, result_layout

__all__ = [
    "DESIGN_PARAMETERS",
    "Axi4LiteSignature",
    "RegisterBank",
    "RegisterFile",
    "configuration_layout",
    "result_layout",
]

OKAY = 0
SLVERR = 2


class RegisterBank(Block):
    """AXI4-Lite subordinate with the registers of a map (:mod:`rtl.regs.register`).

    A run begins with a write of CONTROL.start and ends with the pulse ``done``; in between, and while ``busy`` is high,
    configuration is locked. Reads have no side effect but one: reading the lower word of a 64-bit read-only register
    keeps its upper word of the same cycle, and the next read of that upper word returns what was kept. An upper word
    that was not kept is read as it is. One read and one write are in progress at a time.

    Parameters
    ----------
    registers : Sequence[Register]
        The map. It has CONTROL, STATUS, ERROR_CODE and ERROR_DETAIL.
    address_width : int
        Bits of a memory address, 1 to 64.
    constants : Mapping[str, int]
        Value of each register with the role CONSTANT, 32 bits.
    bank : bool
        Counters are asked for by their number, as a :class:`rtl.regs.counters.CounterBank` has them. They lie side by side,
        and the lowest bits of a counter's place are its number.

    Members
    -------
    bus : In(Axi4LiteSignature)
        32-bit data, 12-bit address whose low two bits are ignored. SLVERR answers, without any effect: a read (which
        gives 0) or write of an unmapped word, a write of a read-only word, a write of configuration while busy, and a
        write that sets an address bit which the design does not have.
    settings : Out(configuration_layout(address_width, registers))
        Straight from registers, constant while a run is busy. Zero after reset.
    start : Out(1), soft_reset : Out(1)
        One cycle after the write takes effect, one cycle long, never both.
    busy : In(1)
        The hardware is not idle. A run counts as busy from ``start`` to ``done``, whatever this input is.
    done : In(1), error_code : In(8), error_detail : In(64)
        ``done`` is high for one cycle at the end of a run; the code (0 for a good end) and its detail count in it.
    results : In(result_layout(Role.RESULT)), counters : In(result_layout(Role.COUNTER))
        Passed to reads unchanged. There are no ``counters`` with ``bank``.
    counter_read : Out(1), counter_number : Out(range(counters)), counter : In(64)
        With ``bank``: a counter is read, in the cycle after its address came; its value one cycle later.
    irq : Out(1)
        STATUS.irq_pending while CONTROL.irq_enable is set. Level, registered.

    Timing
    ------
    Read: data 4 cycles after the address. Write: response 2 cycles after the later of address and data.
    """

    read_latency = 4
    write_latency = 2

    def __init__(
        self, *, registers: Sequence[Register], address_width: int, constants: Mapping[str, int], bank: bool = False
    ) -> None:
        if not isinstance(address_width, int) or not 1 <= address_width <= 64:
            raise ValueError(f"Address width must be from 1 to 64, not {address_width!r}")
        self.registers = tuple(registers)
        self.address_width = address_width
        self.constants = dict(constants)
        self.bank = bank
        counted = self._of(Role.COUNTER)
        first, bits = min((one.offset >> 3 for one in counted), default=0), (len(counted) - 1).bit_length()
        if bank and (
            first % (1 << bits) or [one.offset >> 3 for one in counted] != [first + n for n in range(len(counted))]
        ):
            raise ValueError(f"Counters of a bank must lie side by side from a multiple of {8 << bits} bytes on")
        asked = {"counter_read": Out(1), "counter_number": Out(bits), "counter": In(64)}
        shown = {"counters": In(result_layout(Role.COUNTER, registers=self.registers))}
        super().__init__(
            {
                "bus": In(Axi4LiteSignature(data_width=32, address_width=ADDRESS_BITS)),
                "settings": Out(configuration_layout(address_width, self.registers)),
                "start": Out(1),
                "soft_reset": Out(1),
                "busy": In(1),
                "done": In(1),
                "error_code": In(8),
                "error_detail": In(64),
                "results": In(result_layout(Role.RESULT, registers=self.registers)),
                **(asked if bank else shown),
                "irq": Out(1),
            }
        )

    def _of(self, *roles: Role) -> list[Register]:
        return [register for register in self.registers if register.role in roles]

    def parameters(self) -> dict[str, Any]:
        return {"address_width": self.address_width, "constants": digest(self.constants)}

    def build(self, platform: Any) -> Module:
        m = Module()
        status = _Status(self, m)
        contents: dict[str, Value] = {name: Const(value, 32) for name, value in self.constants.items()}
        contents |= {register.name: self.results[register.key] for register in self._of(Role.RESULT)}
        if not self.bank:
            contents |= {register.name: self.counters[register.key] for register in self._of(Role.COUNTER)}
        contents |= {
            "CONTROL": Cat(Const(0, 2), status.irq_enable),
            "STATUS": Cat(status.running, status.done, status.error, status.irq_pending),
            "ERROR_CODE": status.error_code,
            "ERROR_DETAIL": status.error_detail,
        }
        contents |= {
            register.name: Value.cast(self.settings[register.key])
            for register in self._of(Role.CONFIGURATION, Role.ADDRESS)
        }
        self._write_channel(m, status)
        self._read_channel(m, contents)
        return m

    def _write_channel(self, m: Module, status: "_Status") -> None:
        bus = self.bus
        address = Signal(ADDRESS_BITS - 2)  # of the word
        address_held = Signal()
        value = Signal(32)
        strobe = Signal(4)
        value_held = Signal()
        act = Signal()
        accepted = Signal()  # the write at hand is legal; meaningful with `act`
        m.d.comb += [
            bus.awready.eq(~address_held),
            bus.wready.eq(~value_held),
            act.eq(address_held & value_held & (~bus.bvalid | bus.bready)),
        ]
        with m.If(bus.awvalid & bus.awready):
            m.d.sync += [address_held.eq(1), address.eq(bus.awaddr[2:])]
        with m.If(bus.wvalid & bus.wready):
            m.d.sync += [value_held.eq(1), value.eq(bus.wdata), strobe.eq(bus.wstrb)]
        with m.If(bus.bready):
            m.d.sync += bus.bvalid.eq(0)
        with m.If(act):
            m.d.sync += [
                address_held.eq(0),
                value_held.eq(0),
                bus.bvalid.eq(1),
                bus.bresp.eq(Mux(accepted, OKAY, SLVERR)),
            ]

        mask = Cat(strobe[n].replicate(8) for n in range(4))
        written = value & mask
        with m.Switch(address):
            for register in self.registers:
                if not register.writable:
                    continue
                for word, (name, offset) in enumerate(register.words):
                    with m.Case(offset >> 2):
                        if name == "CONTROL":
                            m.d.comb += accepted.eq(1)
                            with m.If(act):
                                status.control(m, written, strobe[0], value)
                        elif name == "STATUS":
                            m.d.comb += accepted.eq(1)
                            with m.If(act):
                                status.acknowledge(m, written)
                        else:
                            self._store(m, register, word, act, accepted, status.running, value, mask)

    def _store(
        self,
        m: Module,
        register: Register,
        word: int,
        act: Signal,
        accepted: Signal,
        locked: Value,
        value: Signal,
        mask: Value,
    ) -> None:
        """Write one word of a configuration register."""
        stored = Value.cast(self.settings[register.key])
        bits = stored[32 * word : min(32 * word + 32, len(stored))]
        refused: Value = locked
        if register.role is Role.ADDRESS and len(bits) < 32:
            refused = locked | (value & mask)[len(bits) :].any()
        m.d.comb += accepted.eq(~refused)
        if len(bits):
            for byte in range(0, len(bits), 8):
                with m.If(act & ~refused & mask[byte]):
                    m.d.sync += bits[byte : byte + 8].eq(value[byte : byte + 8])

    def _read_channel(self, m: Module, contents: dict[str, Value]) -> None:
        bus = self.bus
        pair = Signal(ADDRESS_BITS - 3)  # which pair of words
        upper = Signal()  # which word of it
        find = Signal()
        select = Signal()
        combine = Signal()
        m.d.comb += bus.arready.eq(~find & ~select & ~combine & ~bus.rvalid)
        m.d.sync += [find.eq(bus.arvalid & bus.arready), select.eq(find), combine.eq(select)]
        with m.If(bus.arvalid & bus.arready):
            m.d.sync += Cat(upper, pair).eq(bus.araddr[2:])

        # Which pair of words, then its contents, then the word: no cycle holds more than one of these.
        pairs: dict[int, list[Value | None]] = {}
        paired: set[int] = set()
        for register in (one for one in self.registers if one.name in contents):
            value = Value.cast(contents[register.name])
            for word, (_, offset) in enumerate(register.words):
                pairs.setdefault(offset >> 3, [None, None])[offset >> 2 & 1] = value[32 * word : 32 * word + 32]
            if register.width == 64 and not register.writable:
                paired.add(register.offset >> 3)
        chosen = Signal(len(pairs))
        counted = Signal()  # a counter of the bank
        low_word = Signal(32)
        high_word = Signal(32)
        mapped = Signal(2)
        together = Signal()  # a 64-bit read-only register: its words belong to one moment
        count: Value = Const(0, 64)
        if self.bank:
            asked = self._is_counter(pair)
            m.d.comb += [self.counter_read.eq(find & asked), self.counter_number.eq(pair)]
            m.d.sync += counted.eq(asked)
            count = Mux(counted, self.counter, 0)
        nothing = Const(0, 32)
        lows = [nothing if low is None else low for low, _ in pairs.values()]
        highs = [nothing if high is None else high for _, high in pairs.values()]
        m.d.sync += [
            chosen.eq(Cat(pair == number for number in pairs)),
            low_word.eq(onehot_select(chosen, lows) | count[:32]),
            high_word.eq(onehot_select(chosen, highs) | count[32:]),
            mapped[0].eq((chosen & _bits(low is not None for low, _ in pairs.values())).any() | counted),
            mapped[1].eq((chosen & _bits(high is not None for _, high in pairs.values())).any() | counted),
            together.eq((chosen & _bits(number in paired for number in pairs)).any() | counted),
        ]

        kept = Signal(32)
        kept_pair = Signal(ADDRESS_BITS - 3)
        kept_valid = Signal()
        use_kept = kept_valid & (kept_pair == pair)
        with m.If(bus.rready):
            m.d.sync += bus.rvalid.eq(0)
        with m.If(combine):
            m.d.sync += [
                bus.rvalid.eq(1),
                bus.rdata.eq(Mux(upper, Mux(use_kept, kept, high_word), low_word)),
                bus.rresp.eq(Mux(mapped.bit_select(upper, 1), OKAY, SLVERR)),
            ]
            with m.If(together & ~upper):
                m.d.sync += [kept.eq(high_word), kept_pair.eq(pair), kept_valid.eq(1)]
            with m.If(upper & use_kept):
                m.d.sync += kept_valid.eq(0)

    def _is_counter(self, pair: Value) -> Value:
        """The pair of words is a counter; its lowest bits are then the counter's number."""
        counters, bits = self._of(Role.COUNTER), len(self.counter_number)
        return (pair[bits:] == counters[0].offset >> 3 + bits) & (pair[:bits] < len(counters))


class RegisterFile(RegisterBank):
    """AXI4-Lite subordinate with every register of ``rtl/regs/map.py``.

    Parameters
    ----------
    address_width : int
        Bits of a memory address, 1 to 64.
    parameters : Mapping[str, int]
        Value of each register in ``DESIGN_PARAMETERS``, 32 bits.
    converts : str
        Tensors that a build converts on their way, some of "abc": without the registers of others.

    Members are those of :class:`RegisterBank`.

    Timing
    ------
    As :class:`RegisterBank`.
    """

    def __init__(self, *, address_width: int, parameters: Mapping[str, int], converts: str = "abc") -> None:
        if set(parameters) != set(DESIGN_PARAMETERS):
            wrong = ", ".join(sorted(set(parameters) ^ set(DESIGN_PARAMETERS)))
            raise ValueError(f"Design parameters must be {', '.join(DESIGN_PARAMETERS)}: missing or unknown {wrong}")
        for name, value in parameters.items():
            if not isinstance(value, int) or not 0 <= value < 1 << 32:
                raise ValueError(f"Design parameter {name} must fit 32 bits, not {value!r}")
        constants = {"ID": IDENTITY, "VERSION": VERSION, "COUNTERS": len(COUNTERS), **parameters}
        registers = built_registers(converts)
        super().__init__(registers=registers, address_width=address_width, constants=constants, bank=True)


class _Status:
    """State behind CONTROL, STATUS and the error registers."""

    def __init__(self, block: RegisterBank, m: Module) -> None:
        self.block = block
        self.irq_enable = Signal()
        self.irq_pending = Signal()
        self.active = Signal()  # from `start` to `done`
        self.running = Signal()
        self.done = Signal()
        self.error_code = Signal(8)
        self.error_detail = Signal(64)
        self.error = self.error_code != 0
        m.d.comb += self.running.eq(self.active | block.busy)
        m.d.sync += [
            block.start.eq(0),
            block.soft_reset.eq(0),
            block.irq.eq(self.irq_pending & self.irq_enable),
        ]
        with m.If(block.done):
            m.d.sync += [
                self.active.eq(0),
                self.done.eq(1),
                self.irq_pending.eq(1),
                self.error_code.eq(block.error_code),
                self.error_detail.eq(block.error_detail),
            ]

    def control(self, m: Module, written: Value, strobe: Value, value: Value) -> None:
        """A write of CONTROL takes effect. Overrides what `done` does in the same cycle."""
        with m.If(strobe):
            m.d.sync += self.irq_enable.eq(value[2])
        starts = written[0] & ~written[1] & ~self.running
        m.d.sync += [self.block.soft_reset.eq(written[1]), self.block.start.eq(starts)]
        with m.If(written[1] | starts):
            m.d.sync += [
                self.active.eq(starts),
                self.done.eq(0),
                self.irq_pending.eq(0),
                self.error_code.eq(0),
                self.error_detail.eq(0),
            ]

    def acknowledge(self, m: Module, written: Value) -> None:
        """A write of STATUS takes effect; a run that ends in this very cycle stays pending."""
        with m.If(written[3] & ~self.block.done):
            m.d.sync += self.irq_pending.eq(0)


def _bits(flags: Iterable[bool]) -> int:
    return sum(1 << n for n, flag in enumerate(flags) if flag)
