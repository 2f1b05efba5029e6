"""Random legal schemes of a wanted kind: built to be legal, not drawn until one is."""

import random
from dataclasses import dataclass, replace

import numpy as np

from gen.design import Design
from sw.formats.csr import Csr
from sw.plan.gather import RowPlanError
from sw.plan.plan import plan
from sw.scheme.errors import SchemeError
from sw.scheme.scheme import Scheme
from sw.scheme.shares import MINIMUM_FIFO_LINES, MINIMUM_LINES_A
from sw.scheme.terms import (
    BUFFERING,
    CARRIED,
    GATHERS,
    JOINED,
    LISTS,
    LOAD_PLANNED,
    MOST_STEPS,
    MOST_STRIPS,
    ONLY_B,
    ORDERS,
    STREAMING,
    WEIGHT_STATIONARY,
)

__all__ = ["ALONG_I", "KINDS", "PLAIN", "TILES", "TUNED", "Budget", "draw_scheme"]

# What stays on chip, or how tiles are said: each is drawn as often as the others.
KINDS = (
    "B kept",
    "A kept",
    "C on chip",
    "A kept, C on chip",
    "B streamed",
    "tuned",
    "tuned, C on chip",
    "list",
    "planned",
    "strips",
)
# These need a design that can; the others stand for them where it cannot.
TUNED = {"tuned": "B kept", "tuned, C on chip": "C on chip"}
# These cut i alone.
ALONG_I = ("list", "planned", "strips")
# What weight-stationary PEs have in their place.
PLAIN = TUNED | {"list": "A kept", "planned": "B kept", "strips": "B streamed"}
LOADS = {"list": LISTS, "planned": (LOAD_PLANNED,), "strips": GATHERS}
# About how many tiles a scheme makes: whole, few, dozens, hundreds, thousands.
TILES = ((1, 1), (2, 12), (12, 100), (100, 1000), (1000, 5000))
# Shapes may be halved three times along two ranks.
TUNED_GROWTH = 8


@dataclass(frozen=True)
class Budget:
    """What a run may cost: visits of tiles; rows and elements that are looked at, once for each tile they are looked at in.

    ``tiles``: about how many of them are wanted, one of ``TILES``.
    """

    visits: int
    sweeps: int
    tiles: tuple[int, int]


def draw_scheme(kind: str, design: Design, a: Csr, b: Csr, budget: Budget, rng: random.Random) -> Scheme:
    """A scheme of one of ``KINDS``. Raises SchemeError where the operands or the budget have none."""
    if kind in ALONG_I:
        scheme = _along_i(kind, design, a, b, budget, rng)
    else:
        scheme = _grid(kind, design, a, b, budget, rng)
    scheme.validate(design, a.rows, b.columns, a.columns)
    if scheme.gathers:
        plan(scheme, a, b, design)
    return scheme


