"""How tile shapes of B follow from the capacity of its partition; shared by the policies."""

from sw.plan.thresholds import BASE_SIDE
from sw.scheme.scheme import Scheme
from sw.scheme.shares import default_partition, partition_of
from sw.scheme.terms import ONLY_B, Hardware

__all__ = ["BASE_SIDE", "ShareOfB", "scheme_for_b"]


class ShareOfB:
    """B's share of the buffer when A and C stream, with space for partial rows to re-enter."""

    def __init__(self, design: Hardware) -> None:
        self.buffer_bytes, self.fifo_bytes = default_partition(design, partial_rows=True)
        self.partition = partition_of(design, (self.buffer_bytes, self.fifo_bytes), "B")

    def capacity(self, T_k: int) -> int:
        """Nonzeros that stay resident of a tile with ``T_k`` rows; not positive when its metadata leave no line."""
        return self.partition.resident(T_k)

    def most_rows(self, K: int) -> int:
        """The highest legal tile."""
        return min(K, self.partition.most_rows)

    def most_rows_by_half(self, K: int) -> int:
        """The highest tile whose metadata take at most half of what segments and metadata share."""
        return min(K, self.partition.half_of_rows)

    def shape(self, size: float, J: int, K: int) -> tuple[int, int]:
        """``(T_k, T_j)`` of about ``size`` points: along k until its end (or the metadata's half), then along j."""
        side = min(J, BASE_SIDE, max(1, int(size)))
        T_k = max(1, min(self.most_rows_by_half(K), int(size // side)))
        return T_k, max(1, min(J, int(size // T_k)))


def scheme_for_b(policy: str, share: ShareOfB, shape: tuple[int, int, int], T_j: int, T_k: int, order: str) -> Scheme:
    """A and C streaming, T_i = I, B's tiles of ``T_k x T_j`` kept."""
    I, J, K = shape  # noqa: E741 - extents, as in the papers
    return Scheme(
        policy=policy,
        order=order,
        T_i=I,
        T_j=min(T_j, J),
        T_k=min(T_k, K),
        buffer_bytes=dict(share.buffer_bytes),
        fifo_bytes=dict(share.fifo_bytes),
        mode=dict(ONLY_B),
    )
