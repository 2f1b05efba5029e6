"""The parts of the Tailors buffer, each alone; testplan ``verif/testplans/tailors.toml``."""

import random

import pytest
from amaranth.hdl import Module
from amaranth.sim import Simulator

from rtl.buffer.entry_select import EntrySelect
from rtl.buffer.fifo_region import FifoRegion
from rtl.buffer.release_count import ReleaseCount
from rtl.buffer.tailors_entries import TailorsEntries
from rtl.buffer.tailors_lookup import TailorsLookup
from rtl.buffer.tailors_places import TailorsPlaces
from rtl.buffer.tailors_steps import TailorsSteps
from rtl.buffer.tailors_verbs import TailorsVerbs
from sw.golden.tailors import IllegalOperation, Stall
from sw.golden.tailors import TailorsBuffer as Golden

ENTRIES = 7
INDEX = 6
SIZES = [(7, 3, 19), (7, 1, 9), (5, 5, 11), (4, 2, 5), (6, 2, 0), (2, 1, 3)]
STEPS = ("calm", "examine", "shrink", "place", "aim", "look", "turn", "give_way")
NO_VERB = {"fill": 0, "split": 0, "rotate": 0, "dissolve": 0, "backfill": 0}


def simulate(dut, bench, *, clocked=True):
    top = Module()
    top.submodules.dut = dut
    simulator = Simulator(top)
    if clocked:
        simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


def verb_of(model):
    """What the next OWFill of a golden model does, and whether a verb or an error comes of it."""
    if model.overbooked:
        newest = model.fifo_offset + len(model.region)
        return "dissolve" if model.bumped and model.shrunk and newest % model.bumped == 0 else "rotate"
    if len(model.regular) < model.capacity:
        return "backfill" if model.backfilling else "early"
    return "late" if not model.backfilling and 0 < model.tile_length <= model.capacity else "split"


def walk(capacity, fifo, tile, rng, operations):
    """Operations that a golden model takes, at random: yields the name and amount, then the model after it."""
    model = Golden(capacity, fifo, tile)
    for number in range(operations):
        verb = verb_of(model)
        choices = [("shrink", rng.randrange(1, len(model.regular) + 1))] if model.regular else []
        choices = choices if rng.random() < 0.15 else []
        if model.overbooked and rng.random() < 0.02:
            choices = [("shrink", model.occupancy)]
        if not choices:
            choices = (
                [("fill", 1)] if model.credit else [(verb, 1)] if verb != "late" else [("shrink", model.occupancy)]
            )
        name, amount = rng.choice(choices)
        before = len(model.region), model.overbooked
        if name == "fill":
            model.fill(number)
        elif name == "shrink":
            model.shrink(amount)
        else:
            model.overwrite(number)
        yield name, amount, before, model


async def operate(ctx, dut, name):
    """The steps and the verb of one accepted operation, as :class:`TailorsSteps` gives them."""
    if name in ("split", "dissolve"):
        for step in ("place", "aim"):
            ctx.set(dut.step, {step: 1})
            await ctx.tick()
        ctx.set(dut.step, {"turn": 1})
    else:
        ctx.set(dut.step, {"calm": 1})
    ctx.set(dut.verb, {**NO_VERB, name: 1})
    await ctx.tick()
    ctx.set(dut.verb, NO_VERB)
    ctx.set(dut.step, {"calm": 1})
    await ctx.tick()


