"""Bus lines of a tiled multiplication, counted tile by tile, row by row, use by use: slow, plain, for small operands.

Independent of the statistics and of the cost model: only the rules of access are the same. No merge takes more than one
pass (choose the radix accordingly).
"""

from collections import Counter
from itertools import product

import scipy.sparse as sp

from sw.scheme.scheme import Scheme

__all__ = ["reference_traffic"]


class Reader:
    """Rows of one operand, and in which tiles along them their accessor has been: begin positions follow from that."""

    def __init__(self, matrix: sp.csr_array, lanes: int, side: int) -> None:
        self.pointers, self.coordinates = matrix.indptr.tolist(), matrix.indices.tolist()
        self.lanes = lanes
        self.side = side
        self.visited: dict[int, list[int]] = {}  # by tile of rows: tiles along them, rising, in the present sweep

    def lines(self, begin: int, end: int) -> int:
        return (end - 1) // self.lanes - begin // self.lanes + 1 if end > begin else 0

    def words(self, begin: int, count: int) -> int:
        per_line = 2 * self.lanes
        return (begin + count - 1) // per_line - begin // per_line + 1 if count else 0

    def visit(self, rows_tile: int, tile: int) -> int | None:
        """Coordinate up to which the tile before this one in the sweep went; ``None`` for the first of a sweep."""
        before = [t for t in self.visited.get(rows_tile, []) if t < tile]
        self.visited[rows_tile] = [*before, tile]
        return (before[-1] + 1) * self.side if before else None

    def scan(self, row: int, low: int, high: int, boundary: int | None) -> tuple[int, int, int]:
        """(lines, first kept, behind last kept), begun at ``boundary``."""
        at, end = self.pointers[row], self.pointers[row + 1]
        while boundary is not None and at < end and self.coordinates[at] < boundary:
            at += 1
        if at == end:
            return 0, at, at
        stop = -(-end // self.lanes)
        begin_line = at // self.lanes
        to = min(stop, (begin_line // 2 + 1) * 2)
        following = at
        while following < end and self.coordinates[following] < high:
            following += 1
        seen = min(following, end - 1) // self.lanes
        while seen >= to:
            to = min(stop, (to // 16 + 1) * 16)
        kept = at
        while kept < following and self.coordinates[kept] < low:
            kept += 1
        return to - begin_line, kept, following


def reference_traffic(A: sp.csr_array, B: sp.csr_array, lanes: int, line_bytes: int, scheme: Scheme) -> Counter[str]:
    """Bus lines by tensor and kind."""
    moved: Counter[str] = Counter()
    size = {"i": A.shape[0], "j": B.shape[1], "k": A.shape[1]}
    side = {rank: scheme.tile(rank) for rank in "ijk"}
    begins = {rank: range(0, size[rank], side[rank]) for rank in "ijk"}
    a, b = Reader(A, lanes, side["k"]), Reader(B, lanes, side["j"])
    a_map, b_map = (set() for _ in range(2))
    for row, column in zip(*A.nonzero(), strict=True):
        a_map.add((row // side["i"], column // side["k"]))
    for row, column in zip(*B.nonzero(), strict=True):
        b_map.add((row // side["k"], column // side["j"]))
    keeps, keeps_a = scheme.buffers("B"), scheme.buffers("A")
    a_room = lanes * (scheme.buffer_bytes["A"] // line_bytes - -(-side["i"] // lanes))
    a_in_place = None
    a_bumped: set[int] = set()
    whole_j, whole_k = side["j"] >= size["j"], side["k"] >= size["k"]
    partial: dict[tuple[int, int], set[int]] = {}  # (row, j tile): columns met so far
    carried: dict[tuple[int, int], bool] = {}  # (i tile, j tile): an earlier k step left rows
    finished: Counter[tuple[int, int]] = Counter()
    in_place = None
    b_segments: dict[int, tuple[int, int, bool]] = {}
    held: dict[str, int] = {}  # line of each tile map that was looked up last
    for outer, middle, inner in product(*(begins[rank] for rank in scheme.order)):
        at = dict(zip(scheme.order, (outer, middle, inner), strict=True))
        to = {rank: min(size[rank], at[rank] + side[rank]) for rank in "ijk"}
        tile = {rank: at[rank] // side[rank] for rank in "ijk"}
        last_k, last_j = to["k"] == size["k"], to["j"] == size["j"]
        for kind, along, across in (("a_meta", "i", "k"), ("b_meta", "k", "j")):
            line = (tile[along] * len(begins[across]) + tile[across]) // (8 * line_bytes)
            moved[kind] += held.get(kind) != line
            held[kind] = line
        carry = (tile["i"], tile["k"]) not in a_map or (tile["k"], tile["j"]) not in b_map
        if carry and scheme.order[2] == "k" and not last_k:
            continue
        rows = range(at["i"], to["i"])
        if keeps and not carry and in_place != (tile["k"], tile["j"]):
            in_place = (tile["k"], tile["j"])
            advance = not last_j and (scheme.order.index("i") < scheme.order.index("j") or to["i"] == size["i"])
            b_segments = _load_b(b, moved, scheme, at, to, line_bytes, whole_j, advance)
        products: dict[int, set[int]] = {row: set() for row in rows}
        if not carry:
            advance = not last_k and (scheme.order.index("j") < scheme.order.index("k") or last_j)
            advance |= keeps_a and not last_k and scheme.order[2] == "j"
            count = len(rows)
            reads_a = not keeps_a or a_in_place != (tile["i"], tile["k"])
            if reads_a:
                a_in_place = (tile["i"], tile["k"])
                boundary = a.visit(tile["i"], tile["k"])
                if whole_k or boundary is None:
                    moved["a_meta"] += a.words(at["i"], count + 1)
                else:
                    moved["a_meta"] += a.words(at["i"], count) + a.words(at["i"] + 1, count)
                if advance and not whole_k:
                    moved["a_meta"] += a.words(at["i"], count)
                if keeps_a:
                    a_bumped = _bumped_rows(a, rows, at["k"], to["k"], a_room)
                if whole_k:
                    resident = [row for row in rows if row not in a_bumped]
                    behind = resident[-1] + 1 if resident else at["i"]
                    moved["a_data"] += a.lines(a.pointers[at["i"]], a.pointers[behind])
            fetched: set[int] = set()
            for row in rows:
                if whole_k:
                    kept, end = a.pointers[row], a.pointers[row + 1]
                else:
                    lines, kept, end = a.scan(row, at["k"], to["k"], boundary if reads_a else at["k"])
                    moved["a_data"] += lines if reads_a else 0
                if row in a_bumped:
                    fetched |= {position // lanes for position in range(kept, end)}
                for k in a.coordinates[kept:end]:
                    if keeps:
                        begin, behind, bumped = b_segments[k]
                        moved["b_data"] += b.lines(begin, behind) if bumped else 0
                    else:
                        begin, behind = b.pointers[k], b.pointers[k + 1]
                        moved["b_data"] += b.lines(begin, behind)
                        moved["b_meta"] += b.words(k, 2)
                    products[row].update(b.coordinates[begin:behind])
            moved["a_data"] += len(fetched)
        was_carried = carried.get((tile["i"], tile["j"]), False)
        if was_carried:
            moved["c_meta"] += a.words(at["i"], len(rows) + 1)
        position = 0
        for row in rows:
            here = partial.setdefault((row, tile["j"]), set())
            if was_carried:
                moved["c_data"] += b.lines(position, position + len(here))
                position += len(here)
            here |= products[row]
        total = sum(len(partial[row, tile["j"]]) for row in rows)
        moved["c_data"] += b.lines(0, total)
        moved["c_meta"] += a.words(at["i"], len(rows) + 1)
        carried[tile["i"], tile["j"]] = True
        if last_k:
            for row in rows:
                finished[row, tile["j"]] = len(partial[row, tile["j"]])
    if sum(finished.values()) != (A @ B).nnz:
        raise AssertionError("the walk itself is wrong: it misses elements of C")
    if not whole_j:
        moved["c_meta"] += a.words(0, size["i"] + 1)
        moved["c_data"] += b.lines(0, sum(finished.values()))
        position = 0
        for key in sorted(finished, key=lambda key: (key[1], key[0])):
            moved["c_data"] += b.lines(position, position + finished[key])
            moved["c_meta"] += a.words(key[1] * (size["i"] + len(begins["i"])) + key[0], 2)
            position += finished[key]
    return moved


def _bumped_rows(a: Reader, rows: range, low: int, high: int, room: int) -> set[int]:
    """Rows of a kept tile of A from the first one whose segment does not fit."""
    used = 0
    for row in rows:
        used += sum(low <= k < high for k in a.coordinates[a.pointers[row] : a.pointers[row + 1]])
        if used > room:
            return set(range(row, rows.stop))
    return set()


def _load_b(
    b: Reader, moved: Counter[str], scheme: Scheme, at: dict, to: dict, line_bytes: int, whole_j: bool, advance: bool
) -> dict[int, tuple[int, int, bool]]:
    """Loads a tile of B; where each row's segment lies in memory, and whether it is bumped."""
    rows = range(at["k"], to["k"])
    count = len(rows)
    lines = (scheme.buffer_bytes["B"] - scheme.fifo_bytes["B"]) // line_bytes - -(-count // b.lanes)
    room = lines * b.lanes
    boundary = b.visit(at["k"] // scheme.T_k, at["j"] // scheme.T_j)
    if whole_j or boundary is None:
        moved["b_meta"] += b.words(at["k"], count + 1)
    else:
        moved["b_meta"] += b.words(at["k"], count) + b.words(at["k"] + 1, count)
    if advance and not whole_j:
        moved["b_meta"] += b.words(at["k"], count)
    segments = {}
    used, full = 0, False
    for row in rows:
        if whole_j:
            begin, end = b.pointers[row], b.pointers[row + 1]
        else:
            scanned, begin, end = b.scan(row, at["j"], to["j"], boundary)
            moved["b_data"] += scanned
        full = full or used + end - begin > room
        used += 0 if full else end - begin
        segments[row] = (begin, end, full)
    if whole_j:
        moved["b_data"] += b.lines(b.pointers[rows[0]], b.pointers[rows[0]] + used)
    return segments
