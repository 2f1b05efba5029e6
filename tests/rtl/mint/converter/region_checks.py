"""Checks of the readers and writers of regions."""

import random

from tests.rtl.mint.converter.harness import (
    pauses,
    simulate,
)
from tests.rtl.mint.streams import run


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
            gaps = written_by(block(beat_bits=128, address_width=40, burst_beats=4), beats, space, flushes=True)
            known = ("data", "done", "overflow", "number")
            assert [gaps[name] for name in known] == [got[name] for name in known]
            if fits:
                assert [a for a, n in gaps["requests"] for a in range(a, a + 16 * n, 16)] == [
                    0x4000 + 16 * n for n in range(len(written))
                ]
            assert all(1 <= n <= 4 for _, n in gaps["requests"])
    _check_flush(block(beat_bits=128, address_width=40, burst_beats=4))


def _check_flush(dut):
    """A short burst goes when no beat follows at once; a full one is not cut while beats follow."""
    requests, wanted = [], []

    async def bench(ctx):
        async def give(*sizes, last=0):
            """Beats one after another, then none for some cycles."""
            waiting = list(sizes)
            for _ in range(len(sizes) + 8):
                ctx.set(dut.beats.valid, bool(waiting))
                if waiting:
                    ctx.set(dut.beats.payload, {"bytes": waiting[0], "last": last and len(waiting) == 1})
                    assert ctx.get(dut.beats.ready)
                    waiting.pop(0)
                if ctx.get(dut.write_request.valid):
                    requests.append(ctx.get(dut.write_request.payload.beats))
                await ctx.tick()
            assert requests == wanted, f"{requests} where {wanted} must have gone"

        for port in (dut.write_data, dut.write_request):
            ctx.set(port.ready, 1)
        ctx.set(dut.space, 1 << 20)
        ctx.set(dut.launch, 1)
        await ctx.tick()
        ctx.set(dut.launch, 0)
        for flush, count, bursts in (
            (0, 2, []),
            (1, 0, [2]),  # what has waited
            (1, 0, []),
            (1, 1, [1]),
            (1, 8, [4, 4]),
            (1, 7, [4, 3]),
            (0, 5, [4]),
            (0, 2, []),
            (1, 3, [4, 2]),
            (0, 1, []),
        ):
            ctx.set(dut.flush, flush)
            wanted.extend(bursts)
            await give(*[16] * count)
            assert not ctx.get(dut.done)
        wanted.append(1)  # the end needs no flush
        await give(0, last=1)
        assert ctx.get(dut.done)

    simulate(dut, bench)


def written_by(dut, beats, space, flushes=False):
    """What is written. With ``flushes`` beats come at random times, and so do flushes."""
    found = {"data": [], "requests": []}

    async def bench(ctx):
        rng = random.Random("bus")
        offered = False
        waiting = list(beats)
        for name, value in (("address", 0x4000), ("space", space), ("launch", 1)):
            ctx.set(getattr(dut, name), value)
        await ctx.tick()
        ctx.set(dut.launch, 0)
        for _ in range(150):
            offered = bool(waiting) and (offered or not flushes or rng.random() < 0.3)
            ctx.set(dut.flush, flushes and rng.random() < 0.5)
            ctx.set(dut.beats.valid, offered)
            if offered:
                ctx.set(dut.beats.payload, waiting[0])
            ctx.set(dut.write_data.ready, rng.random() < 0.7)
            ctx.set(dut.write_request.ready, rng.random() < 0.3)
            if offered and ctx.get(dut.beats.ready):
                waiting.pop(0)
                offered = False
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