@pytest.mark.parametrize("capacity,fifo,tile", SIZES)
def test_the_region_counts_as_the_golden_model(capacity, fifo, tile):
    dut = FifoRegion(entries=ENTRIES, index_width=INDEX)
    rng = random.Random(capacity * 100 + fifo)
    seen = set()

    async def bench(ctx):
        ctx.set(dut.fifo_entries, fifo)
        ctx.set(dut.kept, capacity - fifo)
        ctx.set(dut.tile_length, tile)
        ctx.set(dut.step, {"calm": 1})
        await ctx.tick()
        for name, _, _, model in walk(capacity, fifo, tile, rng, 250):
            assert ctx.get(dut.closes) == (ctx.get(dut.fifo_place) + 1 == fifo)
            assert ctx.get(dut.ends) == (name == "dissolve") or name == "shrink"
            if name == "shrink":
                ctx.set(dut.empties, model.occupancy == 0)
                ctx.set(dut.frees, model.occupancy != 0)
                await ctx.tick()
                ctx.set(dut.empties, 0)
                ctx.set(dut.frees, 0)
                await ctx.tick()
            elif name != "fill":
                await operate(ctx, dut, name)
            seen.add(name)
            assert ctx.get(dut.present) == len(model.region) and ctx.get(dut.overbooked) == model.overbooked
            assert ctx.get(dut.full) == (model.overbooked and len(model.region) == fifo)
            assert ctx.get(dut.backfilling) == model.backfilling and ctx.get(dut.shrunk) == model.shrunk
            if model.overbooked:
                modulus = model.bumped or 2**INDEX
                assert ctx.get(dut.offset) == model.fifo_offset % modulus
                assert ctx.get(dut.following) == (model.fifo_offset + len(model.region)) % modulus
                assert ctx.get(dut.bumped) == modulus
            if model.fifo_offset > 2**INDEX - 2 * ENTRIES:
                break  # an unbounded tile comes round with the width of an index, which the model does not

    simulate(dut, bench)
    assert {"split", "rotate", "shrink"} <= seen
    assert tile == 0 or fifo == capacity or {"dissolve", "backfill"} <= seen


@pytest.mark.parametrize("capacity,fifo,tile", SIZES)
def test_entries_lie_where_they_were_written(capacity, fifo, tile):
    """A memory written at the tail holds the golden model's entries from the head on, and from the anchor on."""
    dut = TailorsEntries(entries=ENTRIES)
    rng = random.Random(capacity * 10 + fifo)
    memory = {}

    async def bench(ctx):
        ctx.set(dut.capacity, capacity)
        ctx.set(dut.fifo_entries, fifo)
        ctx.set(dut.step, {"calm": 1})
        slot = 0
        refused = 0
        for number, (name, amount, (present, was_overbooked), model) in enumerate(walk(capacity, fifo, tile, rng, 250)):
            ctx.set(dut.present, present)
            ctx.set(dut.overbooked, was_overbooked)
            ctx.set(dut.closes, slot + 1 == fifo)
            if name == "shrink":
                # One that asks for more than there is comes first: it changes nothing.
                held = ctx.get(dut.regular_count) + present
                for count in ([held + 1] if held < capacity else []) + [amount]:
                    state = [ctx.get(port) for port in (dut.head, dut.tail, dut.regular_count)]
                    ctx.set(dut.amount, count)
                    ctx.set(dut.step, {"examine": 1})
                    await ctx.tick()
                    ctx.set(dut.step, {"shrink": 1})
                    assert ctx.get(dut.refused) == (count > held)
                    await ctx.tick()
                    ctx.set(dut.step, {"calm": 1})
                    if count > held:
                        refused += 1
                        assert state == [ctx.get(port) for port in (dut.head, dut.tail, dut.regular_count)]
                slot = slot if model.overbooked else 0
            else:
                at = None
                if name in ("split", "dissolve"):
                    for step in ("place", "aim"):
                        ctx.set(dut.step, {step: 1})
                        await ctx.tick()
                    ctx.set(dut.step, {"turn": 1})
                at = ctx.get(dut.tail)
                ctx.set(dut.verb, {**NO_VERB, name: 1})
                await ctx.tick()
                ctx.set(dut.verb, NO_VERB)
                ctx.set(dut.step, {"calm": 1})
                memory[at] = number
                slot = (slot + 1) % fifo if name in ("split", "rotate") else 0
            assert ctx.get(dut.regular_count) == len(model.regular)
            assert ctx.get(dut.unused) == capacity - len(model.regular) and ctx.get(dut.kept) == capacity - fifo
            head, anchor = ctx.get(dut.head), ctx.get(dut.anchor)
            assert [memory[(head + n) % capacity] for n in range(len(model.regular))] == model.regular
            first = slot if len(model.region) == fifo else 0
            region = [memory[(anchor + (first + n) % fifo) % capacity] for n in range(len(model.region))]
            assert region == model.region
        assert refused or capacity == fifo

    simulate(dut, bench)


