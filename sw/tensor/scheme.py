"""A tile scheme for TTM or MTTKRP as plain data, and how a policy makes one."""

import json
import time
from dataclasses import asdict, dataclass, field

from sw.scheme.errors import SchemeError
from sw.stats.csf import WORD_BYTES

from .kernels import Problem, Sides
from .model import TensorTrafficModel
from .policies import POLICIES, conservative_side
from .traffic import TensorTraffic

__all__ = ["TensorScheme", "schedule_tensor", "statistics", "traffic_record"]


@dataclass(frozen=True, kw_only=True)
class TensorScheme:
    """Tile sides of the ranks of a kernel.

    Parameters
    ----------
    kernel, policy: by name. order: ranks, outermost first, between tiles and within them.
    shape, tile: size and tile side of each rank. buffer_bytes: of each input operand.
    predicted: bytes by operand, their total, and visits, by D2T2's model. seconds: what choosing took, statistics included
        where the policy looks at them.
    """

    kernel: str
    policy: str
    order: str
    shape: dict[str, int]
    tile: dict[str, int]
    buffer_bytes: int
    predicted: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0

    def to_json(self) -> str:
        """One JSON document, stable key order."""
        return json.dumps(asdict(self), indent=2)

    @property
    def sides(self) -> Sides:
        """Tile sides in the order of the ranks."""
        first, second, third, free = (self.tile[rank] for rank in self.order)
        return first, second, third, free


def traffic_record(traffic: TensorTraffic) -> dict[str, float]:
    """Bytes by operand (A, B and C; X is the output), visits and MACs as plain numbers."""
    named = {"A": traffic.tensor} | dict(zip("BC", traffic.matrices, strict=False)) | {"X": traffic.output}
    rounded: dict[str, float] = {name: round(value) for name, value in named.items()}
    return rounded | {"total": sum(rounded.values()), "visits": round(traffic.visits), "macs": round(traffic.macs)}


def statistics(problem: Problem, buffer_bytes: int) -> tuple[TensorTrafficModel, float]:
    """D2T2's model from tiles of the conservative side, and the seconds it took. Raises SchemeError for a tiny buffer."""
    began = time.perf_counter()
    model = TensorTrafficModel.of(problem, conservative_side(problem, buffer_bytes // WORD_BYTES))
    return model, time.perf_counter() - began


def schedule_tensor(
    policy: str, problem: Problem, buffer_bytes: int, model: tuple[TensorTrafficModel, float] | None = None
) -> TensorScheme:
    """Lets a policy decide and says what the model predicts of it.

    Parameters
    ----------
    buffer_bytes: of each input operand, in which its tiles must fit with all metadata.
    model: what :func:`statistics` gave, for several policies on the same problem.

    Raises SchemeError for a policy that there is not and a buffer that holds nothing.
    """
    if policy not in POLICIES:
        raise SchemeError("policy", policy, f"one of {', '.join(POLICIES)} for tensors")
    found, seconds = model or statistics(problem, buffer_bytes)
    began = time.perf_counter()
    sides = POLICIES[policy](problem, buffer_bytes // WORD_BYTES, found)
    spent = time.perf_counter() - began + (seconds if policy == "d2t2" else 0.0)
    order = problem.kernel.order
    return TensorScheme(
        kernel=problem.kernel.name,
        policy=policy,
        order=order,
        shape=dict(zip(order, problem.extent, strict=True)),
        tile=dict(zip(order, sides, strict=True)),
        buffer_bytes=buffer_bytes,
        predicted=traffic_record(found.predict(sides)),
        seconds=spent,
    )
