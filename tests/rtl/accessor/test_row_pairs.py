"""Rows of a tile: where each begins and ends, and the memory requests that fetch whole ones."""

from random import Random
from typing import Any

import numpy as np
import pytest
from amaranth.sim import Simulator

from rtl.accessor.pair_reader import PairReader
from rtl.accessor.run_requester import RunRequester

from .clients import ClientMemory, patient

POINTERS, POSITIONS = 0x100, 0x800


@pytest.mark.parametrize("lanes", [1, 2, 4])
@pytest.mark.parametrize("hurry", [1.0, 0.5])
def test_rows_begin_and_end_where_the_arrays_say(lanes: int, hurry: float) -> None:
    """Runs that go on behind the one before, that go back, and that leave rows out."""
    dut = PairReader(lanes=lanes, address_width=16)
    random = Random(f"pairs {lanes} {hurry}")
    memory = ClientMemory(0x1000, 8 * lanes, seed=lanes, hurry=hurry)
    pointers = np.cumsum([random.choice([0, 0, 1, 3, 70]) for _ in range(120)]).astype(np.uint32) + 5
    positions = np.array([random.getrandbits(32) for _ in range(119)], np.uint32)
    memory.store(POINTERS, pointers)
    memory.store(POSITIONS, positions)
    expected: list[tuple[int, int]] = []
    seen: list[tuple[int, int]] = []

    async def runs(ctx: Any) -> None:
        end = 0
        for n in range(30):
            row = end if n % 3 == 0 and end < 100 else random.randrange(100)
            rows = random.choice([1, 1, 2, 9, 19])
            single = random.randrange(2)
            end = row + rows
            begins = pointers if single else positions
            expected.extend((int(begins[r]), int(pointers[r + 1])) for r in range(row, end))
            fields = {"row": row, "rows": rows, "single": single, "pointers": POINTERS, "positions": POSITIONS}
            ctx.set(dut.run.payload, fields)
            ctx.set(dut.run.valid, 1)
            for _ in patient(2000):
                if (await ctx.tick().sample(dut.run.ready))[2]:
                    break
            ctx.set(dut.run.valid, 0)
        for _ in patient(2000):
            await ctx.tick()
            if len(seen) == len(expected):
                break

    async def pairs(ctx: Any) -> None:
        while True:
            ready = random.random() < hurry
            ctx.set(dut.pairs.ready, ready)
            _, _, valid, payload = await ctx.tick().sample(dut.pairs.valid, dut.pairs.payload)
            if valid and ready:
                seen.append((payload.begin, payload.end))

    sim = Simulator(dut)
    sim.add_clock(1e-8)
    for n in range(2):
        sim.add_testbench(memory.reader(dut.read_request[n], dut.read_data[n], n), background=True)
    sim.add_testbench(pairs, background=True)
    sim.add_testbench(runs)
    sim.run()
    assert seen == expected


@pytest.mark.parametrize("lanes", [1, 2, 4])
@pytest.mark.parametrize(
    "takes", [(1.0, 1.0), (0.3, 1.0), (1.0, 0.3), (0.5, 0.5)], ids=["fast", "pairs wait", "places wait", "both"]
)
def test_places_come_with_the_begins(lanes: int, takes: tuple[float, float]) -> None:
    """Runs of a list that says where rows go, among others: each place once, before its pair, and none of any other run."""
    dut = PairReader(lanes=lanes, address_width=16)
    random = Random(f"places {lanes} {takes}")
    memory = ClientMemory(0x1000, 8 * lanes, seed=lanes, hurry=random.choice([1.0, 0.6]))
    listed = np.array([random.getrandbits(32) for _ in range(240)], np.uint32)  # a begin, then a place
    plain = np.array([random.getrandbits(32) for _ in range(120)], np.uint32)
    pointers = np.array([random.getrandbits(32) for _ in range(121)], np.uint32)
    plain_at = 0x500
    for address, words in ((POINTERS, pointers), (POSITIONS, listed), (plain_at, plain)):
        memory.store(address, words)
    pairs: list[tuple[int, int]] = []
    places: list[tuple[int, int]] = []
    of_place: list[int] = []  # pairs before each place
    seen: list[tuple[int, int]] = []
    seen_places: list[tuple[int, int]] = []
    kinds: set[tuple[str, str]] = set()

    async def runs(ctx: Any) -> None:
        kind = ""
        for _ in range(40):
            before, kind = kind, random.choice(["planned", "planned", "listed", "single"])
            kinds.add((before, kind))
            row, rows = random.randrange(100), random.choice([1, 1, 2, 9, 19])
            for r in range(row, row + rows):
                begins = {"planned": listed[2 * r], "listed": plain[r], "single": pointers[r]}
                if kind == "planned":
                    of_place.append(len(pairs))
                    places.append((int(listed[2 * r + 1]) & 0xFFFF, int(listed[2 * r + 1]) >> 16))
                pairs.append((int(begins[kind]), int(pointers[r + 1])))
            fields = {"row": row, "rows": rows, "single": kind == "single", "planned": kind == "planned"}
            positions = POSITIONS if kind == "planned" else plain_at
            ctx.set(dut.run.payload, fields | {"pointers": POINTERS, "positions": positions})
            ctx.set(dut.run.valid, 1)
            for _ in patient(3000):
                if (await ctx.tick().sample(dut.run.ready))[2]:
                    break
            ctx.set(dut.run.valid, 0)
        for _ in patient(3000):
            await ctx.tick()
            if len(seen) == len(pairs):
                break
        await ctx.tick().repeat(40)

    async def outputs(ctx: Any) -> None:
        shown: list[Any] = [None, None]  # what each stream has offered and keeps
        while True:
            ready = [random.random() < chance for chance in takes]
            ctx.set(dut.pairs.ready, ready[0])
            ctx.set(dut.places.ready, ready[1])
            _, _, some, pair, placed, place = await ctx.tick().sample(
                dut.pairs.valid, dut.pairs.payload, dut.places.valid, dut.places.payload
            )
            for n, (valid, item) in enumerate(((some, (pair.begin, pair.end)), (placed, (place.line, place.entry)))):
                assert shown[n] is None or (valid and item == shown[n]), "an item changes while it waits"
                shown[n] = item if valid and not ready[n] else None
                if valid and ready[n]:
                    (seen, seen_places)[n].append(item)
            # Never a pair whose place has not left, and never two places ahead of their pairs.
            before = sum(number < len(seen) for number in of_place)
            assert before <= len(seen_places) <= before + 1

    sim = Simulator(dut)
    sim.add_clock(1e-8)
    for n in range(2):
        sim.add_testbench(memory.reader(dut.read_request[n], dut.read_data[n], n), background=True)
    sim.add_testbench(outputs, background=True)
    sim.add_testbench(runs)
    sim.run()
    assert seen == pairs and seen_places == places
    assert {("planned", "single"), ("single", "planned"), ("planned", "listed"), ("listed", "planned")} <= kinds


@pytest.mark.parametrize("lanes", [1, 2, 4])
@pytest.mark.parametrize("taken", [1.0, 0.5, 0.1])
@pytest.mark.parametrize("given", [1.0, 0.4])
def test_every_beat_of_a_row_is_asked_for_once(lanes: int, taken: float, given: float) -> None:
    """Rows of nothing, of part of a beat that others share, of many bursts, with gaps between them."""
    burst = 4
    dut = RunRequester(lanes=lanes, address_width=24, burst_beats=burst)
    random = Random(f"beats {lanes} {taken} {given}")
    requests: list[tuple[int, int]] = []
    base = 0x4000

    async def rows(ctx: Any) -> None:
        ctx.set(dut.elements, base)
        for _ in range(3):
            ctx.set(dut.start, 1)
            await ctx.tick()
            ctx.set(dut.start, 0)
            end = random.randrange(9)
            wanted: list[int] = []
            requests.clear()
            for _ in range(150):
                begin = end + random.choice([0, 0, 0, 1, 5, 40])
                end = begin + random.choice([0, 0, 1, 2, 3, 30])
                if end > begin:
                    wanted += range(begin // lanes, -(-end // lanes))
                ctx.set(dut.pairs.payload, {"begin": begin, "end": end})
                ctx.set(dut.pairs.valid, 1)
                for _ in patient(3000):
                    if (await ctx.tick().sample(dut.pairs.ready))[2]:
                        break
                if random.random() >= given:
                    ctx.set(dut.pairs.valid, 0)
                    for _ in range(random.randrange(6)):
                        await ctx.tick()
            ctx.set(dut.pairs.valid, 0)
            quiet = 0
            for _ in patient(3000):
                quiet = quiet + 1 if (await ctx.tick().sample(dut.idle))[2] else 0
                if quiet == 4:
                    break
            asked = [beat for address, beats in requests for beat in range(address, address + beats)]
            assert asked == sorted(set(wanted))

    async def memory(ctx: Any) -> None:
        held = None
        while True:
            ready = random.random() < taken
            ctx.set(dut.read_request.ready, ready)
            _, _, valid, payload = await ctx.tick().sample(dut.read_request.valid, dut.read_request.payload)
            request = (payload.address, payload.beats)
            assert held is None or (valid and request == held), "a request changed while it waited"
            held = request if valid and not ready else None
            if valid and ready:
                assert payload.beats and (payload.address - base) % (8 * lanes) == 0
                requests.append(((payload.address - base) // (8 * lanes), payload.beats))

    sim = Simulator(dut)
    sim.add_clock(1e-8)
    sim.add_testbench(memory, background=True)
    sim.add_testbench(rows)
    sim.run()
