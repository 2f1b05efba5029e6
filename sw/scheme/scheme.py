"""The tile scheme: how one multiplication is cut up and how the buffer is shared; plain JSON on disk."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from . import dataflow_rules, rules
from .errors import SchemeError
from .explicit_tiles import malformed
from .hardware_scheme import LARGEST, HardwareScheme, integer, modes
from .terms import GUSTAVSON, LOAD_LIST, LOAD_WINDOW, ORDERS, WEIGHT_STATIONARY, Hardware

__all__ = ["Scheme"]


def _prediction(name: str, value: object) -> None:
    if not isinstance(value, Mapping):
        raise SchemeError(name, value, "an object")
    for counted, number in value.items():
        integer(f"{name}.{counted}", number, 0)


def _alternative(name: str, entry: object) -> None:
    """Refuses a runner-up that a report could not show; its prediction stands beside its tile shape or in an object."""
    if not isinstance(entry, Mapping):
        raise SchemeError(name, entry, "an object")
    for key, value in entry.items():
        called = f"{name}.{key}"
        if key == "mode":
            modes(called, value)
        elif key == "predicted":
            _prediction(called, value)
        elif key == "order":
            if value not in ORDERS:
                raise SchemeError(called, value, f"one of {', '.join(ORDERS)}")
        elif key in ("T_i", "T_j", "T_k", "cycles", "dram_bytes"):
            integer(called, value, 1 if key.startswith("T_") else 0)
        elif not isinstance(value, (str, bool)) and not (isinstance(value, (int, float)) and abs(value) <= LARGEST):
            raise SchemeError(called, value, f"a name, true, false or a number of at most {LARGEST}")


@dataclass(frozen=True, kw_only=True)
class Scheme(HardwareScheme):
    """One tiling of ``C[i,j] = sum_k A[i,k] * B[k,j]``: what a design runs of it, who chose it and what they expect.

    Parameters
    ----------
    policy: which policy chose it.
    seconds: wall time of the decision.
    predicted: ``cycles`` and ``dram_bytes`` by the cost model; empty when nobody predicted.
    alternatives: runners-up, best first: order, tile shape, mode and prediction of each.
    """

    policy: str
    seconds: float = 0.0
    predicted: dict[str, int] = field(default_factory=dict)
    alternatives: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not isinstance(self.policy, str) or not self.policy:
            raise SchemeError("policy", self.policy, "a name")
        super().__post_init__()
        seconds = self.seconds
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 <= seconds <= LARGEST:
            raise SchemeError("seconds", seconds, "a number of seconds, at least 0")
        _prediction("predicted", self.predicted)
        if not isinstance(self.alternatives, list):
            raise SchemeError("alternatives", self.alternatives, "a list of objects")
        for number, entry in enumerate(self.alternatives):
            _alternative(f"alternatives[{number}]", entry)

    @property
    def cycles(self) -> int | None:
        """Predicted cycles."""
        return self.predicted.get("cycles")

    @property
    def dram_bytes(self) -> int | None:
        """Predicted bus bytes, all tensors."""
        return self.predicted.get("dram_bytes")

    def clip(self, I: int, J: int, K: int) -> "Scheme":  # noqa: E741 - extents, as in the papers
        """The same scheme with no tile side beyond the shape."""
        if (
            self.gathers and not self.strips and self.T_j < J
        ):  # as it was written before `strips` was: `T_i` counts them
            return replace(self, strips=min(self.T_i, I), T_i=I, T_k=min(self.T_k, K))
        return replace(self, T_i=min(self.T_i, I), T_j=min(self.T_j, J), T_k=min(self.T_k, K))

    def validate(self, design: Hardware, I: int, J: int, K: int) -> None:  # noqa: E741 - extents, as in the papers
        """Raise SchemeError unless ``design`` can run this on A of shape I x K and B of shape K x J.

        Any order is legal with any mode of A: where j is not innermost its tiles are loaded at almost every visit.
        """
        for rank, size in zip("ijk", (I, J, K), strict=True):
            if self.tile(rank) > size:
                raise SchemeError(f"T_{rank}", self.tile(rank), f"from 1 to {rank.upper()} = {size}")
        if design.pe.dataflow in (GUSTAVSON, WEIGHT_STATIONARY):
            rules.check(self, design, (I, J, K))
        else:
            dataflow_rules.check(self, design)

    def to_json(self) -> str:
        """One JSON document, stable key order."""
        return json.dumps({"policy": self.policy, **asdict(self)}, indent=2)

    @classmethod
    def from_json(cls, text: str) -> "Scheme":
        """Read what ``to_json`` wrote; anything else raises SchemeError."""
        try:
            document = json.loads(text)
        except ValueError as error:
            raise SchemeError("document", text[:20], f"JSON ({error})") from None
        except RecursionError:
            raise SchemeError("document", text[:20], "JSON of fewer levels") from None
        return cls.from_dict(document)

    @classmethod
    def from_dict(cls, document: object) -> "Scheme":
        """A scheme from parsed JSON."""
        if not isinstance(document, Mapping):
            raise SchemeError("document", document, "an object")
        known = {f.name: f for f in fields(cls)}
        for name in document:
            if name not in known:
                raise SchemeError(str(name), document[name], f"absent: the fields are {', '.join(known)}")
        for name in ("policy", "order", "T_i", "T_j", "T_k", "buffer_bytes", "fifo_bytes", "mode"):
            if name not in document:
                raise SchemeError(name, None, "present")
        return cls(**(_gathering(document) if document.get("load") == LOAD_WINDOW else document))


def _gathering(document: Mapping[str, Any]) -> dict[str, Any]:
    """A scheme that says which range of k each tile spans, as one whose tiles load what they use: k is whole."""
    tiles = document.get("tiles")
    if not isinstance(tiles, list) or not tiles:
        raise SchemeError("load", LOAD_WINDOW, "beside tiles")
    wrong = malformed(tiles, empty=True)
    if wrong is not None:
        raise SchemeError(f"tiles[{wrong[0]}]", tiles[wrong[0]], wrong[1])
    return {**document, "load": LOAD_LIST, "tiles": [], "T_k": LARGEST}
