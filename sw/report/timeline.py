"""What units did over a run: a strip for each, darker where it was busy for more of the time."""

import itertools
from collections.abc import Mapping, Sequence
from html import escape

from .charts import LETTER, WIDE, apart, picture, short, ticks

__all__ = ["timeline"]

STRIP, GAP = 16, 6
# On a phone the name stands above its strip.
TALL_GAP = 20
# A strip has no more cells than this on a phone.
MOST_CELLS = 64
FAINTEST = 0.005


def timeline(units: Mapping[str, Sequence[float]], interval: int, cycles: int, width: int = WIDE) -> str:
    """The plot, from the first cycle to the last.

    Parameters
    ----------
    units: by name the share of each interval in which it was busy, from 0 to 1.
    interval, cycles: of each but the last, and of the run. width: in pixels.
    """
    above = width < WIDE
    left = 0.0 if above else max(map(len, units)) * LETTER + 16
    right = 2 * LETTER
    scale = (width - left - right) / cycles
    pitch = STRIP + (TALL_GAP if above else GAP)
    parts = []
    for n, (name, shares) in enumerate(units.items()):
        top = n * pitch + 4
        if above:
            parts.append(f'<text class="name" x="0" y="{top + 11}">{escape(name)}</text>')
            top += TALL_GAP - 4
        else:
            parts.append(
                f'<text class="name" x="{left - 8:.1f}" y="{top + 12}" text-anchor="end">{escape(name)}</text>'
            )
        parts.append(f'<rect class="frame" x="{left:.1f}" y="{top}" width="{cycles * scale:.1f}" height="{STRIP}"/>')
        kind = "k1" if name.startswith("waits") else "k0"
        for begin, end, share in _cells(shares, interval, cycles, MOST_CELLS if above else len(shares)):
            if share >= FAINTEST:
                box = f'x="{left + begin * scale:.1f}" y="{top}" width="{(end - begin) * scale:.2f}" height="{STRIP}"'
                parts.append(f'<rect class="{kind}" {box} fill-opacity="{share:.2f}"/>')
    floor = len(units) * pitch + 18
    marks = ticks(0, cycles)
    places, texts = [left + mark * scale for mark in marks], [short(mark) for mark in marks]
    parts.append('<g class="x-ticks">')
    for n in apart(places, texts):
        # The first number begins with the axis.
        anchor = "start" if n == 0 else "middle" if places[n] + len(texts[n]) * LETTER / 2 <= width else "end"
        parts.append(f'<text class="value" x="{places[n]:.1f}" y="{floor}" text-anchor="{anchor}">{texts[n]}</text>')
    parts.append("</g>")
    parts.append(f'<text class="name" x="{(left + width) / 2:.1f}" y="{floor + 18}" text-anchor="middle">cycles</text>')
    told = "; ".join(f"{name} {_mean(shares, interval, cycles):.0%}" for name, shares in units.items())
    return picture(parts, f"Units over {cycles:,} cycles, mean shares: {told}", width, floor + 24)


def _cells(shares: Sequence[float], interval: int, cycles: int, most: int) -> list[tuple[float, float, float]]:
    """Begin, end and mean share of each cell: as many intervals as leave no more than ``most`` cells, equal ones as one."""
    group = -(-len(shares) // most)
    cells = []
    for first in range(0, len(shares), group):
        part = shares[first : first + group]
        cells.append((first * interval, min(cycles, (first + group) * interval), round(sum(part) / len(part), 2)))
    found: list[tuple[float, float, float]] = []
    for share, run in itertools.groupby(cells, key=lambda cell: cell[2]):
        same = list(run)
        found.append((same[0][0], same[-1][1], share))
    return found


def _mean(shares: Sequence[float], interval: int, cycles: int) -> float:
    ends = [min(cycles, (n + 1) * interval) for n in range(len(shares))]
    return sum(share * (end - n * interval) for n, (share, end) in enumerate(zip(shares, ends, strict=True))) / cycles
