"""Checks of the blocks that transpose, against models in plain Python."""

import random

from rtl.mint.converter.bucket_bank import BucketOrder
from rtl.regs.converter_map import FORMATS
from tests.rtl.mint.converter.harness import LANES, PATTERNS, Held, pauses, plain, simulate
from tests.rtl.mint.streams import PAUSES, run

FORM = "work_efficient"


class Ports(Held):
    """Streams of an array by name and number: ``items2`` is ``items[2]``."""

    def __getattr__(self, name):
        array = name.rstrip("0123456789")
        return getattr(self.block, array)[int(name[len(array) :])] if array != name else getattr(self.block, name)


def struct(port, item):
    return {name: plain(item[name]) for name in item.shape().members}


def check_update_sram(block):
    """Each word is what its last update made of it, one cycle or many before, with stalls at any time."""
    rng = random.Random("update")
    dut = block(depth=4, width=8)

    async def bench(ctx):
        model = dict.fromkeys(range(4))
        asked = None
        for _ in range(600):
            enable, request, index = rng.random() < 0.8, rng.random() < 0.8, rng.choice((0, 0, 0, 1, 2, 3))
            ctx.set(dut.enable, enable)
            ctx.set(dut.request, request)
            ctx.set(dut.index, index)
            assert ctx.get(dut.valid) == (asked is not None)
            if asked is not None:
                assert model[asked] in (None, ctx.get(dut.word))
                update = rng.getrandbits(8)
                ctx.set(dut.update, update)
                if enable:
                    model[asked] = update
            if enable:
                asked = index if request else None
            await ctx.tick()

    simulate(dut, bench)


def check_digit_counter(block):
    """Counts since the last time that they were given out."""
    rng = random.Random("digits")
    for pattern in PATTERNS:
        orders = [{"index": n, "clear": 1} for n in range(8)]
        orders += [{"index": rng.choice((0, 1, 7)), "clear": rng.random() < 0.2} for _ in range(150)]
        counts, wanted = [0] * 8, []
        for number, order in enumerate(orders):
            if order["clear"]:
                wanted.append(None if number < 8 else counts[order["index"]])
                counts[order["index"]] = 0
            else:
                counts[order["index"]] += 11
        dut = Held(block(depth=8, width=20, step_width=4), step=11)
        out = run(dut, {"orders": orders}, {"counts": len(wanted)}, pause=pauses(pattern, ["orders"], ["counts"]))
        assert out.items["counts"][8:] == wanted[8:]


def check_lane_router(block):
    """Every item reaches its bank once, those of a bank in their order."""
    rng = random.Random("router")
    for number, pattern in enumerate(PATTERNS):
        groups, wanted = [], {f"items{bank}": [] for bank in range(4)}
        for _ in range(40):
            digits = [rng.getrandbits(5) & (3 if number == 0 else 31) for _ in range(LANES)]
            items = [rng.getrandbits(9) for _ in range(LANES)]
            count = rng.randint(0, LANES)
            groups.append({"digits": digits, "items": items, "count": count})
            for digit, item in list(zip(digits, items, strict=True))[:count]:
                wanted[f"items{digit & 3}"].append({"index": digit >> 2, "item": item})
        dut = Ports(block(lanes=LANES, banks=4, digit_bits=5, width=9))
        sizes = {name: len(items) for name, items in wanted.items()}
        out = run(
            dut,
            {"groups": groups},
            sizes,
            pause=pauses(pattern, ["groups"], wanted),
            view=struct,
            after=lambda ctx, dut=dut: _idle(ctx, dut),
        )
        assert out.items == wanted
    four = {"digits": [4, 5, 6, 7], "items": [1, 2, 3, 4], "count": 4}
    dut = Ports(block(lanes=LANES, banks=4, digit_bits=5, width=9))
    out = run(dut, {"groups": [four] * 10}, {f"items{bank}": 10 for bank in range(4)})
    assert out.cycles["groups"] == list(range(10))  # a group a cycle where all banks differ


