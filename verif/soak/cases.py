"""The soak's cases: each is a function of a seed and a number, whatever ran before it."""

import random
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from gen.design import Design, DesignError, load_design
from sw.formats.csr import Csr
from sw.golden.arithmetic import in_slots
from sw.tiling.scheme import MINIMUM_FIFO_LINES, MINIMUM_LINES_A, ORDERS, Scheme, SchemeError
from sw.tiling.strips import check_strips, strips_of
from sw.tiling.windows import boxes, steady, windows_of
from verif.fastsim.loader import BusTiming

__all__ = ["CASES_PER_DESIGN", "Case", "design_of", "make_case"]

# Compiling a design takes as long as some hundred cases.
CASES_PER_DESIGN = 200
MOST_MACS = 60_000
ATTEMPTS = 200
PATTERNS = ("uniform", "uniform", "band", "blocks", "skewed_rows", "skewed_columns", "diagonal", "gaps", "full")
CHOICES: dict[str, tuple[Any, ...]] = {
    "pe.count": (1, 2, 2, 3),
    "pe.merge_radix": (2, 4, 4, 8),
    "pe.value": ("int8", "int16", "int32", "bf16", "fp32", "fp32"),
    # What does not fit the type is refused, and another design drawn.
    "pe.overflow": ("wrap", "wrap", "saturate"),
    "pe.subnormals": ("keep", "keep", "flush"),
    "pe.leaf_lines": (1, 2, 4),
    "pe.queue_lines": (2, 3, 8, 16),
    "buffer.bytes": (2048, 4096, 8192, 16384),
    "buffer.banks": (1, 2, 4, 8),
    "buffer.fifo_bytes": (64, 128, 512, 1024),
    "axi.data_bits": (128, 256),
    "axi.outstanding": (1, 2, 5, 16),
    "axi.burst_beats": (1, 4, 16),
    "tuning.dynamic": ("true", "true", "false"),
}


@dataclass(frozen=True)
class Case:
    """One multiplication.

    Parameters
    ----------
    name: ``SEED:NUMBER``, from which :func:`make_case` makes it again.
    design, scheme, a, b, timing: what runs on what, with which memory.
    text: the same for people, on one line.
    """

    name: str
    design: Design
    scheme: Scheme
    a: Csr
    b: Csr
    timing: BusTiming
    text: str


def design_of(seed: int, number: int) -> Design:
    """A random legal design with hardware, small enough to be compiled in a minute."""
    rng = random.Random(f"{seed} design {number}")
    for _ in range(ATTEMPTS):
        overrides = [f"{field}={rng.choice(values)}" for field, values in CHOICES.items()]
        try:
            return load_design("tiny", overrides)
        except DesignError:
            continue
    raise RuntimeError(f"no legal design found for seed {seed}, design {number}")


