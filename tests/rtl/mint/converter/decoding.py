"""Checks of the blocks that make entries of a source, against models in plain Python."""

import random

from tests.rtl.mint.converter.harness import (
    BITS,
    LANES,
    PATTERNS,
    Held,
    beats_of,
    entries_of,
    fields,
    matrix,
    pauses,
    plain,
    positions,
    records,
    run_until_last,
    runs_of,
    stopped,
)
from tests.rtl.mint.streams import run


def check_fields(splitter, joiner):
    """Records of every width come apart and together."""
    rng = random.Random("fields")
    for first, second in ((0, 0), (0, 5), (32, 32), (7, 0), (1, 31), (17, 13)):
        items = [(rng.getrandbits(first), rng.getrandbits(second), rng.getrandbits(BITS)) for _ in range(11)]
        packed = [v | a << BITS | b << (BITS + first) for a, b, v in items]
        widths = {"first_bits": first, "second_bits": second}
        pattern = pauses(rng.choice(PATTERNS), ["i"], ["o"])

        given = records(rng, packed, LANES)
        dut = Held(splitter(lanes=LANES, value_bits=BITS), first_bits=first)
        out = run(dut, {"i": given}, {"o": len(given)}, pause=pattern, view=lambda port, group: _fields(group))
        assert [item for group in out.items["o"] for item in group] == items

        given = fields(rng, items, LANES)
        dut = Held(joiner(lanes=LANES, value_bits=BITS), **widths)
        out = run(dut, {"i": given}, {"o": len(given)}, pause=pattern, view=lambda port, group: _records(group))
        assert [item for group in out.items["o"] for item in group] == packed

        dut = Held(joiner(lanes=LANES, value_bits=BITS), bare=1, **widths)
        out = run(dut, {"i": given}, {"o": len(given)}, pause=pattern, view=lambda port, group: _records(group))
        assert [item for group in out.items["o"] for item in group] == [record >> BITS for record in packed]


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
