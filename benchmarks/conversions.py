"""Cycles of the converter between all of its formats, beside the cycles in which the bus moves the bytes.

    python -m benchmarks.conversions [--config edge] [--value fp32] [--docs PAGE] [OPERAND...]

Operands as in ``fiberloom convert``; without any, a random matrix of ``--size`` and ``--density`` and a random tensor of order 3
with as many places. Each result is compared with the golden conversion, byte for byte. ``passes``: through scratch memory,
``sram`` where it was not needed. ``roofline``: cycles in which the bus moves those bytes, in shares of the cycles; ``once``:
those in which it moves source and target once.
"""

import sys
from collections.abc import Sequence

import numpy as np

from benchmarks.table_markers import PrintedTable, benchmark_parser
from gen.design import Design, load_design
from sw.cli.convert_input import load_tensor
from sw.formats.csr import VALUE_DTYPES
from sw.formats.sparse_tensor import SparseTensor
from sw.formats.storage import storage_format
from sw.formats.storage_format import pack, places
from sw.operands import OperandError
from sw.runtime.converter import FORMATS, MATRIX_FORMATS, PAIRS, Matrix, converter_image
from sw.runtime.result import bounds
from sw.runtime.simulation.converter import converter_library, run_converter


def random_tensor(shape: tuple[int, ...], density: float, value: str, seed: int) -> SparseTensor:
    """A tensor without stored zeros."""
    rng = np.random.default_rng(seed)
    ids = tuple(rank.astype(np.int64) for rank in np.nonzero(rng.random(shape) < density))
    values = rng.integers(1, 100, len(ids[0])).astype(VALUE_DTYPES[value])
    return SparseTensor(shape=shape, ids=ids, values=values, value=value)


def convert_all(
    printed: PrintedTable, name: str, tensor: SparseTensor, design: Design, most: int, block: tuple[int, ...]
) -> None:
    """Prints a row for each pair of formats in which the tensor takes at most so many bytes. ``block``: of BSR.

    Raises RuntimeError where a run ends with an error or its bytes are not those of the golden conversion.
    """
    library = converter_library(design)
    share = tensor.nnz / places(tensor.shape)
    sizes = " x ".join(f"{size:,}" for size in tensor.shape)
    printed.line(f"\n{name}: {sizes}, {tensor.nnz:,} nonzeros ({share:.2g}), {tensor.value}\n")
    printed.head(("from", "to", "passes", "bytes read", "bytes written", "cycles", "roofline", "once"), texts=2)
    sides, packed = {}, {}
    pairs = [pair for pair in PAIRS if (pair[1] in MATRIX_FORMATS) == (tensor.order == 2)]
    kinds = [kind for kind in FORMATS if any(kind in pair for pair in pairs)]
    for kind in kinds:
        form = storage_format(kind, **({"block": block} if kind == "bsr" else {}))
        layout = form.layout(tensor.shape, form.counts(tensor), tensor.value)
        if sum(region.bytes for region in layout.regions) <= most:
            packed[kind] = pack(layout, form.encode(tensor))
            sides[kind] = Matrix.of(kind, form, layout)
    for source, target in (pair for pair in pairs if {*pair} <= {*sides}):
        image = converter_image(design, tensor.shape, sides[source], sides[target], packed[source])
        run = run_converter(design, image, library=library)
        if run.error is not None:
            raise RuntimeError(f"{name}, {source} to {target}: {run.error}")
        wrong = [part for part, data in image.written().items() if (data != packed[target][part].view(np.uint8)).any()]
        if wrong:
            raise RuntimeError(f"{name}, {source} to {target}: {', '.join(wrong)} differ")
        moved = run.read_bytes + run.written_bytes
        once = sum(len(data) for _, data in image.source.values())
        once += sum(-(-region.bytes // design.bus_bytes) for region in image.target_layout.regions) * design.bus_bytes
        shares = [f"{bounds(design, 0, part)['dram'] / run.cycles:.3f}" for part in (moved, once)]
        passes = ("sram" if not image.scratch else str(run.passes)) if run.passes else ""
        counts = (f"{count:,}" for count in (run.read_bytes, run.written_bytes, run.cycles))
        printed.row((source, target, passes, *counts, *shares))
    if left_out := [kind for kind in kinds if kind not in sides]:
        printed.line(f"\nMore than {most >> 20} MiB: {', '.join(left_out)}.")


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table of ``docs/blocks/converter.md``."""
    parser = benchmark_parser(__file__, __doc__)
    parser.add_argument("operands", nargs="*", metavar="OPERAND")
    parser.add_argument("--config", default="edge")
    parser.add_argument("--size", type=int, default=500)
    parser.add_argument("--density", type=float, default=0.05)
    parser.add_argument("--value")
    parser.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE", help="of the design")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--block", nargs=2, type=int, default=(4, 4), metavar=("ROWS", "COLUMNS"), help="of BSR")
    parser.add_argument("--most-mib", type=int, default=16, help="formats in which a matrix takes more are left out")
    given = parser.parse_args(arguments)
    printed = PrintedTable(parser, given)
    design = load_design(given.config, given.set + ([f"pe.value={given.value}"] if given.value else []))
    value, block = design.pe.value, tuple(given.block)
    try:
        if not given.operands:
            for order in (2, 3):
                side = round(given.size ** (2 / order))
                tensor = random_tensor((side,) * order, given.density, value, given.seed)
                convert_all(printed, "random", tensor, design, given.most_mib << 20, block)
        for operand in given.operands:
            name, tensor, _ = load_tensor(operand, value, as_stored=False)
            convert_all(printed, name, tensor.without_zeros(), design, given.most_mib << 20, block)
    except (OperandError, RuntimeError) as error:
        print(error, file=sys.stderr)
        return 2 if isinstance(error, OperandError) else 1
    printed.write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
