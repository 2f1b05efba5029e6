"""Design to hardware: the accelerator as an Amaranth component."""

from rtl.accelerator import Accelerator

from . import parameters
from .design import Design

__all__ = ["accelerator"]


def accelerator(design: Design) -> Accelerator:
    """The accelerator of a design, not yet elaborated. Raises DesignError for a design without hardware."""
    return Accelerator(**parameters.accelerator(design))
