"""Amaranth asks for the same shape many times in one elaboration, and compiles the same Python again for each simulator.

``remember`` makes both answers once a process. Neither can change: a value has its operands for life, and a text has one code.
It also leaves out that each net of each value is one, and looks for combinational cycles without a call for each net: a fifth of
the time of an elaboration. Where there is a cycle Amaranth's own search finds it and says so.
"""

import builtins
from collections.abc import Iterator
from functools import lru_cache, wraps
from typing import Any

from amaranth.hdl import _ast, _nir
from amaranth.sim import _pyrtl

from tests.amaranth_simulation import quicken, shortened

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
    names["compile"] = lru_cache(TEXTS)(lambda text, name, mode: builtins.compile(shortened(text), name, mode))
    _take_nets(_nir.Value)
    _search_cycles(_nir.Netlist)
    quicken()


def _keep_shape(kind: Any) -> None:
    work_out = kind.shape

    @wraps(work_out)
    def shape(self: Any) -> Any:
        kept = self.__dict__.get("kept_shape")
        if kept is None:
            kept = self.__dict__["kept_shape"] = work_out(self)
        return kept

    kind.shape = shape


def _take_nets(kind: Any) -> None:
    make = tuple.__new__
    kind.__new__ = lambda cls, nets=(): make(cls, (nets,) if isinstance(nets, _nir.Net) else nets)


def _search_cycles(kind: Any) -> None:
    tell = kind.check_comb_cycles

    def sources(netlist: Any, net: int) -> Iterator[tuple[int, Any]]:
        if net < 0:
            return iter(((netlist.connections[net], None),))
        return iter(netlist.cells[net >> 16].comb_edges_to(net & 0xFFFF))

    @wraps(tell)
    def check(self: Any) -> Any:
        # Constants have no source.
        done, path = {0, 1}, set[int]()
        begins = [net for number, cell in enumerate(self.cells) for net in cell.output_nets(number)]
        begins += [net for value in self.signals.values() for net in value]
        for begin in begins:
            stack = [(begin, sources(self, begin))] if begin not in done else []
            path.update(net for net, _ in stack)
            while stack:
                net, rest = stack[-1]
                source = next((source for source, _ in rest if source not in done), None)
                if source is None:
                    stack.pop()
                    path.discard(net)
                    done.add(net)
                elif source in path:
                    return tell(self)
                else:
                    path.add(source)
                    stack.append((source, sources(self, source)))

    kind.check_comb_cycles = check
