"""Prefix sum, work efficient: a tree up and a tree down."""

from collections.abc import Sequence

from .common import Level, PrefixSum

__all__ = ["WorkEfficientSum"]


class WorkEfficientSum(PrefixSum):
    """Prefix sums by a reduction tree and the same tree backwards (MINT, figure 9b; Brent and Kung).

    N lanes take 2 N - 2 - log2 N adders in 2 log2 N - 1 levels. On the way up blocks of lanes are added to larger blocks. On
    the way down the middle lane of each block gets the sum of all that lies before the block.

    Ports, parameters and timing are those of :class:`PrefixSum`.

    Timing
    ------
    ``latency`` cycles; one vector a cycle.
    """

    @classmethod
    def network(cls, inputs: int) -> Sequence[Level]:
        strides = [1 << level for level in range(inputs.bit_length() - 1)]
        up = [{lane: lane - stride for lane in range(2 * stride - 1, inputs, 2 * stride)} for stride in strides]
        down = [
            {lane: lane - stride for lane in range(3 * stride - 1, inputs, 2 * stride)}
            for stride in reversed(strides[:-1])
        ]
        return up + down
