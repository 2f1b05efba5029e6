"""A host array adds and divides by itself, makes prefix sums and long divisions for a converter, and does one thing at a time."""

import random

import pytest
from amaranth.hdl import Module
from amaranth.lib.wiring import connect, flipped
from amaranth.sim import Simulator

from rtl.lib.block import Block
from rtl.mint.host.adder_array import AdderArray
from rtl.mint.host.divider_row import DividerRow
from rtl.mint.host.host_array import HostArray
from rtl.mint.host.hosted_divmod import HOST_PORTS, HostedDivmod
from rtl.mint.host.hosted_sum import HostedSum
from rtl.mint.host.sum_clients import SumClients
from tests.rtl.mint.streams import PAUSES, run

MASK = (1 << 32) - 1


def simulate(dut, bench):
    simulator = Simulator(dut)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()


def bits(rng, width):
    """Often the largest number, or 0."""
    return rng.choice([0, (1 << width) - 1, rng.getrandbits(width), rng.getrandbits(width)])


LAID = {
    "none": {"form": "none"},
    "chain_of_16": {"form": "serial_chain", "inputs": 16, "limbs": 1},
    "parallel_of_32": {"form": "highly_parallel", "inputs": 32, "limbs": 1},
    "wide": {"form": "work_efficient"},
}


@pytest.mark.parametrize("laid", LAID)
def test_an_array_adds_down_its_columns(laid):
    dut = AdderArray(**LAID[laid])
    rng = random.Random(laid)
    count = 6
    vectors = [[bits(rng, 32) for _ in range(16)] for _ in range(count)]
    operands = [[[bits(rng, 32) for _ in range(16)] for _ in range(16)] for _ in range(count)]
    found = []

    async def bench(ctx):
        for cycle in range(count + 40):
            ctx.set(dut.vector_valid, cycle < count)
            if cycle < count:
                ctx.set(dut.vector, vectors[cycle])
            for row in range(16):  # those of row n come n cycles later
                if 0 <= cycle - row < count:
                    ctx.set(dut.operands[row], operands[cycle - row][row])
            if ctx.get(dut.total_valid):
                found.append((cycle, list(ctx.get(dut.totals))))
            await ctx.tick()

    simulate(dut, bench)
    wanted = [
        [(vector[c] + sum(row[c] for row in own)) & MASK for c in range(16)]
        for vector, own in zip(vectors, operands, strict=True)
    ]
    assert found == [(16 + n, totals) for n, totals in enumerate(wanted)]


@pytest.mark.parametrize("laid", [name for name in LAID if name != "none"])
def test_prefix_sums_are_laid_over_an_array(laid):
    """Arrays of several vectors, with cycles in which none comes."""
    dut = AdderArray(**LAID[laid])
    rng = random.Random(laid)
    width = 32 * dut.limbs
    vectors = [
        (n == 0 or rng.random() < 0.3, [bits(rng, width) for _ in range(dut.inputs)])
        if rng.random() < 0.7 or n == 0
        else None
        for n in range(40)
    ]
    found, wanted, total = [], [], 0
    for item in vectors:
        if item is not None:
            total = 0 if item[0] else total
            wanted.append([])
            for value in item[1]:
                total = (total + value) & ((1 << width) - 1)
                wanted[-1].append(total)

    async def bench(ctx):
        ctx.set(dut.shared, 1)
        for cycle in range(len(vectors) + dut.latency + 2):
            item = vectors[cycle] if cycle < len(vectors) else None
            ctx.set(dut.values_valid, item is not None)
            ctx.set(dut.values, item[1] if item else [bits(rng, width)] * dut.inputs)
            ctx.set(dut.first, item[0] if item else rng.random() < 0.5)
            if ctx.get(dut.sums_valid):
                found.append(list(ctx.get(dut.sums)))
            await ctx.tick()

    simulate(dut, bench)
    assert found == wanted


