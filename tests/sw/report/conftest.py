"""A design and a traffic table small enough to reckon with by hand."""

from types import SimpleNamespace
from typing import Any

import pytest


class StandInDesign(SimpleNamespace):
    """What the record and the page read of a design."""

    def model_dump(self, mode: str) -> dict[str, Any]:
        sections = ("pe", "buffer", "axi", "clock", "dram", "memory")
        return {"name": self.name} | {name: vars(getattr(self, name)) for name in sections}


@pytest.fixture
def design() -> StandInDesign:
    return StandInDesign(
        name="stand-in",
        pe=SimpleNamespace(
            count=2, dataflow="gustavson", merge_radix=4, value="int32", overflow="wrap", subnormals="keep"
        ),
        buffer=SimpleNamespace(bytes=8192, banks=4),
        axi=SimpleNamespace(data_bits=128),
        clock=SimpleNamespace(mhz=250.0, part=""),
        dram=SimpleNamespace(bandwidth_gbps=4.0, latency_ns=100.0),
        memory=SimpleNamespace(records="plain", converts_a=False, converts_b=False, converts_c=False),
        lanes=2,
        line_bytes=16,
        bus_bytes=16,
        sram_lines=512,
        packed=False,
    )


@pytest.fixture
def traffic() -> dict[str, dict[str, int]]:
    return {
        "A": {"read": 160, "metadata_read": 32},
        "B": {"read": 48},
        "C": {"read": 16, "write": 64, "metadata_read": 16, "metadata_write": 32},
    }
