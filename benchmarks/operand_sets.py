"""Operands that a benchmark takes where none are named, for which nothing has to be downloaded; their names; means over them."""

import math
from collections.abc import Iterable
from pathlib import Path

__all__ = ["INSTALLED", "MIXED", "geometric_mean", "name_of"]

# Real matrices that install with the package, and an exactly generated one.
INSTALLED = (
    "pyamg:airfoil",
    "pyamg:bar",
    "pyamg:knot",
    "pyamg:recirc_flow",
    "pyamg:unit_cube",
    "pyamg:local_disc_galerkin_diffusion",
    "mycielskian:9",
)
# Meshes, a finite-element matrix, a graph of long rows, a power-law graph, a band: 10^3 to 10^6 nonzeros.
MIXED = (
    "pyamg:airfoil",
    "pyamg:bar",
    "pyamg:local_disc_galerkin_diffusion",
    "mycielskian:11",
    "rmat:14:16:seed=1",
    "banded:20000:40:density=0.5:seed=1",
)


def name_of(operand: str) -> str:
    """What stands in a table: a file's stem, or what was asked for."""
    return Path(operand).stem if "/" in operand else operand


def geometric_mean(values: Iterable[float]) -> float:
    """Not a number where there are no values."""
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan
