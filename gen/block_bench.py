"""The bench of a block alone: neighbours that act by chance, and what the block answered them in Amaranth's simulation.

The Verilog has to answer as the source does, cycle by cycle: in any simulator, and after a change by hand.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from amaranth.hdl import ClockDomain, Fragment, Module, Signal, UnusedElaboratable, Value
from amaranth.hdl._mem import MemoryData, MemoryInstance
from amaranth.sim import Simulator

from rtl.lib.block import Block

from .constraints import BLOCK_CLOCK, BLOCK_RESET
from .ports import Member, Port, members
from .smoke import BENCH, EXPECTED, MAKEFILE, NETLIST, STIMULUS, makefile

__all__ = ["Recording", "bench_files", "record"]

_TEMPLATE = Path(__file__).with_name("block_tb.sv")

# Cycles of each episode, which begins with a reset, and the chance that a neighbour which may act does so in it.
EPISODES = ((128, 0.9), (128, 0.5), (128, 0.2), (128, 1.0))
SEED = 1
# The chance that an input which belongs to no handshake changes in a cycle.
CHANGE = 0.125
PERIOD = 1e-8


@dataclass(frozen=True, kw_only=True)
class Recording:
    """Cycles of a block.

    inputs, outputs : ports in the order of their bits, lowest first.
    driven : the inputs as one number for each cycle. reset : whether it is one of reset.
    answered : the outputs as one number for each cycle. checked : bit n says that output n means something in it.
    """

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    driven: tuple[int, ...]
    reset: tuple[bool, ...]
    answered: tuple[int, ...]
    checked: tuple[int, ...]

    @property
    def values(self) -> int:
        """Values of outputs that are compared."""
        return sum(mask.bit_count() for mask in self.checked)

    @property
    def moving(self) -> int:
        """Bits of outputs that are compared both as 0 and as 1."""
        seen = [0, 0]
        for word, mask in zip(self.answered, self.checked, strict=True):
            low = 0
            for number, port in enumerate(self.outputs):
                if mask >> number & 1:
                    bits = ((1 << port.width) - 1) << low
                    seen[1] |= word & bits
                    seen[0] |= ~word & bits
                low += port.width
        return (seen[0] & seen[1]).bit_count()


@dataclass(frozen=True, kw_only=True)
class _Handshake:
    """Members that move together: ``payload`` while ``valid`` and ``ready`` are high."""

    valid: Member
    ready: Member
    payload: tuple[Member, ...]


def record(make: Callable[[], Block]) -> Recording:
    """What the block that ``make`` makes answers; it has no clock of its own, but that of what it is put into.

    It is recorded twice, with inverted bits wherever a memory is undefined in hardware: at the begin, in its output
    register after a reset, and behind its last row. Nothing is compared that depends on them.
    """
    first = _recorded(make())
    second = _recorded(make(), first)
    low, checked = 0, list(first.checked)
    for number, port in enumerate(first.outputs):
        bits = ((1 << port.width) - 1) << low
        low += port.width
        for cycle, pair in enumerate(zip(first.answered, second.answered, strict=True)):
            checked[cycle] &= ~(bool((pair[0] ^ pair[1]) & bits) << number)
    return replace(first, checked=tuple(checked))


def _recorded(block: Block, earlier: Recording | None = None) -> Recording:
    """One recording: by new neighbours, or driven as the ``earlier`` one was, with inverted memories."""
    found = members(block)
    handshakes = _handshakes(found)
    inputs = [member for member in found if member.is_input]
    outputs = [member for member in found if not member.is_input]
    payloads = {member.name: shake.valid for shake in handshakes for member in shake.payload if not member.is_input}
    driven: list[int] = []
    answered: list[int] = []
    checked: list[int] = []
    reset: list[bool] = []
    domain = ClockDomain("sync")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnusedElaboratable)
        whole = Fragment.get(_in_domain(block, domain), None)
        memories = list(_memories(whole))
        simulator = Simulator(whole)

    async def script(ctx: Any) -> None:
        contents = Random(SEED)
        beyond: list[tuple[Value, int]] = []
        registers: list[tuple[Value, int]] = []
        for memory, rows in memories:
            values = [Value.cast(memory._data[row]) for row in range(memory._data.depth)]
            ports = [port._data for port in memory._read_ports if port._domain != "comb"]
            for place, value in enumerate([*values, *ports]):
                word = contents.getrandbits(len(value)) ^ ((1 << len(value)) - 1 if earlier is not None else 0)
                ctx.set(value, word)
                if place >= rows:
                    (beyond if place < len(values) else registers).append((value, word))
        neighbours = _Neighbours(inputs, handshakes, Random(SEED))
        for cycles, chance in EPISODES:
            for cycle in range(cycles):
                reset.append(cycle == 0)
                ctx.set(domain.rst, reset[-1])
                if earlier is None:
                    driven.append(_joined(inputs, [neighbours.set(ctx, member, chance) for member in inputs]))
                else:
                    driven.append(earlier.driven[len(driven)])
                    _drive(ctx, inputs, driven[-1])
                seen = {member.name: ctx.get(member.value) for member in outputs}
                answered.append(_joined(outputs, [seen[member.name] for member in outputs]))
                shown = [
                    not reset[-1] and (member.name not in payloads or bool(seen[payloads[member.name].name]))
                    for member in outputs
                    for _ in member.ports
                ]
                checked.append(sum(flag << number for number, flag in enumerate(shown)))
                neighbours.look(ctx)
                await ctx.tick()
                # Amaranth's simulation takes a reset for one of a memory's output register, which has none.
                for value, word in [*beyond, *(registers if reset[-1] else ())]:
                    ctx.set(value, word)
            neighbours.forget()

    simulator.add_clock(PERIOD)
    simulator.add_testbench(script)
    simulator.run()
    return Recording(
        inputs=tuple(port for member in inputs for port in member.ports),
        outputs=tuple(port for member in outputs for port in member.ports),
        driven=tuple(driven),
        reset=tuple(reset),
        answered=tuple(answered),
        checked=tuple(checked),
    )


def _memories(fragment: Fragment) -> Iterator[tuple[MemoryInstance, int]]:
    """Memories whose contents at the begin nobody gives, with rows as far as addresses reach, and their own number of rows."""
    for below, *_ in fragment.subfragments:
        if isinstance(below, MemoryInstance) and not any(below._data._init._raw):
            rows = below._data.depth
            below._data = MemoryData(shape=below._data.shape, depth=1 << max(0, rows - 1).bit_length(), init=[])
            yield below, rows
        yield from _memories(below)


def _drive(ctx: Any, inputs: Sequence[Member], word: int) -> None:
    """Inputs from the number that :func:`_joined` makes of them."""
    for member in inputs:
        value = 0
        for port in member.ports:
            value |= (word & (1 << port.width) - 1) << port.low
            word >>= port.width
        ctx.set(member.value, value)


def _in_domain(block: Block, domain: ClockDomain) -> Module:
    """The block with a clock; also one without registers, which has none."""
    clocked = Module()
    clocked.domains.sync = domain
    clocked.submodules.dut = block
    clocked.d.sync += Signal().eq(0)
    return clocked


def _handshakes(found: Sequence[Member]) -> list[_Handshake]:
    """Members whose names end in ``valid`` with those of the same stem that end in ``ready``: streams, channels of a bus."""
    named = {member.name: member for member in found}
    shakes = []
    for name, valid in named.items():
        stem = name.removesuffix("valid")
        ready = named.get(f"{stem}ready")
        if stem != name and ready is not None and ready.is_input != valid.is_input:
            payload = tuple(
                member
                for other, member in named.items()
                if other.startswith(stem) and member.is_input == valid.is_input and member is not valid
            )
            shakes.append(_Handshake(valid=valid, ready=ready, payload=payload))
    return shakes


class _Neighbours:
    """What drives the inputs: offers stay until they are taken, and everything else changes by chance."""

    def __init__(self, inputs: Sequence[Member], handshakes: Sequence[_Handshake], random: Random) -> None:
        self.random = random
        self.offers = {shake.valid.name: shake for shake in handshakes if shake.valid.is_input}
        self.payloads = {member.name: shake.valid.name for shake in self.offers.values() for member in shake.payload}
        self.readies = {shake.ready.name for shake in handshakes if shake.ready.is_input}
        self.offered: set[str] = set()
        self.begun: set[str] = set()
        self.decided: set[str] = set()
        self.values = {member.name: 0 for member in inputs}

    def set(self, ctx: Any, member: Member, chance: float) -> int:
        """Drives a member for this cycle, and returns its value."""
        name = member.name
        if name in self.offers:
            self._decide(name, chance)
            self.values[name] = int(name in self.offered)
        elif name in self.payloads:
            self._decide(self.payloads[name], chance)
            if self.payloads[name] in self.begun:
                self.values[name] = self._value(member)
        elif name in self.readies:
            self.values[name] = int(self.random.random() < chance)
        elif self.random.random() < CHANGE:
            self.values[name] = self._value(member)
        ctx.set(member.value, self.values[name])
        return self.values[name]

    def _decide(self, name: str, chance: float) -> None:
        """Whether a new offer begins in this cycle: asked once a cycle, by whichever member of it comes first."""
        if name in self.decided:
            return
        self.decided.add(name)
        if name not in self.offered and self.random.random() < chance:
            self.offered.add(name)
            self.begun.add(name)

    def look(self, ctx: Any) -> None:
        """At the end of a cycle: offers that were taken are over."""
        self.offered -= {name for name in self.offered if ctx.get(self.offers[name].ready.value)}
        self.begun, self.decided = set(), set()

    def forget(self) -> None:
        """A reset takes all offers back."""
        self.offered.clear()

    def _value(self, member: Member) -> int:
        """Small numbers often, extremes now and then, and of names one that there is."""
        word = 0
        for port in member.ports:
            kind, bits = self.random.getrandbits(3), self.random.getrandbits(port.width)
            if port.codes:
                bits = port.codes[bits % len(port.codes)][0]
            elif kind < 4:
                bits &= (1 << min(port.width, 1 + kind)) - 1
            elif kind == 4:
                bits = (1 << port.width) - 1
            word |= bits << port.low
        return word


def _joined(those: Sequence[Member], values: Sequence[int]) -> int:
    """Values of members as one number, the first at the lowest bits, as their ports follow each other."""
    word, low = 0, 0
    for member, value in zip(those, values, strict=True):
        for port in member.ports:
            word |= (value >> port.low & (1 << port.width) - 1) << low
            low += port.width
    return word


def bench_files(
    recording: Recording, *, name: str, top: str, pins: Sequence[Port], netlist: str, origin: str
) -> dict[str, str]:
    """Bench, its two images, makefile and the netlist for Icarus, by relative path.

    pins : all ports of the module, clock and reset among them. netlist : the modules as Icarus reads them.
    """
    places = {name: name for name in (BLOCK_CLOCK, BLOCK_RESET)}
    for ports, word in ((recording.inputs, "driven"), (recording.outputs, "answered")):
        low = 0
        for port in ports:
            places[port.name] = f"{word}[{low + port.width - 1}:{low}]"
            low += port.width
    wide = max(len(port.name) for port in pins)
    bits = {word: sum(port.width for port in ports) for word, ports in _ways(recording).items()}
    texts: Mapping[str, object] = {
        "ORIGIN": origin,
        "NAME": name,
        "TOP": top,
        "CYCLES": len(recording.driven),
        "INPUT_BITS": bits["driven"],
        "OUTPUT_BITS": bits["answered"],
        "OUTPUTS": len(recording.outputs),
        "COUNT": recording.values,
        "VALUES": f"{recording.values:,}",
        "MOVING": f"{recording.moving:,}",
        "EPISODES": len(EPISODES),
        "PORTS": ",\n".join(f"      .{port.name:<{wide}} ({places[port.name]})" for port in pins),
        "CHECKS": "\n".join(
            f'      if (checked[{number}]) compare("{port.name}", {places[port.name]}, '
            f"{places[port.name].replace('answered', 'wanted')});"
            for number, port in enumerate(recording.outputs)
        ),
    }
    bench = _TEMPLATE.read_text(encoding="utf-8")
    for key, text in texts.items():
        bench = bench.replace(f"@{key}@", str(text))
    outputs = len(recording.outputs)
    driven = [
        int(reset) << bits["driven"] | word for reset, word in zip(recording.reset, recording.driven, strict=True)
    ]
    wanted = [mask << bits["answered"] | word for mask, word in zip(recording.checked, recording.answered, strict=True)]
    return {
        BENCH: bench,
        STIMULUS: _image(driven, bits["driven"] + 1),
        EXPECTED: _image(wanted, bits["answered"] + outputs),
        MAKEFILE: makefile(),
        NETLIST: f"// {origin}\n\n{netlist}",
    }


def _ways(recording: Recording) -> dict[str, tuple[Port, ...]]:
    return {"driven": recording.inputs, "answered": recording.outputs}


def _image(words: Sequence[int], width: int) -> str:
    """Lines for $readmemh."""
    return "".join(f"{word:0{-(-width // 4)}x}\n" for word in words)
