"""Testplans: what must hold of a block, and the situations (bins) that its benches must reach."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..tables import read_table

__all__ = ["FOLDER", "Plan", "plan", "plans"]

FOLDER = Path(__file__).resolve().parents[1] / "testplans"


@dataclass(frozen=True)
class Plan:
    """The coverage part of a testplan.

    Parameters
    ----------
    name: of the plan, which is the bench's.
    blocks: blocks of ``gen.blocks`` whose bins these are; a block without bins of its own is part of one that has some.
    bins: name and meaning of each situation to be reached.
    excused: by build, the bins that it cannot reach, with the reason.
    """

    name: str
    blocks: tuple[str, ...] = ()
    bins: Mapping[str, str] = field(default_factory=dict)
    excused: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def excuses(self, build: str) -> Mapping[str, str]:
        """Bins that this build need not reach, with the reason."""
        return self.excused.get(build, {})

    def problems(self, build: str, hits: Mapping[str, int]) -> list[str]:
        """What is wrong with the coverage of a run of all tests on a build, a line each."""
        excuses = self.excuses(build)
        missed = [name for name in self.bins if not hits.get(name) and name not in excuses]
        stale = [name for name in excuses if hits.get(name)]
        return [
            *(f"coverage bin {name} was never hit: {self.bins[name]}" for name in missed),
            *(f"coverage bin {name} is excused for {build} but was hit" for name in stale),
        ]


def plan(name: str, folder: Path = FOLDER) -> Plan:
    """The plan of this name. Raises FileNotFoundError; ValueError where an excuse is for a bin that is not there."""
    table = read_table(folder / f"{name}.toml")
    found = Plan(name, tuple(table.get("blocks", ())), table.get("bins", {}), table.get("excused", {}))
    for build, excuses in found.excused.items():
        unknown = [bin_name for bin_name in excuses if bin_name not in found.bins]
        if unknown:
            raise ValueError(f"Testplan {name} excuses {build} from {', '.join(unknown)}, which it does not have")
    return found


def plans(folder: Path = FOLDER) -> list[Plan]:
    """All plans, by name."""
    return [plan(path.stem, folder) for path in sorted(folder.glob("*.toml"))]
