"""The banked SRAM answers in order, exactly on time, with what was written; nobody starves."""

import random

import pytest
from amaranth.sim import Simulator

from rtl.buffer.banked_sram import BankedSram
from tests.rtl.buffer.verilated import Verilated

SIZES = {
    "one_of_everything": {"lines": 2, "banks": 1, "lanes": 1, "read_ports": 1, "write_ports": 1},
    "two_lines_a_bank": {"lines": 8, "banks": 4, "lanes": 2, "read_ports": 3, "write_ports": 2},
    "not_a_power_of_two": {"lines": 12, "banks": 4, "lanes": 2, "read_ports": 2, "write_ports": 1},
    "more_ports_than_banks": {"lines": 16, "banks": 2, "lanes": 2, "read_ports": 7, "write_ports": 3},
    "priority": {"lines": 16, "banks": 2, "lanes": 2, "read_ports": 5, "write_ports": 2, "priority": 3},
    "edge": {"lines": 1024, "banks": 16, "lanes": 2, "read_ports": 12, "write_ports": 3, "priority": 8},
}
LANE = 0xFFFFFFFFFFFFFFFF


def stress(size, cycles, read_rate, write_rate, seed, hot=None):
    """Random requests on every port against a list of lines; returns (granted reads, conflicts counted)."""
    rng = random.Random(seed)
    dut = Verilated(BankedSram(**size))
    lines, lanes = size["lines"], size["lanes"]
    memory = [None] * lines
    reads = [None] * size["read_ports"]
    writes = [None] * size["write_ports"]
    due = [[] for _ in reads]  # (cycle, line) per port
    waited = [0] * len(reads)
    first = size.get("priority")
    granted = conflicts = lost = 0
    for cycle in range(cycles):
        busy_lines = {write[0] for write in writes if write}
        for port, write in enumerate(writes):
            if write is None and rng.random() < write_rate:
                address = rng.randrange(lines) if hot is None else hot
                if address not in busy_lines and address not in reads:
                    mask = (1 << lanes) - 1 if memory[address] is None else rng.getrandbits(lanes)
                    writes[port] = (address, mask, rng.getrandbits(64 * lanes))
                    busy_lines.add(address)
        for port, read in enumerate(reads):
            if read is None and rng.random() < read_rate:
                address = rng.randrange(lines) if hot is None else hot
                if memory[address] is not None and address not in busy_lines:
                    reads[port] = address
        for port, read in enumerate(reads):
            dut.poke(f"read_request__{port}__valid", read is not None)
            dut.poke(f"read_request__{port}__payload", read or 0)
        for port, write in enumerate(writes):
            dut.poke(f"write__{port}__valid", write is not None)
            address, mask, line = write or (0, 0, 0)
            dut.poke(f"write__{port}__payload", line | mask << 64 * lanes | address << 65 * lanes)
        dut.settle()

        assert dut.peek("read_conflicts") == lost, "conflicts of the cycle before"
        conflicts += lost
        lost = 0
        for port in range(len(reads)):
            response = dut.peek(f"read_response__{port}")
            if due[port] and due[port][0][0] == cycle:
                expected = due[port].pop(0)[1]
                assert response >> 64 * lanes, f"seed {seed} cycle {cycle} port {port}: the answer is late"
                assert response == expected | 1 << 64 * lanes, f"seed {seed} cycle {cycle} port {port}: wrong line"
            else:
                assert not response >> 64 * lanes, f"seed {seed} cycle {cycle} port {port}: an answer nobody asked for"
        served = set()
        reads_before = list(reads)
        for port, read in enumerate(reads):
            if dut.peek(f"read_request__{port}__ready") and read is not None:
                bank = read % size["banks"]
                assert bank not in served, "a bank serves one read a cycle"
                served.add(bank)
                due[port].append((cycle + BankedSram.latency, memory[read]))
                reads[port] = None
                waited[port] = 0
                granted += 1
            elif read is not None:
                lost += 1
                # Turns that the port with priority takes do not count.
                if first is None or reads_before[first] is None or (reads_before[first] - read) % size["banks"]:
                    waited[port] += 1
                assert port != first, f"seed {seed} cycle {cycle} port {port} has priority and waits"
                assert waited[port] < len(reads), f"seed {seed} cycle {cycle} port {port} starves"
        wanted = {read % size["banks"] for read in reads if read is not None}
        assert wanted <= served, "a bank stands idle although somebody asks for it"
        served = set()
        for port, write in enumerate(writes):
            if write is not None and dut.peek(f"write__{port}__ready"):
                address, mask, line = write
                assert address % size["banks"] not in served
                served.add(address % size["banks"])
                take = sum(LANE << 64 * n for n in range(lanes) if mask >> n & 1)
                memory[address] = (memory[address] or 0) & ~take | line & take
                writes[port] = None
        dut.tick()
    dut.close()
    assert any(memory), "nothing was written"
    return granted, conflicts


