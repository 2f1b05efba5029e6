"""Checks of the converter's blocks against models in plain Python. Each takes the class, so that a faulty one can be given."""

import random

import numpy as np
from amaranth.hdl import Elaboratable, Module, Value
from amaranth.sim import Simulator

from tests.rtl.mint.streams import PAUSES, run

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


def check_fields(splitter, joiner):
    """Records of every width come apart and together."""
    rng = random.Random("fields")
    for first, second in ((0, 0), (0, 5), (32, 32), (7, 0), (1, 31), (17, 13)):
        items = [(rng.getrandbits(first), rng.getrandbits(second), rng.getrandbits(BITS)) for _ in range(11)]
        packed = [a | b << first | v << (first + second) for a, b, v in items]
        widths = {"first_bits": first, "second_bits": second}
        pattern = pauses(rng.choice(PATTERNS), ["i"], ["o"])

        given = records(rng, packed, LANES)
        dut = Held(splitter(lanes=LANES, value_bits=BITS), **widths)
        out = run(dut, {"i": given}, {"o": len(given)}, pause=pattern, view=lambda port, group: _fields(group))
        assert [item for group in out.items["o"] for item in group] == items

        given = fields(rng, items, LANES)
        dut = Held(joiner(lanes=LANES, value_bits=BITS), **widths)
        out = run(dut, {"i": given}, {"o": len(given)}, pause=pattern, view=lambda port, group: _records(group))
        assert [item for group in out.items["o"] for item in group] == packed


def _fields(group):
    return [(group.first[n], group.second[n], group.values[n]) for n in range(group.count)]


def _records(group):
    return [group.records[n] for n in range(group.count)]


def check_position_maker(block):
    """Positions up to 64 bits; what lies outside is flagged."""
    rng = random.Random("positions")
    for rows, columns in ((1, 1), (5, 3), (1 << 32, 1 << 32), (3, 1 << 32), (1 << 20, 77)):
        given, wanted = [], []
        for n in range(12):
            row = [rng.choice((rows - 1, rng.randrange(rows), min(rows, (1 << 33) - 1))) for _ in range(LANES)]
            column = [
                min((1 << 32) - 1, rng.choice((columns - 1, rng.randrange(columns), columns))) for _ in range(LANES)
            ]
            present = rng.getrandbits(LANES)
            values = [rng.getrandbits(BITS) for _ in range(LANES)]
            given.append({"present": present, "rows": row, "columns": column, "values": values, "last": n == 11})
            outside = [present >> k & 1 and (row[k] >= rows or column[k] >= columns) for k in range(LANES)]
            inside = [
                None if outside[k] or not present >> k & 1 else row[k] * columns + column[k] for k in range(LANES)
            ]
            wanted.append((present, sum(bool(o) << k for k, o in enumerate(outside)), inside, values, int(n == 11)))

        order = iter(range(len(wanted)))

        def view(port, item, wanted=wanted, order=order):
            known = [None if w is None else item.positions[k] for k, w in enumerate(wanted[next(order)][2])]
            return (item.present, item.outside, known, [item.values[k] for k in range(LANES)], item.last)

        dut = Held(block(lanes=LANES, value_bits=BITS), rows=rows, columns=columns)
        out = run(dut, {"i": given}, {"o": len(given)}, pause=pauses(rng.choice(PATTERNS), ["i"], ["o"]), view=view)
        assert out.items["o"] == wanted


def check_row_expander(block):
    """Every entry gets its row, with empty rows anywhere; contradicting pointers are found."""
    rng = random.Random("rows")
    for rows, density in ((1, 0.0), (1, 1.0), (9, 0.3), (40, 0.02), (3, 1.0)):
        columns = 7
        found = matrix(rng, rows * columns, density)
        pointers = [sum(p < row * columns for p, _ in found) for row in range(rows + 1)]
        items = [(rng.getrandbits(5), p % columns, v) for p, v in found]
        for pattern in [rng.choice(PATTERNS)]:
            given = {"pointers": records(rng, pointers, LANES), "entries": fields(rng, items, LANES)}
            out = run_until_last(block(lanes=LANES, value_bits=BITS), given, "cells", pattern=pattern)
            got = [
                (item["rows"][n] * columns + item["columns"][n], item["values"][n])
                for item in out
                for n in range(LANES)
                if item["present"] >> n & 1
            ]
            assert got == found
    good = [0, 2, 2, 5]
    items = [(0, n, 1) for n in range(5)]
    for pointers in ([1, 2, 2, 5], [0, 3, 2, 5], [0, 2, 2, 4], [0, 2, 2, 6], [0, 0, 0, 0], [0, 2, 2, 5, 4]):
        for full in (False, True) if pointers[1] > pointers[2] else (False,):
            given = {"pointers": records(rng, pointers, LANES, full=full), "entries": fields(rng, items, LANES)}
            assert stopped(block(lanes=LANES, value_bits=BITS), given, ["cells"], ["error"])["error"] == 1, pointers
    given = {"pointers": records(rng, good, LANES), "entries": fields(rng, items, LANES)}
    assert stopped(block(lanes=LANES, value_bits=BITS), given, ["cells"], ["error"])["error"] == 0


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


