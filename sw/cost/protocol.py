"""What a tiling policy is: operands and a design in, a tile scheme out."""

from typing import Any, Protocol

import scipy.sparse as sp

from sw.scheme.scheme import Scheme
from sw.scheme.terms import Hardware
from sw.timing.pace import TimedDesign

__all__ = ["Machine", "Policy"]


class Machine(Hardware, TimedDesign, Protocol):
    """What policies and their cost model ask of ``gen.design.Design``."""


class Policy(Protocol):
    """``A`` is I x K, ``B`` is K x J, both canonical CSR; the scheme returned validates against ``design``.

    ``seed`` is the only source of chance. Options are the policy's own, keyword-only, and have defaults.
    """

    def __call__(
        self, A: sp.csr_array, B: sp.csr_array, design: Machine, *, seed: int = 0, **options: Any
    ) -> Scheme: ...
