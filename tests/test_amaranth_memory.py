"""What tests make Amaranth remember is what it works out."""

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.hdl._ast import Operator
from amaranth.hdl._nir import CombinationalCycle
from amaranth.sim import _pyrtl

from tests.amaranth_memory import remember

NARROW, WIDE, SIGN = Signal(3), Signal(9), Signal(signed(5))


@pytest.mark.parametrize(
    "value",
    [
        NARROW + WIDE,
        NARROW - SIGN,
        -(NARROW * SIGN),
        (WIDE << NARROW) >> 2,
        WIDE[2:5] == ~NARROW,
        Cat(NARROW, SIGN, WIDE)[1:],
        Mux(NARROW.any(), WIDE, SIGN),
        (SIGN | NARROW).as_unsigned(),
    ],
    ids=repr,
)
def test_the_shape_that_is_kept_is_the_one_that_is_worked_out(value):
    first = value.shape()
    assert value.shape() is first == type(value).shape.__wrapped__(value)


def test_a_text_is_compiled_once_and_another_is_another():
    one, same, other = (_pyrtl.compile(text, "<test>", "eval") for text in ("2 + 3", "2 + 3", "2 + 4"))
    assert one is same and one is not other
    assert (eval(one), eval(other)) == (5, 6)


def test_to_remember_twice_is_to_remember_once():
    before = Operator.shape, _pyrtl.compile
    remember()
    assert (Operator.shape, _pyrtl.compile) == before


@pytest.mark.parametrize("length", [1, 2, 5, 3000])
@pytest.mark.parametrize("bit", [0, 3])
def test_a_cycle_is_found_and_told_by_amaranth(length, bit):
    """Of one signal or of a chain as long as a carry; and none where the chain ends at an input."""
    chain = [Signal(4, name=f"s{n}") for n in range(length)]
    begin = Signal(4)
    for source in (begin, chain[-1]):
        m = Module()
        m.d.comb += chain[0].eq(begin)
        m.d.comb += chain[0][bit].eq(source[bit])
        m.d.comb += [after.eq(before) for before, after in zip(chain, chain[1:], strict=False)]
        if source is begin:
            rtlil.convert(m, ports=[begin, chain[-1]])
        elif length < 500:
            with pytest.raises(CombinationalCycle, match=rf"signal s0 bit {bit}"):
                rtlil.convert(m, ports=[begin, chain[-1]])