def make_case(seed: int, number: int) -> Case:
    """Case ``number`` of a seed; its design is that of all cases with the same ``number // CASES_PER_DESIGN``."""
    design = design_of(seed, number // CASES_PER_DESIGN)
    rng = random.Random(f"{seed} case {number}")
    numbers = np.random.default_rng([seed, number])
    for _ in range(ATTEMPTS):
        a, b, operands = _operands(design.pe.value, rng, numbers)
        if int(np.diff(b.pointers)[a.coordinates].sum()) > MOST_MACS:
            continue
        scheme = _scheme(design, a, b, rng)
        try:
            scheme.validate(design, a.rows, b.columns, a.columns)
            if scheme.listed:
                check_strips(scheme, a, b, b.columns, design)
        except SchemeError:
            continue
        timing = _timing(rng)
        tile = f"{scheme.order} {scheme.T_i}x{scheme.T_k}x{scheme.T_j}"
        modes = "".join(tensor for tensor in "ABC" if scheme.buffers(tensor)) or "none"
        lines = "/".join(str(scheme.buffer_bytes[tensor] // design.line_bytes) for tensor in "ABC")
        tuned = " tuned" if scheme.tuning else f" {len(scheme.windows)} windows" if scheme.windows else ""
        tuned += " list" if scheme.listed else ""
        tuned += " strips" if strips_of(scheme, b.columns) else ""
        text = f"{operands}; {tile} (i x k x j), kept {modes}, lines {lines}{tuned}; memory {timing}"
        return Case(f"{seed}:{number}", design, scheme, a, b, timing, text)
    raise RuntimeError(f"no legal case found for {seed}:{number}")


def _operands(value: str, rng: random.Random, numbers: np.random.Generator) -> tuple[Csr, Csr, str]:
    rows, inner, columns = (_side(rng) for _ in range(3))
    relation = rng.choice(("other", "other", "other", "same", "transposed"))
    if relation == "same":
        rows = columns = inner
    pattern = rng.choice(PATTERNS)
    first = _pattern(pattern, rows, inner, rng, numbers)
    if relation == "other":
        other = rng.choice(PATTERNS)
        second = _pattern(other, inner, columns, rng, numbers)
        text = f"A {rows}x{inner} {pattern}, B {inner}x{columns} {other}"
    else:
        second = first if relation == "same" else first.T
        text = f"A {rows}x{inner} {pattern}, B {'A' if relation == 'same' else 'A transposed'}"
    a, b = (_with_values(matrix, value, rng, numbers) for matrix in (first, second))
    if relation == "same" and rng.random() < 0.5:
        b = a
    return a, b, f"{text}, {a.nnz} and {b.nnz} elements"


def _side(rng: random.Random) -> int:
    """Mostly dozens, at times degenerate or beyond a hundred."""
    least, most = rng.choice(((1, 2), (3, 20), (10, 80), (10, 80), (10, 80), (60, 250)))
    return rng.randint(least, most)


def _pattern(kind: str, rows: int, columns: int, rng: random.Random, numbers: np.random.Generator) -> Any:
    density = rng.choice((0.01, 0.05, 0.1, 0.3, 0.8))
    chance = np.full((rows, columns), density)
    if kind == "band":
        width = rng.randint(0, 12)
        offset = np.arange(columns)[None, :] * rows - np.arange(rows)[:, None] * columns
        chance = np.where(np.abs(offset) <= width * max(rows, columns), max(density, 0.5), 0.0)
    elif kind == "blocks":
        size = rng.randint(2, 30)
        coarse = numbers.choice((0.0, 0.02, density), size=(-(-rows // size), -(-columns // size)))
        chance = np.kron(coarse, np.ones((size, size)))[:rows, :columns]
    elif kind == "skewed_rows":
        chance = np.minimum(1.0, density * numbers.pareto(1.0, size=(rows, 1))) * np.ones((1, columns))
    elif kind == "skewed_columns":
        chance = np.minimum(1.0, density * numbers.pareto(1.0, size=(1, columns))) * np.ones((rows, 1))
    elif kind == "diagonal":
        chance = np.eye(rows, columns)
    elif kind == "gaps":
        chance = chance * (numbers.random((rows, 1)) < 0.4)
    elif kind == "full":
        chance = np.ones((rows, columns)) if rows * columns < 2000 else chance
    return sp.csr_array(numbers.random((rows, columns)) < chance)


def _with_values(matrix: Any, value: str, rng: random.Random, numbers: np.random.Generator) -> Csr:
    matrix = sp.csr_array(matrix)
    matrix.sort_indices()
    count = matrix.nnz
    if value.startswith("int"):
        bound = rng.choice((2, 1000, 2**31))
        values = numbers.integers(-bound, bound, count).astype(np.int32)
    else:
        # Magnitudes so far apart that another order of sums shows, or that products are subnormal or infinite; sums that
        # cancel; stored zeros.
        spread = rng.choice((0, 3, 12, 12, 66))
        values = (numbers.normal(size=count) * 2.0 ** numbers.integers(-spread, spread + 1, count)).astype(np.float32)
        if rng.random() < 0.3:
            values = np.sign(values).astype(np.float32)
    if rng.random() < 0.2:
        values[numbers.random(count) < 0.2] = 0
    return Csr(
        rows=matrix.shape[0],
        columns=matrix.shape[1],
        pointers=matrix.indptr.astype(np.int64),
        coordinates=matrix.indices.astype(np.uint32),
        bits=in_slots(values.view(np.uint32), value),
        value=value,
    )


def _scheme(design: Design, a: Csr, b: Csr, rng: random.Random) -> Scheme:
    """Any order, cut and partition; what is not legal is for the caller to throw away."""
    lines = design.sram_lines
    order = rng.choice(ORDERS)
    sizes = {"i": a.rows, "j": b.columns, "k": a.columns}
    tile = {rank: size if rng.random() < 0.35 else rng.randint(1, size) for rank, size in sizes.items()}
    # Cuts of a few coordinates make thousands of tiles, which tell no more than dozens.
    tile = {rank: max(side, -(-sizes[rank] // 12)) for rank, side in tile.items()}
    keeps_a, streams_b, keeps_c = rng.random() < 0.4, rng.random() < 0.15, rng.random() < 0.5
    a_lines = rng.randint(MINIMUM_LINES_A, max(MINIMUM_LINES_A, lines // 2)) if keeps_a else MINIMUM_LINES_A
    c_lines = rng.randint(0, max(0, lines // 3)) if rng.random() < 0.6 else 0
    left = lines - a_lines - c_lines
    b_lines = left if rng.random() < 0.5 else rng.randint(min(6, left), max(6, left))
    line = design.line_bytes
    fifo_b = rng.randint(MINIMUM_FIFO_LINES, max(MINIMUM_FIFO_LINES, b_lines // 2))
    if streams_b:
        tile["j"] = sizes["j"]
    scheme = Scheme(
        policy="soak",
        order=order,
        T_i=tile["i"],
        T_j=tile["j"],
        T_k=tile["k"],
        buffer_bytes={"A": a_lines * line, "B": b_lines * line, "C": c_lines * line},
        fifo_bytes={"A": MINIMUM_FIFO_LINES * line, "B": fifo_b * line},
        mode={
            "A": "buffering" if keeps_a else "streaming",
            "B": "streaming" if streams_b else "buffering",
            "C": "buffering" if keeps_c and c_lines and order[2] == "k" else "streaming",
        },
    )
    kind = rng.random()
    if kind < 0.15:
        return _windowed(scheme, a, b, rng)
    if kind < 0.3:
        mode = {"A": "streaming", "B": "buffering", "C": "streaming"}
        T_j = tile["j"] if rng.random() < 0.5 else b.columns  # strips, or whole rows
        return replace(scheme, T_j=T_j, T_k=a.columns, mode=mode, load="list")
    tuned = design.tuning.dynamic and not streams_b and rng.random() < 0.4
    return replace(scheme, tuning=True) if tuned else scheme


def _windowed(scheme: Scheme, a: Csr, b: Csr, rng: random.Random) -> Scheme:
    """A window of k for each tile along i, with B kept alone; some wider than needed, some that only move on."""
    windows = windows_of(a.pointers, a.coordinates, scheme.T_i)
    if rng.random() < 0.5:
        windows = steady(windows, b.pointers, rng.choice((20, 100, 1000)), 2)
    if rng.random() < 0.4:
        filled = windows[:, 1] > windows[:, 0]
        windows[filled] += np.array([-rng.randint(0, 5), rng.randint(0, 5)])
        windows = np.clip(windows, 0, a.columns)
    return replace(
        scheme,
        T_j=b.columns,
        T_k=max(1, int((windows[:, 1] - windows[:, 0]).max())),
        mode={"A": "streaming", "B": "buffering", "C": "streaming"},
        tiles=boxes(windows, scheme.T_i, (a.rows, b.columns)),
        load="window",
    )


def _timing(rng: random.Random) -> BusTiming:
    if rng.random() < 0.3:
        return BusTiming()
    return BusTiming(
        read_latency=rng.choice((1, 5, 40, 150)),
        write_latency=rng.choice((1, 20, 90)),
        jitter=rng.choice((0, 10, 60)),
        outstanding=rng.choice((1, 4, 64)),
        beats_per_cycle=rng.choice((0.3, 1.0, 2.0)),
        stall=rng.choice((0.0, 0.1, 0.4)),
        reorder=rng.random() < 0.6,
        seed=rng.randint(0, 2**31),
    )
