"""Schemes of outer and inner products, from shares of the buffer and what is kept in them."""

from sw.cost.protocol import Machine
from sw.scheme.dataflow_rules import check
from sw.scheme.errors import SchemeError
from sw.scheme.scheme import Scheme
from sw.scheme.shares import rest_to_largest
from sw.scheme.terms import BUFFERING, STREAMING, TENSORS

__all__ = ["scheme_of_shares"]


def scheme_of_shares(
    policy: str, design: Machine, order: str, tile: dict[str, int], shares: dict[str, float], kept: set[str]
) -> Scheme | None:
    """None where it is not legal."""
    parts, fifo = rest_to_largest(design, shares)
    scheme = Scheme(
        policy=policy,
        order=order,
        T_i=tile["i"],
        T_j=tile["j"],
        T_k=tile["k"],
        buffer_bytes=parts,
        fifo_bytes=fifo,
        mode={tensor: BUFFERING if tensor in kept else STREAMING for tensor in TENSORS},
    )
    try:
        check(scheme, design)
    except SchemeError:
        return None
    return scheme
