"""Queues and register slices: everything comes out once, in order, and the stream rules hold on both sides."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Assert, Assume, Cat, Const, Cover, Module, Mux, Signal, Value, ValueLike

from .models import ModelQueue
from .spec import Spec, fixed_value, free_inputs, implies, obey_streams, streams_of

__all__ = ["Answer", "QueueContract", "StreamRules"]


class QueueContract(Spec):
    """A block with the ports ``i`` and ``o`` (and perhaps ``level``) behaves as a queue of ``depth`` items.

    What comes out is compared with a shift register that was given what went in. An item that went in is at the output
    ``latency`` cycles later, unless another is; with room the queue takes an item.
    """

    def __init__(self, queue: Any, *, depth: int, latency: int) -> None:
        super().__init__()
        self.queue = queue
        self.depth = depth
        self.latency = latency

    #: What is claimed of each item that comes out.
    computes = "items come out as they went in, in order"

    def expected(self, m: Module, item: Value, leaves: Value) -> Value:
        """Bits that come out for the oldest item inside; ``leaves`` in the cycle in which they do."""
        return item

    def claims(self, m: Module) -> None:
        m.submodules.queue = queue = self.queue
        free_inputs(m, queue)
        obey_streams(m, queue)
        enters, leaves = queue.i.valid & queue.i.ready, queue.o.valid & queue.o.ready
        model = ModelQueue(
            m,
            "model",
            width=len(Value.cast(queue.i.payload)),
            depth=self.depth,
            push=enters,
            item=Value.cast(queue.i.payload),
            pop=leaves,
        )
        # Cycles in which the model has something and the output shows nothing.
        silent = Signal(range(self.latency + 1))
        m.d.sync += silent.eq(0)
        with m.If((model.level != 0) & ~queue.o.valid):
            m.d.sync += silent.eq(silent + 1)
        was_full = Signal()
        m.d.sync += was_full.eq(was_full | (model.level == self.depth))
        m.d.comb += [
            Assert(implies(queue.o.valid, model.level != 0), "nothing comes out that did not go in"),
            Assert(
                implies(queue.o.valid, Value.cast(queue.o.payload) == self.expected(m, model.head, leaves)),
                self.computes,
            ),
            Assert(~model.overflows, "no more is taken than fits"),
            Assert(silent < self.latency, "what is inside comes to the output"),
            Assert(implies(model.level == 0, queue.i.ready), "an empty queue takes an item"),
            Cover(was_full & (model.level == 0)),
        ]
        if "level" in queue.signature.members:
            m.d.comb += [
                Assert(queue.level == model.level, "level counts the items"),
                Assert(queue.i.ready == (model.level != self.depth), "a queue with room takes an item"),
            ]


@dataclass(frozen=True)
class Answer:
    """Answers that come only when asked for: without this a block would have to refuse what it cannot refuse.

    Parameters
    ----------
    request : str
        A stream output of the block; ``name.n`` for one of an array.
    answer : str
        A stream input, or an input ``{valid, ...}``.
    each : str
        Field of the request that says how many answers it asks for; empty: one.
    most : int
        Answers that may be outstanding before the surroundings refuse further requests, and that a request asks for.
    """

    request: str
    answer: str
    each: str = ""
    most: int = 7


class StreamRules(Spec):
    """Every stream port of a block keeps what it offers until it is taken, whatever its surroundings do.

    Parameters
    ----------
    block : Block
        Any with stream ports.
    withdraw : collection of str
        Inputs that are low while an output waits: of these the block's contract says that they withdraw an offer.
    answers : collection of Answer
        What comes only when asked for.
    steady : collection of str
        Inputs that have any value, the same in every cycle: settings of a run.
    held : collection of str
        Inputs that stay as they are while an output waits.
    within : mapping of str to Callable
        What the block's contract asks of an input in every cycle, as a function of the input.
    patient : collection of str
        Outputs whose taker, once ready, stays ready until it has taken an item with ``last``.
    meant : mapping of str to Callable
        What of an output's payload has a meaning, where that is not all of it, as a function of the payload.
    """

    def __init__(
        self,
        block: Any,
        *,
        withdraw: Collection[str] = (),
        answers: Collection[Answer] = (),
        steady: Collection[str] = (),
        held: Collection[str] = (),
        within: Mapping[str, Callable[[Any], Value]] | None = None,
        patient: Collection[str] = (),
        meant: Mapping[str, Callable[[Any], ValueLike]] | None = None,
    ) -> None:
        super().__init__()
        self.block = block
        self.withdraw = withdraw
        self.answers = answers
        self.steady = steady
        self.held = held
        self.within = within or {}
        self.patient = patient
        self.meant = meant or {}

    def claims(self, m: Module) -> None:
        m.submodules.block = self.block
        free_inputs(m, self.block, but=self.steady)
        for name in self.steady:
            port = Value.cast(getattr(self.block, name))
            m.d.comb += port.eq(fixed_value(m, len(port), f"{name}_fixed"))
        obey_streams(m, self.block, meant=self.meant)
        outputs = [port for _, port, produces in streams_of(self.block) if produces]
        waits = Cat(*(port.valid & ~port.ready for port in outputs)).any()
        m.d.comb += [Assume(~(waits & getattr(self.block, name))) for name in self.withdraw]
        waited = Signal()
        m.d.sync += waited.eq(waits)
        for name in self.held:
            port = Value.cast(getattr(self.block, name))
            before = Signal.like(port, name=f"{name}_held")
            m.d.sync += before.eq(port)
            m.d.comb += Assume(implies(waited, port == before))
        m.d.comb += [Assume(holds(self._port(name))) for name, holds in self.within.items()]
        for answer in self.answers:
            self._answered(m, answer)
        for name in self.patient:
            port = self._port(name)
            stays = Signal(name=f"{name.replace('.', '_')}_stays")
            m.d.sync += stays.eq(port.ready & ~(port.valid & port.payload.last))
            m.d.comb += Assume(implies(stays, port.ready))
        m.d.comb += [Cover(port.valid & port.ready) for port in outputs]

    def _port(self, name: str) -> Any:
        name, _, index = name.partition(".")
        port = getattr(self.block, name)
        return port[int(index)] if index else port

    def _answered(self, m: Module, rule: Answer) -> None:
        request, answer = self._port(rule.request), self._port(rule.answer)
        comes = answer.valid & answer.ready if hasattr(answer, "ready") else answer.valid
        count = Value.cast(getattr(request.payload, rule.each)) if rule.each else Const(1)
        asked = Signal(range(2 * rule.most + 1), name=f"{rule.request.replace('.', '_')}_asked")
        m.d.sync += asked.eq(asked + Mux(request.valid & request.ready, count[: len(asked)], 0) - comes)
        m.d.comb += [
            Assume(implies(answer.valid, asked != 0)),
            Assume(implies(request.ready & request.valid, (asked <= rule.most) & (count <= rule.most))),
        ]
