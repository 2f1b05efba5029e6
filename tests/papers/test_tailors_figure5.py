"""Figure 5 of the Tailors paper, row by row, on the golden model and on the hardware.

``pytest -s`` prints the table with the figure's own columns.
"""

import pytest
from amaranth.sim import Simulator

from rtl.buffer.tailors import TailorsBuffer, TailorsError
from sw.golden import tailors as golden

CAPACITY, FIFO, TILE = 4, 2, "abcdef"

# Step, operation, buffer afterwards, tile index, FIFO offset, buffer offset. The figure leaves the FIFO offset out
# where nothing is bumped yet (rows 1 and 2); everything else is as printed.
FIGURE = [
    (1, "Fill(d)", "a b c d", None, None, None),
    (2, "Read(3)", "a b c d", 3, None, 3),
    (3, "OWFill(e)", "a b e", None, 2, None),
    (4, "Read(4)", "a b e", 4, 2, 2),
    (5, "OWFill(f)", "a b e f", None, 2, None),
    (6, "Read(5)", "a b e f", 5, 2, 3),
    (7, "Read(0)", "a b e f", 0, 2, 0),
    (8, "Read(1)", "a b e f", 1, 2, 1),
    (9, "OWFill(c)", "a b f c", None, 3, None),
    (10, "Read(2)", "a b f c", 2, 3, 3),
    (11, "OWFill(d)", "a b c d", None, 0, None),
]


def show(step, operation, buffer, index, fifo_offset, buffer_offset):
    cells = ("" if cell is None else str(cell) for cell in (step, operation, buffer, index, fifo_offset, buffer_offset))
    print("{:>4}  {:<10} {:<9} {:>10} {:>12} {:>14}".format(*cells))


def header(title):
    print(f"\n{title}\nStep  Operation  Buffer    Tile Index  FIFO Offset  Buffer Offset")


def argument(operation):
    return operation[operation.index("(") + 1 : -1]


def test_golden_model_follows_figure5():
    header("golden model")
    buffer = golden.TailorsBuffer(CAPACITY, FIFO, tile_length=len(TILE))
    for entry in "abc":
        buffer.fill(entry)
    for step, operation, contents, index, fifo_offset, buffer_offset in FIGURE:
        offset = None
        if operation.startswith("Fill"):
            buffer.fill(argument(operation))
        elif operation.startswith("OWFill"):
            buffer.overwrite(argument(operation))
        else:
            assert int(argument(operation)) == index
            offset = buffer.buffer_offset(index)
            assert buffer.read(index) == TILE[index]
        seen = " ".join(buffer.regular + buffer.region)
        show(step, operation, seen, index, buffer.fifo_offset if buffer.overbooked else None, offset)
        assert seen == contents
        assert (buffer.fifo_offset if buffer.overbooked else None) == fifo_offset
        assert offset == buffer_offset


@pytest.mark.parametrize("turns", [0, 1, 3], ids=lambda turns: f"rolled_by_{turns}")
def test_hardware_follows_figure5(turns):
    """Also with the rolling buffer's head somewhere else, which the figure says must not matter.

    The hardware does not show its contents, so each row reads every entry of the tile that the figure says is there and
    the row's own entry, and compares the order with the figure by the FIFO offset.
    """
    header(f"hardware, head rolled by {turns}")
    dut = TailorsBuffer(width=8, entries=4, index_width=4)

    async def send(ctx, port, payload, limit=20):
        ctx.set(port.payload, payload)
        ctx.set(port.valid, 1)
        for _ in range(limit):
            _, _, ready = await ctx.tick().sample(port.ready)
            if ready:
                ctx.set(port.valid, 0)
                return
        raise AssertionError("the operation was not taken")

    async def read(ctx, index):
        await send(ctx, dut.read, index)
        for _ in range(10):
            if ctx.get(dut.read_data.valid):
                entry = chr(ctx.get(dut.read_data.payload))
                await ctx.tick()
                return entry
            await ctx.tick()
        raise AssertionError("no answer")

    async def bench(ctx):
        ctx.set(dut.capacity, CAPACITY)
        ctx.set(dut.fifo_entries, FIFO)
        ctx.set(dut.tile_length, len(TILE))
        ctx.set(dut.read_data.ready, 1)
        for _ in range(turns):
            await send(ctx, dut.fill, 0x2D)
        await send(ctx, dut.fill, ord("a"))
        if turns:
            await send(ctx, dut.shrink, turns)
        for entry in "bc":
            await send(ctx, dut.fill, ord(entry))
        for step, operation, contents, index, fifo_offset, buffer_offset in FIGURE:
            letter = argument(operation)
            if operation.startswith("Read"):
                assert await read(ctx, int(letter)) == TILE[index]
            else:
                await send(ctx, dut.overwrite if operation.startswith("OW") else dut.fill, ord(letter))
            present = contents.split()
            for entry in present:
                assert await read(ctx, TILE.index(entry)) == entry, f"step {step}"
            assert ctx.get(dut.occupancy) == len(present)
            offset = ctx.get(dut.fifo_offset) if ctx.get(dut.overbooked) else None
            assert offset == fifo_offset, f"step {step}"
            # The place of an entry follows from the offset as in the figure: index - FIFO offset, rolled over by the
            # number of bumped entries.
            kept, bumped = CAPACITY - FIFO, len(TILE) - (CAPACITY - FIFO)
            derived = None
            if index is not None:
                derived = index if index < kept or offset is None else kept + (index - kept - offset) % bumped
                assert present[derived] == TILE[index]
            assert derived == buffer_offset
            if offset is not None:
                assert [TILE[kept + (offset + n) % bumped] for n in range(len(present) - kept)] == present[kept:]
            show(step, operation, contents, index, offset, derived)
        assert ctx.get(dut.error) == TailorsError.NONE

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
