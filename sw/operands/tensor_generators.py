"""Order-3 tensors made from a name, as matrices are (:mod:`.generators`)."""

import numpy as np
from numpy.typing import NDArray

from sw.formats.distinct import distinct

from .errors import OperandError
from .generators import MOST_ROWS, Generator, Parameter, parse, whole
from .memory import require_memory
from .patterns import values_of
from .tensors import Tensor

__all__ = ["TENSOR_GENERATORS", "generate_tensor"]

# Nonzeros drawn for each that is wanted before giving up on a skew that leaves too few places.
MOST_DRAWS = 60
BYTES_AN_ELEMENT = 96
LIMIT = 2**62

_SIZES = tuple(whole(name, f"size of rank {name}", MOST_ROWS) for name in ("I", "J", "L"))
_NONZEROS = whole("NONZEROS", "elements", MOST_ROWS)


def skewed(
    rng: np.random.Generator, rows: int, columns: int, tubes: int, count: int, *, exponent: float, source: str
) -> NDArray[np.int64]:
    """Exactly ``count`` places of a ``rows`` x ``columns`` x ``tubes`` tensor, int64[count, 3], sorted.

    The coordinate c of each rank is drawn with a chance proportional to ``(c + 1) ** -exponent``: 0 is even, 1 is Zipf's.
    """
    shape = (rows, columns, tubes)
    cells = rows * columns * tubes
    if cells > LIMIT:
        raise OperandError(f"{source}: {cells:.3g} places: must be at most {LIMIT:.3g}")
    if count > cells:
        raise OperandError(f"{source}: NONZEROS {count}: must be at most {cells}, the places there are")
    require_memory(BYTES_AN_ELEMENT * count, source)
    chances = [np.cumsum(np.arange(1, size + 1, dtype=np.float64) ** -exponent) for size in shape]
    found = np.empty(0, np.int64)
    drawn = 0
    while len(found) < count:
        wanted = max(1024, 2 * (count - len(found)))
        drawn += wanted
        if drawn > MOST_DRAWS * count + 2**20:
            raise OperandError(f"{source}: {count} different places are too many for this exponent")
        key = np.zeros(wanted, np.int64)
        for size, chance in zip(shape, chances, strict=True):
            key = key * size + np.minimum(size - 1, np.searchsorted(chance, rng.random(wanted) * chance[-1]))
        found = distinct(np.concatenate([found, key]))
    surplus = len(found) - count
    if surplus:
        found = np.delete(found, rng.choice(len(found), surplus, replace=False, shuffle=False))
    places = np.empty((count, 3), np.int64)
    for rank in (2, 1, 0):
        found, places[:, rank] = np.divmod(found, shape[rank])
    return places


TENSOR_GENERATORS = {
    "tensor": Generator(
        name="tensor",
        summary="an order-3 tensor of I x J x L with exactly NONZEROS elements; exponent: how skewed its slices are",
        example="tensor:200:80:50:4000:exponent=0.7",
        parameters=(*_SIZES, _NONZEROS),
        options={"exponent": (Parameter(name="exponent", meaning="0 even, 1 Zipf", kind=float, low=0, high=4), 0.0)},
        build=skewed,
    )
}


def generate_tensor(kind: str, argument: str, source: str) -> Tensor:
    """The tensor called ``KIND:ARGUMENT``, sorted. Raises OperandError."""
    generator = TENSOR_GENERATORS[kind]
    numbers, settings, seed, values = parse(generator, argument, source)
    assert generator.build is not None  # all of these draw
    rng = np.random.default_rng(seed)
    places: NDArray[np.int64] = generator.build(rng, *numbers, **settings, source=source)
    return Tensor(
        name=source.replace(":", "-").replace("=", ""),
        source=source,
        shape=tuple(numbers[:3]),
        coordinates=places,
        values=values_of(rng, len(places), values),
    )
