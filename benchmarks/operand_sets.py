"""Operands that a benchmark takes where none are named: nothing has to be downloaded for them."""

__all__ = ["MIXED"]

# Meshes, a finite-element matrix, a graph of long rows, a power-law graph, a band: 10^3 to 10^6 nonzeros.
MIXED = (
    "pyamg:airfoil",
    "pyamg:bar",
    "pyamg:local_disc_galerkin_diffusion",
    "mycielskian:11",
    "rmat:14:16:seed=1",
    "banded:20000:40:density=0.5:seed=1",
)