@pytest.mark.parametrize("shares", [False, True])
def test_a_row_divides_pairs(shares):
    dut = DividerRow(shares=shares)
    rng = random.Random(1)
    pairs = [[(bits(rng, 32), max(1, bits(rng, rng.randint(1, 32)))) for _ in range(8)] for _ in range(12)]
    pairs[3][0] = (77, 0)
    found = []

    async def bench(ctx):
        for cycle in range(len(pairs) + 34):
            ctx.set(dut.pair_valid, cycle < len(pairs))
            if cycle < len(pairs):
                ctx.set(dut.dividends, [a for a, _ in pairs[cycle]])
                ctx.set(dut.divisors, [b for _, b in pairs[cycle]])
            if ctx.get(dut.quotient_valid):
                found.append((list(ctx.get(dut.quotients)), list(ctx.get(dut.remainders))))
            await ctx.tick()

    simulate(dut, bench)
    assert len(found) == len(pairs)
    for (quotients, remainders), given in zip(found, pairs, strict=True):
        for quotient, remainder, (a, b) in zip(quotients, remainders, given, strict=True):
            assert (quotient, remainder) == divmod(a, b) if b else quotient == MASK


class Hosted(Block):
    """A hosted prefix sum and a hosted divider at one host: streams of the two, and what the host computes by itself.

    Timing
    ------
    That of its parts.
    """

    def __init__(self, *, lanes, form, **sizes):
        self.sums, self.divmod, self.host = HostedSum(**sizes), HostedDivmod(lanes=lanes), HostArray(form=form)
        members = {name: self.divmod.signature.members[name] for name in ("divisor", "dividends", "results")}
        members |= {name: self.sums.signature.members[name] for name in ("i", "o", "short")}
        super().__init__(
            members | {name: self.host.signature.members[name] for name in ("compute", "claimed", "owned")}
        )

    def build(self, platform):
        m = Module()
        m.submodules.sums, m.submodules.divmod, m.submodules.host = self.sums, self.divmod, self.host
        m.submodules.clients = clients = SumClients(count=1)
        connect(m, self.sums.host, clients.clients[0])
        for name in ("i", "divisor", "dividends"):
            connect(m, flipped(getattr(self, name)), getattr(self.sums if name == "i" else self.divmod, name))
        connect(m, self.sums.o, flipped(self.o))
        connect(m, self.divmod.results, flipped(self.results))
        connect(m, flipped(self.compute), self.host.compute)
        host = self.host
        m.d.comb += [self.sums.short.eq(self.short), host.claimed.eq(self.claimed), self.owned.eq(host.owned)]
        m.d.comb += [host.sum_valid.eq(clients.sum_valid), host.sum.eq(clients.sum), clients.owned.eq(host.owned)]
        m.d.comb += [clients.sums_valid.eq(host.sums_valid), clients.sums.eq(host.sums)]
        for name in HOST_PORTS:
            inner, outer = getattr(self.divmod, name), getattr(host, name)
            m.d.comb += outer.eq(inner) if name in ("division_valid", "division") else inner.eq(outer)
        return m


class Claimed(Hosted):
    """The converter has the host from the beginning.

    Timing
    ------
    That of its parts.
    """

    def build(self, platform):
        m = super().build(platform)
        m.d.comb += self.host.claimed.eq(1)
        return m


