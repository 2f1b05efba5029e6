"""Cycles and energy of a conversion: MINT, section V, by its building blocks and how many of each there are (section VII.B).

A converter stands between memory and array. It reads while memory transfers: only what it takes longer counts. What becomes
dense does so on its way to the bus, whose pace it keeps. What changes between row and column order goes through the scratchpad
once more.
"""

from dataclasses import dataclass

from sw.formats.sparse_tensor import VALUE_BITS

from .constants import CLOCK_HZ, PROCESSORS, Constants
from .workload import Operand

__all__ = ["NO_CONVERSION", "Conversion", "hardware_conversion", "software_conversion"]

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
    nnz, add = operand.nnz, 32 * constants.add_bit
    passes = [0.0]
    energy = 0.0
    if source in ("dense", "zvc"):
        # Each place is compared with 0, or its bit looked at, and counted.
        passes.append(operand.places / constants.prefix_inputs)
        energy += operand.places * (2 if source == "dense" else 1) * add
    elif source == "rlc":
        pairs = operand.counts("rlc")["pairs"]
        passes.append(pairs / constants.prefix_inputs)
        energy += pairs * add
    if source not in COORDINATES and target in COORDINATES:
        passes.append(nnz / constants.dividers)
        energy += nnz * 2 * constants.divide
    if target in ("rlc", "zvc") or (target in COORDINATES and target != "coo") or source in COORDINATES:
        # Gaps, bits, pointers: a prefix sum over entries.
        passes.append(nnz / constants.prefix_inputs)
        energy += nnz * add
    cycles = 0.0 if target == "dense" else max(passes)
    cycles = max(0.0, cycles - operand.bits(memory, value) / constants.memory_bits)
    free = not dense_by_row and "dense" in (source, target)
    if (source in COLUMN_ORDER) != (target in COLUMN_ORDER) and not free:
        # Counted while they arrive, then each entry goes to its place: written and read once, sorted before.
        cycles += nnz / constants.sorted_entries
        entry = VALUE_BITS[value] + 32
        energy += nnz * (2 * entry * constants.scratchpad_bit + 2 * add)
    return Conversion(cycles=cycles, energy=energy)


def software_conversion(operand: Operand, source: str, target: str, value: str, processor: str = "cpu") -> Conversion:
    """By a library of a processor: as fast as its memory moves what it reads and writes, at all of its power."""
    if source == target:
        return NO_CONVERSION
    speed, watts = PROCESSORS[processor]
    seconds = sum(operand.bits(each, value) for each in (source, target)) / 8 / speed
    return Conversion(cycles=seconds * CLOCK_HZ, energy=seconds * watts * 1e12)
