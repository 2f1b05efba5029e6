"""AXI4 signature, and the flat form of a bus for the boundary of the chip.

Members carry the bus's own names (``awvalid``, ``rdata``, ...). The direction is the manager's: use ``Out(...)`` for a
manager port and ``In(...)`` for a subordinate port.
"""

from typing import Any

from amaranth.hdl import Module, Value
from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Member, Out

__all__ = ["Axi4Signature", "Burst", "connect_flat", "flat_members"]


class Burst(enum.Enum, shape=2):
    """ARBURST and AWBURST."""

    FIXED = 0
    INCR = 1
    WRAP = 2


class Axi4Signature(wiring.Signature):
    """AXI4 without the optional lock, QoS, region and user signals.

    Parameters
    ----------
    data_width : int
        Bits of a beat: a power of two from 8 to 1024.
    address_width : int
        Bits of a byte address, 1 to 64.
    id_width : int
        Bits of a transaction identifier, at least 1.
    read, write : bool
        Which channels there are: AR and R, AW, W and B.
    """

    def __init__(
        self, *, data_width: int, address_width: int, id_width: int, read: bool = True, write: bool = True
    ) -> None:
        if data_width not in (8, 16, 32, 64, 128, 256, 512, 1024):
            raise ValueError(f"AXI4 data width must be a power of two from 8 to 1024, not {data_width!r}")
        if not isinstance(address_width, int) or not 1 <= address_width <= 64:
            raise ValueError(f"AXI4 address width must be from 1 to 64, not {address_width!r}")
        if not isinstance(id_width, int) or id_width < 1:
            raise ValueError(f"AXI4 identifier width must be a positive integer, not {id_width!r}")
        if not read and not write:
            raise ValueError("AXI4 port needs its read channels or its write channels")
        self.data_width = data_width
        self.address_width = address_width
        self.id_width = id_width
        self.read = read
        self.write = write
        members: dict[str, Member] = {}
        for channel in ("aw",) * write + ("ar",) * read:
            members |= {
                f"{channel}valid": Out(1),
                f"{channel}ready": In(1),
                f"{channel}id": Out(id_width),
                f"{channel}addr": Out(address_width),
                f"{channel}len": Out(8),
                f"{channel}size": Out(3),
                f"{channel}burst": Out(2),
                f"{channel}cache": Out(4),
                f"{channel}prot": Out(3),
            }
        if write:
            members |= {
                "wvalid": Out(1),
                "wready": In(1),
                "wdata": Out(data_width),
                "wstrb": Out(data_width // 8),
                "wlast": Out(1),
                "bvalid": In(1),
                "bready": Out(1),
                "bid": In(id_width),
                "bresp": In(2),
            }
        if read:
            members |= {
                "rvalid": In(1),
                "rready": Out(1),
                "rid": In(id_width),
                "rdata": In(data_width),
                "rresp": In(2),
                "rlast": In(1),
            }
        super().__init__(members)


def flat_members(prefix: str, signature: wiring.Signature, *, manager: bool) -> dict[str, Member]:
    """Members of ``signature`` one by one, named ``{prefix}_{name}``, for a component that shows a bus at its edge."""
    oriented: Any = signature if manager else signature.flip()
    return {f"{prefix}_{name}": Member(member.flow, member.shape) for name, member in oriented.members.items()}


def connect_flat(m: Module, component: Any, prefix: str, inner: Any) -> None:
    """Join the flat members ``{prefix}_{name}`` of ``component`` to the bus ``inner`` of one of its submodules."""
    for name, member in inner.signature.members.items():
        outside = Value.cast(getattr(component, f"{prefix}_{name}"))
        inside = Value.cast(getattr(inner, name))
        m.d.comb += outside.eq(inside) if member.flow is Out else inside.eq(outside)
