"""An array of adders that sums columns of numbers, and prefix sums that are laid over it."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from ...lib.block import Block
from ...lib.check import check_integer, check_power_of_two
from ..prefix_sum import FORMS

__all__ = ["AdderArray"]

BARE = "none"


class AdderArray(Block):
    """A store-and-forward reduction network: each element adds an operand to what the element above it has stored.

    A prefix sum that is laid over it (MINT, figure 9) takes a row, or some, for each level of its network and for the row that
    adds the offset: links between elements, and a multiplexer at each input of an adder that a link comes to. Elements that do
    not add in a level pass their value on, because operands are 0 then. Lanes are joined to wide ones by their carry.

    Parameters
    ----------
    rows, columns : int
        Elements, 2 to 64 each; columns a power of two.
    width : int
        Bits of a number, 8 to 64.
    form : str
        The prefix sum that is laid over it, one of :data:`rtl.mint.prefix_sum.FORMS`, or ``none``.
    inputs : int
        Its values, a power of two from 2 to 64.
    limbs : int
        Elements that add one of its values, 1 or 2.

    Members
    -------
    shared : In(1)
        Prefix sums are made, and operands are 0. It changes while nothing is inside.
    vector_valid : In(1), vector : In(columns x width)
        Numbers that enter the first row.
    operands : In(rows x columns x width)
        Those of row n belong to the vector that came n cycles before.
    total_valid : Out(1), totals : Out(columns x width)
        Each number of a vector with the operands of its column, modulo 2**``width``, ``rows`` cycles later. From registers.
    values_valid : In(1), first : In(1), values : In(inputs x limbs * width)
        Values that are to be added up; ``first`` begins an array. Used while ``shared``.
    sums_valid : Out(1), sums : Out(inputs x limbs * width)
        Prefix sums over all vectors since ``first``, modulo 2**(``limbs`` * ``width``), ``latency`` cycles later. From registers.

    Timing
    ------
    A vector a cycle; it never stands still. Totals after ``rows`` cycles, sums after ``latency``: the levels of the form and one.
    """

    def __init__(
        self,
        *,
        rows: int = 16,
        columns: int = 16,
        width: int = 32,
        form: str = "work_efficient",
        inputs: int = 8,
        limbs: int = 2,
    ) -> None:
        self.rows = check_integer("Rows", rows, 2, 64)
        self.columns = check_power_of_two("Columns", columns, 2, 64)
        self.width = check_integer("Width", width, 8, 64)
        self.inputs = check_power_of_two("Inputs", inputs, 2, 64)
        self.limbs = check_power_of_two("Limbs", limbs, 1, 2)
        if form not in (BARE, *FORMS):
            raise ValueError(f"Prefix sum must be one of {', '.join((BARE, *FORMS))}, not {form!r}")
        self.form = form
        self._levels = [] if form == BARE else [*FORMS[form].network(inputs)]
        #: Rows of a level.
        self.depth = max(1, inputs * limbs // columns)
        if (len(self._levels) + 1) * self.depth > rows:
            needed = (len(self._levels) + 1) * self.depth
            raise ValueError(f"Rows must be {needed} or more for the {form} of {inputs} values, not {rows}")
        numbers = data.ArrayLayout(width, columns)
        sums = data.ArrayLayout(limbs * width, inputs)
        super().__init__(
            {
                "shared": In(1),
                "vector_valid": In(1),
                "vector": In(numbers),
                "operands": In(data.ArrayLayout(numbers, rows)),
                "total_valid": Out(1),
                "totals": Out(numbers),
                "values_valid": In(1),
                "first": In(1),
                "values": In(sums),
                "sums_valid": Out(1),
                "sums": Out(sums),
            }
        )

    @property
    def latency(self) -> int:
        """Cycles of a prefix sum."""
        return len(self._levels) + 1

    @property
    def shares(self) -> bool:
        return self.form != BARE

    def build(self, platform: Any) -> Module:
        m = Module()
        self._stored = [
            [Signal(self.width, name=f"stored{r}_{c}", reset_less=True) for c in range(self.columns)]
            for r in range(self.rows)
        ]
        valid = Signal(self.rows)
        m.d.sync += valid.eq(Cat(self.vector_valid & ~self.shared, valid))
        m.d.comb += [self.total_valid.eq(valid[-1]), *(self.totals[c].eq(s) for c, s in enumerate(self._stored[-1]))]
        laid: dict[tuple[int, int], tuple[Value, Value]] = {}
        if self.shares:
            laid = self._network(m)
        for r in range(self.rows):
            for c in range(0, self.columns, self.limbs):
                places = [(r, c + k) for k in range(self.limbs)]
                pairs = [self._inputs(place, laid.get(place)) for place in places]
                if places[0] not in laid or self.limbs == 1:
                    for (_, column), (above, operand) in zip(places, pairs, strict=True):
                        m.d.sync += self._stored[r][column].eq(above + operand)
                else:
                    # A carry goes on where the two are one number: a bit between them says so.
                    left = Cat(pairs[0][0], self.shared, pairs[1][0])
                    right = Cat(pairs[0][1], Const(0, 1), pairs[1][1])
                    total = Signal(2 * self.width + 1, name=f"total{r}_{c}")
                    m.d.comb += total.eq(left + right)
                    m.d.sync += [
                        self._stored[r][c].eq(total[: self.width]),
                        self._stored[r][c + 1].eq(total[self.width + 1 :]),
                    ]
        return m

    def _inputs(self, place: tuple[int, int], linked: tuple[Value, Value] | None) -> tuple[Value, Value]:
        """What an adder adds: of the array, or what the links bring (an input that they leave alone is its own there)."""
        r, c = place
        above: Value = self._stored[r - 1][c] if r else self.vector[c]
        operand: Value = self.operands[r][c]
        if linked is None:
            return above, operand
        other, link = linked
        return (
            above if other is above else Mux(self.shared, other, above),
            operand if link is None else Mux(self.shared, link, operand),
        )

    def _network(self, m: Module) -> dict[tuple[int, int], tuple[Value, Value]]:
        """By element: what takes the place of the value above it, and of its operand (or None)."""
        begins = [self.first & self.values_valid]
        for stage in range(self.latency - 1):
            begins.append(Signal(name=f"first{stage}"))
            m.d.sync += begins[-1].eq(begins[-2])
        valid = Signal(self.latency)
        with m.If(self.shared):
            m.d.sync += valid.eq(Cat(self.values_valid, valid))
        with m.Else():
            m.d.sync += valid.eq(0)
        m.d.comb += self.sums_valid.eq(valid[-1])

        def limb(lane: int, k: int) -> Value:
            """Of a value that enters; 0 where none does, so that the last sum stays the offset."""
            return Mux(self.values_valid, self.values[lane][k * self.width :][: self.width], 0)

        entering = [limb(lane, k) for lane in range(self.inputs) for k in range(self.limbs)]
        laid: dict[tuple[int, int], tuple[Value, Any]] = {}
        last = self._row_of(self.latency - 1)
        for stage, level in enumerate([*self._levels, None]):
            given = self._row_of(stage - 1) if stage else entering
            for lane in range(self.inputs):
                for k in range(self.limbs):
                    at = lane * self.limbs + k
                    link: Any = None
                    if level is None:
                        offset = last[(self.inputs - 1) * self.limbs + k]
                        link = Mux(begins[stage], 0, offset)
                    elif lane in level:
                        link = given[level[lane] * self.limbs + k]
                    laid[self._place(stage, at)] = given[at], link
        for lane in range(self.inputs):
            m.d.comb += self.sums[lane].eq(Cat(*last[lane * self.limbs :][: self.limbs]))
        return laid

    def _place(self, stage: int, at: int) -> tuple[int, int]:
        return stage * self.depth + at // self.columns, at % self.columns

    def _row_of(self, stage: int) -> list[Value]:
        """What the elements of a stage have stored, lane by lane."""
        places = (self._place(stage, at) for at in range(self.inputs * self.limbs))
        return [self._stored[r][c] for r, c in places]
