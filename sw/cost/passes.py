"""What conversions of A, B and C add to a run: passes of their own over memory, before it and after it."""

from dataclasses import dataclass, replace
from typing import Any

from sw.scheme.scheme import Scheme

__all__ = ["NO_PASSES", "Pass", "Passes"]


@dataclass(frozen=True, kw_only=True)
class Pass:
    """Cycles and bus bytes."""

    cycles: int = 0
    dram_bytes: int = 0

    def __add__(self, other: "Pass") -> "Pass":
        return Pass(cycles=self.cycles + other.cycles, dram_bytes=self.dram_bytes + other.dram_bytes)


@dataclass(frozen=True, kw_only=True)
class Passes:
    """The conversions of a run, as far as a scheme decides on them.

    Parameters
    ----------
    a: over A. Schemes for which the host writes A anew need none, nor those that convert it on its way in.
    rest: over B and C, whatever the scheme.
    fixes_a: A is kept in a format that the host does not read, so that no such scheme can run.
    fixes_rows: the rows of A are met as they are: A is fixed, or C leaves in a format in which an order does not find its rows.
    extent: I, J, K of the product, where the accelerator can convert A on its way in. more_bytes: of A then, each time it is
        read, than where it lies as the accelerator has it; below 0 where its format is smaller.
    """

    a: Pass = Pass()
    rest: Pass = Pass()
    fixes_a: bool = False
    fixes_rows: bool = False
    extent: tuple[int, int, int] | None = None
    more_bytes: int = 0

    def over_a(self, scheme: Scheme) -> Pass:
        """That of a scheme; where A is converted on its way in, the bytes that its format makes of it."""
        if self.extent is not None and (times := scheme.passes_over_a(*self.extent)):
            return Pass(dram_bytes=times * self.more_bytes)
        return Pass() if scheme.rewrites_a else self.a

    @property
    def least_cycles_over_a(self) -> int:
        """Of a scheme for which the host does not write A anew."""
        return self.a.cycles if self.extent is None else 0

    def added(self, scheme: Scheme, *, over_a: bool = True) -> Scheme:
        """The scheme with what it predicts for itself, and for those that it beat, plus the passes.

        ``over_a``: False where the predictions have the pass over A already.
        """
        more = self.rest + (self.over_a(scheme) if over_a else Pass())
        sizes = {"cycles": more.cycles, "judged_cycles": more.cycles, "dram_bytes": more.dram_bytes}

        def raised(entry: dict[str, Any]) -> dict[str, Any]:
            return {name: value + sizes[name] if name in sizes else value for name, value in entry.items()}

        return replace(
            scheme, predicted=raised(scheme.predicted), alternatives=[raised(entry) for entry in scheme.alternatives]
        )


NO_PASSES = Passes()
