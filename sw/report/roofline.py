"""Work in a cycle over work for each word moved, under the limits of compute units and bandwidths, as inline SVG."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from .charts import WIDE, short
from .scatter import KINDS, axes, picture, span

__all__ = ["Port", "roofline"]

# The lower end of the axis lies so many times below the peak at least.
LEAST_HEIGHT = 10


@dataclass(frozen=True, kw_only=True)
class Port:
    """What passes a port. words: moved in all. bandwidth: words a cycle over all instances, None without a bound."""

    name: str
    words: float
    bandwidth: float | None


def roofline(ports: Sequence[Port], computes: float, cycles: float, peak: float, width: int = WIDE) -> str | None:
    """A dot for each port, its roof where it has a bound, and that of the compute units, ``peak`` computes a cycle. None where
    there is nothing to compute or nothing moves."""
    moved = [port for port in ports if port.words > 0]
    if not moved or computes <= 0 or cycles <= 0:
        return None
    attained = computes / cycles
    knees = [peak / port.bandwidth for port in moved if port.bandwidth]
    x_span = span([computes / port.words for port in moved] + knees)
    y_span = span([min(attained, peak / LEAST_HEIGHT), peak])
    parts, place = axes(x_span, y_span, "computes for each word", "computes in a cycle", width)
    left, top = place(x_span[0], peak)
    right, _ = place(x_span[1], peak)
    parts.append(f'<line class="capacity" x1="{left:.1f}" x2="{right:.1f}" y1="{top:.1f}" y2="{top:.1f}"/>')
    told = []
    for number, port in enumerate(moved):
        intensity = computes / port.words
        text = f"{port.name}: {intensity:.4g} computes for each word"
        if port.bandwidth:
            text += f", bound {short(min(peak, intensity * port.bandwidth))} in a cycle"
            low = max(x_span[0], y_span[0] / port.bandwidth)
            begin, end = place(low, low * port.bandwidth), place(peak / port.bandwidth, peak)
            line = f'x1="{begin[0]:.1f}" y1="{begin[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}"'
            parts.append(f'<line class="axis s{number % KINDS}" {line}><title>{escape(port.name)}</title></line>')
        x, y = place(intensity, attained)
        parts.append(
            f'<circle class="d{number % KINDS}" cx="{x:.1f}" cy="{y:.1f}" r="4.5"><title>{escape(text)}</title></circle>'
        )
        told.append(text)
    return picture(parts, f"{attained:.4g} computes in a cycle of {peak:g}; {'; '.join(told)}", width)
