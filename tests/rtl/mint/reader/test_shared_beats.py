"""Shared beats against a list: each request gets its beats, the first of some being the last one that its carry had before."""

from random import Random
from typing import Any

import pytest

from rtl.mint.reader.shared_beats import SharedBeats
from tests.rtl.mint.streams import BEHAVIOURS, PAUSES, run


def drawn(random: Random, count: int, dut: SharedBeats) -> tuple[list[dict[str, int]], list[int], list[int]]:
    """Requests, what memory answers, and all beats of the requests."""
    kept: dict[int, int] = {}
    requests, read, expected = [], [], []
    for _ in range(count):
        # A carry is often asked for twice running.
        carry = random.choice((requests[-1]["carry"] if requests else 0, random.randrange(dut.carries)))
        shared = carry in kept and random.random() < 0.7
        beats = random.choice((1, 1, 2, random.randrange(1, 9)))
        new = [random.getrandbits(dut.data_width) for _ in range(beats - shared)]
        requests.append({"beats": beats, "shared": int(shared), "carry": carry})
        read += new
        expected += [kept[carry], *new] if shared else new
        kept[carry] = expected[-1]
    return requests, read, expected


@pytest.mark.parametrize(("data_width", "carries"), [(8, 1), (64, 2), (128, 5), (1024, 64)])
@pytest.mark.parametrize("number", range(len(BEHAVIOURS)))
def test_each_request_gets_its_beats(data_width: int, carries: int, number: int) -> None:
    dut = SharedBeats(data_width=data_width, carries=carries)
    requests, read, expected = drawn(Random(f"{data_width} {number}"), 100, dut)
    ports = ("requests", "read_data", "beats")
    result = run(
        dut,
        {"requests": requests, "read_data": read},
        {"beats": len(expected)},
        pause={port: PAUSES[pause] for port, pause in zip(ports, BEHAVIOURS[number], strict=True)},
        reset_after=60 if number % 2 else None,
    )
    assert result.items["beats"] == expected
    alone = [n for n, one in enumerate(requests) if one["shared"] and one["beats"] == 1]
    assert len(alone) > 5 and sum(one["shared"] for one in requests) > 30


@pytest.mark.parametrize(("carries", "waits"), [(1, 0), (4, 1)])
def test_a_beat_a_cycle(carries: int, waits: int) -> None:
    """A shared beat of several carries comes a cycle after its request; all others without a pause."""
    dut = SharedBeats(data_width=16, carries=carries)
    requests = [{"beats": 3, "shared": int(n > 0), "carry": 0} for n in range(20)]
    result = run(dut, {"requests": requests, "read_data": list(range(41))}, {"beats": 60})
    assert result.items["beats"] == [0, 1, 2] + [beat for n in range(19) for beat in (2 * n + 2, 2 * n + 3, 2 * n + 4)]
    assert result.cycles["beats"][-1] == 59 + 19 * waits


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"data_width": 12}, "^Data width must be a power of two from 8 to 1024, not 12$"),
        ({"data_width": 2048}, "^Data width must be a power of two from 8 to 1024, not 2048$"),
        ({"carries": 0}, "^Carries must be an integer from 1 to 65536, not 0$"),
    ],
)
def test_wrong_parameters(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SharedBeats(**{"data_width": 16} | wrong)
