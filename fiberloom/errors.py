"""What the functions raise; bad input has the line that the command says."""

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["InputError", "MissingToolError", "in_one_line"]

BAD_INPUT, MISSING_TOOL, INTERRUPTED = 2, 3, 130


class InputError(ValueError):
    """A bad operand or option. The text is one line: what, which value, what is allowed."""


class MissingToolError(InputError):
    """Something that has to be installed or reached first. The text says which and how to get it."""


@contextmanager
def in_one_line() -> Iterator[None]:
    """What a command would tell its user in a line and an exit code becomes one of these errors."""
    try:
        yield
    except Exception as error:
        code = getattr(error, "exit_code", None)
        if code == INTERRUPTED:
            raise KeyboardInterrupt from None
        if code not in (BAD_INPUT, MISSING_TOOL):
            raise
        # Option parsing has its message in a method.
        render = getattr(error, "format_message", None)
        text = " ".join((render() if callable(render) else str(error)).split())
        raise (MissingToolError if code == MISSING_TOOL else InputError)(text) from None
