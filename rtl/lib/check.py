"""What parameters may be: a check returns the number, or raises ValueError with the parameter, its value and what is allowed."""

from typing import Any

__all__ = ["check_integer", "check_power_of_two"]


def check_integer(what: str, number: Any, low: int, high: int) -> int:
    if not isinstance(number, int) or not low <= number <= high:
        raise ValueError(f"{what} must be an integer from {low} to {high}, not {number!r}")
    return number


def check_power_of_two(what: str, number: Any, low: int, high: int) -> int:
    if not isinstance(number, int) or number & (number - 1) or not low <= number <= high:
        raise ValueError(f"{what} must be a power of two from {low} to {high}, not {number!r}")
    return number
