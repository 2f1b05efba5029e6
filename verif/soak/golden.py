"""The golden product of a multiplication of the soak, on the tiles that the machine meets."""

from gen.design import Design
from sw.formats.csr import Csr
from sw.golden.partition import Partition
from sw.golden.product import product_of
from sw.golden.spgemm import Product
from sw.golden.tuned_walk import TunedWalk, tuned_walk
from sw.scheme.scheme import Scheme

__all__ = ["golden_of", "walk_of"]


def walk_of(design: Design, a: Csr, b: Csr, scheme: Scheme) -> TunedWalk | None:
    """The tiles by their definition, where the machine tunes their shape."""
    if not scheme.tuning:
        return None
    lines, fifo = (size["B"] // design.line_bytes for size in (scheme.buffer_bytes, scheme.fifo_bytes))
    partition = Partition(lines=lines, fifo_lines=fifo, lanes=design.lanes)
    return tuned_walk((scheme.T_i, scheme.T_j, scheme.T_k), scheme.order, a, b, partition)


def golden_of(design: Design, a: Csr, b: Csr, scheme: Scheme, walk: TunedWalk | None) -> Product:
    """The product bit for bit."""
    return product_of(design.pe, a, b, scheme, walk)
