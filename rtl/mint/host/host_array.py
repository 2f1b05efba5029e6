"""A compute array of integers with adders and dividers, which it lends to a converter before and after it computes."""

from typing import Any

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out, Signature

from ...lib.block import Block
from ..prefix_sum import FORMS
from .adder_array import AdderArray
from .divider_row import DividerRow
from .signature import DIVIDERS, SUM_BITS, SUM_LANES, division_request, division_result, sum_request, sum_result

__all__ = ["HostArray", "HostCompute"]

ROWS = COLUMNS = 16
WIDTH = 32


class HostCompute(Signature):
    """The host's own additions and divisions, seen from who asks for them: as those of its two parts.

    ``ready``: a vector and a pair of each divider are taken in this cycle. ``owned``: the converter has the array; operands are
    0 then.
    """

    def __init__(self) -> None:
        numbers, pairs = data.ArrayLayout(WIDTH, COLUMNS), data.ArrayLayout(WIDTH, DIVIDERS)
        members: dict[str, Any] = {
            "ready": In(1),
            "owned": In(1),
            "vector_valid": Out(1),
            "vector": Out(numbers),
            "operands": Out(data.ArrayLayout(numbers, ROWS)),
            "total_valid": In(1),
            "totals": In(numbers),
            "pair_valid": Out(1),
            "dividends": Out(pairs),
            "divisors": Out(pairs),
            "quotient_valid": In(1),
            "quotients": In(pairs),
            "remainders": In(pairs),
        }
        super().__init__(members)


class HostArray(Block):
    """16 x 16 adders of 32 bits and eight dividers: a compute array, or prefix sums and long divisions of a converter.

    A converter that has claimed it gets it when all that the array has begun is done, and gives it back at once.

    Parameters
    ----------
    form : str
        Network of the prefix sums, one of :data:`rtl.mint.prefix_sum.FORMS`; ``none``: the array alone, for comparison.

    Members
    -------
    compute : In(HostCompute)
    claimed : In(1), owned : Out(1)
        A converter wants it, or has it; it has it.
    sum_valid : In(1), sum : In(sum_request), sums_valid : Out(1), sums : Out(sum_result)
        As :class:`rtl.mint.host.adder_array.AdderArray`; sent while ``owned``.
    division_valid : In(1), division : In(division_request), divided_valid : Out(1), divided : Out(division_result)
        As :class:`rtl.mint.host.divider_row.DividerRow`; sent while ``owned``.

    Timing
    ------
    Of its parts. ``owned`` follows ``claimed`` a cycle after the last total and quotient have come.
    """

    def __init__(self, *, form: str = "work_efficient") -> None:
        if form not in ("none", *FORMS):
            raise ValueError(f"Prefix sum must be one of none, {', '.join(FORMS)}, not {form!r}")
        self.form = form
        self.adders = AdderArray(
            rows=ROWS, columns=COLUMNS, width=WIDTH, form=form, inputs=SUM_LANES, limbs=SUM_BITS // WIDTH
        )
        self.dividers = DividerRow(shares=form != "none")
        super().__init__(
            {
                "compute": In(HostCompute()),
                "claimed": In(1),
                "owned": Out(1),
                "sum_valid": In(1),
                "sum": In(sum_request()),
                "sums_valid": Out(1),
                "sums": Out(sum_result()),
                "division_valid": In(1),
                "division": In(division_request()),
                "divided_valid": Out(1),
                "divided": Out(division_result()),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.adders = adders = self.adders
        m.submodules.dividers = dividers = self.dividers
        compute = self.compute
        shares = self.form != "none"
        busy = Signal()
        if shares:
            # Cycles until the longer part has nothing inside.
            left = Signal(range(dividers.width + 2))
            with m.If((compute.vector_valid | compute.pair_valid) & compute.ready):
                m.d.sync += left.eq(dividers.width + 1)
            with m.Elif(left != 0):
                m.d.sync += left.eq(left - 1)
            m.d.comb += busy.eq(left != 0)
            m.d.sync += self.owned.eq(self.claimed & (self.owned | ~busy))
        m.d.comb += [
            compute.ready.eq(~self.owned & ~(self.claimed if shares else 0)),
            compute.owned.eq(self.owned),
            adders.shared.eq(self.owned),
            dividers.shared.eq(self.owned),
            adders.vector_valid.eq(compute.vector_valid & compute.ready),
            dividers.pair_valid.eq(compute.pair_valid & compute.ready),
            *(getattr(adders, name).eq(getattr(compute, name)) for name in ("vector", "operands")),
            *(getattr(dividers, name).eq(getattr(compute, name)) for name in ("dividends", "divisors")),
            *(getattr(compute, name).eq(getattr(adders, name)) for name in ("total_valid", "totals")),
            *(
                getattr(compute, name).eq(getattr(dividers, name))
                for name in ("quotient_valid", "quotients", "remainders")
            ),
            adders.values_valid.eq(self.sum_valid),
            adders.first.eq(self.sum.first),
            adders.values.eq(self.sum["values"]),
            self.sums_valid.eq(adders.sums_valid),
            self.sums.sums.eq(adders.sums),
            dividers.request_valid.eq(self.division_valid),
            dividers.request.eq(self.division),
            self.divided_valid.eq(dividers.result_valid),
            self.divided.eq(dividers.result),
        ]
        if shares:
            along: Any = Cat(self.sum.first, self.sum.client)
            for n in range(adders.latency):
                following = Signal(len(along), name=f"along{n}", reset_less=True)
                m.d.sync += following.eq(along)
                along = following
            m.d.comb += [self.sums.first.eq(along[0]), self.sums.client.eq(along[1:])]
        return m
