"""Sticky errors that name themselves."""

import enum
from typing import Any

from amaranth.hdl import Module
from amaranth.lib import enum as hdl_enum
from amaranth.lib.wiring import In, Out

from .block import Block

__all__ = ["StickyError"]


class StickyError(Block):
    """Keeps the first error that is raised until it is cleared.

    Parameters
    ----------
    codes : type[enum.IntEnum]
        An Amaranth enum (``amaranth.lib.enum``) whose member 0 means that all is well; its values are 0, 1, 2, ...

    Members
    -------
    raised : In(len(codes))
        Bit n raises the member of value n (bit 0 is ignored). Among errors of one cycle the lowest wins.
    clear : In(1)
        Forgets the error; an error raised in the same cycle is kept.
    error : Out(codes)
        Registered; the member of value 0 when nothing was raised.

    Timing
    ------
    One cycle; one error is kept, whatever comes after it.
    """

    def __init__(self, *, codes: type[enum.Enum]) -> None:
        if not isinstance(codes, hdl_enum.EnumType) or [code.value for code in codes] != list(range(len(codes))):
            raise ValueError(f"Error codes must be an Amaranth enum with values 0, 1, 2, ..., not {codes!r}")
        self.codes = codes
        super().__init__({"raised": In(len(codes)), "clear": In(1), "error": Out(codes)})

    def parameters(self) -> dict[str, Any]:
        return {"codes": self.codes.__name__.lower()}

    def build(self, platform: Any) -> Module:
        m = Module()
        none = self.codes(0)
        with m.If(self.clear):
            m.d.sync += self.error.eq(none)
        with m.If((self.error == none) | self.clear):
            for code in reversed(list(self.codes)[1:]):
                with m.If(self.raised[code.value]):
                    m.d.sync += self.error.eq(code)
        return m
