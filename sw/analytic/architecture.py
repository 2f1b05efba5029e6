"""The machine: storage levels from the innermost to the outermost, and the compute units below them.

Parts are equal where they are the same object, so that what depends on them alone can be remembered.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from .conventions import Conventions

__all__ = ["Architecture", "Compute", "Storage", "Unit"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Unit:
    """What storage and compute have in common.

    path: where the specification has it. instances: over the whole machine, laid out as ``mesh_x`` times ``mesh_y``.
    energies: pJ of an action, by name. leak_pj: of one instance in one cycle. area: um2 of one instance, None where unknown.
    """

    name: str
    path: str
    instances: int = 1
    mesh_x: int = 1
    mesh_y: int = 1
    word_bits: int = 8
    energies: Mapping[str, float] = field(default_factory=dict)
    leak_pj: float = 0.0
    area: float | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Compute(Unit):
    """Multiply-accumulate units."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Storage(Unit):
    """One storage level.

    words: capacity in data words, None without a bound. block: words in a row, read and written as one. bandwidths: words a
    cycle for each instance, None without a bound. metadata_bits: capacity for format data, None without a bound.
    metadata_width: bits of a row of format data, 0 where there is none. metadata_word_bits: of a word of format data.
    decompresses, compresses: translates between its own representation and that of the level outside.
    overbooks: tensor whose tiles may be larger than what is there for them. fifo_words: through which the rest of such a tile
    streams. is_spatial: only a place for spatial loops: keeps nothing and is no part of results.
    """

    words: int | None = None
    block: int = 1
    read_bandwidth: float | None = None
    write_bandwidth: float | None = None
    shared_bandwidth: float | None = None
    metadata_bits: int | None = None
    metadata_width: int = 0
    metadata_word_bits: int | None = None
    multiple_buffering: float = 1.0
    minimum_utilization: float = 0.0
    decompresses: bool = False
    compresses: bool = False
    overbooks: str | None = None
    fifo_words: int = 0
    is_dram: bool = False
    is_spatial: bool = False

    @property
    def usable_words(self) -> int | None:
        """Words for one tile of each tensor."""
        return None if self.words is None else int(self.words / self.multiple_buffering)

    @property
    def usable_metadata_bits(self) -> int | None:
        """Bits of format data for one tile of each tensor."""
        return None if self.metadata_bits is None else int(self.metadata_bits / self.multiple_buffering)


@dataclass(frozen=True, eq=False)
class Architecture:
    """Storage levels, innermost first, and the compute units. conventions: how the published tool of its dialect counts."""

    levels: tuple[Storage, ...]
    compute: Compute
    conventions: Conventions
