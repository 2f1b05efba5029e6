"""Operands of the weight-stationary PE's and array's tests, and their words on the bus and on the way into the buffers."""

import random
from dataclasses import dataclass
from typing import Any

import numpy as np

from sw.golden.arithmetic import in_slots
from sw.golden.weight_stationary import BusCycle, StationaryColumn, bus_cycles

#: Zeros, subnormals, largest numbers, infinities, NaN: as integers small and large ones.
CORNERS = (0x00000000, 0x80000000, 0x00000001, 0x007FFFFF, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFFFFFFF)


@dataclass(frozen=True)
class Sizes:
    """Parameters of a PE."""

    words: int = 5
    vector: int = 4
    entries: int = 8
    region: int = 4
    index_width: int = 8
    value: str = "int32"

    @property
    def keywords(self) -> dict[str, Any]:
        return dict(vars(self))


def bits(rng: random.Random, value: str, corners: float = 0.2) -> int:
    word = rng.choice(CORNERS) if rng.random() < corners else rng.getrandbits(32)
    if not value.startswith("int") and rng.random() > corners:
        word = int(np.float32(rng.uniform(-4, 4)).view(np.uint32))
    return int(in_slots(np.array(word, np.uint32), value))


def column(rng: random.Random, depth: int, dense: bool, density: float, value: str) -> StationaryColumn:
    """A column of ``depth`` coordinates."""
    coordinates = [k for k in range(depth) if dense or rng.random() < density]
    return StationaryColumn(coordinates, [bits(rng, value) for _ in coordinates], dense)


def streamed(rng: random.Random, sizes: Sizes, acf: str, *, rows: int, depth: int, density: float) -> list[BusCycle]:
    """The cycles of an A of ``rows`` by ``depth``; in Dense the absent are zeros, or no data."""
    data: list[tuple[int, int, int | None]] = []
    for row in range(rows):
        here = density * rng.choice([0, 1, 1, 2])
        for k in range(depth):
            present = rng.random() < here
            if present or acf == "dense":
                data.append((row * 3, k, bits(rng, sizes.value) if present else rng.choice([0, None])))
    lists: Any = zip(*data, strict=True) if data else ((), (), ())
    return bus_cycles(*lists, acf=acf, words=sizes.words, vector=sizes.vector)


def on_the_bus(cycles: list[BusCycle], words: int, *, bare: bool = False) -> list[dict[str, Any]]:
    """Payloads of the bus. ``bare``: the end comes in a cycle of its own, as it does where there is none."""
    sent = [list(cycle.words) for cycle in cycles] + ([[]] if bare or not cycles else [])
    return [
        {
            "last": int(n == len(sent) - 1),
            "words": [
                {
                    "present": int(payload is not None),
                    "metadata": int(flag),
                    "payload": 0xFEDCBA if payload is None else payload,
                }
                for flag, payload in here
            ]
            + [{"present": 0, "metadata": n % 2, "payload": 0xABCDEF}] * (words - len(here)),
        }
        for n, here in enumerate(sent)
    ]


def loaded(number: int, stays: StationaryColumn, entries: int) -> list[dict[str, int]]:
    """What brings a column: its number and length, and as much of it as the buffer takes."""
    header = {"header": 1, "length": stays.entries, "metadata": 1, "payload": number}
    return [header, *part_of(stays, 0, min(entries, stays.entries))]


def part_of(stays: StationaryColumn, index: int, count: int) -> list[dict[str, int]]:
    """Words of the column."""
    part = stays.words[index : index + count]
    return [{"header": 0, "length": 0, "metadata": int(flag), "payload": payload} for flag, payload in part]
