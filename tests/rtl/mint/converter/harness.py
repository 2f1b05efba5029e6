"""What the checks of the converter's blocks share: stimulus, how a block is driven and read, models of the formats."""

import random

from amaranth.hdl import Elaboratable, Module, Value
from amaranth.sim import Simulator

from tests.rtl.mint.streams import PAUSES

PATTERNS = (("never", "never"), ("often", "never"), ("never", "often"), ("seldom", "seldom"))
LANES, BITS = 4, 16


class Held(Elaboratable):
    """A block some of whose inputs hold still."""

    def __init__(self, block, **inputs):
        self.block, self.inputs = block, inputs

    def __getattr__(self, name):
        return getattr(self.block, name)

    def elaborate(self, platform):
        m = Module()
        m.submodules.block = self.block
        m.d.comb += [getattr(self.block, name).eq(value) for name, value in self.inputs.items()]
        return m


def pauses(pattern, given, wanted):
    idle, stall = pattern
    return {**dict.fromkeys(given, PAUSES[idle]), **dict.fromkeys(wanted, PAUSES[stall])}


def groups_of(rng, items, lanes, *, full=False):
    """Ragged groups of 1 to ``lanes`` items, or full ones; at least one, with whether it is the last."""
    found, at = [], 0
    while at < len(items):
        size = lanes if full else rng.randint(1, lanes)
        found.append(items[at : at + size])
        at += size
    found = found or [[]]
    return [(part, int(n == len(found) - 1)) for n, part in enumerate(found)]


def filled(items, lanes, rng):
    """Lanes behind the items hold anything."""
    return [*items, *(rng.getrandbits(8) for _ in range(lanes - len(items)))]


def fields(rng, items, lanes, **options):
    """Groups of (first, second, value)."""
    return [
        {
            "first": filled([item[0] for item in part], lanes, rng),
            "second": filled([item[1] for item in part], lanes, rng),
            "values": filled([item[2] for item in part], lanes, rng),
            "count": len(part),
            "last": last,
        }
        for part, last in groups_of(rng, items, lanes, **options)
    ]


def records(rng, items, lanes, **options):
    return [
        {"records": filled(part, lanes, rng), "count": len(part), "last": last}
        for part, last in groups_of(rng, items, lanes, **options)
    ]


def positions(rng, items, lanes, *, gaps=False):
    """Groups of (position, value); with ``gaps`` some are empty."""
    found = []
    for part, last in groups_of(rng, items, lanes):
        if gaps and rng.random() < 0.3:
            found.append(([], 0))
        found.append((part, last))
    if gaps and rng.random() < 0.5:
        found[-1] = (found[-1][0], 0)
        found.append(([], 1))
    return [
        {
            "positions": filled([item[0] for item in part], lanes, rng),
            "values": filled([item[1] for item in part], lanes, rng),
            "count": len(part),
            "last": last,
        }
        for part, last in found
    ]


def cells(rng, items, columns, lanes, **options):
    return [
        {
            **group,
            "rows": [p // columns & 0xFFFFFFFF for p in group["positions"]],
            "columns": [p % columns for p in group["positions"]],
        }
        for group in positions(rng, items, lanes, **options)
    ]


def matrix(rng, places, density, bits=BITS):
    """Rising positions and values other than 0."""
    return [(p, rng.randint(1, (1 << bits) - 1)) for p in range(places) if rng.random() < density]


def run_until_last(dut, given, port, *, pattern=("never", "never")) -> list[dict]:
    """All items of an output up to the one with ``last``; nothing comes behind it, and nothing changes while it is refused."""
    idle, stall = (PAUSES[name] for name in pattern)
    found: list = []

    async def bench(ctx):
        rng = random.Random(str(pattern))
        waiting = {name: list(items) for name, items in given.items()}
        offered = dict.fromkeys(given, False)
        stream = getattr(dut, port)
        held, spare = None, 10
        for _ in range(20_000):
            for name, items in waiting.items():
                if items and not offered[name] and not idle(rng):
                    offered[name] = True
                    ctx.set(getattr(dut, name).payload, items[0])
                ctx.set(getattr(dut, name).valid, offered[name])
            ctx.set(stream.ready, not stall(rng))
            for name, items in waiting.items():
                if offered[name] and ctx.get(getattr(dut, name).ready):
                    items.pop(0)
                    offered[name] = False
            if ctx.get(stream.valid):
                bits = ctx.get(Value.cast(stream.payload))
                assert held in (None, bits), f"{port} changed what it offered"
                held = bits
                if ctx.get(stream.ready):
                    held = None
                    item = ctx.get(stream.payload)
                    found.append({name: plain(item[name]) for name in item.shape().members})
            await ctx.tick()
            spare -= bool(found) and bool(found[-1]["last"])
            if not spare:
                break
        assert not any(waiting.values()), f"{port} ended before its inputs"

    simulate(dut, bench)
    assert [item["last"] for item in found] == [0] * (len(found) - 1) + [1]
    return found


def simulate(dut, bench):
    simulator = Simulator(dut)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()


def plain(value):
    return (
        [plain(part) for part in value] if hasattr(value, "shape") and hasattr(value.shape(), "length") else int(value)
    )


def entries_of(items):
    """(position, value) of vectors by presence or of groups by count."""
    found = []
    for item in items:
        used = (
            [n for n in range(len(item["values"])) if item["present"] >> n & 1]
            if "present" in item
            else range(item["count"])
        )
        found += [(item["positions"][n], item["values"][n]) for n in used]
    return found


def stopped(dut, given, ports, flags, cycles=50):
    """Flags of a block some cycles after everything was offered, with its outputs always taken."""
    found = {}

    async def bench(ctx):
        waiting = {name: list(items) for name, items in given.items()}
        for port in ports:
            ctx.set(getattr(dut, port).ready, 1)
        for _ in range(cycles):
            for name, items in waiting.items():
                ctx.set(getattr(dut, name).valid, bool(items))
                if items:
                    ctx.set(getattr(dut, name).payload, items[0])
            for name, items in waiting.items():
                if items and ctx.get(getattr(dut, name).ready):
                    items.pop(0)
            await ctx.tick()
        found.update({name: ctx.get(getattr(dut, name)) for name in flags})

    simulate(dut, bench)
    return found


def runs_of(found, bits):
    """Runs and levels, by the definition."""
    longest, place, pairs = (1 << bits) - 1, 0, []
    for position, value in found:
        gap = position - place
        while gap > longest:
            pairs.append((longest, 0))
            gap -= longest + 1
        pairs.append((gap, value))
        place = position + 1
    return pairs


def beats_of(found, places, beat_bits, dense, rng=None):
    """Beats of a mask or of values; behind the last place anything where ``rng`` is given."""
    width = BITS if dense else 1
    bits = sum((value if dense else 1) << (p * width) for p, value in found)
    count = -(-places * width // beat_bits)
    if rng is not None:
        end = places * width if dense else -(-places // 8) * 8
        bits |= rng.getrandbits(max(1, count * beat_bits)) >> end << end if end < count * beat_bits else 0
    return [bits >> (n * beat_bits) & ((1 << beat_bits) - 1) for n in range(count)]
