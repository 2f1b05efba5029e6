"""Operand pairs that reach the corners of 32-bit arithmetic: classes crossed with each other, and structured noise."""

import numpy as np

SIGN = 0x80000000

#: Patterns by class, for binary32; the same words are ordinary integers for the integer operators.
CLASSES = {
    "zero": [0x00000000],
    "subnormal": [0x00000001, 0x00000002, 0x00000003, 0x00400000, 0x007FFFFE, 0x007FFFFF, 0x00555555],
    "smallest normal": [0x00800000, 0x00800001, 0x00FFFFFF, 0x01000000, 0x01000001, 0x017FFFFF],
    "around one": [0x3F7FFFFF, 0x3F800000, 0x3F800001, 0x3F800002, 0x3FFFFFFF, 0x40000000, 0x3F000000, 0x3FAAAAAB],
    "halfway makers": [0x33800000, 0x33800001, 0x337FFFFF, 0x34000000, 0x34400000, 0x33FFFFFF, 0x3F800003, 0x4B000001],
    "largest": [0x7F7FFFFF, 0x7F7FFFFE, 0x7F000000, 0x7EFFFFFF, 0x7F000001, 0x73000000, 0x72FFFFFF, 0x73000001],
    "infinity": [0x7F800000],
    "nan": [0x7FC00000, 0x7F800001, 0x7FFFFFFF, 0x7FBFFFFF, 0x7FC01234],
    "integers": [0x00007FFF, 0x00008000, 0x0000FFFF, 0x00010000, 0x0000B505, 0x0000B504, 0x7FFFFFFF, 0x40000000],
}


def corners() -> np.ndarray:
    """Every pattern of every class with both signs, and both powers of two around each multiple of the exponent."""
    words = [word for patterns in CLASSES.values() for word in patterns]
    words += [
        exponent << 23 for exponent in (1, 2, 23, 24, 25, 63, 64, 103, 104, 126, 127, 150, 190, 191, 192, 253, 254)
    ]
    words = np.array(words, dtype=np.uint32)
    return np.unique(np.concatenate([words, words | np.uint32(SIGN)]))


def bf16_words(words: np.ndarray) -> np.ndarray:
    """Binary32 patterns as bfloat16 in slots, with the lowest places of the fractions: what lies beside a boundary stays."""
    return (words & np.uint32(0xFF800000)) | (words & np.uint32(0x7F)) << np.uint32(16)


def crossed_corners() -> tuple[np.ndarray, np.ndarray]:
    """All ordered pairs of corners."""
    words = corners()
    a, b = np.meshgrid(words, words, indexing="ij")
    return a.ravel(), b.ravel()


def exponent_ladder() -> tuple[np.ndarray, np.ndarray]:
    """Exponent differences 0 to 27 (and both ends of the range), with fractions whose sums and differences sit on, just
    below and just above a rounding boundary; both orders, all signs."""
    fractions = [0, 1, 2, 3, 0x3FFFFF, 0x400000, 0x400001, 0x7FFFFC, 0x7FFFFD, 0x7FFFFE, 0x7FFFFF, 0x2AAAAA, 0x555555]
    fractions = np.array(fractions, dtype=np.int64)
    bases = np.array([0, 1, 2, 3, 24, 28, 100, 127, 200, 227, 252, 253, 254], dtype=np.int64)
    signs = np.array([0, 1], dtype=np.int64)
    gaps = np.arange(28, dtype=np.int64)
    grid = np.meshgrid(bases, gaps, fractions, fractions, signs, signs, indexing="ij")
    base, gap, fraction_a, fraction_b, sign_a, sign_b = (axis.ravel() for axis in grid)
    low = np.maximum(base - gap, 0)
    big = (sign_a << 31 | base << 23 | fraction_a).astype(np.uint32)
    small = (sign_b << 31 | low << 23 | fraction_b).astype(np.uint32)
    return np.concatenate([big, small]), np.concatenate([small, big])


def _sparse_fraction(rng: np.random.Generator, n: int) -> np.ndarray:
    """Fractions with long runs of equal bits: single bits, ones from the top, ones from the bottom, noise."""
    place = rng.integers(0, 24, n)
    kind = rng.integers(0, 4, n)
    one = np.int64(1) << place
    choices = [one, (1 << 23) - one, one - 1, rng.integers(0, 1 << 23, n)]
    return np.choose(kind, choices) & 0x7FFFFF


def structured(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs that noise alone would hardly produce: a fifth each of close exponents, near cancellation, products around
    the subnormal border, products around overflow, and integers of few bits."""
    part = n // 5
    sign_a, sign_b = (rng.integers(0, 2, n) << 31 for _ in range(2))
    fraction_a, fraction_b = _sparse_fraction(rng, n), _sparse_fraction(rng, n)
    exponent_a = rng.integers(0, 255, n)
    exponent_b = np.clip(exponent_a + rng.integers(-27, 28, n), 0, 254)

    cancel = slice(part, 2 * part)
    exponent_b[cancel] = np.clip(exponent_a[cancel] + rng.integers(-1, 2, part), 0, 254)
    fraction_b[cancel] = (fraction_a[cancel] + rng.integers(-3, 4, part)) & 0x7FFFFF
    exponent_a[cancel][::4] = rng.integers(0, 30, len(exponent_a[cancel][::4]))

    tiny = slice(2 * part, 3 * part)
    exponent_a[tiny] = np.where(rng.random(part) < 0.4, 0, exponent_a[tiny])
    exponent_b[tiny] = np.clip(127 - exponent_a[tiny] + rng.integers(-28, 30, part), 0, 254)

    huge = slice(3 * part, 4 * part)
    exponent_b[huge] = np.clip(381 - exponent_a[huge] + rng.integers(-3, 3, part), 0, 254)

    a = (sign_a | exponent_a << 23 | fraction_a).astype(np.uint32)
    b = (sign_b | exponent_b << 23 | fraction_b).astype(np.uint32)
    small = slice(4 * part, n)
    for words in (a, b):
        width = rng.integers(1, 33, n - 4 * part)
        words[small] = (rng.integers(0, 1 << 32, n - 4 * part) >> (32 - width)).astype(np.uint32)
        words[small] ^= np.where(rng.random(n - 4 * part) < 0.5, 0xFFFFFFFF, 0).astype(np.uint32)
    return a, b


def noise(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Uniform words."""
    return tuple(rng.integers(0, 1 << 32, n, dtype=np.uint32) for _ in range(2))
