"""ExTensor as Tailors evaluates it: memory, one global buffer, many elements with buffers of their own.

Paper: Tailors, section 5.2: 30 MB of global buffer, 128 elements, 68.25 GB/s, 1 GHz, operands in separate buffers. What it
does not say is assumed here, each with its reason beside it.
"""

from dataclasses import dataclass, replace

__all__ = ["ENTRY_BYTES", "ExTensor"]

# An entry of a compressed fiber: a coordinate and a value, or a coordinate of a fiber and where it begins.
ENTRY_BYTES = 8


@dataclass(frozen=True, kw_only=True)
class ExTensor:
    """The machine's sizes; one cycle is a nanosecond.

    Parameters
    ----------
    pes: processing elements. Each finds matches of two fibers and multiplies one a cycle, skipping what does not match.
    global_bytes: global buffer, half for A and half for B: the paper compares operands of one size, A and its transpose.
    pe_bytes: an element's buffer for one operand. A dense tile of 128 x 128 entries and its fibers, since that is the tile
        of which ExTensor-N knows that it always fits.
    dram_bytes_per_cycle: four channels of memory together. The global buffer has no rate: the paper gives none, and says that
        memory is what limits overbooked tiles (section 6.1).
    global_fifo_bytes: FIFO-managed region of either half; covers 100 ns of memory latency at full rate, rounded up.
    pe_fifo_bytes: the same in an element's buffer; covers 32 cycles to the global buffer at an entry a cycle.
    tailors: whether bumped data stream while the rest stays; without, a tile that does not fit is streamed whole.
    skips_empty: whether pairs of tiles that meet nothing are left in memory.
    slides: whether a subtile of B slides through its element; without, where both subtiles overbook, what B's bumps streams for
        each fiber of A's.
    """

    pes: int = 128
    global_bytes: int = 30 << 20
    pe_bytes: int = 8 * (128 * 128 + 128)
    dram_bytes_per_cycle: float = 68.25
    global_fifo_bytes: int = 8 << 10
    pe_fifo_bytes: int = 256
    tailors: bool = True
    skips_empty: bool = True
    slides: bool = True

    def __post_init__(self) -> None:
        for name in ("pes", "global_bytes", "pe_bytes", "dram_bytes_per_cycle"):
            if getattr(self, name) <= 0:
                raise ValueError(f"ExTensor's {name} must be above zero, not {getattr(self, name)!r}")

    @property
    def global_entries(self) -> int:
        """Entries that the global buffer holds of either operand."""
        return max(1, self.global_bytes // 2 // ENTRY_BYTES)

    @property
    def pe_entries(self) -> int:
        """Entries that an element's buffer holds of either operand."""
        return max(1, self.pe_bytes // ENTRY_BYTES)

    @property
    def global_resident(self) -> int:
        """Entries of an overbooked tile that stay in the global buffer."""
        return self._resident(self.global_entries, self.global_fifo_bytes)

    @property
    def pe_resident(self) -> int:
        """Entries of an overbooked subtile that stay in an element's buffer."""
        return self._resident(self.pe_entries, self.pe_fifo_bytes)

    def _resident(self, entries: int, fifo_bytes: int) -> int:
        # The region never takes more than a quarter: smaller machines hide less latency, they do not lose their buffer.
        return entries - max(1, min(fifo_bytes // ENTRY_BYTES, entries // 4)) if self.tailors else 0

    def scaled(self, factor: float) -> "ExTensor":
        """The same machine with buffers ``factor`` as large; bandwidth and elements stay."""
        return replace(
            self,
            global_bytes=max(2 * ENTRY_BYTES, round(self.global_bytes * factor)),
            pe_bytes=max(ENTRY_BYTES, round(self.pe_bytes * factor)),
            global_fifo_bytes=round(self.global_fifo_bytes * factor),
            pe_fifo_bytes=round(self.pe_fifo_bytes * factor),
        )
