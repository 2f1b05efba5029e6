"""A whole specification as YAML."""

import os
from collections.abc import Mapping as Table
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from .document import TAG, Document, Steps

__all__ = ["spec_text", "written_sections"]

# Keys whose values are files beside the specification.
FILES = ("data_file_path",)


def written_sections(document: Document, folder: Path) -> dict[str, Any]:
    """Sections of a document, changes among them, with keys as their files have them; files that they name as ``folder`` sees
    them."""

    def plain(value: Any, steps: Steps) -> Any:
        if isinstance(value, dict):
            return {
                key if key == TAG else document.spelling((*steps, key)): plain(inner, (*steps, key))
                for key, inner in value.items()
            }
        if isinstance(value, list):
            return [plain(inner, (*steps, number)) for number, inner in enumerate(value)]
        if steps[-1] in FILES and isinstance(value, str):
            path = document.folder(str(steps[0])) / value
            return os.path.relpath(path, folder) if path.exists() else value
        return value

    return {document.spelling((name,)): plain(content, (name,)) for name, content in document.content.items()}


class _Dumper(yaml.SafeDumper):
    """Writes the YAML tag of a mapping, and equal parts as often as they stand."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _tagged(dumper: yaml.SafeDumper, content: dict[Any, Any]) -> yaml.Node:
    tag = content.get(TAG)
    plain = {key: value for key, value in content.items() if key != TAG}
    return dumper.represent_mapping(f"!{tag}" if tag else "tag:yaml.org,2002:map", plain)


_Dumper.add_representer(dict, _tagged)


def spec_text(sections: Table[str, Any], comment: Sequence[str] = ()) -> str:
    """YAML that ``fiberloom analyze`` reads. comment: lines at its head."""
    body = yaml.dump(dict(sections), Dumper=_Dumper, sort_keys=False, default_flow_style=None, width=120)
    return "".join(f"# {line}\n" for line in comment) + str(body)
