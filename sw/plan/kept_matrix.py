"""A matrix in a format that the accelerator converts on its way: which bytes it has."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sw.formats.csr import Csr
from sw.formats.sparse_tensor import SparseTensor
from sw.formats.storage import storage_format
from sw.formats.storage.rlc import Rlc
from sw.formats.storage_format import Layout, StorageFormat, pack, places, unpack
from sw.formats.stored_matrix import Matrix

__all__ = ["KeptMatrix"]


@dataclass(frozen=True, kw_only=True)
class KeptMatrix:
    """``form``: the format, with its parameters. ``kept``: where the bits of the matrix lie."""

    form: StorageFormat
    kept: Matrix

    @classmethod
    def of(cls, matrix: Csr, kind: str, **options: Any) -> "KeptMatrix":
        """``kind``: name of the format. ``options``: its parameters."""
        form, tensor = storage_format(kind, **options), SparseTensor.from_csr(matrix)
        layout = form.layout(tensor.shape, form.counts(tensor), matrix.value)
        return cls(form=form, kept=Matrix.of(kind, form, layout))

    def memory(self, matrix: Csr) -> dict[str, NDArray[np.uint8]]:
        """The bytes of each region, by its name."""
        packed = pack(self.kept.layout, self.form.encode(SparseTensor.from_csr(matrix)))
        return {name: data.view(np.uint8) for name, data in packed.items()}

    def layout(self, shape: tuple[int, int], records: int) -> Layout:
        """Of a matrix of this shape with so many records; a dense one has none."""
        return self.form.layout(shape, dict.fromkeys(("nnz", "pairs"), records), self.kept.layout.value)

    def most_records(self, shape: tuple[int, int], nonzeros: int) -> int:
        """Of a matrix with at most so many nonzeros: RLC has fillers, too."""
        fillers = places(shape) // (self.form.longest + 1) if isinstance(self.form, Rlc) else 0
        return nonzeros + fillers

    def matrix(self, shape: tuple[int, int], memory: Mapping[str, NDArray[np.uint8]], records: int) -> Csr:
        """What lies in memory, by the names of the regions. Raises FormatError where that is no matrix."""
        layout = self.layout(shape, records)
        return self.form.decode(unpack(layout, memory), shape, layout.value).to_csr()
