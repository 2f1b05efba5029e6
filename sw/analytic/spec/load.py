"""A whole specification."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..architecture import Architecture
from ..errors import MappingError, SpecError
from ..features import Features
from ..mapping import Mapping
from ..problem import Workload
from .document import Document, load_document
from .extensions import Extensions
from .read_architecture import components, read_architecture
from .read_features import read_features
from .read_mapping import read_mapping
from .read_problem import read_workload
from .read_tables import read_tables

__all__ = ["SHIPPED", "Spec", "load_spec", "shipped_names"]

# Specifications that come with Fiberloom.
SHIPPED = Path(__file__).resolve().parents[3] / "configs" / "analysis"

SECTIONS = ("architecture", "problem", "mapping", "sparse_optimizations", "ERT", "ART", "variables")
NO_EXTENSIONS = Extensions()
# Sections of other tools: searches, estimators of energy, summaries.
OTHERS = (
    "mapper", "constraints", "architecture_constraints", "mapspace_constraints", "mapspace", "compound_components", "components",
    "ERT_summary", "ART_summary", "globals", "version",
)  # fmt: skip


@dataclass(frozen=True)
class Spec:
    """What to analyse. notes: what of the specification has no effect."""

    workload: Workload
    architecture: Architecture
    mapping: Mapping
    features: Features
    document: Document
    notes: tuple[str, ...]

    def refusal(self, error: MappingError) -> str:
        """A level that cannot do what is asked, by its name and the file of its section."""
        unit = self.architecture.compute if error.level < 0 else self.architecture.levels[error.level]
        file = self.document.files["mapping"]
        return f"{file}: mapping: {unit.name}: {error.subject}: {error.value}: must be {error.allowed}"


def shipped_names() -> list[str]:
    """Names of the specifications that come with Fiberloom."""
    return sorted(path.stem for path in SHIPPED.glob("*.yaml"))


def _place(path: Path) -> Path:
    """A file, or the one of a shipped name."""
    if path.exists() or path.suffix:
        return path
    if str(path) not in shipped_names():
        raise SpecError(f"{path}: no such file: must be a YAML file or one of {', '.join(shipped_names())}")
    return SHIPPED / f"{path}.yaml"


def load_spec(paths: Sequence[Path], changes: Sequence[str] = (), extensions: Extensions = NO_EXTENSIONS) -> Spec:
    """Reads the files of a specification, or a shipped one by name; ``changes`` are ``path.to.key=value``. Raises SpecError."""
    document = load_document([_place(path) for path in paths], changes)
    for name in document.content:
        if name not in (*SECTIONS, *OTHERS):
            raise document.error((name,), f"no such section: must be one of {', '.join(SECTIONS)}")
    names = document.content.get("variables") or {}
    if not isinstance(names, dict):
        raise document.error(("variables",), "must be a mapping of names", names)
    notes: list[str] = []
    workload = read_workload(document, names, extensions)
    found = components(document, names)
    tables = read_tables(document, names)
    architecture = read_architecture(document, found, tables, names, notes)
    mapping = read_mapping(document, workload.problem, architecture, found, names)
    features = read_features(document, workload.problem, architecture, found, names, notes, extensions)
    return Spec(workload, architecture, mapping, features, document, tuple(notes))
