"""Changes of the smallest design that several modules of tests make."""

__all__ = ["SMALLEST"]

#: Every size as small as it may be.
SMALLEST = [
    "pe.count=1", "pe.merge_radix=2", "pe.leaf_lines=1", "pe.queue_lines=1", "buffer.banks=1", "buffer.bytes=352",
    "buffer.fifo_bytes=64", "axi.outstanding=1", "axi.burst_beats=1", "axi.address_bits=32",
]  # fmt: skip
