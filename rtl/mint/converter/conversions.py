"""Which conversions a converter is built for, and what they need of its blocks."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ...lib.block import digest
from ...regs.converter_map import FORMATS, PAIRS, SOURCES, TENSOR_FORMATS, TENSOR_SOURCES

__all__ = ["ALL", "FIGURE_8", "WITH_POSITIONS", "Conversions", "check_conversions", "conversions_named"]

#: Formats that know the position of an entry, or take it. All others have its row and column.
WITH_POSITIONS = ("dense", "rlc", "zvc")
#: The four conversions of MINT's figure 8.
FIGURE_8 = (("csr", "csc"), ("rlc", "coo"), ("csr", "bsr"), ("dense", "csf"))


@dataclass(frozen=True)
class Conversions:
    """Pairs of a source's format and a target's, in the order of the formats, each once.

    The blocks of the stream meet no CSC, but the CSR matrix of the transpose: their formats are ``reads`` and ``writes``. A
    sort reads and writes COO on its way.
    """

    pairs: tuple[tuple[str, str], ...]

    @property
    def name(self) -> str:
        """``all``, or digits that stand for the pairs."""
        return "all" if self.pairs == PAIRS else digest({"pairs": self.pairs})

    @property
    def sources(self) -> frozenset[str]:
        return frozenset(source for source, _ in self.pairs)

    @property
    def targets(self) -> frozenset[str]:
        return frozenset(target for _, target in self.pairs)

    @property
    def transposes(self) -> bool:
        """Some pair changes the order of entries."""
        return self.blocks or any((source == "csc") != (target == "csc") for source, target in self.pairs)

    @property
    def blocks(self) -> bool:
        """Some pair finds the blocks of entries and fills them."""
        return "bsr" in self.targets

    @property
    def tensors(self) -> bool:
        """Some pair has a tensor of order 3."""
        return not self.targets.isdisjoint(TENSOR_FORMATS)

    @property
    def triples(self) -> bool:
        """Some pair reads records with three coordinates."""
        return any(s == "coo" and t in TENSOR_FORMATS for s, t in self.pairs)

    @property
    def fibers(self) -> bool:
        """Some pair divides the numbers of fibers."""
        return any(s in WITH_POSITIONS and t in TENSOR_FORMATS for s, t in self.pairs)

    @property
    def reads(self) -> frozenset[str]:
        return self._met(self.sources)

    @property
    def writes(self) -> frozenset[str]:
        return self._met(self.targets)

    def _met(self, formats: Iterable[str]) -> frozenset[str]:
        return frozenset("csr" if name == "csc" else name for name in formats) | ({"coo"} if self.transposes else set())

    @property
    def multiplies(self) -> bool:
        """Some pair makes positions of rows and columns."""
        return any(s not in WITH_POSITIONS and t in WITH_POSITIONS for s, t in self.pairs)

    @property
    def divides(self) -> bool:
        """Some pair makes rows and columns of positions."""
        return any(s in WITH_POSITIONS and t not in WITH_POSITIONS for s, t in self.pairs)

    def separate(self) -> "list[Conversions]":
        """One for each pair."""
        return [Conversions((pair,)) for pair in self.pairs]


ALL = Conversions(PAIRS)


def conversions_named(text: str) -> Conversions:
    """``all``; ``figure_8``: those of MINT's figure 8; pairs; or some of these: ``all``, ``figure_8,rlc-any``.

    Raises ValueError with what is allowed.
    """
    figure_8 = ",".join(f"{s}-{t}" for s, t in FIGURE_8)
    chosen: set[tuple[str, str]] = set()
    for pair in str(text).replace("figure_8", figure_8).replace("all", "any-any").split(","):
        source, dash, target = pair.partition("-")
        named = {(s, t) for s, t in PAIRS if source in ("any", s) and target in ("any", t)}
        if not dash or not named:
            raise ValueError(
                f"must be one of 'all', 'figure_8' or pairs such as 'csr-csc,any-coo' of {', '.join(SOURCES)} and, as a "
                f"target, {', '.join(FORMATS[len(SOURCES) :])}; {TENSOR_FORMATS[0]} is made of {', '.join(TENSOR_SOURCES)}"
            )
        chosen |= named
    return Conversions(tuple(pair for pair in PAIRS if pair in chosen))


def check_conversions(conversions: Any) -> None:
    if not isinstance(conversions, Conversions) or not conversions.pairs or not set(conversions.pairs) <= set(PAIRS):
        raise ValueError(f"Conversions must be pairs of {', '.join(FORMATS)}, not {conversions!r}")
