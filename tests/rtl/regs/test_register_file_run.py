"""The life of a run as software sees it: start, lock, end, interrupt, error, soft reset."""

from rtl.regs.map import REGISTERS
from tests.rtl.regs.lite_bench import OKAY, SLVERR, Lite, register_file, simulate

WORDS = {name: offset for register in REGISTERS for name, offset in register.words}
CONTROL, STATUS = WORDS["CONTROL"], WORDS["STATUS"]
START, SOFT_RESET, IRQ_ENABLE = 1, 2, 4
BUSY, DONE, ERROR, IRQ_PENDING = 1, 2, 4, 8


async def finish(ctx, dut, code=0, detail=0):
    ctx.set(dut.error_code, code)
    ctx.set(dut.error_detail, detail)
    ctx.set(dut.done, 1)
    await ctx.tick()
    ctx.set(dut.done, 0)
    ctx.set(dut.error_code, 0x55)  # counts only with `done`
    ctx.set(dut.error_detail, 0x55)


def test_a_run_from_start_to_interrupt():
    pulses = {"start": 0, "soft_reset": 0}

    async def count(ctx):
        async for _, _, start, soft_reset in ctx.tick().sample(dut.start, dut.soft_reset):
            pulses["start"] += start
            pulses["soft_reset"] += soft_reset

    async def task(ctx):
        lite = Lite(ctx, dut.bus)
        assert await lite.write(WORDS["TILE_I"], 5) == OKAY
        assert await lite.write(CONTROL, START | IRQ_ENABLE) == OKAY
        assert pulses == {"start": 1, "soft_reset": 0}
        assert await lite.read(CONTROL) == (IRQ_ENABLE, OKAY)
        assert await lite.read(STATUS) == (BUSY, OKAY)

        assert await lite.write(WORDS["TILE_I"], 6) == SLVERR, "configuration is not locked during a run"
        assert await lite.write(WORDS["A_POINTERS_LO"], 6) == SLVERR
        assert ctx.get(dut.settings.tile_i) == 5 and ctx.get(dut.settings.a_pointers) == 0
        assert await lite.write(CONTROL, START | IRQ_ENABLE) == OKAY
        assert pulses["start"] == 1, "a second start during a run was not ignored"
        assert not ctx.get(dut.irq)

        await finish(ctx, dut)
        await ctx.tick().repeat(2)
        assert ctx.get(dut.irq)
        assert await lite.read(STATUS) == (DONE | IRQ_PENDING, OKAY)
        assert await lite.write(STATUS, 0xFFFFFFF7) == OKAY
        assert await lite.read(STATUS) == (DONE | IRQ_PENDING, OKAY)
        assert await lite.write(STATUS, IRQ_PENDING, strobe=0xE) == OKAY
        assert await lite.read(STATUS) == (DONE | IRQ_PENDING, OKAY)
        assert await lite.write(STATUS, IRQ_PENDING) == OKAY
        assert await lite.read(STATUS) == (DONE, OKAY)
        await ctx.tick()
        assert not ctx.get(dut.irq)
        assert await lite.write(WORDS["TILE_I"], 6) == OKAY

    dut = register_file()
    simulate(dut, task, count)


def test_error_is_kept_until_the_next_start():
    async def task(ctx):
        lite = Lite(ctx, dut.bus)
        await lite.write(CONTROL, START)
        await finish(ctx, dut, code=6, detail=0x123456789A)
        assert await lite.read(STATUS) == (DONE | ERROR | IRQ_PENDING, OKAY)
        assert await lite.read(WORDS["ERROR_CODE"]) == (6, OKAY)
        assert await lite.read(WORDS["ERROR_DETAIL_LO"]) == (0x3456789A, OKAY)
        assert await lite.read(WORDS["ERROR_DETAIL_HI"]) == (0x12, OKAY)
        assert not ctx.get(dut.irq), "the interrupt line is not masked"
        await lite.write(CONTROL, START)
        assert await lite.read(STATUS) == (BUSY, OKAY)
        assert await lite.read(WORDS["ERROR_CODE"]) == (0, OKAY)
        assert await lite.read(WORDS["ERROR_DETAIL_LO"]) == (0, OKAY)

    dut = register_file()
    simulate(dut, task)


