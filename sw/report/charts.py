"""Bar charts and the occupancy plot as inline SVG; colours come from the page's style sheet."""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from html import escape

from sw.tile_sizes import TileSizes

__all__ = [
    "HALF",
    "NARROW",
    "WIDE",
    "Segment",
    "apart",
    "bars",
    "both",
    "energy_parts",
    "occupancy",
    "picture",
    "short",
    "ticks",
]

# Widths in pixels at which letters have their size: of a page, of two charts side by side on it, and of a phone.
WIDE, HALF, NARROW = 860, 420, 350
LETTER = 6.7  # mean width of one, of 12 pixels
MOST_NAME = 340
ROW = 26
# The name stands above its bar on a phone.
TALL_ROW = 40
LEAST_TICKS = 3

# A part of a bar: class in the style sheet, length, label.
Segment = tuple[str, float, str]


def short(number: float) -> str:
    """A number for a chart: 12,345 or 12.3 M."""
    for limit, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if abs(number) >= limit:
            return f"{number / limit:.3g} {unit}"
    return f"{number:,.0f}"


def energy_parts(energy: Mapping[str, float]) -> list[Segment]:
    """The components of an energy, picojoules by name with their ``total``, as segments of a bar."""
    parts = [(name, part) for name, part in energy.items() if name != "total"]
    return [(f"d{n}", part, f"{name}, pJ") for n, (name, part) in enumerate(parts)]


def both(draw: Callable[[int], str], wide: int = WIDE) -> str:
    """A chart drawn for a page, ``wide`` pixels of it, and for a phone; the style sheet shows the one that fits."""
    return f'<div class="wide">{draw(wide)}</div><div class="narrow">{draw(NARROW)}</div>'


def ticks(low: float, high: float) -> list[float]:
    """At least three round numbers from ``low`` to ``high``, on a linear scale."""
    step = 10.0 ** math.floor(math.log10(high - low))
    for part in (1, 2, 4, 5, 10):
        first, last = math.ceil(low / step * part - 1e-9), math.floor(high / step * part + 1e-9)
        if last - first + 1 >= LEAST_TICKS:
            return [n * step / part for n in range(first, last + 1)]
    return [low, (low + high) / 2, high]


def apart(places: Sequence[float], texts: Sequence[str]) -> list[int]:
    """Which of the texts along an axis do not touch: every n-th, as many as there is space for."""
    wide = max(map(len, texts)) * LETTER + 8
    for stride in range(1, len(places) + 1):
        kept = range(0, len(places), stride)
        if all(places[b] - places[a] >= wide for a, b in itertools.pairwise(kept)):
            return list(kept)
    return [0]


def bars(rows: Sequence[tuple[str, Sequence[Segment], str]], label: str, width: int = WIDE) -> str:
    """Horizontal bars on one scale. A row is its name, its segments from the left and the text at its end.

    ``width``: in pixels; names stand above their bars where it is that of a phone.
    """
    above = width < WIDE
    longest = max((sum(length for _, length, _ in segments) for _, segments, _ in rows), default=0) or 1
    names = max((len(name) for name, _, _ in rows), default=0) * LETTER + 16
    begin = 0.0 if above else min(names, MOST_NAME)
    texts = max((len(text) for _, _, text in rows), default=0) * LETTER + 10
    scale = (width - begin - texts) / longest
    row = TALL_ROW if above else ROW
    parts = []
    for n, (name, segments, text) in enumerate(rows):
        top = n * row + 4
        if above:
            parts.append(f'<text class="name" x="0" y="{top + 10}">{escape(name)}</text>')
            top += 14
        else:
            parts.append(
                f'<text class="name" x="{begin - 8:.1f}" y="{top + 14}" text-anchor="end">{escape(name)}</text>'
            )
        at = begin
        for kind, length, what in segments:
            if length <= 0:
                continue
            wide = max(length * scale, 0.5)
            parts.append(
                f'<rect class="{kind}" x="{at:.1f}" y="{top}" width="{wide:.1f}" height="{ROW - 8}">'
                f"<title>{escape(what)}: {length:,.0f}</title></rect>"
            )
            at += wide
        parts.append(f'<text class="value" x="{at + 6:.1f}" y="{top + 14}">{escape(text)}</text>')
    # Who cannot see the bars is told their values.
    told = f"{label}: {'; '.join(f'{name} {text}' for name, _, text in rows)}"
    return picture(parts, told, width, len(rows) * row + 6)


def picture(parts: Sequence[str], label: str, width: float, height: float) -> str:
    """A chart from its parts. ``label``: what who cannot see it is told."""
    return (
        f'<svg class="chart" role="img" aria-label="{escape(label)}" viewBox="0 0 {width} {height}" '
        f'style="max-width:{width}px">{"".join(parts)}</svg>'
    )


def occupancy(sizes: TileSizes, label: str, width: int = WIDE) -> str:
    """Bytes of each visited tile over the visits, the capacity as a line, tiles above it marked.

    More tiles than fit the width are gathered in groups; a group shows its largest tile.
    """
    left, height = 70, 150
    plot_width = float(width - left - 10)
    count, capacity = sizes.count, sizes.capacity
    group = max(1, -(-len(sizes.peaks) // int(plot_width // 2)))
    peaks = [max(sizes.peaks[n : n + group]) for n in range(0, len(sizes.peaks), group)]
    top = max(*peaks, capacity, 1) * 1.08
    # A few tiles stay slim bars; the axis ends with them.
    step = min(plot_width / max(1, len(peaks)), 28.0)
    plot_width = max(step * len(peaks), 140.0)
    parts = []

    def down(size: float) -> float:
        return height - size / top * height + 6

    parts.append('<g class="y-ticks">')
    for size in ticks(0, top):
        parts.append(
            f'<line class="axis" x1="{left}" x2="{left + plot_width:.1f}" y1="{down(size):.1f}" y2="{down(size):.1f}"/>'
        )
        # The capacity's own number stands there.
        if abs(down(size) - down(capacity)) >= 12:
            parts.append(
                f'<text class="value" x="{left - 6}" y="{down(size) + 4:.1f}" text-anchor="end">{short(size)}</text>'
            )
    parts.append("</g>")
    for n, size in enumerate(peaks):
        tall = size / top * height
        kind = "over" if size > capacity else "fits"
        box = f'x="{left + n * step:.2f}" y="{down(size):.1f}" width="{max(step * 0.8, 0.6):.2f}"'
        parts.append(f'<rect class="{kind}" {box} height="{tall:.1f}"/>')
    line = down(capacity)
    parts.append(f'<line class="capacity" x1="{left}" x2="{left + plot_width:.1f}" y1="{line:.1f}" y2="{line:.1f}"/>')
    parts.append(f'<text class="value" x="{left - 6}" y="{line + 4:.1f}" text-anchor="end">{short(capacity)}</text>')
    parts.append(f'<text class="value" x="{left}" y="{height + 22}">first tile</text>')
    middle = f"{(count + 1) // 2:,}"
    if count >= LEAST_TICKS and plot_width >= 200:
        parts.append(
            f'<text class="value" x="{left + plot_width / 2:.1f}" y="{height + 22}" text-anchor="middle">{middle}</text>'
        )
    parts.append(
        f'<text class="value" x="{left + plot_width:.1f}" y="{height + 22}" text-anchor="end">tile {count:,}</text>'
    )
    over = f"{sizes.over:,} above the {short(capacity)} that fit"
    told = f"{label}: {count:,} tiles, the largest {short(sizes.largest)} bytes, {over}"
    return picture(parts, told, width, height + 30)
