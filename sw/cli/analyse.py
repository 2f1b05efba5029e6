"""``fiberloom analyse``: ``analyze`` by its other spelling."""

from .analyze import command

__all__ = ["command"]
