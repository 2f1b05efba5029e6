"""Executors of the points of a sweep: processes on this machine, or a cluster; one small protocol for both."""

import contextlib
import multiprocessing
import os
import shutil
import signal
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait as wait_for
from typing import Any, Protocol, TypeVar

__all__ = ["Executor", "Outcome", "Processes"]

Item = TypeVar("Item")
# ``{"record": ...}`` or ``{"error": one line}``, either with ``notes`` for the user.
Outcome = dict[str, Any]


class Executor(Protocol):
    """Runs ``work`` on every item, several at a time.

    ``work`` never raises: an error is its outcome. An executor adds an outcome of its own for a process that dies.
    """

    def results(
        self, work: Callable[[Item], Outcome], items: Sequence[Item]
    ) -> Generator[tuple[int, Outcome], None, None]:
        """Positions of items and their outcomes, as they finish; each once. Closing the iterator stops what still runs.

        ``work`` is found by its module's name where it runs, items are handed over as they are: plain data.
        """


def _prepare(scratch: str) -> None:
    """In a fresh process: the parent handles interrupts, and without the parent there is nothing to do.

    Temporary files lie in ``scratch``, which the parent removes: a process that is killed removes nothing.
    """
    tempfile.tempdir = os.environ["TMPDIR"] = scratch
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A group of its own, so that compilers and simulators that it starts end with it.
    with contextlib.suppress(OSError):
        os.setpgid(0, 0)
    parent = multiprocessing.parent_process()
    if parent is not None:

        def watch() -> None:
            wait_for([parent.sentinel])
            os.killpg(os.getpgrp(), signal.SIGKILL)

        threading.Thread(target=watch, daemon=True).start()


class Processes:
    """Processes on this machine; each handles many items, so that loaded and compiled code is used again.

    An item whose process dies (killed for its memory, say) fails alone: those that ran beside it are run again, one at a
    time, until it is clear which one it was.
    """

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs

    def results(
        self, work: Callable[[Item], Outcome], items: Sequence[Item]
    ) -> Generator[tuple[int, Outcome], None, None]:
        """As the protocol says."""
        waiting, suspects = deque(range(len(items))), deque[int]()
        while waiting or suspects:
            if suspects:
                yield from self._round(work, items, deque([suspects.popleft()]), 1, suspects)
            else:
                yield from self._round(work, items, waiting, self.jobs, suspects)

    def _round(
        self,
        work: Callable[[Item], Outcome],
        items: Sequence[Item],
        waiting: deque[int],
        jobs: int,
        suspects: deque[int],
    ) -> Generator[tuple[int, Outcome], None, None]:
        """Runs the waiting items until all are done or a process dies; items that ran at that time become suspects."""
        others = {child.pid for child in multiprocessing.active_children()}
        scratch = tempfile.mkdtemp(prefix="fiberloom-sweep-")
        pool = ProcessPoolExecutor(
            jobs, mp_context=multiprocessing.get_context("spawn"), initializer=_prepare, initargs=(scratch,)
        )
        running: dict[Future[Outcome], int] = {}
        lost: list[int] = []
        finished = False
        try:
            while (waiting or running) and not lost:
                # No more than there are processes: items that have not begun when one dies are no suspects.
                while waiting and len(running) < jobs:
                    running[pool.submit(work, items[waiting[0]])] = waiting[0]
                    waiting.popleft()
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    position = running.pop(future)
                    try:
                        outcome = future.result()
                    except BrokenProcessPool:
                        lost.append(position)
                        continue
                    yield position, outcome
            lost += running.values()
            finished = not lost
        except BrokenProcessPool:
            # Between two answers: all that ran is lost.
            lost += running.values()
        finally:
            if finished:
                pool.shutdown()
            else:
                _end(pool, others)
            shutil.rmtree(scratch, ignore_errors=True)
        if len(lost) == 1:
            yield lost[0], {"error": "the process died (killed, or out of memory)"}
        else:
            suspects.extend(lost)


def _end(pool: ProcessPoolExecutor, others: set[int | None]) -> None:
    """Ends the processes of a pool at once, with all that they started."""
    for child in multiprocessing.active_children():
        if child.pid is None or child.pid in others:
            continue
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except OSError:
            child.kill()  # it has no group of its own yet
    pool.shutdown(wait=False, cancel_futures=True)
