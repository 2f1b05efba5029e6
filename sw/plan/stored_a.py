"""A in a format that the accelerator converts on its way in: which bytes it has, and how often they are read."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sw.formats.csr import Csr
from sw.formats.sparse_tensor import SparseTensor
from sw.formats.storage_format import StorageFormat, pack
from sw.formats.stored_matrix import Matrix

__all__ = ["StoredA"]


@dataclass(frozen=True, kw_only=True)
class StoredA:
    """``form``: the format, with its parameters. ``kept``: where the bits of A lie."""

    form: StorageFormat
    kept: Matrix

    def memory(self, a: Csr) -> dict[str, NDArray[np.uint8]]:
        """The bytes of each region, by its name."""
        packed = pack(self.kept.layout, self.form.encode(SparseTensor.from_csr(a)))
        return {name: data.view(np.uint8) for name, data in packed.items()}
