"""The sections ``ERT`` and ``ART``: energy of each action, pJ, and area, um2, of each component."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .document import Document
from .fields import Name, Number, Section, validated

__all__ = ["Tables", "read_tables"]


class _Action(Section):
    name: Name
    energy: Number
    arguments: Any = None


class _Energies(Section):
    name: Name
    actions: list[_Action] = []


class _Area(Section):
    name: Name
    area: Number


class _Ert(Section):
    tables: list[_Energies]
    version: Any = None


class _Art(Section):
    tables: list[_Area]
    version: Any = None


@dataclass(frozen=True)
class Tables:
    """By the name of the component: energies of its actions, and its area."""

    energies: Mapping[str, Mapping[str, float]]
    areas: Mapping[str, float]


def component_name(path: str) -> str:
    """``system.PE[0..3].Buffer[0..1]`` is of ``Buffer``."""
    inside, plain = 0, ""
    for letter in path:
        inside += (letter == "[") - (letter == "]")
        plain += letter if letter == "." and not inside or inside == 0 and letter not in "[]" else ""
    return plain.rpartition(".")[2]


def read_tables(document: Document, names: Mapping[str, Any]) -> Tables:
    """Of an action with several entries, for different arguments, the largest energy counts. Raises SpecError."""
    energies: dict[str, dict[str, float]] = {}
    areas: dict[str, float] = {}
    if "ERT" in document.content:
        for table in validated(_Ert, document.content["ERT"], document, ("ERT",), names).tables:
            own = energies.setdefault(component_name(table.name), {})
            for action in table.actions:
                own[action.name] = max(own.get(action.name, 0.0), action.energy)
    if "ART" in document.content:
        for area in validated(_Art, document.content["ART"], document, ("ART",), names).tables:
            areas[component_name(area.name)] = area.area
    return Tables(energies, areas)
