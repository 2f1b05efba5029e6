"""The section ``mapper``: what a search looks for, and when it ends."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .document import Document
from .fields import Count, Name, Names, Section, validated

__all__ = ["EVALUATIONS", "OBJECTIVES", "WHOLE", "Settings", "read_settings"]

OBJECTIVES = ("delay", "energy", "edp")
# Where nothing limits the number of mappings: a space of so many is gone through, of a larger one so many are evaluated.
WHOLE = 100_000
EVALUATIONS = 10_000
# Searches that go through the mappings one after another.
IN_ORDER = ("exhaustive", "linear", "linear_pruned")
ALGORITHMS = (*IN_ORDER, "random", "random_pruned", "hybrid")


@dataclass(frozen=True)
class Settings:
    """evaluations, seconds: limits; None: by the size of the space, and no limit. victory: ends after so many valid mappings in a
    row that are no better, 0: never. timeout: ends after so many invalid ones in a row, 0: never. in_order: goes through the
    mappings one after another."""

    objectives: tuple[str, ...] = ("edp",)
    evaluations: int | None = None
    seconds: float | None = None
    victory: int = 0
    timeout: int = 0
    seed: int = 0
    in_order: bool = False


class _Mapper(Section):
    """The published tool's keys; those that only steer its threads and its printing are passed over."""

    optimization_metrics: Names = ()
    optimization_metric: Names = ()
    algorithm: Name = "hybrid"
    search_size: Count = 0
    victory_condition: Count = 0
    timeout: Count = 0
    num_threads: Any = None
    live_status: Any = None
    diagnostics: Any = None
    penalize_consecutive_bypass_fails: Any = None
    emit_whoop_nest: Any = None
    sync_interval: Any = None
    log_stats: Any = None
    log_suboptimal: Any = None
    log_oaves: Any = None
    log_all: Any = None
    filter_revisits: Any = None
    max_permutations_per_if_visit: Any = None
    version: Any = None


def read_settings(document: Document, names: Mapping[str, Any]) -> Settings:
    """Raises SpecError."""
    found = validated(_Mapper, document.content.get("mapper") or {}, document, ("mapper",), names)
    key = "optimization_metrics" if found.optimization_metrics else "optimization_metric"
    objectives = tuple(name.lower() for name in getattr(found, key))
    for name in objectives:
        if name not in OBJECTIVES:
            raise document.error(("mapper", key), f"must be of {', '.join(OBJECTIVES)}", name)
    algorithm = found.algorithm.replace("-", "_")
    if algorithm not in ALGORITHMS:
        raise document.error(("mapper", "algorithm"), f"must be one of {', '.join(ALGORITHMS)}", found.algorithm)
    return Settings(
        objectives=objectives or ("edp",),
        evaluations=found.search_size or None,
        victory=found.victory_condition,
        timeout=found.timeout,
        in_order=algorithm in IN_ORDER,
    )
