"""Assembly pass against the positions that its contract names. Testplan: ``verif/testplans/assembly.toml``."""

from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

from verif.agents.pauses import PATTERN_NAMES
from verif.benches.stream_bench import StreamBench
from verif.coverage import Coverage

coverage = Coverage("assembly")


class AssemblyBench(StreamBench):
    """Starts passes; the model lists every row's pieces in order."""

    def __init__(self, dut: Any, backpressure: str, seed: int = 1) -> None:
        zero = ("rows", "tile_rows", "tiles_i", "tiles_j", "start")
        super().__init__(dut, receive=["selections"], backpressure=backpressure, zero=zero, seed=seed)

    async def begin_pass(self, rows: int, tile_rows: int, tiles_j: int) -> None:
        tiles_i = -(-rows // tile_rows)
        for name, value in (("rows", rows), ("tile_rows", tile_rows), ("tiles_i", tiles_i), ("tiles_j", tiles_j)):
            getattr(self.dut, name).value = value
        for row in range(rows):
            for tile in range(tiles_j):
                index = tile * (rows + tiles_i) + row + row // tile_rows
                last = int(tile == tiles_j - 1)
                self.board.expect("selections", {"index": index, "weight": 0, "present": 1, "last": last})
        self.dut.start.value = 1
        await RisingEdge(self.dut.clk)
        self.dut.start.value = 0
        coverage.hit("one_tile_j", tiles_j == 1)
        coverage.hit("many_tiles_j", tiles_j > 1)
        coverage.hit("ragged", rows % tile_rows != 0)
        coverage.hit("tile_of_one", tile_rows == 1)
        coverage.hit("one_row", rows == 1)

    async def end_pass(self) -> None:
        await self.settle()
        assert not int(self.dut.busy.value), "busy after the last selection"
        coverage.hit("refused", self.monitors["selections"].stalled_cycles > 0)


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(backpressure=PATTERN_NAMES)
async def every_shape(dut: Any, backpressure: str) -> None:
    """Each row's pieces in order of the tiles, over shapes that fit, do not fit, and are one."""
    bench = AssemblyBench(dut, backpressure)
    await bench.start()
    shapes = [(12, 4, 3), (13, 4, 1), (1, 1, 1), (1, 9, 5), (7, 1, 2), (5, 9, 4)]
    shapes += [(bench.rng.randint(1, 30), bench.rng.randint(1, 12), bench.rng.randint(1, 6)) for _ in range(6)]
    for number, shape in enumerate(shapes):
        await bench.begin_pass(*shape)
        await bench.end_pass()
        coverage.hit("again", number > 0)
    coverage.save()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def reset_in_the_middle(dut: Any) -> None:
    """After a reset during a pass nothing comes until the next start, and that pass is whole."""
    bench = AssemblyBench(dut, "random")
    await bench.start()
    await bench.begin_pass(20, 6, 3)
    await bench.cycles(40)
    assert bench.board.outstanding() and int(dut.busy.value)
    coverage.hit("reset")
    await bench.restart()
    await bench.cycles(20)
    assert not int(dut.busy.value)
    bench.board.check()
    await bench.begin_pass(9, 4, 2)
    await bench.end_pass()
    coverage.save()