@pytest.mark.parametrize("capacity,fifo,tile", SIZES)
def test_lookup_finds_what_the_golden_model_finds(capacity, fifo, tile):
    dut = TailorsLookup(entries=ENTRIES, index_width=INDEX)
    rng = random.Random(capacity + fifo)
    seen = set()

    async def bench(ctx):
        ctx.set(dut.advance, 1)
        ctx.set(dut.reserve_ready, 1)
        ctx.set(dut.kept, capacity - fifo)
        for _, _, _, model in walk(capacity, fifo, tile, rng, 150):
            modulus = model.bumped or 2**INDEX
            if model.fifo_offset > 2**INDEX - 2 * ENTRIES:
                break
            newest = model.fifo_offset + len(model.region)
            ctx.set(dut.regular_count, len(model.regular))
            ctx.set(dut.overbooked, model.overbooked)
            ctx.set(dut.offset, model.fifo_offset if model.overbooked else 0)
            ctx.set(dut.following, newest % modulus if model.overbooked else 0)
            ctx.set(dut.begun, model.overbooked and newest >= modulus)
            ctx.set(dut.bumped, modulus)
            index = rng.randrange(min(2**INDEX - 1, (tile or 3 * capacity) + 2))
            update = rng.random() < 0.3
            ctx.set(dut.read, not update)
            ctx.set(dut.update, update)
            ctx.set(dut.updates_turn, update)
            ctx.set(dut.update_index if update else dut.read_index, index)
            try:
                model.read(index)
                found = "present"
            except Stall:
                found = "absent"
            except IllegalOperation:
                found = "beyond"
            seen.add(found)
            ready = dut.update_ready if update else dut.read_ready
            served, other = (dut.updates, dut.reads) if update else (dut.reads, dut.updates)
            assert ctx.get(dut.updating) == update and ctx.get(dut.index) == index
            assert ctx.get(ready) == (found != "absent") and ctx.get(dut.beyond) == (found == "beyond")
            assert ctx.get(served) == (found == "present") and not ctx.get(other)
            assert ctx.get(dut.regular) == (index < len(model.regular))
            if model.overbooked:
                asked = not update and index == len(model.regular) + model.fifo_offset
                assert ctx.get(dut.asked_first) == asked
            # Would the next OWFill that turns the buffer rob a read of its entry?
            ctx.set(dut.look, 1)
            await ctx.tick()
            ctx.set(dut.look, 0)
            stays = index < len(model.regular) if model.overbooked else index < capacity - fifo
            robbed = found == "present" and not stays
            if model.overbooked or len(model.regular) == capacity:
                assert not ctx.get(dut.read_is_safe) or not robbed
                assert update or ctx.get(dut.read_is_safe) == (not robbed)
            ctx.set(dut.shut, 1)
            assert not ctx.get(ready) and not ctx.get(served)
            ctx.set(dut.shut, 0)

    simulate(dut, bench)
    assert {"present", "absent"} <= seen and (tile == 0 or "beyond" in seen)


