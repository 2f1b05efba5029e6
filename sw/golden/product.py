"""The golden product of a design: in the order of additions of its intra-tile dataflow."""

from typing import Any

from sw.formats.csr import Csr

from .spgemm import Product, TileShape, multiply
from .stationary_product import bus_words, multiply_stationary
from .tuned_walk import TunedWalk

__all__ = ["product_of"]


def product_of(pe: Any, a: Csr, b: Csr, scheme: TileShape, walk: TunedWalk | None = None) -> Product:
    """``C = A x B`` as a design with these processing elements (``gen.design.Pe``) computes it.

    Parameters
    ----------
    scheme: its ``T_j`` and ``T_k``. walk: the tiles, where their shape was tuned; ``scheme`` is then ignored.
    """
    if pe.dataflow == "weight_stationary":
        bus: dict[str, Any] = {"acf": pe.acf_a, "words": bus_words(pe.acf_a, pe.vector), "vector": pe.vector}
        return multiply_stationary(a, b, value=pe.arithmetic, tile_k=scheme.T_k, **bus)
    return multiply(a, b, pe.merge_radix, pe.arithmetic, scheme, walk)
