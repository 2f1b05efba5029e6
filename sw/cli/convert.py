"""``fiberloom convert``: a tensor from one storage format to another."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sw.formats.storage import storage_names

from . import options
from .convert_input import ARRAYS, RECORD, load_tensor
from .convert_rtl import convert_in_hardware, require_block, require_built, require_conversion, require_order
from .printed import Outcome, printed

if TYPE_CHECKING:
    from sw.formats.sparse_tensor import SparseTensor
    from sw.formats.storage_format import Layout, StorageFormat

    from .console import Console

__all__ = ["command"]

# Bytes that a conversion takes for each byte of the arrays, and for each nonzero beside them.
WORKING_COPIES, WORKING_BYTES = 4, 64
# Bytes of arrays from which on their file is not compressed.
COMPRESSED_BELOW = 1 << 25


def convert(
    console: "Console",
    spec: Annotated[
        str,
        typer.Argument(
            metavar="X",
            help=f"Matrix or order-3 tensor: {options.OPERAND}, .tns, frostt:NAME, or the folder of an earlier convert.",
            show_default=False,
        ),
    ],
    source: Annotated[str, typer.Option("--from", metavar="FORMAT", help="Format that X is taken in.")],
    target: Annotated[
        str, typer.Option("--to", metavar="FORMAT", help=f"Format that is written: {', '.join(storage_names())}.")
    ],
    plugin: options.Plugin = None,
    run_bits: options.RunBits = None,
    block: Annotated[
        str | None,
        typer.Option(
            "--block", metavar="RxC", help="Sides of a block: RxC of bsr, RxCxD of hicoo.", show_default="2x2 or 2x2x2"
        ),
    ] = None,
    config: options.Config = "edge",
    changes: options.Set = None,
    value: options.Value = None,
    chosen: Annotated[str, typer.Option("--engine", metavar="rtl|golden", help="What converts.")] = "rtl",
    as_stored: options.AsStored = False,
    out: options.Out = None,
    seed: options.UnusedSeed = 0,
) -> Outcome:
    """Convert a tensor between storage formats and check what comes out.

    Writes tensor.npz, the arrays of the format, and result.json to --out (out/NAME-OF-X-FORMAT by default; with --json only
    when --out is given). Exit codes: 0 verified, 1 the result differs, 2 bad input.
    """
    from sw.formats.array_checks import FormatError
    from sw.operands import UserError
    from sw.runtime.result import bounds, describe_design

    from .output import check_folder
    from .pipeline import interruptible, load_design, plain

    if chosen not in ("rtl", "golden"):
        raise UserError(f"--engine {chosen}: must be rtl or golden")
    parameters = _parameters(source, target, run_bits, block)
    if chosen == "rtl":
        require_conversion(source, target)
        require_block(parameters[target].get("block", ()))
    design = load_design(config, changes or [], value)
    if chosen == "rtl":
        require_built(design, source, target)
    with console.phase("load", "Reading the tensor"):
        name, tensor, found = interruptible(load_tensor, spec, design.pe.value, as_stored)
    # X goes on as it lies in its folder, unless the command says otherwise.
    parameters[source] = found.get(source, {}) | parameters[source]
    if chosen == "rtl":
        require_order(tensor.order, target)
    sides = ("from", source), ("to", target)
    formats = [_format(option, kind, parameters[kind], tensor.order) for option, kind in sides]
    folder = out if out is not None or console.as_json else Path("out") / f"{name}-{target}"
    if folder is not None:
        _keep_others(folder)
        check_folder(folder)
    names = source, target
    with console.phase("convert", "Converting"):
        try:
            both, layouts, nnz, correct = interruptible(_converted, spec, tensor, names, formats)
        except FormatError as error:
            raise UserError(f"{spec}: {error}") from None
    arrays = both[1]
    read, written = (_bus_bytes(layout, design.bus_bytes) for layout in layouts)
    cycles = None
    if chosen == "rtl":
        parts: dict[str, float] = {}
        with console.phase("simulate", "Converting in hardware") as report:
            arrays, run, same = interruptible(
                convert_in_hardware, design, names, formats, layouts, both, tensor.shape, report, parts
            )
        correct &= same
        cycles, read, written = run.cycles, run.read_bytes, run.written_bytes
        for name, share in (("build", parts["build"]), ("simulate", -parts["build"])):
            console.spend(name, share)
    bound = bounds(design, 0, read + written)["dram"]
    record = plain(
        {
            "correct": correct,
            "engine": chosen,
            "design": describe_design(design),
            "value": tensor.value,
            "from": source,
            "to": target,
            "parameters": _recorded((source, target), formats),
            "shape": list(tensor.shape),
            "nnz": nnz,
            "bits": {"from": layouts[0].bits, "to": layouts[1].bits},
            "cycles": cycles,
            "roofline_cycles": bound,
            "roofline_fraction": bound / cycles if cycles else None,
            "dram_bytes": {"read": read, "write": written},
            "seconds": console.seconds,
        }
    )
    if folder is not None:
        with console.phase("write", "Writing"):
            _write(folder, record, arrays, tensor.shape)
    console.document(record)
    _summary(console, record, spec, folder)
    return Outcome(correct=correct, arrays=arrays)


command = printed(convert)


def _parameters(source: str, target: str, run_bits: int | None, block: str | None) -> dict[str, dict[str, Any]]:
    """The parameters that were given to each of the two formats; refuses what neither takes."""
    from gen.design import did_you_mean
    from sw.formats.storage import parameter_names, storage_format
    from sw.operands import UserError

    for option, kind in (("from", source), ("to", target)):
        if kind not in storage_names():
            hint = did_you_mean(kind, storage_names())
            raise UserError(f"--{option} {kind}: must be one of {', '.join(storage_names())}{hint}")
    given: dict[str, Any] = {"run_bits": run_bits, "block": None if block is None else _sides(block)}
    found: dict[str, dict[str, Any]] = {source: {}, target: {}}
    for name, content in given.items():
        if content is None:
            continue
        takers = [kind for kind in found if name in parameter_names(kind)]
        typed = f"--{name.replace('_', '-')} {block if name == 'block' else content}"
        if not takers:
            able = [kind for kind in storage_names() if name in parameter_names(kind)]
            raise UserError(f"{typed}: is of {', '.join(able)}: must be left out from {source} to {target}")
        for kind in takers:
            try:
                storage_format(kind, **{name: content})
            except ValueError as error:
                raise UserError(f"{typed}: {' '.join(str(error).split())} ({kind})") from None
            found[kind][name] = content
    return found


def _sides(text: str) -> tuple[int, ...]:
    """``2x3`` as numbers."""
    from sw.operands import UserError

    if not re.fullmatch(r"[0-9]{1,10}(x[0-9]{1,10})+", text):
        raise UserError(f"--block {text}: must be sides from 1, as in 2x2 or 2x2x2")
    return tuple(int(side) for side in text.split("x"))


def _format(option: str, kind: str, parameters: dict[str, Any], order: int) -> "StorageFormat":
    """The format; refuses one that holds no tensors of this order."""
    from sw.formats.storage import storage_format
    from sw.operands import UserError

    found = storage_format(kind, **parameters)
    if order not in found.orders:
        able = [name for name in storage_names() if order in storage_format(name).orders]
        what = "a matrix" if order == 2 else f"a tensor of order {order}"
        raise UserError(f"--{option} {kind}: X is {what}: must be one of {', '.join(able)}")
    return found


def _converted(
    spec: str, tensor: "SparseTensor", names: tuple[str, str], formats: "list[StorageFormat]"
) -> "tuple[list[dict[str, Any]], list[Layout], int, bool]":
    """Arrays and layouts of both formats, stored entries in the first one, and whether nothing changed on the way."""
    from sw.formats.array_checks import FormatError
    from sw.formats.storage_format import require_bound, through_memory
    from sw.operands.memory import require_memory

    correct = True
    both, layouts, counts = [], [], []
    for name, form in zip(names, formats, strict=True):
        layout = form.layout(tensor.shape, form.counts(tensor), tensor.value)
        try:
            require_bound(layout)
        except FormatError as error:
            raise FormatError(f"as {name}: {error}") from None
        require_memory(WORKING_COPIES * layout.array_bytes + WORKING_BYTES * tensor.nnz, f"{spec} as {name}")
        arrays, back = through_memory(form, layout, tensor)
        correct &= back.same_as(tensor if form.keeps_zeros else tensor.without_zeros())
        tensor = back
        both.append(arrays)
        layouts.append(layout)
        counts.append(tensor.nnz)
    return both, layouts, counts[0], correct


def _recorded(names: tuple[str, str], formats: "list[StorageFormat]") -> dict[str, dict[str, Any]]:
    """Parameters of those formats that have some."""
    from sw.formats.storage import parameter_names

    return {
        name: {parameter: getattr(form, parameter) for parameter in parameter_names(name)}
        for name, form in zip(names, formats, strict=True)
        if parameter_names(name)
    }


def _bus_bytes(layout: "Layout", beat: int) -> int:
    """Bytes that move when each region is read or written once: whole beats."""
    return sum(-(-region.bytes // beat) * beat for region in layout.regions)


def _keep_others(folder: Path) -> None:
    """Refuses a folder with the record of another command."""
    from sw.operands import UserError

    if (folder / RECORD).is_file() and not (folder / ARRAYS).is_file():
        raise UserError(
            f"--out {folder}: holds the {RECORD} of another command, which would be lost: give another folder"
        )


def _write(folder: Path, record: dict[str, Any], arrays: dict[str, Any], shape: tuple[int, ...]) -> None:
    import numpy as np

    from .output import as_json, write_files

    content = arrays | {"shape": np.array(shape, np.int64)}
    save = np.savez_compressed if sum(array.nbytes for array in content.values()) < COMPRESSED_BELOW else np.savez
    write_files(folder, {ARRAYS: lambda path: save(path, **content), RECORD: as_json(record)})


def _summary(console: "Console", record: dict[str, Any], spec: str, folder: Path | None) -> None:
    bits = record["bits"]
    shape = " x ".join(f"{size:,}" for size in record["shape"])
    console.print(f"X           {spec} ({shape}, {record['nnz']:,} nonzeros, {record['value']})")
    console.print(f"from        {record['from']}, {bits['from']:,} bits")
    share = f", {bits['to'] / bits['from']:.3f} of them" if bits["from"] else ""
    console.print(f"to          {record['to']}, {bits['to']:,} bits{share}")
    if record["cycles"] is not None:
        console.print(f"cycles      {record['cycles']:,}, {record['roofline_fraction']:.3f} of the roofline")
    verdict = "verified" if record["correct"] else "NOT CORRECT"
    seconds = sum(record["seconds"].values())
    console.print(f"{verdict} ({record['engine']}, {seconds:.1f} s)" + (f"; see {folder}/{ARRAYS}" if folder else ""))
