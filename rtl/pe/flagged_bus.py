"""The flagged bus of the weight-stationary array: words that are data or metadata, and what A's compute formats put into them."""

from amaranth.lib import data, enum

from ..lib.check import check_integer, check_power_of_two
from ..types import COORDINATE_WIDTH, VALUE_WIDTH

__all__ = ["Acf", "bus_cycle", "check_bus", "check_vector", "datum", "flagged_word", "format_of", "lane_words"]

WORD_WIDTH = max(COORDINATE_WIDTH, VALUE_WIDTH)


class Acf(enum.Enum, shape=2):
    """Compute formats of A (MINT, figure 6)."""

    DENSE = 0
    CSR = 1
    COO = 2

    def data_per_cycle(self, words: int, vector: int) -> int:
        """Data that a cycle carries: a common row id and data, or pairs of column id and data; or triples of all three."""
        carried = {Acf.DENSE: words - 1, Acf.CSR: (words - 1) // 2, Acf.COO: words // 3}[self]
        return min(carried, vector)

    def words_for(self, vector: int) -> int:
        """Words of a bus for PEs with so many MACs: a datum for each in a cycle. COO has the words of CSR."""
        return max(3, vector + 1) if self is Acf.DENSE else 2 * vector + 1


def format_of(name: str) -> Acf:
    """The format with this name, in lower case. Raises ValueError for others."""
    names = [acf.name.lower() for acf in Acf]
    if name not in names:
        raise ValueError(f"A's format on the bus must be one of {', '.join(names)}, not {name!r}")
    return Acf[name.upper()]


def flagged_word() -> data.StructLayout:
    """A word of the bus, or an entry of a PE's buffer: a value, or with ``metadata`` a coordinate."""
    return data.StructLayout({"metadata": 1, "payload": WORD_WIDTH})


def bus_cycle(words: int) -> data.StructLayout:
    """What every PE sees in a cycle. Words are filled from 0 on, of which word 0 is always the row id.

    The flags tell the rest: without a coordinate in word 1 the words after the row id are Dense, and those that are not present
    are places without a datum; else each datum comes after its column id; a triple begins with the row id again. ``last``: A ends
    with this cycle, which may be without words.
    """
    word = data.StructLayout({"present": 1, **flagged_word().members})
    return data.StructLayout({"last": 1, "words": data.ArrayLayout(word, words)})


def datum() -> data.StructLayout:
    """A value of A with its coordinates."""
    return data.StructLayout({"row": COORDINATE_WIDTH, "column": COORDINATE_WIDTH, "value": VALUE_WIDTH})


def check_bus(words: int, vector: int = 1) -> None:
    """Raises ValueError where a bus cannot have so many words, or cannot bring data for ``vector`` MACs."""
    check_integer("Bus words", words, 3, 64)
    check_vector(vector)
    if words <= vector:
        raise ValueError(f"Bus words must be more than the {vector} MACs of a PE, not {words!r}")


def check_vector(vector: int) -> None:
    """Raises ValueError where a PE cannot have so many MACs."""
    check_power_of_two("Vector", vector, 1, 32)


def lane_words(words: int, lane: int) -> dict[Acf, int]:
    """Word of the datum of a lane in each format that has so many data in a cycle."""
    places = {Acf.DENSE: 1 + lane, Acf.CSR: 2 + 2 * lane, Acf.COO: 2 + 3 * lane}
    return {acf: place for acf, place in places.items() if place < words}