@pytest.mark.parametrize("inputs", [4, 32])
@pytest.mark.parametrize("pauses", [("never", "never"), ("seldom", "often")])
def test_hosted_sums_are_the_plain_ones(inputs, pauses):
    """Also those that pass 2^64."""
    dut = Claimed(lanes=4, form="work_efficient", inputs=inputs, width=60, sum_width=66)
    rng = random.Random(inputs)
    items = [{"first": rng.random() < 0.1, "values": [bits(rng, 60) for _ in range(inputs)]} for _ in range(30)]
    wanted, total = [], 0
    for item in items:
        total = 0 if item["first"] else total
        wanted.append([])
        for value in item["values"]:
            total += value
            wanted[-1].append(total % (1 << 66))
    assert max(map(max, wanted)) >= 1 << 64
    result = run(
        dut,
        {"i": items},
        {"o": len(items)},
        pause={"i": PAUSES[pauses[0]], "o": PAUSES[pauses[1]]},
        view=lambda port, payload: (payload["first"], list(payload["sums"])),
    )
    firsts = [bool(item["first"]) or n == 0 for n, item in enumerate(items)]
    assert result.items["o"] == list(zip(firsts, wanted, strict=True))
    if pauses == ("never", "never"):
        part = max(1, inputs // 8)
        gaps = [b - a for a, b in zip(result.cycles["o"], result.cycles["o"][1:], strict=False)]
        assert set(gaps) == {part}


@pytest.mark.parametrize(("lanes", "divisor"), [(2, 1 << 32), (4, 1), (16, 0x123456789 >> 1)])
@pytest.mark.parametrize("pauses", [("never", "never"), ("seldom", "often")])
def test_hosted_divisions_are_exact(lanes, divisor, pauses):
    dut = Claimed(lanes=lanes, form="serial_chain", inputs=4, width=8)
    rng = random.Random(lanes)
    vectors = [[bits(rng, 64) for _ in range(lanes)] for _ in range(75)]
    result = run(
        dut,
        {"divisor": [divisor], "dividends": vectors},
        {"results": len(vectors)},
        pause={"dividends": PAUSES[pauses[0]], "results": PAUSES[pauses[1]]},
        view=lambda port, payload: (list(payload["quotients"]), list(payload["remainders"])),
    )
    found = [list(zip(*one, strict=True)) for one in result.items["results"]]
    assert found == [[divmod(value, divisor) for value in vector] for vector in vectors]


def test_the_array_changes_hands_when_it_is_empty():
    """What has begun before the claim comes out right; nothing begins until the array is given back."""
    dut = Hosted(lanes=4, form="highly_parallel", inputs=8, width=32)
    rng = random.Random(5)
    vectors = [[bits(rng, 32) for _ in range(16)] for _ in range(60)]
    values = [bits(rng, 32) for _ in range(8)]
    totals, quotients, sums, taken, owned = [], [], [], [], []

    async def bench(ctx):
        ctx.set(dut.o.ready, 1)
        ctx.set(dut.i.payload, {"first": 1, "values": values})
        for cycle in range(180):
            claimed = 10 <= cycle < 100
            ctx.set(dut.claimed, claimed)
            ctx.set(dut.compute.vector_valid, 1)
            ctx.set(dut.compute.pair_valid, 1)
            ctx.set(dut.compute.vector, vectors[len(taken) % 60])
            ctx.set(dut.compute.dividends, [len(taken)] * 8)
            ctx.set(dut.compute.divisors, [7] * 8)
            ctx.set(dut.i.valid, 10 <= cycle and not sums)
            if ctx.get(dut.compute.ready):
                taken.append(cycle)
            if ctx.get(dut.compute.total_valid):
                totals.append(list(ctx.get(dut.compute.totals)))
            if ctx.get(dut.compute.quotient_valid):
                quotients.append((ctx.get(dut.compute.quotients[3]), ctx.get(dut.compute.remainders[3])))
            if ctx.get(dut.o.valid) and not sums:
                sums.append(list(ctx.get(dut.o.payload.sums)))
            owned.append(ctx.get(dut.owned))
            await ctx.tick()

    simulate(dut, bench)
    assert taken == [*range(10), *range(101, 180)]
    assert owned.index(1) > 9 + 32
    assert owned == [int(owned.index(1) <= cycle <= 100) for cycle in range(180)]
    assert sums == [[sum(values[: n + 1]) & MASK for n in range(8)]]
    assert len(totals) > 60
    assert totals == [vectors[n % 60] for n in range(len(totals))]
    assert quotients == [divmod(n, 7) for n in range(len(quotients))]


def test_refuses_impossible_parameters():
    with pytest.raises(ValueError, match=r"^Rows must be 32 or more for the serial_chain of 16 values, not 16$"):
        AdderArray(form="serial_chain", inputs=16, columns=8, limbs=1)
    with pytest.raises(ValueError, match=r"^Value width must be an integer from 1 to 60, not 61$"):
        HostedSum(inputs=8, width=61)
