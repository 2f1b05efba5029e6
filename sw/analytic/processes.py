"""Work in several processes, whose results come in the order of the work."""

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from typing import Any, TypeVar

__all__ = ["cores", "in_order"]

Item = TypeVar("Item")
Result = TypeVar("Result")

# What a process works on; it inherits it, since densities of the user's own have no name that another process could load.
_running: list[Callable[[Any], Iterable[Any]]] = []


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_order(jobs: int, items: Iterable[Item], function: Callable[[Item], Iterable[Result]]) -> Iterator[Result]:
    """Results of all items, in order. With one job, or where processes cannot be forked, each as soon as it is there."""
    if jobs < 2 or "fork" not in multiprocessing.get_all_start_methods():
        for item in items:
            yield from function(item)
        return
    _running.append(function)
    context = multiprocessing.get_context("fork")
    pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_ignore_interrupts)
    try:
        waiting: deque[Future[list[Any]]] = deque()
        for item in items:
            waiting.append(pool.submit(_worked, len(_running) - 1, item))
            if len(waiting) == 2 * jobs:
                yield from waiting.popleft().result()
        while waiting:
            yield from waiting.popleft().result()
    finally:
        for process in list(pool._processes.values()):  # what still runs is of no use
            process.terminate()
        pool.shutdown(cancel_futures=True)
        _running.remove(function)


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _worked(number: int, item: Any) -> list[Any]:
    return list(_running[number](item))
