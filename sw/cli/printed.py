"""A command from the function that does its work: Python calls the same function (:mod:`.from_python`)."""

import inspect
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sw.scheme.terms import LOAD_LIST, LOAD_PLANNED, LOAD_REUSE

from . import options

if TYPE_CHECKING:
    from sw.formats.csr import Csr

__all__ = ["STAY", "Outcome", "printed"]

# Which rows of B stay on chip, by what tiles load.
STAY = {
    LOAD_LIST: "they stay while there is room",
    LOAD_REUSE: "those stay that are used again in time",
    LOAD_PLANNED: "places are planned, and those leave that are worth the least",
}


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a command has made, beside the document that it gave to its console.

    ``correct``: everything that was checked holds; ``c``: the product without zeros; ``arrays``: of a storage format;
    ``failures``: reasons by the name of what did not run.
    """

    correct: bool = True
    c: "Csr | None" = None
    arrays: dict[str, Any] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)


def printed(function: Callable[..., Outcome]) -> Callable[..., int]:
    """The command: the options of ``function``, which takes a console first, with ``--json``, ``--quiet``
    and ``--verbose``.

    Its exit code is 1 where the outcome is not correct.
    """

    def command(*, json: bool, quiet: bool, verbose: bool, **arguments: Any) -> int:
        began = time.perf_counter()
        from .console import Console

        return 0 if function(Console(as_json=json, quiet=quiet, began=began), **arguments).correct else 1

    kind = inspect.Parameter.KEYWORD_ONLY
    _, *own = (each.replace(kind=kind) for each in inspect.signature(function).parameters.values())
    seed = next((n for n, each in enumerate(own) if each.name == "seed"), len(own))
    own.insert(seed, inspect.Parameter("json", kind, default=False, annotation=options.Json))
    own.append(inspect.Parameter("quiet", kind, default=False, annotation=options.Quiet))
    own.append(inspect.Parameter("verbose", kind, default=False, annotation=options.Verbose))
    # Typer reads the options here; mypy knows no such member of a function.
    command.__signature__ = inspect.Signature(own)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in own}
    command.__doc__, command.__module__ = function.__doc__, function.__module__
    return command
