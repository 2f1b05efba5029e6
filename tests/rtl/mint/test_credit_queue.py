"""Credit queue: it sends as many items as it has places, one more for each that is taken, and not while it is closed."""

import pytest
from amaranth.sim import Simulator

from rtl.mint.host.credit_queue import CreditQueue


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_sends_as_many_items_as_it_has_places(depth: int) -> None:
    dut = CreditQueue(asked=8, answered=8, depth=depth)

    async def bench(ctx) -> None:
        async def cycle(**inputs: int) -> tuple[int, ...]:
            """Outputs of a cycle with these inputs: sent, item, an answer is there, answer."""
            for name, value in (
                (dut.open, inputs.get("open", 1)),
                (dut.i.valid, "ask" in inputs),
                (dut.i.payload, inputs.get("ask", 0)),
                (dut.back, "answer" in inputs),
                (dut.answer, inputs.get("answer", 0)),
                (dut.o.ready, inputs.get("take", 0)),
            ):
                ctx.set(name, value)
            seen = tuple(ctx.get(one) for one in (dut.sent, dut.item, dut.o.valid, dut.o.payload))
            assert ctx.get(dut.i.ready) or not seen[0]
            await ctx.tick()
            return seen

        assert (await cycle(ask=1, open=0))[0] == 0
        for n in range(depth):
            assert (await cycle(ask=10 + n))[:2] == (1, 10 + n)
        # Nothing has come back: no place is free, and stays so while answers wait.
        for n in range(depth):
            assert (await cycle(ask=90))[0] == 0
            assert (await cycle(ask=90, answer=50 + n))[0] == 0
        await cycle()
        for n in range(depth):
            assert await cycle(ask=90, open=0, take=1) == (0, 90, 1, 50 + n)
            # The place of the answer that was taken.
            assert (await cycle(ask=20 + n))[:2] == (1, 20 + n)
            assert (await cycle(ask=90))[0] == 0

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


def test_refuses_no_places() -> None:
    with pytest.raises(ValueError, match=r"^Depth must be an integer from 1 to 256, not 0$"):
        CreditQueue(asked=8, answered=8, depth=0)
