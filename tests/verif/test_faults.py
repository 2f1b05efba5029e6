"""What must not break the machine: errors on any beat, a memory that stalls and reorders, resets at any moment, hostile drivers.

Each test spoils runs of one compiled simulation and then runs the same multiplication on it undisturbed: product bit for
bit, counters as in the first run. A guard in the memory sees every write.
"""

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pytest

from sw.runtime.registers import REGISTERS, ErrorCode
from sw.runtime.simulation.loader import CHANNELS, SimulationError
from tests.verif.fault_bench import BUDGET, CALM, CASES, FaultBench, Outcome
from verif.counters import bus_beats

pytestmark = pytest.mark.slow

SLVERR, DECERR = 2, 3
BEATS_STRUCK = 12
RESETS = 10
LONG_FREEZE = 4_000
# Longer than the patience of the machine's watchdog, which must not take a slow memory for a dead end.
ENDLESS_FREEZE = 70_000
SPOILED_REGISTERS = 40  # runs of each case
SPOILED_MEMORIES = 20
# The window is what the others must not get out of.
TRUSTED = ("WRITE_BEGIN", "WRITE_END")
EARLIEST_RESETS = 8


@pytest.fixture(scope="module", params=CASES)
def bench(request: pytest.FixtureRequest):
    with FaultBench(CASES[request.param]) as made:
        yield made


@pytest.fixture(scope="module", params=CASES)
def arena(request: pytest.FixtureRequest):
    with FaultBench(CASES[request.param], arena=True) as made:
        yield made


def spread(count: int, total: int, rng: random.Random) -> list[int]:
    """The first, the last, and ``count`` numbers at random of ``range(total)``."""
    return sorted({0, total - 1, *(rng.randrange(total) for _ in range(count))})


@pytest.mark.parametrize("write", [False, True], ids=["read", "write"])
def test_an_error_on_any_beat(bench: FaultBench, write: bool) -> None:
    """The run ends with the kind and the address of the burst, whichever beat it is; the next run is good."""
    beats = bus_beats(bench.reference, "write" if write else "read")
    for n, beat in enumerate(spread(BEATS_STRUCK, beats, random.Random(f"{write}"))):
        bench.restore()
        bench.simulation.inject_beat(beat, write=write, response=(SLVERR, DECERR)[n % 2])
        outcome = bench.run()
        assert outcome.ended, f"beat {beat}: {outcome}"
        assert outcome.code == (ErrorCode.AXI_WRITE if write else ErrorCode.AXI_READ), f"beat {beat}: {outcome}"
        assert outcome.detail == bench.simulation.struck(), f"beat {beat}: {outcome}"
        assert bench.simulation.quiet
        bench.check_contained()
        if n % 2:  # a start is a reset by itself
            bench.soft_reset()
        bench.good_run()


@pytest.mark.parametrize("kind", ["pin", "soft"])
def test_a_reset_at_any_moment(bench: FaultBench, kind: str) -> None:
    """The run is over at once, nothing was written outside, and the next run is as good as the first one."""
    rng = random.Random(kind)
    for when in (*range(EARLIEST_RESETS), *spread(RESETS, bench.reference["cycles"], rng)):
        bench.restore()
        bench.start()
        bench.simulation.run(when)
        if kind == "pin":
            bench.simulation.reset()
            assert bench.driver.read("TILE_I") == 0, "a reset by the pin clears the configuration"
        else:
            bench.soft_reset()
            assert bench.driver.read("TILE_I") == bench.registers["TILE_I"], "a soft reset keeps the configuration"
        assert not bench.simulation.run(100), f"after {when} cycles: the interrupt came although there is no run"
        assert not bench.driver.busy and bench.driver.error() is None
        assert bench.simulation.quiet
        bench.check_contained()
        bench.good_run()


@pytest.mark.parametrize("channels", [*((name,) for name in CHANNELS), CHANNELS], ids="".join)
def test_a_memory_that_stalls_for_thousands_of_cycles(bench: FaultBench, channels: tuple[str, ...]) -> None:
    """One channel or all of them: right values, the same traffic, no hang."""
    rng = random.Random("".join(channels))
    bench.restore()
    for _ in range(3):
        bench.simulation.freeze(rng.randrange(bench.reference["cycles"]), LONG_FREEZE, channels)
    outcome = bench.run()
    assert outcome.good, outcome
    bench.check_product()
    assert traffic(bench) == {name: bench.reference[name] for name in traffic(bench)}
    bench.good_run()


