"""Which hardware the soak compiles: many small designs, drawn anew for each seed, and a few large ones that stay the same.

Every fifth design has weight-stationary PEs, the others are Gustavson's.

A small design takes a minute to compile and no two seeds share one. A large one takes many minutes, so it is drawn from a list
that does not change with the seed: what one run has compiled the next one finds in the cache.
"""

import random
from functools import cache
from typing import Any

from gen.design import Design, DesignError, load_design
from sw.scheme.terms import WEIGHT_STATIONARY

__all__ = ["ATTEMPTS", "LARGE", "LARGE_EVERY", "SMALL", "design_of", "is_large", "weight"]

ATTEMPTS = 400
# Every fifth design is a large one, the third one the first: cases of small ones come at once.
LARGE_EVERY = 5
FIRST_LARGE = 2
FIRST_STATIONARY = 4

# What costs compile time grows with elements x leaves, lanes and banks; buffers, bursts and addresses cost nothing.
SMALL: dict[str, tuple[Any, ...]] = {
    "pe.count": (1, 1, 2, 2, 3, 4),
    "pe.merge_radix": (2, 4, 4, 8, 8, 16),
    "pe.value": ("int8", "int16", "int32", "bf16", "bf16", "fp32", "fp32"),
    # What does not fit the type is refused, and another design drawn.
    "pe.overflow": ("wrap", "wrap", "saturate"),
    "pe.subnormals": ("keep", "keep", "flush"),
    "pe.leaf_lines": (1, 2, 4),
    "pe.queue_lines": (2, 3, 8, 16, 256),
    "buffer.bytes": (2048, 4096, 8192, 16384, 65536, 262144),
    "buffer.banks": (1, 2, 4, 8, 16),
    "buffer.fifo_bytes": (64, 128, 512, 1024, 4096),
    "axi.data_bits": (128, 128, 256, 512),
    "axi.address_bits": (32, 33, 40, 40, 48, 64),
    "axi.outstanding": (1, 2, 5, 16, 64),
    "axi.burst_beats": (1, 4, 16, 64, 128, 256),
    "tuning.dynamic": ("true", "true", "true", "false"),
    "memory.records": ("plain", "packed"),
    "converter.style": ("m", "m", "mr"),
    "converter.prefix_sum": ("serial_chain", "work_efficient", "highly_parallel"),
    "converter.counters": (16, 64, 1024),
    "converter.sram_bytes": (512, 4096, 65536),
    "converter.lane_bits": (16, 32, 32),
    "buffer.line_beats": (1, 1, 2, 4),
}
# Of a small design with weight-stationary PEs, beside what it shares with the others.
STATIONARY: dict[str, tuple[Any, ...]] = {
    field: values
    for field, values in SMALL.items()
    if field not in ("pe.merge_radix", "pe.leaf_lines", "pe.queue_lines", "tuning.dynamic")
} | {
    "pe.dataflow": (WEIGHT_STATIONARY,),
    "pe.vector": (1, 2, 4),
    "pe.buffer_entries": (4, 8, 16, 64),
    "pe.acf_a": ("csr", "dense", "coo"),
    "tuning.dynamic": ("false",),
}
# Elements x leaves x lanes of a small design: what a minute compiles.
SMALL_LEAVES = 64

