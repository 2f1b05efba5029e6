"""Policies by name."""

import importlib
import inspect
import time
from dataclasses import replace
from typing import Any

import scipy.sparse as sp

from .protocol import Machine, Policy
from .scheme import Scheme, SchemeError

__all__ = ["ALIASES", "POLICIES", "find_policy", "option_names", "schedule"]

POLICIES = ("uniform", "prescient", "swiftiles", "drt", "harp", "hyte", "d2t2")
# `auto` is a promise to pick the best policy known; the scheme names the one that it stands for.
ALIASES = {"auto": "hyte"}


def find_policy(name: str) -> Policy:
    """The policy called ``name``; each lives in the module of its name, which is imported only now."""
    name = ALIASES.get(name, name)
    if name not in POLICIES:
        raise SchemeError("policy", name, f"one of {', '.join((*POLICIES, *ALIASES))}")
    found: Policy = getattr(importlib.import_module(f"{__package__}.{name}"), name)
    return found


def option_names(name: str) -> list[str]:
    """Options that the policy takes beside the seed."""
    kinds = inspect.signature(find_policy(name)).parameters.values()
    return [p.name for p in kinds if p.kind is inspect.Parameter.KEYWORD_ONLY and p.name != "seed"]


def schedule(
    policy: str, A: sp.csr_array, B: sp.csr_array, design: Machine, *, seed: int = 0, **options: Any
) -> Scheme:
    """Let a policy decide, check that the design can run what it chose, and note how long it took.

    ``policy`` of the result is the name of the policy that decided, also where ``auto`` was asked for.
    """
    chooser = find_policy(policy)
    if A.shape[1] != B.shape[0]:
        raise ValueError(f"A has {A.shape[1]} columns but B has {B.shape[0]} rows")
    for option in options:
        if option not in option_names(policy):
            raise SchemeError(
                f"option {option}", options[option], f"one of {', '.join(option_names(policy)) or 'none'}"
            )
    began = time.perf_counter()
    scheme = chooser(A, B, design, seed=seed, **options)
    scheme = replace(scheme, seconds=time.perf_counter() - began)
    scheme.validate(design, A.shape[0], B.shape[1], A.shape[1])
    return scheme
