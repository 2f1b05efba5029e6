"""Buffet: what the storage idiom means, one operation at a time, on a Python list."""

from typing import Generic, TypeVar

__all__ = ["Buffet", "IllegalOperation", "Stall"]

Entry = TypeVar("Entry")


class Stall(Exception):
    """The operation has to wait; nothing changed."""


class IllegalOperation(Exception):
    """The operation is never right in this state; nothing changed. ``name`` is that of the hardware's error."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class Buffet(Generic[Entry]):
    """A queue of at most ``capacity`` entries with random access relative to its head (Tailors, section 3.2)."""

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError(f"Buffet capacity must be a positive integer, not {capacity!r}")
        self.capacity = capacity
        self.entries: list[Entry] = []

    @property
    def occupancy(self) -> int:
        return len(self.entries)

    @property
    def credit(self) -> int:
        return self.capacity - len(self.entries)

    def fill(self, entry: Entry) -> None:
        if not self.credit:
            raise Stall
        self.entries.append(entry)

    def read(self, index: int) -> Entry:
        if index >= len(self.entries):
            raise Stall
        return self.entries[index]

    def update(self, index: int, entry: Entry) -> None:
        if index >= len(self.entries):
            raise Stall
        self.entries[index] = entry

    def shrink(self, count: int) -> None:
        if count > len(self.entries):
            raise IllegalOperation("SHRINK_BEYOND_OCCUPANCY")
        del self.entries[:count]
