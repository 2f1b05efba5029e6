"""What the tiling controller must announce, by its contract: tiles in order, begin positions, windows of k and their ring.

Made from the block's contract (docs/blocks/tiling.md), not from its implementation or the model's: a list of all tiles, the
part of each row that has been passed, the entry of the ring of each row. Benches and block tests share it.
"""

import itertools
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verif.coverage import Coverage

__all__ = ["ORDERS", "Ring", "ShapedWalk", "Walk", "Window", "WindowWalk", "coverage", "window"]

ORDERS = ("ijk", "ikj", "jik", "jki", "kij", "kji")  # outermost first; the index is the register's value
coverage = Coverage("tiling_controller")
Triple = tuple[int, int, int]
Window = dict[str, int]


class Positions:
    """Begin positions, as the accessors keep them: of each row of A and of B the column up to which it has been passed.

    A visited tile must find its segments at or after its announced begin position: positions begin as copies
    of the row pointers, and a visit with ``advance`` leaves that of the next segment. A resident part is not
    fetched again, and passes nothing.
    """

    def __init__(self, extent: Triple, *, keep_a: bool = False) -> None:
        self.keep_a = keep_a
        self.passed = {"a": np.zeros(extent[0], np.int64), "b": np.zeros(extent[2], np.int64)}
        self.in_place: dict[str, tuple[int, ...]] = {}

    def visit(self, got: dict[str, int]) -> list[str]:
        """The differences in the announced fields of a visited tile."""
        wrong = []
        for tensor, rows, columns in (("a", "i", "k"), ("b", "k", "j")):
            part = tuple(got[f"{what}_{rank}"] for what in ("begin", "size") for rank in (rows, columns))
            if (tensor == "b" or self.keep_a) and self.in_place.get(tensor) == part:
                continue
            self.in_place[tensor] = part
            passed = self.passed[tensor][part[0] : part[0] + part[2]]
            known = 0 if got[f"from_pointers_{tensor}"] else passed.max(initial=0)
            if known > part[1]:
                place = tuple(got[f"begin_{rank}"] for rank in "ijk")
                wrong.append(f"{tensor.upper()}'s positions are at column {known} already, tile {place} begins before")
            if got[f"advance_{tensor}"]:
                passed[:] = part[1] + part[3]
        return wrong


