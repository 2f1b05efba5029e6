"""Sends the entries of a group to the banks that their digits name."""

from typing import Any

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ...lib.block import Block
from ...lib.check import check_integer, check_power_of_two
from ...lib.onehot import lowest_set, onehot_select
from ...lib.signals import signals
from ...lib.stream import StreamRegister

__all__ = ["LaneRouter", "digit_group", "routed_item"]


def digit_group(lanes: int, digit_bits: int, width: int) -> data.StructLayout:
    """Up to ``lanes`` items with a digit each, in lanes 0 to ``count`` - 1."""
    return data.StructLayout(
        {
            "digits": data.ArrayLayout(digit_bits, lanes),
            "items": data.ArrayLayout(width, lanes),
            "count": range(lanes + 1),
        }
    )


def routed_item(index_bits: int, width: int) -> data.StructLayout:
    """An item in its bank; ``index``: the digit without the bits that name the bank."""
    return data.StructLayout({"index": index_bits, "item": width})


class LaneRouter(Block):
    """The low bits of a digit name the bank. Items of one bank keep their order.

    Parameters
    ----------
    lanes : int
        Items of a group, power of two from 1 to 16.
    banks : int
        Power of two from 2 to 64.
    digit_bits : int
        Bits of a digit: more than name a bank.
    width : int
        Bits of an item, 0 where the digit says all.

    Members
    -------
    groups : In(stream(digit_group))
        A group may be empty.
    items[banks] : Out(stream(routed_item))
        From registers.
    busy : Out(1)
        An item is inside.

    Timing
    ------
    One cycle. Each bank gets an item a cycle: a group takes as many cycles as the bank with the most of its items.
    """

    latency = 1

    def __init__(self, *, lanes: int, banks: int, digit_bits: int, width: int) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 1, 16)
        self.banks = check_power_of_two("Banks", banks, 2, 64)
        self.digit_bits = check_integer("Digit bits", digit_bits, banks.bit_length(), 32)
        self.width = check_integer("Width", width, 0, 128)
        self.bank_bits = banks.bit_length() - 1
        item = routed_item(digit_bits - self.bank_bits, width)
        super().__init__(
            {
                "groups": In(stream.Signature(digit_group(lanes, digit_bits, width))),
                "items": Out(stream.Signature(item)).array(banks),
                "busy": Out(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        lanes = range(self.lanes)
        group = self.groups.payload
        digits = [Value.cast(group.digits[n]) for n in lanes]
        sent, waiting, goes = signals("sent waiting goes", self.lanes)
        m.d.comb += waiting.eq(
            Cat((group.count > n) & ~sent[n] for n in lanes) & self.groups.valid.replicate(self.lanes)
        )
        taken: Any = 0
        outputs = []
        for bank in range(self.banks):
            m.submodules[f"output{bank}"] = output = StreamRegister(shape=self.items[bank].payload.shape())
            connect(m, output.o, flipped(self.items[bank]))
            outputs.append(output)
            chosen = Signal(self.lanes, name=f"chosen{bank}")
            own = Cat(waiting[n] & (digits[n][: self.bank_bits] == bank) for n in lanes)
            m.d.comb += [
                chosen.eq(lowest_set(own)),
                output.i.valid.eq(chosen.any()),
                output.i.payload.index.eq(onehot_select(chosen, [digit[self.bank_bits :] for digit in digits])),
            ]
            if self.width:
                m.d.comb += output.i.payload.item.eq(onehot_select(chosen, [group.items[n] for n in lanes]))
            taken = taken | (chosen & output.i.ready.replicate(self.lanes))
        m.d.comb += [
            goes.eq(taken),
            self.groups.ready.eq(~(waiting & ~goes).any()),
            self.busy.eq(self.groups.valid | Cat(output.o.valid for output in outputs).any()),
        ]
        with m.If(self.groups.valid):
            m.d.sync += sent.eq(sent | goes)
            with m.If(self.groups.ready):
                m.d.sync += sent.eq(0)
        return m
