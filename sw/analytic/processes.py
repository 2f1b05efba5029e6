"""Work in several processes, whose results come in the order of the work."""

import multiprocessing
import os
import queue
import signal
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sized
from concurrent.futures import Future, ProcessPoolExecutor
from typing import Any, TypeVar

__all__ = ["cores", "in_order"]

Item = TypeVar("Item")
Result = TypeVar("Result")

# What a process runs and where its results go; it inherits them, since densities of the user's own have no name that another
# process could load.
_running: list[tuple[Callable[[Any], Iterable[Any]], Any]] = []
# Seconds between looks whether all processes are alive.
PAUSE = 1.0


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_order(jobs: int, items: Iterable[Item], function: Callable[[Item], Iterable[Result]]) -> Iterator[Result]:
    """Results of all items, in order, each as soon as it is known. Where processes cannot be forked one does all."""
    if isinstance(items, Sized):
        jobs = min(jobs, len(items))
    if jobs < 2 or "fork" not in multiprocessing.get_all_start_methods():
        for item in items:
            yield from function(item)
        return
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    _running.append((function, results))
    pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_prepare)
    try:
        begun: deque[Future[None]] = deque()
        known: dict[int, deque[list[Result]]] = defaultdict(deque)
        first = 0
        for number, item in enumerate(items):
            begun.append(pool.submit(_run, len(_running) - 1, number, item))
            if len(begun) == 2 * jobs:
                yield from _of_one(results, known, first, begun.popleft())
                first += 1
        while begun:
            yield from _of_one(results, known, first, begun.popleft())
            first += 1
    finally:
        for process in list(pool._processes.values()):  # what still runs is of no use
            process.terminate()
        pool.shutdown(cancel_futures=True)
        _running.pop()


def _of_one(results: Any, known: dict[int, deque[list[Result]]], number: int, future: Future[None]) -> Iterator[Result]:
    """Results of one item; those of others that come meanwhile are kept. An empty list ends an item."""
    while True:
        while known[number]:
            some = known[number].popleft()
            if not some:
                del known[number]
                return
            yield from some
        try:
            other, some = results.get(timeout=PAUSE)
            known[other].append(some)
        except queue.Empty:
            if future.done():  # a process that ended early raises
                future.result()


def _prepare() -> None:
    """The parent handles interrupts; what ends a process is not turned into an exception, as a command may do."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _run(place: int, number: int, item: Any) -> None:
    function, results = _running[place]
    for result in function(item):
        results.put((number, [result]))
    results.put((number, []))
