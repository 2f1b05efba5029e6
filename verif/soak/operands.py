"""Random operands: shapes, patterns and values, with no array larger than what is stored."""

import random
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sw.formats.csr import Csr
from sw.golden.arithmetic import in_slots

__all__ = ["PATTERNS", "SIZES", "Limits", "Operands", "draw_operands"]

PATTERNS = (
    "uniform",
    "band",
    "blocks",
    "skewed_rows",
    "skewed_columns",
    "diagonal",
    "gaps",
    "full",
    "hubs",
    "long_rows",
)
# Kinds of shapes, and how often each is drawn. What a slow memory or a large design cannot run in seconds is left out there.
SIZES = {"tiny": 1, "small": 3, "medium": 3, "large": 2, "hubs": 2, "long": 2, "positions": 1, "wide": 1}
SHORT = ("tiny", "small", "medium", "wide")
# More nonzeros than 16 bits count.
MANY = 66_000, 80_000
MOST_SIDE = 10_000
DENSITIES = (0.02, 0.05, 0.1, 0.3, 0.8)

Index = NDArray[np.int64]


@dataclass(frozen=True)
class Limits:
    """What a case may cost: multiplications, stored nonzeros of an operand."""

    macs: int
    nonzeros: int


@dataclass(frozen=True)
class Operands:
    """A (I x K) and B (K x J), what kind of shape they have, and the same in words."""

    a: Csr
    b: Csr
    size: str
    values: str
    text: str


@dataclass(frozen=True)
class _Pattern:
    """Places of nonzeros: rows and columns of each, sorted, none twice."""

    shape: tuple[int, int]
    rows: Index
    columns: Index

    def chosen(self, keep: NDArray[np.bool_]) -> "_Pattern":
        return replace(self, rows=self.rows[keep], columns=self.columns[keep])

    @property
    def transposed(self) -> "_Pattern":
        at = np.lexsort((self.rows, self.columns))
        return _Pattern((self.shape[1], self.shape[0]), self.columns[at], self.rows[at])


def draw_operands(
    value: str, limits: Limits, rng: random.Random, numbers: np.random.Generator, wanted: tuple[str, ...] = ()
) -> Operands:
    """Operands of one value type within the limits; ``wanted``: one of these of ``SIZES``, if they are named."""
    sizes = {name: share for name, share in SIZES.items() if limits.nonzeros > MANY[1] or name != "positions"}
    if limits.macs < 3000:
        sizes = {name: share for name, share in sizes.items() if name in SHORT}
    size = rng.choice(wanted) if wanted else rng.choices(tuple(sizes), tuple(sizes.values()))[0]
    limits = Limits(limits.macs, limits.nonzeros if size == "positions" else min(limits.nonzeros, limits.macs))
    relation = rng.choice(("other", "other", "other", "same", "transposed"))
    if size in ("long", "positions", "wide"):
        relation = "other"
    (rows, inner, columns), (first, second) = _shapes(size, rng)
    if relation == "same":
        rows = columns = inner = max(rows, inner) if size != "tiny" else inner
    a = _pattern(first, (rows, inner), _count(size, first, (rows, inner), limits, rng), rng, numbers)
    if relation == "other":
        b = _pattern(second, (inner, columns), _count(size, second, (inner, columns), limits, rng), rng, numbers)
        named = f"B {inner}x{columns} {second}"
    else:
        b, named = (a, "B A") if relation == "same" else (a.transposed, "B A transposed")
    a, b = _thinned(a, b, relation, limits.macs, numbers)
    kind = _values_kind(value, rng)
    left = _with_values(a, value, kind, rng, numbers)
    right = left if relation == "same" and rng.random() < 0.5 else _with_values(b, value, kind, rng, numbers)
    text = f"A {rows}x{inner} {first}, {named}, {left.nnz} and {right.nnz} elements, {kind} values"
    return Operands(left, right, size, kind, text)


