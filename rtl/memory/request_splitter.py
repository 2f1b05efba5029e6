"""Cuts requests of any length into bus bursts, each only when there is space (or data) for all of it."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..lib.stream import StreamRegister, StreamSkid
from ..storage import PAGE_BYTES
from ..types import BEATS_WIDTH, read_request

__all__ = ["RequestSplitter", "burst_limit", "burst_request", "checked_clients"]


def burst_limit(*, burst_beats: int, line_bytes: int, capacity: int) -> int:
    """Longest burst of a client, a power of two: at most ``burst_beats``, one page, and half of the client's ``capacity``.

    Half, so that a burst can be requested while the one before it is taken.
    """
    limit = min(burst_beats, PAGE_BYTES // line_bytes, max(1, capacity // 2))
    return 1 << (limit.bit_length() - 1)


def checked_clients(
    *, kind: str, clients: int, depths: Sequence[int], least_depth: int, outstanding: int, burst_beats: int
) -> tuple[int, ...]:
    """The clients' queue depths, after a check of all parameters of clients and bursts."""
    if not isinstance(clients, int) or clients < 1:
        raise ValueError(f"{kind}s must be a positive integer, not {clients!r}")
    if not isinstance(outstanding, int) or outstanding < 1:
        raise ValueError(f"Outstanding bursts must be a positive integer, not {outstanding!r}")
    if burst_beats not in (1, 2, 4, 8, 16, 32, 64, 128, 256):
        raise ValueError(f"Burst beats must be a power of two from 1 to 256, not {burst_beats!r}")
    checked = tuple(depths)
    if len(checked) != clients or any(not isinstance(depth, int) or depth < least_depth for depth in checked):
        raise ValueError(f"{kind} depth must list {clients} integers of at least {least_depth}, not {checked!r}")
    return checked


def burst_request(*, line_address_width: int, burst_beats: int) -> data.StructLayout:
    """One burst: bus line (byte address over bytes of a beat) and beats, 1 to ``burst_beats``; ``ends``: its request's last."""
    return data.StructLayout({"line": line_address_width, "beats": range(burst_beats + 1), "ends": 1})


class RequestSplitter(Block):
    """Turns one client's requests into bursts that end at multiples of ``limit`` lines.

    Aligned ends keep every burst inside one 4 KiB page, because ``limit`` lines divide a page, and make long requests
    run in whole aligned bursts. A burst leaves only when ``credit`` covers it, and uses up as many beats of it.

    Parameters
    ----------
    address_width : int
        Bits of a byte address.
    line_bytes : int
        Bytes of a bus beat, a power of two.
    limit : int
        Longest burst in beats, a power of two; at most one 4 KiB page.
    burst_beats : int
        Largest count that ``burst.payload.beats`` can show, at least ``limit``. Equal for all clients of an engine.
    credit_limit : int
        Largest value of ``credit``, at least ``limit``.
    credit_init : int
        Its value at the begin.

    Members
    -------
    request : In(stream)
        Byte address (aligned down to the bus) and beats. A request of zero beats is taken and does nothing.
        ``ready`` depends on registers.
    burst : Out(stream)
        Straight from registers.
    earned : In(1)
        One more beat may be requested, from the next cycle on.
    credit : Out(range(credit_limit + 1))
        Beats that may be requested now, registered.
    busy : Out(1)
        A request is being cut or a burst waits at ``burst``.

    Timing
    ------
    Three cycles from an accepted request to its first burst, one burst a cycle, also across one-beat requests.
    """

    latency = 3

    def __init__(
        self, *, address_width: int, line_bytes: int, limit: int, burst_beats: int, credit_limit: int, credit_init: int
    ) -> None:
        if limit < 1 or limit & (limit - 1) or limit * line_bytes > PAGE_BYTES:
            raise ValueError(f"Burst limit must be a power of two of at most {PAGE_BYTES // line_bytes}, not {limit!r}")
        if burst_beats < limit or credit_limit < limit:
            raise ValueError(f"Burst of {limit} beats needs a count and a credit that can reach it")
        self.address_width = address_width
        self.line_bytes = line_bytes
        self.limit = limit
        self.burst_beats = burst_beats
        self.credit_limit = credit_limit
        self.credit_init = credit_init
        self.line_shift = (line_bytes - 1).bit_length()
        self.burst_shape = burst_request(line_address_width=address_width - self.line_shift, burst_beats=burst_beats)
        super().__init__(
            {
                "request": In(stream.Signature(read_request(address_width))),
                "burst": Out(stream.Signature(self.burst_shape)),
                "earned": In(1),
                "credit": Out(range(credit_limit + 1), init=credit_init),
                "busy": Out(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.cut = cut = StreamRegister(shape=self.burst_shape)
        m.submodules.burst_skid = output = StreamSkid(shape=self.burst_shape)

        # The next burst of the request at hand.
        active = Signal()
        line = Signal(self.address_width - self.line_shift, reset_less=True)
        left = Signal(BEATS_WIDTH, reset_less=True)  # beats not requested yet, at least 1 while active

        shift = self.limit.bit_length() - 1
        to_boundary = Signal(range(self.limit + 1))
        ends = Signal()
        m.d.comb += [
            to_boundary.eq(self.limit - line[:shift]),
            # `left` against `to_boundary`, without waiting for a difference.
            ends.eq((left[shift + 1 :] == 0) & (left[: shift + 1] + line[:shift] <= self.limit)),
            cut.i.valid.eq(active),
            cut.i.payload.line.eq(line),
            cut.i.payload.beats.eq(Mux(ends, left, to_boundary)),
            cut.i.payload.ends.eq(ends),
            self.request.ready.eq(~active | (cut.i.ready & ends)),
            self.burst.valid.eq(output.o.valid),
            self.burst.payload.eq(output.o.payload),
            output.o.ready.eq(self.burst.ready),
            self.busy.eq(active | cut.o.valid | output.o.valid),
        ]
        # The address moves only together with the request's first or next burst, so one enable serves all of its bits.
        moves = Signal()
        starts = Signal()
        m.d.comb += [moves.eq(~active | cut.i.ready), starts.eq(~active | ends)]
        with m.If(moves):
            with m.If(starts):
                m.d.sync += [
                    active.eq(self.request.valid & (self.request.payload.beats != 0)),
                    line.eq(self.request.payload.address[self.line_shift :]),
                    left.eq(self.request.payload.beats),
                ]
            with m.Else():
                # Not the last burst of its request, so the next one starts at a multiple of `limit`.
                m.d.sync += [
                    line[:shift].eq(0),
                    line[shift:].eq(line[shift:] + 1),
                    left.eq(left - to_boundary),
                ]

        # It waits here until credit covers it.
        beats = cut.o.payload.beats
        covered = Signal()
        m.d.comb += [
            covered.eq(self.credit >= beats),
            output.i.payload.eq(cut.o.payload),
            output.i.valid.eq(cut.o.valid & covered),
            cut.o.ready.eq(output.i.ready & covered),
        ]
        # Both outcomes are computed before it is known which one holds.
        with m.If(output.i.valid & output.i.ready):
            m.d.sync += self.credit.eq(self.credit + self.earned - beats)
        with m.Else():
            m.d.sync += self.credit.eq(self.credit + self.earned)
        return m
