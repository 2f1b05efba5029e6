"""Prefix sum, serial chain: fewest adders in the network, longest latency."""

from collections.abc import Sequence

from .common import Level, PrefixSum

__all__ = ["SerialChainSum"]


class SerialChainSum(PrefixSum):
    """Prefix sums by a chain: each level adds one lane to the sum of those before it (MINT, figure 9a).

    A chain of N lanes has N - 1 adders in N - 1 levels. The row of adders behind it, which adds the last sum of the vector
    before, lets a vector enter in every cycle. Values wait in registers until the chain comes to their lane, and sums until
    it is through: that takes more registers than any other form.

    Ports, parameters and timing are those of :class:`PrefixSum`.

    Timing
    ------
    ``latency`` cycles; one vector a cycle.
    """

    @classmethod
    def network(cls, inputs: int) -> Sequence[Level]:
        return [{lane: lane - 1} for lane in range(1, inputs)]
