"""Design to hardware: accelerator and converter as Amaranth components."""

from collections.abc import Callable
from functools import partial

from rtl.accelerator import Accelerator
from rtl.converter import Converter
from rtl.engine.gustavson import GustavsonEngine
from rtl.engine.signature import Engine
from rtl.engine.weight_stationary import WeightStationaryEngine

from . import parameters
from .design import Design, DesignError

__all__ = ["ENGINES", "accelerator", "converter"]

# The intra-tile engine of each dataflow that has hardware.
ENGINES: dict[str, Callable[..., Engine]] = {
    "gustavson": GustavsonEngine,
    "weight_stationary": WeightStationaryEngine,
}


def accelerator(design: Design) -> Accelerator:
    """The accelerator of a design, not yet elaborated. Raises DesignError for a design without hardware."""
    given = parameters.accelerator(design)
    make = partial(ENGINES[design.pe.dataflow], **parameters.tile_engine(design))
    return Accelerator(tile_engine=make, **given)


def converter(design: Design) -> Converter:
    """The format converter of a design, not yet elaborated. Raises DesignError where it cannot be built as it says."""
    try:
        return Converter(**parameters.converter(design))
    except ValueError as error:
        raise DesignError(f"design {design.name}: converter: {error}") from None
