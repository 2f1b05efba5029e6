"""Base class of the machine's units: each says how it uses memory, what it counts, what can go wrong, whether it is at work."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from amaranth.hdl import Value, ValueLike

from .block import Block

__all__ = ["Fault", "ReadClient", "Unit", "WriteClient", "word_client"]


@dataclass(frozen=True)
class Fault:
    """``found`` is high while the error ``name`` of ``regs.map.ERRORS`` is there; ``detail`` says more about it."""

    name: str
    found: Value
    detail: ValueLike = 0


@dataclass(frozen=True)
class ReadClient:
    """A client port of the memory engine for reading.

    depth : beats of its queue. Streams that move whole tiles hide the memory's latency; words come four or more to a beat.
    counter : the performance counter of its beats, in lower case; none where the unit counts them itself.
    assembling : the one while rows of C are assembled, where that is another.
    turn : clients are served in turns, those with a lower number before the others.
    beats : it asks for beats of the bus, not for lines.
    records : the operand whose nonzeros it reads, ``a`` or ``b``; those lines that are ``plain`` are of C.
    """

    name: str
    depth: int
    counter: str = ""
    assembling: str = ""
    turn: int = 0
    records: str = ""
    beats: bool = False


@dataclass(frozen=True)
class WriteClient:
    """A client port of the memory engine for writing, and the performance counter of its beats in lower case.

    part : another counter, of these beats alone, where more clients share the first.
    depth, bursts : beats of its queue at least, and longest bursts that it holds at least. Two bursts let a client fill the bus;
    one is enough for words, which come two or more to a beat.
    beats : it writes beats of the bus, not lines.
    """

    name: str
    counter: str
    depth: int = 64
    bursts: int = 2
    part: str = ""
    beats: bool = False


def word_client(name: str, counter: str) -> WriteClient:
    """A client that writes words."""
    return WriteClient(name, counter, depth=16, bursts=1)


class Unit(Block):
    """A block that the machine watches. The values are in terms of the unit's ports alone.

    Timing
    ------
    A unit says its own.
    """

    # Ports `read_request` and `read_data`, `write_request` and `write_data`, in order.
    READERS: ClassVar[tuple[ReadClient, ...]] = ()
    WRITERS: ClassVar[tuple[WriteClient, ...]] = ()

    def events(self) -> Mapping[str, Value]:
        """What each performance counter adds this cycle, or is compared with, by its name in lower case."""
        return {}

    def faults(self) -> Sequence[Fault]:
        """Errors that end the run; the first one that is found counts."""
        return ()

    def activity(self) -> Mapping[str, Value]:
        """What is not idle, by the names of the fields of WAITING."""
        return {}
