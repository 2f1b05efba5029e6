"""The write window of the memory engine: what lies outside never reaches the bus, and the engine still comes to rest."""

import itertools
import random

import pytest

from tests.rtl.memory.engine_bench import EngineBench, engine, random_beats

WINDOW = {"begin": 0x1000, "end": 0x3000}
TOP = 1 << 32
# A request's address and beats of 8 bytes, and its first burst that has a line outside, None where it has none.
REQUESTS = {
    "first line": ((0x1000, 1), None),
    "last line": ((0x2FF8, 1), None),
    "to the end of the window": ((0x2C00, 128), None),
    "line before": ((0xFF8, 1), 0xFF8),
    "line behind": ((0x3000, 1), 0x3000),
    "begins before": ((0xFF8, 2), 0xFF8),
    "ends behind": ((0x2FF0, 3), 0x3000),
    "far away": ((0xFFFF_0000, 4), 0xFFFF_0000),
    "wraps at the top": ((TOP - 16, 4), TOP - 16),
    "zero": ((0, 1), 0),
}


def writing(requests, *, begin, end, **memory):
    """Gives the requests to writer 0, and to writer 1 what is inside; returns the bench and the error that was seen."""
    bench = EngineBench(engine(readers=1, writers=2), **memory)
    dut, seen = bench.dut, {}

    async def drive(ctx, port, items):
        for item in items:
            ctx.set(port.payload, item)
            ctx.set(port.valid, 1)
            await ctx.tick().until(port.ready)
        ctx.set(port.valid, 0)

    async def window(ctx):
        ctx.set(dut.write_begin, begin)
        ctx.set(dut.write_end, end)
        for _ in range(700):
            await ctx.tick()
            if ctx.get(dut.error.valid) and not seen:
                names = ("write", "client", "outside", "address")
                seen.update({name: ctx.get(getattr(dut.error, name)) for name in names})
        assert not ctx.get(dut.busy), "the engine does not come to rest"
        seen["idle"] = [ctx.get(dut.write_idle[n]) for n in range(2)]

    rng = random.Random(1)
    for n, mine in enumerate((requests, [(0x2000, 8)])):
        beats = [beat for _, count in mine for beat in random_beats(rng, count)]
        heads = [{"address": address, "beats": count} for address, count in mine]
        tails = [{"data": value, "strobe": strobe} for value, strobe in beats]
        bench.extra.append(lambda ctx, n=n, heads=heads: drive(ctx, dut.write_request[n], heads))
        bench.extra.append(lambda ctx, n=n, tails=tails: drive_some(ctx, dut.write_data[n], tails))

    async def drive_some(ctx, port, items):
        """As far as the engine takes them."""
        for item in items:
            ctx.set(port.payload, item)
            ctx.set(port.valid, 1)
            for _ in range(300):
                taken = ctx.get(port.ready)
                await ctx.tick()
                if taken:
                    break
            else:
                break
        ctx.set(port.valid, 0)

    bench.extra.append(window)
    bench.run()
    return bench, seen


@pytest.mark.parametrize("name", REQUESTS)
@pytest.mark.parametrize("rough", [False, True], ids=["calm", "rough"])
def test_window(name, rough):
    (address, beats), culprit = REQUESTS[name]
    conditions = {"latency": (1, 9), "stall": 0.3, "shuffle": True} if rough else {}
    bench, seen = writing([(address, beats)], **WINDOW, **conditions)
    assert all(WINDOW["begin"] <= at < WINDOW["end"] for at in bench.memory.written)
    if culprit is None:
        assert seen == {"idle": [1, 1]}
        assert {address + 8 * beat for beat in range(beats)} <= bench.memory.written
    else:
        told = {name: seen[name] for name in ("write", "client", "outside", "address")}
        assert told == {"write": 1, "client": 0, "outside": 1, "address": culprit}
        assert not seen["idle"][0]
        # The bursts before it went out.
        assert set(range(address, culprit, 8)) <= bench.memory.written


def test_nothing_follows_what_was_held_back():
    """Its data still wait in their queue, so that a later burst would send the wrong ones."""
    bench, seen = writing([(0x4000, 8), (0x1000, 8)], **WINDOW)
    assert seen["outside"] and seen["address"] == 0x4000
    assert not {at for at in bench.memory.written if at < 0x2000}


