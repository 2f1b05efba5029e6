"""A search for a mapping on the workers of a Dask cluster."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing

from sw.analytic.search import Portion, Share, Spread
from sw.operands import UserError

from .cluster import Cluster
from .executors import Outcome
from .reasons import reason

__all__ = ["on_cluster", "portions_of"]

Portions = Callable[[Share], Iterator[Portion]]


def portions_of(item: tuple[Portions, Share]) -> Outcome:
    """All portions of a share."""
    function, share = item
    try:
        return {"record": list(function(share))}
    except Exception as error:  # noqa: BLE001 - whatever a worker raises, the command tells it
        return {"error": reason(error)}


def on_cluster(address: str) -> Spread:
    """Raises MissingToolError where no scheduler answers, UserError where a share fails."""

    def spread(shares: Iterable[Share], function: Portions) -> Iterator[Portion]:
        known: dict[int, list[Portion]] = {}
        first = 0
        with closing(Cluster(address).results(portions_of, [(function, share) for share in shares])) as results:
            for number, outcome in results:
                if "error" in outcome:
                    raise UserError(f"--cluster {address}: {outcome['error']}")
                known[number] = outcome["record"]
                while first in known:
                    yield from known.pop(first)
                    first += 1

    return spread
