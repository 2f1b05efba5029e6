"""Array of weight-stationary PEs on one bus: columns of B stay, A passes all of them, rows of C leave.

Paper: MINT (Qin et al.), section IV.A and figure 6.
"""

from typing import Any

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..buffer.tailors import TailorsError
from ..lib.arbiter import RoundRobinArbiter
from ..lib.block import Block
from ..lib.check import check_integer
from ..lib.counter import popcount
from ..lib.onehot import onehot_index, onehot_select
from ..lib.passed import passed
from ..lib.stream import StreamRegister
from ..types import COORDINATE_WIDTH, VALUE_WIDTH
from .bumped_walk import bumped_part, region_of
from .column_loader import stationary_word
from .common import index_width as bits_of_index
from .flagged_bus import bus_cycle
from .weight_stationary import WeightStationaryPe

__all__ = ["WeightStationaryArray", "array_row", "part_of_pe", "word_of_pe"]


def word_of_pe(pes: int, index_width: int) -> data.StructLayout:
    """A word for the buffer of one PE."""
    return data.StructLayout({"pe": bits_of_index(pes), "word": stationary_word(index_width)})


def part_of_pe(pes: int, index_width: int, region: int) -> data.StructLayout:
    """Words of the column of one PE that are to come again."""
    return data.StructLayout({"pe": bits_of_index(pes), "part": bumped_part(index_width, region)})


def array_row(pes: int) -> data.StructLayout:
    """A row of the product with one value from each PE; ``void``: nothing met there. ``last``: A has ended with it."""
    one = data.StructLayout({"void": 1, "column": COORDINATE_WIDTH, "value": VALUE_WIDTH})
    return data.StructLayout({"last": 1, "row": COORDINATE_WIDTH, "sums": data.ArrayLayout(one, pes)})


class WeightStationaryArray(Block):
    """A row of A by as many columns of B as there are PEs, row after row (MINT, figure 6).

    Every PE sees every cycle of the bus, all in the same cycle: the bus waits for the slowest. What they hand out for a row
    leaves together, PE 0 first: O is Dense on the way, and says where nothing met, so that it can be compressed.

    Parameters
    ----------
    pes : int
        1 to 256.
    words, vector, entries, region, index_width, value
        As :class:`WeightStationaryPe`.

    Members
    -------
    weights : In(stream of ``word_of_pe``)
        Columns, and words that were asked for. A PE without a column of its own gets an empty one.
    refill : Out(stream of ``part_of_pe``)
        Words that are to come on ``weights``: parts in any order, each without others of its PE between. They are taken
        whatever the bus does, so that no PE waits for another one's words.
    bus : In(stream of ``bus_cycle``)
        A. It waits until every PE has its column.
    rows : Out(stream of ``array_row``)
        One for each row on the bus, in order; for an A without data one in which nothing met.
    idle : Out(1)
        No A is under way: columns may come.
    event_macs, event_bumped : Out, event_stall : Out(1)
        Products begun in this cycle; words that came again; a PE keeps the bus waiting for such words.
    error : Out(TailorsError)
        The first error of the lowest PE that has one.

    Timing
    ------
    One cycle of the bus a cycle while all columns fit; one word on ``weights`` a cycle. ``latency`` as of the PE. ``refill``
    comes straight from registers; ``rows.valid`` waits for every PE's.
    """

    def __init__(
        self,
        *,
        pes: int,
        words: int,
        vector: int,
        entries: int,
        value: str,
        region: int | None = None,
        index_width: int = 16,
    ) -> None:
        self.pes = check_integer("PEs", pes, 1, 256)
        region = region_of(entries) if region is None else region
        self.words = words
        self.vector = vector
        self.entries = entries
        self.region = region
        self.index_width = index_width
        self.value = value
        self._pes = [
            WeightStationaryPe(
                words=words, vector=vector, entries=entries, region=region, index_width=index_width, value=value
            )
            for _ in range(pes)
        ]
        self.latency = self._pes[0].latency
        super().__init__(
            {
                "weights": In(stream.Signature(word_of_pe(pes, index_width))),
                "refill": Out(stream.Signature(part_of_pe(pes, index_width, region))),
                "bus": In(stream.Signature(bus_cycle(words))),
                "rows": Out(stream.Signature(array_row(pes))),
                "idle": Out(1),
                "event_macs": Out(range(pes * vector + 1)),
                "event_bumped": Out(range(pes + 1)),
                "event_stall": Out(1),
                "error": Out(TailorsError),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        pes = self._pes
        for n, pe in enumerate(pes):
            m.submodules[f"pe{n}"] = pe
        self._load(m, pes)
        self._ask(m, pes)

        ready = Cat(pe.bus.ready for pe in pes).all()
        out = self.rows.payload
        complete = Cat(pe.sums.valid for pe in pes).all()
        leaves = Signal()
        opened = Signal()
        m.d.comb += [
            self.bus.ready.eq(ready),
            self.rows.valid.eq(complete),
            leaves.eq(complete & self.rows.ready),
            out.row.eq(pes[0].sums.payload.row),
            out.last.eq(pes[0].sums.payload.last),
            self.idle.eq(~opened & ~self.bus.valid),
            self.event_macs.eq(_sum([pe.event_macs for pe in pes])),
            self.event_bumped.eq(popcount([pe.event_bumped for pe in pes])),
            self.event_stall.eq(Cat(pe.event_stall for pe in pes).any()),
        ]
        with m.If(self.bus.valid & ready):
            m.d.sync += opened.eq(1)
        with m.Elif(leaves & out.last):
            m.d.sync += opened.eq(0)
        for n, pe in enumerate(pes):
            m.d.comb += [
                pe.bus.valid.eq(self.bus.valid & ready),
                pe.bus.payload.eq(self.bus.payload),
                pe.sums.ready.eq(leaves),
                *passed(pe.sums.payload, out.sums[n], "void column value"),
            ]
        for pe in reversed(pes):
            with m.If(pe.error != TailorsError.NONE):
                m.d.comb += self.error.eq(pe.error)
        return m

    def _load(self, m: Module, pes: list[WeightStationaryPe]) -> None:
        """Each word goes to its PE."""
        with m.Switch(self.weights.payload.pe):
            for n, pe in enumerate(pes):
                m.d.comb += pe.weights.payload.eq(self.weights.payload.word)
                with m.Case(n):
                    m.d.comb += [pe.weights.valid.eq(self.weights.valid), self.weights.ready.eq(pe.weights.ready)]

    def _ask(self, m: Module, pes: list[WeightStationaryPe]) -> None:
        """PEs take turns."""
        m.submodules.arbiter = arbiter = RoundRobinArbiter(count=self.pes)
        m.submodules.asking = asking = StreamRegister(shape=self.refill.payload.shape())
        connect(m, asking.o, flipped(self.refill))
        m.d.comb += [
            arbiter.requests.eq(Cat(pe.refill.valid for pe in pes)),
            arbiter.advance.eq(asking.i.ready),
            asking.i.valid.eq(arbiter.requests.any()),
            asking.i.payload.pe.eq(onehot_index(arbiter.grant)),
            asking.i.payload.part.eq(onehot_select(arbiter.grant, [pe.refill.payload for pe in pes])),
            *(pe.refill.ready.eq(arbiter.grant[n] & asking.i.ready) for n, pe in enumerate(pes)),
        ]


def _sum(numbers: list[Any]) -> Any:
    """A balanced tree of adders."""
    while len(numbers) > 1:
        numbers = [a + b for a, b in zip(numbers[::2], numbers[1::2], strict=False)] + numbers[len(numbers) & ~1 :]
    return numbers[0]