def check_run_decoder(block):
    """Positions of levels; fillers leave nothing; a filler that is none, and a run past the end, are found."""
    rng = random.Random("runs")
    sizes = {"lanes": LANES, "value_bits": BITS, "floating": True, "form": "work_efficient"}
    for places, density, bits in (
        (1, 1.0, 1),
        (300, 0.1, 2),
        (300, 0.02, 5),
        (64, 1.0, 3),
        (200, 0.3, 32),
        (50, 0.0, 4),
    ):
        found = [(p, v) for p, v in matrix(rng, places, density) if v & 0x7FFF]
        items = [(run_, 0, level) for run_, level in runs_of(found, bits)]
        for pattern in [rng.choice(PATTERNS)]:
            given = {"pairs": fields(rng, items, LANES)}
            out = run(
                Held(block(**sizes), run_bits=bits, places=places),
                given,
                {"placed": len(given["pairs"])},
                pause=pauses(pattern, given, ["placed"]),
                view=lambda port, item: {name: plain(item[name]) for name in item.shape().members},
            )
            assert entries_of(out.items["placed"]) == found
            assert not any(item["outside"] for item in out.items["placed"])
            assert [item["last"] for item in out.items["placed"]] == [g["last"] for g in given["pairs"]]
    for pairs, number in (
        ([(2, 5), (1, 0), (0, 4)], 1),  # a filler that is not the longest run
        ([(2, 5), (0, 4), (3, 0)], 2),  # a filler at the end
        ([(2, 5), (0, 4), (1, 0x8000), (0, 1)], 2),  # a zero with a sign
    ):
        dut = Held(block(**sizes), run_bits=2, places=100)
        given = {"pairs": fields(rng, [(a, 0, b) for a, b in pairs], LANES)}
        assert stopped(dut, given, ["placed"], ["error", "number"]) == {"error": 1, "number": number}
    # The last place of the largest matrix, and the first one behind it.
    for places, outside in ((1 << 32, 0), ((1 << 32) - 1, 1)):
        given = {"pairs": fields(rng, [((1 << 32) - 1, 0, 9)], LANES)}
        out = run(
            Held(block(**sizes), run_bits=32, places=places),
            given,
            {"placed": 1},
            view=lambda port, item: (item.outside, item.positions[0]),
        )
        assert out.items["placed"] == [(outside, (1 << 32) - 1)]


