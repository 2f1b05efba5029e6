"""Errors a user can cause: one line each, with the exit code of the command line."""

from sw.names import shown

__all__ = ["MissingToolError", "OperandError", "UserError"]


class UserError(Exception):
    """Bad input or option. The text is one clear line: what, which value, what is allowed."""

    exit_code = 2

    def __init__(self, text: str) -> None:
        super().__init__(shown(text))


class OperandError(UserError):
    """An operand that cannot be read, or that the chosen value type cannot hold."""


class MissingToolError(UserError):
    """Something that has to be installed or reached first. The text says which and how to get it."""

    exit_code = 3