def test_run_that_ends_while_the_last_one_is_acknowledged():
    """Whatever the cycle in which a run ends, its interrupt is not lost to the acknowledgement of an earlier one."""

    async def task(ctx):
        lite = Lite(ctx, dut.bus)
        for delay in range(6):
            await lite.write(CONTROL, START)
            await finish(ctx, dut)
            await lite.write(CONTROL, START)
            ctx.set(dut.error_code, 0)
            ctx.set(dut.bus.awaddr, STATUS)
            ctx.set(dut.bus.wdata, IRQ_PENDING)
            ctx.set(dut.bus.wstrb, 0xF)
            ctx.set(dut.bus.awvalid, 1)
            ctx.set(dut.bus.wvalid, 1)
            ctx.set(dut.bus.bready, 1)
            acted = None
            for cycle in range(8):
                ctx.set(dut.done, cycle == delay)
                if ctx.get(dut.bus.bvalid):
                    acted = cycle - 1  # the write took effect at the end of this cycle
                await ctx.tick()
                ctx.set(dut.bus.awvalid, 0)
                ctx.set(dut.bus.wvalid, 0)
            ctx.set(dut.bus.bready, 0)
            pending = IRQ_PENDING if delay >= acted else 0
            assert await lite.read(STATUS) == (DONE | pending, OKAY), f"done in cycle {delay}, acknowledged in {acted}"

    dut = register_file()
    simulate(dut, task)


def test_soft_reset_comes_before_start():
    pulses = []

    async def count(ctx):
        async for _, _, start, soft_reset in ctx.tick().sample(dut.start, dut.soft_reset):
            if start or soft_reset:
                pulses.append((start, soft_reset))

    async def task(ctx):
        lite = Lite(ctx, dut.bus)
        assert await lite.write(CONTROL, SOFT_RESET | START) == OKAY
        assert await lite.read(STATUS) == (0, OKAY)
        assert pulses == [(0, 1)]

    dut = register_file()
    simulate(dut, task, count)


def test_soft_reset_stops_a_run_and_keeps_the_configuration():
    async def task(ctx):
        lite = Lite(ctx, dut.bus)
        await lite.write(WORDS["SHAPE_K"], 77)
        await lite.write(CONTROL, START | IRQ_ENABLE)
        ctx.set(dut.busy, 1)
        ctx.set(dut.bus.bready, 1)
        ctx.set(dut.bus.wdata, SOFT_RESET | START | IRQ_ENABLE)
        ctx.set(dut.bus.awaddr, CONTROL)
        ctx.set(dut.bus.wvalid, 1)
        ctx.set(dut.bus.awvalid, 1)
        await ctx.tick()
        ctx.set(dut.bus.wvalid, 0)
        ctx.set(dut.bus.awvalid, 0)
        assert not ctx.get(dut.soft_reset)
        await ctx.tick()
        assert ctx.get(dut.soft_reset) and not ctx.get(dut.start), "soft reset comes first and is one pulse"
        await ctx.tick()
        assert not ctx.get(dut.soft_reset) and not ctx.get(dut.start)
        ctx.set(dut.bus.bready, 0)
        assert await lite.read(STATUS) == (BUSY, OKAY), "the hardware still drains"
        assert await lite.write(WORDS["SHAPE_K"], 78) == SLVERR
        ctx.set(dut.busy, 0)
        assert await lite.read(STATUS) == (0, OKAY)
        assert ctx.get(dut.settings.shape_k) == 77

    dut = register_file()
    simulate(dut, task)
