"""Operands that are not what they should be: how they are made wrong in memory.

A wrong nonzero or pointer ends the run with an error, or C is the product of what lies in memory
(:mod:`verif.stored`). Begin positions and maps of tiles are no operands: where these are wrong the run must end, and
write nothing where it may not.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sw.runtime.memory_image import MemoryImage
from sw.runtime.registers import field_value
from sw.scheme.terms import LOAD_PLANNED
from verif.stored import put_nonzeros, stored_nonzeros

from .machine import Placed

__all__ = ["Corruption", "corrupt", "extent_of"]

FAULTS = ("element", "element", "element", "pointer", "table")
ELEMENTS = ("column outside", "column far outside", "swapped", "twice", "another column")
TABLES = ("positions", "tile_map")
FAR = (1 << 20, (1 << 31) - 1, (1 << 32) - 1)


@dataclass(frozen=True)
class Corruption:
    """What was changed, in words; whether C is judged where the run ends without an error."""

    kind: str
    text: str
    judged: bool


def corrupt(placed: Placed, rng: random.Random) -> Corruption | None:
    """Spoils a product's memory, until it is restored. None where it has nothing to spoil.

    Maps of tiles mostly call every tile occupied then: what stands in a tile that they call empty is not looked at.
    """
    kind = rng.choice(FAULTS)
    found = _table(placed, rng) if kind == "table" else _pointer(placed, rng) if kind == "pointer" else None
    found = found or _nonzero(placed, rng)
    if found is not None and found.judged and not placed.product.scheme.gathers and rng.random() < 0.8:
        for name in ("a_tile_map", "b_tile_map"):
            _words(placed.image, name)[:] = 0xFFFFFFFF
    return found


def _nonzero(placed: Placed, rng: random.Random) -> Corruption | None:
    tensor = rng.choice("ab")
    pointers = _rows(placed, tensor)
    nonzeros = stored_nonzeros(placed.image, tensor)[: int(pointers[-1])]
    rows = np.flatnonzero(np.diff(pointers) > 0)
    if not len(rows):
        return None
    row = int(rows[rng.randrange(len(rows))])
    begin, end = int(pointers[row]), int(pointers[row + 1])
    kind = rng.choice(ELEMENTS if end - begin > 1 else ELEMENTS[:2])
    extent = extent_of(placed.registers, tensor, by_columns=placed.by_columns)
    at, other = rng.sample(range(begin, end), 2) if end - begin > 1 else (begin, begin)
    before = int(nonzeros[at, 0])
    if kind == "swapped":
        nonzeros[[at, other]] = nonzeros[[other, at]]
    else:
        nonzeros[at, 0] = {
            "column outside": extent,
            "column far outside": rng.choice(FAR),
            "twice": int(nonzeros[other, 0]),
            "another column": _another(placed, nonzeros, tensor, extent, rng),
        }[kind]
    put_nonzeros(placed.image, tensor, nonzeros)
    what = f"{tensor.upper()} {kind}"
    return Corruption(what, f"{what}: row {row}, element {at - begin}: {before} -> {nonzeros[at, 0]}", judged=True)


def extent_of(registers: Mapping[str, int], tensor: str, *, by_columns: bool = False) -> int:
    """The least coordinate that is none: of A an entry and a load where rows of B have planned places.

    ``by_columns``: B lies so.
    """
    if tensor == "b":
        return registers["SHAPE_K" if by_columns else "SHAPE_J"]
    if field_value("MODES", "planned", registers["MODES"]):
        return registers["TILE_K"] << field_value("MODES", "entry_bits", registers["MODES"])
    return registers["SHAPE_K"]


def _another(placed: Placed, nonzeros: NDArray[np.uint32], tensor: str, extent: int, rng: random.Random) -> int:
    """A column at random, or the coordinate of any nonzero of A: most entries at most loads have no row."""
    if tensor == "a" and placed.product.scheme.load == LOAD_PLANNED and rng.random() < 0.7:
        return int(nonzeros[rng.randrange(len(nonzeros)), 0])
    return rng.randrange(extent)


def _pointer(placed: Placed, rng: random.Random) -> Corruption | None:
    """A pointer between two others."""
    tensor = rng.choice("ab")
    rows = _fibers(placed, tensor)
    if rows < 2:
        return None
    words, at = _words(placed.image, f"{tensor}_pointers"), rng.randrange(1, rows)
    before = int(words[at])
    words[at] = rng.choice((0, before + 1, before - 1, *FAR)) & 0xFFFFFFFF
    kind = f"{tensor.upper()} pointer"
    return Corruption(kind, f"{kind} {at}: {before} -> {words[at]}", judged=True)


def _table(placed: Placed, rng: random.Random) -> Corruption | None:
    """Begin positions and maps of tiles, which are no part of the operands."""
    image = placed.image
    names = [name for t in "ab" for table in TABLES if (name := f"{t}_{table}") in image.regions]
    if not names:
        return None
    name = rng.choice(names)
    words = _words(image, name)
    if name.endswith("map"):
        gathered = placed.product.scheme.gathers and name.startswith("a")  # 16 bytes for each tile along i
        used = 4 * -(-placed.registers["SHAPE_I"] // placed.registers["TILE_I"]) if gathered else 4
    else:
        used = _fibers(placed, name[0])
        if name.startswith("b") and placed.product.scheme.load == LOAD_PLANNED:
            used *= 2  # behind each begin stands where the row goes
    at = rng.randrange(max(1, min(used, len(words))))
    before = int(words[at])
    after = rng.choice(
        (0, -1, before ^ 1 << rng.randrange(32), before + rng.choice((-3, -1, 1, 20)), rng.getrandbits(6))
    )
    words[at] = after & 0xFFFFFFFF
    kind = f"{name[0].upper()} {name.partition('_')[2]}"
    return Corruption(kind, f"{name}[{at}]: {before} -> {words[at]}", judged=False)


def _words(image: MemoryImage, name: str) -> NDArray[np.uint32]:
    return image.regions[name].data.view("<u4") if name in image.regions else np.zeros(0, np.uint32)


def _fibers(placed: Placed, tensor: str) -> int:
    """Rows of the operand, or columns of B where it lies by these."""
    return placed.registers["SHAPE_I" if tensor == "a" else "SHAPE_J" if placed.by_columns else "SHAPE_K"]


def _rows(placed: Placed, tensor: str) -> NDArray[np.int64]:
    """Pointers of the operand as the hardware meets it; of B that of the operand itself."""
    if tensor == "b":
        return placed.product.b.transposed().pointers if placed.by_columns else placed.product.b.pointers
    found: NDArray[np.int64] = _words(placed.image, "a_pointers")[: placed.registers["SHAPE_I"] + 1].astype(np.int64)
    return found
