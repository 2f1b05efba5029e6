"""The section ``network``: layers, each the specification with some values changed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .document import Document
from .fields import Count, Name, Section, validated

__all__ = ["Layer", "read_network"]


@dataclass(frozen=True)
class Layer:
    """values: by path, as ``--set`` writes them. times: how often the network has the layer."""

    name: str
    times: int
    values: Mapping[str, Any]


class _Layer(Section):
    name: Name
    times: Count = 1
    set: dict[str, Any] = {}


def read_network(document: Document) -> list[Layer]:
    """Raises SpecError."""
    content = document.content.get("network")
    if content is None:
        return []
    if not isinstance(content, list) or not content:
        raise document.error(("network",), "must be a list of layers", content)
    found = []
    for number, entry in enumerate(content):
        own = validated(_Layer, entry, document, ("network", number))
        if not own.times:
            raise document.error(("network", number, "times"), "must be at least 1", own.times)
        found.append(Layer(own.name, own.times, own.set))
    return found
