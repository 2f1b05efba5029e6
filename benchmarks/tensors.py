"""TTM and MTTKRP on the machine of D2T2's paper: exact traffic of its tiles against square ones (table 4), and prediction errors.

    python -m benchmarks.tensors [--buffer 131072] [--errors] [--searched] [--json FILE] [--docs PAGE] [TENSOR...]

The matrices are even noise of 1 % (``--density``), sized as in section 6.3: l x max(i, j) for TTM, k x i and l x i for MTTKRP.
``uniform``: the conservative cube. ``wide``: that, with as much of the free rank as a dense tile leaves room for.
``before``: D2T2's shape chosen before it grows, as in the paper. ``d2t2``: chosen after. ``searched``: the least exact traffic
of all shapes that d2t2 looks at, each grown. Without TENSOR: tensors made in the proportions of the paper's four, with slices as
uneven as the exponent says; they are stand-ins, not those tensors.
"""

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.operand_sets import geometric_mean
from benchmarks.table_markers import PrintedTable, benchmark_parser
from sw.operands import load
from sw.operands.load_tensor import load_tensor
from sw.stats.csf import WORD_BYTES
from sw.stats.pattern import Pattern
from sw.tensor.kernels import KERNELS, TTM, Problem, Sides, TensorKernel
from sw.tensor.model import TensorTrafficModel
from sw.tensor.policies import COARSE, d2t2, grown, prescient, shapes, uniform
from sw.tensor.scheme import statistics
from sw.tensor.traffic import tensor_traffic

# Uber3 has its own size; Chicago-crime3 a quarter of its first rank and of its nonzeros, the others half of each rank and a
# quarter of the nonzeros, so that all of it takes minutes.
STAND_INS = {
    "tensor:1547:78:33:649300:exponent=0.3:values=one": "Chicago-crime3",
    "tensor:183:1140:1717:1117629:exponent=0.5:values=one": "Uber3",
    "tensor:752:21195:19993:184484:exponent=0.7:values=one": "Facebook",
    "tensor:1242:1432:7154:775402:exponent=0.7:values=one": "Nips3",
}
# The paper takes 0.1 % where 1 % was too slow for it.
THINNER = {"Nips3": 0.001}
# Its table 4.
PAPER = {
    "ttm": {"Chicago-crime3": 1.43, "Uber3": 1.22, "Facebook": 24.34, "Nips3": 12.68},
    "mttkrp": {"Chicago-crime3": 1.72, "Uber3": 1.05, "Facebook": 15.49, "Nips3": 34.31},
}
REORDER = range(-1, 4)  # RF 1/2 to 8


def problem(kernel: TensorKernel, spec: str, density: float) -> Problem:
    """The tensor with random matrices."""
    tensor = load_tensor(spec)
    first, second, third = tensor.shape
    free = max(first, second) if kernel is TTM else first
    matrices = tuple(
        Pattern.of(load(f"uniform:{tensor.shape[rank]}:{free}:{density}:seed={rank}:values=one").matrix)
        for rank in kernel.contracted
    )
    return Problem(kernel, (first, second, third), tensor.coordinates, matrices)


def reordered(task: Problem, T: int, power: int) -> Sides:
    """{i: T RF, j: T, l: T / RF} and {l: T / RF, k: T RF}: tiles of one size, of another shape."""
    long, short = int(T * 2.0**power), max(1, int(T * 2.0**-power))
    first, second, third, free = (
        min(side, size) for side, size in zip((long, T, short, long), task.extent, strict=True)
    )
    return first, second, third, free


def measure(
    kernel: TensorKernel, spec: str, density: float, buffer: int, *, errors: bool, searched: bool
) -> dict[str, Any]:
    """Bytes of each kind of tiles, their sides, what was predicted, and seconds."""
    task = problem(kernel, spec, density)
    words = buffer // WORD_BYTES
    model, seconds = statistics(task, buffer)
    began = time.perf_counter()
    sides = {
        "uniform": uniform(task, words, model),
        "wide": shapes(task, words, model.tensor.T, [(0, 0)])[0, 0],
        "prescient": prescient(task, words, model),
        "before": d2t2(task, words, model, before=True),
    }
    marks = time.perf_counter()
    sides["d2t2"] = d2t2(task, words, model)
    spent = {"statistics": seconds, "d2t2": time.perf_counter() - marks, "others": marks - began}
    if searched:
        tried = shapes(task, words, model.tensor.T, [(p, q) for p in COARSE for q in COARSE]).values()
        wanted = {grown(task, words, shape) for shape in tried} | set(sides.values())
        exact = {shape: tensor_traffic(task, shape).total for shape in wanted}
        sides["searched"] = min(exact, key=lambda shape: exact[shape])
    found = {name: tensor_traffic(task, shape).total for name, shape in sides.items()}
    predicted = {name: model.predict(shape).total for name, shape in sides.items()}
    row = {
        "kernel": kernel.name, "tensor": spec, "extent": task.extent, "nnz": task.nnz, "density": density,
        "sides": sides, "bytes": found, "predicted": predicted, "seconds": spent,
    }  # fmt: skip
    if errors:
        row["errors"] = [error(task, model, reordered(task, model.tensor.T, power)) for power in REORDER]
    return row


