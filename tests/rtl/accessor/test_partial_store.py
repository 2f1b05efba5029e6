"""Partial rows on chip alone: what fits is kept and found again from the other half, what does not fit is spilled."""

from random import Random
from typing import Any

import pytest
from amaranth.sim import Simulator

from rtl.accessor.partial_store import PartialStore

from .clients import patient

BASE, LINES = 6, 24


@pytest.mark.parametrize("lanes", [2, 4])
@pytest.mark.parametrize("hurry", [1.0, 0.5])
def test_rows_are_handed_out_as_they_came(lanes: int, hurry: float) -> None:
    """Four tiles in turn, of which some rows do not fit; each is read while the next one is written."""
    dut = PartialStore(lanes=lanes, line_address_width=5)
    random = Random(f"{lanes} {hurry}")
    sram = [0xDEAD] * (32 * lanes)
    rows = 7
    metadata = -(-rows // lanes)
    room = lanes * (LINES // 2 - metadata)
    spilled: list[int] = []

    def port(n: int) -> Any:
        async def write(ctx: Any) -> None:
            out = dut.sram_write[n]
            while True:
                ctx.set(out.ready, ready := random.random() < hurry)
                _, _, valid, payload = await ctx.tick().sample(out.valid, out.payload)
                if valid and ready:
                    assert BASE <= payload.address < BASE + LINES
                    line = payload.line if isinstance(payload.line, int) else _bits(payload.line)
                    for lane in range(lanes):
                        if payload.mask >> lane & 1:
                            sram[payload.address * lanes + lane] = line >> 64 * lane & (1 << 64) - 1

        return write

    async def answer(ctx: Any) -> None:
        request, response = dut.sram_request, dut.sram_response
        while True:
            ctx.set(request.ready, ready := random.random() < hurry)
            _, _, valid, line = await ctx.tick().sample(request.valid, request.payload)
            taken = bool(valid and ready)
            ctx.set(response.valid, taken)
            if taken:
                ctx.set(response.line, [_fields(sram[line * lanes + lane]) for lane in range(lanes)])

    async def spill(ctx: Any) -> None:
        out = dut.spilled
        while True:
            ctx.set(out.ready, ready := random.random() < hurry)
            _, _, valid, word = await ctx.tick().sample(out.valid, out.payload)
            if valid and ready:
                spilled.extend(_nonzero(word.line[lane]) for lane in range(word.count))
                ctx.set(dut.spill_position, len(spilled))

    async def give(ctx: Any, row: list[int]) -> None:
        pieces = [row[at : at + lanes] for at in range(0, len(row), lanes)] or [[]]
        for n, piece in enumerate(pieces):
            line = [_fields(value) for value in piece] + [{}] * (lanes - len(piece))
            ctx.set(dut.words.payload, {"line": line, "count": len(piece), "last": n == len(pieces) - 1})
            ctx.set(dut.bound, len(row))
            ctx.set(dut.words.valid, 1)
            for _ in patient(200):
                if (await ctx.tick().sample(dut.words.ready))[2]:
                    break
            ctx.set(dut.words.valid, 0)
        assert not ctx.get(dut.idle), "the row's entry has yet to be written"

    async def take(ctx: Any, row: list[int]) -> None:
        out = dut.partials
        ctx.set(out.ready, 1)
        for _ in patient(200):
            _, _, valid, partial = await ctx.tick().sample(out.valid, out.payload)
            if valid:
                break
        ctx.set(out.ready, 0)
        assert partial.length == len(row)
        memory = spilled if partial.in_memory else sram
        if row:
            assert memory[partial.position : partial.position + len(row)] == row
        assert bool(partial.in_memory) == (id(row) in not_kept)

    not_kept: set[int] = set()

    async def test(ctx: Any) -> None:
        ctx.set(dut.base, BASE)
        ctx.set(dut.lines, LINES)
        ctx.set(dut.rows, rows)
        before: list[list[int]] = []
        last_lines = 0
        for half in (0, 1, 0, 1):
            ctx.set(dut.half, half)
            ctx.set(dut.tile_begins, 1)
            ctx.set(dut.read_begin, bool(before))
            ctx.set(dut.read_rows, rows)
            await ctx.tick()
            ctx.set(dut.tile_begins, 0)
            ctx.set(dut.read_begin, 0)
            longest = room if half else room // 3
            now = [[random.getrandbits(64) for _ in range(random.randint(0, longest))] for _ in range(rows)]
            used = 0
            for n, row in enumerate(now):
                if used + len(row) <= room:
                    used += len(row)
                else:
                    not_kept.add(id(row))
                await give(ctx, row)
                if before:
                    await take(ctx, before[n])
            ctx.set(dut.flush, 1)
            await ctx.tick()
            ctx.set(dut.flush, 0)
            for _ in patient(400):
                if (await ctx.tick().sample(dut.idle))[2]:
                    break
            lines = metadata + -(-used // lanes)
            assert ctx.get(dut.occupied) == lines + last_lines
            last_lines = lines
            alive.append(now)
            before = now

    alive: list[list[list[int]]] = []  # rows keep their identities

    sim = Simulator(dut)
    sim.add_clock(1e-8)
    for n in range(2):
        sim.add_testbench(port(n), background=True)
    sim.add_testbench(answer, background=True)
    sim.add_testbench(spill, background=True)
    sim.add_testbench(test)
    sim.run()
    assert not_kept


def _nonzero(nonzero: Any) -> int:
    return int(nonzero.coordinate) | int(nonzero.value) << 32


def _fields(value: int) -> dict[str, int]:
    return {"coordinate": value & 0xFFFFFFFF, "value": value >> 32}


def _bits(line: Any) -> int:
    return int(sum(_nonzero(nonzero) << 64 * n for n, nonzero in enumerate(line)))
