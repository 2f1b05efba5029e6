"""The bus packer against its golden model. Fits any build. Testplan: ``verif/testplans/bus_packer.toml``."""

from typing import Any

import cocotb

from sw.golden.weight_stationary import A_FORMATS, bus_cycles, data_per_cycle, places_of
from verif.agents.pauses import PATTERN_NAMES
from verif.benches.stream_bench import StreamBench
from verif.coverage import Coverage

coverage = Coverage("bus_packer")
Data = list[tuple[int, int, int]]


class BusPackerBench(StreamBench):
    """Sends an A in portions of any size; every cycle of the bus is compared, and where A ends."""

    def __init__(self, dut: Any, acf: str, idle: str = "none", backpressure: str = "none") -> None:
        super().__init__(
            dut, drive=["i"], receive=["o"], idle=idle, backpressure=backpressure, zero=("acf", "rows", "columns")
        )
        self.acf = acf
        self.words, self.vector, self.lanes = (
            int(self.block.parameters[name]) for name in ("words", "vector", "lanes")
        )
        self.sent: Data = []  # of the A that is going in
        self.shape = (1, 1)

    def choose(self) -> None:
        """The format, before data come."""
        self.dut.acf.value = list(A_FORMATS).index(self.acf)
        coverage.hit(self.acf)

    def a(self, data: Data, shape: tuple[int, int]) -> None:
        """Queue an A; in Dense those before have left."""
        self.shape = shape
        self.dut.rows.value, self.dut.columns.value = shape
        at, ended = 0, False
        while not ended:
            part = data[at : at + self.rng.randint(0, self.lanes)]
            at += len(part)
            ended = at == len(data) and self.rng.random() < 0.5
            items = [{"row": row, "column": column, "value": value} for row, column, value in part]
            coverage.hit("portion_of_none", not part and not ended)
            self.send("i", {"last": int(ended), "count": len(part), "items": items + [{}] * (self.lanes - len(part))})
        coverage.hit("nothing", not data)

    def taken(self, port: str, item: Any) -> None:
        self.sent += [(one["row"], one["column"], one["value"]) for one in item["items"][: item["count"]]]
        if not item["last"]:
            return
        rows, columns, values = zip(*self.sent, strict=True) if self.sent else ((), (), ())
        lists: Any = rows, columns, values
        if self.acf == "dense":
            lists = places_of(rows, columns, values, self.shape)
        for cycle in bus_cycles(*lists, acf=self.acf, words=self.words, vector=self.vector):
            self.board.expect("o", tuple((n, *word) for n, word in enumerate(cycle.words) if word[1] is not None))
            coverage.hit("zeros", None in cycle.values and any(bits is not None for bits in cycle.values))
            coverage.hit("zeros_alone", not any(bits is not None for bits in cycle.values))
            whole = len(cycle.values) == data_per_cycle(self.acf, self.words, self.vector)
            coverage.hit("full" if whole else "broken_up")
        self.board.expect("end", 1)
        self.sent = []

    def came(self, port: str, item: Any) -> None:
        words = tuple(
            (n, bool(word["metadata"]), word["payload"]) for n, word in enumerate(item["words"]) if word["present"]
        )
        coverage.hit("bare_end", not words)
        if words:
            self.board.observe("o", words)
        elif not item["last"]:
            self.board.fail("a cycle without words that ends nothing")
        if item["last"]:
            self.board.observe("end", 1)

    def drawn(self) -> tuple[Data, tuple[int, int]]:
        """Rows without data, of one and of many; but for Dense the largest coordinates."""
        rng = self.rng
        first, origin = rng.choice([0, 2**32 - 8]), rng.choice([0, 2**32 - 24])
        if self.acf == "dense":
            first = origin = 0
        density = rng.choice([0.0, 0.1, 0.5, 1.0])
        rows, columns = rng.randint(1, 6), rng.randint(1, 20)
        places = [(row, k) for row in range(rows) for k in range(columns) if rng.random() < density]
        return [(first + row, origin + k, rng.getrandbits(32)) for row, k in places], (rows, columns)


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(acf=tuple(A_FORMATS), idle=PATTERN_NAMES, backpressure=PATTERN_NAMES)
async def cycles_are_golden(dut: Any, acf: str, idle: str, backpressure: str) -> None:
    """As of every kind, with any behaviour of both sides."""
    bench = BusPackerBench(dut, acf, idle, backpressure)
    await bench.start()
    bench.choose()
    for _ in range(15):
        bench.a(*bench.drawn())
        if acf == "dense":
            await bench.settle()
    await bench.settle()
    coverage.hit("stalled", bench.monitors["o"].stalled_cycles > 0)
    coverage.save()


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(acf=("dense", "csr"))
async def reset_in_the_middle(dut: Any, acf: str) -> None:
    """What is inside is gone; what comes after it is whole."""
    bench = BusPackerBench(dut, acf, "random", "random")
    await bench.start()
    bench.choose()
    for count in (2, 3, 5, 9, 30):
        bench.a([(row, k, k) for row in range(9) for k in range(9)], (9, 9))
        await bench.cycles(count)
        coverage.hit("reset", bool(bench.sent))
        bench.drivers["i"].queue.clear()
        await bench.restart()
        bench.sent = []
        bench.a(*bench.drawn())
        await bench.settle()
    coverage.save()
