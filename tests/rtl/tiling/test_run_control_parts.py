"""The parts of run control alone: tile counts, the check of the scheme, residency, the overwrite gate, the order of loads."""

import random
from typing import Any

import pytest
from amaranth.sim import Simulator

from rtl.regs.map import ERRORS
from rtl.tiling.overwrite_gate import OverwriteGate
from rtl.tiling.resident_parts import ResidentParts
from rtl.tiling.scheme_check import NAMED, SchemeCheck
from rtl.tiling.tile_counts import TileCounts
from rtl.tiling.tile_loads import TileLoads

OFFSETS = {name: 0x40 + 4 * n for n, name in enumerate(NAMED)}
CODES = {error.name: error.code for error in ERRORS}
TOP = 2**32 - 1


def simulate(dut: Any, bench: Any) -> None:
    sim = Simulator(dut)
    sim.add_clock(1e-8)
    sim.add_testbench(bench)
    sim.run()


def put(ctx: Any, dut: Any, **values: Any) -> None:
    for name, value in values.items():
        ctx.set(getattr(dut, name), value)


@pytest.mark.parametrize("tuning", [False, True])
def test_counts_are_of_the_smallest_tiles(tuning: bool) -> None:
    rng = random.Random(1)
    dut = TileCounts(tuning=tuning)

    async def bench(ctx: Any) -> None:
        for enable in (0, 1, 1, 1, 1, 0):
            extent = [rng.choice((0, 1, 1000, TOP)) for _ in range(3)]
            level = [rng.randrange(1, 3), rng.randrange(1, 3)]
            tile = [rng.randrange(1, 20) << 2 for _ in range(3)]
            put(ctx, dut, extent=extent, tile=tile, start=1)
            if tuning:
                put(ctx, dut, tune={"enable": enable, "level": level})
            await ctx.tick()
            put(ctx, dut, start=0, extent=[7] * 3, tile=[3] * 3)
            for _ in range(dut.latency - 1):
                assert not ctx.get(dut.done)
                await ctx.tick()
            assert ctx.get(dut.done)
            halved = [0, *level] if tuning and enable else [0] * 3
            expected = [-(-length // (side >> n)) for length, side, n in zip(extent, tile, halved, strict=True)]
            assert [ctx.get(dut.tiles[rank]) for rank in range(3)] == expected

    simulate(dut, bench)


RIGHT: dict[str, Any] = {
    "extent": [20, 30, 40],
    "tile": [10, 16, 20],
    "order": 0,
    "buffering": {"a": 0, "b": 1, "c": 0},
    "a": {"base": 0, "lines": 12},
    "b": {"base": 12, "lines": 40},
    "c": {"base": 52, "lines": 12},
    "fifo_b": 4,
    "gathered": 0,
    "by_list": 0,
}
WINDOWS = {"gathered": 1, "tile": [10, 30, 20]}
NONE = {"a": 0, "b": 0, "c": 0}
# What is changed, the error and what it tells; nothing for what is allowed. Lines have 2 elements.
SCHEMES: list[tuple[dict[str, Any], str, int | str]] = [
    ({}, "", 0),
    ({"order": 5}, "", 0),
    ({"order": 6}, "bad_order", 6),
    *(({"extent": [20, 30, 40][:n] + [0] + [20, 30, 40][n + 1 :]}, "bad_tile_shape", f"shape_{r}") for n, r in enumerate("ijk")),
    *(({"tile": [10, 16, 20][:n] + [0] + [10, 16, 20][n + 1 :]}, "bad_tile_shape", f"tile_{r}") for n, r in enumerate("ijk")),
    ({"extent": [0, 0, 40], "order": 9}, "bad_tile_shape", "shape_i"),
    ({"c": {"base": 53, "lines": 12}}, "bad_partition", "c_lines"),
    ({"a": {"base": TOP, "lines": TOP}}, "bad_partition", "a_lines"),
    ({"a": {"base": 0, "lines": 13}}, "bad_partition", "b_lines"),
    ({"c": {"base": 51, "lines": 12}}, "bad_partition", "c_lines"),
    ({"c": {"base": 5, "lines": 0}}, "", 0),
    ({"a": {"base": 40, "lines": 12}, "b": {"base": 0, "lines": 40}}, "", 0),
    ({"a": {"base": 39, "lines": 12}, "b": {"base": 0, "lines": 40}}, "bad_partition", "b_lines"),
    ({"fifo_b": 29}, "", 0),  # and 10 lines of metadata, and one
    ({"fifo_b": 30}, "b_metadata_overflow", 41),
    ({"fifo_b": 30, "buffering": NONE, "tile": [10, 30, 20]}, "", 0),
    ({"fifo_b": 29, **WINDOWS}, "b_metadata_overflow", 41),
    ({"fifo_b": 28, **WINDOWS}, "", 0),
    ({"tile": [10, 16, TOP], "fifo_b": 20}, "b_metadata_overflow", 41),
    ({"buffering": NONE}, "bad_mode", 0),
    ({"gathered": 1}, "bad_mode", 0b01010),
    ({**WINDOWS, "buffering": {"a": 1, "b": 1, "c": 0}}, "bad_mode", 0b01011),
    ({**WINDOWS, "buffering": {"a": 0, "b": 1, "c": 1}}, "bad_mode", 0b01110),
    ({**WINDOWS, "by_list": 1}, "", 0),
    ({"by_list": 1}, "bad_mode", 0b10010),
    ({**WINDOWS, "by_list": 1, "planned": 1, "entry_bits": 16}, "", 0),
    ({**WINDOWS, "by_list": 1, "planned": 1, "entry_bits": 0}, "", 0),
    ({**WINDOWS, "by_list": 1, "planned": 1, "entry_bits": 17}, "bad_mode", 17 << 7 | 0b1011010),
    ({**WINDOWS, "by_list": 1, "planned": 1, "entry_bits": 31}, "bad_mode", 31 << 7 | 0b1011010),
    ({**WINDOWS, "by_list": 1, "entry_bits": 17}, "", 0),  # which nobody looks at
    ({**WINDOWS, "planned": 1, "entry_bits": 5}, "bad_mode", 5 << 7 | 0b1001010),
    ({"planned": 1}, "bad_mode", 0b1000010),
    ({"buffering": {"a": 0, "b": 1, "c": 1}}, "", 0),
    ({"buffering": {"a": 0, "b": 1, "c": 1}, "order": 5}, "bad_mode", 0b110),
    ({"buffering": {"a": 1, "b": 1, "c": 0}, "tile": [20, 16, 20]}, "", 0),
    ({"buffering": {"a": 1, "b": 1, "c": 0}, "extent": [23, 30, 40], "tile": [23, 16, 20]}, "a_metadata_overflow", 13),
    ({"buffering": {"a": 0, "b": 1, "c": 1}, "tile": [11, 16, 20]}, "bad_partition", "c_lines"),
    ({"buffering": {"a": 0, "b": 1, "c": 1}, "c": {"base": 52, "lines": 11}, "tile": [8, 16, 20]}, "bad_partition", "c_lines"),
]  # fmt: skip


async def told(ctx: Any, dut: SchemeCheck, expected: tuple[int, int]) -> None:
    """After ``latency`` cycles, and not before if the one before was right."""
    await ctx.tick().repeat(dut.latency)
    assert ctx.get(dut.error) == expected[0]
    assert not expected[0] or ctx.get(dut.detail) == expected[1]


@pytest.mark.parametrize("tuning", [False, True])
def test_the_first_wrong_field_is_told(tuning: bool) -> None:
    dut = SchemeCheck(lanes=2, sram_lines=64, offsets=OFFSETS, tuning=tuning, b_fibers="k")

    async def bench(ctx: Any) -> None:
        for change, error, detail in SCHEMES:
            put(ctx, dut, scheme=RIGHT | change)
            where = OFFSETS[detail] if isinstance(detail, str) else detail
            await told(ctx, dut, (CODES[error] if error else 0, where))
        put(ctx, dut, scheme=RIGHT, misaligned=1, misaligned_offset=0x123)
        await told(ctx, dut, (CODES["bad_address"], 0x123))
        put(ctx, dut, scheme=RIGHT | {"order": 7})
        await told(ctx, dut, (CODES["bad_order"], 7))

    simulate(dut, bench)


@pytest.mark.parametrize(
    ("change", "level", "error", "detail"),
    [
        ({}, [3, 2], "", 0),
        ({}, [4, 2], "", 0),
        ({}, [5, 2], "bad_tile_shape", "tile_j"),
        ({}, [3, 3], "bad_tile_shape", "tile_k"),
        ({"buffering": NONE, "tile": [10, 30, 20]}, [1, 2], "bad_mode", 0),
        (WINDOWS, [1, 2], "bad_mode", 0b01010),
    ],
)
def test_tuned_sides_can_be_halved(change: dict[str, Any], level: list[int], error: str, detail: Any) -> None:
    async def bench(ctx: Any) -> None:
        put(ctx, dut, scheme=RIGHT | change, tune={"enable": 1, "level": level})
        found = (CODES[error] if error else 0, OFFSETS.get(detail, detail))
        await told(ctx, dut, found if tuning else (CODES["bad_mode"], 0b10 if not change else found[1]))

    for tuning in (True, False):
        dut = SchemeCheck(lanes=2, sram_lines=64, offsets=OFFSETS, tuning=tuning, b_fibers="k")
        simulate(dut, bench)


def test_metadata_are_of_the_rank_that_numbers_fibers() -> None:
    errors = {"k": (CODES["b_metadata_overflow"], 42), "j": (0, 0), "i": (0, 0)}

    async def bench(ctx: Any) -> None:
        put(ctx, dut, scheme=RIGHT | {"fifo_b": 31})
        await told(ctx, dut, errors[dut.b_fibers])

    for fibers in errors:
        dut = SchemeCheck(lanes=2, sram_lines=64, offsets=OFFSETS, tuning=False, b_fibers=fibers)
        simulate(dut, bench)


def test_fibers_that_are_columns_have_rules_of_their_own() -> None:
    """B streams where k is whole, however j is cut; windows of k are none of theirs; tiles may be as wide as the array."""
    cases: list[tuple[dict[str, Any], tuple[int, int]]] = [
        ({"buffering": NONE, "tile": [10, 16, 20]}, (CODES["bad_mode"], 0)),
        ({"buffering": NONE, "tile": [10, 16, 40]}, (0, 0)),
        (WINDOWS | {"extent": [20, 16, 40], "tile": [10, 16, 40]}, (CODES["bad_mode"], 0b01010)),
        ({"tile": [10, 17, 20]}, (CODES["bad_tile_shape"], OFFSETS["tile_j"])),
        ({"extent": [20, 16, 40], "tile": [10, 30, 20]}, (0, 0)),
    ]
    dut = SchemeCheck(lanes=2, sram_lines=64, offsets=OFFSETS, b_fibers="j", most_columns=16)

    async def bench(ctx: Any) -> None:
        for change, expected in cases:
            put(ctx, dut, scheme=RIGHT | change)
            await told(ctx, dut, expected)

    simulate(dut, bench)


@pytest.mark.parametrize("tuning", [False, True])
def test_a_part_is_resident_that_was_loaded_last(tuning: bool) -> None:
    rng = random.Random(2)
    dut = ResidentParts(tuning=tuning)
    fields: dict[str, tuple[str, ...]] = {"a": ("begin_i", "begin_k"), "b": ("begin_k", "begin_j")}
    if tuning:
        fields = {"a": (*fields["a"], "size_k"), "b": (*fields["b"], "size_j", "size_k")}

    async def bench(ctx: Any) -> None:
        loaded: dict[str, Any] = {}
        seen = {True: 0, False: 0}
        for _ in range(400):
            present = {
                name: rng.choice((0, 1)) for name in ("begin_i", "begin_j", "begin_k", "size_j", "size_k", "kept")
            }
            gathered = rng.random() < 0.2
            put(ctx, dut, **{name: value for name, value in present.items() if tuning or name != "size_j"})
            put(ctx, dut, gathered=gathered, compare=1, load_a=0, load_b=0)
            await ctx.tick()
            put(ctx, dut, compare=0)
            for part, resident in (("a", dut.resident_a), ("b", dut.resident_b)):
                own = [present[name] for name in fields[part]]
                expected = loaded.get(part) == own
                if gathered and part == "b":
                    expected = present["kept"] == present["size_k"]
                assert ctx.get(resident) == expected
                seen[expected] += 1
                if not expected and rng.random() < 0.8:
                    put(ctx, dut, **{f"load_{part}": 1})
                    await ctx.tick()
                    put(ctx, dut, **{f"load_{part}": 0})
                    loaded[part] = own
                    assert ctx.get(resident)
            await ctx.tick()
        assert min(seen.values()) > 100

    simulate(dut, bench)


def test_the_gate_opens_when_rows_of_c_are_out() -> None:
    rng = random.Random(3)
    dut = OverwriteGate()
    rows = 20

    async def bench(ctx: Any) -> None:
        begins, before = [0], 0
        put(ctx, dut, rows=rows, begin_i=rng.randrange(rows))
        for begin in [rng.randrange(rows) for _ in range(60)]:
            put(ctx, dut, next=1)
            await ctx.tick()
            before, earlier = begins[-1], rng.randrange(2)
            begins.append(begin)
            put(ctx, dut, next=0, begin_i=begin, earlier=earlier, loading=1)
            left = rng.randrange(rows + 1)
            for cycle in range(8):
                put(ctx, dut, rows_left=left)
                shown = left
                await ctx.tick()
                if cycle < dut.latency - 1:
                    assert not ctx.get(dut.open)
                elif len(begins) > 2:
                    out = rows - shown
                    assert ctx.get(dut.open) == (out >= (before if earlier else begin))
                left = max(0, left - rng.randrange(6))
            put(ctx, dut, loading=0)
            await ctx.tick()

    simulate(dut, bench)


@pytest.mark.parametrize("tuning", [False, True])
def test_loads_come_one_after_the_other(tuning: bool) -> None:
    """What is wanted and not resident is loaded once, A first, and a tile is placed when all of it is there or comes."""
    rng = random.Random(4)
    dut = TileLoads(tuning=tuning)
    seen: dict[str, int] = dict.fromkeys(("a", "b", "beside", "first", "resident"), 0)

    async def bench(ctx: Any) -> None:
        busy = {"a": 0, "b": 0}
        for _ in range(300):
            want = {part: rng.random() < 0.7 for part in "ab"}
            resident = {part: rng.random() < 0.4 for part in "ab"}
            missing = [part for part in "ab" if want[part] and not resident[part]]
            first = tuning and rng.random() < 0.5
            beside = events = 0
            loads: list[str] = []
            waits = True  # for the tile to be placed
            computes = rng.randrange(2, 30)
            cycle = 0
            if tuning:
                put(ctx, dut, first=first)
            while waits or computes or beside or busy["b"]:
                put(ctx, dut, active=waits, allowed=rng.random() < 0.6)
                for part in "ab":
                    put(ctx, dut, **{f"want_{part}": want[part], f"resident_{part}": resident[part]})
                    put(ctx, dut, **{f"idle_{part}": not busy[part], f"take_{part}": rng.random() < 0.6})
                load = {part: ctx.get(getattr(dut, f"load_{part}")) for part in "ab"}
                takes = [part for part in "ab" if load[part] and ctx.get(getattr(dut, f"take_{part}"))]
                placed = ctx.get(dut.placed)
                assert not (load["a"] and load["b"]) and not (load["b"] and not ctx.get(dut.allowed))
                assert ctx.get(dut.loading_a) == bool(
                    waits and cycle and want["a"] and (not resident["a"] or busy["a"])
                )
                assert ctx.get(dut.loading_b) == bool(beside), "rows are computed meanwhile"
                assert ctx.get(dut.compare) or not waits or cycle
                assert not placed or (waits and cycle)
                events += ctx.get(dut.event_loaded)
                assert ctx.get(dut.event_loaded_a) == (placed and "a" in loads)
                if beside and not busy["b"]:
                    assert ctx.get(dut.event_loaded)
                    beside = False
                busy = {part: max(0, left - 1) for part, left in busy.items()}
                for part in takes:
                    assert part in missing and part not in loads
                    loads.append(part)
                    resident[part] = True
                    busy[part] = rng.randrange(1, 12)
                    beside = part == "b" and not first
                    assert placed == beside
                await ctx.tick()
                if placed:
                    assert loads == missing and (beside or not any(want[part] and busy[part] for part in "ab"))
                    seen["beside" if beside else "first" if "b" in loads else "resident"] += 1
                waits = waits and not placed
                computes -= bool(computes and not waits)
                cycle += 1
                assert cycle < 200
            assert events == loads.count("b")
            for part in loads:
                seen[part] += 1

    simulate(dut, bench)
    assert all(count > 20 for name, count in seen.items() if tuning or name != "first")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"lanes": 3}, "^Lanes must be a power of two from 1 to 64, not 3$"),
        ({"sram_lines": 0}, "^SRAM lines must be an integer from 1 to "),
        ({"b_fibers": "l"}, "^B's fibers are numbered by rank i, j or k, not 'l'$"),
        ({"offsets": {}}, "^The scheme check needs the offset of register 'tile_i'$"),
    ],
)
def test_wrong_parameters(wrong: dict[str, Any], message: str) -> None:
    sizes: dict[str, Any] = {"lanes": 2, "sram_lines": 64, "offsets": OFFSETS, "tuning": False, "b_fibers": "k"}
    with pytest.raises(ValueError, match=message):
        SchemeCheck(**sizes | wrong)
