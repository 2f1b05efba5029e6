"""Design to hardware: the accelerator as an Amaranth component."""

from collections.abc import Callable

from rtl.accelerator import Accelerator
from rtl.engine.gustavson import GustavsonEngine
from rtl.engine.signature import Engine

from . import parameters
from .design import Design

__all__ = ["ENGINES", "accelerator"]

# The intra-tile engine of each dataflow that has hardware.
ENGINES: dict[str, Callable[..., Engine]] = {"gustavson": GustavsonEngine}


def accelerator(design: Design) -> Accelerator:
    """The accelerator of a design, not yet elaborated. Raises DesignError for a design without hardware."""
    given = parameters.accelerator(design)
    return Accelerator(tile_engine=ENGINES[design.pe.dataflow], **given)
