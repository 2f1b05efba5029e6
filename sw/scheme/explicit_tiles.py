"""Rules for lists of tiles, each ``[i, end_i, j, end_j, k, end_k]``, whose shapes differ."""

__all__ = ["cut_inside", "longest_sides", "malformed", "steps", "uncovered"]


def malformed(tiles: list[list[int]], empty: bool = False) -> tuple[int, str] | None:
    """The first entry that is no tile, and what is allowed. ``empty``: a tile may have no coordinate along k."""
    for number, box in enumerate(tiles):
        whole = isinstance(box, list) and len(box) == 6 and all(type(n) is int for n in box)
        if not whole or not all(0 <= box[r] < box[r + 1] + (empty and r == 4) for r in (0, 2, 4)):
            return number, "[i, end_i, j, end_j, k, end_k], each end above its begin, from 0 up"
    return None


def uncovered(tiles: list[list[int]], I: int, J: int, K: int) -> tuple[int, str] | None:  # noqa: E741 - extents, as in the papers
    """The first tile that does not follow the one before, and what is allowed.

    Tiles leave nothing out and cover nothing twice: i moves first, then k, then j; the tiles of one sweep along i agree
    about j and k, those of one sweep along k about j.
    """
    at = (0, 0, 0)  # where the next tile begins: j, k, i
    ends = (0, 0)  # of the present sweeps along k and along i
    for number, (i, end_i, j, end_j, k, end_k) in enumerate(tiles):
        agrees = (at[1:] == (0, 0) or end_j == ends[0]) and (at[2] == 0 or end_k == ends[1])
        if (j, k, i) != at or not agrees or end_i > I or end_j > J or end_k > K:
            return number, f"a tile that begins at i, j, k = {at[2]}, {at[0]}, {at[1]} and ends with those beside it"
        ends = (end_j, end_k)
        at = (j, k, end_i) if end_i < I else (j, end_k, 0) if end_k < K else (end_j, 0, 0)
    return None if at == (J, 0, 0) else (len(tiles), f"more: the tiles end before i, j, k = {I}, {J}, {K}")


def cut_inside(tiles: list[list[int]], J: int, K: int) -> tuple[int, str] | None:
    """The first tile along which j or k is cut, and what is allowed where only used rows of B are loaded."""
    for number, (i, end_i, *inner) in enumerate(tiles):
        if inner != [0, J, 0, K]:
            return number, f"[{i}, {end_i}, 0, {J}, 0, {K}]: j and k are whole where load is used"
    return None


def longest_sides(tiles: list[list[int]]) -> tuple[int, int, int]:
    """Along i, j and k."""
    i, j, k = (max(box[r + 1] - box[r] for box in tiles) for r in (0, 2, 4))
    return i, j, k


def steps(tiles: list[list[int]]) -> list[tuple[int, int, int, int]]:
    """Tiles of B in order, ``(j, end_j, k, end_k)``, each once however often i moves on while it stays."""
    return list(dict.fromkeys((j, end_j, k, end_k) for _, _, j, end_j, k, end_k in tiles))
