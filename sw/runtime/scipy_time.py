"""How long SciPy takes for the same product on this computer: what stands beside cycles when somebody asks."""

import statistics
import time
from collections.abc import Callable
from typing import Any

import scipy.sparse as sp

__all__ = ["scipy_seconds"]

MOST_RUNS = 5
ENOUGH_SECONDS = 1.0


def scipy_seconds(a: sp.csr_array, b: sp.csr_array, clock: Callable[[], float] = time.perf_counter) -> float:
    """Median wall time of ``a @ b``, in seconds, on one core: SciPy's sparse product has one thread.

    It is made up to five times, and no more once a second has passed. Both are canonical CSR, so that nothing is converted.
    """
    spent: list[float] = []
    while len(spent) < MOST_RUNS and sum(spent) < ENOUGH_SECONDS:
        began = clock()
        product: Any = a @ b
        spent.append(clock() - began)
        del product
    return statistics.median(spent)
