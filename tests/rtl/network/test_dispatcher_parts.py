"""The parts of the dispatcher alone: the choice of a PE, the switch, the bound of a row, the groups that rows are cut into."""

import random
from typing import Any

import pytest
from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator

from rtl.network.job_switch import JobSwitch
from rtl.network.pe_picker import PePicker
from rtl.network.row_bound import RowBound
from rtl.network.row_grouper import RowGrouper

TOP = 2**32 - 1


def simulate(dut: Any, bench: Any) -> None:
    top = Module()
    top.submodules.dut = dut
    top.d.sync += Signal().eq(1)
    sim = Simulator(top)
    sim.add_clock(1e-8)
    sim.add_testbench(bench)
    sim.run()


@pytest.mark.parametrize("pes", [1, 2, 3, 9])
def test_the_next_free_pe_is_picked(pes: int) -> None:
    rng = random.Random(pes)
    dut = PePicker(pes=pes)

    async def bench(ctx: Any) -> None:
        for _ in range(300):
            ready, kept = rng.getrandbits(pes), rng.getrandbits(pes) & rng.getrandbits(pes)
            chosen, busy = rng.randrange(pes), rng.randrange(2)
            for name, value in (("ready", ready), ("kept", kept), ("chosen", chosen), ("busy", busy)):
                ctx.set(getattr(dut, name), value)
            await ctx.tick().repeat(dut.latency)
            turn = [n % pes for n in range(chosen + 1, chosen + 1 + pes)]
            free = [n for n in turn if ready >> n & 1 and not kept >> n & 1 and not (busy and n == chosen)]
            assert ctx.get(dut.any_free) == bool(free)
            assert not free or ctx.get(dut.pick) == free[0]

    simulate(dut, bench)


def test_the_switch_takes_each_leaf_to_its_pe() -> None:
    rng = random.Random(1)
    pes = 3
    dut = JobSwitch(pes=pes, address_width=16)

    async def bench(ctx: Any) -> None:
        for _ in range(300):
            to = rng.sample(range(pes), 2)
            ready = [rng.randrange(2) for _ in range(pes)]
            leaves = [
                {"length": rng.choice((0, 5)), "position": rng.getrandbits(9), "last": rng.randrange(2)} for _ in to
            ]
            valid = [rng.randrange(2) for _ in to]
            for n, (port, pe) in enumerate(((dut.groups, dut.group_pe), (dut.merges, dut.merge_pe))):
                ctx.set(port.payload, leaves[n])
                ctx.set(port.valid, valid[n])
                ctx.set(pe, to[n])
            for job, takes in zip(dut.jobs, ready, strict=True):
                ctx.set(job.ready, takes)
            assert [ctx.get(port.ready) for port in (dut.groups, dut.merges)] == [ready[pe] for pe in to]
            goes = [leaf for n, leaf in enumerate(leaves) if valid[n] and ready[to[n]]]
            assert ctx.get(dut.event_job) == sum(leaf["last"] for leaf in goes)
            assert ctx.get(dut.event_leaf) == sum(leaf["length"] != 0 for leaf in goes)
            for pe, job in enumerate(dut.jobs):
                mine = [leaf for n, leaf in enumerate(leaves) if valid[n] and to[n] == pe]
                assert ctx.get(job.valid) == bool(mine)
                for leaf in mine:
                    assert {name: ctx.get(job.payload[name]) for name in leaf} == leaf
            await ctx.tick()

    simulate(dut, bench)


def test_a_row_is_no_longer_than_its_leaves_or_the_tile() -> None:
    rng = random.Random(2)
    dut = RowBound()
    seen = {"columns": 0, "full": 0, "sum": 0}

    async def bench(ctx: Any) -> None:
        total = 0
        for _ in range(500):
            columns = rng.choice((3, 1000, TOP))
            ends, adds, length = rng.random() < 0.2, rng.random() < 0.7, rng.choice((0, 1, 400, 2**31, TOP))
            for name, value in (("columns", columns), ("row_ends", ends), ("adds", adds), ("length", length)):
                ctx.set(getattr(dut, name), value)
            assert ctx.get(dut.bound) == min(total, columns)
            seen["columns" if columns < total else "full" if total == TOP else "sum"] += 1
            total = min(TOP, (0 if ends else total) + (length if adds else 0))
            await ctx.tick()

    simulate(dut, bench)
    assert min(seen.values()) > 20


def expected(rows: list[list[int]], partials: list[int], radix: int) -> list[tuple[list[int], bool, bool]]:
    """Lengths of the leaves of each group, whether it goes to scratch, and whether the row had a group before."""
    found = []
    for row, partial in zip(rows, partials, strict=True):
        leaves = ([partial] if partial else []) + [length for length in row if length >= 0]
        groups = [leaves[n : n + radix] for n in range(0, len(leaves), radix)] or [[0]]
        found += [(group, len(groups) > 1, n > 0) for n, group in enumerate(groups)]
    return found


