"""Cycles of the converter between all formats of a random matrix: ``python -m benchmarks.conversions``."""

import argparse

import numpy as np

from gen.design import load_design
from sw.formats.csr import VALUE_DTYPES
from sw.formats.sparse_tensor import SparseTensor
from sw.formats.storage import storage_format
from sw.formats.storage_format import pack
from sw.runtime.converter import FORMATS, Matrix, converter_image
from sw.runtime.result import bounds
from sw.runtime.simulation.converter import converter_library, run_converter


def random_matrix(size: int, density: float, value: str, seed: int) -> SparseTensor:
    """A square matrix without stored zeros."""
    rng = np.random.default_rng(seed)
    rows, columns = np.nonzero(rng.random((size, size)) < density)
    values = rng.integers(1, 100, len(rows)).astype(VALUE_DTYPES[value])
    ids = rows.astype(np.int64), columns.astype(np.int64)
    return SparseTensor(shape=(size, size), ids=ids, values=values, value=value)


def main() -> None:
    """Prints the table of ``docs/blocks/converter.md``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", default="edge")
    parser.add_argument("--size", type=int, default=500)
    parser.add_argument("--density", type=float, default=0.05)
    parser.add_argument("--value")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    design = load_design(given.config, [f"pe.value={given.value}"] if given.value else [])
    value = design.pe.value
    matrix = random_matrix(given.size, given.density, value, given.seed)
    library = converter_library(design)
    print(f"{given.size} x {given.size}, {matrix.nnz:,} nonzeros, {value}, {design.axi.data_bits} bits\n")
    print("| from | to | bytes read | bytes written | cycles | roofline |", "|---|---|---:|---:|---:|---:|", sep="\n")
    for source in FORMATS:
        for target in FORMATS:
            sides, memory = [], []
            for kind in (source, target):
                form = storage_format(kind)
                layout = form.layout(matrix.shape, form.counts(matrix), value)
                memory.append(pack(layout, form.encode(matrix)))
                sides.append(Matrix(kind=kind, layout=layout, run_bits=getattr(form, "run_bits", 1)))
            image = converter_image(design, (given.size, given.size), sides[0], sides[1], memory[0])
            run = run_converter(design, image, library=library)
            if run.error is not None:
                raise SystemExit(f"{source} to {target}: {run.error}")
            wrong = [name for name, data in image.written().items() if (data != memory[1][name].view(np.uint8)).any()]
            if wrong:
                raise SystemExit(f"{source} to {target}: {', '.join(wrong)} differ")
            share = bounds(design, 0, run.read_bytes + run.written_bytes)["dram"] / run.cycles
            moved = f"{run.read_bytes:,} | {run.written_bytes:,}"
            print(f"| {source} | {target} | {moved} | {run.cycles:,} | {share:.3f} |", flush=True)


if __name__ == "__main__":
    main()
