"""B's partition line by line: what a load must leave there, what may be used while it goes on, and windows to load.

Made from the blocks' contract (docs/blocks/accessors.md), not from their implementation: it knows only rows, entries and lines.
"""

import random
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .sparse import Operand

__all__ = [
    "Load",
    "LoadWatch",
    "Partition",
    "Segment",
    "Window",
    "Write",
    "data_lines",
    "listed_rows",
    "placed",
    "rows_of_all_lengths",
]

# Cycles after the start from which kept rows count as settled.
KEPT_COUNT_FROM = 3
POISON = 0xAAAA_AAAA
# Segments that the FIFO-managed region may hold while a tile fits.
REMEMBERED = 64
# Most breaches that are reported: after the first most others follow from it.
BREACHES = 20


@dataclass(frozen=True)
class Window:
    """Rows ``begin`` to ``end`` of B; the first ``kept`` are resident, the others go to ``lines`` lines from ``line`` on.

    The first row has entry ``entry`` of ``metadata`` lines.
    """

    begin: int
    end: int
    kept: int
    entry: int
    line: int
    lines: int
    metadata: int

    @property
    def fresh(self) -> int:
        """The first row that is loaded."""
        return self.begin + self.kept

    def tile(self, columns: int) -> dict[str, Any]:
        """As the controller announces it."""
        names = ("kept", "entry", "line", "lines", "metadata")
        place = {"begin_k": self.begin, "size_k": self.end - self.begin, "size_j": columns, "whole_j": 1}
        return place | {"from_pointers_b": 1, "ring": {name: getattr(self, name) for name in names}}


@dataclass(frozen=True)
class Segment:
    """A segment of a tile: the number of its entry, its nonzeros, and where these are.

    ``position`` counts nonzeros from SRAM line 0 and is None for a bumped segment; ``memory`` counts them from the begin of
    the array of nonzeros.
    """

    entry: int
    nonzeros: list[tuple[int, int]]
    position: int | None
    memory: int


@dataclass(frozen=True)
class Load:
    """Segments of a tile in order, the first ``kept`` of which are resident before, and lines of the SRAM that data may go to.

    ``entries``: of the ring; 0 where there is none. Then entries may be written more than once. ``standing``, where the plan
    names lines and entries: the resident segments that the tile uses, for all of which the first of ``segments`` stands.
    """

    segments: list[Segment]
    kept: int
    data: Collection[int]
    entries: int = 0
    standing: list[Segment] | None = None

    def usable(self, settled: int) -> list[Segment]:
        """Segments that may be used where so many have settled."""
        if self.standing is None:
            return self.segments[:settled]
        return [*self.standing, *self.segments[1:settled]] if settled else []


# Port (0: data, 1: entries), line, mask of lanes, bits of each lane.
Write = tuple[int, int, int, list[int]]