def _grid(kind: str, design: Design, a: Csr, b: Csr, budget: Budget, rng: random.Random) -> Scheme:
    sizes = {"i": a.rows, "j": b.columns, "k": a.columns}
    keeps_a, keeps_c, tuned = "A kept" in kind, "C on chip" in kind, kind in TUNED
    keeps_a |= tuned and rng.random() < 0.25
    streams_b = kind == "B streamed"
    stationary = design.pe.dataflow == WEIGHT_STATIONARY
    orders = [order for order in ORDERS if order[2] == "k"] if keeps_c else ORDERS
    most = max(1, budget.visits // (TUNED_GROWTH if tuned else 1))
    # Fibers of B that are streamed are whole; tiles of its columns are as wide as there are PEs, or less.
    whole = ("k" if stationary else "j") if streams_b else ""
    operands = design.converts.replace("c", "")  # C can be converted whatever is whole
    if operands and not tuned and rng.random() < 0.7:
        whole += {"a": "k", "b": "j"}[rng.choice(operands)]  # so that this one can be converted on its way in
    width = min(sizes["j"], rng.randint(1, design.pe.count)) if stationary else 0
    if width:
        whole += "j"
        most //= -(-sizes["j"] // width)
        if not most:
            raise SchemeError("T_j", width, "wider: the run would take too long")
    tile = _tile(sizes, "".join(rank for rank in "ijk" if rank not in whole), most, budget.tiles, rng)
    tile["j"] = width or tile["j"]
    lines, lanes = design.sram_lines, design.lanes
    fifo_a = MINIMUM_FIFO_LINES if rng.random() < 0.5 else rng.randint(MINIMUM_FIFO_LINES, MINIMUM_LINES_A)

    # A and C: metadata of T_i rows must fit, in each half of C's partition.
    a_lines = MINIMUM_LINES_A if rng.random() < 0.5 else rng.randint(MINIMUM_LINES_A, max(MINIMUM_LINES_A, lines // 8))
    c_lines = rng.randint(0, lines // 4) if rng.random() < 0.6 else 0
    capacity = (lines - MINIMUM_FIFO_LINES - 2) // 2
    if keeps_a:
        tile["i"] = min(tile["i"], lanes * (max(MINIMUM_LINES_A, capacity // (2 if keeps_c else 1)) - 1))
        least = max(MINIMUM_LINES_A, -(-tile["i"] // lanes) + 1)
        a_lines = rng.randint(least, max(least, lines // 3))
    if keeps_c:
        left = lines - a_lines - MINIMUM_FIFO_LINES - 2
        tile["i"] = min(tile["i"], lanes * max(1, min(capacity, left) // 2 - 1))
        least = -(-tile["i"] // lanes) + 1
        c_lines = 2 * rng.randint(least, max(least, min(lines // 4, left // 2)))
    spare = lines - a_lines - c_lines - MINIMUM_FIFO_LINES - 2 if keeps_c else c_lines
    scratch_lines = 0 if stationary else _scratch_lines(spare, rng)
    c_lines += scratch_lines if keeps_c else 0
    b_lines, fifo_b = _room_for_b(lines - a_lines - c_lines, rng)
    if not streams_b:
        of_fibers = "j" if stationary else "k"
        tile[of_fibers] = min(tile[of_fibers], lanes * (b_lines - fifo_b - 1))
    _check_cost(sizes, tile, a, b, budget)
    line = design.line_bytes
    may_join = not (stationary or keeps_c or tuned) and tile["k"] < sizes["k"] <= MOST_STEPS * tile["k"]
    return Scheme(
        policy="soak",
        order=rng.choice(orders),
        T_i=tile["i"],
        T_j=tile["j"],
        T_k=tile["k"],
        buffer_bytes={"A": a_lines * line, "B": b_lines * line, "C": c_lines * line},
        fifo_bytes={"A": min(fifo_a, a_lines) * line, "B": fifo_b * line},
        mode={
            "A": BUFFERING if keeps_a else STREAMING,
            "B": STREAMING if streams_b else BUFFERING,
            "C": BUFFERING if keeps_c else STREAMING,
        },
        tuning=tuned,
        partial_rows=rng.choice((CARRIED, JOINED)) if may_join else CARRIED,
        scratch_bytes=scratch_lines * line,
    )


def _along_i(kind: str, design: Design, a: Csr, b: Csr, budget: Budget, rng: random.Random) -> Scheme:
    """Tiles along i alone, k whole, that load the rows of B that they use; in strips of j, too."""
    lines, line = design.sram_lines, design.line_bytes
    rows = a.rows
    a_lines = MINIMUM_LINES_A if rng.random() < 0.7 else rng.randint(MINIMUM_LINES_A, max(MINIMUM_LINES_A, lines // 4))
    c_lines = rng.randint(0, lines // 8) if rng.random() < 0.3 else 0
    b_lines, fifo_b = _room_for_b(lines - a_lines - c_lines, rng)
    T_j = b.columns
    if kind == "strips":
        if b.columns < 2:
            raise SchemeError("T_j", 1, "less than J")
        strips = min(b.columns, MOST_STRIPS, rng.choice((2, 3, 8, 40, 400)))
        T_j = min(b.columns - 1, -(-b.columns // strips))
        rows = max(rows, min(a.nnz, rows * strips))
    size = min(a.rows, _tile({"i": rows}, "i", budget.visits, budget.tiles, rng)["i"])
    scheme = Scheme(
        policy="soak",
        order=rng.choice(ORDERS),
        T_i=size,
        T_j=T_j,
        T_k=a.columns,
        buffer_bytes={"A": a_lines * line, "B": b_lines * line, "C": c_lines * line},
        fifo_bytes={"A": MINIMUM_FIFO_LINES * line, "B": fifo_b * line},
        mode=dict(ONLY_B),
        load=rng.choice(LOADS[kind]),
        scratch_bytes=_scratch_lines(c_lines, rng) * line,
    )
    if kind == "strips":
        scheme = replace(scheme, strips=size, T_i=a.rows)
    while True:
        try:
            plan(scheme, a, b, design)
        except RowPlanError:
            # A tile uses more rows of B than there are entries for.
            if size == 1:
                raise
            size //= 2
            scheme = replace(scheme, strips=size) if scheme.strips else replace(scheme, T_i=size)
        else:
            return scheme


def _scratch_lines(spare: int, rng: random.Random) -> int:
    """Lines in which scratch fibers stay on chip, of those that nothing else needs."""
    return rng.randint(0, spare) if spare > 0 and rng.random() < 0.7 else 0


def _room_for_b(left: int, rng: random.Random) -> tuple[int, int]:
    """Lines of B's partition, and of its FIFO-managed region."""
    least = MINIMUM_FIFO_LINES + 2
    if left < least:
        raise SchemeError("buffer_bytes.B", left, f"at least {least} lines")
    lines = left if rng.random() < 0.5 else rng.randint(least, left)
    fifo = rng.randint(MINIMUM_FIFO_LINES, max(MINIMUM_FIFO_LINES, min(lines - 2, lines // rng.choice((2, 4, 16)))))
    return lines, fifo


def _tile(sizes: dict[str, int], cut: str, most: int, tiles: tuple[int, int], rng: random.Random) -> dict[str, int]:
    """Sides that make about as many tiles as are wanted, along the ranks that may be cut."""
    least, limit = tiles
    target = min(most, round(least * (limit / least) ** rng.random()))
    shares = {rank: rng.random() if rng.random() < 0.7 else 0.0 for rank in cut}
    whole = sum(shares.values())
    counts = {rank: target ** (share / whole) if whole else 1.0 for rank, share in shares.items()}
    tile = {rank: max(1, round(size / counts.get(rank, 1.0))) for rank, size in sizes.items()}
    # Rounded down sides make more tiles than were wanted.
    while np.prod([-(-sizes[rank] // tile[rank]) for rank in sizes]) > most:
        rank = max(sizes, key=lambda rank: sizes[rank] / tile[rank])
        tile[rank] = min(sizes[rank], tile[rank] * 3 // 2 + 1)
    return tile


def _check_cost(sizes: dict[str, int], tile: dict[str, int], a: Csr, b: Csr, budget: Budget) -> None:
    """Raises SchemeError where the tiles cost more than the budget."""
    i, j, k = (-(-sizes[rank] // tile[rank]) for rank in "ijk")
    sweeps = j * (k * a.rows + a.nnz) + i * (j * b.rows + b.nnz)
    if i * j * k > budget.visits or sweeps > budget.sweeps:
        raise SchemeError("T_i", tile["i"], "larger: the run would take too long")
