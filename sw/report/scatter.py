"""Points on logarithmic axes with a line through or above them, as inline SVG: costs and their front, work and its roof."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from .charts import HALF, LEAST_TICKS, LETTER, WIDE, apart, short, ticks

__all__ = ["KINDS", "Dot", "Roof", "pareto", "scatter"]

HEIGHT, HALF_HEIGHT = 380, 300
LEFT, RIGHT, TOP, BOTTOM = 90, 20, 14, 46
# Distinct kinds of dots: colours of the style sheet, then the same with another outline.
KINDS = 8


@dataclass(frozen=True, kw_only=True)
class Dot:
    """A point: two numbers above zero, its kind (0 up: which colour), what is told of it, and what is drawn beside it."""

    x: float
    y: float
    kind: int
    text: str
    name: str = ""


@dataclass(frozen=True, kw_only=True)
class Roof:
    """A line that no dot of its kind is above, by its corners; its name, and the kind of the dots if it is not of all."""

    corners: Sequence[tuple[float, float]]
    name: str = ""
    kind: int | None = None


def pareto(points: Sequence[tuple[float, float]]) -> list[int]:
    """Positions of the points that no other is as good as in one cost and better in the other, by the first cost."""
    front: list[int] = []
    least = math.inf
    for position in sorted(range(len(points)), key=lambda n: points[n]):
        if points[position][1] < least:
            front.append(position)
            least = points[position][1]
    return front


def _ticks(low: float, high: float) -> list[float]:
    """Powers of ten within, with 2 and 5 times them where that leaves few; round numbers where the axis is short."""
    for steps in ((1,), (1, 2, 5), (1, 1.5, 2, 3, 5, 7)):
        decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        found = [step * 10.0**decade for decade in decades for step in steps if low <= step * 10.0**decade <= high]
        if len(found) >= LEAST_TICKS:
            return found
    return ticks(low, high)


def _texts(numbers: Sequence[float]) -> list[str]:
    """The numbers as short as they are different."""
    # A number below ten may have decimals.
    texts = [short(number) if number >= 10 else f"{number:.3g}" for number in numbers]
    return texts if len(set(texts)) == len(texts) else [f"{number:,.10g}" for number in numbers]


def _range(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    margin = max((high / low) ** 0.06, 1.04)
    return low / margin, high * margin


def _named(places: Sequence[tuple[float, float, str]], width: int, height: int) -> list[str]:
    """Names beside their dots, one for all dots of a place; those that have no space among the others are left out."""
    names: dict[tuple[int, int], list[str]] = {}
    for x, y, name in places:
        if name:
            names.setdefault((round(x), round(y)), []).append(name)
    taken = [(x - 6, x + 6, y - 6.0, y + 6.0) for x, y, _ in places]
    parts = []
    for (x, y), found in names.items():
        text = ", ".join(dict.fromkeys(found))
        wide = len(text) * LETTER
        for left, base in (
            (x + 8, y + 4),
            (x - 8 - wide, y + 4),
            (x - wide / 2, y - 9),
            (x - wide / 2, y + 18),
            (x + 5, y - 9),
            (x + 5, y + 18),
            (x + 5, y - 20),
        ):
            box = left, left + wide, base - 11, base + 3
            inside = LEFT <= left and box[1] <= width - 2 and TOP <= box[2] and box[3] <= height - BOTTOM
            if inside and not any(box[0] < b and a < box[1] and box[2] < d and c < box[3] for a, b, c, d in taken):
                taken.append(box)
                parts.append(f'<text class="name" x="{left:.1f}" y="{base:.1f}">{escape(text)}</text>')
                break
    return parts


def scatter(dots: Sequence[Dot], x_name: str, y_name: str, width: int = WIDE, roofs: Sequence[Roof] = ()) -> str:
    """The plot. ``width``: in pixels. Without ``roofs`` fewer is better in both directions, and a line joins the best."""
    shown = [*((dot.x, dot.y) for dot in dots), *(corner for roof in roofs for corner in roof.corners)]
    height = HEIGHT if width > HALF else HALF_HEIGHT
    (x_low, x_high), (y_low, y_high) = (_range([point[axis] for point in shown]) for axis in (0, 1))

    def place(x: float, y: float) -> tuple[float, float]:
        across = math.log(x / x_low) / math.log(x_high / x_low)
        up = math.log(y / y_low) / math.log(y_high / y_low)
        return LEFT + across * (width - LEFT - RIGHT), height - BOTTOM - up * (height - TOP - BOTTOM)

    parts = []
    floor, side = height - BOTTOM, LEFT
    marks = _ticks(x_low, x_high)
    places = [place(tick, y_low)[0] for tick in marks]
    texts = _texts(marks)
    parts += [f'<line class="axis" x1="{at:.1f}" x2="{at:.1f}" y1="{TOP}" y2="{floor}"/>' for at in places]
    parts.append('<g class="x-ticks">')
    for n in apart(places, texts):
        parts.append(f'<text class="value" x="{places[n]:.1f}" y="{floor + 16}" text-anchor="middle">{texts[n]}</text>')
    parts.append('</g><g class="y-ticks">')
    marks = _ticks(y_low, y_high)
    for tick, text in zip(marks, _texts(marks), strict=True):
        _, at = place(x_low, tick)
        parts.append(f'<line class="axis" x1="{side}" x2="{width - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>')
        parts.append(f'<text class="value" x="{side - 6}" y="{at + 4:.1f}" text-anchor="end">{text}</text>')
    parts.append("</g>")
    middle = (LEFT + width - RIGHT) / 2
    parts.append(f'<text class="name" x="{middle}" y="{height - 8}" text-anchor="middle">{escape(x_name)}</text>')
    rotation = f'transform="rotate(-90 14 {(TOP + floor) / 2})"'
    parts.append(
        f'<text class="name" x="14" y="{(TOP + floor) / 2}" text-anchor="middle" {rotation}>{escape(y_name)}</text>'
    )
    best = [(dots[n].x, dots[n].y) for n in pareto([(dot.x, dot.y) for dot in dots])]
    for roof in roofs or [Roof(corners=best)]:
        corners = " ".join("{:.1f},{:.1f}".format(*place(x, y)) for x, y in roof.corners)
        style = "front" if roof.kind is None else f"front r{roof.kind % KINDS}"
        title = f"<title>{escape(roof.name)}</title>" if roof.name else ""
        parts.append(f'<polyline class="{style}" points="{corners}">{title}</polyline>')
    for dot in dots:
        x, y = place(dot.x, dot.y)
        parts.append(
            f'<circle class="d{dot.kind % KINDS}" cx="{x:.1f}" cy="{y:.1f}" r="4.5">'
            f"<title>{escape(dot.text)}</title></circle>"
        )
    parts += _named([(*place(dot.x, dot.y), dot.name) for dot in dots], width, height)
    told = f"{y_name} over {x_name}: {'; '.join(dot.text for dot in dots)}"
    return (
        f'<svg class="chart" role="img" aria-label="{escape(told)}" '
        f'viewBox="0 0 {width} {height}" style="max-width:{width}px">{"".join(parts)}</svg>'
    )
