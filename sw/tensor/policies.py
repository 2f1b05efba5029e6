"""Tile sides for TTM and MTTKRP: the conservative and the prescient square, and D2T2's shapes. Paper: D2T2, sections 5.2, 6.

Each input operand has a buffer of its own, all of one size, in which every tile of it fits whole; partial results leave as
they come.
"""

from collections.abc import Callable
from functools import partial

from sw.scheme.errors import SchemeError
from sw.stats.csf import WORD_BYTES, csf_words
from sw.stats.largest import largest_good

from .csf import tensor_words
from .kernels import Problem, Sides, TensorKernel
from .model import TensorTrafficModel
from .traffic import largest_words

__all__ = ["POLICIES", "Policy", "conservative_side", "d2t2", "dense_words", "grown", "prescient", "shapes", "uniform"]

# Coarse powers of two of RF, and how far the fine ones lie beside the best of them.
COARSE = (-4, -2, 0, 2, 4, 6)
FINE = (-1, 0, 1)

# The problem, words of a buffer, and what the statistics of tiles of the conservative side predict.
Policy = Callable[[Problem, int, TensorTrafficModel], Sides]


def dense_words(kernel: TensorKernel, sides: Sides) -> int:
    """Footprint of the larger of a dense tile of the tensor and dense tiles of the matrices."""
    first, second, third, free = sides
    found = [tensor_words(first * second * third, first * second, first, 1)]
    found += [csf_words(sides[rank] * free, sides[rank], 1) for rank in kernel.contracted]
    return max(found)


def conservative_side(problem: Problem, words: int) -> int:
    """The longest side, the same along all ranks, at which dense tiles fit; clipped to nothing but the longest rank.

    Raises SchemeError where a single element does not fit.
    """
    if dense_words(problem.kernel, (1, 1, 1, 1)) > words:
        least = WORD_BYTES * dense_words(problem.kernel, (1, 1, 1, 1))
        raise SchemeError("buffer", WORD_BYTES * words, f"at least {least} bytes, which one element takes")
    return largest_good(
        max(problem.extent), lambda n: dense_words(problem.kernel, _clip((n, n, n, n), problem)) <= words
    )


def uniform(problem: Problem, words: int, model: TensorTrafficModel) -> Sides:
    """The conservative square: fits whatever the operands hold."""
    side = conservative_side(problem, words)
    return _clip((side, side, side, side), problem)


def prescient(problem: Problem, words: int, model: TensorTrafficModel) -> Sides:
    """The largest square of which every tile fits, by bisection, which looks at every tile."""
    side = conservative_side(problem, words)

    def fits(n: int) -> bool:
        return n <= side or max(largest_words(problem, _clip((n, n, n, n), problem))) <= words

    found = largest_good(max(problem.extent), fits)
    return _clip((found, found, found, found), problem)


def d2t2(problem: Problem, words: int, model: TensorTrafficModel, *, before: bool = False) -> Sides:
    """The shape of the least predicted traffic among those of which a dense tile fits, grown by TileFactor.

    RF is searched in powers of two for the tensor's first two ranks; the third and the free rank take what is left of the
    buffers. First every fourth, then the neighbours of the best. Shapes are compared as they are after growing, since what
    they cost depends on where their long sides end; ``before``: as tiles of the conservative size, as in the paper.
    """
    costs: dict[tuple[int, int], tuple[float, Sides]] = {}

    def look(powers: list[tuple[int, int]]) -> tuple[int, int]:
        known = [sides for _, sides in costs.values()]
        for power, shape in shapes(problem, words, model.tensor.T, powers).items():
            sides = shape if before else grown(problem, words, shape)
            if sides not in known:
                costs[power] = model.predict(sides).total, sides
        return min(costs, key=lambda power: costs[power][0])

    first, second = look([(p, q) for p in COARSE for q in COARSE])
    best = look([(first + p, second + q) for p in FINE for q in FINE])
    sides = costs[best][1]
    return grown(problem, words, sides) if before else sides


def shapes(problem: Problem, words: int, T: int, powers: list[tuple[int, int]]) -> dict[tuple[int, int], Sides]:
    """Shapes whose dense tiles fit, by the powers of two of RF along the first two ranks; each shape once.

    {T RF1, T RF2, what is left} for the tensor; of the free rank as much as fits beside the longest contracted side.
    """
    kernel, extent = problem.kernel, problem.extent
    found: dict[Sides, tuple[int, int]] = {}
    for p, q in powers:
        first, second = (max(1, min(extent[r], int(T * 2.0**power))) for r, power in enumerate((p, q)))

        def fits(third: int, free: int = 1, first: int = first, second: int = second) -> bool:
            return dense_words(kernel, (first, second, third, free)) <= words

        third = largest_good(extent[2], fits)
        if not fits(third):
            continue
        free = largest_good(extent[3], partial(fits, third))
        found.setdefault((first, second, third, free), (p, q))
    return {powers: shape for shape, powers in found.items()}


def grown(problem: Problem, words: int, sides: Sides) -> Sides:
    """TileFactor (section 5.2.1): as many of the largest tiles as fit lie side by side in one, so that nothing overflows.

    The free rank grows with the matrices' factor, the tensor's ranks with its own, the outermost first; those that are
    summed over only as far as the matrix has room too.
    """
    kernel, extent = problem.kernel, problem.extent
    tensor, *matrices = largest_words(problem, sides)
    found = list(sides)
    growth = [max(1, words // max(1, largest)) for largest in matrices]
    free = min(min(growth), -(-extent[3] // found[3]))
    found[3] = min(extent[3], found[3] * free)
    growth = [number // free for number in growth]
    left = max(1, words // max(1, tensor))
    for rank in range(3):
        factor = min(left, -(-extent[rank] // found[rank]))
        if rank in kernel.contracted:
            factor = min(factor, growth[rank - kernel.kept])
        found[rank] = min(extent[rank], found[rank] * factor)
        left //= factor
    return found[0], found[1], found[2], found[3]


def _clip(sides: Sides, problem: Problem) -> Sides:
    first, second, third, free = (min(side, size) for side, size in zip(sides, problem.extent, strict=True))
    return first, second, third, free


POLICIES: dict[str, Policy] = {"uniform": uniform, "prescient": prescient, "d2t2": d2t2}
