"""The machine as a picture: its units, which paper each comes from, and of a run what share of its cycles each waited.

``python -m sw.report.architecture`` prints the picture of the manual, which is that of no run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

__all__ = ["architecture", "shares"]

WIDTH, HEIGHT = 860, 540
STYLE = Path(__file__).with_name("machine.css").read_text(encoding="utf-8")


@dataclass(frozen=True, kw_only=True)
class Unit:
    """A box: place and size in pixels, colour, name, what it does, and the papers whose mechanism is in it."""

    x: int
    y: int
    wide: int
    kind: str
    name: str
    does: str
    papers: Sequence[str] = ()
    high: int = 70


UNITS = {
    "registers": Unit(x=20, y=76, wide=160, kind="ctl", name="registers", does="AXI4-Lite, counters"),
    "control": Unit(
        x=20, y=190, wide=160, kind="ctl", name="tiling controller", does="six orders, tuning", papers=("HYTE",)
    ),
    "converter": Unit(
        x=20, y=418, wide=160, kind="box", name="format converter", does="COO, RLC, ZVC ...", papers=("MINT",)
    ),
    "memory": Unit(
        x=220, y=76, wide=610, kind="mem", name="memory engine", does="AXI4: bursts, several outstanding, one queue a client"
    ),
    "accessor_a": Unit(x=220, y=190, wide=130, kind="box", name="A accessor", does="rows of A", papers=("HYTE",)),
    "accessor_b": Unit(
        x=390, y=190, wide=130, kind="box", name="B accessor", does="fills tiles", papers=("HYTE", "Tailors")
    ),
    "accessor_c": Unit(x=710, y=190, wide=120, kind="box", name="C accessor", does="final, partial"),
    "lookup": Unit(x=220, y=304, wide=130, kind="box", name="B lookup", does="k to fiber segment"),
    "sram": Unit(
        x=390, y=304, wide=270, kind="mem", name="banked SRAM", does="nonzeros → … ← metadata", papers=("Tailors",)
    ),
    "dispatcher": Unit(x=220, y=418, wide=130, kind="box", name="dispatcher", does="rows to jobs"),
    "pes": Unit(x=390, y=418, wide=270, kind="pe", name="PEs", does="R-way merge, multiply, add"),
    "collector": Unit(x=710, y=418, wide=120, kind="box", name="collector", does="in row order"),
}  # fmt: skip
FLOWS = (
    "M100 50V74", "M500 74V50", "M560 50V74", "M285 146V188", "M415 146V188", "M770 190V148",
    "M455 260V302", "M285 260V302", "M390 339H352", "M285 374V416", "M350 453H388", "M455 374V416", "M595 374V416",
    "M660 453H708", "M770 418V262", "M100 146V188", "M180 225H218",
)  # fmt: skip
DASHED = ("M684 146V430H662", "M180 440H200V240H218")
PAPERS = (
    ("Tailors", "overbooked tiles, FIFO-managed region"),
    ("HYTE", "orders, fiber segments, tuning"),
    ("MINT", "conversion of formats"),
)
# What each unit waited for, or is waited for, by the counter whose cycles say so.
WAITS = {
    "control": ("phase_next_tile", "next tile"),
    "converter": ("stall_conversion", "waited for"),
    "accessor_a": ("stall_a_empty", "waited for"),
    "accessor_b": ("stall_load", "waited for"),
    "lookup": ("stall_lookup", "full"),
    "dispatcher": ("stall_dispatch", "no PE free"),
    "collector": ("stall_collect", "waits"),
    "accessor_c": ("stall_write", "waited for"),
}


def shares(record: Mapping[str, Any]) -> dict[str, str]:
    """What a result record says of each unit, as a few words with the share of the cycles; nothing of what was not counted."""
    counters, cycles = record["counters"], record["cycles"]
    if not cycles:
        return {}
    converts = any(record["design"]["memory"][f"converts_{tensor}"] for tensor in "abc")
    said = {
        unit: f"{counters[counter] / cycles:.1%} {words}"
        for unit, (counter, words) in WAITS.items()
        if counter in counters and (unit != "converter" or converts)
    }
    moved = record["dram_bytes"]
    if moved is not None:
        bus = record["design"]["axi"]["data_bits"] // 8
        read, written = (
            sum(moved[tensor][f"{kind}{way}"] for tensor in "ABC" for kind in ("", "metadata_")) / bus / cycles
            for way in ("read", "write")
        )
        said["memory"] = f"reads a beat in {read:.1%}, writes one in {written:.1%} of the cycles"
    pes = cycles * record["design"]["pe"]["count"]
    if "pe_stall_input" in counters:
        # Absent means unknown to an engine, but of these two it knows both or none.
        waiting, blocked = (counters.get(name, 0) / pes for name in ("pe_stall_input", "pe_stall_output"))
        said["pes"] = f"{waiting:.1%} wait for data, {blocked:.1%} blocked"
    elif record["pe_utilization"] is not None:
        said["pes"] = f"{record['pe_utilization']:.1%} of the MACs that they could do"
    return said


def architecture(said: Mapping[str, str] | None = None) -> str:
    """The picture as SVG, of no run a document of its own. ``said``: what stands in the boxes of a run, by :func:`shares`."""
    namespace = 'xmlns="http://www.w3.org/2000/svg" ' if said is None else ""
    said = said or {}
    parts = [
        '<rect class="out" x="20" y="14" width="160" height="34" rx="5"/><text x="100" y="36">host</text>',
        '<rect class="out" x="220" y="14" width="610" height="34" rx="5"/>',
        '<text x="525" y="36">DRAM: A, B, C, begin positions, tile maps</text>',
    ]
    parts += [f'<path class="flow" d="{line}"/>' for line in FLOWS]
    parts += [f'<path class="flow dashed" d="{line}"/>' for line in DASHED]
    parts += [
        '<text class="small" x="603" y="170">bumped segments of B,</text>',
        '<text class="small" x="603" y="184">partial rows of C</text>',
    ]
    for key, unit in UNITS.items():
        middle = unit.x + unit.wide / 2
        parts.append(
            f'<rect class="{unit.kind}" x="{unit.x}" y="{unit.y}" width="{unit.wide}" height="{unit.high}" rx="5"/>'
            f'<text x="{middle:g}" y="{unit.y + 26}">{escape(unit.name)}</text>'
            f'<text class="small" x="{middle:g}" y="{unit.y + 44}">{escape(unit.does)}</text>'
        )
        if key in said:
            parts.append(f'<text class="share" x="{middle:g}" y="{unit.y + 62}">{escape(said[key])}</text>')
        right = unit.x + unit.wide + 4
        for paper in unit.papers:
            parts.append(_tag(right, unit.y - 8, paper))
            right -= _tag_width(paper) + 4
    at = 30
    for paper, what in PAPERS:
        wide = _tag_width(paper)
        parts.append(_tag(at + wide, 508, paper))
        parts.append(f'<text class="small left" x="{at + wide + 6}" y="520">{escape(what)}</text>')
        at += wide + 24 + round(len(what) * 6.4)
    told = "; ".join(f"{UNITS[key].name}: {words}" for key, words in said.items())
    label = "The accelerator: " + (
        told or "memory engine, accessors, banked SRAM, B lookup, dispatcher, PEs, collector; "
    )
    label += "" if told else ", ".join(f"{paper}: {what}" for paper, what in PAPERS)
    return (
        f'<svg {namespace}class="machine" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" role="img" aria-label="{escape(label)}">\n<style>\n{STYLE}</style>\n'
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto-start-reverse"><path d="M0 0 8 4 0 8z"/></marker></defs>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _tag_width(paper: str) -> int:
    return 7 * len(paper) + 12


def _tag(right: int, y: int, paper: str) -> str:
    """A paper's name on a box, its right end there."""
    wide = _tag_width(paper)
    return (
        f'<rect class="tag" x="{right - wide}" y="{y}" width="{wide}" height="16" rx="8"/>'
        f'<text class="paper" x="{right - wide / 2:g}" y="{y + 12}">{escape(paper)}</text>'
    )


if __name__ == "__main__":
    print(architecture(), end="")
