"""Bar charts and the occupancy plot as inline SVG; colours come from the page's style sheet."""

from collections.abc import Sequence
from html import escape

__all__ = ["Segment", "bars", "occupancy", "short"]

WIDTH = 860
LABEL = 270
VALUE = 150
ROW = 26

# A part of a bar: class in the style sheet, length, label.
Segment = tuple[str, float, str]


def short(number: float) -> str:
    """A number for a chart: 12,345 or 12.3 M."""
    for limit, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if abs(number) >= limit:
            return f"{number / limit:.3g} {unit}"
    return f"{number:,.0f}"


def bars(rows: Sequence[tuple[str, Sequence[Segment], str]], label: str) -> str:
    """Horizontal bars on one scale. A row is its name, its segments from the left and the text at its end."""
    longest = max((sum(length for _, length, _ in segments) for _, segments, _ in rows), default=0) or 1
    scale = (WIDTH - LABEL - VALUE) / longest
    parts = []
    for n, (name, segments, text) in enumerate(rows):
        top = n * ROW + 4
        parts.append(f'<text class="name" x="{LABEL - 8}" y="{top + 14}" text-anchor="end">{escape(name)}</text>')
        at = float(LABEL)
        for kind, length, what in segments:
            if length <= 0:
                continue
            width = max(length * scale, 0.5)
            parts.append(
                f'<rect class="{kind}" x="{at:.1f}" y="{top}" width="{width:.1f}" height="{ROW - 8}">'
                f"<title>{escape(what)}: {length:,.0f}</title></rect>"
            )
            at += width
        parts.append(f'<text class="value" x="{at + 6:.1f}" y="{top + 14}">{escape(text)}</text>')
    height = len(rows) * ROW + 6
    return (
        f'<svg class="chart" role="img" aria-label="{escape(label)}" viewBox="0 0 {WIDTH} {height}" '
        f'style="max-width:{WIDTH}px">{"".join(parts)}</svg>'
    )


def occupancy(sizes: Sequence[float], capacity: float, label: str) -> str:
    """Bytes of each visited tile over the visits, the capacity as a line, tiles above it marked.

    More tiles than fit the width are gathered in groups; a group shows its largest tile.
    """
    left, height = 70, 150
    plot_width = float(WIDTH - 80)
    count = len(sizes)
    group = max(1, -(-count // int(plot_width // 2)))
    peaks = [max(sizes[n : n + group]) for n in range(0, count, group)]
    top = max(*peaks, capacity, 1) * 1.08
    # A few tiles stay slim bars; the axis ends with them.
    step = min(plot_width / max(1, len(peaks)), 28.0)
    plot_width = max(step * len(peaks), 140.0)
    parts = []
    for n, size in enumerate(peaks):
        tall = size / top * height
        kind = "over" if size > capacity else "fits"
        box = f'x="{left + n * step:.2f}" y="{height - tall + 6:.1f}" width="{max(step * 0.8, 0.6):.2f}"'
        parts.append(f'<rect class="{kind}" {box} height="{tall:.1f}"/>')
    line = height - capacity / top * height + 6
    parts.append(f'<line class="capacity" x1="{left}" x2="{left + plot_width:.1f}" y1="{line:.1f}" y2="{line:.1f}"/>')
    parts.append(f'<text class="value" x="{left - 6}" y="{line + 4:.1f}" text-anchor="end">{short(capacity)}</text>')
    parts.append(f'<line class="axis" x1="{left}" x2="{left + plot_width:.1f}" y1="{height + 6}" y2="{height + 6}"/>')
    parts.append(f'<text class="value" x="{left}" y="{height + 22}">first tile</text>')
    parts.append(
        f'<text class="value" x="{left + plot_width:.1f}" y="{height + 22}" text-anchor="end">tile {count:,}</text>'
    )
    return (
        f'<svg class="chart" role="img" aria-label="{escape(label)}" viewBox="0 0 {WIDTH} {height + 30}" '
        f'style="max-width:{WIDTH}px">{"".join(parts)}</svg>'
    )
