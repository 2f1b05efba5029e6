"""Counters of accesses, split into what happens, what is gated and what is skipped."""

from dataclasses import dataclass, field

__all__ = ["ACTIONS", "Accesses", "Counters", "FormatAccesses"]

ACTIONS = ("reads", "fills", "updates")


@dataclass
class Accesses:
    """dense: of the dense algorithm. The others add up to fewer where accesses do not exist at all."""

    dense: int
    actual: int
    gated: int = 0
    skipped: int = 0

    def split(self, kind: str, removed: int) -> None:
        """Moves some of the actual accesses to those that a SAF gates or skips."""
        self.actual -= removed
        if kind == "gating":
            self.gated += removed
        else:
            self.skipped += removed


@dataclass
class FormatAccesses:
    """Accesses to words of metadata and of payloads of one rank."""

    metadata: Accesses
    payload: Accesses


@dataclass
class Counters:
    """Of one tensor at one instance of a level. ``formats``: for each rank, innermost first."""

    reads: Accesses
    fills: Accesses
    updates: Accesses
    formats: dict[str, list[FormatAccesses]] = field(default_factory=dict)
    decompressions: int = 0
    compressions: int = 0

    def data(self, action: str) -> Accesses:
        """Accesses to values."""
        found: Accesses = getattr(self, action)
        return found
