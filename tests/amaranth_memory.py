"""Amaranth asks for the same shape many times in one elaboration, and compiles the same Python again for each simulator.

``remember`` makes both answers once a process. Neither can change: a value has its operands for life, and a text has one code.
"""

import builtins
from functools import lru_cache, wraps
from typing import Any

from amaranth.hdl import _ast
from amaranth.sim import _pyrtl

__all__ = ["remember"]

#: Classes of values whose shape Amaranth works out from the shapes of all values below them.
COMPOUND = ("Operator", "Slice", "Concat", "SwitchValue")
TEXTS = 4096


def remember() -> None:
    """Changes Amaranth for this process; a second call changes nothing."""
    names = vars(_pyrtl)
    if "compile" in names:
        return
    for name in COMPOUND:
        _keep_shape(getattr(_ast, name))
    names["compile"] = lru_cache(TEXTS)(builtins.compile)


def _keep_shape(kind: Any) -> None:
    work_out = kind.shape

    @wraps(work_out)
    def shape(self: Any) -> Any:
        kept = self.__dict__.get("kept_shape")
        if kept is None:
            kept = self.__dict__["kept_shape"] = work_out(self)
        return kept

    kind.shape = shape
