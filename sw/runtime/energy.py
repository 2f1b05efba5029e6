"""Energy of a run from what it counted, in picojoules by component; ``docs/energy.md`` says what each count is.

Only counts enter that the model has exactly as the hardware has them, so that both give the same energy.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sw.energy import COORDINATE_BITS, DRAM_BIT_PJ, MAC_PJ, REGISTER_BIT_PJ, merge_step_pj, sram_pj
from sw.engine_result import EngineResult
from sw.formats.memory_csr import ELEMENT_BYTES
from sw.formats.sparse_tensor import VALUE_BITS
from sw.scheme.terms import WEIGHT_STATIONARY

from .conversion import StoredTensor

if TYPE_CHECKING:
    from gen.design import Design
    from sw.scheme.scheme import Scheme

__all__ = ["COMPONENTS", "run_energy", "sram_words"]

COMPONENTS = ("dram", "sram", "merge", "mac", "conversion")
# Without a merge that takes all products in: they are collected in the SRAM, or compared with a row.
COLLECTS, COMPARES = "outer", "inner"


def run_energy(
    design: "Design",
    result: EngineResult,
    scheme: "Scheme",
    nnz_c: int,
    stored: Sequence[StoredTensor] = (),
) -> dict[str, float] | None:
    """``{"dram", "sram", "merge", "mac", "conversion", "total"}``; None where the engine counts nothing (``golden``).

    Parameters
    ----------
    result: its bytes have those of the conversions. nnz_c: coordinates of C that received a product.
    stored: tensors that are kept in formats of their own.
    """
    traffic, counters = result.dram_bytes, result.counters
    if traffic is None or "macs" not in counters:
        return None
    moved = sum(sum(kinds.values()) for kinds in traffic.values())
    steps = counters.get("merged", 0) * (design.pe.merge_radix.bit_length() - 1) + counters.get("compared", 0)
    streams_a = design.pe.dataflow not in (COLLECTS, COMPARES) and not scheme.buffers("A")
    words = sum(sram_words(design.pe.dataflow, counters, _of_run(traffic, stored), nnz_c, streams_a=streams_a))
    found = {
        "dram": 8 * moved * DRAM_BIT_PJ,
        "sram": words * sram_pj(design.buffer.bytes / design.buffer.banks),
        "merge": _in_buffers(design, counters)
        if design.pe.dataflow == WEIGHT_STATIONARY
        else steps * merge_step_pj(VALUE_BITS[design.pe.value]),
        "mac": counters["macs"] * MAC_PJ[design.pe.value],
        "conversion": float(sum(kept.energy_pJ for kept in stored)),
    }
    rounded = {name: round(energy, 3) for name, energy in found.items()}
    return rounded | {"total": round(sum(rounded.values()), 3)}


def _in_buffers(design: "Design", counters: Mapping[str, int]) -> float:
    """Of the buffers of weight-stationary PEs: pairs of entries that go in, values that products take out."""
    value = VALUE_BITS[design.pe.value]
    return ((COORDINATE_BITS + value) * counters["merged"] + value * counters["macs"]) * REGISTER_BIT_PJ


def sram_words(
    dataflow: str, counters: Mapping[str, int], traffic: Mapping[str, Mapping[str, int]], nnz_c: int, *, streams_a: bool
) -> tuple[float, float]:
    """Words of 8 bytes, a nonzero each, that are read from the SRAM and written to it.

    Parameters
    ----------
    traffic: bytes by tensor and kind, without those of conversions. nnz_c: coordinates of C that received a product.
    streams_a: A's nonzeros are read once, as they come.
    """
    come = sum(kinds["read"] + kinds["metadata_read"] for kinds in traffic.values())
    leave = sum(kinds["write"] + kinds["metadata_write"] for kinds in traffic.values())
    metadata = sum(kinds["metadata_read"] for kinds in traffic.values())
    macs, merged = counters["macs"], counters.get("merged", 0)
    # What a merge takes in beside products has been given out by one before: a part of C.
    parts = merged if dataflow in (COLLECTS, COMPARES) else max(0, merged - macs)
    collected = macs if dataflow == COLLECTS else 0
    of_a = counters.get("hits_a", 0) + counters.get("bumped_fetches_a", 0)
    walked = counters["walked"] if "walked" in counters else macs + of_a
    streamed = metadata + (traffic["A"]["read"] if streams_a else 0)
    if dataflow == WEIGHT_STATIONARY:  # products read the buffers of the PEs
        walked, parts, streamed = merged + of_a, 0, streamed + traffic["C"]["read"]
    read = (leave + streamed) / ELEMENT_BYTES + walked + parts + collected
    written = come / ELEMENT_BYTES + nnz_c + parts + collected
    return read, written


def _of_run(traffic: Mapping[str, Mapping[str, int]], stored: Sequence[StoredTensor]) -> dict[str, dict[str, int]]:
    """Bytes of the run alone, every kind present."""
    kinds = ("read", "write", "metadata_read", "metadata_write")
    found = {tensor: {kind: traffic.get(tensor, {}).get(kind, 0) for kind in kinds} for tensor in "ABC"}
    for kept in stored:
        if kept.conversion is not None:
            found[kept.tensor]["read"] -= kept.conversion.read_bytes
            found[kept.tensor]["write"] -= kept.conversion.written_bytes
    return found
