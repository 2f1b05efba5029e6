"""Banked SRAM against a list of lines: contents, timing, arbitration. Testplan: ``verif/testplans/banked_sram.toml``."""

from collections import deque
from typing import Any

import cocotb

from verif.agents.layouts import described
from verif.agents.pauses import PATTERN_NAMES
from verif.benches.stream_bench import StreamBench
from verif.coverage import Coverage

LANE_MASK = (1 << 64) - 1
coverage = Coverage("banked_sram")


class SramBench(StreamBench):
    """Ports request at random; the model is a list of lines that grants change in their order."""

    def __init__(self, dut: Any, idle: str = "none", seed: int = 1) -> None:
        block = described()
        self.reads, self.writes = block.streams("read_request"), block.streams("write")
        super().__init__(dut, drive=[*self.reads, *self.writes], idle=idle, seed=seed)
        parameters = self.block.parameters
        self.lines, self.banks = int(parameters["lines"]), int(parameters["banks"])
        self.lanes = int(parameters["lanes"])
        self.latency = int(parameters["latency"])
        self.response = self.block.layout("read_response__0")
        self.offset = self.response.tree["fields"]["line"][0]
        self.content: list[int | None] = [None] * self.lines
        self.waits = dict.fromkeys(self.drivers, 0)
        priority = parameters.get("priority")
        self.priority = None if priority is None else self.reads[int(priority)]
        self.lost: dict[str, int | None] = {"read": None, "write": None}
        # Of each read its line, what that held, and the lanes that the answer must show.
        self.due: dict[str, deque[tuple[int, int | None, int] | None]] = {
            name: deque([None] * self.latency) for name in self.reads
        }
        self.last_written: set[int] = set()

    def forget(self) -> None:
        """After a reset: contents stay, but a write in flight may or may not have happened."""
        self.content = [None] * self.lines
        self.lost = {"read": None, "write": None}
        for due in self.due.values():
            due.extend([None] * self.latency)
            while len(due) > self.latency:
                due.popleft()

    def line(self) -> int:
        return self.rng.getrandbits(64 * self.lanes)

    def fill(self) -> None:
        """Write every line, shared among the ports."""
        for address in range(self.lines):
            port = self.writes[address % len(self.writes)]
            self.send(port, {"address": address, "mask": (1 << self.lanes) - 1, "line": self.line()})

    def traffic(self, count: int, spread: int) -> None:
        """Reads and writes of every port among the first ``spread`` lines and the last ones."""
        for _ in range(count):
            for port in self.drivers:
                address = self.rng.choice([self.rng.randrange(spread), self.lines - 1 - self.rng.randrange(spread)])
                if port in self.reads:
                    self.send(port, address)
                else:
                    mask = self.rng.choice([0, (1 << self.lanes) - 1, self.rng.getrandbits(self.lanes)])
                    self.send(port, {"address": address, "mask": mask, "line": self.line()})

    def every_cycle(self) -> None:
        """All of a cycle at once: answers due, grants, what each grant means."""
        wanted = {name: bool(int(driver.valid.value)) for name, driver in self.drivers.items()}
        granted = {name: wanted[name] and bool(int(driver.ready.value)) for name, driver in self.drivers.items()}
        writes = [
            self.layouts[name].unpack(int(self.drivers[name].payload.value)) for name in self.writes if granted[name]
        ]
        masks = {item["address"]: item["mask"] for item in writes}  # a bank takes one write a cycle, so a line does
        for name in self.reads:
            self._answer(name)
            if not granted[name]:
                self.due[name].append(None)
                continue
            address = int(self.drivers[name].payload.value)
            # Lanes that are written in the cycle of the read are undefined, the others of the line are not.
            written = masks.get(address, 0)
            shown = ~written & (1 << self.lanes) - 1
            self.due[name].append((address, self.content[address], shown))
            coverage.hit("first_line", address == 0)
            coverage.hit("last_line", address == self.lines - 1)
            coverage.hit("read_after_write", address in self.last_written)
            coverage.hit("read_of_other_lanes", bool(written and shown) and self.content[address] is not None)
        for item, name in zip(writes, [name for name in self.writes if granted[name]], strict=True):
            self._write(item, int(self.drivers[name].payload.value))
        self.last_written = set(masks)
        self._arbitration(wanted, granted)

    def _answer(self, name: str) -> None:
        due = self.due[name].popleft()
        port = name.replace("read_request", "read_response")
        bits = getattr(self.dut, port).value
        valid = bool(int(bits[len(bits) - 1]))
        if valid != (due is not None):
            self.board.fail(
                f"{port}: valid is {int(valid)} {self.latency} cycles after " + ("a" if due else "no") + " grant"
            )
        elif due is not None and (expected := due[1]) is not None:
            address, _, shown = due
            for lane in (n for n in range(self.lanes) if shown >> n & 1):
                got, want = (int(line) >> 64 * lane & LANE_MASK for line in (int(bits) >> self.offset, expected))
                if got != want:
                    self.board.fail(f"{port}: lane {lane} of line {address} is 0x{got:x}, expected 0x{want:x}")

    def _write(self, item: dict[str, Any], bits: int) -> None:
        address = item["address"]
        line = bits >> self.layouts[self.writes[0]].tree["fields"]["line"][0]
        whole = item["mask"] == (1 << self.lanes) - 1
        before = self.content[address]
        coverage.hit("masked", not whole and item["mask"] != 0)
        coverage.hit("no_lane", item["mask"] == 0)
        if before is None and not whole:
            return
        after = 0
        for lane in range(self.lanes):
            source = line if item["mask"] >> lane & 1 else before or 0
            after |= source & LANE_MASK << 64 * lane
        self.content[address] = after

    def _arbitration(self, wanted: dict[str, bool], granted: dict[str, bool]) -> None:
        for kind, ports in (("read", self.reads), ("write", self.writes)):
            lost = [name for name in ports if wanted[name] and not granted[name]]
            told = int(getattr(self.dut, f"{kind}_conflicts").value)
            if self.lost[kind] is not None and told != self.lost[kind]:
                self.board.fail(f"{kind}_conflicts is {told}, {self.lost[kind]} ports lost in the cycle before")
            self.lost[kind] = len(lost)
            coverage.hit(f"{kind}_conflict", bool(lost))
            taken = self._bank(self.priority) if self.priority in ports and wanted[self.priority] else None
            for name in ports:
                self.waits[name] = self.waits[name] + (self._bank(name) != taken) if name in lost else 0
                if name == self.priority and name in lost:
                    self.board.fail(f"{name} has priority and waits")
                coverage.hit("priority", name in lost and self._bank(name) == taken)
                if self.waits[name] > len(ports) - 1:
                    self.board.fail(f"{name} waits for the {self.waits[name]}th cycle among {len(ports)} ports")
            banks = [self._bank(name) for name in ports if granted[name]]
            if len(banks) != len(set(banks)):
                self.board.fail(f"two {kind} grants of one bank in a cycle")
            if any(self._bank(name) not in banks for name in lost):
                self.board.fail(f"a {kind} port waits although nobody has its bank")
        most = [min(self.banks, len(ports)) for ports in (self.reads, self.writes)]
        served = [sum(granted[name] for name in ports) for ports in (self.reads, self.writes)]
        coverage.hit("most_granted", served == most)

    def _bank(self, name: str) -> int:
        item = self.layouts[name].unpack(int(self.drivers[name].payload.value))
        return int(item if isinstance(item, int) else item["address"]) % self.banks

    async def finish(self) -> None:
        await self.settle()
        assert not any(any(due) for due in self.due.values()), "a granted read was not answered"


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(idle=PATTERN_NAMES, spread=[2, 8])
async def reads_see_what_was_written(dut: Any, idle: str, spread: int) -> None:
    """Every answer, exactly when it is due; grants, fairness and conflict counts in every cycle."""
    bench = SramBench(dut, idle, seed=spread)
    await bench.start()
    bench.fill()
    await bench.finish()
    bench.traffic(120, spread)
    await bench.finish()
    coverage.save()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def reset_in_the_middle(dut: Any) -> None:
    """Reads in flight are not answered after a reset; the SRAM then works as before."""
    bench = SramBench(dut)
    await bench.start()
    bench.fill()
    await bench.finish()
    bench.traffic(40, 4)
    await bench.cycles(15)
    coverage.hit("reset", any(any(due) for due in bench.due.values()))
    await bench.restart()
    bench.forget()
    bench.fill()
    await bench.finish()
    bench.traffic(40, 4)
    await bench.finish()
    coverage.save()
