"""A row of dots for each name, as an SVG file of its own: values that should lie on one another."""

import math
from collections.abc import Mapping, Sequence
from html import escape

__all__ = ["dots"]

COLOURS = ("#222222", "#4c78a8", "#f58518", "#54a24b", "#e45756", "#b279a2")
WIDTH, LEFT, RIGHT, ROW, TOP = 760, 250, 30, 22, 44


def dots(
    title: str,
    axis: str,
    rows: Sequence[tuple[str, Mapping[str, float]]],
    *,
    log: bool = False,
    mark: float | None = None,
) -> str:
    """The SVG document. rows: values by the name of their series. log: a logarithmic axis, for values above 0. mark: where a
    line stands."""
    values = [value for _, own in rows for value in own.values()] + ([] if mark is None else [mark])
    low, high = min(values), max(values)
    if not log:
        low = min(low, 0.0)
    reach = (math.log(high / low) if log else high - low) or 1.0
    wide, names = WIDTH - LEFT - RIGHT, list(dict.fromkeys(name for _, own in rows for name in own))
    bottom = TOP + ROW * len(rows)

    def across(value: float) -> float:
        return LEFT + wide * ((math.log(value / low) if log else value - low) / reach)

    parts = [f'<text x="{LEFT}" y="16">{escape(title)}</text>']
    for number, name in enumerate(names):
        x = LEFT + 125 * number
        parts.append(f'<circle cx="{x + 4}" cy="30" r="4" fill="{COLOURS[number]}"/>')
        parts.append(f'<text x="{x + 12}" y="34">{escape(name)}</text>')
    for at in _marks(low, high, log=log):
        parts.append(f'<path d="M{across(at):.1f} {TOP}V{bottom}" stroke="#ddd"/>')
        parts.append(f'<text x="{across(at):.1f}" y="{bottom + 14}" text-anchor="middle">{at:g}</text>')
    if mark is not None:
        parts.append(f'<path d="M{across(mark):.1f} {TOP}V{bottom}" stroke="#777" stroke-dasharray="3 3"/>')
    for number, (name, own) in enumerate(rows):
        y = TOP + ROW * number + ROW / 2
        parts.append(f'<text x="{LEFT - 10}" y="{y + 4}" text-anchor="end">{escape(name)}</text>')
        for series, value in own.items():
            told = f"<title>{escape(f'{name}, {series}')}: {value:.4g}</title>"
            colour = COLOURS[names.index(series)]
            parts.append(f'<circle cx="{across(value):.1f}" cy="{y}" r="4" fill="{colour}">{told}</circle>')
    parts.append(f'<text x="{LEFT + wide / 2}" y="{bottom + 32}" text-anchor="middle">{escape(axis)}</text>')
    height = bottom + 42
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="11">'
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>{"".join(parts)}</svg>\n'
    )


def _marks(low: float, high: float, *, log: bool) -> list[float]:
    """Round numbers along the axis."""
    if log:
        decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        steps = (1,) if high / low > 200 else (1, 2, 5)
        return [step * 10.0**decade for decade in decades for step in steps if low <= step * 10.0**decade <= high]
    step = 10.0 ** math.floor(math.log10(high - low or 1.0))
    step = step / 5 if (high - low) / step < 2 else step / 2 if (high - low) / step < 5 else step
    return [round(n * step, 10) for n in range(math.ceil(low / step), math.floor(high / step + 1e-9) + 1)]
