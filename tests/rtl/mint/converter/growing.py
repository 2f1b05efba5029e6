"""Checks of what the converter's blocks do with tensors of order 3, against models in plain Python."""

import random

from tests.rtl.mint.converter.harness import (
    BITS,
    LANES,
    PATTERNS,
    Held,
    entries_of,
    filled,
    groups_of,
    pauses,
    plain,
    records,
    stopped,
)
from tests.rtl.mint.streams import run

LAST = (1 << 32) - 1
LEVELS = (("ids_0", "ptrs_1"), ("ids_1", "ptrs_2"))


def whole(port, item):
    """All members of a payload."""
    return {name: plain(item[name]) for name in item.shape().members}


def check_tensor_fields(splitter):
    """Records of three whole numbers of every width come apart; 128 bits among them."""
    rng = random.Random("three fields")
    bits = 32
    for widths in ((0, 0, 0), (32, 32, 32), (5, 0, 7), (0, 31, 1), (1, 32, 0), (13, 17, 32)):
        first, second, _ = widths
        items = [(*(rng.getrandbits(width) for width in widths), rng.getrandbits(bits)) for _ in range(11)]
        packed = [v | a << bits | b << (bits + first) | c << (bits + first + second) for a, b, c, v in items]
        given = records(rng, packed, LANES)
        dut = Held(splitter(lanes=LANES, value_bits=bits, tensors=True), first_bits=first, second_bits=second)
        out = run(dut, {"i": given}, {"o": len(given)}, pause=pauses(rng.choice(PATTERNS), ["i"], ["o"]), view=whole)
        names = ("first", "second", "third", "values")
        found = [tuple(group[name][n] for name in names) for group in out.items["o"] for n in range(group["count"])]
        assert found == items


def vectors_of(rng, places, lanes, **others):
    """Vectors with gaps of (outer, position, value)."""
    found = []
    for part, last in groups_of(rng, places, lanes):
        present = sorted(rng.sample(range(lanes), len(part)))
        at = dict(zip(present, part, strict=True))
        spare = [tuple(rng.getrandbits(32) for _ in range(3)) for _ in range(lanes)]
        items = [at.get(lane, spare[lane]) for lane in range(lanes)]
        names = ("outers", "positions", "values")
        found.append(
            {
                "present": sum(1 << lane for lane in present),
                **{name: [item[k] for item in items] for k, name in enumerate(names)},
                "last": last,
                **others,
            }
        )
    return found


def check_tensor_positions(block):
    """i stays beside row and column of the last two ranks; what lies outside in any rank is flagged."""
    rng = random.Random("tensors")
    for shape in ((1, 1, 1), (1 << 32, 1 << 32, 1 << 32), (3, 5, 7), (7, 1 << 32, 1)):
        given, wanted = [], []
        for n in range(12):
            lanes = [
                tuple(min(LAST, rng.choice((size - 1, rng.randrange(size), size))) for size in shape)
                for _ in range(LANES)
            ]
            present = rng.getrandbits(LANES)
            columns = {name: [lane[k] for lane in lanes] for k, name in enumerate(("outers", "rows", "columns"))}
            given.append({"present": present, **columns, "values": [n] * LANES, "last": n == 11})
            outside = [
                present >> k & 1 and any(place >= size for place, size in zip(lanes[k], shape, strict=True))
                for k in range(LANES)
            ]
            places = [(i, j << 32 | k) for i, j, k in lanes]
            wanted.append((present, sum(bool(out) << k for k, out in enumerate(outside)), places))
        sizes = dict(zip(("outers", "rows", "columns"), shape, strict=True))
        for multiplies in (False, True):
            dut = Held(block(lanes=LANES, value_bits=BITS, multiplies=multiplies, tensors=True), keyed=1, **sizes)
            out = run(
                dut, {"i": given}, {"o": len(given)}, pause=pauses(rng.choice(PATTERNS), ["i"], ["o"]), view=whole
            )
            found = [
                (item["present"], item["outside"], [*zip(item["outers"], item["positions"], strict=True)])
                for item in out.items["o"]
            ]
            assert found == wanted