def _shapes(size: str, rng: random.Random) -> tuple[tuple[int, int, int], tuple[str, str]]:
    """I, K and J, and the patterns of A and B."""

    def between(least: int, most: int) -> int:
        """Evenly by magnitude."""
        return min(most, round(least * (most / least) ** rng.random()))

    patterns = rng.choice(PATTERNS), rng.choice(PATTERNS)
    if size == "tiny":
        return (rng.randint(1, 3), rng.randint(1, 20), rng.randint(1, 20)), patterns
    if size == "small":
        return (between(3, 250), between(3, 250), between(3, 250)), patterns
    if size == "medium":
        return (between(100, 1500), between(100, 1500), between(100, 1500)), patterns
    if size == "large":
        sides = [between(3000, MOST_SIDE), between(200, MOST_SIDE), between(200, MOST_SIDE)]
        rng.shuffle(sides)
        return (sides[0], sides[1], sides[2]), patterns
    if size == "hubs":
        return (between(50, 2000), between(100, 2000), between(50, 2000)), ("hubs", rng.choice(("long_rows", "hubs")))
    if size == "long":
        long = rng.choice(((True, True), (True, False), (False, True)))
        inner = between(2000, MOST_SIDE) if long[0] else between(10, 300)
        columns = between(2000, MOST_SIDE) if long[1] else between(10, 300)
        named = tuple("long_rows" if is_long else rng.choice(("uniform", "gaps")) for is_long in long)
        return (between(2, 100), inner, columns), (named[0], named[1])
    if size == "positions":
        if rng.random() < 0.5:
            return (between(20, 300), between(20, 100), between(3000, MOST_SIDE)), ("uniform", "uniform")
        return (between(200, 3000), between(2000, MOST_SIDE), between(20, 300)), ("uniform", "gaps")
    sides = [between(10, 200), between(10, 200), between(1 << 17, 1 << 24)]
    return (sides[0], sides[1], sides[2]), (rng.choice(PATTERNS), "uniform")