# Together, packed and plain: 3 to 8 elements, radix 2 to 64, every bus width, value type and longest burst,
# 1 to 64 banks, 16 to 256 KiB.
LARGE: tuple[dict[str, Any], ...] = (
    # `edge`, by its numbers.
    {"pe.count": 8, "pe.merge_radix": 64, "pe.value": "fp32", "pe.queue_lines": 1024, "buffer.bytes": 262144}
    | {"buffer.banks": 16, "buffer.fifo_bytes": 4096},
    {"pe.count": 4, "pe.merge_radix": 16, "pe.value": "int16", "pe.overflow": "saturate", "axi.data_bits": 1024}
    | {"buffer.bytes": 65536, "buffer.banks": 8, "buffer.fifo_bytes": 1024, "axi.burst_beats": 32},
    {"pe.count": 8, "pe.merge_radix": 8, "pe.value": "bf16", "axi.data_bits": 512, "axi.burst_beats": 64}
    | {
        "memory.records": "packed",
        "buffer.bytes": 131072,
        "buffer.banks": 32,
        "buffer.fifo_bytes": 2048,
        "axi.outstanding": 64,
    },
    {"pe.count": 5, "pe.merge_radix": 32, "pe.value": "int8", "axi.data_bits": 256, "axi.burst_beats": 128}
    | {
        "memory.records": "packed",
        "buffer.bytes": 32768,
        "buffer.banks": 1,
        "axi.address_bits": 64,
        "axi.outstanding": 3,
    },
    {"pe.count": 6, "pe.merge_radix": 64, "pe.value": "int32", "axi.burst_beats": 256, "pe.leaf_lines": 1}
    | {"buffer.bytes": 16384, "buffer.banks": 4, "axi.address_bits": 32, "pe.queue_lines": 3},
    {"pe.count": 7, "pe.merge_radix": 2, "pe.value": "fp32", "pe.subnormals": "flush", "axi.data_bits": 256}
    | {
        "memory.records": "packed",
        "buffer.bytes": 65536,
        "buffer.banks": 64,
        "axi.burst_beats": 1,
        "pe.queue_lines": 256,
    },
    {"pe.count": 3, "pe.merge_radix": 32, "pe.value": "bf16", "pe.subnormals": "flush", "axi.data_bits": 1024}
    | {"buffer.bytes": 262144, "buffer.banks": 16, "buffer.fifo_bytes": 8192, "axi.burst_beats": 8},
    {"pe.count": 8, "pe.merge_radix": 4, "pe.value": "int8", "pe.overflow": "saturate", "axi.address_bits": 33}
    | {"buffer.bytes": 16384, "buffer.banks": 2, "axi.outstanding": 1, "tuning.dynamic": "false"},
)


def is_large(number: int) -> bool:
    """Whether design ``number`` of any seed is one of ``LARGE``."""
    return number % LARGE_EVERY == FIRST_LARGE


@cache
def design_of(seed: int, number: int) -> Design:
    """Design ``number`` of a seed: legal, with hardware. The seed says where in ``LARGE`` it begins."""
    if is_large(number):
        first = random.Random(f"{seed} large").randrange(len(LARGE))
        return _design(LARGE[(first + number // LARGE_EVERY) % len(LARGE)])
    rng = random.Random(f"{seed} design {number}")
    fields = STATIONARY if number % LARGE_EVERY == FIRST_STATIONARY else SMALL
    for _ in range(ATTEMPTS):
        drawn = {field: rng.choice(values) for field, values in fields.items()}
        try:
            design = _design(drawn)
        except DesignError:
            continue
        if design.pe.count * design.pe.merge_radix * design.lanes <= SMALL_LEAVES:
            return _design(drawn | _converting(design, random.Random(f"{seed} converting {number}")))
    raise RuntimeError(f"no legal design found for seed {seed}, design {number}")


def _converting(design: Design, rng: random.Random) -> dict[str, Any]:
    """Tensors that are converted on their way."""
    tensors = "abc" if design.pe.dataflow != WEIGHT_STATIONARY else "ac"
    return {f"memory.converts_{tensor}": "true" for tensor in tensors if design.packed and rng.random() < 0.5}


def weight(design: Design) -> float:
    """How much longer a cycle of this design takes to simulate than one of `tiny`, roughly."""
    return max(1.0, design.pe.count * (design.pe.merge_radix + 8) * (design.lanes + 4) / 144)


def _design(fields: dict[str, Any]) -> Design:
    return load_design("tiny", [f"{field}={value}" for field, value in fields.items()])
