"""What a soak has drawn and what came of it: counts by dimension, from the words that each case leaves behind."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from .cases import Case

if TYPE_CHECKING:
    from .run import Verdict

__all__ = ["DIMENSIONS", "Tags", "Tally", "tags_of", "with_verdict"]

# Values of each dimension that a case has: one, or one for each of its products or runs.
Tags = dict[str, list[str]]

# In the order of the table.
DIMENSIONS = (
    "elements",
    "radix",
    "bus bits",
    "burst beats",
    "beats of a line",
    "buffer KiB",
    "banks",
    "address bits",
    "arithmetic",
    "records",
    "converter",
    "plan",
    "runs",
    "scheme",
    "order",
    "operands",
    "values",
    "MACs",
    "tiles",
    "longest side",
    "longest row",
    "most elements",
    "A's region",
    "partitions",
    "scratch fibers",
    "addresses",
    "read latency",
    "acknowledgements",
    "answers",
    "freezes",
    "formats",
    "faults",
)


def tags_of(case: Case) -> Tags:
    """What is known before the case runs, but for its tiles."""
    design, timing, products = case.design, case.timing, case.products
    disturbed = [step.disturbance.kind for step in case.steps if step.disturbance is not None]
    return {
        "elements": [str(design.pe.count)],
        "radix": [str(design.pe.merge_radix)],
        "bus bits": [str(design.axi.data_bits)],
        "burst beats": [str(design.axi.burst_beats)],
        "beats of a line": [str(design.buffer.line_beats)],
        "buffer KiB": [str(design.buffer.bytes // 1024)],
        "banks": [str(design.buffer.banks)],
        "address bits": [str(design.axi.address_bits)],
        "arithmetic": [design.pe.arithmetic],
        "records": [design.memory.records],
        "converter": [f"{design.converter.style}, {design.converter.prefix_sum}" if case.conversions else "none"],
        "plan": [case.plan],
        "runs": [str(len(case.steps))],
        "scheme": [product.kind for product in products],
        "order": [product.scheme.order for product in products],
        "operands": [product.size for product in products],
        "values": [product.values for product in products],
        "MACs": [_decade(product.macs) for product in products],
        "longest side": [_decade(max(p.a.rows, p.a.columns, p.b.columns)) for p in products],
        "longest row": [
            _decade(max(int(np.diff(matrix.pointers).max(initial=0)) for matrix in (p.a, p.b))) for p in products
        ],
        "most elements": ["beyond 65,536" if max(p.a.nnz, p.b.nnz) > 1 << 16 else "up to 65,536" for p in products],
        "A's region": ["4 lines" if p.scheme.fifo_bytes["A"] == 4 * design.line_bytes else "more" for p in products],
        "partitions": [product.partitions for product in products],
        "scratch fibers": ["on chip" if p.scheme.scratch_bytes else "in memory" for p in products],
        "addresses": [case.placement],
        "read latency": [str(timing.read_latency)],
        "acknowledgements": [
            "late and reordered"
            if timing.write_jitter and timing.reorder
            else "late"
            if timing.write_jitter
            else "prompt"
        ],
        "answers": ["reordered" if timing.reorder else "in order"],
        "freezes": [str(sum(len(step.freezes) for step in case.steps))],
        "formats": [f"{kept.tensor} {kept.formats[0]}" for kept in case.conversions] or ["none"],
        "faults": disturbed or ["none"],
    }


def with_verdict(tags: Tags, verdict: "Verdict") -> Tags:
    """The same with what the run has shown: how many tiles, and how each spoiled run ended."""
    faults = [f"{kind}: {outcome}" for kind, outcome in verdict.outcomes if kind != "none"]
    shown = {"tiles": [_decade(tiles) for tiles in verdict.tiles], "formats": verdict.formats, "faults": faults}
    return {**tags, **{name: values or ["none"] for name, values in shown.items()}}


def _decade(count: int) -> str:
    """0, 1-9, 10-99, and so on."""
    if count < 1:
        return "0"
    least = 10 ** (len(str(count)) - 1)
    return f"{least}-{10 * least - 1}"


class Tally:
    """Counts by dimension and value."""

    def __init__(self) -> None:
        self.counts: dict[str, Counter[str]] = {}

    def add(self, tags: Mapping[str, Iterable[str]]) -> None:
        for dimension, values in tags.items():
            self.counts.setdefault(dimension, Counter()).update(values)

    def as_dict(self) -> dict[str, dict[str, int]]:
        """For JSON, in the order of the table."""
        return {name: dict(_in_order(self.counts[name])) for name in DIMENSIONS if name in self.counts}

    def table(self) -> str:
        """A line a dimension, its values with their counts; faults a line each."""
        lines = []
        for name, counts in self.as_dict().items():
            shown = [f"{value}: {count}" for value, count in counts.items()]
            if name == "faults":
                lines += [f"{name if n == 0 else '':<17} {text}" for n, text in enumerate(shown)]
            else:
                lines.append(f"{name:<17} {'   '.join(shown)}")
        return "\n".join(lines)


def _in_order(counts: Counter[str]) -> list[tuple[str, int]]:
    """By number where values begin with one, else by name."""

    def key(item: tuple[str, int]) -> tuple[int, str]:
        first = item[0].partition("-")[0].partition(" ")[0]
        return (int(first), "") if first.isdecimal() else (-1, item[0])

    return sorted(counts.items(), key=key)
