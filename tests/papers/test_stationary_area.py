"""The PE that the area of MINT's extension is measured against computes what the extended one does in Dense."""

import random

import numpy as np
import pytest

from benchmarks.stationary import DensePe
from sw.golden.weight_stationary import StationaryColumn, bus_cycles, partial_sums, row_sums
from tests.rtl.port_bench import PortBench


@pytest.mark.parametrize("value", ["int32", "fp32"])
def test_the_pe_without_the_extension(value):
    dut = DensePe(vector=4, entries=8, value=value)
    bench = PortBench(dut, seed=2, chance=0.7)
    rng = random.Random(2)
    weights, bus, sums = bench.feed(dut.weights), bench.feed(dut.bus), bench.collect(dut.sums)

    def word():
        number = rng.uniform(-4, 4)
        return int(np.float32(number).view(np.uint32)) if value == "fp32" else rng.getrandbits(32)

    async def script(ctx):
        for number in range(3):
            column = StationaryColumn(range(8), [word() for _ in range(8)], True)
            weights.append({"header": 1, "payload": number})
            weights.extend({"header": 0, "payload": one} for one in column.values)
            await bench.until(ctx, lambda: not weights)
            places = [(row, k) for row in (0, 3, 4) for k in range(8 if row else 7)]
            data = [word() for _ in places]
            cycles = bus_cycles(*zip(*places, strict=True), data, acf="dense", words=5, vector=4)
            for n, cycle in enumerate(cycles):
                count = len(cycle.values)
                padded = [*cycle.values, *[word() for _ in range(4 - count)]]
                last = int(n == len(cycles) - 1)
                bus.append({"last": last, "row": cycle.row, "present": (1 << count) - 1, "data": padded})
            await bench.until(ctx, lambda: bool(sums) and sums[-1]["last"])
            wanted = row_sums(cycles, column, vector=4, sums=partial_sums(value), value=value)
            assert [(one["row"], one["value"], not one["void"]) for one in sums] == [tuple(one) for one in wanted]
            assert {one["column"] for one in sums} == {number}
            sums.clear()

    bench.simulate(script)


def test_refuses_a_ragged_buffer():
    with pytest.raises(ValueError, match=r"^Buffer entries must be a multiple of 8, not 12$"):
        DensePe(vector=8, entries=12, value="int32")
