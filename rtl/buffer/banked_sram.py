"""The accelerator's one SRAM: many requesters, one line a cycle from each bank."""

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Signal, Value
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from ..lib.arbiter import RoundRobinArbiter
from ..lib.check import check_integer
from ..lib.counter import popcount
from ..lib.onehot import onehot_select
from ..lib.sram import SramBank
from ..lib.unit import Unit
from ..types import sram_response, sram_write

__all__ = ["BankedSram"]

LANE_BITS = 64


class BankedSram(Unit):
    """SRAM of ``lines`` lines spread over ``banks`` banks: line n lives in bank n mod ``banks``.

    Each bank serves one read and one write a cycle, chosen among those who ask for it by a round-robin arbiter; a
    requester that keeps asking waits for at most ``ports - 1`` others, and a reader as long as the ``priority`` port asks for
    its bank. Requesters of different banks do not meet.

    Parameters
    ----------
    lines : int
        Lines in all; a multiple of ``banks``, at least two in each bank.
    banks : int
        Power of two.
    lanes : int
        64-bit elements in a line.
    read_ports, write_ports : int
        Requesters, at least 1 each.
    priority : int or None
        Read port that is granted at once, if there is one.

    Members
    -------
    read_request : In(stream(line address)) x read_ports
        ``ready`` is the grant: high in the cycle in which this port wins its bank, so it follows ``valid`` at once.
    read_response : Out({valid, line}) x read_ports
        The line, exactly ``latency`` cycles after the grant, in the order of the grants of that port, straight from
        registers. Cannot be refused: a requester asks only for what it has room for.
    write : In(stream({address, mask, line})) x write_ports
        ``ready`` is the grant. Reads granted in later cycles see the new lanes, reads granted before see the old ones.
        What a read of the same line granted in the *same* cycle returns in the lanes that ``mask`` names is not defined:
        requesters keep the two apart. Its other lanes are as they were, since nobody writes them: an entry of metadata,
        which is a lane of its own, may be read while another one of its line is written.
    read_conflicts : Out(range(read_ports + 1)), write_conflicts : Out(range(write_ports + 1))
        Requests that lost their arbitration in the cycle before.

    Contents are not defined before they are written. An address past the last line reads undefined data, and writing
    there changes nothing.

    Timing
    ------
    ``latency`` cycles, 3, from a granted read to its line; each bank grants one read and one write a cycle.
    """

    latency = 3

    def __init__(
        self, *, lines: int, banks: int, lanes: int, read_ports: int, write_ports: int, priority: int | None = None
    ) -> None:
        if not isinstance(banks, int) or banks < 1 or banks & (banks - 1):
            raise ValueError(f"SRAM banks must be a power of two, not {banks!r}")
        if not isinstance(lines, int) or lines % banks or lines < 2 * banks:
            raise ValueError(f"SRAM lines must be a multiple of {banks} banks with two in each, not {lines!r}")
        if not isinstance(lanes, int) or lanes < 1:
            raise ValueError(f"SRAM lanes must be a positive integer, not {lanes!r}")
        for name, ports in (("read", read_ports), ("write", write_ports)):
            if not isinstance(ports, int) or ports < 1:
                raise ValueError(f"SRAM {name} ports must be a positive integer, not {ports!r}")
        if priority is not None:
            check_integer("SRAM priority port", priority, 0, read_ports - 1)
        self.lines = lines
        self.banks = banks
        self.lanes = lanes
        self.read_ports = read_ports
        self.write_ports = write_ports
        self.priority = priority
        self.line_address_width = (lines - 1).bit_length()
        super().__init__(
            {
                "read_request": In(stream.Signature(self.line_address_width)).array(read_ports),
                "read_response": Out(sram_response(lanes)).array(read_ports),
                "write": In(stream.Signature(sram_write(lanes, self.line_address_width))).array(write_ports),
                "read_conflicts": Out(range(read_ports + 1)),
                "write_conflicts": Out(range(write_ports + 1)),
            }
        )

    def events(self) -> Mapping[str, Value]:
        return {"sram_read_conflicts": self.read_conflicts}

    def build(self, platform: Any) -> Module:
        m = Module()
        bits = (self.banks - 1).bit_length()
        rows = self.lines // self.banks

        def split(address: Value) -> tuple[Value, Value]:
            """Bank and row of a line address."""
            return (address[:bits] if bits else Const(0, 1)), address[bits:]

        def arbitrate(
            kind: str, valids: list[Value], bank_of: list[Value], priority: int | None = None
        ) -> list[Signal]:
            """One-hot grant of each bank among the ports: that of ``priority`` if it asks, else one of those that take turns."""
            grants = []
            wanted = []
            for port, (valid, bank) in enumerate(zip(valids, bank_of, strict=True)):
                wanted.append(Signal(self.banks, name=f"{kind}{port}_wants"))
                # Bank by bank: an address that nobody offers may be anything.
                m.d.comb += wanted[port].eq(Cat(valid & (bank == n) for n in range(self.banks)))
            for bank in range(self.banks):
                m.submodules[f"{kind}_arbiter{bank}"] = arbiter = RoundRobinArbiter(count=len(valids))
                m.d.comb += [arbiter.requests[n].eq(want[bank]) for n, want in enumerate(wanted) if n != priority]
                if priority is None:
                    m.d.comb += arbiter.advance.eq(1)
                    grants.append(arbiter.grant)
                    continue
                grant = Signal(len(valids), name=f"{kind}{bank}_grant")
                m.d.comb += arbiter.advance.eq(~wanted[priority][bank])
                with m.If(wanted[priority][bank]):
                    m.d.comb += grant.eq(1 << priority)
                with m.Else():
                    m.d.comb += grant.eq(arbiter.grant)
                grants.append(grant)
            return grants

        banks = []
        for bank in range(self.banks):
            sram = SramBank(depth=rows, width=LANE_BITS * self.lanes, granularity=LANE_BITS)
            m.submodules[f"bank{bank}"] = sram
            banks.append(sram)

        # Reads, one cycle each: arbitrate into a register, read the bank, route its word to the port into a register.
        places = [split(port.payload) for port in self.read_request]
        bank_of, row_of = [place[0] for place in places], [place[1] for place in places]
        grants = arbitrate("read", [port.valid for port in self.read_request], bank_of, self.priority)
        for bank, (sram, grant) in enumerate(zip(banks, grants, strict=True)):
            enable = Signal(name=f"bank{bank}_enable")
            row = Signal(range(rows), reset_less=True, name=f"bank{bank}_row")
            m.d.sync += [enable.eq(grant.any()), row.eq(onehot_select(grant, row_of))]
            m.d.comb += [sram.read_enable.eq(enable), sram.read_address.eq(row)]
        for port, (request, response) in enumerate(zip(self.read_request, self.read_response, strict=True)):
            m.d.comb += request.ready.eq(Array(grant[port] for grant in grants)[bank_of[port]])
            granted = [Signal(name=f"read{port}_granted{stage}") for stage in range(2)]
            source = [Signal(max(bits, 1), reset_less=True, name=f"read{port}_source{stage}") for stage in range(2)]
            word = Signal(LANE_BITS * self.lanes, reset_less=True, name=f"read{port}_word")
            m.d.sync += [granted[0].eq(request.valid & request.ready), granted[1].eq(granted[0])]
            m.d.sync += [source[0].eq(bank_of[port]), source[1].eq(source[0]), response.valid.eq(granted[1])]
            with m.If(granted[1]), m.Switch(source[1]):
                for bank, sram in enumerate(banks):
                    with m.Case(bank):
                        m.d.sync += word.eq(sram.read_data)
            m.d.comb += Value.cast(response.line).eq(word)

        # Writes: a register in front of the bank, like the reads', so that the bank sees both in the order of grants.
        places = [split(port.payload.address) for port in self.write]
        bank_of, row_of = [place[0] for place in places], [place[1] for place in places]
        grants = arbitrate("write", [port.valid for port in self.write], bank_of)
        masks = [port.payload.mask for port in self.write]
        lines = [Value.cast(port.payload.line) for port in self.write]
        for bank, (sram, grant) in enumerate(zip(banks, grants, strict=True)):
            mask = Signal(self.lanes, name=f"bank{bank}_mask")
            row = Signal(range(rows), reset_less=True, name=f"bank{bank}_write_row")
            word = Signal(LANE_BITS * self.lanes, reset_less=True, name=f"bank{bank}_word")
            m.d.sync += mask.eq(onehot_select(grant, masks))
            with m.If(grant.any()):
                m.d.sync += [row.eq(onehot_select(grant, row_of)), word.eq(onehot_select(grant, lines))]
            m.d.comb += [sram.write_mask.eq(mask), sram.write_address.eq(row), sram.write_data.eq(word)]
        for port, request in enumerate(self.write):
            m.d.comb += request.ready.eq(Array(grant[port] for grant in grants)[bank_of[port]])

        m.d.sync += [
            self.read_conflicts.eq(popcount([port.valid & ~port.ready for port in self.read_request])),
            self.write_conflicts.eq(popcount([port.valid & ~port.ready for port in self.write])),
        ]
        return m
