"""The analysis of a design beside what the model or the hardware counted on the same operands."""

from dataclasses import asdict, dataclass
from typing import Any

from sw.engine_result import EngineResult

from .analysis import Analysis
from .design_spec import PARTITION
from .sparse.counts import Accesses

__all__ = ["Compared", "compare"]


@dataclass(frozen=True)
class Compared:
    """A quantity of a tensor at a level; of the whole run where ``level`` has no tensor."""

    level: str
    tensor: str
    quantity: str
    analysis: float
    counted: int

    @property
    def error(self) -> float | None:
        """Of the analysis, as a share of what was counted; None where that is nothing and the analysis says something."""
        if not self.counted:
            return None if self.analysis else 0.0
        return self.analysis / self.counted - 1.0

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "error": self.error}


def compare(analysis: Analysis, found: EngineResult) -> list[Compared]:
    """Cycles, multiplications, bytes of memory by tensor and direction, uses of what partitions hold."""
    assert found.cycles is not None and found.dram_bytes is not None
    rows = [
        Compared("design", "", "cycles", analysis.cycles.total, found.cycles),
        Compared("MAC", "", "computes", analysis.sparse.computes.actual, found.counters["macs"]),
    ]
    outermost = len(analysis.spec.architecture.levels) - 1
    for tensor, bytes_of in found.dram_bytes.items():
        if not isinstance(bytes_of, dict):
            continue
        read, written = ("read", "metadata_read"), ("write", "metadata_write")
        # Begin positions that tiles of A and B write are read ones in the analysis, where an input is never written.
        for quantity, actions, keys in (
            (("bytes read", ("reads",), read), ("bytes written", ("fills", "updates"), written))
            if tensor == "C"
            else (("bytes moved", ("reads",), read + written),)
        ):
            own = sum(_bytes(analysis, outermost, tensor, action) for action in actions)
            counted = sum(bytes_of[key] for key in keys)
            if own or counted:
                rows.append(Compared("DRAM", tensor, quantity, own, counted))
    levels = {storage.name: level for level, storage in enumerate(analysis.spec.architecture.levels)}
    for tensor in "AB":
        level, number = levels.get(PARTITION[tensor], -1), analysis.spec.workload.problem.tensor(tensor)
        if (level, number) not in analysis.sparse.counters:
            continue
        uses, overbooked = found.buffer[tensor], analysis.sparse.overbooked.get((level, number))
        hits, bumped = int(uses["hits"]), int(uses["bumped"])
        # Counters are of a tile that arrives; empty ones do not.
        arrives = float(analysis.uses[level].mean[number])
        reads = analysis.sparse.counters[level, number].reads.actual * arrives
        rows.append(Compared(PARTITION[tensor], tensor, "words used", reads, hits + bumped))
        refetched = 0 if overbooked is None else overbooked.refetched * arrives
        if refetched or bumped:
            rows.append(Compared(PARTITION[tensor], tensor, "words refetched", refetched, bumped))
    return rows


def _bytes(analysis: Analysis, level: int, tensor: str, action: str) -> float:
    """Values and format data that a level reads or writes; gated accesses are made."""
    number = analysis.spec.workload.problem.tensor(tensor)
    counters = analysis.sparse.counters[level, number]
    bits = _made(counters.data(action)) * analysis.spec.architecture.levels[level].word_bits
    for rank, own in zip(analysis.sparse.occupancy[level, number].ranks, counters.formats[action], strict=True):
        metadata, payload = rank.bits
        bits += _made(own.metadata) * metadata + _made(own.payload) * payload
    return bits / 8


def _made(accesses: Accesses) -> float:
    return float(accesses.actual + accesses.gated)
