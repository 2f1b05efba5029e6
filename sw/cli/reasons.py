"""Why something could not be run, in one line."""

from collections.abc import Iterator
from contextlib import contextmanager

from sw import plugins

__all__ = ["Interrupted", "reason", "when_interrupted"]


class Interrupted(Exception):
    """An interrupt by Ctrl-C. The text says what is kept and how to go on."""

    exit_code = 130

    def __init__(self, kept: str = "nothing is kept; the same command starts anew") -> None:
        super().__init__(f"interrupted: {kept}")


@contextmanager
def when_interrupted(kept: str) -> Iterator[None]:
    """An interrupt inside the block carries this text of what is kept and how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(kept) from None


def reason(error: BaseException) -> str:
    """An error as one line; with its type where it is not one of ours."""
    if isinstance(error, MemoryError):
        return "not enough memory"
    if (blamed := plugins.blamed(error)) is not None and not hasattr(error, "exit_code"):
        return blamed
    text = " ".join(str(error).split())
    return text if hasattr(error, "exit_code") or hasattr(error, "allowed") else f"{type(error).__name__}: {text}"
