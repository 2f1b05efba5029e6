"""What passes between a converter and its host. The host never stands still: every item comes out after a fixed time."""

from typing import Any

from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, Signature

from ..converter.streams import COORDINATE_BITS, POSITION_BITS

__all__ = [
    "DIVIDERS",
    "SUM_BITS",
    "SUM_LANES",
    "SumPort",
    "division_request",
    "division_result",
    "sum_request",
    "sum_result",
]

#: Values of a vector, and bits of each: two adders of 32 bits.
SUM_LANES, SUM_BITS = 8, 64
#: Dividers of the host, of 32 bits. Two in a row divide a position.
DIVIDERS = 8
_LANES = data.ArrayLayout(SUM_BITS, SUM_LANES)
_PAIRS = DIVIDERS // 2


def sum_request() -> data.StructLayout:
    """A vector. ``first``: it begins an array; ``client``: who asks."""
    return data.StructLayout({"first": 1, "client": 2, "values": _LANES})


def sum_result() -> data.StructLayout:
    return data.StructLayout({"first": 1, "client": 2, "sums": _LANES})


def division_request() -> data.StructLayout:
    return data.StructLayout(
        {"dividends": data.ArrayLayout(POSITION_BITS, _PAIRS), "divisor": COORDINATE_BITS + 1},
    )


def division_result() -> data.StructLayout:
    quotients, remainders = data.ArrayLayout(POSITION_BITS, _PAIRS), data.ArrayLayout(COORDINATE_BITS + 1, _PAIRS)
    return data.StructLayout({"quotients": quotients, "remainders": remainders})


class SumPort(Signature):
    """Vectors that go to the adders and come back as sums, in order."""

    def __init__(self) -> None:
        members: dict[str, Any] = {
            "request": Out(stream.Signature(sum_request())),
            "result": In(stream.Signature(sum_result())),
        }
        super().__init__(members)