@pytest.mark.parametrize(("begin", "end"), [(0, 0), (0, TOP - 8), (0x1000, 0)])
def test_an_end_of_zero_is_the_end_of_the_address_space(begin, end):
    bench, seen = writing([(TOP - 32, 3)], begin=begin, end=end)
    assert seen == {"idle": [1, 1]} and TOP - 16 in bench.memory.written
    last, seen = writing([(TOP - 8, 1)], begin=begin, end=end)
    assert seen["idle"][0] == (end == 0) and (TOP - 8 in last.memory.written) == (end == 0)


def test_an_error_response_in_the_same_cycle_is_reported_first():
    """Whenever the two meet, neither is lost: the first stays, and the window is closed all the same."""
    kinds = set()
    for beats in range(1, 16):
        requests = [(0x1000, 1), (0x2000, beats), (0x4000, 1)]
        bench, seen = writing(requests, **WINDOW, latency=(6, 6), bad={0x1000: 2})
        kinds.add(seen["outside"])
        assert seen["address"] == (0x4000 if seen["outside"] else 0x1000)
        assert all(at < 0x3000 for at in bench.memory.written)
    assert kinds == {0, 1}


# What each kind of error is reported as, first those that win where several are due in one cycle. A bus error goes before what
# was held back, and a read's before a write's: the later one may be what the data of the first have led to.
RANKED = {
    "read": {"write": 0, "outside": 0, "response": 3, "address": 0x2800},
    "write": {"write": 1, "outside": 0, "response": 2, "address": 0x1000},
    "outside": {"write": 1, "outside": 1, "address": 0x4000},
}


def first_report(delays):
    """Cycle and contents of the error report where each kind of error is asked for after its delay."""
    bench = EngineBench(engine(readers=1, writers=2), latency=(3, 3), bad={0x1000: 2, 0x2800: 3})
    dut, found = bench.dut, {}

    async def drive(ctx):
        # Data are there before any request, so that a delay moves its burst and nothing else.
        requests = {"read": dut.read_request[0], "write": dut.write_request[0], "outside": dut.write_request[1]}
        ctx.set(dut.write_begin, 0x1000)
        ctx.set(dut.write_end, 0x3000)
        ctx.set(dut.read_data[0].ready, 1)
        for port in dut.write_data:
            ctx.set(port.payload, {"data": 1, "strobe": 0xFF})
            ctx.set(port.valid, 1)
        await ctx.tick()
        for port in dut.write_data:
            ctx.set(port.valid, 0)
        await ctx.tick().repeat(10)
        for cycle in range(120):
            for kind, delay in delays.items():
                ctx.set(requests[kind].payload, {"address": RANKED[kind]["address"], "beats": 1})
                ctx.set(requests[kind].valid, cycle == delay)
                assert cycle != delay or ctx.get(requests[kind].ready)
            await ctx.tick()
            if ctx.get(dut.error.valid) and not found:
                report = {
                    name: ctx.get(getattr(dut.error, name)) for name in ("write", "outside", "response", "address")
                }
                found.update(cycle=cycle, report=report)
        assert not ctx.get(dut.busy)
        # The first report stays, whatever came behind it.
        assert {name: ctx.get(getattr(dut.error, name)) for name in found["report"]} == found["report"]

    bench.extra.append(drive)
    bench.run()
    assert all(0x1000 <= at < 0x3000 for at in bench.memory.written)
    return found["cycle"], found["report"]


@pytest.fixture(scope="module")
def alone():
    """When each kind is reported that is asked for at once and alone."""
    return {kind: first_report({kind: 0})[0] for kind in RANKED}


@pytest.mark.parametrize(
    "kinds",
    [kinds for count in (1, 2, 3) for kinds in itertools.combinations(RANKED, count)],
    ids="+".join,
)
def test_of_errors_due_in_one_cycle_the_bus_s_is_reported_a_read_s_first(alone, kinds):
    """Due in one cycle: each alone would be reported then. One that is due a cycle before the others is always the one."""
    due = max(alone.values()) + 5
    cycle, report = first_report({kind: due - alone[kind] for kind in kinds})
    assert cycle == due and RANKED[kinds[0]].items() <= report.items()
    for early in kinds:
        cycle, report = first_report({kind: due - alone[kind] - (kind == early) for kind in kinds})
        assert cycle == due - 1 and RANKED[early].items() <= report.items(), early