@pytest.mark.parametrize("read_rate,write_rate", [(1.0, 1.0), (0.3, 0.9), (0.9, 0.1)])
@pytest.mark.parametrize("size", SIZES)
def test_random_traffic(size, read_rate, write_rate):
    granted, _ = stress(SIZES[size], 2000, read_rate, write_rate, seed=len(size) + int(10 * read_rate))
    assert granted > 100


def test_everybody_wants_one_bank():
    size = SIZES["more_ports_than_banks"]
    granted, conflicts = stress(size, 500, 1.0, 0.02, seed=5, hot=3)
    assert granted > 300 and conflicts > 1000


def test_port_with_priority_does_not_wait():
    size = SIZES["more_ports_than_banks"] | {"priority": 0}
    granted, conflicts = stress(size, 500, 1.0, 0.02, seed=6, hot=3)
    assert granted > 300 and conflicts > 1000


def test_requests_for_different_banks_do_not_meet():
    dut = BankedSram(lines=16, banks=4, lanes=2, read_ports=4, write_ports=2)

    async def bench(ctx):
        for half in range(2):
            for port in range(2):
                address = 2 * half + port
                ctx.set(
                    dut.write[port].payload,
                    {"address": address, "mask": 3, "line": [{"coordinate": address, "value": 7}] * 2},
                )
                ctx.set(dut.write[port].valid, 1)
                assert ctx.get(dut.write[port].ready)
            await ctx.tick()
        for port in range(2):
            ctx.set(dut.write[port].valid, 0)
        for port in range(4):
            ctx.set(dut.read_request[port].payload, 3 - port)
            ctx.set(dut.read_request[port].valid, 1)
        assert all(ctx.get(dut.read_request[port].ready) for port in range(4))
        await ctx.tick().repeat(dut.latency)
        for port in range(4):
            assert ctx.get(dut.read_response[port].valid)
            assert ctx.get(dut.read_response[port].line[1].coordinate) == 3 - port
        assert ctx.get(dut.read_conflicts) == 0

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize(
    "change,message",
    [
        ({"banks": 3}, "^SRAM banks must be a power of two, not 3$"),
        ({"lines": 9}, "^SRAM lines must be a multiple of 4 banks with two in each, not 9$"),
        ({"lines": 4}, "^SRAM lines must be a multiple of 4 banks with two in each, not 4$"),
        ({"lanes": 0}, "^SRAM lanes must be a positive integer, not 0$"),
        ({"read_ports": 0}, "^SRAM read ports must be a positive integer, not 0$"),
        ({"write_ports": 0}, "^SRAM write ports must be a positive integer, not 0$"),
        ({"priority": 2}, "^SRAM priority port must be an integer from 0 to 1, not 2$"),
    ],
)
def test_bad_parameters_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        BankedSram(**({"lines": 16, "banks": 4, "lanes": 2, "read_ports": 2, "write_ports": 2} | change))
