"""What is wrong with a scheme, in one line."""

from reprlib import Repr

__all__ = ["SchemeError"]

# Characters of a value in a complaint.
LONGEST_SHOWN = 120


class SchemeError(ValueError):
    """A scheme that cannot be read or that the design cannot run; ``field``, ``value`` and ``allowed`` say why."""

    def __init__(self, field: str, value: object, allowed: str) -> None:
        self.field = field
        self.value = value
        self.allowed = allowed
        super().__init__(f"scheme: {field} = {_shown(value)}: must be {allowed}")


def _shown(value: object) -> str:
    """The value in one line, however long or deep."""
    form = Repr()
    form.maxstring = form.maxother = 100
    form.maxlong = 40
    text = form.repr(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."
