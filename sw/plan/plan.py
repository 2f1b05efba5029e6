"""The plan: what the hardware meets of one multiplication. Cost model, model tier and memory image read it."""

from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np

from sw.formats.csr import Csr
from sw.golden.tuning import TileGrid, tile_grid
from sw.scheme.scheme import Scheme
from sw.scheme.terms import LOAD_PLANNED, LOAD_REUSE, LOAD_USED, Hardware
from sw.stats.pattern import Pattern

from .gather import Index, RowPlan, gather
from .kept_matrix import KeptMatrix
from .placement import alone
from .replacement import place_rows
from .row_order import in_order, row_order
from .shapes import TileShapes
from .strips import Strips, cut_strips, most_used

__all__ = ["Plan", "plan"]

# An operand with values, or its pattern alone: who predicts needs no values.
Matrix = TypeVar("Matrix", Csr, Pattern)


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan(Generic[Matrix]):
    """One multiplication as the hardware meets it.

    Parameters
    ----------
    scheme: of ``a`` and ``b`` below, no side beyond their shape.
    a, b: the operands. Rows of ``a`` may be parts of A's rows, in any order and as many as there are: where rows of C are made in
        strips, each is a strip of a row, or an empty one where a tile has ended early; coordinates are strips of B.
    starts: int64[I + 1], where C's rows begin among the rows that the hardware writes, and the number of these.
    begins: int64[tiles + 1], the first row of ``a`` of each tile along i, and the end.
    widest: columns of C that a row which the hardware writes may have.
    rows_of_b: what each tile along i finds, loads and bumps of B, where it loads what it uses; None where tiles are cut out of B.
    grids: sides of tiles along j and k while they are tuned.
    shapes: sides of the tiles of B, where they differ; None where they are those of the grid.
    row_order: int64[I], which row of A, and of C, each row in turn is; None for their natural order.
    stored_a, stored_b, stored_c: how A, B or C lies in memory where it is converted on its way; None where it lies as the
        accelerator has it.
    """

    scheme: Scheme
    a: Matrix
    b: Matrix
    starts: Index
    begins: Index
    widest: int
    rows_of_b: RowPlan | None
    grids: dict[str, TileGrid]
    shapes: TileShapes | None = None
    row_order: Index | None = None
    stored_a: KeptMatrix | None = None
    stored_b: KeptMatrix | None = None
    stored_c: KeptMatrix | None = None


def plan(
    scheme: Scheme,
    a: Matrix,
    b: Matrix,
    design: Hardware,
    *,
    strips: Strips | None = None,
    with_places: bool = True,
) -> "Plan[Matrix]":
    """Plans a scheme that is legal for the design; sides beyond the shape are cut.

    Parameters
    ----------
    a, b: I x K and K x J, canonical.
    strips: what :func:`.strips.cut_strips` makes of them in their natural order, where somebody has asked it already.
    with_places: as :func:`.gather.gather`.

    Raises SchemeError where a tile uses more rows of B than its partition has entries for, and where A in strips is too large.
    """
    scheme = scheme.clip(a.rows, b.columns, a.columns)
    order = row_order(scheme.row_order, a, b, design)
    a = in_order(a, order)
    starts = np.arange(a.rows + 1, dtype=np.int64)
    widest, side = b.columns, "T_i"
    if scheme.strips:
        widest, side = scheme.T_j, "strips"
        cut = strips or cut_strips(a, b, b.columns, scheme.T_j)
        cut = cut.in_tiles(scheme.strips, most_used(scheme.rows_lines(design.line_bytes), design.lanes))
        starts = cut.starts
        a, b = _in_strips(a, b, cut)
        scheme = replace(scheme, T_i=scheme.strips, T_j=b.columns, T_k=a.columns, strips=0)
    begins = np.append(np.arange(0, a.rows, scheme.T_i, dtype=np.int64), a.rows)
    rows_of_b = shapes = None
    if scheme.load == LOAD_USED:
        begins = np.array([*(tile[0] for tile in scheme.tiles), a.rows], np.int64)
        rows_of_b = alone(a, begins, b.pointers, scheme.partition("B", design))
    elif scheme.tiles:
        shapes = TileShapes.of(scheme.tiles, b.columns, a.columns)
    if scheme.gathers:
        lines = scheme.rows_lines(design.line_bytes)
        options: dict[str, Any] = {"with_places": with_places, "side": side}
        if scheme.load == LOAD_PLANNED:
            rows_of_b = place_rows(a, begins, b.pointers, lines, design.lanes, **options)
        else:
            options |= {"bypass": scheme.load == LOAD_REUSE}
            rows_of_b = gather(a, begins, b.pointers, lines, design.lanes, **options)
    grids = {"j": TileGrid(scheme.T_j, 0), "k": TileGrid(scheme.T_k, 0)}
    if scheme.tuning:
        grids = {"j": tile_grid(scheme.T_j, b.columns), "k": tile_grid(scheme.T_k, a.columns)}
    return Plan(
        scheme=scheme,
        a=a,
        b=b,
        starts=starts,
        begins=begins,
        widest=widest,
        rows_of_b=rows_of_b,
        grids=grids,
        shapes=shapes,
        row_order=order,
    )


def _in_strips(a: Matrix, b: Matrix, cut: Strips) -> tuple[Matrix, Matrix]:
    """The operands, rows of which are strips."""
    inner = max(1, cut.inner)
    b_pointers = cut.b_pointers if cut.inner else np.zeros(2, np.int64)
    if isinstance(a, Csr):
        coordinates, bits = cut.coordinates.astype(np.uint32), a.bits[cut.sources]
        a = replace(a, rows=cut.rows, columns=inner, pointers=cut.pointers, coordinates=coordinates, bits=bits)
    else:
        a = replace(a, rows=cut.rows, columns=inner, pointers=cut.pointers, coordinates=cut.coordinates)
    return a, replace(b, rows=inner, pointers=b_pointers)
