"""Runs a block of streams in Amaranth's simulator, with pauses on each port, and checks the rules of a stream."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from amaranth.hdl import ClockDomain, Module, Value
from amaranth.sim import Simulator

Pause = Callable[[random.Random], bool]

PAUSES: dict[str, Pause] = {
    "never": lambda rng: False,
    "seldom": lambda rng: rng.random() < 0.25,
    "often": lambda rng: rng.random() < 0.7,
}
#: Pauses of what is asked, of what comes and of what goes: each alone, and together.
BEHAVIOURS = (
    ("never", "never", "often"),
    ("never", "often", "never"),
    ("often", "never", "never"),
    ("seldom", "seldom", "seldom"),
    ("never", "often", "often"),
)


@dataclass
class Run:
    """What came out of each output, and the cycle of each item in and out."""

    items: dict[str, list[Any]] = field(default_factory=dict)
    cycles: dict[str, list[int]] = field(default_factory=dict)


def run(
    dut: Any,
    given: Mapping[str, Sequence[Any]],
    wanted: Mapping[str, int],
    *,
    pause: Mapping[str, Pause] | None = None,
    seed: int = 1,
    limit: int = 20_000,
    reset_after: int | None = None,
    view: Callable[[str, Any], Any] = lambda port, payload: payload,
    after: Callable[[Any], None] = lambda ctx: None,
    steady: Mapping[str, int] | None = None,
) -> Run:
    """Sends the items of ``given`` into the inputs of those names, until ``wanted`` items have left each output.

    ``reset_after``: so many cycles of all of it come before a reset, and do not count. ``view``: called with each item that
    leaves, as soon as it does; ``after``: called at the end. ``steady``: members that keep a value.
    """
    pause = pause or {}
    never = PAUSES["never"]
    result = Run({port: [] for port in wanted}, {port: [] for port in (*given, *wanted)})

    async def bench(ctx):
        rngs = {port: random.Random(f"{port} {seed}") for port in (*given, *wanted)}
        offered = dict.fromkeys(given, False)
        waiting = {port: list(reversed(items)) for port, items in given.items()}
        held: dict[str, Any] = dict.fromkeys(wanted)
        cycle = 0
        spare = 12
        while spare:
            for port in given:
                stream = getattr(dut, port)
                if not offered[port] and waiting[port] and not pause.get(port, never)(rngs[port]):
                    ctx.set(stream.payload, waiting[port][-1])
                    offered[port] = True
                ctx.set(stream.valid, offered[port])
            for port in wanted:
                ctx.set(getattr(dut, port).ready, not pause.get(port, never)(rngs[port]))
            for port in given:
                if offered[port] and ctx.get(getattr(dut, port).ready):
                    waiting[port].pop()
                    offered[port] = False
                    result.cycles[port].append(cycle)
            for port in wanted:
                stream = getattr(dut, port)
                valid, ready = ctx.get(stream.valid), ctx.get(stream.ready)
                bits = ctx.get(Value.cast(stream.payload)) if valid else None
                assert held[port] is None or bits == held[port], f"{port} changed what it offered"
                held[port] = bits if valid and not ready else None
                if valid and ready:
                    result.items[port].append(view(port, ctx.get(stream.payload)))
                    result.cycles[port].append(cycle)
            cycle += 1
            await ctx.tick()
            if reset_after is not None and cycle == reset_after:
                return
            done = all(len(result.items[port]) >= count for port, count in wanted.items())
            spare -= done and not any(waiting.values())
            assert cycle < limit, f"stuck: { ({port: len(items) for port, items in result.items.items()}) } of {wanted}"
        after(ctx)

    async def whole(ctx):
        nonlocal reset_after
        for name, value in (steady or {}).items():
            ctx.set(getattr(dut, name), value)
        if reset_after is not None:
            await bench(ctx)
            reset_after = None
            for port in given:
                ctx.set(getattr(dut, port).valid, 0)
            for port in wanted:
                ctx.set(getattr(dut, port).ready, 0)
                result.items[port].clear()
            for port in (*given, *wanted):
                result.cycles[port].clear()
            ctx.set(reset, 1)
            await ctx.tick()
            ctx.set(reset, 0)
        await bench(ctx)

    reset, top = _with_reset(dut)
    simulator = Simulator(top)
    simulator.add_clock(1e-8)
    simulator.add_testbench(whole)
    simulator.run()
    surplus = {port: len(items) for port, items in result.items.items() if len(items) != wanted[port]}
    assert not surplus, f"too many items: {surplus}"
    return result


def _with_reset(dut: Any) -> tuple[Any, Any]:
    m = Module()
    m.domains.sync = domain = ClockDomain("sync")
    m.submodules.dut = dut
    return domain.rst, m
