"""Jobs for tests of the Gustavson PE, as functions of a random generator."""

import random

import numpy as np

from sw.golden.arithmetic import in_slots
from sw.golden.pe import JobLeaf
from tests.rtl.pe.bench import Segment

#: Values that rounding, cancellation, subnormals, infinities and NaN make interesting.
CORNERS = [
    0x00000000,
    0x80000000,
    0x3F800000,
    0xBF800000,
    0x00000001,
    0x007FFFFF,
    0x7F7FFFFF,
    0x7F800000,
    0xFF800000,
    0x7FC00000,
]


def bits(rng: random.Random, value: str) -> int:
    """A value in its slot: mostly numbers of like size, so that sums neither vanish nor swamp each other."""
    if value.startswith("int") or rng.random() < 0.02:
        found = rng.getrandbits(32)
    elif rng.random() < 0.05:
        found = rng.choice(CORNERS)
    else:
        found = int(np.float32(rng.uniform(-4, 4)).view(np.uint32))
    return int(in_slots(np.array(found, np.uint32), value))


def segment(
    rng: random.Random, value: str, coordinates: list[int], *, unit: bool = False, in_memory: bool = False
) -> Segment:
    values = np.array([bits(rng, value) for _ in coordinates], dtype=np.uint32)
    weight = None if unit else bits(rng, value)
    return Segment(JobLeaf(np.array(coordinates, dtype=np.uint32), values, weight), in_memory)


def empty_job(rng: random.Random, value: str) -> list[Segment]:
    return [segment(rng, value, [], unit=rng.random() < 0.5, in_memory=rng.random() < 0.5)]


def random_job(
    rng: random.Random,
    value: str,
    *,
    leaves: int,
    longest: int,
    span: int,
    units: float = 0.0,
    memory: float = 0.0,
) -> list[Segment]:
    """``leaves`` leaves of 1 to ``longest`` elements with coordinates below ``span``."""
    job = []
    for _ in range(leaves):
        length = rng.randint(1, min(longest, span))
        coordinates = sorted(rng.sample(range(span), length))
        job.append(segment(rng, value, coordinates, unit=rng.random() < units, in_memory=rng.random() < memory))
    return job


def mixed_jobs(rng: random.Random, value: str, radix: int, count: int, *, memory: float = 0.0) -> list[list[Segment]]:
    """Jobs of every kind after each other."""
    jobs = []
    for _ in range(count):
        kind = rng.randrange(8)
        leaves = rng.choice((1, 2, radix, rng.randint(1, radix), rng.randint(1, radix)))
        if kind == 0:
            jobs.append(empty_job(rng, value))
        elif kind == 1:  # all coordinates equal
            only = rng.choice((0, 5, 0xFFFFFFFF))
            jobs.append([segment(rng, value, [only], unit=rng.random() < 0.2) for _ in range(leaves)])
        elif kind == 2:  # disjoint, one leaf after the other or interleaved
            size = rng.randint(1, 6)
            if rng.random() < 0.5:
                jobs.append([segment(rng, value, list(range(n * size, (n + 1) * size))) for n in range(leaves)])
            else:
                jobs.append(
                    [segment(rng, value, [n + leaves * i for i in range(size)]) for n in reversed(range(leaves))]
                )
        elif kind == 3:  # the same coordinates in every leaf, up to the largest
            size = rng.randint(1, 5)
            coordinates = [0xFFFFFFFF - 3 * n for n in reversed(range(size))]
            jobs.append([segment(rng, value, coordinates, in_memory=rng.random() < memory) for _ in range(leaves)])
        elif kind == 4:  # a long leaf among short ones
            job = random_job(rng, value, leaves=leaves, longest=2, span=400, memory=memory)
            long = segment(rng, value, list(range(0, 3 * rng.randint(20, 60), 3)), in_memory=rng.random() < memory)
            job[rng.randrange(leaves)] = long
            jobs.append(job)
        elif kind == 5:
            jobs.append(random_job(rng, value, leaves=leaves, longest=1, span=12, units=0.3, memory=memory))
        elif kind == 6:
            jobs.append(random_job(rng, value, leaves=leaves, longest=5, span=1 << 32, memory=memory))
        else:
            jobs.append(random_job(rng, value, leaves=leaves, longest=12, span=40, units=0.2, memory=memory))
    return jobs


def changing_sources(rng: random.Random, value: str, lanes: int) -> list[list[Segment]]:
    """Leaf 0 in SRAM, then without an element and said to be in memory, then in memory: a line that memory brings at once must
    not overtake those that the SRAM still owes."""
    near = [segment(rng, value, list(range(2 * lanes)))]
    nothing = [segment(rng, value, [], in_memory=True)]
    far = [segment(rng, value, list(range(lanes)), in_memory=True)]
    return [near, nothing, far] * 4
