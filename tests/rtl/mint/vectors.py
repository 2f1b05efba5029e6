"""Sends vectors through a block of one stream in and one stream out, in Amaranth's simulator."""

import random

from amaranth.hdl import Module, ResetInserter, Signal
from amaranth.sim import Simulator

# Chance of a pause in a cycle.
PAUSES = {"never": 0.0, "some": 0.3, "often": 0.7}


def run_vectors(dut, vectors, *, idle=0.0, backpressure=0.0, seed=1, reset_after=None):
    """Sends ``vectors``, each what ``i.payload`` may be set to; returns what came out, each with the cycle in which it came.

    ``idle`` and ``backpressure`` are chances of a pause in a cycle; the payload is noise while nothing is offered. With
    ``reset_after`` a reset comes when so many vectors went in, and only what is sent after it is returned.
    """
    rng = random.Random(f"{seed} {idle} {backpressure}")
    m = Module()
    reset = Signal()
    m.submodules.dut = ResetInserter(reset)(dut)
    offers, results = dut.i.payload.as_value(), dut.o.payload.as_value()
    noise = [(1 << len(offers)) - 1, 0]
    came = []

    async def bench(ctx):
        sent = cycle = dropped = 0
        offered, waits = False, None
        while sent < len(vectors) or len(came) < sent - dropped:
            cycle += 1
            assert cycle < 200 + 40 * (len(vectors) + dut.latency), "the stream is stuck"
            resets = sent == reset_after and not dropped
            offered = not resets and (offered or (sent < len(vectors) and rng.random() >= idle))
            ctx.set(reset, resets)
            ctx.set(dut.i.valid, offered)
            if offered:
                ctx.set(dut.i.payload, vectors[sent])
            else:
                ctx.set(offers, rng.choice(noise))
            ctx.set(dut.o.ready, rng.random() >= backpressure)
            valid, ready, bits = ctx.get(dut.o.valid), ctx.get(dut.o.ready), ctx.get(results)
            assert waits is None or (valid and bits == waits), "a payload changed before it was taken"
            waits = bits if valid and not ready and not resets else None
            if valid and ready:
                came.append((ctx.get(dut.o.payload), cycle))
            if offered and ctx.get(dut.i.ready):
                sent += 1
                offered = False
            if resets:
                came.clear()
                dropped = sent
            await ctx.tick()
        ctx.set(dut.i.valid, 0)
        ctx.set(dut.o.ready, 1)
        for _ in range(dut.latency + 2):
            assert not ctx.get(dut.o.valid), "a vector came out that did not go in"
            await ctx.tick()

    simulator = Simulator(m)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()
    return came
