"""``fiberloom data``: matrices by name, and their description."""

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options

if TYPE_CHECKING:
    from sw.engine_result import Progress

    from .console import Console

__all__ = ["group"]

group = typer.Typer(add_completion=False, rich_markup_mode=None)

FETCHED = ("suitesparse", "snap", "frostt")


@group.command("list")
def names(
    pattern: Annotated[
        str, typer.Argument(metavar="[PATTERN]", help="Part of a name, or a pattern with * and ?.")
    ] = "",
    update: Annotated[
        bool, typer.Option("--update", help="First download SuiteSparse's index of all its matrices.")
    ] = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Names that stand for a matrix or a tensor, by source. Without --update nothing is downloaded.

    Of SuiteSparse a small part is listed until --update has got the index of all of it; every Group/Name can be used.
    """
    from .console import Console

    console = Console(as_json=json, quiet=quiet)
    if update:
        from sw.operands.collections import fetch_index

        with console.phase("fetch", "Fetching the index") as progress:
            fetch_index(partial(_tell, progress))
    found = _matching(pattern)
    console.document(found)
    for source, entries in found.items():
        if entries:
            console.print(f"{source}")
        for entry in entries:
            console.print(f"  {_line(entry)}".rstrip())
    if not any(found.values()):
        console.print(f"no name matches {pattern!r}")


def _matching(pattern: str) -> dict[str, list[dict[str, Any]]]:
    """Entries of each source whose typed name matches."""
    from fnmatch import fnmatchcase

    from sw.operands.collections import catalogue, is_kept
    from sw.operands.examples import pyamg_names
    from sw.operands.generators import GENERATORS
    from sw.operands.tensor_generators import TENSOR_GENERATORS

    wanted = pattern.lower()
    glob = wanted if any(sign in wanted for sign in "*?[") else f"*{wanted}*"
    found: dict[str, list[dict[str, Any]]] = {source: [] for source in (*FETCHED, "pyamg", "generators")}
    for entry in catalogue():
        found[entry.source].append(
            {"name": entry.spec, "shape": list(entry.shape), "nnz": entry.nnz or None, "kept": is_kept(entry)}
        )
    found["pyamg"] = [{"name": f"pyamg:{name}"} for name in pyamg_names()]
    found["generators"] = [
        {"name": kind.usage, "summary": kind.summary, "example": kind.example}
        for kind in (*GENERATORS.values(), *TENSOR_GENERATORS.values())
    ]
    return {
        source: [entry for entry in entries if fnmatchcase(str(entry["name"]).lower(), glob)]
        for source, entries in found.items()
    }


def _line(entry: dict[str, Any]) -> str:
    if "summary" in entry:
        return f"{entry['name']}\n      {entry['summary']}"
    shape = " x ".join(f"{size:,}" for size in entry.get("shape", ()))
    nnz = f"{entry['nnz']:,}" if entry.get("nnz") else ""
    kept = "  (kept)" if entry.get("kept") else ""
    return f"{entry['name']:<36} {shape:<26} {nnz:>12}{kept}"


@group.command("fetch")
def fetch(
    wanted: Annotated[list[str], typer.Argument(metavar="NAME...", help="suitesparse:, snap: and frostt: names.")],
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Download data sets that are not there yet, and check those that are against their recorded checksums."""
    from sw.operands import UserError
    from sw.operands.collections import fetch_collection
    from sw.operands.downloads import record_of

    from .console import Console
    from .reasons import when_interrupted

    console = Console(as_json=json, quiet=quiet)
    done: list[dict[str, Any]] = []
    for name in wanted:
        source, _, argument = name.partition(":")
        if source not in FETCHED or not argument:
            sources = ", ".join(f"{kind}:NAME" for kind in FETCHED)
            raise UserError(f"{name}: nothing to fetch: must be one of {sources}")
        kept = f"{len(done)} of {len(wanted)} are kept; the same command fetches the others"
        with when_interrupted(kept), console.phase("fetch", f"Fetching {name}") as progress:
            path, _ = fetch_collection(source, argument, name, partial(_tell, progress))
        record = record_of(path)
        digest = record.read_text(encoding="utf-8").split()[0] if record.exists() else None
        done.append({"name": name, "path": str(path), "bytes": path.stat().st_size, "sha256": digest})
        console.print(f"{name}: {path} ({path.stat().st_size:,} bytes, sha256 {digest or 'not recorded'})")
    console.document(done)


def _tell(progress: "Progress", share: float | None) -> None:
    progress(share, "")


@group.command("describe")
def describe(
    operand: Annotated[str, typer.Argument(metavar="NAME|FILE", help=f"{options.OPERAND}, or a FROSTT tensor.")],
    as_stored: options.AsStored = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Shape, nonzeros and how they lie: symmetry, bandwidth, rows and columns, and the size of A x A (of A x A^T where A
    is not square), counted exactly. Of tensors: shape, nonzeros and the fibers of each rank."""
    from .console import Console
    from .pipeline import interruptible

    console = Console(as_json=json, quiet=quiet)
    from sw.operands.load_tensor import is_tensor

    if is_tensor(operand):
        with console.phase("load", "Reading the tensor"):
            record = interruptible(_tensor, operand)
        console.document(record)
        _print_tensor(console, record)
        return
    with console.phase("load", "Reading the matrix"):
        record = interruptible(_matrix, operand, as_stored)
    console.document(record)
    _print_matrix(console, record)


def _matrix(spec: str, as_stored: bool) -> dict[str, Any]:
    from sw.operands import load
    from sw.stats.summary import summary

    operand = load(spec, as_stored=as_stored)
    head = {"name": operand.name, "source": operand.source, "symmetric_expanded": operand.symmetric_expanded}
    return head | summary(operand.matrix)


def _tensor(spec: str) -> dict[str, Any]:
    import numpy as np

    from sw.operands.load_tensor import load_any_tensor
    from sw.stats.summary import distribution

    tensor = load_any_tensor(spec)
    ranks = [
        {"size": size, "slice_nnz": distribution(np.bincount(tensor.coordinates[:, rank], minlength=size))}
        for rank, size in enumerate(tensor.shape)
    ]
    nnz = len(tensor.values)
    density = nnz / float(np.prod([float(size) for size in tensor.shape]))
    return {
        "name": tensor.name, "source": spec, "order": len(ranks), "shape": list(tensor.shape), "nnz": nnz,
        "density": density, "ranks": ranks,
    }  # fmt: skip


def _spread(counts: dict[str, Any]) -> str:
    return (
        f"{counts['least']:,} to {counts['most']:,}, quartiles {counts['first_quartile']:g} {counts['median']:g} "
        f"{counts['third_quartile']:g}, mean {counts['mean']:.2f}, deviation {counts['deviation']:.2f}, "
        f"{counts['empty']:,} empty"
    )


def _print_matrix(console: "Console", record: dict[str, Any]) -> None:
    expanded = ", of a triangle that the other was added to" if record["symmetric_expanded"] else ""
    values, product, band = record["values"], record["product"], record["bandwidth"]
    kind = "whole numbers" if record["values"]["whole_numbers"] else "real numbers"
    console.print(f"name        {record['name']} ({record['source']})")
    console.print(f"shape       {record['rows']:,} x {record['cols']:,}{expanded}")
    console.print(
        f"nonzeros    {record['nnz']:,}, density {record['density']:.3g}, {record['diagonal']:,} on the diagonal"
    )
    if record["nnz"]:
        finite = (
            f"{kind} from {values['least']:g} to {values['most']:g}" if values["least"] is not None else "none finite"
        )
        odd = {"infinite": values["infinite"], "not a number": values["not_a_number"]}
        others = "".join(f", {count:,} {name}" for name, count in odd.items() if count)
        console.print(f"values      {finite}, {values['zeros']:,} zeros{others}")
    if record["symmetry"] is not None:
        shares = record["symmetry"]
        console.print(f"symmetry    {shares['pattern']:.1%} of the pattern, {shares['values']:.1%} of the values")
    console.print(f"bandwidth   {band['lower']:,} below the diagonal, {band['upper']:,} above")
    console.print(f"rows        {_spread(record['row_nnz'])}")
    console.print(f"columns     {_spread(record['col_nnz'])}")
    each = product["macs_per_element"]
    console.print(
        f"{product['kernel']:<11} {product['macs']:,} effectual MACs, {product['nnz_c']:,} elements of C"
        + (f", {each:.2f} MACs each" if each else "")
    )


def _print_tensor(console: "Console", record: dict[str, Any]) -> None:
    shape = " x ".join(f"{size:,}" for size in record["shape"])
    console.print(f"name        {record['name']} ({record['source']})")
    console.print(f"shape       {shape}")
    console.print(f"nonzeros    {record['nnz']:,}, density {record['density']:.3g}")
    for number, rank in enumerate(record["ranks"], start=1):
        console.print(f"rank {number:<6} {_spread(rank['slice_nnz'])}")


@group.command("save")
def save(
    operand: options.Left,
    target: Annotated[str, typer.Argument(metavar="FILE", help="Ends in .mtx, .mtx.gz, .npz or .h5 (binsparse).")],
    layout: Annotated[
        str, typer.Option("--format", metavar="CSR|CSC|COO", help="Layout in .npz and binsparse files.")
    ] = "CSR",
    symmetric: Annotated[
        bool, typer.Option("--symmetric", help="Store one triangle (.mtx and binsparse); A must be symmetric.")
    ] = False,
    as_stored: options.AsStored = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Write a matrix to a file of another form. A file that is there is replaced when the new one is complete."""
    from sw.operands import UserError, load
    from sw.operands.save import save as write

    from .console import Console
    from .output import write_files

    console = Console(quiet=quiet)
    path = Path(target)
    if not path.name:
        raise UserError(f"{target!r}: must be the name of a file")
    if not os.path.lexists(path.parent):
        raise UserError(f"{target}: cannot be written (there is no folder {path.parent})")
    with console.phase("load", "Reading the matrix"):
        matrix = load(operand, as_stored=as_stored)
    with console.phase("save", "Writing"):
        name = path.name
        files = {name: lambda temporary: write(matrix, temporary, target, layout=layout, symmetric=symmetric)}
        try:
            write_files(path.parent, files)
        except UserError as error:
            # The folder is part of FILE here, not an option.
            if isinstance(error.__context__, OSError):
                raise UserError(f"{target}: cannot be written ({error.__context__.strerror})") from None
            raise
    console.print(
        f"{target}: {matrix.shape[0]:,} x {matrix.shape[1]:,}, {matrix.nnz:,} elements, {path.stat().st_size:,} bytes"
    )