def test_a_memory_that_stalls_longer_than_the_watchdog_waits(bench: FaultBench) -> None:
    bench.restore()
    bench.simulation.freeze(bench.reference["cycles"] // 2, ENDLESS_FREEZE)
    outcome = bench.run()
    assert outcome.good and outcome.cycles > ENDLESS_FREEZE, outcome
    bench.check_product()


@pytest.mark.parametrize("name", CASES)
def test_answers_late_and_out_of_order(name: str) -> None:
    """A latency of a thousand cycles; identifiers answered in any order, beats interleaved, pauses on all channels."""
    late = replace(CALM, read_latency=1_000, write_latency=800)
    mixed = replace(CALM, jitter=200, stall=0.3, reorder=True, seed=7)
    for timing in (late, mixed, replace(mixed, outstanding=2, seed=8)):
        with FaultBench(CASES[name], timing=timing) as bench:
            # The judge of the first run is all that is wanted: an undisturbed run is one with this memory.
            assert bench.reference is not None


def traffic(bench: FaultBench) -> dict[str, int]:
    counters = bench.driver.counters()
    return {name: counters[name] for name in counters if name.startswith(("read_", "write_")) or name == "macs"}


def offset(name: str) -> int:
    return REGISTERS[name].offset


Registers = dict[str, int]
Spoiler = Callable[[Registers], Registers]


def put(**values: int) -> Spoiler:
    return lambda registers: values


def moved(**steps: int) -> Spoiler:
    return lambda registers: {name: registers[name] + step for name, step in steps.items()}


SRAM_LINES = 512  # of `tiny`
PLANNED = 2 | 8 | 16 | 64  # in MODES: B kept, windows, a list that says where rows go
TOP = (1 << 40) - 16  # last line that its addresses reach
# Case, what is written, the error and, where it is one number, its detail.
HOSTILE: Mapping[str, tuple[str, Spoiler, ErrorCode, int | None]] = {
    **{
        f"{name} zero": ("all ranks cut", put(**{name: 0}), ErrorCode.BAD_TILE_SHAPE, offset(name))
        for name in ("SHAPE_I", "SHAPE_J", "SHAPE_K", "TILE_I", "TILE_J", "TILE_K")
    },
    "ORDER beyond the last": ("all ranks cut", put(ORDER=6), ErrorCode.BAD_ORDER, 6),
    "ORDER largest": ("all ranks cut", put(ORDER=255), ErrorCode.BAD_ORDER, 255),
    "tuning without a kept B": ("whole, B streamed", put(TUNING=1), ErrorCode.BAD_MODE, 0),
    "tuning of a shape that does not halve": ("tuned", put(TILE_J=9), ErrorCode.BAD_TILE_SHAPE, offset("TILE_J")),
    "tuning to nothing": ("tuned", put(TUNING=0x7F), ErrorCode.BAD_TILE_SHAPE, offset("TILE_J")),
    "B streamed while j is cut": ("all ranks cut", put(MODES=0), ErrorCode.BAD_MODE, 0),
    **{
        f"windows {what}": ("windows", put(**{name: value}), ErrorCode.BAD_MODE, value if name == "MODES" else 10)
        for what, name, value in (
            ("with A kept", "MODES", 11),
            ("with C kept", "MODES", 14),
            ("with B streamed", "MODES", 8),
            ("while j is cut", "TILE_J", 8),
            ("while shapes are tuned", "TUNING", 1),
        )
    },
    "a list without windows": ("all ranks cut", put(MODES=18), ErrorCode.BAD_MODE, 18),
    "planned places without a list": ("windows", put(MODES=74), ErrorCode.BAD_MODE, 74),
    "planned places without windows": ("all ranks cut", put(MODES=66), ErrorCode.BAD_MODE, 66),
    "entries of more bits than a list tells": (
        "planned",
        put(MODES=PLANNED | 17 << 7),
        ErrorCode.BAD_MODE,
        PLANNED | 17 << 7,
    ),
    "planned windows longer than a tile": ("planned", moved(TILE_K=-1), ErrorCode.BAD_WINDOW, 0),
    "planned windows beyond the shape": ("planned", moved(SHAPE_K=-1), ErrorCode.BAD_WINDOW, 6),
    "planned places at the last line of the address space": (
        "planned",
        put(B_POSITIONS=TOP),
        ErrorCode.AXI_READ,
        None,
    ),
    "windows longer than a tile": ("windows", moved(TILE_K=-1), ErrorCode.BAD_WINDOW, None),
    "windows beyond the shape": ("windows", moved(SHAPE_K=-1), ErrorCode.BAD_WINDOW, None),
    "windows at the last line of the address space": ("windows", put(A_TILE_MAP=TOP), ErrorCode.AXI_READ, None),
    "parts joined while C is kept": ("k innermost, C on chip", put(MODES=38), ErrorCode.BAD_MODE, 38),
    "parts joined with windows": ("windows", put(MODES=42), ErrorCode.BAD_MODE, 42),
    "parts joined while shapes are tuned": ("tuned", put(MODES=34), ErrorCode.BAD_MODE, 34),
    "parts of more k steps than are told apart": (
        "parts joined",
        put(SHAPE_K=34, TILE_K=1),
        ErrorCode.BAD_TILE_SHAPE,
        offset("TILE_K"),
    ),
    "positions of parts that share a line": (
        "parts joined",
        moved(PART_WORDS=2),
        ErrorCode.BAD_ADDRESS,
        offset("PART_WORDS"),
    ),
    "parts in A's elements": (
        "parts joined",
        lambda registers: {"C_PARTIAL0": registers["A_ELEMENTS"]},
        ErrorCode.WRITE_OUTSIDE,
        None,
    ),
    "positions of parts in A's elements": (
        "parts joined",
        lambda registers: {"C_PARTIAL1": registers["A_ELEMENTS"]},
        ErrorCode.WRITE_OUTSIDE,
        None,
    ),
    "no space for parts": ("parts joined", put(C_PARTIAL_BYTES=0), ErrorCode.C_PARTIAL_OVERFLOW, None),
    "C kept while k is not innermost": (
        "all ranks cut",
        put(MODES=6, C_LINES=40),
        ErrorCode.BAD_MODE,
        6,
    ),
    **{
        f"{tensor} partition beyond the SRAM": (
            "k innermost, C on chip",
            put(**{f"{tensor}_LINES": SRAM_LINES + 2}),
            ErrorCode.BAD_PARTITION,
            offset(f"{tensor}_LINES"),
        )
        for tensor in "ABC"
    },
    "B partition wraps": (
        "all ranks cut",
        put(B_BASE=(1 << 32) - 16, B_LINES=60),
        ErrorCode.BAD_PARTITION,
        offset("B_LINES"),
    ),
    "A and B overlap": ("A kept", moved(A_LINES=1), ErrorCode.BAD_PARTITION, offset("B_LINES")),
    "B and C overlap": ("k innermost, C on chip", moved(C_BASE=-1), ErrorCode.BAD_PARTITION, offset("C_LINES")),
    "A and C overlap": ("A kept", put(C_BASE=0), ErrorCode.BAD_PARTITION, offset("C_LINES")),
    "C partition is odd": ("k innermost, C on chip", moved(C_LINES=-1), ErrorCode.BAD_PARTITION, offset("C_LINES")),
    "C partition is nothing": (
        "k innermost, C on chip",
        put(C_LINES=0),
        ErrorCode.BAD_PARTITION,
        offset("C_LINES"),
    ),
    "scratch lines beyond C's": (
        "scratch on chip",
        lambda registers: {"SCRATCH_LINES": registers["C_LINES"] + 1},
        ErrorCode.BAD_PARTITION,
        offset("SCRATCH_LINES"),
    ),
    **{
        f"scratch lines {value:#x}": (
            "scratch on chip",
            put(SCRATCH_LINES=value),
            ErrorCode.BAD_PARTITION,
            offset("SCRATCH_LINES"),
        )
        # Of 32 bits fewer tell a ring's lines: a number whose low ones are fine is none.
        for value in ((1 << 32) - 1, 1 << 31, 1 << 16 | 16, 1 << 10 | 16)
    },
    "scratch lines without C's": (
        "all ranks cut",
        put(SCRATCH_LINES=1),
        ErrorCode.BAD_PARTITION,
        offset("SCRATCH_LINES"),
    ),
    "scratch lines leave partial rows half a line": (
        "scratch beside partial rows",
        moved(SCRATCH_LINES=1),
        ErrorCode.BAD_PARTITION,
        offset("C_LINES"),
    ),
    "scratch lines leave partial rows none": (
        "scratch beside partial rows",
        lambda registers: {"SCRATCH_LINES": registers["C_LINES"]},
        ErrorCode.BAD_PARTITION,
        offset("C_LINES"),
    ),
    "scratch lines in B's partition": ("scratch on chip", moved(C_BASE=-1), ErrorCode.BAD_PARTITION, offset("C_LINES")),
    "scratch lines behind the SRAM": (
        "scratch on chip",
        put(C_BASE=SRAM_LINES - 31),
        ErrorCode.BAD_PARTITION,
        offset("C_LINES"),
    ),
    "scratch on chip, nothing in memory": (
        "scratch on chip",
        put(C_SCRATCH_BYTES=0),
        ErrorCode.C_SCRATCH_OVERFLOW,
        None,
    ),
    "scratch on chip, C_SCRATCH at the last line of the address space": (
        "scratch on chip",
        put(C_SCRATCH=TOP),
        ErrorCode.WRITE_OUTSIDE,
        None,
    ),
    "scratch on chip, C_SCRATCH in A's elements": (
        "scratch on chip",
        lambda registers: {"C_SCRATCH": registers["A_ELEMENTS"]},
        ErrorCode.WRITE_OUTSIDE,
        None,
    ),
    "A partition below its metadata": ("A kept", put(A_LINES=7), ErrorCode.A_METADATA_OVERFLOW, 8),
    "B partition below its metadata": ("all ranks cut", put(B_LINES=8), ErrorCode.B_METADATA_OVERFLOW, 9),
    "B partition is nothing": ("all ranks cut", put(B_LINES=0), ErrorCode.B_METADATA_OVERFLOW, 9),
    "FIFO-managed region beyond the partition": (
        "all ranks cut",
        put(FIFO_LINES_B=(1 << 32) - 1),
        ErrorCode.B_METADATA_OVERFLOW,
        None,
    ),
    **{
        f"{name} not aligned": ("all ranks cut", moved(**{name: 8}), ErrorCode.BAD_ADDRESS, offset(name))
        for name, register in REGISTERS.items()
        if register.role == "address"
    },
    **{
        f"{name} at the last line of the address space": (
            "all ranks cut",
            put(**{name: TOP}),
            ErrorCode.AXI_READ,
            None,
        )
        for name in ("A_POINTERS", "A_ELEMENTS", "B_POINTERS", "B_ELEMENTS", "A_TILE_MAP", "B_TILE_MAP")
    },
    **{
        f"{name} at the last line of the address space": (
            "all ranks cut",
            put(**{name: TOP}),
            ErrorCode.WRITE_OUTSIDE,
            None,
        )
        for name in ("C_POINTERS", "C_ELEMENTS", "C_FINISHED", "C_PARTIAL0", "C_PARTIAL1", "C_TILE_POSITIONS")
    },
    **{
        f"{name} in A's elements": (
            "all ranks cut",
            lambda registers, name=name: {name: registers["A_ELEMENTS"]},
            ErrorCode.WRITE_OUTSIDE,
            None,
        )
        for name in ("A_POSITIONS", "B_POSITIONS", "C_POINTERS", "C_ELEMENTS", "C_SCRATCH", "C_PARTIAL1")
    },
    "window closed": ("all ranks cut", put(WRITE_BEGIN=TOP, WRITE_END=TOP), ErrorCode.WRITE_OUTSIDE, None),
    "window the wrong way round": (
        "all ranks cut",
        lambda registers: {"WRITE_BEGIN": registers["WRITE_END"], "WRITE_END": registers["WRITE_BEGIN"]},
        ErrorCode.WRITE_OUTSIDE,
        None,
    ),
    "window begins one line late": (
        "all ranks cut",
        lambda registers: {"WRITE_BEGIN": registers["A_POSITIONS"] + 16},
        ErrorCode.WRITE_OUTSIDE,
        None,
    ),
    **{
        f"{name}_BYTES zero": ("all ranks cut", put(**{f"{name}_BYTES": 0}), code, None)
        for name, code in (
            ("C_ELEMENTS", ErrorCode.C_ELEMENTS_OVERFLOW),
            ("C_FINISHED", ErrorCode.C_ELEMENTS_OVERFLOW),
            ("C_PARTIAL", ErrorCode.C_PARTIAL_OVERFLOW),
            ("C_SCRATCH", ErrorCode.C_SCRATCH_OVERFLOW),
        )
    },
}


@pytest.fixture(scope="module")
def benches():
    """One simulation for each case, made when it is wanted."""
    made: dict[str, FaultBench] = {}

    def get(name: str) -> FaultBench:
        if name not in made:
            made[name] = FaultBench(CASES[name]).__enter__()
        return made[name]

    yield get
    for one in made.values():
        one.__exit__()


@pytest.mark.parametrize("name", HOSTILE)
def test_impossible_registers_are_an_error(benches: Callable[[str], FaultBench], name: str) -> None:
    case, spoil, code, detail = HOSTILE[name]
    bench = benches(case)
    bench.restore()
    registers = bench.registers
    outcome = bench.run(registers | spoil(registers))
    assert outcome.ended and outcome.code == code, outcome
    assert detail is None or outcome.detail == detail, outcome
    if code == ErrorCode.WRITE_OUTSIDE:
        assert not outcome.detail % bench.design.line_bytes
    bench.check_contained()
    bench.soft_reset()
    bench.good_run()


@pytest.mark.parametrize("name", CASES)
def test_regions_of_c_too_small_by_one_element(benches: Callable[[str], FaultBench], name: str) -> None:
    """What a run needs to the byte is enough; an element or a line less is an error that says how much it takes."""
    bench = benches(name)
    nnz = bench.golden.nnz
    line = bench.design.line_bytes
    outcome = spoiled(bench, C_ELEMENTS_BYTES=8 * nnz)
    assert outcome.good, outcome
    bench.check_product()
    for less in (8, line):
        outcome = spoiled(bench, C_ELEMENTS_BYTES=8 * nnz - less)
        assert outcome.ended and outcome.code == ErrorCode.C_ELEMENTS_OVERFLOW, outcome
        assert 8 * nnz - less < outcome.detail <= 8 * nnz, outcome
        bench.check_contained()
    bench.soft_reset()
    bench.good_run()


def spoiled(bench: FaultBench, **changes: int) -> Outcome:
    bench.restore()
    return bench.run(bench.registers | changes)


def test_addresses_beyond_the_bus_are_refused(benches: Callable[[str], FaultBench]) -> None:
    bench = benches("all ranks cut")
    for name, register in REGISTERS.items():
        if register.role == "address":
            with pytest.raises(SimulationError, match="was answered with response 2"):
                bench.driver.write(name, 1 << 40)
    bench.good_run()


def corrupted(rng: random.Random, registers: Registers) -> Registers:
    """Up to three registers with values that a broken driver might write."""
    roles = ("configuration", "address")
    names = [name for name in REGISTERS if REGISTERS[name].role in roles and name in registers and name not in TRUSTED]
    changes = {}
    for name in rng.sample(names, rng.choice((1, 1, 1, 2, 3))):
        role, old = REGISTERS[name].role, registers[name]
        width = {"ORDER": 8, "MODES": 12, "TUNING": 7}.get(name, 40 if role == "address" else REGISTERS[name].width)
        others = [value for other, value in registers.items() if REGISTERS[other].role == role]
        choices = (
            0,
            -1,
            1 << rng.randrange(width),
            old ^ 1 << rng.randrange(width),
            old + rng.choice((-64, -16, -8, -2, -1, 1, 2, 8, 16, 64, 4096)),
            rng.getrandbits(width),
            rng.getrandbits(rng.randrange(1, width + 1)),
            rng.choice(others),
        )
        value = rng.choice(choices) & ((1 << width) - 1)
        # Unaligned addresses are refused, which is soon tested.
        changes[name] = value & ~15 if role == "address" and rng.random() < 0.9 else value
    return changes


def tiles_asked(registers: Registers) -> int:
    """How many tiles a run with these registers visits."""
    sides = [(registers[f"SHAPE_{rank}"], registers[f"TILE_{rank}"]) for rank in "IJK"]
    return math.prod(-(-extent // side) if side else 0 for extent, side in sides)


def test_corrupted_registers(arena: FaultBench) -> None:
    """Whatever they say, the run ends, writes nothing outside the window, and the next one is good.

    Only one that visits more tiles than the budget has cycles may go on; a soft reset ends it.
    """
    ends = set()
    for n in range(SPOILED_REGISTERS):
        rng = random.Random(n)
        changes = corrupted(rng, arena.registers)
        arena.restore()
        outcome = arena.run(arena.registers | changes)
        # Weight-stationary PEs take their columns anew in each tile, and wait for memory.
        asked = tiles_asked(arena.registers | changes) * (100 if arena.by_columns else 1)
        assert outcome.ended or asked > BUDGET, f"corruption {n}, {changes}: {outcome}"
        arena.check_contained()
        arena.soft_reset()
        arena.good_run()
        ends.add(outcome.code)
    assert len(ends) > 4


def corrupt_memory(rng: random.Random, bench: FaultBench) -> list[str]:
    """Overwrites a few words of what the hardware reads; says which."""
    sizes = {}
    for tensor, operand in (("a", bench.a), ("b", bench.stored_b)):
        sizes |= {f"{tensor}_pointers": operand.rows + 1, f"{tensor}_positions": operand.rows}
        sizes |= {f"{tensor}_elements": 2 * operand.nnz, f"{tensor}_tile_map": 1}
    if bench.tiles_gathered:
        sizes["a_tile_map"] = 4 * bench.tiles_gathered
    if "b_positions" in bench.image.regions and bench.tiles_gathered:
        sizes |= {name: len(bench.image.regions[name].data) // 4 for name in ("b_pointers", "b_positions")}
    changes = []
    for _ in range(rng.choice((1, 1, 2, 4))):
        name = rng.choice([name for name in sizes if name in bench.image.regions])
        words = bench.image.regions[name].data.view("<u4")
        at = rng.randrange(sizes[name])
        if name.endswith("elements"):
            at &= ~1  # a coordinate: values may be anything
        old = int(words[at])
        new = rng.choice((0, -1, old ^ 1 << rng.randrange(32), old + rng.choice((-3, -1, 1, 20)), rng.getrandbits(6)))
        words[at] = new & 0xFFFFFFFF
        changes.append(f"{name}[{at}]: {old} -> {words[at]}")
    return changes


def test_corrupted_memory(arena: FaultBench) -> None:
    """Pointers that fall, coordinates and positions that point anywhere, tile maps that lie."""
    for n in range(SPOILED_MEMORIES):
        arena.restore()
        changes = corrupt_memory(random.Random(n), arena)
        arena.start()
        outcome = arena.finish()
        assert outcome.ended, f"corruption {n}, {changes}: {outcome}"
        assert not [finding for finding in arena.simulation.findings if finding.write], changes
        arena.soft_reset()
        arena.good_run()


# Case, region, word, what it becomes, and the error where only one can come of it.
WRONG_DATA = {
    "pointer of A falls": ("whole, B streamed", "a_pointers", 5, 0, None),
    "pointer of A outside": ("whole, B streamed", "a_pointers", 13, 1 << 20, None),
    "pointer of B falls": ("k innermost, C on chip", "b_pointers", 4, 0, None),
    "pointer of B outside": ("whole, B streamed", "b_pointers", 18, 1 << 20, None),
    "column of A outside": ("whole, B streamed", "a_elements", 6, 18, ErrorCode.BAD_COORDINATE),
    "column of A far outside": ("whole, B streamed", "a_elements", 0, (1 << 32) - 1, ErrorCode.BAD_COORDINATE),
    "column of B outside": ("whole, B streamed", "b_elements", 0, 16, ErrorCode.BAD_ROW),
    "window too short": ("windows", "a_tile_map", 2, 1, None),  # for its rows, or for what the next one keeps
    "window of everything": ("windows", "a_tile_map", 2, (1 << 24) - 1, ErrorCode.BAD_WINDOW),
    "window behind the shape": ("windows", "a_tile_map", 4, 18, ErrorCode.BAD_WINDOW),
    "window beyond 32 bits": ("windows", "a_tile_map", 8, (1 << 32) - 1, ErrorCode.BAD_WINDOW),
    "window that keeps what is not there": ("windows", "a_tile_map", 2, 9 | 1 << 24, ErrorCode.BAD_WINDOW),
    "window whose rows leave the partition": ("windows", "a_tile_map", 1, 0xFFFF << 16, ErrorCode.BAD_WINDOW),
    "window without metadata": ("windows", "a_tile_map", 3, 0, ErrorCode.BAD_WINDOW),
    "list that names a row backwards": ("list", "b_positions", 1, 1 << 20, None),
    "list that names a row outside": ("list", "b_pointers", 2, 1 << 20, None),
    # The case has 14 entries of 4 bits; its first window has 9 places, of which the third one's row goes by.
    "planned window that is too long": ("planned", "a_tile_map", 2, 1 << 24 | 16, ErrorCode.BAD_WINDOW),
    "planned window behind the list": ("planned", "a_tile_map", 0, 1 << 31, ErrorCode.BAD_WINDOW),
    "planned window without metadata": ("planned", "a_tile_map", 3, 0, ErrorCode.BAD_WINDOW),
    "planned window of metadata alone": ("planned", "a_tile_map", 3, 0xFFFF << 16, ErrorCode.BAD_WINDOW),
    "planned line outside the partition": ("planned", "b_positions", 3, 2 << 16 | 0xFFFF, ErrorCode.BAD_PLACE),
    "planned entry outside the partition": ("planned", "b_positions", 3, 14 << 16 | 7, ErrorCode.BAD_PLACE),
    "planned row that begins behind its end": ("planned", "b_positions", 2, 1 << 20, None),
    "planned row that ends outside": ("planned", "b_pointers", 2, 1 << 20, None),
    "column of A with an entry outside": ("planned", "a_elements", 0, 1 << 4 | 14, ErrorCode.BAD_COORDINATE),
    "column of A with a load outside": ("planned", "a_elements", 0, 9 << 4 | 2, ErrorCode.BAD_COORDINATE),
    "place of A outside its window": ("list", "a_elements", 0, 1 << 20, ErrorCode.BAD_COORDINATE),
    "column of B far outside": ("k innermost, C on chip", "b_elements", 0, (1 << 32) - 1, ErrorCode.BAD_ROW),
}


@pytest.mark.parametrize("name", WRONG_DATA)
def test_wrong_data_are_an_error(benches: Callable[[str], FaultBench], name: str) -> None:
    case, region, word, value, code = WRONG_DATA[name]
    bench = benches(case)
    bench.restore()
    bench.image.regions[region].data.view("<u4")[word] = value
    bench.start()
    outcome = bench.finish()
    assert outcome.ended and outcome.code != ErrorCode.NONE, outcome
    assert code is None or outcome.code == code, outcome
    assert not [finding for finding in bench.simulation.findings if finding.write]
    bench.soft_reset()
    bench.good_run()


@pytest.mark.parametrize("case", ["windows", "list", "planned"])
def test_what_entries_say_of_loads_ahead(benches: Callable[[str], FaultBench], case: str) -> None:
    """Without a word of it each tile waits for the one before, and C is right; where all say so the run ends as well."""
    bench = benches(case)
    ahead = np.uint32(1 << 15)  # bit 47 of an entry's second word of 64 bits
    for says in (False, True):
        bench.restore()
        words = bench.image.regions["a_tile_map"].data.view("<u4")[: 4 * bench.tiles_gathered]
        words[3::4] = words[3::4] | ahead if says else words[3::4] & ~ahead
        bench.start()
        outcome = bench.finish()
        assert outcome.ended, outcome
        if says:
            assert outcome.code in (ErrorCode.NONE, ErrorCode.BAD_ROW), outcome
        else:
            assert outcome.good, outcome
            bench.check_product()
        assert not [finding for finding in bench.simulation.findings if finding.write]
        bench.soft_reset()
    bench.good_run()
