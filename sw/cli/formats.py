"""``fiberloom formats``: memory and compute formats of two operands, ranked by energy-delay product."""

from collections.abc import Collection, Mapping
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options
from .printed import Outcome, printed

if TYPE_CHECKING:
    from sw.sage.workload import Workload

    from .console import Console

__all__ = ["command"]

SHOWN = 10
LARGEST_DENSITY = 1.0
MATRIX_KERNELS = ("spgemm", "spmm")


def _format(option: str, text: str) -> Any:
    return typer.Option(option, metavar="FORMAT", help=text)


def formats(
    console: "Console",
    left: Annotated[
        str | None, typer.Argument(metavar="A", help=f"{options.OPERAND}; a tensor for spttm and mttkrp.")
    ] = None,
    right: Annotated[
        str | None, typer.Argument(metavar="B", help="Right operand; A again for spgemm, else dense.")
    ] = None,
    shape: Annotated[
        str | None, typer.Option("--shape", metavar="MxKxN", help="In place of operands; of tensors IxJxKxN.")
    ] = None,
    density_a: Annotated[
        float | None, typer.Option("--density-a", metavar="SHARE", help="Of nonzeros of A, with --shape.")
    ] = None,
    density_b: Annotated[
        float | None,
        typer.Option("--density-b", metavar="SHARE", help="With --shape; as A for spgemm, else 1.", show_default=False),
    ] = None,
    kernel: Annotated[
        str, typer.Option("--kernel", metavar="KERNEL", help="spgemm, spmm, spttm or mttkrp.")
    ] = "spgemm",
    accelerator: Annotated[
        str,
        typer.Option(
            "--machine", metavar="CLASS", help="flexible, tpu, eie, sigma, extensor, nvdla or sw (MINT, table II)."
        ),
    ] = "flexible",
    config: Annotated[
        str | None,
        typer.Option("--config", metavar="NAME|FILE", help="Design whose value type and memory bandwidth count."),
    ] = None,
    changes: options.Set = None,
    value: options.Value = None,
    mcf_a: Annotated[str | None, _format("--mcf-a", "Format that A is kept in, where that is given.")] = None,
    mcf_b: Annotated[str | None, _format("--mcf-b", "Format that B is kept in.")] = None,
    mcf_o: Annotated[str | None, _format("--mcf-o", "Format that the output is left in.")] = None,
    acf_a: Annotated[str | None, _format("--acf-a", "Format that A is computed from.")] = None,
    acf_b: Annotated[str | None, _format("--acf-b", "Format that B is computed from.")] = None,
    run_bits: options.RunBits = None,
    array: Annotated[
        list[str] | None,
        typer.Option("--array", metavar="NAME=VALUE", help="Change the PE array, as in pe_bytes=128; repeatable."),
    ] = None,
    constants: Annotated[
        list[str] | None,
        typer.Option(
            "--constant", metavar="NAME=VALUE", help="Change an energy or a rate, as in dram_bit=4; repeatable."
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Estimate by the nonzeros of rows and columns, without a look at places.")
    ] = False,
    transpose_a: options.TransposeA = False,
    transpose_b: options.TransposeB = False,
    as_stored: options.AsStored = False,
    seed: options.UnusedSeed = 0,
) -> Outcome:
    """Choose the formats that A, B and the output are kept in (MCF) and computed in (ACF) for the lowest energy-delay product.

    All candidates are ranked, best first: SAGE, MINT's section VI, for its weight-stationary array. Operands are counted as they
    are; with --shape and --density-a each place holds a value with the same chance. Writes no files.
    """
    from sw.formats.sparse_tensor import VALUE_BITS
    from sw.operands import UserError
    from sw.sage.accelerators import ACCELERATORS
    from sw.sage.array import Array
    from sw.sage.choice import ranked
    from sw.sage.constants import Constants
    from sw.sage.workload import KERNELS

    from .pipeline import interruptible, load_design

    _one_of("--kernel", kernel, KERNELS)
    _one_of("--machine", accelerator, ACCELERATORS)
    if run_bits is not None and not 1 <= run_bits <= 32:
        raise UserError(f"--run-bits {run_bits}: must be from 1 to 32")
    given_constants: dict[str, Any] = {}
    if config is not None:
        design = load_design(config, changes or [], value)
        value, given_constants = design.pe.value, {"memory_bits": 8 * design.dram_bytes_per_cycle}
    elif changes:
        raise UserError(f"--set {changes[0]}: changes a design: needs --config")
    value = value or "fp32"
    _one_of("--value", value, VALUE_BITS)
    the_array = _changed("--array", Array, array, {})
    the_constants = _changed("--constant", Constants, constants, given_constants)
    mcf = _given(kernel, {"--mcf-a": mcf_a, "--mcf-b": mcf_b, "--mcf-o": mcf_o})
    acf = _given(kernel, {"--acf-a": acf_a, "--acf-b": acf_b}, computed=True)
    with console.phase("load", "Reading operands"):
        if shape is not None:
            if left is not None:
                raise UserError(f"--shape {shape}: must be left out with the operand {left}")
            _refuse_with_shape(transpose_a, transpose_b, as_stored, quick)
            workload = interruptible(_described, kernel, shape, density_a, density_b, value, run_bits or 5)
        else:
            if left is None:
                raise UserError("A: is missing: must be an operand, or --shape with --density-a")
            for option, share in (("--density-a", density_a), ("--density-b", density_b)):
                if share is not None:
                    raise UserError(f"{option} {share:g}: is counted of operands: must stand with --shape")
            read = _matrices if kernel in MATRIX_KERNELS else _tensor
            how = transpose_a, transpose_b, as_stored, quick
            workload = interruptible(read, kernel, left, right, how, value, run_bits or 5)
    with console.phase("rank", "Ranking formats"):
        found = interruptible(
            partial(ranked, array=the_array, constants=the_constants, mcf=mcf, acf=acf),
            workload,
            ACCELERATORS[accelerator],
        )
    if not found:
        said = ", ".join(f"{name}={kind}" for name, kind in [*mcf.items(), *acf.items()])
        raise UserError(f"--machine {accelerator}: has no such formats ({said}): must be those of its class")
    records = [each.as_dict() for each in found]
    console.document(records)
    _table(console, workload, records)
    return Outcome()


def _changed(option: str, kind: Any, texts: list[str] | None, given: Mapping[str, Any]) -> Any:
    """The parameters with what ``NAME=VALUE`` changes. Raises UserError."""
    from sw.operands import UserError

    known = {each.name: each.default for each in fields(kind)}
    found = dict(given)
    for text in texts or []:
        name, _, content = text.partition("=")
        if name not in known:
            raise UserError(f"{option} {text}: must be NAME=VALUE with a name of {', '.join(known)}")
        default = known[name]
        try:
            if isinstance(default, bool):
                found[name] = {"true": True, "false": False}[content]
            else:
                found[name] = int(content) if isinstance(default, int) else _finite(content)
        except (KeyError, ValueError):
            allowed = "true or false" if isinstance(default, bool) else "a number above 0"
            whole = "whole " if allowed != "true or false" and isinstance(default, int) else ""
            raise UserError(f"{option} {text}: {name} must be {allowed.replace('number', whole + 'number')}") from None
    try:
        return kind(**found)
    except ValueError as error:
        raise UserError(f"{option}: {error}") from None


def _finite(text: str) -> float:
    import math

    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _refuse_with_shape(*flags: bool) -> None:
    """Options that look at an operand."""
    from sw.operands import UserError

    for name, is_set in zip(("--transpose-a", "--transpose-b", "--as-stored", "--quick"), flags, strict=True):
        if is_set:
            raise UserError(f"{name}: must be left out with --shape, which has no operand to look at")


def _one_of(option: str, value: str, known: Collection[str]) -> None:
    from gen.design import did_you_mean
    from sw.operands import UserError

    if value not in known:
        raise UserError(f"{option} {value}: must be one of {', '.join(known)}{did_you_mean(value, known)}")


def _given(kernel: str, names: Mapping[str, str | None], *, computed: bool = False) -> dict[str, str]:
    """Formats by tensor. Raises UserError for those that a tensor cannot have."""
    from sw.sage.accelerators import MATRIX_MCFS, TENSOR_MCFS
    from sw.sage.array import STATIONARY, STREAMED

    order = 2 if kernel in MATRIX_KERNELS else 3
    found = {}
    for option, name in names.items():
        if name is None:
            continue
        tensor = option[-1].upper()
        if computed:
            allowed: tuple[str, ...] = STREAMED[order] if tensor == "A" else STATIONARY
        else:
            of_tensor = order == 3 and (tensor == "A" or (tensor == "O" and kernel == "spttm"))
            allowed = TENSOR_MCFS if of_tensor else MATRIX_MCFS
        _one_of(option, name, allowed)
        found[tensor] = name
    return found


def _described(
    kernel: str, shape: str, density_a: float | None, density_b: float | None, value: str, run_bits: int
) -> "Workload":
    """By shape and densities."""
    from sw.formats.array_checks import FormatError
    from sw.formats.sparse_tensor import require_shape
    from sw.operands import UserError
    from sw.sage.workload import uniform

    form = "MxKxN" if kernel in MATRIX_KERNELS else "IxJxKxN"
    words = shape.split("x")
    if len(words) != len(form.split("x")) or not all(word.isascii() and word.isdigit() for word in words):
        raise UserError(f"--shape {shape}: must be {form}, whole numbers, for {kernel}")
    sizes = [int(word) for word in words]
    try:
        require_shape(sizes)
    except FormatError as error:
        raise UserError(f"--shape {shape}: {error}") from None
    if density_a is None:
        raise UserError(f"--shape {shape}: needs --density-a, above 0 and at most 1")
    if density_b is None:
        density_b = density_a if kernel == "spgemm" else 1.0
    for option, share in (("--density-a", density_a), ("--density-b", density_b)):
        if not 0 < share <= LARGEST_DENSITY:
            raise UserError(f"{option} {share:g}: must be above 0 and at most 1")
    return uniform(kernel, sizes, density_a, density_b, value=value, run_bits=run_bits)


def _dense_width(rows: int) -> int:
    """Of a factor that is not given: half of A's rows, as in MINT's table III."""
    return max(1, rows // 2)


def _matrices(
    kernel: str, left: Any, right: Any, how: tuple[bool, bool, bool, bool], value: str, run_bits: int
) -> "Workload":
    """Of operands that are matrices."""
    from sw.formats.canonical import canonical
    from sw.operands import load
    from sw.sage.workload import counted, estimated

    from .pipeline import load_operands

    transpose_a, transpose_b, as_stored, quick = how
    count = estimated if quick else counted
    if right is None and kernel == "spmm":
        given = load(left, as_stored=as_stored)
        a = canonical((given.transposed() if transpose_a else given).matrix)
        return count(kernel, a, _dense_width(a.shape[0]), value=value, run_bits=run_bits)
    found = load_operands(left, right, transpose_a=transpose_a, transpose_b=transpose_b, as_stored=as_stored)
    a, b = (canonical(found[name].matrix) for name in "AB")
    return count(kernel, a, b, value=value, run_bits=run_bits)


def _tensor(
    kernel: str, left: Any, right: Any, how: tuple[bool, bool, bool, bool], value: str, run_bits: int
) -> "Workload":
    """Of an operand that is a tensor of order 3."""
    from sw.formats.canonical import canonical
    from sw.operands import UserError, load
    from sw.operands.generators import with_size
    from sw.operands.load_tensor import load_any_tensor
    from sw.operands.tensors import Tensor
    from sw.sage.workload import tensor_counted

    if any(how):
        raise UserError(
            f"--kernel {kernel}: neither transposes, expands nor estimates: must stand without these options"
        )
    if not isinstance(left, str | Tensor):
        raise UserError(f"{left.source}: 2 ranks: {kernel} takes a tensor of order 3")
    tensor = left if isinstance(left, Tensor) else load_any_tensor(left)
    if len(tensor.shape) != 3:
        raise UserError(f"{left}: {len(tensor.shape)} ranks: {kernel} takes a tensor of order 3")
    tensor = tensor.kept((0, 1, 2))
    rank = 2 if kernel == "spttm" else 1
    rows = tensor.shape[rank]
    b: Any = _dense_width(tensor.shape[0])
    if right is not None:
        operand = load(with_size(right, rows) if isinstance(right, str) else right)
        if operand.shape[0] != rows:
            raise UserError(
                f"{operand.source}: {operand.shape[0]} rows: must be {rows}, those of rank {rank + 1} of {left}"
            )
        b = canonical(operand.matrix)
    shape = (tensor.shape[0], tensor.shape[1], tensor.shape[2])
    return tensor_counted(kernel, shape, tensor.coordinates, tensor.values, b, value=value, run_bits=run_bits)


def _table(console: "Console", workload: "Workload", records: list[dict[str, Any]]) -> None:
    """The first candidates, and what the rest costs."""
    factor = "B and C" if workload.kernel == "mttkrp" else "B"
    for name, operand in (("A", workload.a), (factor, workload.b), ("O", workload.o)):
        shape = " x ".join(f"{size:,}" for size in operand.shape)
        console.print(f"{name:<12}{shape}, {operand.nnz:,.0f} nonzeros")
    console.print(f"kernel      {workload.kernel}, {workload.value}, {workload.products:,.0f} effectual products")
    head = ["", "MCF A, B, O", "ACF A, B", "transfer", "conversion", "compute", "cycles", "energy, uJ", "EDP"]
    rows = [head]
    for number, each in enumerate(records[:SHOWN], 1):
        cycles = each["cycles"]
        rows.append(
            [
                str(number),
                " ".join(each["mcf"].values()),
                f"{each['acf']['A']} {each['acf']['B']}",
                *(f"{cycles[part]:,.0f}" for part in ("transfer", "conversion", "compute", "total")),
                f"{each['energy_pJ']['total'] / 1e6:,.3f}",
                f"{each['edp'] / records[0]['edp']:.3f}" if records[0]["edp"] else "",
            ]
        )
    widths = [max(len(row[n]) for row in rows) for n in range(len(head))]
    for row in rows:
        left = [cell.ljust(width) for cell, width in zip(row[:3], widths, strict=False)]
        right = [cell.rjust(width) for cell, width in zip(row[3:], widths[3:], strict=True)]
        console.print("  ".join([*left, *right]))
    if len(records) > SHOWN:
        console.print(f"EDP over that of the first; {len(records) - SHOWN:,} more with --json")


command = printed(formats)
