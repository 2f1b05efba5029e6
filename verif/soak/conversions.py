"""Conversions of a case: operands and results of its products in other formats, through the design's converter, bit for bit."""

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sw.formats.sparse_tensor import SparseTensor
from sw.formats.storage import storage_format
from sw.runtime.conversion import Sides, expected_conversion, golden_image, own_format
from sw.runtime.converter import SOURCES
from sw.runtime.simulation.converter import run_converter
from sw.runtime.simulation.engine import HardwareStuck
from sw.runtime.simulation.loader import BusTiming

if TYPE_CHECKING:
    from gen.design import Design
    from sw.formats.csr import Csr
    from sw.formats.storage_format import StorageFormat

__all__ = ["MOST_BYTES", "Kept", "convert", "draw_conversions"]

# Tensors of a case that are converted.
COUNTS = {0: 4, 1: 4, 2: 2}
# Takes seconds at the rate of any memory that is drawn.
MOST_BYTES = 1 << 19


@dataclass(frozen=True)
class Kept:
    """A tensor of product number ``product`` and the format that it is kept in.

    Parameters
    ----------
    tensor: ``A``, ``B`` or ``C``; C is converted to the format, the others from it.
    formats: by preference; the first in which the tensor is not too large is taken.
    run_bits: of RLC.
    timing: of the memory.
    """

    product: int
    tensor: str
    formats: tuple[str, ...]
    run_bits: int
    timing: BusTiming

    @property
    def text(self) -> str:
        """For people."""
        return f"{self.tensor} of product {self.product} {'to' if self.tensor == 'C' else 'from'} {self.formats[0]}"

    def form(self, matrix: "Csr") -> "tuple[str, StorageFormat] | None":
        """Name and format, None where the tensor is too large in each."""
        tensor = SparseTensor.from_csr(matrix)
        for kind in self.formats:
            form = storage_format(kind, **({"run_bits": self.run_bits} if kind == "rlc" else {}))
            if form.layout(tensor.shape, form.counts(tensor), tensor.value).bytes <= MOST_BYTES:
                return kind, form
        return None


def draw_conversions(design: "Design", products: int, rng: random.Random) -> tuple[Kept, ...]:
    """None on designs whose records are not packed: their converter writes what the accelerator does not read."""
    if design.memory.records != "packed":
        return ()
    (count,) = rng.choices(tuple(COUNTS), tuple(COUNTS.values()))
    return tuple(_draw(design, products, rng) for _ in range(count))


def _draw(design: "Design", products: int, rng: random.Random) -> Kept:
    product, tensor = rng.randrange(products), rng.choice("ABC")
    kinds = [kind for kind in SOURCES if kind != own_format(design, tensor)]
    return Kept(
        product=product,
        tensor=tensor,
        formats=tuple(rng.sample(kinds, len(kinds))),
        run_bits=rng.choice((1, 3, 5, 8)),
        timing=_timing(rng),
    )


def _timing(rng: random.Random) -> BusTiming:
    """A memory whose beats take dozens of cycles at most: a conversion has a budget of cycles."""
    return BusTiming(
        read_latency=rng.choice((1, 5, 20)),
        write_latency=rng.choice((1, 5, 20)),
        jitter=rng.choice((0, 0, 10)),
        write_jitter=rng.choice((0, 0, 10)),
        outstanding=rng.choice((1, 4, 64)),
        beats_per_cycle=rng.choice((0.3, 1.0, 2.0)),
        stall=rng.choice((0.0, 0.0, 0.1, 0.4)),
        reorder=rng.random() < 0.5,
        seed=rng.randint(0, 2**31),
    )


def convert(design: "Design", kept: Kept, matrix: "Csr") -> tuple[str, list[str]]:
    """The format that was taken, and what is not right. ``matrix``: the tensor."""
    found = kept.form(matrix)
    if found is None:
        return "too large", []
    kind, form = found
    stored = matrix if form.keeps_zeros else matrix.without_zeros()
    sides = Sides.of(stored, kind, form, own=own_format(design, kept.tensor), leaves=kept.tensor == "C")
    image, wanted = golden_image(design, sides)
    try:
        run = run_converter(design, image, timing=kept.timing)
    except HardwareStuck as stuck:
        return kind, [str(stuck)]
    problems = [] if run.error is None else [run.error]
    problems += [f"bytes of {n} differ" for n, data in image.written().items() if not np.array_equal(data, wanted[n])]
    expected = expected_conversion(design, sides)
    for what in ("entries", "read_bytes", "written_bytes", "passes"):
        one, other = getattr(run, what), getattr(expected, what)
        if one != other:
            problems.append(f"{what}: hardware {one}, model {other}")
    return kind, problems