def test_an_answer_needs_room_and_an_update_its_turn():
    dut = TailorsLookup(entries=ENTRIES, index_width=INDEX)

    async def bench(ctx):
        ctx.set(dut.regular_count, 2)
        ctx.set(dut.advance, 1)
        ctx.set(dut.read, 1)
        assert not ctx.get(dut.read_ready)
        ctx.set(dut.update, 1)
        assert not ctx.get(dut.update_ready)
        ctx.set(dut.updates_turn, 1)
        assert ctx.get(dut.update_ready) and not ctx.get(dut.read_ready)
        ctx.set(dut.updates_turn, 0)
        ctx.set(dut.reserve_ready, 1)
        assert ctx.get(dut.read_ready) and not ctx.get(dut.update_ready)
        ctx.set(dut.advance, 0)
        assert not ctx.get(dut.read_ready)

    simulate(dut, bench, clocked=False)


@pytest.mark.parametrize("capacity,fifo,tile", SIZES)
def test_verbs_are_those_of_the_golden_model(capacity, fifo, tile):
    dut = TailorsVerbs(entries=ENTRIES, index_width=INDEX)
    rng = random.Random(capacity + 3 * fifo)
    seen = set()

    async def bench(ctx):
        ctx.set(dut.capacity, capacity)
        states = (model for _, _, _, model in walk(capacity, fifo, tile, rng, 150) for _ in range(12))
        for model in states:
            length = rng.choice([tile, tile, capacity])
            model_length, model.tile_length = model.tile_length, length
            name = verb_of(model)
            model.tile_length = model_length
            ctx.set(dut.tile_length, length)
            full = model.overbooked and len(model.region) == fifo
            flags = {
                "overbooked": model.overbooked,
                "shrunk": model.shrunk,
                "backfilling": model.backfilling,
                "full": full,
                "no_credit": len(model.regular) == capacity,
                "ends": name == "dissolve",
                "asked_first": rng.random() < 0.3,
                "accepts": rng.random() < 0.9,
                "calm": rng.random() < 0.8,
                "fill": rng.random() < 0.3,
                "overwrite": rng.random() < 0.8,
            }
            released = {key: rng.random() < 0.3 for key in ("none", "part", "part_of_region")}
            waits = {"dissolve": released["part"], "split": released["part_of_region"]}
            turn = flags["overwrite"] and name in waits and not waits[name]
            turn_done = turn and not flags["calm"] and rng.random() < 0.7
            for key, value in flags.items():
                ctx.set(getattr(dut, key), value)
            ctx.set(dut.turn_done, turn_done)
            ctx.set(dut.released, {**released, "excess": 0})
            assert ctx.get(dut.turn) == turn
            free = flags["accepts"] and flags["calm"]
            takes_fill = free and (not model.shrunk if model.overbooked else model.credit > 0)
            assert ctx.get(dut.fill_ready) == takes_fill
            filled = flags["fill"] and takes_fill
            done = dict.fromkeys((*NO_VERB, "refused", "early", "late"), 0)
            if filled:
                done["refused" if model.overbooked else "fill"] = 1
            elif flags["overwrite"] and free:
                protected = full and (flags["asked_first"] or released["none"])
                if name in ("backfill", "early", "late") or (name == "rotate" and not protected):
                    done[name] = 1
            if turn_done:
                done[name] = 1
            seen.update(key for key, value in done.items() if value)
            assert {key: ctx.get(dut.verb[key]) for key in NO_VERB} == {key: done[key] for key in NO_VERB}
            refused = [done[key] for key in ("refused", "early", "late")]
            assert [ctx.get(dut.refused[key]) for key in ("fill", "early", "late")] == refused
            taken = any(done[key] for key in ("split", "rotate", "dissolve", "backfill", "early", "late"))
            assert ctx.get(dut.overwrite_ready) == taken

    simulate(dut, bench, clocked=False)
    assert {"fill", "split", "rotate", "early", "late", "refused"} <= seen
    assert tile == 0 or fifo == capacity or {"dissolve", "backfill"} <= seen


