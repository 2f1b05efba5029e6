"""A matrix, or a tensor of order 3, as it lies in memory in a storage format that a converter knows."""

from dataclasses import dataclass

from .storage_format import Layout, StorageFormat

__all__ = ["Matrix"]


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """A matrix, or a tensor of order 3, in one of the converter's formats.

    ``kind``: the format. ``layout``: where each bit lies. ``run_bits``: of RLC. ``block``: rows and columns of a block of BSR.
    """

    kind: str
    layout: Layout
    run_bits: int = 1
    block: tuple[int, int] = (1, 1)

    @classmethod
    def of(cls, kind: str, form: StorageFormat, layout: Layout) -> "Matrix":
        """With the format's own parameters."""
        return cls(
            kind=kind,
            layout=layout,
            **{name: getattr(form, name) for name in ("run_bits", "block") if hasattr(form, name)},
        )

    def beats(self, bus_bytes: int) -> int:
        """Beats of a bus that hold it; each region begins with one of its own."""
        return sum(-(-region.bytes // bus_bytes) for region in self.layout.regions)
