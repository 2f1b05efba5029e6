"""Standard output and error that never stop a command: closed, full, gone, or unable to encode a name."""

import errno
import io
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from sw.names import SHOWN

__all__ = ["Output", "taken_over"]

DESCRIPTORS = {"stdin": 0, "stdout": 1, "stderr": 2}


class Output(io.RawIOBase):
    """A stream below Python's own, whose writes always succeed.

    ``error`` is the first failure; later text is dropped. A closed reader is no failure.
    """

    def __init__(self, descriptor: int | None) -> None:
        self.descriptor = descriptor
        self.error: OSError | None = None
        self.gone = False

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self.descriptor is not None and os.isatty(self.descriptor)

    def fileno(self) -> int:
        if self.descriptor is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return self.descriptor

    def write(self, data: Any) -> int:
        size = len(memoryview(data).cast("B"))
        if self.gone or self.error is not None:
            return size
        try:
            if self.descriptor is None:
                raise OSError(errno.EBADF, "it is closed")
            return os.write(self.descriptor, data)
        except BlockingIOError:
            select.select([], [self.fileno()], [])
            return 0 if size == 0 else self.write(data)
        except BrokenPipeError:
            self.gone = True
        except OSError as error:
            self.error = error
        return size


@contextmanager
def taken_over() -> Iterator[Output]:
    """Replaces Python's streams by these; yields the one of standard output.

    Streams that a caller made (a test's) stay. A closed descriptor is opened on the null device: otherwise the next file
    would get its number, and with it everything that a tool prints.
    """
    closed = [name for name, number in DESCRIPTORS.items() if getattr(sys, name) is None and _fill(number)]
    before = sys.stdout, sys.stderr
    streams = {}
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if name in closed or _is_python_s(stream, DESCRIPTORS[name]):
            streams[name] = Output(None if name in closed else DESCRIPTORS[name])
            setattr(sys, name, _text(streams[name], stream))
    ours = sys.stdout, sys.stderr
    try:
        yield streams.get("stdout", Output(None))
    finally:
        for stream, old in zip(ours, before, strict=True):
            if stream is not old and stream is not None:
                stream.flush()
        sys.stdout, sys.stderr = before


def _fill(number: int) -> bool:
    """Whether the descriptor was closed; then it is open on the null device."""
    try:
        os.fstat(number)
    except OSError:
        # The lowest free number, and those below are open by now.
        os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
        return True
    return False


def _is_python_s(stream: Any, number: int) -> bool:
    """Whether the stream is the interpreter's own for this descriptor, buffered or not."""
    buffer = getattr(stream, "buffer", None)
    raw = getattr(buffer, "raw", buffer)
    return isinstance(raw, io.FileIO) and raw.fileno() == number


def _text(raw: Output, old: TextIO | None) -> TextIO:
    encoding = getattr(old, "encoding", None) or "utf-8"
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding=encoding, errors=SHOWN, line_buffering=True)
