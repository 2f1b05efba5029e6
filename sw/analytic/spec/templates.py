"""Templates of dialect v0.4: text that a file has put in before it is read as YAML."""

from pathlib import Path
from typing import Any

import yaml

__all__ = ["TemplateError", "filled", "is_template"]

DEEPEST = 16
LARGEST = 64 << 20
# What may stand in a template: values, calls of the functions below, conditions, sums. Nothing that repeats or multiplies.
ALLOWED = (
    "Template", "Output", "TemplateData", "Name", "Const", "Call", "If", "Assign", "Filter", "Compare", "Operand", "Not", "And",
    "Or", "Add", "Sub", "Neg", "CondExpr", "Concat",
)  # fmt: skip
FUNCTIONS = ("add_to_path", "cwd", "find_path", "include", "include_text", "path_exists")
FILTERS = ("default", "d", "int", "float", "lower", "upper")


class TemplateError(ValueError):
    """A template that cannot be filled; says why."""


def is_template(text: str) -> bool:
    """Whether anything in a text is to be filled."""
    return "{{" in text or "{%" in text


def filled(text: str, path: Path, depth: int = 0) -> str:
    """The text of a file with its templates filled; paths are those of its folder and of what it adds. Raises TemplateError.

    Names, ``{% if %}``, ``{% set %}`` and the functions ``add_to_path``, ``cwd``, ``find_path``, ``path_exists``,
    ``include_text`` and ``include`` (the value at a path of a YAML file). No code runs: only the kinds of node above are let
    through.
    """
    from jinja2 import StrictUndefined, TemplateSyntaxError, UndefinedError
    from jinja2.exceptions import SecurityError, TemplateRuntimeError
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    if depth > DEEPEST:
        raise TemplateError(f"files include each other more than {DEEPEST} times")
    environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined, keep_trailing_newline=True)
    environment.globals = _Functions(path, depth).table()
    try:
        for node in _nodes(environment.parse(text)):
            kind = type(node).__name__
            if kind not in ALLOWED:
                raise TemplateError(
                    f"line {node.lineno}: {kind}: must be a value, a condition or one of {', '.join(FUNCTIONS)}"
                )
            if kind == "Call" and getattr(node.node, "name", None) not in FUNCTIONS:
                raise TemplateError(f"line {node.lineno}: must call one of {', '.join(FUNCTIONS)}")
            if kind == "Filter" and node.name not in FILTERS:
                raise TemplateError(f"line {node.lineno}: {node.name}: must be one of {', '.join(FILTERS)}")
        return environment.from_string(text).render()
    except TemplateSyntaxError as error:
        raise TemplateError(f"line {error.lineno}: {error.message}") from None
    except UndefinedError as error:
        raise TemplateError(f"{error}: must be set by {{% set %}} before, or have a default") from None
    except (SecurityError, TemplateRuntimeError, TypeError, ValueError, RecursionError) as error:
        raise TemplateError(str(error)) from None


def _nodes(root: Any) -> Any:
    yield root
    for child in root.iter_child_nodes():
        yield from _nodes(child)


class _Functions:
    """What templates call. path: of their file."""

    def __init__(self, path: Path, depth: int) -> None:
        self.path, self.depth = path, depth
        self.folders = [path.parent]

    def table(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in FUNCTIONS}

    def add_to_path(self, folder: str) -> str:
        self.folders.append(self.path.parent / folder)
        return ""

    def cwd(self) -> str:
        return str(self.path.parent)

    def find_path(self, name: str) -> str:
        return str(self._found(name))

    def path_exists(self, name: str) -> bool:
        return any((folder / name).is_file() for folder in self.folders)

    def include_text(self, name: str) -> str:
        path = self._found(name)
        try:
            if path.stat().st_size > LARGEST:
                raise TemplateError(f"{path}: must be at most {LARGEST:,} bytes")
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise TemplateError(f"{path}: cannot be read ({error})") from None
        return filled(text, path, self.depth + 1) if is_template(text) else text

    def include(self, name: str, keys: str = "") -> str:
        """Written so that it fits in a line, wherever that stands, with its tags."""
        try:
            node = yaml.compose(self.include_text(name), Loader=yaml.SafeLoader)
        except yaml.YAMLError as error:
            raise TemplateError(f"{name}: not a YAML file ({error})") from None
        for key in filter(None, keys.split(".")):
            values = {each.value: value for each, value in node.value} if isinstance(node, yaml.MappingNode) else {}
            if key not in values:
                raise TemplateError(f"{name}: {key}: must be of {', '.join(map(str, values)) or 'nothing'}")
            node = values[key]
        _in_a_line(node, set())
        return yaml.serialize(node, Dumper=yaml.SafeDumper, width=2**30).removesuffix("\n").removesuffix("\n...")

    def _found(self, name: str) -> Path:
        path = next((folder / name for folder in self.folders if (folder / name).is_file()), None)
        if path is None:
            raise TemplateError(f"{name}: no such file in {', '.join(map(str, self.folders))}")
        return path


def _in_a_line(node: Any, seen: set[int]) -> None:
    """Gives a node and all below it the style with brackets."""
    if id(node) in seen or not isinstance(node, yaml.CollectionNode):
        return
    seen.add(id(node))
    node.flow_style = True
    for child in node.value:
        for each in child if isinstance(child, tuple) else (child,):
            _in_a_line(each, seen)
