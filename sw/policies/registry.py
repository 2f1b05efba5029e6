"""Policies by name. Their names are asked for by the help of commands: nothing that takes time to load is imported at the top."""

import importlib
import inspect
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from sw.plugins import PluginError, label, table
from sw.scheme.errors import SchemeError
from sw.scheme.terms import GUSTAVSON, INNER, OUTER, WEIGHT_STATIONARY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sw.cost.candidates.evaluator import Judge
    from sw.cost.passes import Passes
    from sw.cost.protocol import Machine, Policy
    from sw.formats.canonical import Matrix
    from sw.scheme.scheme import Scheme

__all__ = ["DATAFLOWS_OF", "POLICIES", "find_policy", "option_names", "policy_names", "schedule"]

_ALL = (GUSTAVSON, OUTER, INNER)
# Each policy, and the intra-tile dataflows that it tiles for.
DATAFLOWS_OF = {
    "uniform": (*_ALL, WEIGHT_STATIONARY),
    "prescient": _ALL,
    "swiftiles": _ALL,
    "drt": _ALL,
    "harp": _ALL,
    "hyte": _ALL,
    "d2t2": (GUSTAVSON,),
    "even_columns": (GUSTAVSON,),
    "even_squares": (GUSTAVSON,),
    "even_rows": (GUSTAVSON,),
    "optimal": _ALL,
    "auto": (*_ALL, WEIGHT_STATIONARY),
}
POLICIES = tuple(DATAFLOWS_OF)
# Modules that have another name than their policies of Gustavson's dataflow.
_MODULES = dict.fromkeys(("even_columns", "even_squares", "even_rows"), "even")
# Parameters of policies that are no options: the model tier, conversions, what the other policies choose.
HANDED_IN = ("judge", "passes", "others")


def policy_names() -> tuple[str, ...]:
    """Names of all policies, those of a user's own after the others. Raises PluginError where one of them is taken."""
    own = table("POLICIES")
    for name in own:
        if name in POLICIES:
            raise PluginError(f"{label('POLICIES', name)}: must be another name than those of {', '.join(POLICIES)}")
    return (*POLICIES, *own)


def find_policy(name: str, dataflow: str = GUSTAVSON) -> "Policy":
    """The policy called ``name`` for an intra-tile dataflow.

    Gustavson's lives in the module of its name (the even ones in one), those of weight-stationary PEs and those of the other
    dataflows in one each, which is imported only now; those of a user's own tile for Gustavson's alone.
    """
    names = policy_names()
    if name not in names:
        from gen.design import did_you_mean

        raise SchemeError("policy", name, f"one of {', '.join(names)}{did_you_mean(name, names)}")
    if dataflow not in DATAFLOWS_OF.get(name, (GUSTAVSON,)):
        others = ", ".join(other for other in POLICIES if dataflow in DATAFLOWS_OF[other])
        raise SchemeError("policy", name, f"one of {others} where pe.dataflow is {dataflow}")
    if name not in POLICIES:
        own: Policy = table("POLICIES")[name]
        return own
    module = {GUSTAVSON: _MODULES.get(name, name), WEIGHT_STATIONARY: "stationary"}.get(dataflow, "dataflows")
    found: Policy = getattr(importlib.import_module(f"{__package__}.{module}"), name)
    return found


def option_names(name: str) -> list[str]:
    """Options that the policy takes beside the seed and the judge."""
    kinds = inspect.signature(find_policy(name)).parameters.values()
    return [p.name for p in kinds if p.kind is inspect.Parameter.KEYWORD_ONLY and p.name not in ("seed", *HANDED_IN)]


def schedule(
    policy: str,
    A: "Matrix",
    B: "Matrix",
    design: "Machine",
    *,
    seed: int = 0,
    judge: "Judge | None" = None,
    passes: "Passes | None" = None,
    **options: Any,
) -> "Scheme":
    """Let a policy decide, check that the design can run what it chose, and note how long it took.

    ``A`` and ``B``: matrices in any SciPy format, or NumPy arrays of two dimensions (:func:`sw.formats.canonical.canonical`).
    ``passes``: conversions before and after the run, which count among what is predicted; policies that choose between schemes
    that write A anew and others weigh them. ``judge`` is the model tier (:func:`sw.model.judge.judge`), for the policies that
    ask it; ``auto`` does without where there is none, ``optimal`` cannot.
    """
    from sw.cost.passes import NO_PASSES
    from sw.formats.canonical import canonical
    from sw.scheme.scheme import Scheme

    chooser = find_policy(policy, design.pe.dataflow)
    same = B is A
    A = canonical(A)
    B = A if same else canonical(B)
    if A.shape[1] != B.shape[0]:
        raise ValueError(f"A has {A.shape[1]} columns but B has {B.shape[0]} rows")
    for option in options:
        if option not in option_names(policy):
            raise SchemeError(
                f"option {option}", options[option], f"one of {', '.join(option_names(policy)) or 'none'}"
            )
    began = time.perf_counter()
    passes = passes or NO_PASSES
    given = {"judge": judge, "passes": passes}
    asked = _taken(chooser, given | {"others": partial(_others, policy, A, B, design, seed, given)})
    scheme = chooser(A, B, design, seed=seed, **asked, **options)
    if not isinstance(scheme, Scheme):
        raise PluginError(f"policy {policy}: must return a Scheme, not {type(scheme).__name__}")
    scheme = replace(scheme, seconds=time.perf_counter() - began)
    scheme = passes.added(scheme, over="passes" not in asked)
    scheme.validate(design, A.shape[0], B.shape[1], A.shape[1])
    return scheme


def _taken(chooser: "Policy", given: dict[str, Any]) -> dict[str, Any]:
    """What of that a policy takes."""
    taken = inspect.signature(chooser).parameters
    return {name: value for name, value in given.items() if name in taken}


def _others(policy: str, A: Any, B: Any, design: "Machine", seed: int, given: dict[str, Any]) -> "Iterator[Scheme]":
    """What each other policy chooses for the dataflow, but for those that cannot; each predicts the passes that it decides on."""
    from sw.cost.passes import Pass
    from sw.operands.errors import OperandError

    decided = replace(given["passes"], rest=Pass())
    for name in POLICIES:
        if name == policy or design.pe.dataflow not in DATAFLOWS_OF[name]:
            continue
        chooser = find_policy(name, design.pe.dataflow)
        asked = _taken(chooser, given)
        try:
            scheme = chooser(A, B, design, seed=seed, **asked)
            scheme.validate(design, A.shape[0], B.shape[1], A.shape[1])
        except (SchemeError, OperandError, MemoryError):
            continue
        yield decided.added(scheme, over="passes" not in asked)
