"""Sparse acceleration features (SAFs) of each level: representation formats, gating, skipping (paper, section 3)."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from .formats.protocol import RankFormat

__all__ = ["ActionOption", "ActionSaf", "Features", "FormattedRank", "Representation"]


@dataclass(frozen=True)
class FormattedRank:
    """A rank of a tensor's representation. metadata_bits, payload_bits: of a word; None: as the level has them.

    flattened: dimensions whose loops may share the rank, None where it takes one loop.
    """

    format: RankFormat
    metadata_bits: int | None = None
    payload_bits: int | None = None
    flattened: frozenset[int] | None = None


@dataclass(frozen=True)
class Representation:
    """How a level stores a tensor. ranks: innermost first. inner_first: ranks take loops from the innermost one on."""

    ranks: tuple[FormattedRank, ...]
    inner_first: bool = False

    @property
    def is_compressed(self) -> bool:
        """Whether the zeros take no space."""
        return any(rank.format.is_compressed for rank in self.ranks)


@dataclass(frozen=True)
class ActionOption:
    """Accesses to ``target`` depend on the ``leaders`` having a nonzero. Tensors by their numbers."""

    target: int
    leaders: tuple[int, ...]


@dataclass(frozen=True)
class ActionSaf:
    """kind: ``gating``, ``skipping``, ``skipping_spatial`` or ``position_skipping``. options: the hardware takes one."""

    kind: str
    options: tuple[ActionOption, ...]


@dataclass(frozen=True)
class Features:
    """SAFs by level (innermost is 0). compute: what the compute units do with operands that are zero or missing."""

    representations: Mapping[tuple[int, int], Representation] = field(default_factory=dict)
    actions: Mapping[int, tuple[ActionSaf, ...]] = field(default_factory=dict)
    compute: frozenset[str] = frozenset()

    @property
    def is_empty(self) -> bool:
        """Whether there is no SAF at all."""
        return not (self.representations or self.actions or self.compute)
