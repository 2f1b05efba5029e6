"""Outer and inner product machines walked tile by tile and fiber by fiber, with Python's own sets and loops."""

from collections import Counter, defaultdict
from itertools import product
from math import ceil

import numpy as np

__all__ = ["walk"]


class Partition:
    """Elements in fibers, in lines of memory where the whole operand lies fiber after fiber."""

    def __init__(self, dense, lanes, lines, fifo, height, buffered):
        self.dense, self.lanes = dense, lanes
        self.place = np.cumsum(dense.ravel()).reshape(dense.shape) - 1  # position of each element in memory
        capacity = lanes * max(0, lines - ceil(height / lanes)) if buffered else -1
        self.capacity, self.regular = capacity, lanes * max(0, lines - fifo - ceil(height / lanes)) if buffered else -1

    def tile(self, fibers, coordinates):
        return [[int(self.place[f, c]) for c in coordinates if self.dense[f, c]] for f in fibers]

    def lines_of(self, segments):
        """Lines in the order of the fibers; one that is in hand is not read again."""
        read, hand = 0, None
        for segment in segments:
            for place in segment:
                read += place // self.lanes != hand
                hand = place // self.lanes
        return read

    def bumped(self, segments):
        if sum(map(len, segments)) <= self.capacity:
            return []
        held, out = 0, []
        for segment in segments:
            held += len(segment)
            if held > self.regular:
                out.append(segment)
        return out

    def meta(self, fibers, whole, last):
        words = 2 * self.lanes
        first, count = fibers[0], len(fibers)

        def lines(a, n):
            return len({w // words for w in range(a, a + n)})

        if whole:
            return lines(first, count + 1), 0
        return lines(first, count) + lines(first + 1, count), 0 if last else lines(first, count)


def levels(fibers, radix):
    count = 1
    while fibers > radix:
        fibers, count = ceil(fibers / radix), count + 1
    return count


def walk(design, scheme, a, b):
    """Bus lines by kind, cycles, and what each tile of C logged."""
    outer = design.pe.dataflow == "outer"
    A, B = a.toarray() != 0, b.toarray() != 0
    size = dict(zip("ijk", (A.shape[0], B.shape[1], A.shape[1]), strict=True))
    cuts = {r: [range(x, min(size[r], x + scheme.tile(r))) for x in range(0, size[r], scheme.tile(r))] for r in "ijk"}
    moving = [r for r in scheme.order if len(cuts[r]) > 1]
    inner = moving[-1] if moving else "k"
    lanes, line, pes, radix = design.lanes, design.line_bytes, design.pe.count, design.pe.merge_radix
    rate = design.dram_bytes_per_cycle / line

    def partition(tensor, dense, height):
        fifo = scheme.fifo_bytes["B"] // line if tensor == "B" else 0
        lines = scheme.buffer_bytes[tensor] // line
        return Partition(dense, lanes, lines, fifo, height, scheme.buffers(tensor))

    major_a, major_b = ("k", "k") if outer else ("i", "j")
    minor_a, minor_b = ("i", "j") if outer else ("k", "k")
    of_a = partition("A", A.T if outer else A, min(size[major_a], scheme.tile(major_a)))
    of_b = partition("B", B if outer else B.T, min(size[major_b], scheme.tile(major_b)))
    room_c = scheme.buffer_bytes["C"] // line
    C = (A.astype(int) @ B.astype(int)) > 0
    found, log = Counter(), defaultdict(list)
    overhead = 2 * design.memory_latency_cycles + 40
    here = {"A": None, "B": None}
    before = None
    visits = defaultdict(list)
    for place in product(*(range(len(cuts[r])) for r in scheme.order)):
        at = dict(zip(scheme.order, place, strict=True))
        spans = {r: cuts[r][at[r]] for r in "ijk"}
        moved = [r for r in "ijk" if before is not None and at[r] != before[r]]
        for tensor, free in (("A", "j"), ("B", "i")):
            if not scheme.buffers(tensor) or inner != free or moved not in ([free], []):
                here[tensor] = None
        before = at
        tiles = {"A": of_a.tile(spans[major_a], spans[minor_a]), "B": of_b.tile(spans[major_b], spans[minor_b])}
        if not any(tiles["A"]) or not any(tiles["B"]):
            continue
        rows = [r for r in spans["i"] if A[np.ix_([r], list(spans["k"]))].any()]
        passes = 1 if outer else ceil(len(rows) / pes)
        lines = 0
        moved_lines = 0
        for tensor, part, major, minor in (("A", of_a, major_a, minor_a), ("B", of_b, major_b, minor_b)):
            key = (at[major], at[minor])
            again = part.lines_of(part.bumped(tiles[tensor]))
            times = passes if tensor == "B" else 1
            if here[tensor] == key:
                read = again * times
            else:
                read = part.lines_of(tiles[tensor]) + again * (times - 1)
                meta = part.meta(spans[major], len(cuts[minor]) == 1, at[minor] == len(cuts[minor]) - 1)
                found[f"read_{tensor}_meta"] += meta[0]
                found[f"write_{tensor}_meta"] += meta[1]
                lines += sum(meta)
                here[tensor] = key
            found[f"read_{tensor}_data"] += read
            moved_lines += read
        lines += moved_lines
        # What becomes of the partial results.
        block = list(spans["j"])
        macs, row_times, logged = 0, [], 0
        in_sram = ceil(sum(map(len, tiles["B"])) / lanes)
        held = 0
        for r in spans["i"]:
            held += int(C[r, block].sum())
            fits = scheme.buffers("C") and held <= lanes * (room_c - ceil(len(spans["i"]) / lanes))
            fibers = [[j for j in block if B[k, j]] for k in spans["k"] if A[r, k]]
            products = sum(map(len, fibers))
            macs += products
            if r in rows:
                row_times.append(max(in_sram, products))
            together = {j for fiber in fibers for j in fiber}
            until_whole = len(cuts["k"]) == 1 or inner == "k"
            if outer and not fits:
                out = [len(fiber) + 1 for fiber in fibers if fiber]
            elif (outer and until_whole) or len(cuts["k"]) == 1 or (fits and until_whole):
                out = []
            else:
                out = [len(together) + 1] if together else []
            logged += sum(out)
            log[at["i"], at["j"], r].extend(out)
        found["write_C_data"] += ceil(logged / lanes)
        lines += ceil(logged / lanes)
        if outer:
            times = [ceil(macs / pes), sum(map(len, tiles["A"])), ceil((macs + 2 * moved_lines) / design.buffer.banks)]
        else:
            sram = len(rows) * in_sram + 2 * moved_lines
            times = [max(ceil(sum(row_times) / pes), max(row_times)), len(rows), ceil(sram / design.buffer.banks)]
        visits[at["i"], at["j"]].append((at["k"], lines, times))
        found["macs"] += macs
        passing = sum(map(len, tiles["B"])) * (1 if outer else len(rows))
        found["walked"] += sum(map(len, tiles["A"])) + passing
        found["compared"] += 0 if outer else passing
        found["visits"] += 1
    finish(found, visits, log, cuts, C, outer, lanes, pes, radix, rate, overhead)
    cells = len(cuts["i"]) * len(cuts["j"]) * len(cuts["k"])
    for tensor in "AB":
        found[f"read_{tensor}_meta"] += ceil(cells / (8 * line))
    # The waits of visits hide the maps, as far as they go.
    hidden = overhead * found["waits"]
    found["cycles"] += max(0, ceil(2 * ceil(cells / (8 * line)) / rate) - hidden)
    return found


def finish(found, visits, log, cuts, C, outer, lanes, pes, radix, rate, overhead):
    """The end of each tile of C, the time of all visits, and the pass that joins tiles along j."""
    read_again = 0
    for i, rows in enumerate(cuts["i"]):
        for j, columns in enumerate(cuts["j"]):
            final = ceil(int(C[np.ix_(list(rows), list(columns))].sum()) / lanes)
            read_again += final
            fibers = [log[i, j, r] for r in rows]
            entries = sum(map(sum, fibers))
            passed = sum(sum(f) * levels(len(f), radix) for f in fibers)
            found["merged"] += passed
            at_end = 0
            if entries:
                moved = ceil(passed / lanes) + ceil((passed - entries) / lanes) + final
                found["cycles"] += max(ceil(moved / rate), ceil(passed / pes)) + overhead
                found["waits"] += 1
                found["read_C_data"] += ceil(passed / lanes)
                found["write_C_data"] += ceil((passed - entries) / lanes) + final
                pointers_with = 0
            else:
                found["write_C_data"] += final
                pointers_with = final if outer else 0
                at_end = 0 if outer else final
            pointers = ceil((len(rows) + 1) / (2 * lanes))
            found["write_C_meta"] += pointers
            found["cycles"] += ceil((pointers_with + pointers) / rate)
            steps = sorted(visits[i, j], key=lambda visit: visit[0])
            for number, (_, lines, times) in enumerate(steps):
                extra = at_end if number == len(steps) - 1 else 0
                found["cycles"] += max(ceil((lines + extra) / rate), *times) + overhead
                found["waits"] += 1
    if len(cuts["j"]) > 1:
        rows = C.shape[0]
        words = ceil((len(cuts["i"][0]) + 1) / (2 * lanes)) * len(cuts["i"]) * len(cuts["j"])
        written, end = ceil(int(C.sum()) / lanes), ceil((rows + 1) / (2 * lanes))
        found["read_C_data"] += read_again
        found["read_C_meta"] += words
        found["merged"] += int(C.sum())
        found["write_C_data"] += written
        found["write_C_meta"] += end
        moved = ceil((read_again + words + written + end) / rate)
        found["cycles"] += max(moved, ceil(int(C.sum()) / pes), rows * len(cuts["j"])) + overhead
        found["waits"] += 1
