"""Shared beats against a list of beats for each carry. Testplan: ``verif/testplans/shared_beats.toml``."""

from typing import Any

import cocotb

from verif.agents.pauses import PATTERN_NAMES
from verif.benches.stream_bench import StreamBench
from verif.coverage import Coverage

coverage = Coverage("shared_beats")


class SharedBeatsBench(StreamBench):
    """Beats are expected as soon as they are sent: a request is taken with its last beat."""

    def __init__(self, dut: Any, idle: str = "none", backpressure: str = "none", seed: int = 1) -> None:
        super().__init__(
            dut,
            drive=["requests", "read_data"],
            receive=["beats"],
            idle=idle,
            backpressure=backpressure,
            seed=seed,
        )
        sizes = self.block.parameters
        self.carries, self.data_width = int(sizes["carries"]), int(sizes["data_width"])
        self.cycle = 0
        self.left: list[int] = []
        self.forget()

    def forget(self) -> None:
        """No carry has a beat."""
        self.kept: dict[int, int] = {}
        self.former: int | None = None

    def put(self, beats: int, *, carry: int = 0, shared: bool = False) -> None:
        new = [self.rng.getrandbits(self.data_width) for _ in range(beats - shared)]
        self.send("requests", {"beats": beats, "shared": int(shared), "carry": carry})
        self.send("read_data", *new)
        every = [self.kept[carry], *new] if shared else new
        for beat in every:
            self.board.expect("beats", beat)
        self.kept[carry] = every[-1]
        coverage.hit("only_the_shared_beat", shared and beats == 1)
        coverage.hit("shared_of_several", shared and beats > 1)
        coverage.hit("not_shared", not shared and self.former is not None)
        coverage.hit("carry_twice_running", shared and self.former == carry)
        coverage.hit("carry_after_another", shared and self.former not in (None, carry))
        self.former = carry

    def random_requests(self, number: int) -> None:
        rng = self.rng
        for _ in range(number):
            carry = rng.choice([self.former or 0, rng.randrange(self.carries)])
            self.put(
                rng.choice([1, 1, 2, rng.randint(1, 9)]), carry=carry, shared=carry in self.kept and rng.random() < 0.7
            )

    def taken(self, port: str, item: Any) -> None:
        """What is to come of it is expected already."""

    def came(self, port: str, item: Any) -> None:
        self.left.append(self.cycle)
        super().came(port, item)

    def every_cycle(self) -> None:
        dut = self.dut
        request, data, beat = (
            [bool(getattr(dut, f"{port}__{pin}").value) for pin in ("valid", "ready")]
            for port in ("requests", "read_data", "beats")
        )
        if data == [True, True] and beat != [True, True]:
            self.board.fail(f"cycle {self.cycle}: a beat from memory does not go on")
        coverage.hit("data_before_request", data == [True, False] and not request[0])
        coverage.hit("data_behind_shared_beat", data == [True, False] and beat == [True, True])
        coverage.hit("request_before_data", request[0] and not beat[0] and not data[0])
        coverage.hit("beat_refused", beat == [True, False])
        coverage.hit("shared_beat_before_data", beat == [True, True] and not data[0])
        self.cycle += 1


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(idle=PATTERN_NAMES, backpressure=PATTERN_NAMES)
async def each_request_gets_its_beats(dut: Any, idle: str, backpressure: str) -> None:
    """All beats of all requests, in order, whatever the neighbours do."""
    bench = SharedBeatsBench(dut, idle, backpressure)
    await bench.start()
    bench.random_requests(200)
    await bench.settle()
    coverage.save()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_beat_a_cycle(dut: Any) -> None:
    """With several carries a shared beat comes a cycle later; all others without a pause, in the cycle in which they come."""
    bench = SharedBeatsBench(dut)
    await bench.start()
    for n in range(30):
        bench.put(4, shared=n > 0)
    await bench.settle()
    waits = 29 * (bench.carries > 1)
    cycles = bench.left[-1] - bench.left[0]
    assert cycles == 30 * 4 - 1 + waits, f"{bench.board.context}: 120 beats in {cycles + 1} cycles"
    coverage.hit("full_rate")
    coverage.save()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def reset_in_the_middle(dut: Any) -> None:
    """A reset inside a request: the next one begins with its own first beat."""
    bench = SharedBeatsBench(dut, "fourth", "random")
    await bench.start()
    for wait in (9, 20, 43):
        bench.random_requests(40)
        await bench.cycles(wait)
        coverage.hit("reset", bench.board.outstanding() > 0)
        await bench.restart()
        bench.forget()
        bench.put(3)
        bench.put(2, shared=True)
    bench.random_requests(40)
    await bench.settle()
    coverage.save()