def beats_of(found, places, beat_bits, dense, rng=None):
    """Beats of a mask or of values; behind the last place anything where ``rng`` is given."""
    width = BITS if dense else 1
    bits = sum((value if dense else 1) << (p * width) for p, value in found)
    count = -(-places * width // beat_bits)
    if rng is not None:
        end = places * width if dense else -(-places // 8) * 8
        bits |= rng.getrandbits(max(1, count * beat_bits)) >> end << end if end < count * beat_bits else 0
    return [bits >> (n * beat_bits) & ((1 << beat_bits) - 1) for n in range(count)]


def check_place_scanner(block):
    """Occupied places of masks and dense matrices, by every form, with beats that end anywhere."""
    rng = random.Random("scanner")
    sizes = {"beat_bits": 128, "lanes": LANES, "value_bits": BITS, "floating": False}
    cases = ((1, 1.0), (128, 0.4), (129, 0.2), (700, 0.004), (200, 1.0), (400, 0.0))
    for number, (places, density) in enumerate(cases):
        for dense in (0, 1):
            found = matrix(rng, places, density)
            given = {"beats": beats_of(found, places, 128, dense, rng)}
            form = (
                ("serial_chain", "work_efficient", "highly_parallel")[number % 3] if places < 130 else "work_efficient"
            )
            out = run_until_last(
                Held(block(**sizes, form=form), dense=dense, places=places),
                given,
                "found",
                pattern=rng.choice(PATTERNS),
            )
            got = entries_of(out)
            assert (got if dense else [p for p, _ in got]) == (found if dense else [p for p, _ in found])
    for bit, excess in ((13, 1), (15, 1), (16, 0), (100, 0)):
        dut = Held(block(**sizes, form="work_efficient"), dense=0, places=13)
        assert stopped(dut, {"beats": [1 << bit | 1]}, ["found"], ["excess"], 30)["excess"] == excess


def check_value_matcher(block):
    """Each position gets its value; too many, too few and zeros are found."""
    rng = random.Random("matcher")
    sizes = {"lanes": LANES, "value_bits": BITS, "floating": True}
    for count in (0, 1, 3, 4, 5, 8, 33, 40):
        found = [(rng.getrandbits(64), rng.randint(1, 0x7FFF)) for _ in range(count)]
        for pattern in [rng.choice(PATTERNS)]:
            given = {
                "found": positions(rng, [(p, 0) for p, _ in found], LANES),
                "values": fields(rng, [(0, 0, v) for _, v in found], LANES, full=True),
            }
            out = run(
                block(**sizes),
                given,
                {"placed": len(given["found"])},
                pause=pauses(pattern, given, ["placed"]),
                view=lambda port, item: {name: plain(item[name]) for name in item.shape().members},
            )
            assert entries_of(out.items["placed"]) == found
    for bits, values in ((5, 4), (4, 5), (1, 0), (0, 1), (8, 9), (9, 8), (4, 8)):
        given = {
            "found": positions(rng, [(n, 0) for n in range(bits)], LANES),
            "values": fields(rng, [(0, 0, 7)] * values, LANES, full=True),
        }
        assert stopped(block(**sizes), given, ["placed"], ["mismatch", "zero"]) == {"mismatch": 1, "zero": 0}
    given = {
        "found": positions(rng, [(n, 0) for n in range(7)], LANES),
        "values": fields(rng, [(0, 0, 0x8000 if n == 5 else 7) for n in range(7)], LANES, full=True),
    }
    got = stopped(block(**sizes), given, ["placed"], ["mismatch", "zero", "number"])
    assert got == {"mismatch": 0, "zero": 1, "number": 5}


def vectors(rng, items, lanes, outside=()):
    """Items spread over lanes with gaps."""
    found, at = [], 0
    while at < len(items) or not found or rng.random() < 0.2:
        present, part = 0, []
        for n in range(lanes):
            if at < len(items) and rng.random() < 0.7:
                present |= 1 << n
                part.append(items[at])
                at += 1
            else:
                part.append((rng.getrandbits(64), rng.getrandbits(4)))
        flagged = sum(1 << n for n in range(lanes) if present >> n & 1 and part[n][0] in outside)
        item = {"present": present, "outside": flagged, "positions": [p for p, _ in part]}
        found.append({**item, "values": [v for _, v in part], "last": 0})
    found[-1]["last"] = 1
    return found


def check_entry_filter(block):
    """Gaps are closed, zeros dropped where told, disorder and outsiders found with their number."""
    rng = random.Random("filter")
    sizes = {"lanes": LANES, "value_bits": BITS, "floating": True}
    for count in (0, 1, 20, 45):
        places = sorted({rng.randrange(1 << 64) for _ in range(count)})
        found = [(p, rng.choice((0, 0x8000, rng.randint(1, 99)))) for p in places]
        for drop in (0, 1):
            given = {"placed": vectors(rng, found, LANES)}
            out = run(
                Held(block(**sizes), drop_zeros=drop),
                given,
                {"groups": len(given["placed"])},
                pause=pauses(rng.choice(PATTERNS), given, ["groups"]),
                view=lambda port, item: {name: plain(item[name]) for name in item.shape().members},
            )
            assert entries_of(out.items["groups"]) == [(p, v) for p, v in found if not drop or v & 0x7FFF]
    rising = [(10 * n + 10, 1) for n in range(17)]
    for at in (1, 5, 16):
        for place in (rising[at - 1][0], rising[at - 1][0] - 3):
            wrong = [*rising[:at], (place, 1), *rising[at + 1 :]]
            given = {"placed": vectors(rng, wrong, LANES)}
            got = stopped(Held(block(**sizes), drop_zeros=1), given, ["groups"], ["disorder", "outside", "number"], 60)
            assert got == {"disorder": 1, "outside": 0, "number": at}
        given = {"placed": vectors(rng, rising, LANES, outside=(10 * at + 10,))}
        got = stopped(Held(block(**sizes), drop_zeros=0), given, ["groups"], ["disorder", "outside", "number"], 60)
        assert got == {"disorder": 0, "outside": 1, "number": at}


def check_cell_finder(block):
    """Rows and columns of the last place of the largest matrix and of any other."""
    rng = random.Random("cells")
    for columns in (1, 3, 1 << 32, 97):
        found = [(p, 5) for p in sorted(rng.randrange((1 << 32) * columns) for _ in range(12))]
        found.append(((1 << 32) * columns - 1, 6))
        given = {"columns": [columns], "groups": positions(rng, found, 2, gaps=True)}
        out = run(
            block(lanes=2, value_bits=BITS),
            given,
            {"cells": len(given["groups"])},
            pause=pauses(rng.choice(PATTERNS), given, ["cells"]),
            view=lambda port, item: {name: plain(item[name]) for name in item.shape().members},
        )
        got = [
            (item["rows"][n], item["columns"][n], item["values"][n], item["positions"][n])
            for item in out.items["cells"]
            for n in range(item["count"])
        ]
        assert got == [(p // columns, p % columns, v, p) for p, v in found]


def check_row_pointers(block):
    """Pointers as NumPy counts them; more entries than a pointer counts are found."""
    rng = random.Random("pointers")
    for rows, density in ((1, 0.0), (1, 1.0), (9, 0.3), (50, 0.01), (3, 1.0), (23, 0.1), (8, 0.0)):
        columns = 6
        found = matrix(rng, rows * columns, density)
        wanted = np.searchsorted([p for p, _ in found], np.arange(rows + 1) * columns).tolist()
        for pattern in [rng.choice(PATTERNS)]:
            given = {"cells": cells(rng, found, columns, LANES, gaps=True)}
            out = run_until_last(
                Held(block(lanes=LANES, value_bits=BITS), rows=rows, pointer_bits=40),
                given,
                "pointers",
                pattern=pattern,
            )
            assert [item["records"][n] for item in out for n in range(item["count"])] == wanted
    for entries, spills in ((7, 0), (8, 1)):
        given = {"cells": cells(rng, [(n, 1) for n in range(entries)], 4, LANES)}
        dut = Held(block(lanes=LANES, value_bits=BITS), rows=4, pointer_bits=3)
        assert stopped(dut, given, ["pointers"], ["overflow"])["overflow"] == spills


def check_run_encoder(block):
    """Runs and fillers by the definition."""
    rng = random.Random("pairs")
    for places, density, bits in (
        (1, 1.0, 1),
        (300, 0.1, 2),
        (400, 0.02, 3),
        (64, 1.0, 3),
        (200, 0.3, 32),
        (50, 0.0, 4),
    ):
        found = matrix(rng, places, density)
        for pattern in [rng.choice(PATTERNS)]:
            given = {"groups": positions(rng, found, LANES, gaps=True)}
            out = run_until_last(
                Held(block(lanes=LANES, value_bits=BITS), run_bits=bits),
                given,
                "pairs",
                pattern=pattern,
            )
            got = [(i["first"][n], i["values"][n]) for i in out for n in range(i["count"])]
            assert got == runs_of(found, bits)


def check_beat_builder(block):
    """Beats of masks and dense matrices to the last byte."""
    rng = random.Random("builder")
    for places, density in (
        (1, 1.0),
        (1, 0.0),
        (128, 0.4),
        (129, 0.2),
        (700, 0.004),
        (260, 1.0),
        (400, 0.0),
        (77, 0.1),
    ):
        for dense in (0, 1):
            found = matrix(rng, places, density)
            given = {"groups": positions(rng, found, LANES, gaps=True)}
            out = run_until_last(
                Held(block(beat_bits=128, lanes=LANES, value_bits=BITS), dense=dense, places=places),
                given,
                "beats",
                pattern=rng.choice(PATTERNS),
            )
            beats = out
            assert [beat["data"] for beat in beats] == beats_of(found, places, 128, dense)
            size = -(-places * (BITS if dense else 1) // 8)
            sizes = [min(16, size - 16 * n) for n in range(len(beats))]
            assert [beat["bytes"] for beat in beats] == sizes
            assert [beat["strobe"] for beat in beats] == [(1 << s) - 1 for s in sizes]


def check_region_writer(block):
    """Bursts cover the beats without a gap; a beat beyond the space is not written."""
    rng = random.Random("writer")
    for count, last_bytes in ((1, 16), (1, 3), (4, 16), (5, 1), (9, 0), (1, 0), (12, 8)):
        beats = []
        for n in range(count):
            size = last_bytes if n == count - 1 else 16
            item = {"data": rng.getrandbits(128), "strobe": (1 << size) - 1, "bytes": size, "last": n == count - 1}
            beats.append(item)
        total = sum(beat["bytes"] for beat in beats)
        written = [(beat["data"], beat["strobe"]) for beat in beats if beat["bytes"]]
        for space, fits in ((total, True), (total + 9, True), (total - 1, False)):
            if space < 0:
                continue
            got = written_by(block(beat_bits=128, address_width=40, burst_beats=4), beats, space)
            if fits:
                assert got["data"] == written and got["done"] and not got["overflow"]
                assert [a for a, n in got["requests"] for a in range(a, a + 16 * n, 16)] == [
                    0x4000 + 16 * n for n in range(len(written))
                ]
                assert all(n <= 4 for _, n in got["requests"])
            else:
                assert got["overflow"] and got["number"] == total and got["data"] == written[:-1]


def written_by(dut, beats, space):
    found = {"data": [], "requests": []}

    async def bench(ctx):
        rng = random.Random("bus")
        waiting = list(beats)
        for name, value in (("address", 0x4000), ("space", space), ("launch", 1)):
            ctx.set(getattr(dut, name), value)
        await ctx.tick()
        ctx.set(dut.launch, 0)
        for _ in range(150):
            ctx.set(dut.beats.valid, bool(waiting))
            if waiting:
                ctx.set(dut.beats.payload, waiting[0])
            ctx.set(dut.write_data.ready, rng.random() < 0.7)
            ctx.set(dut.write_request.ready, rng.random() < 0.3)
            if waiting and ctx.get(dut.beats.ready):
                waiting.pop(0)
            if ctx.get(dut.write_data.valid & dut.write_data.ready):
                found["data"].append((ctx.get(dut.write_data.payload.data), ctx.get(dut.write_data.payload.strobe)))
            if ctx.get(dut.write_request.valid & dut.write_request.ready):
                found["requests"].append(
                    (ctx.get(dut.write_request.payload.address), ctx.get(dut.write_request.payload.beats))
                )
            await ctx.tick()
        found.update({name: ctx.get(getattr(dut, name)) for name in ("done", "overflow", "number")})

    simulate(dut, bench)
    return found


def check_region_reader(block):
    """A region larger than a request takes several, without a gap."""
    largest = 1 << 23
    for beats in (0, 1, 100, largest, largest + 1, 2 * largest + 5):
        wanted = [largest] * (beats // largest) + ([beats % largest] if beats % largest else [])
        out = run(
            block(beat_bytes=16, address_width=40),
            {"region": [{"address": 0x8000, "beats": beats}]},
            {"read_request": len(wanted)},
            view=lambda port, item: (item.address, item.beats),
            pause=pauses(("never", "often"), ["region"], ["read_request"]),
        )
        assert out.items["read_request"] == [(0x8000 + 16 * largest * n, size) for n, size in enumerate(wanted)]


#: Name of a check -> modules and classes that it takes.
CHECKS = {
    check_fields: (("fields", "FieldSplitter"), ("fields", "FieldJoiner")),
    check_position_maker: (("position_maker", "PositionMaker"),),
    check_row_expander: (("row_expander", "RowExpander"),),
    check_run_decoder: (("run_decoder", "RunDecoder"),),
    check_place_scanner: (("place_scanner", "PlaceScanner"),),
    check_value_matcher: (("value_matcher", "ValueMatcher"),),
    check_entry_filter: (("entry_filter", "EntryFilter"),),
    check_cell_finder: (("cell_finder", "CellFinder"),),
    check_row_pointers: (("row_pointers", "RowPointers"),),
    check_run_encoder: (("run_encoder", "RunEncoder"),),
    check_beat_builder: (("beat_builder", "BeatBuilder"),),
    check_region_writer: (("regions", "RegionWriter"),),
    check_region_reader: (("regions", "RegionReader"),),
}
