"""Which formats an accelerator takes: the classes of MINT's table II."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from .array import STATIONARY, STREAMED

__all__ = ["ACCELERATORS", "MATRIX_MCFS", "TENSOR_MCFS", "Accelerator"]

MATRIX_MCFS = ("dense", "rlc", "zvc", "coo", "csr", "csc")
TENSOR_MCFS = ("dense", "rlc", "zvc", "coo", "csf")

Pair = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class Accelerator:
    """Pairs of formats of A and B.

    ``mcfs``, ``acfs``: which, or None for all; ``same``: the ACFs are the MCFs; ``software``: the host converts.
    ``example``: table II's. A tensor has csf where a matrix has csr.
    """

    example: str
    mcfs: tuple[Pair, ...] | None = None
    acfs: tuple[Pair, ...] | None = None
    same: bool = False
    software: bool = False

    def pairs(self, order: int) -> Iterator[tuple[Pair, Pair]]:
        """MCFs and ACFs of A and B, for A of this order."""
        rename = {"csr": "csf"} if order == 3 else {}
        acfs = [(rename.get(a, a), b) for a, b in self.acfs or product(STREAMED[2], STATIONARY)]
        mcfs = [(rename.get(a, a), b) for a, b in self.mcfs or ()]
        if not mcfs:
            mcfs = list(product(MATRIX_MCFS if order == 2 else TENSOR_MCFS, MATRIX_MCFS))
        for mcf, acf in product(mcfs, acfs):
            if mcf == acf or not self.same:
                yield mcf, acf

    @property
    def output(self) -> str | None:
        """The one format that O leaves in; any where None."""
        return None if self.mcfs is None else "dense"


_DENSE = ("dense", "dense")
_EIE = (("csr", "dense"), ("dense", "csc"))
_EITHER = (*_EIE, _DENSE, ("csr", "csc"))
ACCELERATORS = {
    "flexible": Accelerator(example="MINT"),
    "tpu": Accelerator(example="TPUv1", mcfs=(_DENSE,), acfs=(_DENSE,), same=True),
    "eie": Accelerator(example="EIE", mcfs=_EIE, acfs=_EIE, same=True),
    "sigma": Accelerator(example="SIGMA", mcfs=(("zvc", "zvc"),), acfs=(("csr", "dense"), ("dense", "csc"), _DENSE)),
    "extensor": Accelerator(example="ExTensor", mcfs=_EITHER, acfs=_EITHER, same=True),
    "nvdla": Accelerator(
        example="NVDLA", mcfs=(("zvc", "zvc"), ("zvc", "dense"), ("dense", "zvc"), _DENSE), acfs=(_DENSE,)
    ),
    "sw": Accelerator(example="Intel MKL, cuSPARSE", software=True),
}
