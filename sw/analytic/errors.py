"""Errors that a specification causes."""

from sw.names import shown

__all__ = ["MappingError", "SpecError"]


class SpecError(Exception):
    """A bad specification. The text is one line: file, path to the key, value, what is allowed."""

    exit_code = 2

    def __init__(self, text: str) -> None:
        super().__init__(shown(" ".join(text.split())))


class MappingError(Exception):
    """A level cannot do what the mapping or the SAFs ask of it.

    level: its number, -1 for the compute units. subject: what of it (a tensor, a capacity). value: as it is. allowed: as it must
    be.
    """

    def __init__(self, level: int, subject: str, value: str, allowed: str) -> None:
        super().__init__(level, subject, value, allowed)  # so that another process can send it
        self.level = level
        self.subject = subject
        self.value = value
        self.allowed = allowed

    def __str__(self) -> str:
        return f"level {self.level}: {self.subject}: {self.value}: must be {self.allowed}"