@dataclass
class Walk:
    """Tiles in order, which of them must be announced, and what must be said of each."""

    extent: Triple
    tile: Triple
    order: str
    occupied_a: Any
    occupied_b: Any
    keep_a: bool = False
    joined: bool = False  # the last k step joins parts of rows
    last_k_step: int | None = None

    def __post_init__(self) -> None:
        self.positions = Positions(self.extent, keep_a=self.keep_a)
        self.counts = tuple(-(-n // t) for n, t in zip(self.extent, self.tile, strict=True))
        ranks = ["ijk".index(rank) for rank in self.order]
        self.todo: list[Triple] = []
        for steps in itertools.product(*(range(self.counts[rank]) for rank in ranks)):
            step = dict(zip(self.order, steps, strict=True))
            self.todo.append((step["i"], step["j"], step["k"]))
        self.at = 0
        self.partial: set[tuple[int, int]] = set()
        self.skipped = 0

    def empty(self, index: Triple) -> bool:
        return not (self.occupied_a[index[0], index[2]] and self.occupied_b[index[2], index[1]])

    def may_skip(self, index: Triple) -> bool:
        return self.empty(index) and (self.joined or self.order[2] == "k") and index[2] != self.counts[2] - 1

    def check(self, got: dict[str, int]) -> list[str]:
        """What is wrong with the next announced tile."""
        begin = got["begin_i"], got["begin_j"], got["begin_k"]
        while self.at < len(self.todo) and self._begin(self.todo[self.at]) != begin:
            if not self.may_skip(self.todo[self.at]):
                return [f"tile {begin} came, {self._begin(self.todo[self.at])} must be next"]
            self.at += 1
            self.skipped += 1
        if self.at == len(self.todo):
            return [f"tile {begin} came out of order"]
        index = self.todo[self.at]
        self.at += 1
        wanted = self._fields(index)
        wrong = [
            f"{name} is {got[name]}, expected {value} at {begin}"
            for name, value in wanted.items()
            if got[name] != value
        ]
        if got["carry"] and not self.empty(index):
            wrong.append(f"tile {begin} is not empty but only carries")
        self.partial.add(index[:2])
        self.last_k_step = index[2]
        if not got["carry"]:
            wrong += self.positions.visit(got)
        coverage.hit("carried", bool(got["carry"]))
        coverage.hit("visited_though_empty", self.empty(index) and not got["carry"])
        return wrong

    def _begin(self, index: Triple) -> Triple:
        i, j, k = (n * t for n, t in zip(index, self.tile, strict=True))
        return i, j, k

    def _fields(self, index: Triple) -> dict[str, int]:
        begin = self._begin(index)
        fields = {}
        for rank, name in enumerate("ijk"):
            fields[f"size_{name}"] = min(self.tile[rank], self.extent[rank] - begin[rank])
            coverage.hit("ragged", fields[f"size_{name}"] < self.tile[rank] and index[rank] > 0)
        last_k = index[2] == self.counts[2] - 1
        partial_in, k_step = index[:2] in self.partial, self.last_k_step != index[2]
        if self.joined:
            # Tiles that were left out count as steps that may have left parts; a sweep over k that begins frees all parts.
            partial_in = last_k and (partial_in if self.order[2] == "k" else index[2] > 0)
            k_step = self.last_k_step is None or index[2] < self.last_k_step
        return fields | {
            "last_j": int(index[1] == self.counts[1] - 1),
            "last_k": int(last_k),
            "whole_j": int(self.tile[1] >= self.extent[1]),
            "whole_k": int(self.tile[2] >= self.extent[2]),
            "partial_in": int(partial_in),
            "k_step": int(k_step),
            "step": index[2],
            "position_index": index[1] * (self.extent[0] + self.counts[0]) + begin[0] + index[0],
            "last": int(self.at == len(self.todo)),
        }

    @property
    def ended(self) -> bool:
        """Every tile that had to be announced was."""
        return self.at == len(self.todo)


@dataclass
class ShapedWalk:
    """A walk whose shapes change on the way: tiles of any sides that together are all of the product, in order.

    a, b: the operands' patterns, bool[I, K] and bool[K, J].
    """

    extent: Triple
    tile_i: int
    order: str
    a: NDArray[np.bool_]
    b: NDArray[np.bool_]

    def __post_init__(self) -> None:
        self.positions = Positions(self.extent)
        self.visited = np.zeros(self.extent, np.int64)
        self.begun = np.zeros(self.extent[:2], np.bool_)  # of which elements of C a tile was announced
        self.before: Triple | None = None
        self.index_j = 0

    def check(self, got: dict[str, int]) -> list[str]:
        """What is wrong with the next announced tile."""
        begin = got["begin_i"], got["begin_j"], got["begin_k"]
        ends = [at + got[f"size_{rank}"] for at, rank in zip(begin, "ijk", strict=True)]
        inside = tuple(slice(at, end) for at, end in zip(begin, ends, strict=True))
        wrong = []
        if self.before is not None and self._rank(begin) <= self._rank(self.before):
            wrong.append(f"tile {begin} comes after {self.before}")
        if any(end > limit or end <= at for at, end, limit in zip(begin, ends, self.extent, strict=True)):
            wrong.append(f"tile {begin} to {tuple(ends)} does not lie in {self.extent}")
        before = self.before or (-1, 0, -1)
        if begin[1] != before[1]:
            self.index_j = self.index_j + 1 if begin[1] else 0
        tiles_i, index_i = -(-self.extent[0] // self.tile_i), begin[0] // self.tile_i
        wanted = {
            "size_i": min(self.tile_i, self.extent[0] - begin[0]),
            "last_j": int(ends[1] == self.extent[1]),
            "last_k": int(ends[2] == self.extent[2]),
            "whole_j": int(got["size_j"] == self.extent[1]),
            "whole_k": int(got["size_k"] == self.extent[2]),
            "k_step": int(begin[2] != before[2]),
            "partial_in": int(self.begun[inside[:2]].any()),
            "position_index": self.index_j * (self.extent[0] + tiles_i) + begin[0] + index_i,
            "last": int(tuple(ends) == self.extent),
        }
        wrong += [
            f"{name} is {got[name]}, expected {value} at {begin}"
            for name, value in wanted.items()
            if got[name] != value
        ]
        if self.begun[inside[:2]].any() != self.begun[inside[:2]].all():
            wrong.append(f"tile {begin} takes up a part of rows that others began")
        self.before = begin
        self.begun[inside[:2]] = True
        if not got["carry"]:
            self.visited[inside] += 1
            wrong += self.positions.visit(got)
        return wrong

    def end(self) -> list[str]:
        """What is wrong when no more tiles come: every product of two elements belongs to one visited tile, none to two."""
        products = self.a[:, np.newaxis, :] & self.b.T[np.newaxis, :, :]
        wrong = [f"{(products & (self.visited == 0)).sum()} products are in no tile"]
        wrong += [f"{(self.visited > 1).sum()} places are in several tiles"]
        return [line for line in wrong if not line.startswith("0 ")]

    def _rank(self, begin: Triple) -> list[int]:
        return [begin["ijk".index(rank)] for rank in self.order]


def window(
    begin: int, size: int, kept: int = 0, metadata: int = 0, line: int = 0, lines: int = 0, early: int = 0
) -> Window:
    places = {"line": line, "lines": lines}
    return {"begin": begin, **places, "size": size, "kept": kept, "metadata": metadata, "early": early}


@dataclass
class Ring:
    """B's partition as windows leave it: which rows are in place, and which entry of metadata each has."""

    lanes: int
    extent: int
    tile: int
    capacity: int
    entries: dict[int, int] = field(default_factory=dict)  # by row; rows follow one another
    metadata: int = 0
    laps: int = 0  # that entries have made in this chain

    def longest(self, metadata: int) -> int:
        """Rows of a window in a ring of so many lines: one line stays between its last entry and its first."""
        return max(0, metadata - 1) * self.lanes

    def breaches(self, want: Window) -> list[str]:
        """Rules that a window breaks."""
        begin, size, kept = want["begin"], want["size"], want["kept"]
        metadata = self.metadata if kept else want["metadata"]
        found = ["extent"] if begin + size > self.extent else []
        if not size:
            return found
        if kept and not self.entries:  # nor is there a ring
            return [*found, "nothing"]
        if kept:
            found += ["begin"] if begin < min(self.entries) else []
            found += ["end"] if begin + kept - 1 > max(self.entries) else []
        found += ["tile"] if size > self.tile else []
        found += ["kept"] if kept > size else []
        found += ["ring"] if size > self.longest(metadata) else []
        found += ["capacity"] if want["line"] + want["lines"] > self.capacity - metadata else []
        return found

    def take(self, want: Window) -> dict[str, int]:
        """Where a legal window's rows are; what it loads gets the entries that follow."""
        begin, size, kept = want["begin"], want["size"], want["kept"]
        end = begin + size
        if not kept:
            coverage.hit("other_ring", self.metadata not in (0, want["metadata"]))
            self.entries, self.metadata, self.laps = {}, want["metadata"], 0
        count = self.metadata * self.lanes
        coverage.hit("kept", kept > 0)
        coverage.hit("kept_all", kept == size)
        coverage.hit("loaded_again", kept > 0 and begin + kept in self.entries and kept < size)
        coverage.hit("inside", kept > 0 and end in self.entries)
        coverage.hit("longest", size == self.longest(self.metadata))
        coverage.hit("full", want["line"] + want["lines"] + self.metadata == self.capacity)
        self.entries = {row: entry for row, entry in self.entries.items() if row >= begin}
        entry = self.entries[begin + kept - 1] if kept else -1
        for row in range(begin + kept, end):
            entry += 1
            if entry == count:
                entry = 0
                self.laps += row not in self.entries
            self.entries[row] = entry
        assert len(set(self.entries.values())) == len(self.entries) <= count, "two rows have the same entry"
        place = {name: want[name] for name in ("kept", "line", "lines")}
        coverage.hit("both_ends", self.entries[begin] > self.entries[end - 1])
        coverage.hit("laps", self.laps > 1)
        # A chain that begins anew moves entries: nothing of it is loaded ahead.
        coverage.hit("early", bool(want["early"] and kept))
        coverage.hit("anew_early", bool(want["early"] and not kept))
        early = int(want["early"] and kept > 0)
        return place | {"entry": self.entries[begin], "metadata": self.metadata, "early": early}


@dataclass
class WindowWalk:
    """One tile for each along i, whatever the order: with its window it has all of k that its rows need, and all of j.

    windows: entries of the table; the walk ends before the first that is not legal, which is ``bad``.
    """

    extent: Triple
    tile: Triple
    windows: list[Window]
    ring: Ring
    at: int = 0
    skipped: int = 0
    bad: int | None = None
    rules: list[str] = field(default_factory=list)  # that it breaks

    def __post_init__(self) -> None:
        self.todo: list[tuple[Window, dict[str, int]]] = []
        for number, want in enumerate(self.windows):
            self.rules = self.ring.breaches(want)
            if self.rules:
                self.bad = number
                break
            self.todo.append((want, self.ring.take(want) if want["size"] else {}))

    @property
    def ended(self) -> bool:
        """Every tile that had to be announced was."""
        return self.at == len(self.todo)

    @property
    def entries(self) -> int:
        """How many windows are checked."""
        return len(self.todo) + (self.bad is not None)

    def check(self, got: dict[str, Any]) -> list[str]:
        if self.at == len(self.todo):
            return [f"a tile came after window {self.bad}, which is not legal"]
        index, before = self.at, self.windows[max(0, self.at - 1)]
        self.at += 1
        row = index * self.tile[0]
        want, place = self.todo[index]
        wanted: dict[str, Any] = {
            "begin_i": row,
            "size_i": min(self.tile[0], self.extent[0] - row),
            "begin_j": 0,
            "size_j": self.extent[1],
            "begin_k": want["begin"],
            "size_k": want["size"],
            "carry": int(not want["size"]),
            "k_step": int(index == 0),
            "position_index": row + index,
            "last": int(index == len(self.windows) - 1),
        }
        # Nothing comes back to these rows, and nothing was there before.
        wanted |= dict.fromkeys(("last_j", "last_k", "whole_j", "whole_k", "from_pointers_a", "from_pointers_b"), 1)
        wanted |= dict.fromkeys(("partial_in", "advance_a", "advance_b"), 0)
        # One without a coordinate loads nothing, wherever.
        wanted |= {"ring": place} if place else {}
        coverage.hit("window", want["size"] > 0)
        coverage.hit("empty_window", not want["size"])
        same = [before[name] == want[name] for name in ("begin", "size")]
        coverage.hit("same_window", index > 0 and want["size"] > 0 and all(same))
        coverage.hit("kept_over_empty", want["kept"] > 0 and want["size"] > 0 and not before["size"])
        coverage.hit("ragged", index > 0 and wanted["size_i"] < self.tile[0])
        return [
            f"{name} is {got[name]}, expected {value} with window {index}: {want}"
            for name, value in wanted.items()
            if got[name] != value
        ]
