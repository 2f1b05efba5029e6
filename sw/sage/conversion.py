"""Cycles and energy of a conversion: MINT, section V, by its building blocks and how many of each there are (section VII.B).

A converter stands between memory and array. It reads while memory transfers: only what it takes longer counts. What becomes
dense does so on its way to the bus, whose pace it keeps. What changes between row and column order goes through the scratchpad
once more.
"""

from dataclasses import dataclass

from sw.formats.sparse_tensor import VALUE_BITS

from .constants import CLOCK_HZ, PROCESSORS, Constants
from .workload import Operand

__all__ = ["NO_CONVERSION", "Conversion", "conversion_energy", "hardware_conversion", "software_conversion"]

COLUMN_ORDER = ("csc",)
#: Formats with a coordinate or a pointer for each nonzero; the others have positions.
COORDINATES = ("coo", "csr", "csc", "csf")


@dataclass(frozen=True, kw_only=True)
class Conversion:
    """``cycles``: beside those of the transfer; ``energy``: pJ."""

    cycles: float = 0.0
    energy: float = 0.0


NO_CONVERSION = Conversion()


def hardware_conversion(
    operand: Operand, source: str, target: str, value: str, constants: Constants, *, memory: str, dense_by_row: bool
) -> Conversion:
    """By MINT.

    ``memory``: the side that is in memory, whose transfer it goes along with. ``dense_by_row``: dense values are needed row by
    row; else they come in either order.
    """
    if source == target:
        return NO_CONVERSION
    nnz = operand.nnz
    passes = [0.0]
    if source in ("dense", "zvc"):
        passes.append(operand.places / constants.prefix_inputs)
    elif source == "rlc":
        passes.append(_pairs(operand, source) / constants.prefix_inputs)
    if source not in COORDINATES and target in COORDINATES:
        passes.append(nnz / constants.dividers)
    if _sums(source, target):
        passes.append(nnz / constants.prefix_inputs)
    cycles = 0.0 if target == "dense" else max(passes)
    cycles = max(0.0, cycles - operand.bits(memory, value) / constants.memory_bits)
    reorders = _reorders(source, target, dense_by_row)
    if reorders:
        cycles += nnz / constants.sorted_entries
    energy = conversion_energy(
        (operand.places, nnz, _pairs(operand, source)), source, target, value, constants, reorders=reorders
    )
    return Conversion(cycles=cycles, energy=energy)


def conversion_energy(
    counts: tuple[float, float, float], source: str, target: str, value: str, constants: Constants, *, reorders: bool
) -> float:
    """Of MINT's building blocks, pJ.

    Parameters
    ----------
    counts: places, nonzeros, pairs of rlc. source, target: formats. value: type of the values.
    reorders: entries go to their places through the scratchpad.
    """
    places, nnz, pairs = counts
    if source == target:
        return 0.0
    add = 32 * constants.add_bit
    # Each place is compared with 0, or its bit looked at, and counted; runs are added up.
    energy = {"dense": 2 * places, "zvc": places, "rlc": pairs}.get(source, 0) * add
    if source not in COORDINATES and target in COORDINATES:
        energy += nnz * 2 * constants.divide
    if _sums(source, target):
        energy += nnz * add
    if reorders:
        # Counted while they arrive, then each entry goes to its place: written and read once, sorted before.
        entry = VALUE_BITS[value] + 32
        energy += nnz * (2 * entry * constants.scratchpad_bit + 2 * add)
    return energy


def _sums(source: str, target: str) -> bool:
    """Gaps, bits, pointers: a prefix sum over entries."""
    return target in ("rlc", "zvc") or (target in COORDINATES and target != "coo") or source in COORDINATES


def _reorders(source: str, target: str, dense_by_row: bool) -> bool:
    """Between row and column order, which dense values that may come in either order do not have."""
    free = not dense_by_row and "dense" in (source, target)
    return (source in COLUMN_ORDER) != (target in COLUMN_ORDER) and not free


def _pairs(operand: Operand, source: str) -> int:
    return operand.counts("rlc")["pairs"] if source == "rlc" else 0


def software_conversion(operand: Operand, source: str, target: str, value: str, processor: str = "cpu") -> Conversion:
    """By a library of a processor: as fast as its memory moves what it reads and writes, at all of its power."""
    if source == target:
        return NO_CONVERSION
    speed, watts = PROCESSORS[processor]
    seconds = sum(operand.bits(each, value) for each in (source, target)) / 8 / speed
    return Conversion(cycles=seconds * CLOCK_HZ, energy=seconds * watts * 1e12)