def check_tensor_filter(block):
    """Entries rise by i first, whatever the position; what does not is found with its number."""
    rng = random.Random("tensor filter")
    dut = {"lanes": LANES, "value_bits": BITS, "floating": False, "tensors": True}
    for count in (0, 1, 30):
        places = sorted({(rng.choice((0, 1, LAST)), rng.getrandbits(64)) for _ in range(count)})
        items = [(i, p, rng.randint(1, 99)) for i, p in places]
        given = {"placed": vectors_of(rng, items, LANES, outside=0)}
        out = run(
            block(**dut),
            given,
            {"groups": len(given["placed"])},
            pause=pauses(PATTERNS[3], given, ["groups"]),
            view=whole,
        ).items["groups"]
        assert [item["outers"][n] for item in out for n in range(item["count"])] == [i for i, _, _ in items]
        assert entries_of(out) == [(p, v) for _, p, v in items]
    rising = [(n // 3, (5 - n) % 3 << 40 | n, 1) for n in range(9)]
    rising = [(i, p, 1) for i, p, _ in sorted(rising)]
    for at in (1, 4, 8):
        i, p, _ = rising[at - 1]
        for place in ((i, p, 1), (i, p - 1, 1), (i - 1, (1 << 64) - 1, 1) if i else (0, 0, 1)):
            given = {"placed": vectors_of(rng, [*rising[:at], place, *rising[at + 1 :]], LANES, outside=0)}
            got = stopped(block(**dut), given, ["groups"], ["disorder", "outside", "number"], 60)
            assert got == {"disorder": 1, "outside": 0, "number": at}


def check_tensor_cells(block):
    """i passes the divider by with the others, and is 0 where they are divided."""
    group = {"outers": [3, LAST], "positions": [5 << 32 | 7, (1 << 64) - 1], "values": [1, 2], "count": 2, "last": 1}
    for passes, rows, columns, outers in ((1, [5, LAST], [7, LAST], [3, LAST]), (0, [0, 2], [7, 5], [0, 0])):
        given = {"groups": [group]} if passes else {"columns": [11], "groups": [group | {"positions": [7, 27]}]}
        dut = Held(block(lanes=2, value_bits=BITS, tensors=True), passes=passes)
        (item,) = run(dut, given, {"cells": 1}, view=whole).items["cells"]
        assert (item["rows"], item["columns"], item["outers"]) == (rows, columns, outers)


def check_fibers(block):
    """Numbers of fibers become i and j, with the largest extents and with none; else i and j stay as they are."""
    rng = random.Random("fibers")
    for number, extent in enumerate((1, 2, 3, 97, 1 << 24, (1 << 24) + 1, LAST, 1 << 32)):
        for blocks in (False, True):
            fibers = [*(rng.getrandbits(32) for _ in range(7)), 0, extent - 1, min(LAST, extent), LAST]
            entries = [(fiber, rng.getrandbits(32), n) for n, fiber in enumerate(fibers)]
            lists = groups_of(rng, entries, 2)
            names = ("rows", "columns", "values")
            groups = [
                {
                    **{name: filled([entry[k] for entry in part], 2, rng) for k, name in enumerate(names)},
                    "count": len(part),
                    "last": end,
                }
                for part, end in lists
            ]
            given = {"sides": [{"rows": extent, "columns": 1}], "cells": groups}
            out = run(
                Held(
                    block(lanes=2, value_bits=BITS, tensors=True, fibers=True, has_blocks=blocks), by_fiber=1, by_row=1
                ),
                given,
                {"blocks": len(groups)},
                pause=pauses(PATTERNS[number % 4], given, ["blocks"]),
                view=whole,
            ).items["blocks"]
            found = [[item[name][n] for name in ("outers", *names)] for item in out for n in range(item["count"])]
            assert found == [[fiber // extent, fiber % extent, k, v] for fiber, k, v in entries]
            assert [item["last"] for item in out] == [end for _, end in lists]
    for by_block in (0, 1):
        cell = {"outers": [3, LAST], "rows": [9, 8], "columns": [4, 5], "values": [1, 2], "count": 2, "last": 1}
        dut = Held(block(lanes=2, value_bits=BITS, tensors=True, fibers=True), by_fiber=0, by_block=by_block, by_row=1)
        given = {"sides": [{"rows": 4, "columns": 3}], "cells": [cell]}
        (item,) = run(dut, given, {"blocks": 1}, view=whole).items["blocks"]
        assert (item["rows"], item["columns"]) == ([9, 8], [4, 5])
        if by_block:
            assert (item["block_rows"], item["block_columns"]) == ([2, 2], [1, 1])
        else:
            assert item["outers"] == [3, LAST]


def _grown(rng, places, lanes, full=False):
    """Vectors as a tree builder gives them, by the definition."""
    found, before, fibers = [], None, 0
    entries = 0
    for part, last in groups_of(rng, places, lanes, full=full):
        items = []
        for place in part:
            new = [before is None or before[: n + 1] != place[: n + 1] for n in range(2)]
            fibers += new[1]
            items.append({"i": place[0], "j": place[1], "new_i": new[0], "new_j": new[1], "fibers": fibers})
            before = place
        idle = {"i": rng.getrandbits(32), "j": rng.getrandbits(32), "new_i": 0, "new_j": 0, "fibers": fibers}
        items += [idle] * (lanes - len(part))
        found.append({"items": items, "count": len(part), "entries": entries, "last": last})
        entries += len(part)
    if not full and rng.random() < 0.5:
        idle = [found[-1]["items"][-1] | {"new_i": 0, "new_j": 0}] * lanes
        found[-1] = found[-1] | {"last": 0}
        found.append({"items": idle, "count": 0, "entries": entries, "last": 1})
    return found


def _tree(places):
    """Arrays of CSF, counted one entry after the other."""
    slices, fibers = sorted({i for i, _, _ in places}), sorted({(i, j) for i, j, _ in places})
    return {
        "ids_0": slices,
        "ptrs_1": [*(sum(i < at for i, _ in fibers) for at in slices), len(fibers)],
        "ids_1": [j for _, j in fibers],
        "ptrs_2": [*(sum((i, j) < at for i, j, _ in places) for at in fibers), len(places)],
    }


def _trees(rng):
    """Places of no entry and of one, of a single fiber, of fibers and slices of one entry, and of any."""
    yield []
    yield [(LAST, LAST, LAST)]
    yield [(5, 6, k) for k in range(11)]
    yield [(5, j, 3) for j in range(9)]
    yield [(i, 4, 3) for i in range(9)]
    yield [(i, j, k) for i in range(3) for j in range(3) for k in range(3)]
    for _ in range(4):
        yield sorted({(rng.randrange(4), rng.randrange(3), rng.randrange(9)) for _ in range(rng.randint(2, 40))})


def check_tree_nodes(block):
    """Ids and pointers of each level, groups of a level only where it has a node; too many for a pointer are found."""
    rng = random.Random("nodes")
    for number, places in enumerate(_trees(rng)):
        for lanes in (2, LANES):
            vectors = _grown(rng, places, lanes)
            ports = [name for level in LEVELS for name in level]
            groups = {}
            for (ids, pointers), new in zip(LEVELS, ("new_i", "new_j"), strict=True):
                begun = [any(item[new] for item in vector["items"]) for vector in vectors]
                groups[ids] = sum(begun) + (not begun[-1])
                groups[pointers] = sum(begun) + 1
            given = {"vectors": vectors}
            dut = Held(block(lanes=lanes), slice_bits=40, entry_bits=40)
            out = run(dut, given, groups, pause=pauses(PATTERNS[number % 4], given, ports), view=whole)
            wanted = _tree(places)
            for name in ports:
                found = out.items[name]
                assert [item["records"][n] for item in found for n in range(item["count"])] == wanted[name], name
                assert [item["last"] for item in found] == [0] * (len(found) - 1) + [1], name
    # A vector a cycle, and one more for the last pointers.
    vectors = _grown(rng, [(i, i, i) for i in range(40)], LANES, full=True)
    dut = Held(block(lanes=LANES), slice_bits=6, entry_bits=6)
    out = run(
        dut, {"vectors": vectors}, dict.fromkeys(("ids_0", "ids_1"), 10) | dict.fromkeys(("ptrs_1", "ptrs_2"), 11)
    )
    first = out.cycles["ids_0"][0]
    assert out.cycles["ids_0"] == [first + n for n in range(10)]
    assert out.cycles["ptrs_2"] == [first + n for n in range(11)]
    for places, slice_bits, entry_bits, number in (
        ([(0, 0, k) for k in range(7)], 1, 3, None),
        ([(0, 0, k) for k in range(8)], 1, 3, 8),
        ([(0, j, 0) for j in range(3)], 2, 3, None),
        ([(0, j, 0) for j in range(4)], 2, 3, 4),
        ([], 0, 0, None),
        ([(0, 0, 0)], 0, 1, 1),
    ):
        vectors = _grown(rng, places, LANES, full=True)
        dut = Held(block(lanes=LANES), slice_bits=slice_bits, entry_bits=entry_bits)
        ports = [name for level in LEVELS for name in level]
        got = stopped(dut, {"vectors": vectors}, ports, ["overflow", "number"])
        assert got == {"overflow": int(number is not None), "number": number or 0}
