"""Bounds of a design file's fields, as pydantic validators whose errors say what is allowed."""

import difflib
from collections.abc import Callable, Iterable
from typing import Any

from pydantic import BeforeValidator

__all__ = [
    "choice",
    "did_you_mean",
    "even",
    "flag",
    "identifier",
    "integer",
    "number",
    "power_of_two",
    "taken_by",
    "text",
    "text_or_none",
]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The known name that is nearest to a mistyped one, as the end of an error; nothing where none is near."""
    folded = {name.lower(): name for name in known}
    # Letters in another order, or most of them in the same one; names of three letters of which two agree are two names.
    typed = word.lower()
    close = [name for name in folded if sorted(name) == sorted(typed)]
    close = close or difflib.get_close_matches(typed, folded, n=1, cutoff=0.7)
    return f" (did you mean {folded[close[0]]}?)" if close else ""


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def integer(low: int, high: int) -> BeforeValidator:
    """An integer from ``low`` to ``high``."""

    def check(value: Any) -> int:
        if not _is_integer(value) or not low <= value <= high:
            raise ValueError(f"must be an integer between {low} and {high}")
        return int(value)

    return BeforeValidator(check)


def power_of_two(low: int, high: int) -> BeforeValidator:
    """A power of two from ``low`` to ``high``."""

    def check(value: Any) -> int:
        if not _is_integer(value) or not low <= value <= high or value & (value - 1):
            raise ValueError(f"must be a power of two between {low} and {high}")
        return int(value)

    return BeforeValidator(check)


def even(low: int, high: int) -> BeforeValidator:
    """An even integer from ``low`` to ``high``."""

    def check(value: Any) -> int:
        if not _is_integer(value) or not low <= value <= high or value % 2:
            raise ValueError(f"must be an even integer between {low} and {high}")
        return int(value)

    return BeforeValidator(check)


def number(low: float, high: float) -> BeforeValidator:
    """A finite number from ``low`` to ``high``."""

    def check(value: Any) -> float:
        is_number = isinstance(value, float) or _is_integer(value)
        if not is_number or not low <= value <= high:
            raise ValueError(f"must be a number between {low:g} and {high:g}")
        return float(value)

    return BeforeValidator(check)


def choice(*allowed: str | int, later: dict[str, str] | None = None) -> BeforeValidator:
    """One of ``allowed``. ``later`` names values of the contract that nothing can build yet, each with its reason."""
    options = ", ".join(map(repr, allowed))
    texts = [option for option in allowed if isinstance(option, str)]
    must = f"must be one of {options}" if len(allowed) > 1 else f"must be {options}"

    def check(value: Any) -> Any:
        if isinstance(value, str) and later and value in later:
            raise ValueError(f"{must} ({later[value]})")
        if type(value) not in (str, int) or value not in allowed:
            raise ValueError(must + (did_you_mean(value, texts) if isinstance(value, str) else ""))
        return value

    return BeforeValidator(check)


def flag() -> BeforeValidator:
    """True or false."""

    def check(value: Any) -> bool:
        if not isinstance(value, bool):
            raise ValueError("must be true or false")
        return value

    return BeforeValidator(check)


def text() -> BeforeValidator:
    """Text for people, one line."""

    def check(value: Any) -> str:
        if not isinstance(value, str) or not value.strip() or not value.isprintable():
            raise ValueError("must be one line of text")
        return value

    return BeforeValidator(check)


def text_or_none() -> BeforeValidator:
    """Text for people, one line or empty."""

    def check(value: Any) -> str:
        if not isinstance(value, str) or not value.isprintable():
            raise ValueError("must be one line of text, or empty")
        return value.strip()

    return BeforeValidator(check)


def taken_by(function: Callable[[str], Any]) -> BeforeValidator:
    """Text that the function takes: its ValueError says what is allowed."""

    def check(value: Any) -> str:
        function(str(value))
        return str(value)

    return BeforeValidator(check)


def identifier() -> BeforeValidator:
    """A name that can be part of a file name and of a Verilog comment."""

    def check(value: Any) -> str:
        plain = isinstance(value, str) and value.isascii() and value.replace("_", "").replace("-", "").isalnum()
        if not plain or not value[0].isalpha() or len(value) > 64:
            raise ValueError("must be letters, digits, '-' and '_', beginning with a letter, at most 64")
        return str(value)

    return BeforeValidator(check)
