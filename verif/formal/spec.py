"""What every formal spec is made of: free inputs, values chosen once, and the rules of a stream."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from amaranth.asserts import AnyConst, AnySeq
from amaranth.hdl import Assert, Assume, ClockDomain, Elaboratable, Module, Shape, ShapeLike, Signal, Value, ValueLike
from amaranth.lib import stream
from amaranth.lib.wiring import Component, In

__all__ = ["Spec", "any_value", "fixed_value", "free_inputs", "implies", "obey_streams", "streams_of", "upto"]


class Spec(Elaboratable, ABC):
    """A block with everything that is claimed about it. Subclasses state their claims in :meth:`claims`.

    Runs begin in the state after a reset; there is no other reset.
    """

    def __init__(self) -> None:
        self.domain = ClockDomain("sync", reset_less=True)

    @abstractmethod
    def claims(self, m: Module) -> None:
        """Adds the block under proof, what is assumed of its surroundings, and what is asserted."""

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.domains += self.domain
        self.claims(m)
        return m


def any_value(m: Module, shape: ShapeLike, name: str) -> Any:
    """A signal that may have any value in any cycle."""
    signal = Signal(shape, name=name)
    m.d.comb += Value.cast(signal).eq(AnySeq(Shape.cast(shape).width))
    return signal


def fixed_value(m: Module, shape: ShapeLike, name: str) -> Any:
    """A signal that has any value, the same in every cycle."""
    signal = Signal(shape, name=name)
    m.d.comb += Value.cast(signal).eq(AnyConst(Shape.cast(shape).width))
    return signal


def free_inputs(m: Module, block: Component, *, but: Collection[str] = ()) -> None:
    """Lets every input of the block take any value in any cycle, save the members named in ``but``."""
    for path, member, value in block.signature.flatten(block):
        bits = Value.cast(value)
        if path[0] not in but and member.flow is In:
            m.d.comb += bits.eq(AnySeq(len(bits)))


def streams_of(block: Component) -> Iterator[tuple[str, Any, bool]]:
    """Every stream port of the block: its name, itself, and whether the block is its producer."""
    for name, member in block.signature.members.items():
        if not member.is_signature or not isinstance(member.signature, stream.Signature):
            continue
        ports = getattr(block, name)
        if not member.dimensions:
            yield name, ports, member.flow is not In
        else:
            yield from ((f"{name}_{n}", port, member.flow is not In) for n, port in enumerate(ports))


def obey_streams(
    m: Module,
    block: Component,
    *,
    but: Collection[str] = (),
    meant: Mapping[str, Callable[[Any], ValueLike]] | None = None,
) -> None:
    """The rules of a stream on every stream port: a payload that is offered stays, as it is, until it is taken.

    Assumed where the surroundings are the producer, asserted where the block is; ``but`` names ports left out, ``meant``
    gives what of a port's payload has a meaning, where that is not all of it.
    """
    for name, port, produces in streams_of(block):
        if name in but:
            continue
        payload = Value.cast(meant[name](port.payload) if meant and name in meant else port.payload)
        offered = Signal(name=f"{name}_offered")
        before = Signal(len(payload), name=f"{name}_before")
        m.d.sync += [offered.eq(port.valid & ~port.ready), before.eq(payload)]
        claim = Assert if produces else Assume
        m.d.comb += claim(implies(offered, port.valid & (payload == before)), f"{name} keeps what it offers")


def implies(premise: Any, conclusion: Any) -> Value:
    """Whether the conclusion holds or the premise does not; both are one bit."""
    return ~Value.cast(premise).bool() | Value.cast(conclusion).bool()


def upto(value: Value, low: int, high: Any) -> Value:
    """Whether ``value`` lies from ``low`` to ``high``."""
    return (value >= low) & (value <= high)