def _count(size: str, kind: str, shape: tuple[int, int], limits: Limits, rng: random.Random) -> int:
    """About how many nonzeros are drawn, twice the same ones counted."""
    rows, columns = shape
    area = rows * columns
    if size == "positions":
        # The long side has the many.
        return (
            rng.randint(*MANY) * 5 // 4
            if max(shape) > 1500 and area > 3 * MANY[1]
            else min(area, limits.macs // 50 + 1)
        )
    if size in ("tiny", "small"):
        wanted = int(-np.log(1 - rng.choice(DENSITIES)) * area)
    elif kind == "long_rows":
        wanted = rng.randint(2000, 12_000)
    else:
        wanted = round(max(rows, min(columns, 3000)) * 10 ** rng.uniform(-0.5, 1.0))
    return max(1, min(wanted, limits.nonzeros, 3 * area))


def _pattern(
    kind: str, shape: tuple[int, int], count: int, rng: random.Random, numbers: np.random.Generator
) -> _Pattern:
    """About ``count`` nonzeros, fewer where some are drawn twice."""
    rows, columns = shape

    def skewed(side: int) -> Index:
        drawn = (side * numbers.random(count) ** rng.choice((2, 4, 8))).astype(np.int64)
        return np.asarray(numbers.permutation(side)[drawn])

    r, c = numbers.integers(0, rows, count), numbers.integers(0, columns, count)
    if kind == "band":
        width = rng.randint(0, 12)
        c = r * columns // rows + numbers.integers(-width, width + 1, count)
    elif kind == "blocks":
        side = rng.randint(2, 30)
        anchors = numbers.integers(0, max(1, count // (side * side)) + 1, count)
        r = numbers.integers(0, rows, anchors.max() + 1)[anchors] // side * side + numbers.integers(0, side, count)
        c = numbers.integers(0, columns, anchors.max() + 1)[anchors] // side * side + numbers.integers(0, side, count)
    elif kind == "skewed_rows":
        r = skewed(rows)
    elif kind == "skewed_columns":
        c = skewed(columns)
    elif kind == "diagonal":
        r = c = np.arange(min(rows, columns, count))
    elif kind == "gaps":
        used = np.flatnonzero(numbers.random(rows) < 0.4)
        r = used[numbers.integers(0, len(used), count)] if len(used) else r
    elif kind == "full" and rows * columns <= count:
        r, c = np.divmod(np.arange(rows * columns), columns)
    elif kind == "hubs":
        # Some columns that every second row has, beside what is thin.
        few = numbers.integers(0, columns, rng.randint(1, 4))
        half = min(len(few) * rows, count // 2 + 1)
        r[:half], c[:half] = numbers.integers(0, rows, half), few[numbers.integers(0, len(few), half)]
    elif kind == "long_rows":
        # A few rows of thousands, where there are so many columns, beside what is thin.
        few = numbers.integers(0, rows, rng.randint(1, 3))
        most = count * 9 // 10
        r[:most] = few[numbers.integers(0, len(few), most)]
    inside = (r < rows) & (c >= 0) & (c < columns)
    places = np.unique(r[inside] * columns + c[inside])
    return _Pattern(shape, places // columns, places % columns)


def _thinned(
    a: _Pattern, b: _Pattern, relation: str, most: int, numbers: np.random.Generator
) -> tuple[_Pattern, _Pattern]:
    """The same with nonzeros of A left out, of B as well where it is made of A, until there are few enough multiplications."""
    while True:
        lengths = np.bincount(b.rows, minlength=b.shape[0])
        macs = int(lengths[a.columns].sum())
        if macs <= most:
            return a, b
        share = most / macs
        if relation == "other":
            a = a.chosen(numbers.random(len(a.rows)) < 0.95 * share)
            continue
        a = a.chosen(numbers.random(len(a.rows)) < 0.95 * share**0.5)
        b = a if relation == "same" else a.transposed


def _values_kind(value: str, rng: random.Random) -> str:
    if value.startswith("int"):
        return rng.choice(("few", "thousands", "full range", "extreme"))
    return rng.choice(("near", "spread", "cancelling", "far apart", "subnormal", "infinite", "NaN"))


def _with_values(pattern: _Pattern, value: str, kind: str, rng: random.Random, numbers: np.random.Generator) -> Csr:
    """Values of a kind; a fifth of all operands have stored zeros."""
    count = len(pattern.rows)
    if value.startswith("int"):
        bound = {"few": 2, "thousands": 1000}.get(kind, 2**31)
        words = numbers.integers(-bound, bound, count).astype(np.int32).view(np.uint32)
        if kind == "extreme":
            width = int(value[3:])
            ends = np.array([-(2 ** (width - 1)), 2 ** (width - 1) - 1, -1, 1, 0], np.int64).astype(np.int32)
            words = ends[numbers.integers(0, len(ends), count)].view(np.uint32)
    else:
        # Magnitudes so far apart that another order of sums shows, or that products are subnormal or infinite.
        spread = {"near": 0, "spread": 12, "far apart": 66}.get(kind, 3)
        floats = (numbers.normal(size=count) * 2.0 ** numbers.integers(-spread, spread + 1, count)).astype(np.float32)
        if kind == "cancelling":
            floats = np.sign(floats).astype(np.float32)
        words = floats.view(np.uint32)
        strange = numbers.random(count) < rng.choice((0.01, 0.1, 0.5))
        words = np.where(strange, _strange(kind, count, numbers, words), words)
    if rng.random() < 0.2:
        # Of both signs.
        words = np.where(
            numbers.random(count) < 0.2, words & np.uint32(0 if value.startswith("int") else 1 << 31), words
        )
    rows, columns = pattern.shape
    return Csr(
        rows=rows,
        columns=columns,
        pointers=np.concatenate([[0], np.cumsum(np.bincount(pattern.rows, minlength=rows))]).astype(np.int64),
        coordinates=pattern.columns.astype(np.uint32),
        bits=in_slots(words.astype(np.uint32), value),
        value=value,
    )


def _strange(kind: str, count: int, numbers: np.random.Generator, words: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Patterns that a kind of values has here and there, as they are for fp32; bf16 takes their upper halves."""
    signs = numbers.integers(0, 2, count).astype(np.uint32) << np.uint32(31)
    payload = numbers.integers(1, 1 << 23, count).astype(np.uint32)
    infinity = np.uint32(0x7F800000)
    if kind == "subnormal":
        return signs | payload
    if kind == "infinite":
        # Infinities, and numbers so large that a product or a sum becomes one.
        large = signs | np.uint32(0x7F000000) | payload
        return np.where(numbers.random(count) < 0.5, signs | infinity, large)
    if kind == "NaN":
        # Quiet and signalling ones, the bits of the upper half in use.
        nan = signs | infinity | payload | np.uint32(1 << 16)
        return np.where(numbers.random(count) < 0.8, nan, signs | infinity)
    return words
