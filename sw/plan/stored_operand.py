"""An operand in a format that the accelerator converts on its way in: which bytes it has, and how often they are read."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sw.formats.csr import Csr
from sw.formats.sparse_tensor import SparseTensor
from sw.formats.storage import storage_format
from sw.formats.storage_format import StorageFormat, pack
from sw.formats.stored_matrix import Matrix

__all__ = ["StoredOperand"]


@dataclass(frozen=True, kw_only=True)
class StoredOperand:
    """``form``: the format, with its parameters. ``kept``: where the bits of the operand lie."""

    form: StorageFormat
    kept: Matrix

    @classmethod
    def of(cls, operand: Csr, kind: str, **options: Any) -> "StoredOperand":
        """``kind``: name of the format. ``options``: its parameters."""
        form, tensor = storage_format(kind, **options), SparseTensor.from_csr(operand)
        layout = form.layout(tensor.shape, form.counts(tensor), operand.value)
        return cls(form=form, kept=Matrix.of(kind, form, layout))

    def memory(self, operand: Csr) -> dict[str, NDArray[np.uint8]]:
        """The bytes of each region, by its name."""
        packed = pack(self.kept.layout, self.form.encode(SparseTensor.from_csr(operand)))
        return {name: data.view(np.uint8) for name, data in packed.items()}
