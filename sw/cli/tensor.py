"""``fiberloom tensor``: tile schemes for TTM and MTTKRP, their predicted and their exact traffic."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options

if TYPE_CHECKING:
    from sw.operands import Operand
    from sw.operands.tensors import Tensor
    from sw.tensor.kernels import Problem, TensorKernel

    from .console import Console

__all__ = ["command"]

BUFFER = 128 * 1024
DENSITY = 0.01
# Most products that `--verify` computes one by one, and most entries that it holds as a dense array.
MOST_PRODUCTS = 100_000_000
MOST_PLACES = 50_000_000
# Most products of tiles: each takes about a millisecond.
MOST_VISITS = 20_000


def command(
    kernel: Annotated[str, typer.Argument(metavar="ttm|mttkrp", help="What is computed.", show_default=False)],
    tensor: Annotated[
        str, typer.Argument(metavar="A", help="Tensor: .tns, .npz, frostt:NAME or tensor:...", show_default=False)
    ],
    first: Annotated[str | None, typer.Argument(metavar="[B]", help="Matrix; random when absent.")] = None,
    second: Annotated[str | None, typer.Argument(metavar="[C]", help="Second matrix of mttkrp.")] = None,
    ranks: Annotated[
        str | None, typer.Option("--ranks", metavar="N,N,N", help="Ranks of A to keep, in this order, from 1.")
    ] = None,
    density: Annotated[float, typer.Option("--density", metavar="SHARE", help="Of random matrices.")] = DENSITY,
    tiling: Annotated[
        list[str] | None,
        typer.Option("--tiling", metavar="POLICY,...", help="uniform, prescient, d2t2.", show_default="all"),
    ] = None,
    buffer: Annotated[int, typer.Option("--buffer", metavar="BYTES", help="For each input operand.")] = BUFFER,
    verify: Annotated[bool, typer.Option("--verify", help="Also compute by tiles and check every value.")] = False,
    out: options.Out = None,
    json: options.Json = False,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> int:
    """Choose tiles for a tensor kernel; print the traffic that D2T2's model predicts and the exact traffic.

    ttm: X[i,j,k] = sum over l of A[i,j,l] B[l,k]; mttkrp: X[i,j] = sum over k, l of A[i,k,l] B[k,j] C[l,j]. Nothing is
    simulated: no hardware runs these kernels. Writes tensor.json and a scheme for each tiling to --out
    (out/NAME-OF-A-KERNEL by default; with --json only when --out is given). Exit code 1 when --verify finds a wrong value.
    """
    from gen.design import did_you_mean
    from sw.operands import UserError
    from sw.operands.load_tensor import load_tensor
    from sw.scheme.errors import SchemeError
    from sw.tensor.kernels import KERNELS

    from .console import Console
    from .output import check_folder
    from .pipeline import interruptible

    if kernel not in KERNELS:
        raise UserError(f"{kernel}: must be one of {', '.join(KERNELS)}{did_you_mean(kernel, KERNELS)}")
    found = KERNELS[kernel]
    policies = _policies(tiling)
    if not 0 < density <= 1:
        raise UserError(f"--density {density}: must be above 0 and at most 1")
    if seed < 0:
        raise UserError(f"--seed {seed}: must be at least 0")
    if second is not None and len(found.matrices) == 1:
        raise UserError(f"{second}: {kernel} has one matrix")
    console = Console(as_json=json, quiet=quiet)
    with console.phase("load", "Reading operands"):
        a = interruptible(load_tensor, tensor, _ranks(ranks))
        if not a.nnz:
            raise UserError(f"{tensor}: holds nothing")
        matrices = interruptible(_matrices, found, a, (first, second), density, seed)
    folder = out if out is not None or json else Path("out") / f"{a.name}-{kernel}"
    if folder is not None:
        check_folder(folder)
    try:
        document = interruptible(_evaluate, console, found, a, matrices, policies, buffer, verify)
    except SchemeError as error:
        raise UserError(f"--buffer {buffer}: must be {error.allowed}") from None
    if folder is not None:
        _write(folder, document)
    console.document(document)
    _summary(console, document, folder)
    return 0 if all(entry["correct"] is not False for entry in document["tilings"]) else 1


def _policies(given: list[str] | None) -> list[str]:
    from gen.design import did_you_mean
    from sw.operands import UserError
    from sw.tensor.policies import POLICIES

    names = list(dict.fromkeys(name.strip() for text in given or [",".join(POLICIES)] for name in text.split(",")))
    for name in names:
        if name not in POLICIES:
            raise UserError(
                f"--tiling {name}: must be one of {', '.join(POLICIES)} for tensors{did_you_mean(name, POLICIES)}"
            )
    return names


def _ranks(text: str | None) -> tuple[int, ...] | None:
    from sw.operands import UserError

    if text is None:
        return None
    words = text.split(",")
    if not all(word.isascii() and word.isdigit() and int(word) for word in words):
        raise UserError(f"--ranks {text}: must be three numbers from 1, as in 1,2,4")
    return tuple(int(word) - 1 for word in words)


def _matrices(
    kernel: "TensorKernel", a: "Tensor", given: Sequence[str | None], density: float, seed: int
) -> list["Operand"]:
    """One a contracted rank, which its rows are; random ones as wide as in the paper (section 6.3) or as the one given."""
    from sw.operands import UserError, load
    from sw.operands.generators import with_size

    found: list[Operand] = []
    names = [spec for spec in given if spec is not None]
    width = max(a.shape[:2]) if kernel.kept > 1 else a.shape[0]
    if names:
        width = load(with_size(names[0], a.shape[kernel.kept])).shape[1]
    for number, rank in enumerate(kernel.contracted):
        rows = a.shape[rank]
        spec = given[number] or f"uniform:{rows}:{width}:{density:g}:seed={seed + number}"
        matrix = load(with_size(spec, rows))
        if matrix.shape != (rows, width):
            raise UserError(
                f"{spec}: {matrix.shape[0]} x {matrix.shape[1]}: must be {rows} x {width}, ranks {kernel.matrices[number]}"
            )
        found.append(matrix)
    return found


def _evaluate(
    console: "Console",
    kernel: "TensorKernel",
    a: "Tensor",
    matrices: list["Operand"],
    policies: list[str],
    buffer: int,
    verify: bool,
) -> dict[str, Any]:
    """The document: operands, and for each tiling its scheme with exact and predicted traffic."""
    from dataclasses import asdict

    from sw.stats.csf import WORD_BYTES
    from sw.stats.pattern import Pattern
    from sw.tensor.kernels import Problem
    from sw.tensor.scheme import schedule_tensor, statistics, traffic_record
    from sw.tensor.traffic import largest_words, tensor_traffic

    shape = (a.shape[0], a.shape[1], a.shape[2])
    problem = Problem(kernel, shape, a.coordinates, tuple(Pattern.of(matrix.matrix) for matrix in matrices))
    with console.phase("statistics", "Looking at the operands"):
        model = statistics(problem, buffer)
    entries: list[dict[str, Any]] = []
    with console.phase("tilings", "Counting traffic") as progress:
        for number, policy in enumerate(policies):
            progress(number / len(policies), policy)
            scheme = schedule_tensor(policy, problem, buffer, model)
            exact = traffic_record(tensor_traffic(problem, scheme.sides))
            largest = WORD_BYTES * max(largest_words(problem, scheme.sides))
            entry = asdict(scheme) | {"exact": exact, "largest_tile_bytes": largest, "correct": None, "check": None}
            if verify:
                entry["correct"], entry["check"] = _verified(problem, a, matrices, scheme.sides, exact)
            entries.append(entry)
    base = next((entry["exact"]["total"] for entry in entries if entry["policy"] == "uniform"), None)
    for entry in entries:
        exact_bytes = entry["exact"]["total"]
        entry["over_uniform"] = base / exact_bytes if base and exact_bytes else None
    return {
        "kernel": kernel.name,
        "formula": kernel.formula,
        "order": kernel.order,
        "operands": {"A": {"name": a.name, "source": a.source, "shape": list(a.shape), "nnz": a.nnz}}
        | {
            name: {"name": m.name, "source": m.source, "shape": list(m.shape), "nnz": m.nnz}
            for name, m in zip("BC", matrices, strict=False)
        },
        "buffer_bytes": buffer,
        "tilings": entries,
    }


def _verified(
    problem: "Problem", a: "Tensor", matrices: list["Operand"], sides: Sequence[int], exact: dict[str, float]
) -> tuple[bool | None, str]:
    """Whether every value is right, and what was compared; None for tilings that cut into too many tiles."""
    from sw.operands import UserError
    from sw.tensor.golden import same_values

    places = problem.extent[3]
    for rank in range(problem.kernel.kept):
        places *= a.shape[rank]
    if exact["macs"] > MOST_PRODUCTS or places > MOST_PLACES:
        raise UserError(
            f"--verify: {exact['macs']:,} products for {places:,} places: "
            f"at most {MOST_PRODUCTS:,} for {MOST_PLACES:,} are computed"
        )
    if exact["visits"] > MOST_VISITS:
        return None, f"not computed: {exact['visits']:,} products of tiles, at most {MOST_VISITS:,} are made"
    return same_values(a.coordinates, a.values, [matrix.matrix for matrix in matrices], a.shape, sides)


def _write(folder: Path, document: dict[str, Any]) -> None:
    from .output import as_json, write_files

    files = {"tensor.json": as_json(document)}
    for entry in document["tilings"]:
        files[f"scheme-{entry['policy']}.json"] = as_json(entry)
    write_files(folder, files)


def _summary(console: "Console", document: dict[str, Any], folder: Path | None) -> None:
    console.print(f"{document['kernel']:<12}{document['formula']}, walked {', '.join(document['order'])}")
    for name, operand in document["operands"].items():
        shape = " x ".join(f"{size:,}" for size in operand["shape"])
        console.print(f"{name:<12}{operand['name']} ({shape}, {operand['nnz']:,} nonzeros)")
    console.print(f"buffers     {document['buffer_bytes']:,} bytes for each of them")
    rows = [
        ["tiling", f"T_{' x T_'.join(document['order'])}", "exact bytes", "prediction", "less than uniform", "schedule"]
    ]
    for entry in document["tilings"]:
        exact = entry["exact"]["total"]
        off = f"{entry['predicted']['total'] / exact - 1:+.1%}" if exact else ""  # no share of nothing
        gain = f"{entry['over_uniform']:.2f} x" if entry["over_uniform"] else ""
        sides = " x ".join(f"{entry['tile'][rank]:,}" for rank in document["order"])
        rows.append([entry["policy"], sides, f"{exact:,}", off, gain, f"{entry['seconds']:.2f} s"])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        console.print("  ".join(cells))
    for entry in document["tilings"]:
        if entry["check"] is not None:
            verdict = {True: "ok  ", False: "FAIL", None: "    "}[entry["correct"]]
            console.print(f"{verdict}        {entry['policy']}: {entry['check']}")
    if folder is not None:
        console.print(f"written     {folder}/tensor.json")
