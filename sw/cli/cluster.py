"""Points of a sweep on a Dask cluster that already runs."""

import logging
import uuid
from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeVar

from sw.operands import MissingToolError

from .executors import Outcome
from .reasons import reason

__all__ = ["Cluster"]

Item = TypeVar("Item")
CONNECT_SECONDS = 10
CLOSE_SECONDS = 5


class Cluster:
    """Workers of the Dask scheduler at ``address``, as ``tcp://host:8786``.

    The scheduler hands items of a worker that dies to others. Items of several dying workers are run again alone, one
    at a time. An item whose workers die then too fails. Raises MissingToolError where ``distributed`` is not installed or
    nothing answers.
    """

    def __init__(self, address: str) -> None:
        try:
            import distributed
        except ModuleNotFoundError as error:
            raise MissingToolError(
                f"--cluster {address}: needs {error.name}: pip install 'fiberloom[cluster]'"
            ) from None
        # Exceptions report the state of the connection.
        for name in [name for name in logging.root.manager.loggerDict if name.split(".")[0] == "distributed"]:
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        self.address = address
        self.distributed: Any = distributed
        try:
            self.client: Any = distributed.Client(address, timeout=CONNECT_SECONDS)
        except (OSError, ValueError, TypeError) as error:
            raise MissingToolError(
                f"--cluster {address}: no Dask scheduler answers ({reason(error)}): start one with `dask scheduler`"
            ) from None

    def results(
        self, work: Callable[[Item], Outcome], items: Sequence[Item]
    ) -> Generator[tuple[int, Outcome], None, None]:
        """As :class:`.executors.Executor` says. Raises MissingToolError when the scheduler goes away."""
        run = uuid.uuid4().hex
        futures: dict[Any, int] = {}
        suspects: list[int] = []

        def submit(number: int, attempt: int) -> Any:
            key = f"fiberloom-{run}-{number}-{attempt}"
            future = self.client.submit(work, items[number], key=key, pure=False)
            futures[future] = number
            return future

        try:
            first = [submit(number, 0) for number in range(len(items))]
            for future in self.distributed.as_completed(first):
                outcome = self._outcome(future)
                if outcome is None:
                    suspects.append(futures[future])
                else:
                    yield futures[future], outcome
            # The scheduler blames every item of a worker that died. Alone, only the item that kills its worker fails again.
            for number in suspects:
                yield (
                    number,
                    self._outcome(submit(number, 1)) or {"error": "KilledWorker: the workers that ran it died"},
                )
        finally:
            if self.client.status == "running":
                self.client.cancel(list(futures), force=True)
            self.client.close(timeout=CLOSE_SECONDS)

    def _outcome(self, future: Any) -> Outcome | None:
        """The outcome of an item; None where its workers died. Raises MissingToolError."""
        lost = (OSError, self.distributed.TimeoutError, self.distributed.CancelledError)
        try:
            error = future.exception()
            if error is None:
                outcome: Outcome = future.result()
                return outcome
        except lost as problem:  # the connection's own: the item's errors are not raised here
            error = problem
        if isinstance(error, self.distributed.scheduler.KilledWorker):
            return None
        if isinstance(error, ModuleNotFoundError):
            raise MissingToolError(
                f"--cluster {self.address}: its workers cannot run points ({error}): install fiberloom there"
            )
        if self.client.status != "running" or future.cancelled():
            raise MissingToolError(f"--cluster {self.address}: went away; what was finished is kept: start again")
        return {"error": reason(error)}