@pytest.mark.parametrize("with_partials", [0, 1])
@pytest.mark.parametrize("radix", [2, 4])
def test_rows_are_cut_into_groups(radix: int, with_partials: int) -> None:
    """Each leaf once and in order; long rows are kept at their end, merged on the way after ``radix`` groups."""
    rng = random.Random(radix)
    dut = RowGrouper(radix=radix, address_width=16)
    lengths = (0, 0, 1, 2, radix, radix + 1, 2 * radix, radix * radix, radix * radix + 1, 3 * radix * radix)
    # A leaf of length 0 is a leaf; -1 is an item without one.
    rows = [[rng.choice((0, 1, 9, -1)) for _ in range(rng.choice(lengths))] or [-1] for _ in range(60)]
    partials = [with_partials * rng.choice((0, 7)) for _ in rows]
    items = [(length, n == len(row) - 1) for row in rows for n, length in enumerate(row)]
    groups = expected(rows, partials, radix)
    found: list[tuple[list[int], bool, bool]] = []
    seen = {"keep": 0, "merge": 0, "row_ends": 0}
    taken = {"leaves": 0, "partials": 0}

    async def bench(ctx: Any) -> None:
        ctx.set(dut.with_partials, with_partials)
        group: list[int] = []
        merging = 0
        since_merge = 0  # groups of the row, a merge of them counting as one
        for _ in range(20 * len(items)):
            length, last = items[taken["leaves"]] if taken["leaves"] < len(items) else (-1, 0)
            leaf = {"length": max(0, length), "last": last, "weight": 5}
            ctx.set(dut.leaves.payload, {"present": length >= 0, "leaf": leaf})
            ctx.set(dut.leaves.valid, taken["leaves"] < len(items) and rng.random() < 0.8)
            ctx.set(dut.partials.valid, with_partials and taken["partials"] < len(rows) and rng.random() < 0.8)
            ctx.set(dut.partials.payload, {"length": (*partials, 0)[taken["partials"]], "unit": 1, "last": 1})
            ctx.set(dut.groups.ready, rng.random() < 0.7)
            ctx.set(dut.kept, ctx.get(dut.keep) & rng.randrange(2))
            ctx.set(dut.merge_begins, ctx.get(dut.merge) & rng.randrange(2))
            merging -= merging > 0
            ctx.set(dut.merge_done, merging == 1)
            assert ctx.get(dut.merging) == (merging > 0)
            assert not ctx.get(dut.merge) or since_merge == radix
            assert not (ctx.get(dut.idle) and group)
            if ctx.get(dut.groups.valid) and ctx.get(dut.groups.ready):
                group.append(ctx.get(dut.groups.payload.length))
                if ctx.get(dut.groups.payload.last):
                    scratch, long = ctx.get(dut.scratch), ctx.get(dut.long)
                    found.append((group, bool(scratch), bool(long)))
                    later = groups[len(found)][2] if len(found) < len(groups) else False
                    assert not scratch or ctx.get(dut.more) == later
                    since_merge += scratch
                    group = []
            if ctx.get(dut.merge_begins):
                merging, since_merge = rng.randrange(2, 9), 1
            for name in ("leaves", "partials"):
                port = getattr(dut, name)
                taken[name] += ctx.get(port.valid) & ctx.get(port.ready)
            for name in seen:
                seen[name] += ctx.get(getattr(dut, "kept" if name == "keep" else name))
            if ctx.get(dut.row_ends):
                since_merge = 0
            await ctx.tick()
        assert ctx.get(dut.idle)

    simulate(dut, bench)
    assert found == groups
    assert seen["row_ends"] == len(rows) and seen["merge"] > 10
    assert seen["keep"] == sum(scratch and not long for _, scratch, long in groups)
    assert taken == {"leaves": len(items), "partials": with_partials * len(rows)}


@pytest.mark.parametrize(
    ("block", "sizes", "message"),
    [
        (PePicker, {"pes": 0}, "^PEs must be an integer from 1 to "),
        (JobSwitch, {"pes": 0, "address_width": 16}, "^PEs must be an integer from 1 to "),
        (JobSwitch, {"pes": 2, "address_width": 7}, "^Address width must be an integer from 8 to "),
        (RowGrouper, {"radix": 3, "address_width": 16}, "^Radix must be a power of two from 2 to "),
    ],
)
def test_wrong_parameters(block: Any, sizes: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        block(**sizes)
