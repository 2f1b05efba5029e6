"""Design to keyword parameters of the blocks: the one place where fields of a design file meet them."""

from typing import Any

from .design import WEIGHT_STATIONARY, Design, DesignError

__all__ = ["accelerator", "converter", "tile_engine"]


def accelerator(design: Design) -> dict[str, Any]:
    """Parameters of ``rtl.accelerator.Accelerator``. Raises DesignError for a design without hardware."""
    if "rtl" not in design.tiers:
        engines = " and ".join(design.tiers)
        raise DesignError(f"design {design.name}: tiers = {list(design.tiers)}: has no hardware; it runs in {engines}")
    return {
        "pes": design.pe.count,
        "radix": design.pe.merge_radix,
        "value": design.pe.arithmetic,
        "leaf_lines": design.pe.leaf_lines,
        "queue_lines": design.pe.queue_lines,
        "scratch_slots": design.scratch_slots,
        "lanes": design.lanes,
        "line_beats": design.buffer.line_beats,
        "sram_lines": design.sram_lines,
        "banks": design.buffer.banks,
        "fifo_lines": design.fifo_lines,
        "address_width": design.axi.address_bits,
        "outstanding": design.axi.outstanding,
        "burst_beats": design.axi.burst_beats,
        "tuning": design.tuning.dynamic,
        "packed": design.packed,
        "conversion_form": design.converter.prefix_sum if design.converts else "",
        "converts": design.converts,
        "asynchronous_reset": design.clock.asynchronous_reset,
    }


def tile_engine(design: Design) -> dict[str, Any]:
    """Of the intra-tile engine, beside those that every engine has."""
    if design.pe.dataflow != WEIGHT_STATIONARY:
        return {}
    return {"vector": design.pe.vector, "entries": design.pe.buffer_entries, "acf": design.pe.acf_a}


def converter(design: Design) -> dict[str, Any]:
    """Of ``rtl.converter.Converter``. A design without a converter has a merged one beside it."""
    return {
        "style": "m" if design.converter.style == "none" else design.converter.style,
        "conversions": design.converter.conversions,
        "data_width": design.axi.data_bits,
        "address_width": design.axi.address_bits,
        "outstanding": design.axi.outstanding,
        "burst_beats": design.axi.burst_beats,
        "value": design.pe.value,
        "prefix_sum": design.converter.prefix_sum,
        "counters": design.converter.counters,
        "sram_bytes": design.converter.sram_bytes,
        "lane_bits": design.converter.lane_bits,
    }
