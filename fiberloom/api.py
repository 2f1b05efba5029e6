"""The commands as functions: the same options, defaults, seeds and records. Nothing is loaded before a function is called."""

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from .errors import InputError, in_one_line
from .results import Comparison, Ranking, Result
from .rooms import find_rooms

__all__ = ["analyze", "compare", "convert", "formats", "generate", "load", "run", "schedule"]

# SciPy or pydata/sparse arrays of any format, NumPy arrays, files, names.
Array: TypeAlias = Any
File: TypeAlias = str | os.PathLike[str]
Files: TypeAlias = File | Sequence[File] | None
# `FIELD=VALUE`, or values by their fields.
Settings: TypeAlias = str | Sequence[str] | Mapping[str, Any] | None


def _called(function: Callable[..., Any], operands: Mapping[str, Any], given: Mapping[str, Any]) -> tuple[Any, Any]:
    """What the command of this name makes of the function's local names, those that are as by default left out."""
    known = inspect.signature(function).parameters
    options = {
        name: value for name, value in given.items() if name not in operands and value is not known[name].default
    }
    with in_one_line():
        find_rooms()
        from sw.cli.from_python import call

        return call(function.__name__, {name: one for name, one in operands.items() if one is not None}, options)


def run(
    A: Array,
    B: Array = None,
    *,
    config: File = "edge",
    set: Settings = None,
    value: str | None = None,
    engine: str = "rtl",
    tiling: str | None = None,
    plugin: Files = None,
    scheme: File | None = None,
    T_i: int | None = None,
    T_j: int | None = None,
    T_k: int | None = None,
    order: str | None = None,
    row_order: File | None = None,
    effort: str = "normal",
    partial_rows: str | None = None,
    load: str | None = None,
    tuning: bool | None = None,
    mcf_a: str | None = None,
    mcf_b: str | None = None,
    mcf_c: str | None = None,
    run_bits: int | None = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
    as_stored: bool = False,
    out: File | None = None,
    no_result: bool = False,
    scipy: bool = False,
    seed: int = 0,
) -> Result:
    """Schedules, runs and verifies C = A x B, as ``fiberloom run`` does; B is A where it is left out.

    ``engine``: what computes: ``rtl`` (the compiled hardware), ``model`` or ``golden``. ``config``: the design, a shipped name or
    a file; ``set`` changes its fields, as in ``{"pe.value": "fp32"}``. Files are written to ``out`` where that is given,
    C not with ``no_result``. ``scipy``: SciPy's product is timed as well, ``record["scipy_seconds"]``. Raises InputError.
    """
    record, made = _called(run, {"A": A, "B": B}, locals())
    return Result(record, correct=made.correct, c=made.c)


def schedule(
    A: Array,
    B: Array = None,
    *,
    config: File = "edge",
    set: Settings = None,
    value: str | None = None,
    tiling: str | None = None,
    plugin: Files = None,
    scheme: File | None = None,
    T_i: int | None = None,
    T_j: int | None = None,
    T_k: int | None = None,
    order: str | None = None,
    row_order: File | None = None,
    effort: str = "normal",
    partial_rows: str | None = None,
    load: str | None = None,
    tuning: bool | None = None,
    mcf_a: str | None = None,
    mcf_b: str | None = None,
    mcf_c: str | None = None,
    run_bits: int | None = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
    as_stored: bool = False,
    out: File | None = None,
    seed: int = 0,
) -> Result:
    """Chooses a tile scheme for C = A x B, as ``fiberloom schedule`` does; cycles and bytes are predictions.

    With ``out`` the scheme is written to ``scheme.json`` there, which ``run`` takes as ``scheme``. Raises InputError.
    """
    record, _ = _called(schedule, {"A": A, "B": B}, locals())
    return Result(record)


def compare(
    A: Array,
    B: Array = None,
    *,
    config: File = "edge",
    set: Settings = None,
    value: str | None = None,
    engine: str = "model",
    engines: bool = False,
    tiling: str | Sequence[str] | None = None,
    plugin: Files = None,
    budget: int | None = None,
    most_tiles: int = 200_000,
    mcf_a: str | None = None,
    mcf_b: str | None = None,
    mcf_c: str | None = None,
    run_bits: int | None = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
    as_stored: bool = False,
    out: File | None = None,
    seed: int = 0,
) -> Comparison:
    """Schedules and runs C = A x B under every tiling but ``optimal``, or those in ``tiling``, as ``fiberloom compare`` does.

    ``engines``: on both intra-tile engines; rows are named TILING-DATAFLOW, and ``auto`` runs where ``tiling`` is left out.
    A tiling that fails is a warning, and one of ``failures``. Files are written to ``out`` where that is given.
    Raises InputError, also where every tiling fails.
    """
    record, made = _called(compare, {"A": A, "B": B}, locals())
    return Comparison(record, correct=made.correct, failures=made.failures)


