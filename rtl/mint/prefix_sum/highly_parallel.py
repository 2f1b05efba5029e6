"""Prefix sum, highly parallel: shortest latency, most adders."""

from collections.abc import Sequence

from .common import Level, PrefixSum

__all__ = ["HighlyParallelSum"]


class HighlyParallelSum(PrefixSum):
    """Prefix sums by doubling: each level makes every sum one of twice as many lanes (MINT, figure 9c; Kogge and Stone).

    N lanes take N log2 N - N + 1 adders in log2 N levels.

    Ports, parameters and timing are those of :class:`PrefixSum`.

    Timing
    ------
    ``latency`` cycles; one vector a cycle.
    """

    @classmethod
    def network(cls, inputs: int) -> Sequence[Level]:
        strides = [1 << level for level in range(inputs.bit_length() - 1)]
        return [{lane: lane - stride for lane in range(stride, inputs)} for stride in strides]
