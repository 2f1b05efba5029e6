"""Queues and register slices: everything comes out once, in order, and the stream rules hold on both sides."""

from collections.abc import Collection
from typing import Any

from amaranth.hdl import Assert, Assume, Cat, Cover, Module, Signal

from .models import ModelQueue
from .spec import Spec, free_inputs, implies, obey_streams, streams_of

__all__ = ["QueueContract", "StreamRules"]

ANSWERS_BITS = 3  # of the count of requests without an answer: more than any block under proof makes


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

    def claims(self, m: Module) -> None:
        m.submodules.queue = queue = self.queue
        free_inputs(m, queue)
        obey_streams(m, queue)
        enters, leaves = queue.i.valid & queue.i.ready, queue.o.valid & queue.o.ready
        model = ModelQueue(
            m,
            "model",
            width=len(queue.i.payload),
            depth=self.depth,
            push=enters,
            item=queue.i.payload,
            pop=leaves,
        )
        # Cycles in which the model has something and the output shows nothing.
        late = Signal(range(self.latency + 1))
        m.d.sync += late.eq(0)
        with m.If((model.level != 0) & ~queue.o.valid):
            m.d.sync += late.eq(late + 1)
        was_full = Signal()
        m.d.sync += was_full.eq(was_full | (model.level == self.depth))
        m.d.comb += [
            Assert(implies(queue.o.valid, model.level != 0), "nothing comes out that did not go in"),
            Assert(implies(queue.o.valid, queue.o.payload == model.head), "items come out as they went in, in order"),
            Assert(~model.overflows, "no more is taken than fits"),
            Assert(late < self.latency, "what is inside comes to the output"),
            Assert(implies(model.level == 0, queue.i.ready), "an empty queue takes an item"),
            Cover(was_full & (model.level == 0)),
        ]
        if "level" in queue.signature.members:
            m.d.comb += [
                Assert(queue.level == model.level, "level counts the items"),
                Assert(queue.i.ready == (model.level != self.depth), "a queue with room takes an item"),
            ]


class StreamRules(Spec):
    """Every stream port of a block keeps what it offers until it is taken, whatever its surroundings do.

    Parameters
    ----------
    block : Block
        Any with stream ports.
    withdraw : collection of str
        Inputs that are low while an output waits: of these the block's contract says that they withdraw an offer.
    answers : tuple of (str, str), optional
        Stream of requests and input ``{valid, ...}`` of their answers, which come only when asked for.
    """

    def __init__(self, block: Any, *, withdraw: Collection[str] = (), answers: tuple[str, str] | None = None) -> None:
        super().__init__()
        self.block = block
        self.withdraw = withdraw
        self.answers = answers

    def claims(self, m: Module) -> None:
        m.submodules.block = self.block
        free_inputs(m, self.block)
        obey_streams(m, self.block)
        outputs = [port for _, port, produces in streams_of(self.block) if produces]
        waits = Cat(*(port.valid & ~port.ready for port in outputs)).any()
        m.d.comb += [Assume(~(waits & getattr(self.block, name))) for name in self.withdraw]
        if self.answers is not None:
            request, answer = (getattr(self.block, name) for name in self.answers)
            asked = Signal(ANSWERS_BITS)
            m.d.sync += asked.eq(asked + (request.valid & request.ready) - answer.valid)
            m.d.comb += [Assume(~(answer.valid & (asked == 0))), Assume(asked != (1 << ANSWERS_BITS) - 1)]
        m.d.comb += [Cover(port.valid & port.ready) for port in outputs]
