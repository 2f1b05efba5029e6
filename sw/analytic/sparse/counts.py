"""Counters of accesses, split into what happens, what is gated and what is skipped."""

from dataclasses import dataclass, field

from ..values import Batched, Count

__all__ = ["ACTIONS", "Accesses", "Counters", "FormatAccesses"]

ACTIONS = ("reads", "fills", "updates")


@dataclass
class Accesses(Batched):
    """dense: of the dense algorithm. The others add up to fewer where accesses do not exist at all."""

    dense: Count
    actual: Count
    gated: Count = 0
    skipped: Count = 0

    @property
    def is_none(self) -> bool:
        """Whether no mapping has any, without a look at each."""
        return isinstance(self.dense, int | float) and self.dense == 0

    def split(self, kind: str, removed: Count) -> None:
        """Moves some of the actual accesses to those that a SAF gates or skips."""
        self.actual = self.actual - removed
        if kind == "gating":
            self.gated = self.gated + removed
        else:
            self.skipped = self.skipped + removed


@dataclass
class FormatAccesses(Batched):
    """Accesses to words of metadata and of payloads of one rank."""

    metadata: Accesses
    payload: Accesses


@dataclass
class Counters(Batched):
    """Of one tensor at one instance of a level. ``formats``: for each rank, innermost first."""

    reads: Accesses
    fills: Accesses
    updates: Accesses
    formats: dict[str, list[FormatAccesses]] = field(default_factory=dict)
    decompressions: Count = 0
    compressions: Count = 0

    def data(self, action: str) -> Accesses:
        """Accesses to values."""
        found: Accesses = getattr(self, action)
        return found
