"""Operands and result in other formats than the accelerator's: conversions before and after a run, and what they cost.

MINT (section IV) keeps tensors in memory in one format and computes in another. Here the accelerator computes from packed CSR,
or CSC of B where its fibers are columns. The format converter makes these of A and B, and makes of C what is asked for; each
conversion is a pass of its own over memory.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sw.formats.compactness import expected_counts
from sw.formats.csr import Csr
from sw.formats.memory_csr import WORD_BITS, memory_csr
from sw.formats.sparse_tensor import SparseTensor
from sw.formats.storage import storage_format
from sw.formats.storage.rlc import Rlc
from sw.formats.storage_format import Field, Layout, Region, StorageFormat
from sw.plan.kept_matrix import KeptMatrix
from sw.sage.constants import Constants
from sw.sage.conversion import conversion_energy
from sw.scheme.terms import B_BY_COLUMNS

from .converter import Conversion, ConverterImage, Matrix, converter_image, entry_bytes, sorting

if TYPE_CHECKING:
    from gen.design import Design

__all__ = ["Sides", "StoredTensor", "estimated_departure", "expected_conversion", "golden_image", "own_format"]

# Cycles of a conversion beside those of its beats. Of each pass that sorts: for itself, for each value of its digit, and for each
# entry, in the SRAM or in memory. Found on airfoil, qiulp, cage10, p2p-Gnutella31 and ten random matrices on `edge`.
START_CYCLES, PASS_CYCLES, DIGIT_CYCLES = 65, 100, 1
SRAM_ENTRY_CYCLES, MEMORY_ENTRY_CYCLES = 0.8, 0.08

Bytes = NDArray[np.uint8]


@dataclass(frozen=True, kw_only=True)
class StoredTensor:
    """How a tensor of a run is kept in memory.

    Parameters
    ----------
    tensor: ``A``, ``B`` or ``C``. format: that it is kept in. bits: of the tensor in it.
    conversion: from that format to the accelerator's, of C the other way; None where there is no such pass over memory.
    overlapped: the accelerator converts it itself, on its way in.
    energy_pJ: of its conversion, as often as it is converted; 0 where the host does it, or nobody.
    """

    tensor: str
    format: str
    bits: int
    conversion: Conversion | None
    overlapped: bool = False
    energy_pJ: float = 0.0

    @property
    def bytes(self) -> int:
        return -(-self.bits // 8)


@dataclass(frozen=True, kw_only=True)
class Sides:
    """Where the bits of a matrix lie before and after a conversion; where both formats are one, there is none.

    Parameters
    ----------
    form: of the side that is not the accelerator's. leaves: that side is the target, not the source.
    """

    matrix: Csr
    form: StorageFormat
    leaves: bool
    kept: Matrix
    accelerated: Matrix

    @classmethod
    def of(cls, matrix: Csr, kind: str, form: StorageFormat, *, own: str, leaves: bool) -> "Sides":
        """``kind``: name of the format. ``own``: of the accelerator's (:func:`own_format`)."""
        tensor = SparseTensor.from_csr(matrix)
        kept, accelerated = _both(kind, form, own, tensor.shape, form.counts(tensor), matrix.nnz, matrix.value)
        return cls(matrix=matrix, form=form, leaves=leaves, kept=kept, accelerated=accelerated)

    @property
    def converts(self) -> bool:
        return self.kept.kind != self.accelerated.kind

    @property
    def energy_pJ(self) -> float:
        """Of the conversion, by MINT's building blocks."""
        source, target = self.source.kind, self.target.kind
        pairs = self.form.counts(SparseTensor.from_csr(self.matrix)).get("pairs", 0)
        return conversion_energy(
            (self.matrix.rows * self.matrix.columns, self.matrix.nnz, pairs),
            source,
            target,
            self.matrix.value,
            Constants(),
            reorders="csc" in (source, target),
        )

    @property
    def source(self) -> Matrix:
        return self.accelerated if self.leaves else self.kept

    @property
    def target(self) -> Matrix:
        return self.kept if self.leaves else self.accelerated


def own_format(design: "Design", tensor: str) -> str:
    """What the accelerator reads of A and B, and writes of C."""
    return "csc" if tensor == "B" and design.pe.dataflow in B_BY_COLUMNS else "csr"