def convert(
    X: Array,
    from_: str,
    to: str,
    *,
    plugin: Files = None,
    run_bits: int | None = None,
    block: str | None = None,
    config: File = "edge",
    set: Settings = None,
    value: str | None = None,
    engine: str = "rtl",
    as_stored: bool = False,
    out: File | None = None,
    seed: int = 0,
) -> Result:
    """Converts a matrix or an order-3 tensor between storage formats and checks it, as ``fiberloom convert`` does.

    ``arrays`` of the result are those of the format ``to``. Files are written to ``out`` where that is given. Raises InputError.
    """
    record, made = _called(convert, {"X": X}, locals())
    return Result(record, correct=made.correct, arrays=made.arrays)


def formats(
    A: Array = None,
    B: Array = None,
    *,
    shape: str | None = None,
    density_a: float | None = None,
    density_b: float | None = None,
    kernel: str = "spgemm",
    machine: str = "flexible",
    config: File | None = None,
    set: Settings = None,
    value: str | None = None,
    mcf_a: str | None = None,
    mcf_b: str | None = None,
    mcf_o: str | None = None,
    acf_a: str | None = None,
    acf_b: str | None = None,
    run_bits: int | None = None,
    array: Settings = None,
    constant: Settings = None,
    quick: bool = False,
    transpose_a: bool = False,
    transpose_b: bool = False,
    as_stored: bool = False,
    seed: int = 0,
) -> Ranking:
    """Memory and compute formats of A, B and the output by energy-delay product, best first, as ``fiberloom formats`` does.

    Of the operands, or of random ones with ``shape="MxKxN"`` and densities from 0 to 1. ``array`` and ``constant`` change the
    PE array and the energies. Raises InputError.
    """
    record, _ = _called(formats, {"A": A, "B": B}, locals())
    return Ranking(record)


def generate(
    config: File = "edge",
    *,
    set: Settings = None,
    value: str | None = None,
    block: str | None = None,
    param: Settings = None,
    plugin: Files = None,
    list_blocks: bool = False,
    area: str | None = None,
    name: str | None = None,
    out: File | None = None,
    lint: bool = False,
    smoke: str | None = None,
    seed: int = 0,
) -> Result:
    """Writes the Verilog of a design, or of one ``block``, to ``out`` (``out/NAME-OF-DESIGN``), as ``fiberloom generate`` does.

    The record names the folder and each file. Raises InputError.
    """
    record, made = _called(generate, {}, locals())
    return Result(record, correct=made.correct)


def analyze(
    *specs: File,
    set: Settings = None,
    sweep: str | Sequence[str] | None = None,
    explain: str | Sequence[str] | None = None,
    load: Files = None,
    plugin: Files = None,
    mapping: File | None = None,
    map: bool = False,
    objective: str | None = None,
    evaluations: int | None = None,
    seconds: float | None = None,
    victory: int | None = None,
    jobs: int | None = None,
    cluster: str | None = None,
    design: File | None = None,
    config: File | None = None,
    tiling: str | None = None,
    scheme: File | None = None,
    transpose_b: bool = False,
    density: str | None = None,
    against: str | None = None,
    out: File | None = None,
    report: File | None = None,
    seed: int | None = None,
) -> Result:
    """Analyses an accelerator from its specification (files, or a shipped name), as ``fiberloom analyze`` does.

    ``map`` searches for the best mapping, which is written to ``out`` where that is given; else ``out`` takes the specification
    with all changes. With ``design`` (or ``config``) one of Fiberloom's designs is analysed on one or two operands, by files
    or names. ``report`` takes a page. Raises InputError, also for a mapping that does not fit.
    """
    options = locals()
    del options["specs"]
    for spec in specs:
        if not isinstance(spec, str | os.PathLike):
            raise InputError(f"{spec!r}: must be the file of a specification or a shipped name")
    record, _ = _called(analyze, {f"SPEC {n}": spec for n, spec in enumerate(specs, 1)}, options)
    return Result(record)


def load(A: Array, *, as_stored: bool = False) -> Any:
    """An operand as the commands read it: SciPy's ``csr_array``, rows sorted, duplicates summed, values int64 or float64.

    ``as_stored`` keeps only the stored triangle of symmetric files. Raises InputError.
    """
    with in_one_line():
        find_rooms()
        from sw.cli.from_python import load as read

        return read(A, as_stored=as_stored)
