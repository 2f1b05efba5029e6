"""Parallel processes share one cache of compiled code: only one of them compiles, loads or saves at a time."""

import os
import threading
from typing import Any

__all__ = ["one_compiler_at_a_time"]

_installed = threading.Lock()
_listener: Any = None
_asked = False


def one_compiler_at_a_time() -> None:
    """From now on this process holds a file lock whenever it holds Numba's compiler lock.

    Numba's cache is not made for several writers: two that save one function for different types at the same time can leave
    the code of one under the name of the other. Under its compiler lock Numba looks into the cache, compiles and saves; what
    one process has compiled the next one finds. The lock ends with the process, however that ends. It lies next to the
    kept code; without kept code there is nothing to guard.
    """
    global _listener, _asked
    with _installed:
        if not _asked:
            _asked = True
            _listener = _make_listener()


def _make_listener() -> Any:
    import fcntl

    from numba.core import event

    from sw.jit import code_folder

    folder = code_folder()
    try:
        if folder is None:
            return None
        handle = os.open(folder / "compiling.lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:
        return None

    class Listener(event.Listener):
        """Counts the threads that hold the lock or wait for it; the first locks the file, the last unlocks it."""

        def __init__(self) -> None:
            self.guard = threading.Lock()
            self.depth = 0

        def on_start(self, event: Any) -> None:
            with self.guard:
                if self.depth == 0:
                    fcntl.flock(handle, fcntl.LOCK_EX)
                self.depth += 1

        def on_end(self, event: Any) -> None:
            with self.guard:
                self.depth -= 1
                if self.depth == 0:
                    fcntl.flock(handle, fcntl.LOCK_UN)

    listener = Listener()
    event.register("numba:compiler_lock", listener)
    return listener
