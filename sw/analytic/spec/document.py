"""Several YAML files as one document that remembers how each key was written and in which file."""

from collections.abc import Mapping as Table
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from ..errors import SpecError
from .templates import TemplateError, filled, is_template

__all__ = ["TAG", "Document", "Steps", "load_document"]

# Path to a value: keys, and numbers in lists.
Steps = tuple[str | int, ...]
# Key that holds the YAML tag of a mapping, as in `!Component`.
TAG = "!tag"
# Key whose mappings are merged with those around it, at all depths.
MERGE = "<<<"
# Below these keys stand names of the user's, which are kept as they are.
NAMED = ("instance", "densities", "variables")
# Aliases can make a short file a huge document.
MOST_VALUES = 1_000_000
MOST_BYTES = 64 << 20


# The base is chosen when the module is loaded, which mypy cannot follow: PyYAML may have been built without its C library.
class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Safe loader that refuses a key given twice and keeps tags."""


def _mapping(loader: Any, node: yaml.MappingNode) -> dict[Any, Any]:
    keys = [
        key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge"
    ]
    double = next((key for number, key in enumerate(keys) if key in keys[:number]), None)
    if double is not None:
        raise yaml.constructor.ConstructorError(None, None, f"key {double!r} is given twice", node.start_mark)
    loader.flatten_mapping(node)
    found: dict[Any, Any] = loader.construct_mapping(node, deep=True)
    sources = found.pop(MERGE, [])
    for source in sources if isinstance(sources, list) else [sources]:
        if not isinstance(source, dict):
            raise yaml.constructor.ConstructorError(None, None, f"{MERGE} takes mappings", node.start_mark)
        found = _merged(found, source)
    return found


class _Whole(list[Any]):
    """A list that nothing is merged into."""


class _WholeMapping(dict[Any, Any]):
    """A mapping that nothing is merged into."""


def _merged(own: dict[Any, Any], other: dict[Any, Any]) -> dict[Any, Any]:
    """``own`` stands above the other; mappings inside are merged as well, and lists follow one another."""
    found = dict(own)
    for key, value in other.items():
        if key not in own:
            found[key] = value
        elif isinstance(own[key], dict) and isinstance(value, dict) and not isinstance(own[key], _WholeMapping):
            found[key] = _merged(own[key], value)
        elif isinstance(own[key], list) and isinstance(value, list) and not isinstance(own[key], _Whole):
            found[key] = [*own[key], *value]
    return found


def _tagged(loader: Any, suffix: str, node: yaml.Node) -> Any:
    if suffix == "nomerge":
        if isinstance(node, yaml.MappingNode):
            return _WholeMapping(_mapping(loader, node))
        if isinstance(node, yaml.SequenceNode):
            return _Whole(loader.construct_sequence(node, deep=True))
    if isinstance(node, yaml.MappingNode):
        return {TAG: suffix, **_mapping(loader, node)}
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    return loader.construct_scalar(node)


_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)
_Loader.add_multi_constructor("!", _tagged)


class Document:
    """The sections of a specification.

    content: the sections, with ``_`` for ``-`` in keys. files: the file of each section. Errors are raised by :meth:`error`, so
    that all name file, path and value alike.
    """

    def __init__(self) -> None:
        self.content: dict[str, Any] = {}
        self.files: dict[str, Path] = {}
        self.changes: dict[Steps, str] = {}
        self._written: dict[Steps, str] = {}
        self._values = 0

    def add(self, path: Path, replaces: str | None = None) -> None:
        """Reads a file. replaces: its only section, for that of another file. Raises SpecError."""
        try:
            if not path.is_file():  # reading a pipe without a writer would never end
                raise SpecError(f"{path}: {'must be a file' if path.exists() else 'no such file'}")
            if path.stat().st_size > MOST_BYTES:
                raise SpecError(f"{path}: must be at most {MOST_BYTES:,} bytes")
            text = path.read_text(encoding="utf-8")
            loaded = yaml.load(filled(text, path) if is_template(text) else text, Loader=_Loader)
        except OSError as error:
            raise SpecError(f"{path}: cannot be read ({error.strerror or error})") from None
        except UnicodeDecodeError as error:
            raise SpecError(f"{path}: not a YAML file ({error})") from None
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
            raise SpecError(f"{path}: not a YAML file ({where}{getattr(error, 'problem', None) or error})") from None
        except TemplateError as error:
            raise SpecError(f"{path}: template: {error}") from None
        except (RecursionError, ValueError, TypeError) as error:
            raise SpecError(f"{path}: not a YAML file ({error})") from None
        if not isinstance(loaded, dict):
            raise SpecError(f"{path}: must be sections such as architecture, problem and mapping")
        for key, value in loaded.items():
            name = str(key).replace("-", "_")
            if name.startswith("_"):  # holds anchors for what follows
                continue
            if replaces is not None and name != replaces:
                raise SpecError(f"{path}: {key}: must be {replaces} alone")
            if name in self.files and replaces is None:
                raise SpecError(f"{path}: {key}: is in {self.files[name]}, too: must be in one file")
            self.files[name] = path
            self._written[name,] = str(key)
            try:
                self.content[name] = self._normal(value, (name,))
            except RecursionError:
                raise SpecError(f"{path}: {key}: is nested too deeply") from None

    def _normal(self, value: Any, steps: Steps) -> Any:
        self._values += 1
        if self._values > MOST_VALUES:
            raise SpecError(f"{self.files[str(steps[0])]}: must hold at most {MOST_VALUES:,} values")
        if isinstance(value, dict):
            found = {}
            for key, inner in value.items():
                name = str(key) if steps[-1] in NAMED and key != TAG else str(key).replace("-", "_")
                if name in found:
                    raise self.error((*steps, name), f"is given twice, also as {self._written[(*steps, name)]}")
                self._written[(*steps, name)] = str(key)
                found[name] = self._normal(inner, (*steps, name))
            return found
        if isinstance(value, list):
            return [self._normal(inner, (*steps, number)) for number, inner in enumerate(value)]
        return value

    def change(self, text: str) -> None:
        """Writes ``path.to.key=value``. In lists a step is a number, or the name or target of an entry. Raises SpecError."""
        left, equals, right = text.partition("=")
        if not equals:
            raise SpecError(f"--set {text}: must be path.to.key=value")
        try:
            value = yaml.load(right, Loader=_Loader)
        except yaml.YAMLError:
            raise SpecError(f"--set {text}: {right}: must be a YAML value") from None
        self.write(left.strip(), value, f"--set {text}")

    def write(self, path: str, value: Any, origin: str) -> None:
        """Writes a value. origin: how errors name it."""
        words = path.split(".")
        if not all(words):
            raise SpecError(f"{origin}: must be path.to.key=value")
        steps: Steps = ()
        target: Any = self.content
        for number, word in enumerate(words):
            last = number == len(words) - 1
            if isinstance(target, list):
                step = _entry(target, word)
                if step is None:
                    names = [str(_name(each)) for each in target if _name(each)] or [f"0 to {len(target) - 1}"]
                    raise SpecError(f"{origin}: {word}: must be one of {', '.join(names)}")
                key: str | int = step
            elif isinstance(target, dict):
                key = word if word in target else word.replace("-", "_")
                if key not in target and not (last and steps):
                    raise SpecError(f"{origin}: {word}: must be one of {', '.join(map(str, target))}")
            else:
                raise SpecError(f"{origin}: {'.'.join(words[:number])}: has nothing below it")
            steps = (*steps, key)
            if last:
                target[key] = self._normal(value, steps)
            else:
                target = target[key]
        self._written.setdefault(steps, str(steps[-1]))
        self.changes[steps] = origin

    def written(self, steps: Steps) -> str:
        """A path with its keys as the file has them."""
        text = ""
        for number, step in enumerate(steps):
            if isinstance(step, int):
                text += f"[{step}]"
            else:
                text += ("." if text else "") + self._written.get(steps[: number + 1], str(step))
        return text

    def spelling(self, steps: Steps) -> str:
        """The last key of a path as the file has it."""
        return self._written.get(steps, str(steps[-1]))

    def error(self, steps: Steps, allowed: str, value: object = None) -> SpecError:
        """The error of a value: file, path, value, what is allowed; or the ``--set`` that wrote it."""
        path, change = next(((p, text) for p, text in self.changes.items() if steps[: len(p)] == p), (steps, None))
        shown = "" if value is None or (change and path == steps) else f" = {_shown(value)}"
        where = f"{self.files.get(str(steps[0]), '(no file)')}: {self.written(steps)}"
        if change:
            where = change + (f": {self.written(steps)}" if path != steps else "")
        return SpecError(f"{where}{shown}: {allowed}")

    def require(self, section: str) -> Any:
        """A section. Raises SpecError where there is none."""
        if section not in self.content:
            files = ", ".join(dict.fromkeys(str(path) for path in self.files.values())) or "the specification"
            raise SpecError(f"{files}: {section}: is missing")
        return self.content[section]

    def folder(self, section: str) -> Path:
        """Folder of the file that has a section."""
        return self.files[section].parent


def _name(entry: Any) -> Any:
    return entry.get("name", entry.get("target")) if isinstance(entry, dict) else None


def _entry(entries: list[Any], word: str) -> int | None:
    named = [number for number, entry in enumerate(entries) if str(_name(entry)).partition("[")[0] == word]
    if named:
        return named[0]
    return int(word) if word.isascii() and word.isdigit() and int(word) < len(entries) else None


def _shown(value: object) -> str:
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def load_document(
    paths: Sequence[Path],
    changes: Sequence[str] = (),
    mapping: Path | None = None,
    layer: Table[str, Any] | None = None,
) -> Document:
    """Reads the files as one document, one file's mapping in place of theirs, and applies the values of a layer of a network, by
    path, and then ``--set`` changes. Raises SpecError."""
    document = Document()
    for path in paths:
        document.add(path)
    if mapping is not None:
        document.add(mapping, replaces="mapping")
    for path_, value in (layer or {}).items():
        document.write(str(path_), value, f"{document.files.get('network', '(no file)')}: network: set {path_}")
    for text in changes:
        document.change(text)
    return document
