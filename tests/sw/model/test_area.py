"""The area proxy moves with what a design has more of."""

import pytest

from gen.design import load_design
from sw.model.area import area_proxy


@pytest.mark.parametrize(
    "more",
    [
        "pe.count=16",
        "pe.merge_radix=128",
        "buffer.bytes=524288",
        "axi.data_bits=256",
        "pe.queue_lines=2048",
        "pe.leaf_lines=8",
    ],
)
def test_more_of_anything_is_larger(more):
    assert area_proxy(load_design("edge", [more])) > area_proxy(load_design("edge"))


def test_designs_are_in_order():
    areas = [area_proxy(load_design(name)) for name in ("tiny", "edge", "server", "extensor")]
    assert areas == sorted(areas)
    types = ("int8", "int16", "int32", "bf16", "fp32")
    areas = [area_proxy(load_design("edge", [f"pe.value={value}"])) for value in types]
    assert areas == sorted(areas)


def test_edge_is_near_its_synthesis():
    """170,001 LUTs and 108,002 flip-flops on ECP5, at six bits of SRAM each, and the memories that stay memories."""
    cells = area_proxy(load_design("edge")) - 8 * 262144 - 8 * (60 * 4 + 4 * 32 + 1024) * 128
    assert cells == pytest.approx(6 * (170_001 + 108_002), rel=0.02)
