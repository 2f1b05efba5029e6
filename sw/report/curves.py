"""Curves on logarithmic axes as an SVG file of its own, several panels side by side."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

__all__ = ["Curve", "Panel", "curves"]

WIDTH, HEIGHT = 430, 330
LEFT, RIGHT, TOP, BOTTOM = 62, 12, 34, 46
LEGEND = 26
COLOURS = ("#4c78a8", "#f58518", "#54a24b", "#e45756", "#72b7b2", "#b279a2", "#9d755d", "#79706e")
DASHES = ("", "6 3", "2 2")


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Points by rising x, all above 0."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One pair of axes. ``y_range``: what is shown; a curve is cut where it leaves it. ``marks``: places of dotted lines."""

    title: str
    x_name: str
    y_name: str
    curves: Sequence[Curve]
    y_range: tuple[float, float]
    marks: Sequence[float] = ()


def curves(panels: Sequence[Panel], columns: int = 2) -> str:
    """The SVG document. A curve of one name has one colour in all panels.

    Raises ValueError without a point, or with one that is not above 0.
    """
    points = [point for panel in panels for curve in panel.curves for point in curve.points]
    if not points or min(min(point) for point in points) <= 0:
        raise ValueError("Curves must have points above 0 in both directions")
    names = list(dict.fromkeys(curve.name for panel in panels for curve in panel.curves))
    rows = -(-len(panels) // columns)
    width, height = WIDTH * min(columns, len(panels)), HEIGHT * rows + LEGEND
    parts = [_panel(panel, names, n % columns * WIDTH, n // columns * HEIGHT) for n, panel in enumerate(panels)]
    for n, name in enumerate(names):
        x, y = LEFT + n * 90, height - 10
        parts.append(f'<path d="M{x} {y - 4}h24" {_stroke(n)}/><text x="{x + 30}" y="{y}">{escape(name)}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11">'
        f'<rect width="{width}" height="{height}" fill="white"/>{"".join(parts)}</svg>\n'
    )


def _stroke(number: int) -> str:
    dash = DASHES[number // len(COLOURS) % len(DASHES)]
    return f'fill="none" stroke="{COLOURS[number % len(COLOURS)]}" stroke-width="2"' + (
        f' stroke-dasharray="{dash}"' if dash else ""
    )


def _decades(low: float, high: float) -> list[int]:
    return list(range(math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9) + 1))


def _tick(decade: int) -> str:
    return f"{10.0**decade:g}"


def _panel(panel: Panel, names: Sequence[str], left: int, top: int) -> str:
    xs = [x for curve in panel.curves for x, _ in curve.points]
    (x_low, x_high), (y_low, y_high) = (min(xs), max(xs)), panel.y_range
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def across(x: float) -> float:
        return left + LEFT + wide * math.log(x / x_low) / math.log(x_high / x_low)

    def down(y: float) -> float:
        return top + TOP + high * (1 - math.log(y / y_low) / math.log(y_high / y_low))

    floor, side = top + TOP + high, left + LEFT
    parts = [f'<text x="{side + wide / 2}" y="{top + 20}" text-anchor="middle">{escape(panel.title)}</text>']
    parts.append(f'<rect x="{side}" y="{top + TOP}" width="{wide}" height="{high}" fill="none" stroke="#999"/>')
    for decade in _decades(x_low, x_high):
        at = across(10.0**decade)
        parts.append(f'<path d="M{at:.1f} {floor}v4" stroke="#999"/>')
        parts.append(f'<text x="{at:.1f}" y="{floor + 16}" text-anchor="middle">{_tick(decade)}</text>')
    for decade in _decades(y_low, y_high):
        at = down(10.0**decade)
        parts.append(f'<path d="M{side} {at:.1f}h{wide}" stroke="#ddd"/>')
        parts.append(f'<text x="{side - 5}" y="{at + 4:.1f}" text-anchor="end">{_tick(decade)}</text>')
    parts += [
        f'<path d="M{across(x):.1f} {top + TOP}v{high}" stroke="#999" stroke-dasharray="2 3"/>' for x in panel.marks
    ]
    for curve in panel.curves:
        path = _path([(across(x), down(y), y_low <= y <= y_high) for x, y in curve.points])
        title = f"<title>{escape(curve.name)}</title>"
        parts.append(f'<path d="{path}" {_stroke(names.index(curve.name))}>{title}</path>')
    parts.append(f'<text x="{side + wide / 2}" y="{floor + 34}" text-anchor="middle">{escape(panel.x_name)}</text>')
    x, y = left + 14, top + TOP + high / 2
    parts.append(
        f'<text x="{x}" y="{y}" text-anchor="middle" transform="rotate(-90 {x} {y})">{escape(panel.y_name)}</text>'
    )
    return "".join(parts)


def _path(points: Sequence[tuple[float, float, bool]]) -> str:
    """A line through the points that are shown; a gap where one is not."""
    found, drawing = [], False
    for x, y, shown in points:
        if shown:
            found.append(f"{'L' if drawing else 'M'}{x:.1f} {y:.1f}")
        drawing = shown
    return "".join(found)
