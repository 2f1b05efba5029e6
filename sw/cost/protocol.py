"""What a tiling policy is: operands and a design in, a tile scheme out."""

from typing import Any, Protocol

import scipy.sparse as sp

from sw.scheme.scheme import Scheme
from sw.scheme.terms import Hardware

__all__ = ["Machine", "Policy"]


class Machine(Hardware, Protocol):
    """What policies and their cost model ask of ``gen.design.Design``."""

    @property
    def pe(self) -> Any:
        """``count``, ``merge_radix``, ``leaf_lines``, ``queue_lines``."""

    @property
    def scratch_slots(self) -> int:
        """Rows of more leaves than a job takes that may be under way."""

    @property
    def axi(self) -> Any:
        """``data_bits``."""

    @property
    def clock(self) -> Any:
        """``mhz``."""

    @property
    def dram(self) -> Any:
        """``bandwidth_gbps``, ``latency_ns``."""


class Policy(Protocol):
    """``A`` is I x K, ``B`` is K x J, both canonical CSR; the scheme returned validates against ``design``.

    ``seed`` is the only source of chance. Options are the policy's own, keyword-only, and have defaults.
    """

    def __call__(
        self, A: sp.csr_array, B: sp.csr_array, design: Machine, *, seed: int = 0, **options: Any
    ) -> Scheme: ...