def _idle(ctx, dut):
    assert not ctx.get(dut.busy)


def check_bucket_bank(block):
    """Records lie one after the other in their buckets; bytes outside keep what they have."""
    rng = random.Random("buckets")
    for size, pattern in ((1, "never"), (7, "seldom"), (12, "often"), (4, "never"), (12, "seldom")):
        records = [(rng.choice((0, 0, 1, 2, 4)), rng.getrandbits(8 * size)) for _ in range(60)]
        starts, at = [], 5
        for bucket in range(5):
            starts.append(at)
            at += size * sum(b == bucket for b, _ in records)
        orders = [(n, BucketOrder.DROP, 0) for n in range(5)]
        orders += [(n, BucketOrder.BEGIN, start | 1 << 60) for n, start in enumerate(starts)]
        orders += [(bucket, BucketOrder.APPEND, record) for bucket, record in records]
        orders += [(n, BucketOrder.FLUSH, 0) for n in range(5)] * 2
        wanted = bytearray(b"?" * 1024)
        places = list(starts)
        for bucket, record in records:
            wanted[places[bucket] : places[bucket] + size] = record.to_bytes(size, "little")
            places[bucket] += size
        given = [{"index": n, "kind": kind.value, "record": record} for n, kind, record in orders]
        dut = Held(block(depth=5, beat_bits=128), record_bytes=size)
        beats = sum(-(-places[n] // 16) - starts[n] // 16 if places[n] > starts[n] else 0 for n in range(5))
        found = run(
            dut,
            {"orders": given},
            {"beats": beats},
            pause={"orders": PAUSES["never"], "beats": PAUSES[pattern]},
            view=struct,
            after=lambda ctx, dut=dut: _idle(ctx, dut),
        ).items["beats"]
        memory = bytearray(b"?" * 1024)
        for beat in found:
            assert beat["place"] % 16 == 0 and beat["strobe"]
            for n in range(16):
                if beat["strobe"] >> n & 1:
                    memory[beat["place"] + n] = beat["data"] >> (8 * n) & 0xFF
        assert memory == wanted
    order = {"index": 1, "kind": BucketOrder.APPEND.value, "record": 5}
    dropped = {"index": 1, "kind": BucketOrder.DROP.value, "record": 0}
    flushed = {"index": 1, "kind": BucketOrder.FLUSH.value, "record": 0}
    begins = {"index": 1, "kind": BucketOrder.BEGIN.value, "record": 0}
    dut = Held(block(depth=5, beat_bits=128), record_bytes=3)
    run(dut, {"orders": [dropped, begins, order, dropped, flushed]}, {"beats": 0})


def check_bucket_starts(block):
    """Sums of all buckets before each, over several vectors; an array follows another."""
    rng = random.Random("starts")
    for form in ("serial_chain", FORM, "highly_parallel"):
        sizes, wanted = [], []
        for vectors in (1, 3, 5):
            total = 0
            for n in range(vectors):
                values = [rng.choice((0, rng.getrandbits(20))) for _ in range(4)]
                sizes.append({"first": n == 0, "values": values})
                wanted.append([total + sum(values[:k]) for k in range(4)])
                total += sum(values)
        for pattern in PATTERNS[:3]:
            out = run(
                block(banks=4, width=44, form=form),
                {"sizes": sizes},
                {"starts": len(wanted)},
                pause=pauses(pattern, ["sizes"], ["starts"]),
                view=lambda port, item: plain(item),
            )
            assert out.items["starts"] == wanted


def check_beat_merger(block):
    """Every beat with its address, those of a bank in their order, none starved."""
    rng = random.Random("merger")
    for pattern in PATTERNS:
        given = {
            f"beats{bank}": [
                {"place": 16 * rng.randrange(99), "data": n << 8 | bank, "strobe": rng.getrandbits(16)}
                for n in range(10)
            ]
            for bank in range(4)
        }
        dut = Ports(block(banks=4, beat_bits=128, address_width=40), base=0x7000)
        out = run(
            dut,
            given,
            {"write_request": 40, "write_data": 40},
            pause=pauses(pattern, given, ["write_request", "write_data"]),
            view=struct,
            after=lambda ctx, dut=dut: _idle(ctx, dut),
        )
        pairs = list(zip(out.items["write_request"], out.items["write_data"], strict=True))
        for bank in range(4):
            mine = [(r["address"], r["beats"], d["data"], d["strobe"]) for r, d in pairs if d["data"] & 0xFF == bank]
            wanted = [(0x7000 + b["place"], 1, b["data"], b["strobe"]) for b in given[f"beats{bank}"]]
            assert mine == wanted
        if pattern == ("never", "never"):
            assert [d["data"] & 0xFF for _, d in pairs[:4]] == [0, 1, 2, 3]


def check_scratch_sram(block):
    """What was written under strobes is read, data before or after their request, a beat each way a cycle."""
    rng = random.Random("sram")
    for pattern in PATTERNS:
        model = [rng.getrandbits(128) for _ in range(8)]
        requests = [{"address": 0, "beats": 4}, {"address": 64, "beats": 4}]
        beats = [{"data": word, "strobe": 0xFFFF} for word in model]
        for _ in range(12):
            at, word, strobe = rng.randrange(4), rng.getrandbits(128), rng.getrandbits(16)
            requests.append({"address": 16 * at, "beats": 1})
            beats.append({"data": word, "strobe": strobe})
            mask = sum(0xFF << (8 * n) for n in range(16) if strobe >> n & 1)
            model[at] = model[at] & ~mask | word & mask
        dut = block(size=128, beat_bits=128, address_width=40, burst_beats=4)
        found = []

        async def bench(ctx, dut=dut, requests=requests, beats=beats, found=found, pattern=pattern):
            idle = PAUSES[pattern[0]]
            asked = [{"address": 64, "beats": 4}, {"address": 0, "beats": 1}, {"address": 16, "beats": 3}]
            waiting = {"write_data": list(beats), "write_request": list(requests)}
            offered = dict.fromkeys(("write_data", "write_request", "read_request"), False)
            cycles, early = 0, 0  # beats whose request is still to come
            while len(found) < 8 and cycles < 2000:
                if "read_request" not in waiting and not any(waiting.values()) and ctx.get(dut.idle):
                    waiting["read_request"] = asked
                for name, items in waiting.items():
                    offered[name] = bool(items) and (offered[name] or not idle(rng))
                    ctx.set(getattr(dut, name).valid, offered[name])
                    if offered[name]:
                        ctx.set(getattr(dut, name).payload, items[0])
                ctx.set(dut.read_data.ready, not PAUSES[pattern[1]](rng))
                assert early <= 0 or not ctx.get(dut.idle)
                for name, items in waiting.items():
                    if offered[name] and ctx.get(getattr(dut, name).ready):
                        item = items.pop(0)
                        early += {"write_data": 1, "write_request": -item.get("beats", 0)}.get(name, 0)
                        offered[name] = False
                if ctx.get(dut.read_data.valid & dut.read_data.ready):
                    found.append(ctx.get(dut.read_data.payload))
                cycles += 1
                await ctx.tick()
            assert pattern != ("never", "never") or cycles < 45

        simulate(dut, bench)
        assert found == model[4:] + model[:4]


def check_pass_plan(block):
    """What is read and written in each pass, for orders that differ and orders that do not."""
    wide = {"rows": 5, "columns": 300, "count": 9, "source_records": 0x100, "target_records": 0x200}
    common = {"scratch_0": 0x1000, "scratch_1": 0x2000, "scratch_bytes": 0x900}
    for source, target, passes, in_sram in (
        ("csr", "csc", 2, False),
        ("csr", "csc", 3, True),
        ("csc", "dense", 1, True),
        ("dense", "csc", 1, True),
        ("csr", "coo", 0, False),
        ("csc", "csc", 0, False),
        ("csr", "bsr", 2, False),
        ("coo", "bsr", 1, True),
        ("csc", "bsr", 3, True),
        ("dense", "bsr", 0, False),
    ):
        dut = block(value_bits=16, address_width=40, sram_bytes=256)
        formats = {"source": FORMATS.index(source), "target": FORMATS.index(target)}
        count = 9 if in_sram else 90
        settings = {"formats": formats, "widths": {"row": 3, "column": 9}, "digits": {"bits": 3, "passes": passes}}
        seen = []
        # Blocks of 2 x 7, or of 1 x 7, which are in order.
        settings |= {"block_rows": 2 if passes else 1, "grid_rows": 3 if passes else 5, "grid_columns": 43}
        settings |= {"grid_widths": {"row": 2, "column": 6, "inner": 1}}

        async def bench(ctx, dut=dut, settings=settings, count=count, seen=seen):
            ctx.set(dut.settings, {**wide, **common, **settings, "count": count})
            ctx.set(dut.entries, count)
            ctx.set(dut.bytes, 4 * count)
            await ctx.tick()
            ctx.set(dut.start, 1)
            await ctx.tick()
            ctx.set(dut.start, 0)
            await ctx.tick()
            seen.append((ctx.get(dut.by_block), ctx.get(dut.inner_bits), ctx.get(dut.column_bits)))
            for _ in range(9):
                seen.append(_pass(ctx, dut))
                if ctx.get(dut.encodes):
                    return
                ctx.set(dut.following, 1)
                await ctx.tick()
                ctx.set(dut.following, 0)
                await ctx.tick()

        simulate(dut, bench)
        assert seen.pop(0) == (target == "bsr", source == "csc", 6)
        assert seen == _plan(source, target, passes, in_sram, count), (source, target, passes)


def _pass(ctx, dut):
    """Kind, shift, flags; the source's format, address, shape, widths; the target's or the scratch region's."""
    kind = "".join(name[0] for name in ("counts", "scatters", "encodes") if ctx.get(getattr(dut, name)))
    flags = "".join(name[0] for name in ("unsorted", "keeps", "sorts_last") if ctx.get(getattr(dut, name)))
    flags += "r" * ctx.get(dut.by_row)
    reading, writing = dut.reading, dut.writing
    source = [FORMATS[ctx.get(reading.formats.source)], ctx.get(reading.source_records), ctx.get(reading.count)]
    source += [ctx.get(reading.rows), ctx.get(reading.columns)]
    source += [ctx.get(reading.widths.row), ctx.get(reading.widths.column)]
    if kind == "s":
        goes = [ctx.get(dut.shift), ctx.get(dut.base), ctx.get(dut.record_bytes)]
    elif kind == "e" or "k" in flags:
        goes = [FORMATS[ctx.get(writing.formats.target)], ctx.get(writing.target_records), ctx.get(writing.rows)]
        goes += [ctx.get(writing.widths.row), ctx.get(writing.widths.column)]
    else:
        goes = []
    return kind, flags, ctx.get(dut.from_sram), ctx.get(dut.to_sram), source, goes


def _plan(source, target, passes, in_sram, count):
    """The same by the definition: a record has 12 bits of coordinates, which become 2 bytes, and a value of 2."""
    sides = {name: "csr" if name == "csc" else name for name in (source, target)}
    plain_order, other = [5, 300, 3, 9], [300, 5, 9, 3]
    order = {False: plain_order, True: other}
    given = [sides[source], 0x100, count, *order[source == "csc"]]
    new = order[target == "csc"]
    blocked, differs = target == "bsr", (source == "csc") != (target == "csc")
    along = "" if differs else "r"  # rows of the source are rows of the target
    # Four bits more, which the second coordinate takes.
    record = [new[2], 16 - new[2]]
    wanted = [sides[target], 0x200, new[0], new[2], new[3]]
    if blocked:
        wanted = [target, 0x200, 3 if passes else 5, new[2], 6]
    regions = (0, 128) if in_sram else (0x1000, 0x2000)
    found = []
    if passes:
        keeps = in_sram and source != "dense"
        in_order = record[::-1] if differs else record
        kept = ["coo", 128, new[0], *in_order]
        found.append(("c", "k" * keeps + along, 0, int(keeps), given, kept if keeps else []))
        scratch = ["coo", 0, count, new[0], new[1], *record]
        for n in range(passes):
            flags = "u" * (n > 0) + "s" * (n == passes - 1) + ("r" if n else along)
            if n:
                before = [*scratch]
                before[1] = regions[(n - 1) % 2]
            else:
                before = ["coo", 128, count, *given[3:5], *in_order] if keeps else given
            from_sram = int(in_sram if n else keeps)
            found.append(("s", flags, from_sram, int(in_sram), before, [3 * n, regions[n % 2], 4]))
        given = [*scratch]
        given[1] = regions[(passes - 1) % 2]
    found.append(
        (
            "e",
            "u" * (blocked and passes > 0) + ("r" if passes else along),
            int(in_sram and passes > 0),
            0,
            given,
            wanted,
        )
    )
    return found


def check_transposer(block):
    """Passes over two digits leave the entries sorted by their new row, in their order inside it; too little space is found."""
    for seed, (rows, columns, share, stall) in enumerate(((9, 60, 0.3, 0.0), (30, 64, 0.1, 0.3), (4, 3, 0.0, 0.1))):
        rng = random.Random(seed)
        entries = [(r, c, rng.getrandbits(16)) for r in range(rows) for c in range(columns) if rng.random() < share]
        dut = block(beat_bits=128, lanes=LANES, value_bits=16, address_width=40, counters=16, form=FORM)
        memory = bytearray(b"?" * 4096)
        found = {}

        async def bench(ctx, dut=dut, entries=entries, memory=memory, rng=rng, stall=stall, found=found):
            for name, value in (("digit_bits", 3), ("first_bits", 6), ("second_bits", 10), ("record_bytes", 4)):
                ctx.set(getattr(dut, name), value)
            ctx.set(dut.space, 4 * len(entries))
            now = entries
            for number in range(3):
                ctx.set(dut.first, number == 0)
                ctx.set(dut.last, number == 2)
                ctx.set(dut.by_row, number == 2)
                ctx.set(dut.shift, 3 if number == 2 else 0)
                ctx.set(dut.base, 0x400 * number)
                await one_pass(ctx, dut, now, memory, rng, stall)
                if number == 0:
                    found["counted"] = ctx.get(dut.entries), ctx.get(dut.bytes)
                    assert memory == b"?" * 4096
                    continue
                data = memory[0x400 * number :][: 4 * len(entries)]
                words = [int.from_bytes(data[4 * n :][:4], "little") for n in range(len(entries))]
                now = [(word >> 16 & 63, word >> 22, word & 0xFFFF) for word in words]
            found["sorted"] = now

        simulate(dut, bench)
        assert found["counted"] == (len(entries), 4 * len(entries))
        assert found["sorted"] == sorted(((c, r, v) for r, c, v in entries), key=lambda entry: entry[:2])
        assert set(memory[0x400 + 4 * len(entries) : 0x800]) == set(b"?")

    dut = block(beat_bits=128, lanes=LANES, value_bits=16, address_width=40, counters=16, form=FORM)

    async def small(ctx):
        for name, value in (("digit_bits", 3), ("first_bits", 6), ("second_bits", 10), ("record_bytes", 4)):
            ctx.set(getattr(dut, name), value)
        ctx.set(dut.first, 1)
        ctx.set(dut.space, 11)
        await one_pass(ctx, dut, [(0, 1, 2), (1, 1, 1), (2, 0, 1)], bytearray(), random.Random(1), 0.0, ends=False)
        assert ctx.get(dut.overflow) and ctx.get(dut.bytes) == 12

    simulate(dut, small)


async def one_pass(ctx, dut, entries, memory, rng, stall, ends=True):
    """Gives all entries, as cells, and does what the write client would; until the pass is done."""
    groups, at = [], 0
    while at < len(entries):
        size = rng.randint(0, LANES)
        groups.append(entries[at : at + size])
        at += size
    groups.append([])
    ctx.set(dut.launch, 1)
    await ctx.tick()
    ctx.set(dut.launch, 0)
    requests, beats = [], []
    for cycle in range(3000):
        ctx.set(dut.cells.valid, bool(groups))
        if groups:
            part = [*groups[0], *[(0, 0, 0)] * (LANES - len(groups[0]))]
            cells = {"positions": [0] * LANES, "count": len(groups[0]), "last": len(groups) == 1}
            cells |= {name: [entry[n] for entry in part] for n, name in enumerate(("rows", "columns", "values"))}
            ctx.set(dut.cells.payload, cells)
        ctx.set(dut.write_request.ready, rng.random() >= stall)
        ctx.set(dut.write_data.ready, rng.random() >= stall)
        if groups and ctx.get(dut.cells.ready):
            groups.pop(0)
        if ctx.get(dut.write_request.valid & dut.write_request.ready):
            requests.append(ctx.get(dut.write_request.payload.address))
        if ctx.get(dut.write_data.valid & dut.write_data.ready):
            beats.append((ctx.get(dut.write_data.payload.data), ctx.get(dut.write_data.payload.strobe)))
        await ctx.tick()
        if ends and not groups and ctx.get(dut.done):
            break
        if not ends and cycle > 60:
            assert not ctx.get(dut.done)
            break
    assert not ends or cycle < 2999, "the pass does not end"
    for address, (data, strobe) in zip(requests, beats, strict=True):
        for n in range(16):
            if strobe >> n & 1:
                memory[address + n] = data >> (8 * n) & 0xFF


def check_record_router(block):
    """Every cell becomes a record in the bank of its digit, its next digit goes to another; each only where it is wanted."""
    rng = random.Random("cells")
    outputs = [f"{name}{bank}" for name in ("records", "digits") for bank in range(4)]
    for first, last, by_row, pattern in ((1, 0, 0, 0), (0, 0, 0, 1), (0, 1, 1, 2), (0, 0, 1, 3)):
        entries = [(rng.getrandbits(7), rng.getrandbits(7), rng.getrandbits(16)) for _ in range(70)]
        wanted = {name: [] for name in outputs}
        for row, column, value in entries:
            new, other = (row, column) if by_row else (column, row)
            here, following = new >> 2 & 7, (new & 7 if first else new >> 5)
            record = value | new << 16 | other << 23
            if not first:
                wanted[f"records{here & 3}"].append({"index": here >> 2, "item": record})
            if not last:
                wanted[f"digits{following & 3}"].append({"index": following >> 2, "item": 0})
        groups, at = [], 0
        while at < len(entries):
            part = entries[at : at + rng.randint(0, LANES)]
            at += len(part)
            lanes = [*part, *[(1, 2, 3)] * (LANES - len(part))]
            group = {name: [entry[n] for entry in lanes] for n, name in enumerate(("rows", "columns", "values"))}
            groups.append({**group, "positions": [0] * LANES, "count": len(part), "last": at == len(entries)})
        settings = {"digit_bits": 3, "shift": 2, "first_bits": 7, "second_bits": 9, "record_bytes": 4}
        dut = Ports(
            block(lanes=LANES, value_bits=16, banks=4, most_bits=4), first=first, last=last, by_row=by_row, **settings
        )

        def after(ctx, dut=dut, first=first):
            assert ctx.get(dut.ended) and not ctx.get(dut.busy)
            assert ctx.get(dut.entries) == 70 * first and ctx.get(dut.bytes) == 280 * first

        out = run(
            dut,
            {"cells": groups},
            {name: len(items) for name, items in wanted.items()},
            pause=pauses(PATTERNS[pattern], ["cells"], outputs),
            view=lambda port, item: {"index": item.index, "item": item.item if "records" in port else 0},
            after=after,
        )
        assert out.items == wanted
    _check_keys_of_blocks(block, rng, outputs)


def _check_keys_of_blocks(block, rng, outputs):
    """Digits of row inside the block, block column and block row, in a key of 3 + 5 + 32 bits, or without the first."""
    for inner_bits, shift, by_row in ((3, 2, 1), (0, 4, 0), (3, 6, 1), (0, 33, 1)):
        cells = [[rng.getrandbits(bits) for bits in (7, 7, 16, 32, 5, 3)] for _ in range(40)]
        wanted = {name: [] for name in outputs}
        for row, column, value, block_row, block_column, inner in cells:
            key = (block_row << 5 | block_column) << inner_bits | (inner if inner_bits else 0)
            first, second = (row, column) if by_row else (column, row)
            here, following = key >> shift & 7, key >> (shift + 3) & 7
            wanted[f"records{here & 3}"].append({"index": here >> 2, "item": value | first << 16 | second << 23})
            wanted[f"digits{following & 3}"].append({"index": following >> 2, "item": 0})
        names = ("rows", "columns", "values", "block_rows", "block_columns", "inner_rows")
        groups = [
            {
                **{name: [cell[k] for cell in cells[n : n + LANES]] for k, name in enumerate(names)},
                "count": LANES,
                "last": n + LANES == len(cells),
            }
            for n in range(0, len(cells), LANES)
        ]
        settings = {"digit_bits": 3, "shift": shift, "first_bits": 7, "second_bits": 9, "record_bytes": 4}
        keys = {"by_block": 1, "inner_bits": inner_bits, "column_bits": 5, "by_row": by_row}
        out = run(
            Ports(block(lanes=LANES, value_bits=16, banks=4, most_bits=4), **settings, **keys),
            {"cells": groups},
            {name: len(items) for name, items in wanted.items()},
            pause=pauses(PATTERNS[3], ["cells"], outputs),
            view=lambda port, item: {"index": item.index, "item": item.item if "records" in port else 0},
        )
        assert out.items == wanted


def check_record_memory(block):
    """Each client meets memory or the SRAM, and the other of the two nothing."""
    sizes = {"sram_bytes": 128, "beat_bits": 128, "address_width": 40, "burst_beats": 2}
    writes = [{"address": 16 * n, "beats": 1} for n in range(5)]
    beats = [{"data": 7 * n + 1, "strobe": 0xFFFF} for n in range(5)]
    for client in (0, 1):
        given = {f"write_request{client}": writes, f"write_data{client}": beats}
        dut = Ports(block(**sizes), to_sram=0, scatters=client, from_sram=1)
        out = run(
            dut, given, {"memory_write_request": 5, "memory_write_data": 5, "memory_read_request": 0}, view=struct
        )
        assert out.items["memory_write_request"] == writes and out.items["memory_write_data"] == beats
        given |= {"memory_read_data": [5, 6], "read_request": [{"address": 48, "beats": 2}]}
        dut = Ports(block(**sizes), to_sram=1, scatters=client, from_sram=0)
        wanted = {"memory_read_request": 1, "memory_write_request": 0, "memory_write_data": 0, "read_data": 2}
        out = run(dut, given, wanted, view=lambda port, item: item if port == "read_data" else struct(port, item))
        assert out.items["read_data"] == [5, 6] and out.items["memory_read_request"] == given["read_request"]
        late = {f"write_request{client}": writes, f"write_data{client}": beats}
        dut = Ports(block(**sizes), to_sram=1, scatters=client, from_sram=1)
        late["read_request"] = [
            {"address": 16 * n, "beats": 1} for n in (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4)
        ]
        out = run(dut, late, {"read_data": 16, "memory_read_request": 0, "memory_write_data": 0})
        assert out.items["read_data"][12:] == [8, 15, 22, 29]
