"""Small blocks that show one thing each to the emitter."""

from typing import Any

from amaranth.hdl import Cat, Module, Signal, unsigned
from amaranth.lib import data, memory, stream
from amaranth.lib.wiring import In, Out

from rtl.lib.block import Block
from rtl.lib.stream import StreamRegister

__all__ = ["Adder", "Alike", "Carrier", "Chain", "Constant", "Holder", "Keyword", "Lookup", "Nested", "Pair", "Slices"]


class Pair(data.Struct):
    """A payload with fields."""

    low: unsigned(3)
    high: unsigned(5)


class Adder(Block):
    """Adds ``step`` to what comes in, one cycle later."""

    def __init__(self, *, width: int, step: int = 1) -> None:
        self.width = width
        self.step = step
        super().__init__({"i": In(width), "o": Out(width)})

    def build(self, platform: Any) -> Module:
        m = Module()
        m.d.sync += self.o.eq(self.i + self.step)
        return m


class Chain(Block):
    """Adders one after the other, the last with its own step."""

    def __init__(self, *, length: int) -> None:
        self.length = length
        super().__init__({"i": In(8), "o": Out(8)})

    def build(self, platform: Any) -> Module:
        m = Module()
        value = self.i
        for n in range(self.length):
            stage = Adder(width=8, step=1 if n < self.length - 1 else 5)
            m.submodules[f"stage{n}"] = stage
            m.d.comb += stage.i.eq(value)
            value = stage.o
        m.d.comb += self.o.eq(value)
        return m


class Alike(Block):
    """Takes a step that its module name does not tell."""

    def __init__(self, *, step: int) -> None:
        self.step = step
        super().__init__({"i": In(4), "o": Out(4)})

    def parameters(self) -> dict[str, Any]:
        return {}

    def build(self, platform: Any) -> Module:
        m = Module()
        m.d.comb += self.o.eq(self.i ^ self.step)
        return m


class Holder(Block):
    """Two blocks of one name."""

    def __init__(self, *, steps: tuple[int, int]) -> None:
        self.steps = steps
        super().__init__({"i": In(4), "o": Out(4)})

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.first = first = Alike(step=self.steps[0])
        m.submodules.second = second = Alike(step=self.steps[1])
        m.d.comb += [first.i.eq(self.i), second.i.eq(first.o), self.o.eq(second.o)]
        return m


class Slices(Block):
    """Two registers for payloads of eight bits, one of a pair and one of a number."""

    def __init__(self) -> None:
        super().__init__({"i": In(8), "o": Out(8)})

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.pair = pair = StreamRegister(shape=Pair)
        m.submodules.number = number = StreamRegister(shape=unsigned(8))
        m.d.comb += [pair.i.payload.eq(self.i), number.i.payload.eq(pair.o.payload), self.o.eq(number.o.payload)]
        return m


class Either(data.Union):
    """Parts that overlap."""

    pair: Pair
    number: unsigned(8)


class Nested(Block):
    """Ports with all that a payload can be made of; one has the name of another one's field."""

    def __init__(self) -> None:
        payload = data.StructLayout(
            {"pairs": data.ArrayLayout(Pair, 2), "ranks": data.ArrayLayout(7, 2), "nothing": 0, "last": 1}
        )
        members = {"i": In(stream.Signature(payload)), "i__payload__last": In(1), "either": In(Either), "o": Out(8)}
        super().__init__(members)

    def build(self, platform: Any) -> Module:
        m = Module()
        item = self.i.payload
        both = Cat(item.pairs[0].low, item.pairs[1].high) ^ item.ranks[1]
        m.d.comb += [self.i.ready.eq(item.last ^ self.i__payload__last), self.o.eq(both ^ self.either.number)]
        return m


class Constant(Block):
    """Outputs that depend on nothing, or on inputs that never change: they must have their values from time 0 on."""

    def __init__(self) -> None:
        super().__init__({"select": In(2), "fixed": Out(4), "chosen": Out(4)})

    def build(self, platform: Any) -> Module:
        m = Module()
        m.d.comb += self.fixed.eq(9)
        with m.Switch(self.select):
            with m.Case(1):
                m.d.comb += self.chosen.eq(3)
            with m.Case(2):
                m.d.comb += self.chosen.eq(self.fixed)
        return m


class Lookup(Block):
    """A memory, its own index, and what nobody reads."""

    def __init__(self, *, init: tuple[int, ...] = ()) -> None:
        self.init = init
        super().__init__({"enable": In(1), "i": In(Pair), "o": Out(Pair)})

    def parameters(self) -> dict[str, Any]:
        return {}

    def build(self, platform: Any) -> Module:
        m = Module()
        index = Signal(4)
        unread = Signal(7)
        m.submodules.storage = storage = memory.Memory(shape=8, depth=16, init=self.init)
        write, read = storage.write_port(), storage.read_port(domain="comb")
        m.d.comb += [write.addr.eq(index), write.data.eq(self.i), write.en.eq(self.enable)]
        m.d.comb += [read.addr.eq(index), self.o.eq(read.data)]
        with m.If(self.enable):
            m.d.sync += [index.eq(index + 1), unread.eq(unread + 3)]
        return m


class Keyword(Block):
    """Has names that Verilog keeps for itself, in its ports or inside."""

    def __init__(
        self, *, port: str = "o", signal: str = "now", memory: str = "words", submodule: str = "register"
    ) -> None:
        self.port = port
        self.inside = signal, memory, submodule
        super().__init__({"i": In(8), port: Out(8)})

    def parameters(self) -> dict[str, Any]:
        return {}

    def build(self, platform: Any) -> Module:
        m = Module()
        signal, named, submodule = self.inside
        now = Signal(8, name=signal)
        m.submodules[named] = storage = memory.Memory(shape=8, depth=4, init=[])
        m.submodules[submodule] = register = StreamRegister(shape=8)
        write, read = storage.write_port(), storage.read_port(domain="comb")
        m.d.sync += now.eq(self.i)
        m.d.comb += [write.en.eq(1), write.data.eq(now), register.i.valid.eq(1), register.i.payload.eq(read.data)]
        m.d.comb += [register.o.ready.eq(1), getattr(self, self.port).eq(register.o.payload)]
        return m


class Carrier(Block):
    """Has a port of the width given to it, 0 too."""

    def __init__(self, *, width: int) -> None:
        super().__init__({"i": In(width)})

    def build(self, platform: Any) -> Module:
        return Module()
