"""Every proof, with the claim in words, the sizes it is made at and how far it looks."""

from collections.abc import Iterator

from rtl.buffer.buffet import Buffet
from rtl.buffer.tailors import TailorsBuffer
from rtl.lib.arbiter import RoundRobinArbiter
from rtl.lib.stream import StreamQueue, StreamRegister, StreamSkid
from rtl.memory.read_engine import ReadEngine
from rtl.memory.write_engine import WriteEngine

from .prove import Proof
from .spec_arbiter import ArbiterContract
from .spec_axi import ReadManager, WriteManager
from .spec_buffet import BuffetAgainstModel, TailorsAsBuffet
from .spec_streams import QueueContract
from .spec_tailors import TailorsAgainstModel

__all__ = ["catalogue"]


def catalogue() -> list[Proof]:
    """All proofs; their names are unique."""
    return [*streams(), *arbiters(), *tailors(), *buffets(), *axi()]


def streams() -> Iterator[Proof]:
    claim = "every item comes out once, in order, unchanged; the output keeps what it offers; no item is stuck"
    for depth in (1, 2, 3, 4):
        yield Proof(
            f"stream_queue.depth{depth}",
            f"StreamQueue, {depth} deep: {claim}; level counts the items",
            lambda depth=depth: QueueContract(StreamQueue(shape=2, depth=depth), depth=depth, latency=1),
            reach=2 * depth + 4,
        )
    for depth in (3, 4):
        yield Proof(
            f"stream_queue.block{depth}",
            f"StreamQueue in block memory, {depth} deep: {claim}; level counts the items",
            lambda depth=depth: QueueContract(
                StreamQueue(shape=2, depth=depth, block_memory=True), depth=depth, latency=2
            ),
            reach=2 * depth + 6,
        )
    yield Proof(
        "stream_skid.contract",
        f"StreamSkid: {claim}",
        lambda: QueueContract(StreamSkid(shape=3), depth=2, latency=1),
        reach=6,
    )
    yield Proof(
        "stream_register.contract",
        f"StreamRegister: {claim}",
        lambda: QueueContract(StreamRegister(shape=3), depth=1, latency=1),
        reach=6,
    )


def arbiters() -> Iterator[Proof]:
    for count in (1, 2, 3, 5, 8):
        yield Proof(
            f"arbiter.count{count}",
            f"RoundRobinArbiter of {count}: one-hot grant, only to who asks, always when anybody does; who keeps asking "
            f"waits for at most {count - 1} used grants, each to another",
            lambda count=count: ArbiterContract(RoundRobinArbiter(count=count)),
            reach=count + 3,
        )


def tailors() -> Iterator[Proof]:
    for entries in (2, 3, 4):
        yield Proof(
            f"tailors.model{entries}",
            "x",
            lambda entries=entries: TailorsAgainstModel(TailorsBuffer(width=1, entries=entries, queue_depth=2)),
            depth=14,
        )


def buffets() -> Iterator[Proof]:
    for entries in (2, 3, 4):
        yield Proof(
            f"buffet.model{entries}",
            "x",
            lambda entries=entries: BuffetAgainstModel(Buffet(width=1, entries=entries, queue_depth=2)),
            depth=0 if entries == 2 else 14,
            reach=12,
        )
        yield Proof(
            f"tailors.as_buffet{entries}",
            "x",
            lambda entries=entries: TailorsAsBuffet(
                TailorsBuffer(width=1, entries=entries, queue_depth=2), Buffet(width=1, entries=entries, queue_depth=2)
            ),
            depth=14,
            reach=14,
        )


def axi() -> Iterator[Proof]:
    common = {"data_width": 64, "address_width": 13, "id_width": 1, "outstanding": 2, "burst_beats": 4}
    for follow in (None, 0, 1):
        yield Proof(
            f"read_engine.{'bus' if follow is None else f'client{follow}'}",
            "x",
            lambda follow=follow: ReadManager(ReadEngine(readers=2, reader_depth=(8, 3), **common), follow=follow),
            depth=0 if follow is None else 12,
            reach=14,
        )
        yield Proof(
            f"write_engine.{'bus' if follow is None else f'client{follow}'}",
            "x",
            lambda follow=follow: WriteManager(WriteEngine(writers=2, writer_depth=(8, 3), **common), follow=follow),
            depth=0 if follow is None else 12,
            reach=16,
        )
