"""Commands called from Python: their options are parsed by the command itself, and nothing is printed."""

import functools
import importlib
import inspect
import json
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import typer

from sw.operands.errors import UserError

from .console import Console, json_text
from .failures import no_number
from .output import remove_empty
from .printed import Outcome

__all__ = ["call", "load", "table"]

# What an option takes as several values.
LISTS = (list, tuple, set, frozenset)


class Silent(Console):
    """Keeps the document; what the command notes are Python's warnings."""

    def __init__(self, words: Sequence[str]) -> None:
        super().__init__(as_json=True, quiet=True)
        self.words = list(words)
        self.content: Any = None

    def document(self, content: object) -> None:
        self.content = json.loads(json_text(content))

    def warn(self, text: str) -> None:
        warnings.warn(text, RuntimeWarning, stacklevel=2)


def call(name: str, operands: Mapping[str, Any], options: Mapping[str, Any]) -> tuple[Any, Outcome]:
    """Runs a command: the document that its ``--json`` prints, and what it has made beside that.

    Parameters
    ----------
    name: of the command. operands: its arguments by their names in messages: texts, paths, or arrays
        (:mod:`sw.operands.arrays`).
    options: by their names, with ``_`` where the command line has ``-``, and one at the end where Python has the word for
        itself (``from_``). None is as left out. Options that can be repeated take a list, ``NAME=VALUE`` a mapping.

    Raises what the command raises, UserError among it.
    """
    module = importlib.import_module(f"sw.cli.{name}")
    given = [_operand(operand, letter) for letter, operand in operands.items()]
    words = _words(_parameters(name), options)
    texts = [str(operand) for operand in given]
    # One that could be taken for an option.
    words = [*words, "--", *texts] if any(text.startswith("-") for text in texts) else [*texts, *words]
    # Not by calling the parser, which would also set how this process shows exceptions.
    try:
        with _parser(name).make_context("fiberloom", list(words)) as context:
            arguments: dict[str, Any] = context.command.invoke(context)
    except Exception as error:
        if (said := no_number(error)) is not None:
            raise UserError(said) from None
        raise
    for side in ("json", "quiet", "verbose"):
        del arguments[side]
    places = [each for each, kind in inspect.signature(module.command).parameters.items() if _is_operand(kind)]
    arguments |= {place: one for place, one in zip(places, given, strict=False) if not isinstance(one, str)}
    console = Silent([name, *words])
    try:
        outcome: Outcome = getattr(module, name)(console, **arguments)
    finally:
        remove_empty()
    return console.content, outcome


def load(operand: Any, *, as_stored: bool) -> Any:
    """The operand as SciPy's canonical CSR, which is the caller's own. Raises UserError."""
    from sw.operands import load as read

    return read(_operand(operand, "A"), as_stored=as_stored).matrix.copy()


def table(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of the table that ``compare`` writes."""
    from sw.report.comparison import rows

    return rows(records)


def _operand(given: Any, letter: str) -> Any:
    """The word of a file or a name; the operand of an array."""
    if isinstance(given, str | os.PathLike):
        return _text(given)
    from sw.operands.arrays import from_array

    return from_array(given, letter)


def _is_operand(parameter: inspect.Parameter) -> bool:
    return any(
        isinstance(each, typer.models.ArgumentInfo) for each in getattr(parameter.annotation, "__metadata__", ())
    )


@functools.cache
def _parser(name: str) -> Any:
    """Reads the words of a command as the command does, and returns its arguments where it is invoked."""
    command = importlib.import_module(f"sw.cli.{name}").command

    @functools.wraps(command)
    def arguments(**given: Any) -> dict[str, Any]:
        return given

    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command()(arguments)
    return typer.main.get_command(app)


@functools.cache
def _parameters(name: str) -> dict[str, Any]:
    """The command's options by their names in Python."""
    found = {}
    for option in _parser(name).params:
        if option.param_type_name == "option":
            for spelling in option.opts:
                found[spelling.lstrip("-").replace("-", "_")] = option
    return found


def _words(known: Mapping[str, Any], options: Mapping[str, Any]) -> list[str]:
    """The options as they are typed."""
    words: list[str] = []
    for name, content in options.items():
        option = known[name.rstrip("_")]
        spelling = max(option.opts, key=len)
        if content is None:
            continue
        if option.is_flag:
            if isinstance(content, bool | np.bool_):
                words += [spelling] if content else option.secondary_opts[:1]
            else:
                raise UserError(f"{spelling} {content!r}: must be True or False")
        elif option.multiple:
            if isinstance(content, Mapping):
                content = [f"{field}={_text(value)}" for field, value in content.items()]
            for each in content if isinstance(content, LISTS) else [content]:
                words += [spelling, _text(each)]
        elif isinstance(content, (*LISTS, Mapping)):
            raise UserError(f"{spelling} {content!r}: must be one value")
        else:
            words += [spelling, _text(content)]
    return words


def _text(content: Any) -> str:
    """A value as it is typed."""
    if isinstance(content, os.PathLike):
        return os.fsdecode(content)
    return str(content).lower() if isinstance(content, bool | np.bool_) else str(content)