def error(task: Problem, model: TensorTrafficModel, sides: Sides) -> float:
    """Predicted over exact traffic, less one."""
    return model.predict(sides).total / tensor_traffic(task, sides).total - 1


def table(rows: list[dict[str, Any]], kernel: str) -> str:
    """Traffic of the conservative cube, and how many times less the others move."""
    rows = [row for row in rows if row["kernel"] == kernel]
    kinds = [
        kind
        for kind in ("wide", "prescient", "before", "d2t2", "searched")
        if all(kind in row["bytes"] for row in rows)
    ]
    lines = [
        f"| {kernel} | nonzeros | uniform, MB | {' | '.join(kinds)} | paper | d2t2 tiles | predicted: uniform | d2t2 |"
    ]
    lines.append("| --- " * (len(kinds) + 7) + "|")
    gains: dict[str, list[float]] = {kind: [] for kind in kinds}
    for row in rows:
        name = STAND_INS.get(row["tensor"], Path(row["tensor"]).stem)
        shown = f"like {name}" if row["tensor"] in STAND_INS else name
        cells = []
        for kind in kinds:
            gains[kind].append(row["bytes"]["uniform"] / row["bytes"][kind])
            cells.append(f"{gains[kind][-1]:.2f}")
        paper = f"{PAPER[kernel][name]:.2f}" if name in PAPER[kernel] else ""
        off = [f"{row['predicted'][kind] / row['bytes'][kind] - 1:+.0%}" for kind in ("uniform", "d2t2")]
        sides = " x ".join(f"{side:,}" for side in row["sides"]["d2t2"])
        lines.append(
            f"| {shown} | {row['nnz']:,} | {row['bytes']['uniform'] / 1e6:,.0f} | {' | '.join(cells)} | {paper} | {sides} | "
            f"{' | '.join(off)} |"
        )
    means = " | ".join(f"{geometric_mean(gains[kind]):.2f}" for kind in kinds)
    lines.append(f"| **geometric mean** | | | {means} | {geometric_mean(list(PAPER[kernel].values())):.2f} | | | |")
    return "\n".join(lines)


def table_of_errors(rows: list[dict[str, Any]]) -> str:
    """How far predictions are off, by RF."""
    lines = [f"| RF | {' | '.join(f'{2.0**power:g}' for power in REORDER)} |", "| --- " * (len(REORDER) + 1) + "|"]
    for row in rows:
        name = STAND_INS.get(row["tensor"], Path(row["tensor"]).stem)
        lines.append(f"| {row['kernel']}, {name} | {' | '.join(f'{e:+.0%}' for e in row['errors'])} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints a table for each kernel."""
    parser = benchmark_parser(__file__, __doc__)
    parser.add_argument("tensors", nargs="*", default=list(STAND_INS), metavar="TENSOR")
    parser.add_argument("--buffer", type=int, default=131072, help="bytes for each input operand")
    parser.add_argument("--density", type=float, default=0.01, help="of the random matrices")
    parser.add_argument("--errors", action="store_true", help="also how far predictions are from exact traffic")
    parser.add_argument("--searched", action="store_true", help="also the best of all shapes by exact traffic")
    parser.add_argument("--json", type=Path, help="rows so far and new ones, one a line")
    options = parser.parse_args(arguments)
    printed = PrintedTable(parser, options)
    rows: list[dict[str, Any]] = []
    if options.json is not None and options.json.exists():
        rows = [json.loads(line) for line in options.json.read_text(encoding="utf-8").splitlines()]
    for spec in options.tensors:
        density = THINNER.get(STAND_INS.get(spec, ""), options.density)
        for kernel in KERNELS.values():
            if any((row["kernel"], row["tensor"]) == (kernel.name, spec) for row in rows):
                continue
            row = measure(kernel, spec, density, options.buffer, errors=options.errors, searched=options.searched)
            rows.append(row)
            print(kernel.name, spec, {kind: round(b / 1e6, 1) for kind, b in row["bytes"].items()}, file=sys.stderr)
            if options.json is not None:
                with options.json.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
    rows = [row for row in rows if row["tensor"] in options.tensors]
    for name in KERNELS:
        printed.line(table(rows, name) + "\n")
    if all("errors" in row for row in rows):
        printed.line(table_of_errors(rows))
    printed.write()


if __name__ == "__main__":
    main()
