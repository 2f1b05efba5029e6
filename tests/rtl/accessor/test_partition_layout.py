"""Partition layout: lines and limits of tiles that begin anew, and of windows."""

import random
from typing import Any

import pytest
from amaranth.sim import Simulator

from rtl.accessor.partition_layout import PartitionLayout

LINE_BITS = 7


@pytest.mark.parametrize("gathered", [False, True], ids=["tiles", "windows"])
@pytest.mark.parametrize("lanes", [1, 2, 4])
def test_limits_follow_the_start(lanes: int, gathered: bool) -> None:
    rng = random.Random(lanes)
    dut = PartitionLayout(lanes=lanes, line_address_width=LINE_BITS, has_ring=gathered)
    sim = Simulator(dut)
    sim.add_clock(1e-8)
    seen = {"window": 0, "turned": 0, "kept": 0}

    async def bench(ctx: Any) -> None:
        for _ in range(60):
            rows = rng.randrange(1, 40)
            metadata = -(-rows // lanes)
            base, lines = rng.randrange(20), metadata + rng.randrange(8, 40)
            region = rng.randrange(7)
            window = gathered and rng.random() < 0.6
            ring = {
                "kept": rng.choice((0, rng.randrange(rows))),
                "entry": rng.randrange(metadata * lanes),
                "line": rng.randrange(8),
                "lines": rng.randrange(1, 8),
                "metadata": metadata,
                "early": 0,
            }
            ctx.set(dut.rows, rows if not window else 1)
            for name, value in (("base", base), ("lines", lines), ("fifo_lines", region)):
                ctx.set(getattr(dut, name), value)
            if gathered:
                ctx.set(dut.gathered, window)
                ctx.set(dut.ring, ring)
            ctx.set(dut.start, 1)
            assert ctx.get(dut.kept) == (ring["kept"] if window else 0)
            await ctx.tick()
            ctx.set(dut.start, 0)
            line = ring["line"] if window else 0
            assert ctx.get(dut.starting) == 1
            assert ctx.get(dut.metadata_lines) == metadata and ctx.get(dut.first_line) == line
            assert ctx.get(dut.top) == base + lines - 1 and ctx.get(dut.chained) == (window and ring["kept"] != 0)
            assert ctx.get(dut.place_entry) == window and not ctx.get(dut.place_kept)
            assert ctx.get(dut.last_entry) == (metadata * lanes - 1 if window else (1 << 24) - 1)
            if window:
                assert ctx.get(dut.entry) == (ring["entry"] + ring["kept"]) % (metadata * lanes)
                seen["turned"] += ring["entry"] + ring["kept"] >= metadata * lanes
                seen["kept"] += ring["kept"] != 0
                seen["window"] += 1
            await ctx.tick()
            data = lines - metadata
            assert ctx.get(dut.starting) == 2 and not ctx.get(dut.place_entry) and ctx.get(dut.place_kept) == window
            assert ctx.get(dut.data_base) == base + line
            assert ctx.get(dut.limit) == lanes * (ring["lines"] if window else data)
            assert ctx.get(dut.regular) == lanes * (ring["lines"] if window else data - region)
            await ctx.tick()
            assert ctx.get(dut.starting) == 4 and not ctx.get(dut.place_kept)
            assert ctx.get(dut.origin) == lanes * (base + line) and ctx.get(dut.fifo_base) == base + data - region
            await ctx.tick()
            assert ctx.get(dut.starting) == 0

    sim.add_testbench(bench)
    sim.run()
    assert not gathered or min(seen.values()) > 3, seen


@pytest.mark.parametrize("lanes", [0, 3, 2.0])
def test_lanes_are_a_power_of_two(lanes: Any) -> None:
    with pytest.raises(ValueError, match="power of two"):
        PartitionLayout(lanes=lanes, line_address_width=6, has_ring=False)


@pytest.mark.parametrize("width", [0, "6"])
def test_line_addresses_have_bits(width: Any) -> None:
    with pytest.raises(ValueError, match="1 bit or more"):
        PartitionLayout(lanes=2, line_address_width=width, has_ring=False)