def test_places_of_entries_and_their_latency():
    dut = TailorsPlaces(entries=ENTRIES, index_width=INDEX, address_width=5)
    rng = random.Random(5)
    assert dut.latency == 2

    async def bench(ctx):
        expected = []
        capacity, fifo = 6, 4
        base = 9
        for port, value in ((dut.base, base), (dut.capacity, capacity), (dut.fifo_entries, fifo)):
            ctx.set(port, value)
        for _ in range(400):
            head, regular, tail = (
                rng.randrange(capacity),
                rng.randrange(1, capacity - fifo + 1),
                rng.randrange(capacity),
            )
            anchor = (head + capacity - fifo) % capacity
            bumped, offset, slot = rng.randrange(fifo + 1, 20), 0, rng.randrange(fifo)
            offset = rng.randrange(bumped)
            full = rng.random() < 0.8
            present = fifo if full else slot + 1
            if rng.random() < 0.5:
                index = rng.randrange(regular)
                place = (head + index) % capacity
            else:
                distance = rng.randrange(present)
                index = regular + (offset + distance) % bumped
                place = (anchor + (slot + distance if full else distance) % fifo) % capacity
            kind = rng.choice(["read", "update", "none"])
            enter = kind != "update" and rng.random() < 0.5
            for name, value in {
                "index": index,
                "regular": index < regular,
                "precedes": index - regular < offset,
                "oldest": regular + offset,
                "bumped": bumped,
                "fifo_place": slot,
                "full": full,
                "head": head,
                "anchor": anchor,
                "tail": tail,
                "read": kind == "read",
                "update": kind == "update",
                "enter": enter,
            }.items():
                ctx.set(getattr(dut, name), int(value))
            while rng.random() < 0.3:  # nothing moves on
                ctx.set(dut.advance, 0)
                await ctx.tick()
            ctx.set(dut.advance, 1)
            await ctx.tick()
            writes = place if kind == "update" else tail
            expected.append((kind == "read" and base + place, (kind == "update" or enter) and base + writes))
            if len(expected) >= dut.latency:
                read, write = expected[-dut.latency]
                assert ctx.get(dut.reads) == (read is not False) and ctx.get(dut.writes) == (write is not False)
                assert read is False or ctx.get(dut.read_address) == read
                assert write is False or ctx.get(dut.write_address) == write

    simulate(dut, bench)


def test_steps_of_a_shrink_and_of_an_overwrite():
    dut = TailorsSteps()

    async def bench(ctx):
        async def steps(count):
            seen = []
            for _ in range(count):
                (name,) = [name for name in STEPS if ctx.get(dut.step[name])]
                seen.append((name, ctx.get(dut.turn_done), ctx.get(dut.shut)))
                await ctx.tick()
            return seen

        def names(seen):
            return [name for name, _, _ in seen]

        assert names(await steps(3)) == ["calm"] * 3
        ctx.set(dut.shrink, 1)
        ctx.set(dut.turn, 1)
        seen = await steps(3)
        ctx.set(dut.shrink, 0)
        assert names(seen) == ["calm", "examine", "shrink"] and [shut for *_, shut in seen] == [0, 1, 1]
        # Nothing can be accepted, then the read at the port goes first, twice, then the OWFill turns the buffer.
        seen = await steps(4)
        assert names(seen) == ["calm", "place", "aim", "look"] and [shut for *_, shut in seen] == [0, 0, 0, 1]
        assert await steps(2) == [("turn", 0, 1)] * 2
        ctx.set(dut.yields, 1)
        ctx.set(dut.advance, 1)
        gives_way = [("turn", 0, 1), ("give_way", 0, 0), ("look", 0, 1)]
        assert await steps(6) == gives_way * 2
        ctx.set(dut.yields, 0)
        ctx.set(dut.turn, 0)
        assert await steps(2) == [("turn", 1, 1), ("calm", 0, 0)]

    simulate(dut, bench)