def data_lines(segment: Segment, lanes: int) -> range:
    """Lines of the SRAM that hold a segment's nonzeros; none for a bumped or an empty one."""
    if segment.position is None or not segment.nonzeros:
        return range(0)
    return range(segment.position // lanes, (segment.position + len(segment.nonzeros) - 1) // lanes + 1)


def rows_of_all_lengths(rng: random.Random, rows: int, columns: int, lanes: int) -> Operand:
    """Rows of no nonzeros, of a few, and of more than a line; every run of some of them is another mixture."""
    lengths: list[int] = []
    while len(lengths) < rows:
        of = rng.choice(
            [[0], [0, 1], [0, 1, 2, 3], [lanes], [1, 5 * lanes], [0, lanes + 1, 3 * lanes], range(columns + 1)]
        )
        lengths += [rng.choice(of) for _ in range(rng.randrange(1, 9))]
    drawn = [sorted(rng.sample(range(columns), min(columns, length))) for length in lengths[:rows]]
    return Operand(columns, [[(column, rng.getrandbits(32)) for column in row] for row in drawn])


def listed_rows(rng: random.Random, rows: int, places: int) -> list[int]:
    """Rows at this many places of a list: they rise, with and without gaps, and now and then begin anew."""
    found: list[int] = []
    while len(found) < places:
        step = rng.choice([1, 2, 9])
        found += [row for row in range(rng.randrange(rows // 2), rows) if rng.randrange(step) == 0]
    return found[:places]


def placed(lengths: Sequence[int], regular: int, capacity: int) -> tuple[int, int]:
    """The first segment of a tile that is bumped, and the first that was found not to fit; their number when all fit.

    Segments come one after the other: ``regular`` nonzeros fit before the FIFO-managed region, ``capacity`` with it. With
    the first that does not fit, or that is one too many in the region, all that the region holds is bumped.
    """
    used = 0
    in_region: list[int] = []
    for n, length in enumerate(lengths):
        used += length
        if length and used > regular:
            in_region.append(n)
        if used > capacity or len(in_region) > REMEMBERED:
            return in_region[0], n
    return len(lengths), len(lengths)


class Partition:
    """The contents of ``lines`` lines from ``base`` on, the last but the metadata being ``fifo`` lines of another use.

    ``row_list``: windows are of this list of rows, not of the rows in order. What stands for a row below is its place.
    """

    def __init__(
        self, operand: Operand, *, lanes: int, base: int, lines: int, fifo: int, row_list: list[int] | None = None
    ) -> None:
        self.operand = operand
        self.row_list = row_list
        self.rows = list(range(len(operand.rows))) if row_list is None else row_list
        self.lanes = lanes
        self.base = base
        self.lines = lines
        self.fifo = fifo
        self.window: Window | None = None
        self.live: dict[int, Segment] = {}  # rows in place from the window's begin on, perhaps beyond its end
        self.occupied = 0
        self.tail = 0  # line after the nonzeros that were placed last

    @property
    def pointers(self) -> NDArray[np.uint32]:
        """The pointer array: where rows begin and the last ends, or where those of the list end, behind a word of no meaning."""
        pointers = self.operand.pointers
        return pointers if self.row_list is None else np.append(POISON, pointers[1:][self.row_list]).astype(np.uint32)

    @property
    def positions(self) -> NDArray[np.uint32]:
        """The begin positions, of the rows of the list if there is one."""
        return self.operand.pointers[:-1][self.rows]

    def reads(self, window: Window) -> dict[str, int]:
        """Beats by the reader's clients: where the window's new rows are, and their nonzeros up to the first bumped one."""
        fresh, end = window.fresh, window.end

        def beats(items: Iterable[int], per_beat: int) -> int:
            return len({item // per_beat for item in items})

        words = 2 * self.lanes
        if self.row_list is None:
            # The port of the begin positions reads the pointers where these are enough.
            found = {"positions": beats(range(fresh, end + 1), words)}
        else:
            found = {"positions": beats(range(fresh, end), words), "pointers": beats(range(fresh + 1, end + 1), words)}
        nonzeros: list[int] = []
        for place in range(fresh, end):
            segment = self.live[place]
            if segment.position is None:
                break
            nonzeros += [segment.memory + n for n in range(len(segment.nonzeros))]
        return found | {"elements": beats(nonzeros, self.lanes)}

    def capacity(self, metadata: int) -> int:
        """Data lines that windows may use."""
        return self.lines - self.fifo - metadata

    def load(self, window: Window) -> Load:
        """The window's load. Kept rows must be resident, used lines must be free."""
        entries = window.metadata * self.lanes
        live = {row: segment for row, segment in self.live.items() if window.kept and row >= window.begin}
        entry_of = {row: (window.entry + row - window.begin) % entries for row in range(window.begin, window.end)}
        kept = range(window.begin, window.fresh)
        assert all(live[row].entry == entry_of[row] for row in kept), f"{window}: kept rows have other entries"
        assert all(row not in live for row in range(window.fresh, window.end)), f"{window}: rows are loaded again"
        assert window.end - window.begin <= entries - self.lanes, f"{window}: newest and oldest entries share a line"
        assert window.line + window.lines <= self.capacity(window.metadata), f"{window}: not inside the partition"
        data = range(self.base + window.line, self.base + window.line + window.lines)
        taken = {line for segment in live.values() for line in data_lines(segment, self.lanes)}
        assert not taken.intersection(data), f"{window}: kept rows lie in these lines"
        used = 0
        fits = True
        for row in range(window.fresh, window.end):
            nonzeros = self.operand.rows[self.rows[row]]
            fits = fits and used + len(nonzeros) <= window.lines * self.lanes
            position = data.start * self.lanes + used if fits else None
            live[row] = Segment(entry_of[row], nonzeros, position, self.operand.position(self.rows[row], 0))
            used += len(nonzeros) if fits else 0
        lines = -(-used // self.lanes)
        reached = window.metadata + window.line + lines
        self.occupied = max(self.occupied, reached) if window.kept else reached
        if lines or not window.kept:
            self.tail = window.line + lines
        self.window, self.live = window, live
        return Load([live[row] for row in range(window.begin, window.end)], window.kept, data, entries)

    def draw(self, rng: random.Random, *, anew: float = 0.04, ring: float = 0.6) -> Window:
        """A window that may follow: with chance ``anew`` one that keeps nothing, with ``ring`` one behind the newest rows."""
        last = self.window
        if last is None or rng.random() < anew or (fresh := max(self.live) + 1) == len(self.rows):
            return self._anew(rng)
        longest = (last.metadata - 1) * self.lanes
        low = max(last.begin, fresh - longest + 1)  # one new row at least
        begin = rng.choice([low, fresh - 1, rng.randrange(low, fresh), rng.randrange(low, fresh)])
        most = min(begin + longest, self._rising(fresh))
        end = rng.choice([fresh + 1, most, rng.randint(fresh + 1, most)])
        entry = (last.entry + begin - last.begin) % (last.metadata * self.lanes)
        line, lines = self._free(rng, begin, fresh, end, ring)
        return Window(begin, end, fresh - begin, entry, line, lines, last.metadata)

    def _anew(self, rng: random.Random) -> Window:
        metadata = rng.randint(2, max(2, min(8, self.lines - self.fifo - 2)))
        begin = rng.choice([0, rng.randrange(len(self.rows) // 2)])
        end = rng.randint(begin + 1, min(begin + (metadata - 1) * self.lanes, self._rising(begin)))
        entry = rng.choice([0, rng.randrange(metadata * self.lanes)])
        line = rng.choice([0, rng.randrange(self.capacity(metadata))])
        lines = rng.choice([self.capacity(metadata) - line, rng.randint(0, self.capacity(metadata) - line)])
        return Window(begin, end, 0, entry, line, lines, metadata)

    def _rising(self, place: int) -> int:
        """The end of the rows from this place on that rise: of no others are there loads."""
        rows = self.rows
        return next((n for n in range(place + 1, len(rows)) if rows[n] <= rows[n - 1]), len(rows))

    def _free(self, rng: random.Random, begin: int, fresh: int, end: int, ring: float) -> tuple[int, int]:
        """Lines without nonzeros of the rows ``begin`` to ``fresh``: the first, counted from the partition's, and how many."""
        assert self.window is not None
        capacity = self.capacity(self.window.metadata)
        taken = {line - self.base for row in range(begin, fresh) for line in data_lines(self.live[row], self.lanes)}

        def free_from(line: int) -> int:
            return next((n for n in range(capacity - line) if line + n in taken), capacity - line)

        starts = [line for line in range(capacity) if line not in taken and (not line or line - 1 in taken)]
        gaps = [(line, free_from(line)) for line in starts] or [(rng.randint(0, capacity), 0)]
        if rng.random() < ring:
            wanted = sum(len(self.operand.rows[self.rows[row]]) for row in range(fresh, end))
            above_tail = free_from(self.tail)
            return (
                (0, free_from(0))
                if above_tail * self.lanes < wanted and free_from(0) > above_tail
                else (self.tail, above_tail)
            )
        line, lines = rng.choice(gaps)
        if rng.random() < 0.5:
            skipped = rng.randint(0, lines)
            line, lines = line + skipped, rng.randint(0, lines - skipped)
        return line, lines


class LoadWatch:
    """Follows a load cycle by cycle: what is written, and whether what may be used is there and stays as it is.

    Parameters
    ----------
    lanes: of a line.
    top: line of entry 0.
    fail: called with a text for each of the first breaches.
    """

    def __init__(self, lanes: int, top: int, fail: Callable[[str], None]) -> None:
        self.lanes = lanes
        self.top = top
        self._fail = fail
        self.breaches = 0
        self.line_shared = 0  # writes to a line of entries of which some could be used already
        self.sram: dict[int, list[int | None]] = {}
        self.forget()

    def fail(self, text: str) -> None:
        self.breaches += 1
        if self.breaches <= BREACHES:
            self._fail(text)

    def forget(self) -> None:
        """No load goes on: for a reset. The SRAM stays as it is."""
        self.going: Load | None = None
        self.since = 0  # cycles since the tile was taken
        self.settled = 0
        self.early = 0  # segments that had settled before the load ended
        self.written: set[int] = set()  # entries of this load

    def start(self, load: Load) -> None:
        """The tile is taken in this cycle; :meth:`cycle` has been called for it."""
        if self.going is not None:
            self.fail("a tile is taken while another is loaded")
        self.forget()
        self.going = load

    def cycle(self, idle: bool, settled: int, writes: Iterable[Write]) -> None:
        """What the pins say in a cycle; ``writes`` are those that are taken in it."""
        load = self.going
        promised: list[Segment] = []
        if load is not None:
            self.since += 1
            if idle:
                self._ended(load)
            else:
                promised = self._promised(load, settled)
        # Where a reader of these looks: nothing is written there. Of an entry with a place of its own only the lane counts.
        lines = {line for segment in promised for line in data_lines(segment, self.lanes)}
        entries: dict[int, int] = {}
        for segment in promised:
            line, lane = self.top - segment.entry // self.lanes, segment.entry % self.lanes
            entries[line] = entries.get(line, 0) | 1 << lane
        if load is not None and load.standing is None:
            lines.update(entries)
        for port, line, mask, lane_bits in writes:
            if self.going is None:
                self.fail(f"line {line} is written when nothing is loaded")
                continue
            self.line_shared += line in entries
            if line in lines or mask & entries.get(line, 0):
                self.fail(f"line {line} is written, and segments up to {settled} can be used")
            self._place(self.going, port, line, mask)
            content = self.sram.setdefault(line, [None] * self.lanes)
            for n in range(self.lanes):
                if mask >> n & 1:
                    content[n] = lane_bits[n]

    def fault(self, segment: Segment) -> str:
        """The difference of a segment as a reader finds it now; empty if there is none."""
        entry = self.sram.get(self.top - segment.entry // self.lanes, [None] * self.lanes)[segment.entry % self.lanes]
        if entry is None:
            return "no entry"
        position, length, bumped = entry & 0xFFFFFFFF, entry >> 32 & 0x7FFFFFFF, entry >> 63
        if length != len(segment.nonzeros):
            return f"length {length}, not {len(segment.nonzeros)}"
        if not length:
            return ""
        if bool(bumped) != (segment.position is None):
            return "bumped" if bumped else "not bumped"
        expected = segment.memory if segment.position is None else segment.position
        if position != expected:
            return f"at {position}, not {expected}"
        if segment.position is None:
            return ""
        for n, (coordinate, value) in enumerate(segment.nonzeros):
            line, lane = divmod(position + n, self.lanes)
            if self.sram.get(line, [None] * self.lanes)[lane] != coordinate | value << 32:
                return f"element {n} is another"
        return ""

    def at_once(self, load: Load) -> int:
        """Kept segments that can be used as soon as any: those whose line of entries takes no new ones, or all if apart."""
        if load.standing is not None:
            return load.kept
        new = {segment.entry // self.lanes for segment in load.segments[load.kept :]}
        kept = load.segments[: load.kept]
        return next((n for n, segment in enumerate(kept) if segment.entry // self.lanes in new), len(kept))

    def _promised(self, load: Load, settled: int) -> list[Segment]:
        if settled > len(load.segments):
            self.fail(f"{settled} of {len(load.segments)} segments are said to be settled")
        if settled < self.settled:
            self.fail(f"{settled} segments are settled, {self.settled} were before")
        if self.since >= KEPT_COUNT_FROM and settled < self.at_once(load):
            self.fail(f"cycle {self.since}: {settled} segments are settled, {self.at_once(load)} kept ones could be")
        self.settled = self.early = settled
        self._check(load.usable(settled), "said to be settled")
        return load.usable(settled)

    def _ended(self, load: Load) -> None:
        if self.since == 1:
            self.fail("idle in the cycle after a tile was taken")
        self._check(load.usable(len(load.segments)), "after the load")
        missing = {segment.entry for segment in load.segments[load.kept :]} - self.written
        if missing:
            self.fail(f"entries {sorted(missing)} were not written")
        self.going = None

    def _check(self, segments: list[Segment], when: str) -> None:
        for n, segment in enumerate(segments):
            if fault := self.fault(segment):
                self.fail(f"cycle {self.since}: segment {n}, {when}: {fault}")

    def _place(self, load: Load, port: int, line: int, mask: int) -> None:
        """Data go to the lines that are for them; entries of new segments are written, in a ring each once."""
        if port == 0:
            if line not in load.data:
                self.fail(f"data are written to line {line}, not to one of {load.data}")
            return
        new = {segment.entry for segment in load.segments[load.kept :]}
        for entry in ((self.top - line) * self.lanes + n for n in range(self.lanes) if mask >> n & 1):
            if entry not in new or (load.entries and entry in self.written):
                self.fail(f"entry {entry} is written{', though not new' if entry not in new else ' again'}")
            self.written.add(entry)
