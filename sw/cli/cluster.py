"""Points of a sweep on a Dask cluster that is there already."""

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

    The scheduler hands items of a worker that dies to others; an item that was running on several that died fails. Raises
    MissingToolError where ``distributed`` is not installed or nothing answers.
    """

    def __init__(self, address: str) -> None:
        try:
            import distributed
        except ModuleNotFoundError as error:
            raise MissingToolError(
                f"--cluster {address}: needs {error.name}: pip install 'fiberloom[cluster]'"
            ) from None
        # What becomes of the connection is told by exceptions.
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
        try:
            for number, item in enumerate(items):
                future = self.client.submit(work, item, key=f"fiberloom-{run}-{number}", pure=False)
                futures[future] = number
            for future in self.distributed.as_completed(list(futures)):
                try:
                    outcome: Outcome = future.result()
                except ModuleNotFoundError as error:
                    raise MissingToolError(
                        f"--cluster {self.address}: its workers cannot run points ({error}): install fiberloom there"
                    ) from None
                except Exception as error:  # noqa: BLE001 - of the cluster's own: told as the outcome
                    if self.client.status != "running" or future.cancelled():
                        raise MissingToolError(
                            f"--cluster {self.address}: went away; what was finished is kept: start again"
                        ) from None
                    outcome = {"error": reason(error)}
                yield futures[future], outcome
        finally:
            if self.client.status == "running":
                self.client.cancel(list(futures), force=True)
            self.client.close(timeout=CLOSE_SECONDS)
