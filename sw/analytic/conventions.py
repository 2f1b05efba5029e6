"""Where the two dialects' published tools count differently, each by a switch."""

from dataclasses import dataclass

__all__ = ["V03", "V04", "Conventions"]


@dataclass(frozen=True, kw_only=True)
class Conventions:
    """How a published tool counts.

    first_fills: partial sums of an output are filled into a level even before there are any.
    idle_is_free: an action without an entry in the table costs nothing where it is gated or skipped; else it costs what the idle
    or the real action does.
    outputs_follow: gating or skipping of an output at a level that it bypasses acts at the next level outside, as of inputs.
    spare_ranks_silent: a level whose ranks take loops from the outermost on, and has more ranks than loops, counts no format data
    of its own; levels outside count it. A defect of the published tool, found in its figure 1.
    pessimistic_computes: where two inputs follow each other, computes that are removed are rounded to a whole number below, even
    where they are one; so there is one compute more in the published figure 1.
    """

    first_fills: bool
    idle_is_free: bool
    outputs_follow: bool
    spare_ranks_silent: bool
    pessimistic_computes: bool


V03 = Conventions(
    first_fills=True, idle_is_free=False, outputs_follow=True, spare_ranks_silent=True, pessimistic_computes=True
)
V04 = Conventions(
    first_fills=False, idle_is_free=True, outputs_follow=False, spare_ranks_silent=False, pessimistic_computes=False
)
