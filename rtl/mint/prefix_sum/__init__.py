"""Prefix sums of vectors in three interchangeable forms."""

from .common import PrefixSum
from .highly_parallel import HighlyParallelSum
from .serial_chain import SerialChainSum
from .work_efficient import WorkEfficientSum

__all__ = ["FORMS", "HighlyParallelSum", "PrefixSum", "SerialChainSum", "WorkEfficientSum"]

#: Forms by the name that design files give them.
FORMS: dict[str, type[PrefixSum]] = {
    "serial_chain": SerialChainSum,
    "work_efficient": WorkEfficientSum,
    "highly_parallel": HighlyParallelSum,
}
