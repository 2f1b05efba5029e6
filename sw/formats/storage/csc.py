"""CSC: where each column begins, and the row and value of each entry."""

from ..compressed import Compressed

__all__ = ["FORMAT", "Csc"]


class Csc(Compressed):
    """``col_ptrs``, ``row_ids``, ``values``. Stored zeros stay."""

    rank = 1


FORMAT = Csc
