"""Beats as the result record tells them: bytes by tensor, direction, data and metadata."""

from collections.abc import Mapping

__all__ = ["dram_bytes"]


def dram_bytes(beats: Mapping[str, int], bus_bytes: int) -> dict[str, dict[str, int]]:
    """``{"A": {"read": ..., "write": ..., "metadata_read": ..., "metadata_write": ...}, ...}`` of the beats counted."""
    return {
        tensor.upper(): {
            "read": bus_bytes * beats[f"read_{tensor}_data"],
            "write": bus_bytes * beats.get(f"write_{tensor}_data", 0),
            "metadata_read": bus_bytes * beats[f"read_{tensor}_meta"],
            "metadata_write": bus_bytes * beats[f"write_{tensor}_meta"],
        }
        for tensor in "abc"
    }
