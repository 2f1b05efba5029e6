"""``fiberloom convert --engine rtl``: which conversions the hardware has, and one of them on it."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gen.design import Design
    from sw.engine_result import Progress
    from sw.formats.storage_format import Layout, StorageFormat
    from sw.runtime.converter import Conversion

__all__ = [
    "ConversionError",
    "convert_in_hardware",
    "require_block",
    "require_built",
    "require_conversion",
    "require_order",
]


class ConversionError(RuntimeError):
    """The hardware ended a conversion with an error; the text is one line."""

    exit_code = 1


def require_conversion(source: str, target: str) -> None:
    """Refuses formats that the hardware has not, and those that it does not make of each other."""
    from sw.operands import UserError
    from sw.runtime.converter import FORMATS, PAIRS, SOURCES

    for option, kind, able in (("from", source, SOURCES), ("to", target, FORMATS)):
        if kind not in able:
            raise UserError(f"--{option} {kind}: the hardware has {', '.join(able)}: others need --engine golden")
    if source not in (sources := [one for one, other in PAIRS if other == target]):
        raise UserError(
            f"--from {source}: the hardware makes {target} of {', '.join(sources)}: others need --engine golden"
        )


def require_built(design: "Design", source: str, target: str) -> None:
    """Refuses a conversion that the design's converter is not built for."""
    from rtl.mint.converter.conversions import conversions_named
    from sw.operands import UserError

    built = design.converter.conversions
    if (source, target) not in conversions_named(built).pairs:
        raise UserError(f"converter.conversions = {built}: must have {source}-{target}")


def require_block(block: tuple[int, ...]) -> None:
    """Refuses blocks of more values than the hardware counts."""
    from math import prod

    from sw.operands import UserError
    from sw.runtime.converter import BLOCK_BITS

    if prod(block) > 1 << BLOCK_BITS:
        sides = "x".join(map(str, block))
        raise UserError(f"--block {sides}: must be of at most {1 << BLOCK_BITS:,} values, or --engine golden")


def require_order(order: int, target: str) -> None:
    """Refuses tensors of another order than the hardware makes a format of."""
    from sw.operands import UserError
    from sw.runtime.converter import MATRIX_FORMATS

    if order != 2 and target in MATRIX_FORMATS:
        raise UserError(f"--engine rtl: X is a tensor of order {order}: must be a matrix, or --engine golden")


def convert_in_hardware(
    design: "Design",
    names: tuple[str, str],
    formats: "list[StorageFormat]",
    layouts: "list[Layout]",
    arrays: list[dict[str, Any]],
    shape: tuple[int, ...],
    report: "Progress",
    seconds: dict[str, float],
) -> "tuple[dict[str, Any], Conversion, bool]":
    """The arrays that the hardware makes of the first ones, its run, and whether their bytes are those of the second ones.

    Raises ConversionError where the run ends with an error.
    """
    import numpy as np

    from sw.formats.storage_format import pack, unpack
    from sw.runtime.converter import Matrix, converter_image
    from sw.runtime.simulation.converter import run_converter

    source, target = (Matrix.of(name, form, layout) for name, form, layout in zip(names, formats, layouts, strict=True))
    memory, wanted = (pack(layout, part) for layout, part in zip(layouts, arrays, strict=True))
    image = converter_image(design, shape, source, target, memory)
    run = run_converter(design, image, report=lambda text: report(None, text), seconds=seconds)
    if run.error is not None:
        raise ConversionError(f"the converter: {run.error}")
    written = image.written()
    same = all(np.array_equal(data, wanted[name].view(np.uint8)) for name, data in written.items())
    return unpack(layouts[1], written), run, same
