"""Drive every port of a buffer controller at random against its golden model, cycle by cycle.

The controller is compiled (``verilated``); the memory is a Python dictionary that grants and answers as it pleases and
whose neighbours are poisoned. Monitors act on what the pins show, never on what the drivers meant.
"""

import random
from collections import Counter, deque

from sw.golden.buffet import IllegalOperation, Stall
from tests.rtl.buffer.verilated import Verilated

POISON = 0xDEAD


class Rates:
    """How likely each port is to offer, or take, something in a cycle."""

    def __init__(self, *, fill=0.6, overwrite=0.6, read=0.7, update=0.2, shrink=0.02, take=0.8, grant=0.8):
        self.fill, self.overwrite, self.read, self.update, self.shrink = fill, overwrite, read, update, shrink
        self.take, self.grant = take, grant


STEADY = Rates(fill=1, overwrite=1, read=1, update=0.05, shrink=0.01, take=1, grant=1)
MIXED = Rates()
STALLED = Rates(fill=0.3, overwrite=0.3, read=0.5, update=0.1, shrink=0.02, take=0.25, grant=0.3)
HECTIC = Rates(fill=0.9, overwrite=0.9, read=0.9, update=0.5, shrink=0.15, take=0.6, grant=0.9)


class BufferBench:
    """One controller and its model. ``errors``: the code of each name; ``tailors``: which ports exist."""

    width = 16

    def __init__(self, dut: Verilated, model, *, seed, errors, rates, base, latency, tailors, illegal=0.0):
        self.dut, self.model, self.errors, self.rates, self.tailors = dut, model, errors, rates, tailors
        self.rng = random.Random(seed)
        self.where = f"seed {seed}, capacity {model.capacity}, fifo {getattr(model, 'fifo', 0)}, "
        self.where += f"tile {getattr(model, 'tile_length', 0)}"
        self.base, self.latency, self.illegal = base, latency, illegal
        self.memory = {}
        self.answers = deque()  # (cycle due, entry)
        self.expected = deque()  # entries the reader must still see
        self.pending = {}  # what each input port offers now
        self.ops = Counter()
        self.recent = deque(maxlen=10)
        self.cycle = 0
        self.serial = 1
        self.waiting = 0
        self.blocked = 0
        self.error = 0
        dut.poke("base", base)
        dut.poke("capacity", model.capacity)
        if tailors:
            dut.poke("fifo_entries", model.fifo)
            dut.poke("tile_length", model.tile_length)
        self.settle_inputs()

    def entry(self):
        self.serial = self.serial % 0xFFF0 + 1
        return self.serial

    def some_index(self):
        model = self.model
        if not self.tailors:
            return self.rng.randrange(min(model.occupancy + 2, model.capacity))
        near = model.occupancy + 2
        if model.overbooked:
            if model.bumped:
                near = len(model.regular) + model.bumped + (self.rng.random() < self.illegal)
                if self.rng.random() < 0.5:  # something present or just coming
                    reach = self.rng.randrange(len(model.region) + 1)
                    return len(model.regular) + (model.fifo_offset + reach) % model.bumped
            else:
                newest = len(model.regular) + model.fifo_offset + len(model.region)
                return self.rng.choice(
                    [self.rng.randrange(max(len(model.regular), 1)), max(newest - self.rng.randrange(3), 0)]
                )
        elif model.tile_length:
            near = min(near, max(model.tile_length, 1))
        return self.rng.randrange(near)

    def offer(self):
        """Put something on idle ports, each with its own probability."""
        rng, rates, model = self.rng, self.rates, self.model
        illegal = self.illegal > rng.random()
        stuck = self.blocked > 60
        calm = illegal or not self.pending.keys() & {"fill", "overwrite"}
        if "shrink" not in self.pending and calm and (rng.random() < rates.shrink or stuck):
            kept = len(model.regular) if self.tailors else model.occupancy
            choices = [rng.randrange(kept + 1), min(1, kept)]
            choices += [model.occupancy] if stuck or rng.random() < 0.3 else []
            choices += [min(model.occupancy + 1, 16)] if illegal else []
            self.pending["shrink"] = choices[-1] if stuck else rng.choice(choices)
            self.blocked = 0
        full = model.occupancy == model.capacity
        barred = self.tailors and (model.overbooked or model.backfilling or full) and not illegal
        # A Fill goes before an OWFill: without one that waited for the shrink, an early OWFill gets its chance.
        barred |= bool(self.illegal) and "shrink" in self.pending
        if "fill" not in self.pending and not barred and rng.random() < rates.fill:
            self.pending["fill"] = self.entry()
        if self.tailors and "overwrite" not in self.pending and rng.random() < rates.overwrite:
            overflows = full and not 0 < model.tile_length <= model.capacity
            # A fill or shrink that still waits could make the overwrite an early one.
            quiet = not self.pending.keys() & {"fill", "shrink"}
            if illegal or (quiet and (model.overbooked or model.backfilling or overflows)):
                self.pending["overwrite"] = self.entry()
        if "read" not in self.pending and rng.random() < rates.read:
            self.pending["read"] = self.some_index()
        if "update" not in self.pending and rng.random() < rates.update:
            self.pending["update"] = (self.some_index(), self.entry())

    def settle_inputs(self):
        dut = self.dut
        ports = ("fill", "overwrite", "read", "shrink") if self.tailors else ("fill", "read", "shrink")
        for port in ports:
            dut.poke(f"{port}__valid", port in self.pending)
            dut.poke(f"{port}__payload", self.pending.get(port, 0))
        index, entry = self.pending.get("update", (0, 0))
        dut.poke("update__valid", "update" in self.pending)
        dut.poke("update__payload", entry | index << self.width)
        dut.poke("clear_error", bool(self.error))
        due = bool(self.answers) and self.answers[0][0] <= self.cycle
        dut.poke("memory_response", self.answers[0][1] | 1 << self.width if due else 0)
        self.answered = due
        dut.poke("memory_read__ready", self.rng.random() < self.rates.grant)
        dut.poke("memory_write__ready", self.rng.random() < self.rates.grant)
        dut.poke("read_data__ready", self.rng.random() < self.rates.take)
        dut.settle()

    def apply(self, port, action):
        """Let the model do what the hardware just took; the model must agree that it could."""
        self.recent.append(f"{self.cycle}: {port} {self.pending.get(port)}")
        del self.pending[port]
        self.ops[port] += 1
        try:
            return action()
        except Stall:
            raise AssertionError(f"{self.where}: taken although it had to wait: {list(self.recent)}") from None
        except IllegalOperation as illegal:
            self.ops[illegal.name] += 1
            self.raised.append(self.errors[illegal.name])
            return None

    def check(self, what, seen, expected):
        if seen != expected:
            raise AssertionError(
                f"{self.where}, cycle {self.cycle}: {what} is {seen}, expected {expected}: {list(self.recent)}"
            )

    def step(self):
        dut, model = self.dut, self.model
        self.offer()
        self.settle_inputs()
        self.check("error", dut.peek("error"), self.error)
        self.check("occupancy", dut.peek("occupancy"), model.occupancy)
        self.check("credit", dut.peek("credit"), model.credit)
        if self.tailors:
            self.check("overbooked", dut.peek("overbooked"), model.overbooked)
            if model.overbooked:
                self.check("FIFO offset", dut.peek("fifo_offset"), model.fifo_offset)

        taken = {port for port in self.pending if dut.peek(f"{port}__ready")}
        self.raised = []
        if "shrink" in taken:
            assert taken == {"shrink"}, "a shrink has its cycle to itself"
            count = self.pending["shrink"]
            self.apply("shrink", lambda: model.shrink(count))
        if "read" in taken:
            index = self.pending["read"]
            entry = self.apply("read", lambda: model.read(index))
            if entry is not None:
                self.expected.append(entry)
        if "update" in taken:
            self.apply("update", lambda pair=self.pending["update"]: model.update(*pair))
        for port in ("fill", "overwrite"):
            if port in taken:
                self.apply(port, lambda port=port, entry=self.pending[port]: getattr(model, port)(entry))
        if taken:
            self.waiting = 0
        self.liveness(taken)
        self.error = 0 if not self.raised else min(self.raised)
        self.memory_side()
        if dut.peek("read_data__valid") and self.taking():
            entry = dut.peek("read_data__payload")
            assert self.expected, f"{self.where}: an answer nobody asked for"
            self.check("answer", entry, self.expected.popleft())
            self.ops["answer"] += 1
        dut.tick()
        self.cycle += 1

    def taking(self):
        at, _ = self.dut._inputs["read_data__ready"]
        return self.dut._in[at]

    def liveness(self, taken):
        """Whatever the model would allow is taken before long; what nothing can bring is given up by a shrink."""
        self.blocked = (
            0
            if "read" in taken or "update" in taken
            else self.blocked + ("read" in self.pending or "update" in self.pending)
        )
        self.waiting += bool(self.pending)
        assert self.waiting < 3000, (
            f"{self.where}, cycle {self.cycle}: nothing moves: {self.pending} {list(self.recent)}"
        )

    def memory_side(self):
        dut = self.dut
        read = write = None
        at = self.dut._inputs
        if dut.peek("memory_read__valid") and dut._in[at["memory_read__ready"][0]]:
            read = dut.peek("memory_read__payload")
        if dut.peek("memory_write__valid") and dut._in[at["memory_write__ready"][0]]:
            write = dut.peek("memory_write__payload")
        if self.answered:
            self.answers.popleft()
        if read is not None:
            assert self.base <= read < self.base + self.model.capacity, f"{self.where}: read outside the buffer"
            assert write is None or write >> self.width != read, (
                f"{self.where}, cycle {self.cycle}: read and write of one entry in one cycle: {list(self.recent)}"
            )
            last = self.answers[-1][0] if self.answers else 0
            self.answers.append((max(self.cycle + self.latency, last + 1), self.memory.get(read, POISON)))
        if write is not None:
            address = write >> self.width
            assert self.base <= address < self.base + self.model.capacity, f"{self.where}: write outside the buffer"
            self.memory[address] = write & (1 << self.width) - 1

    def run(self, operations, limit=200_000):
        while sum(self.ops[port] for port in ("fill", "overwrite", "read", "update", "shrink")) < operations:
            self.step()
            assert self.cycle < limit, f"{self.where}: too slow: {self.ops}"
        return self.ops

    def drain(self):
        """Offer nothing new and take everything that is due; nothing may be left over."""
        still = Rates(fill=0, overwrite=0, read=0, update=0, shrink=0, take=1, grant=1)
        self.rates, self.blocked = still, 0
        for _ in range(100):
            self.step()
        assert not self.expected, f"{self.where}: answers are missing"
