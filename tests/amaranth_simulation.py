"""Amaranth's simulator asks each process of a design in each step whether it has to run, calls a method for each signal that a
process may drive, and works out what a plain signal is each time that a test reads or sets one.

``quicken`` keeps a list of the processes that have to run, leaves the call out where the signal keeps its value, and knows a
plain signal. Each step does the same as before, in an order of processes that was not defined before either.
"""

import re
from functools import wraps
from typing import Any

from amaranth.hdl import Signal
from amaranth.sim import _async, _pyrtl, pysim
from amaranth.sim._base import BaseProcess

__all__ = ["quicken", "shortened"]

UPDATE = re.compile(r"slots\[(\d+)\]\.update\((next_\1)(, -?\d+)?\)")
STATE = re.compile(r"slots\[(\d+)\]")
HEAD = "def run():"


class Processes(BaseProcess):
    """The processes of one design as one process: it runs those that were woken since it last ran."""

    critical = False

    def __init__(self, processes: set[Any], woken: list[Any]) -> None:
        self.processes = processes
        self.woken = woken
        self.reset()

    @property
    def runnable(self) -> bool:
        return bool(self.woken)

    @runnable.setter
    def runnable(self, value: bool) -> None:
        """The list says it; ``run`` empties the list."""

    def reset(self) -> None:
        for process in self.processes:
            process.reset()
        self.woken[:] = [process for process in self.processes if process.runnable]

    def run(self) -> None:
        runnable = self.woken[:]
        self.woken.clear()
        for process in runnable:
            process.runnable = False
            process.run()


def quicken() -> None:
    """Changes Amaranth's simulator for this process; a second call changes nothing."""
    names = vars(_pyrtl)
    if "woken" in names:
        return
    # The wakers of a design are made while its processes are compiled. One that returns False is not called a second time.
    names["woken"] = []

    def waker(process: Any) -> Any:
        woken = names["woken"]

        def wake(*_: Any) -> bool:
            if not process.runnable:
                process.runnable = True
                woken.append(process)
            return True

        return wake

    def edge_waker(process: Any, polarity: int) -> Any:
        wake = waker(process)
        return lambda _, value: value != polarity or wake()

    names.update(comb_waker=waker, edge_waker=edge_waker, memory_waker=waker)
    compile_fragment: Any = _pyrtl._FragmentCompiler

    class Compiler(compile_fragment):  # type: ignore[misc] - the library has no types
        depth = 0

        def __call__(self, fragment: Any) -> set[Any]:
            if self.depth == 0:
                names["woken"] = []
            self.depth += 1
            processes = super().__call__(fragment)
            self.depth -= 1
            return processes if self.depth else {Processes(processes, names["woken"])}

    vars(pysim)["_FragmentCompiler"] = wraps(compile_fragment, updated=())(Compiler)
    _read_plain_signals()
    for context in (_async.ProcessContext, _async.TestbenchContext):
        _set_plain_signals(context)


def _read_plain_signals() -> None:
    evaluate = vars(pysim)["eval_value"]

    @wraps(evaluate)
    def eval_value(state: Any, value: Any) -> int:
        if type(value) is Signal:
            return int(state.slots[state.get_signal(value)].curr)
        return int(evaluate(state, value))

    vars(pysim)["eval_value"] = eval_value


def _set_plain_signals(context: Any) -> None:
    set_any = context.set
    is_settled = context is _async.TestbenchContext

    @wraps(set_any)
    def set_value(self: Any, expr: Any, value: Any) -> None:
        if type(expr) is not Signal or type(value) not in (int, bool):
            return set_any(self, expr, value)
        self._engine.set_value(expr, int(value))
        if is_settled:
            self._engine.step_design()
        return None

    context.set = set_value


def shortened(text: str) -> str:
    """The process ``text`` that Amaranth wrote, with each signal's state in a variable and no call where nothing changes."""
    head, begin, body = text.partition(HEAD)
    if head or not begin:
        return text
    body = UPDATE.sub(r"if slots[\1].next != \2: slots[\1].update(\2\3)", body)
    states = sorted(set(map(int, STATE.findall(body))))
    body = STATE.sub(r"state_\1", body)
    return f"def run({', '.join(f'state_{number}=slots[{number}]' for number in states)}):{body}"