def test_updates_have_every_second_cycle():
    dut = TailorsSteps()

    async def bench(ctx):
        turns = []
        for _ in range(10):
            turns.append(ctx.get(dut.updates_turn))
            await ctx.tick()
        assert turns in ([0, 1] * 5, [1, 0] * 5)
        ctx.set(dut.shrink, 1)
        for _ in range(30):
            assert not (ctx.get(dut.updates_turn) and ctx.get(dut.shut))
            await ctx.tick()

    simulate(dut, bench)


def test_releases_are_counted_up_to_what_is_there():
    dut = ReleaseCount(entries=ENTRIES)
    rng = random.Random(2)

    async def bench(ctx):
        fifo, present, spent = 4, 0, 0
        ctx.set(dut.fifo_entries, fifo)
        excesses = 0
        for _ in range(500):
            release = rng.random() < 0.6
            verb = dict(NO_VERB)
            if present:
                verb["rotate"] = rng.random() < 0.5 and spent > 0
                verb["dissolve"] = not verb["rotate"] and rng.random() < 0.05
            else:
                verb["split"] = rng.random() < 0.2
            full = present == fifo
            for port, value in ((dut.entry_release, release), (dut.overbooked, present > 0), (dut.full, full)):
                ctx.set(port, int(value))
            ctx.set(dut.present, present)
            ctx.set(dut.verb, {name: int(value) for name, value in verb.items()})
            limit = present if present else fifo
            excess = release and spent == limit
            excesses += excess
            assert ctx.get(dut.state.none) == (spent == 0) and ctx.get(dut.state.part) == (spent != present)
            assert ctx.get(dut.state.part_of_region) == (spent != fifo) and ctx.get(dut.state.excess) == excess
            await ctx.tick()
            spent += release and not excess
            spent -= bool(verb["rotate"] and full)
            present += bool(verb["rotate"] and not full)
            if verb["split"] or verb["dissolve"]:
                spent, present = 0, int(verb["split"])
        assert excesses > 20

    simulate(dut, bench)


def test_the_chosen_entry_comes_a_cycle_later():
    dut = EntrySelect(width=5, sources=3)
    assert dut.latency == 1

    async def bench(ctx):
        rng = random.Random(1)
        for _ in range(60):
            sources = [rng.randrange(32) for _ in range(3)]
            chosen = rng.randrange(4)
            ctx.set(dut.source, sources)
            ctx.set(dut.chosen, 1 << chosen & 7)
            await ctx.tick()
            assert ctx.get(dut.entry) == (sources[chosen] if chosen < 3 else 0)

    simulate(dut, bench)


@pytest.mark.parametrize(
    "block,change,message",
    [
        *[
            (block, {"entries": 1}, "^Buffer entries must be an integer of at least 2, not 1$")
            for block in (FifoRegion, TailorsEntries, TailorsLookup, TailorsPlaces, TailorsVerbs, ReleaseCount)
        ],
        *[
            (block, {"index_width": 2}, "^Index width must be at least 3 for 7 entries, not 2$")
            for block in (FifoRegion, TailorsLookup, TailorsPlaces, TailorsVerbs)
        ],
        (TailorsPlaces, {"address_width": 2}, "^Address width must be at least 3 for 7 entries, not 2$"),
        (EntrySelect, {"width": 0}, "^Entry width must be a positive integer, not 0$"),
        (EntrySelect, {"sources": 0}, "^Sources of an entry must be a positive integer, not 0$"),
    ],
)
def test_bad_parameters_are_refused(block, change, message):
    good = {
        FifoRegion: {"entries": 7, "index_width": 5},
        TailorsLookup: {"entries": 7, "index_width": 5},
        TailorsVerbs: {"entries": 7, "index_width": 5},
        TailorsPlaces: {"entries": 7, "index_width": 5, "address_width": 5},
        TailorsEntries: {"entries": 7},
        ReleaseCount: {"entries": 7},
        EntrySelect: {"width": 4, "sources": 2},
    }[block]
    with pytest.raises(ValueError, match=message):
        block(**(good | change))
