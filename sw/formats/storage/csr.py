"""CSR: where each row begins, and the column and value of each entry."""

from ..compressed import Compressed

__all__ = ["FORMAT", "Csr"]


class Csr(Compressed):
    """``row_ptrs``, ``col_ids``, ``values``. Stored zeros stay."""

    rank = 0


FORMAT = Csr
