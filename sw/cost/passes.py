"""What conversions of A, B and C add to a run: passes of their own over memory, before it and after it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from sw.scheme.scheme import Scheme

__all__ = ["NO_PASSES", "Pass", "Passes", "TensorPass"]


@dataclass(frozen=True, kw_only=True)
class Pass:
    """What conversions add to a run.

    Parameters
    ----------
    cycles, dram_bytes: of passes over memory; bytes also of what is converted in the run itself.
    least_run: cycles that the run takes at least, in which memory moves the tensors that are converted in it.
    """

    cycles: int = 0
    dram_bytes: int = 0
    least_run: int = 0

    def __add__(self, other: "Pass") -> "Pass":
        return Pass(
            cycles=self.cycles + other.cycles,
            dram_bytes=self.dram_bytes + other.dram_bytes,
            least_run=self.least_run + other.least_run,
        )

    def whole(self, cycles: int) -> int:
        """Cycles of the whole, of a run that takes so many without it."""
        return max(cycles, self.least_run) + self.cycles


def _never(scheme: Scheme) -> int:
    return 0


@dataclass(frozen=True, kw_only=True)
class TensorPass:
    """The conversion of a tensor, as far as a scheme decides on it.

    Parameters
    ----------
    alone: the pass over memory.
    times: how often a scheme reads the tensor, or writes it, where the accelerator converts it on its way, without such a pass;
        0 where it does not.
    more_bytes: of the tensor then, each time, than where it lies as the accelerator has it; below 0 where its format is smaller.
    bus_cycles: in which memory moves it once in its format.
    """

    alone: Pass = Pass()
    times: Callable[[Scheme], int] = _never
    more_bytes: int = 0
    bus_cycles: int = 0

    def of(self, scheme: Scheme) -> Pass:
        """That of a scheme; where the tensor is converted on its way, the bytes that its format makes of it."""
        times = self.times(scheme)
        if not times:
            return self.alone
        return Pass(dram_bytes=times * self.more_bytes, least_run=times * self.bus_cycles)

    @property
    def least_cycles(self) -> int:
        """Of any scheme."""
        return self.alone.cycles if self.times is _never else 0


@dataclass(frozen=True, kw_only=True)
class Passes:
    """The conversions of a run, as far as a scheme decides on them.

    Parameters
    ----------
    a: over A. Schemes for which the host writes A anew need none.
    b, c: over B, and over C, where the accelerator can convert it on its way.
    rest: over B and C where it cannot, whatever the scheme.
    fixes_a: A is kept in a format that the host does not read, so that no such scheme can run.
    fixes_rows: the rows of A are met as they are: A is fixed, or C leaves in a format in which an order does not find its rows.
    """

    a: TensorPass = TensorPass()
    b: TensorPass = TensorPass()
    c: TensorPass = TensorPass()
    rest: Pass = Pass()
    fixes_a: bool = False
    fixes_rows: bool = False

    def over(self, scheme: Scheme) -> Pass:
        """Those that a scheme decides on."""
        return (Pass() if scheme.rewrites_a else self.a.of(scheme)) + self.b.of(scheme) + self.c.of(scheme)

    @property
    def least_cycles(self) -> int:
        """Of them, of a scheme for which the host does not write A anew."""
        return self.a.least_cycles + self.b.least_cycles + self.c.least_cycles

    def added(self, scheme: Scheme, *, over: bool = True) -> Scheme:
        """The scheme with what it predicts for itself, and for those that it beat, plus the passes.

        ``over``: False where the predictions have those that a scheme decides on already.
        """
        more = self.rest + (self.over(scheme) if over else Pass())
        changes = {"cycles": more.whole, "judged_cycles": more.whole, "dram_bytes": more.dram_bytes.__add__}

        def raised(entry: dict[str, Any]) -> dict[str, Any]:
            return {name: changes[name](value) if name in changes else value for name, value in entry.items()}

        return replace(
            scheme, predicted=raised(scheme.predicted), alternatives=[raised(entry) for entry in scheme.alternatives]
        )


NO_PASSES = Passes()