def _both(
    kind: str, form: StorageFormat, own: str, shape: tuple[int, ...], counts: Mapping[str, int], nnz: int, value: str
) -> tuple[Matrix, Matrix]:
    """A matrix in a format, and as the accelerator has it. ``counts``: the format's own."""
    read = storage_format(own)
    pointers, entries = read.layout(shape, {"nnz": nnz}, value).regions
    (field,) = pointers.fields
    wide = Region(pointers.name, pointers.count, (Field(field.array, WORD_BITS),))
    accelerated = Matrix.of(own, read, Layout(value, (wide, entries)))
    kept = accelerated if kind == own else Matrix.of(kind, form, form.layout(shape, counts, value))
    return kept, accelerated


def golden_image(design: "Design", sides: Sides) -> tuple[ConverterImage, dict[str, Bytes]]:
    """Memory and registers of a conversion, and the bytes that it should leave in each region of its target."""
    memories = [_memory(sides, side) for side in (sides.source, sides.target)]
    image = converter_image(design, sides.matrix.shape, sides.source, sides.target, memories[0])
    return image, memories[1]


def _memory(sides: Sides, side: Matrix) -> dict[str, Bytes]:
    """The bytes of each region; those of the accelerator's format as its memory image has them."""
    if side is not sides.accelerated:
        return KeptMatrix(form=sides.form, kept=side).memory(sides.matrix)
    matrix = sides.matrix.transposed() if side.kind == "csc" else sides.matrix
    ends = matrix.pointers[1:].astype(np.uint32)
    arrays = memory_csr(True, matrix.value, matrix.columns).pack(ends, matrix.coordinates, matrix.bits)
    return {
        region.name: np.ascontiguousarray(arrays[array]).view(np.uint8)[: region.bytes]
        for region, array in zip(side.layout.regions, ("pointers", "elements"), strict=True)
    }


def expected_conversion(design: "Design", sides: Sides) -> Conversion:
    """What the converter moves and how long it takes. Bytes are exact."""
    matrix = sides.matrix
    keys = matrix.coordinates.astype(np.int64)
    if sides.source.kind == "csc":
        keys = np.repeat(np.arange(matrix.rows, dtype=np.int64), np.diff(matrix.pointers))
    return _expected(design, matrix.shape, sides.source, sides.target, matrix.value, keys)


def estimated_departure(
    design: "Design", kind: str, form: StorageFormat, shape: tuple[int, int], nnz: int
) -> Conversion:
    """:func:`expected_conversion` of C before it is known, from so many nonzeros that lie evenly.

    ``kind``: name of the format that it leaves in.
    """
    longest = {"longest": form.longest} if isinstance(form, Rlc) else {}
    counts = expected_counts(kind, shape, nnz / (shape[0] * shape[1]), **longest)
    kept, accelerated = _both(kind, form, own_format(design, "C"), shape, counts, nnz, design.pe.value)
    return _expected(design, shape, accelerated, kept, design.pe.value, np.arange(nnz, dtype=np.int64) % shape[1])


def _expected(
    design: "Design", shape: tuple[int, int], source: Matrix, target: Matrix, value: str, keys: NDArray[np.int64]
) -> Conversion:
    """Entries that change their order go to the SRAM once, or are read twice from the source, once to count them.

    A dense source does not say beforehand how many they are: it is read twice whatever the SRAM holds.

    What a pass writes to scratch memory is written bucket by bucket: a beat that buckets share is written by each. ``keys``: of
    each entry, what it is sorted by.
    """
    beat = design.bus_bytes
    read, written = (side.beats(beat) for side in (source, target))
    digit_bits, passes, scratch_bytes = sorting(design, shape, source, target)
    entry_cycles = passes * (MEMORY_ENTRY_CYCLES if scratch_bytes else SRAM_ENTRY_CYCLES)
    if scratch_bytes or (passes and source.kind == "dense"):
        read *= 2
    if scratch_bytes:
        size = entry_bytes(shape, value)
        for number in range(passes):
            counts = np.bincount(keys >> (number * digit_bits) & ((1 << digit_bits) - 1))
            ends = np.cumsum(counts[counts > 0]) * size
            starts = np.concatenate([[0], ends[:-1]])
            written += int((-(-ends // beat) - starts // beat).sum())
            read += -(-len(keys) * size // beat)
    cycles = read + written + START_CYCLES + passes * (PASS_CYCLES + (DIGIT_CYCLES << digit_bits))
    cycles += round(entry_cycles * len(keys))
    return Conversion(
        error=None,
        cycles=cycles,
        entries=len(keys),
        read_bytes=read * beat,
        written_bytes=written * beat,
        passes=passes,
    )
