"""Designs reduced to what schedulers ask of them, in the sizes of the shipped ones and odder ones."""

import math
from dataclasses import dataclass
from types import SimpleNamespace

__all__ = ["EDGE", "LARGE", "SERVER", "SMALLEST", "TINY", "Machine"]


@dataclass(frozen=True)
class Machine:
    """Attributes as in ``gen.design.Design``."""

    bytes: int
    data_bits: int
    banks: int = 4
    fifo_bytes: int = 512
    count: int = 2
    merge_radix: int = 4
    leaf_lines: int = 4
    queue_lines: int = 64
    mhz: float = 250.0
    bandwidth_gbps: float = 4.0
    latency_ns: float = 100.0
    packed: bool = False

    @property
    def lanes(self) -> int:
        return self.data_bits // 64

    @property
    def line_bytes(self) -> int:
        return self.data_bits // 8

    @property
    def bus_bytes(self) -> int:
        return self.line_bytes

    @property
    def burst_lines(self) -> int:
        return int(self.axi.burst_beats)

    @property
    def buffer(self) -> SimpleNamespace:
        return SimpleNamespace(bytes=self.bytes, banks=self.banks, fifo_bytes=self.fifo_bytes, line_beats=1)

    @property
    def axi(self) -> SimpleNamespace:
        return SimpleNamespace(burst_beats=16, outstanding=16)

    @property
    def pe(self) -> SimpleNamespace:
        return SimpleNamespace(
            count=self.count,
            merge_radix=self.merge_radix,
            leaf_lines=self.leaf_lines,
            queue_lines=self.queue_lines,
            dataflow="gustavson",
            value="fp32",
        )

    @property
    def scratch_slots(self) -> int:
        return min(32, 1 << (self.count.bit_length() - 1))

    @property
    def memory_latency_cycles(self) -> int:
        return max(1, math.ceil(self.latency_ns * self.mhz / 1000))

    @property
    def dram_bytes_per_cycle(self) -> float:
        return min(float(self.line_bytes), self.bandwidth_gbps * 1000 / self.mhz)

    @property
    def short_leaf_lines(self) -> int:
        return 2 * self.pe.leaf_lines

    def leaf_slots(self, leaf: int) -> int:
        return self.leaf_lines


TINY = Machine(8 << 10, 128)
EDGE = Machine(256 << 10, 128, banks=16, fifo_bytes=4096, count=8, merge_radix=64)
SERVER = Machine(4 << 20, 512, banks=32, fifo_bytes=65536, count=32, merge_radix=64, mhz=1000.0, bandwidth_gbps=68.0)
LARGE = Machine(
    30 << 20, 1024, banks=64, fifo_bytes=1 << 20, count=128, merge_radix=64, mhz=1000.0, bandwidth_gbps=68.0
)
# 16 lines for A, 4 of FIFO-managed region, one of segments, one of metadata.
SMALLEST = Machine(22 * 16, 128, fifo_bytes=64)
