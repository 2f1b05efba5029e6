"""Results of a sweep as rows of one table: names, plain numbers, one row a point, those that failed too."""

from typing import Any

from .energy import COMPONENTS
from .result import converting

__all__ = ["COLUMNS", "failed_row", "row_of"]

# Columns and their types, in order. Numbers that a point does not have are null.
COLUMNS: dict[str, type] = {
    "failed": bool, "error": str,
    "a": str, "b": str, "design": str, "settings": str, "tiling": str, "engine": str, "seed": int,
    "mcf_a": str, "mcf_b": str, "mcf_c": str, "run_bits": int,
    "value": str, "pe_count": int, "merge_radix": int, "buffer_bytes": int, "banks": int, "axi_bits": int, "mhz": float,
    "area_proxy": float,
    "rows": int, "inner": int, "columns": int, "nnz_a": int, "nnz_b": int, "nnz_c": int, "macs": int,
    "correct": bool, "hardware": bool, "order": str, "T_i": int, "T_j": int, "T_k": int,
    "cycles": int, "roofline_cycles": int, "ideal_cycles": int, "roofline_fraction": float, "ideal_fraction": float,
    "pe_utilization": float,
    "dram_bytes": int, "dram_bytes_a": int, "dram_bytes_b": int, "dram_bytes_c": int, "metadata_bytes": int,
    "useful_bytes": int, "energy_pJ": float, **{f"energy_pJ_{name}": float for name in COMPONENTS},
    "conversion_cycles": int, "conversion_bytes": int,
    "tiles": int, "tiles_skipped": int, "tiles_overbooked": int, "adjustments": int,
    "schedule_seconds": float, "run_seconds": float, "kept": bool, "key": str,
}  # fmt: skip


def failed_row(names: dict[str, Any], error: str) -> dict[str, Any]:
    """A row of a point that has no result."""
    return dict.fromkeys(COLUMNS) | names | {"failed": True, "error": error}


def row_of(names: dict[str, Any], record: dict[str, Any], area: float) -> dict[str, Any]:
    """A row of a point with its record.

    ``names``: what the sweep calls the point (``a``, ``b``, ``design``, ``settings``, ``tiling``, ``engine``, ``seed``,
    ``mcf_a``, ``mcf_b``, ``mcf_c``, ``run_bits``, ``kept``, ``key``). ``area``: the design's area proxy.
    """
    design, scheme, traffic = record["design"], record["scheme"], record["dram_bytes"]
    a, b = record["operands"]["A"], record["operands"]["B"]
    tensors = {} if traffic is None else {tensor: traffic[tensor] for tensor in "ABC"}
    energy = record["energy_pJ"] or {}
    conversion_cycles, conversion_bytes = converting(record)
    cycles, mhz = record["cycles"], design["clock"]["mhz"]
    found = {
        "failed": False,
        "value": design["pe"]["value"],
        "pe_count": design["pe"]["count"],
        "merge_radix": design["pe"]["merge_radix"],
        "buffer_bytes": design["buffer"]["bytes"],
        "banks": design["buffer"]["banks"],
        "axi_bits": design["axi"]["data_bits"],
        "mhz": mhz,
        "area_proxy": area,
        "rows": a["rows"],
        "inner": a["cols"],
        "columns": b["cols"],
        "nnz_a": a["nnz"],
        "nnz_b": b["nnz"],
        **{name: record[name] for name in ("nnz_c", "macs", "correct", "hardware", "cycles", "roofline_cycles")},
        **{name: record[name] for name in ("roofline_fraction", "ideal_cycles", "ideal_fraction", "pe_utilization")},
        **{name: scheme[name] for name in ("order", "T_i", "T_j", "T_k")},
        "dram_bytes": None if traffic is None else traffic["total"],
        **{f"dram_bytes_{tensor.lower()}": sum(kinds.values()) for tensor, kinds in tensors.items()},
        "metadata_bytes": sum(kinds["metadata_read"] + kinds["metadata_write"] for kinds in tensors.values())
        if tensors
        else None,
        "useful_bytes": record["useful_bytes"]["total"],
        "energy_pJ": energy.get("total"),
        **{f"energy_pJ_{name}": energy.get(name) for name in COMPONENTS},
        "conversion_cycles": conversion_cycles,
        "conversion_bytes": conversion_bytes,
        "tiles": record["tiles"]["total"],
        "tiles_skipped": record["tiles"]["skipped_empty"],
        "tiles_overbooked": record["tiles"]["overbooked"],
        "adjustments": record["tuning"]["adjustments"],
        "schedule_seconds": record["seconds"]["schedule"],
        "run_seconds": None if cycles is None else cycles / (mhz * 1e6),
    }
    return dict.fromkeys(COLUMNS) | names | found
