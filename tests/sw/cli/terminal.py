"""What a command shows on a terminal."""

import os

__all__ = ["shown_on"]


def shown_on(terminal: int) -> bytes:
    """All that comes on the file descriptor of a terminal whose other end is a command, until the command ends."""
    shown = b""
    while True:
        try:
            shown += os.read(terminal, 4096)
        except OSError:  # the other end is closed
            break
    os.close(terminal)
    return shown
