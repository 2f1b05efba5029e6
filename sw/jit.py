"""Compiled loops: Numba's ``njit``, whose code is kept for the next run where it can be and never stops one."""

import glob
import hashlib
import os
import secrets
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numba
from numba.core.bytecode import FunctionIdentity

from sw.notes import detail, note
from sw.sources import module_digest

__all__ = ["code_folder", "njit"]


def _number_anew() -> None:
    """Numba tells functions of one name apart by numbers from 1 on in each process, and links kept code by name.

    So functions that two processes have compiled could have one name, as the inner loops of sorting and of sorting indices do:
    one would be called in place of the other. Numbers that begin anywhere do not meet.
    """
    FunctionIdentity._unique_ids = count(secrets.randbits(60))


_number_anew()
os.register_at_fork(after_in_child=_number_anew)


def njit(
    function: Callable[..., Any] | None = None, *, cache: bool = False, counted: bool = True, **options: Any
) -> Any:
    """As ``numba.njit``. With ``cache``, code that cannot be kept or read back is compiled for this run; a note says so.

    ``counted`` = False: references to arrays are not counted, which in small functions of many arrays takes most of the time. For
    functions that make no arrays and return none.
    """
    if function is None:
        return lambda later: njit(later, cache=cache, counted=counted, **options)
    compiled = numba.njit(**options, **({} if counted else {"_nrt": False}))(function)
    # Without its compiler (NUMBA_DISABLE_JIT) Numba gives back the function itself.
    if cache and hasattr(compiled, "enable_caching"):
        why = ""
        try:
            compiled.enable_caching()
            _stamp(compiled)
        except (RuntimeError, OSError, ValueError):  # no folder will do, or its name is no text
            why = _nowhere()
        compiled._cache = _Kept(compiled._cache, why)
    return compiled


def _stamp(compiled: Any) -> None:
    """Numba knows code by the file that it stands in; constants and functions of other modules are compiled in as well."""
    index = compiled._cache._cache_file
    index._source_stamp = (index._source_stamp, module_digest(compiled.py_func.__module__))
    index.save = partial(_save, index)


def _save(index: Any, key: Any, data: Any) -> None:
    """Keeps code under a name that no other source and no other signature has, and only then names it in the index.

    Numba numbers the files of a function, and names one in the index before it is written: another process that reads at this
    moment takes what the file held for the source before.
    """
    stem = index._index_name.removesuffix(".nbi")
    digest = hashlib.sha256(repr((index._source_stamp, key)).encode()).hexdigest()[:16]
    name = f"{stem}.{digest}.nbc"
    index._save_data(name, data)
    overloads = index._load_index()
    if not overloads:
        for old in Path(index._cache_path).glob(f"{glob.escape(stem)}.*.nbc"):
            if old.name != name:
                old.unlink(missing_ok=True)
    index._save_index(overloads | {key: name})


class _Kept:
    """Numba's cache of one function, whose failures cost time and nothing else.

    ``why`` there is none to begin with; empty where there is one.
    """

    def __init__(self, cache: Any, why: str) -> None:
        self.cache = cache
        self.why = why

    def __getattr__(self, name: str) -> Any:
        return getattr(self.cache, name)

    def load_overload(self, signature: Any, context: Any) -> Any:
        if self.why:
            return None
        try:
            found = self.cache.load_overload(signature, context)
            if found is not None:
                detail(f"  loops taken from {self.cache.cache_path}", once=True)
            return found
        except Exception as error:  # noqa: BLE001 - whatever lies there is no code: unpickling raises what it likes
            self._damaged(error)
            return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        if not self.why:
            try:
                self.cache.save_overload(signature, compiled)
                detail(f"  loop {self.cache._py_func.__name__} compiled and kept in {self.cache.cache_path}")
                return
            except OSError as error:
                self.why = f"{self.cache.cache_path}: {error.strerror or error}"
            except Exception as error:  # noqa: BLE001 - as above: saving reads the index first
                self._damaged(error)
                return
        place = "every run compiles anew; NUMBA_CACHE_DIR names another place"
        note("compiled code", f"compiled code cannot be kept ({self.why}): {place}")

    def _damaged(self, error: Exception) -> None:
        """An index that cannot be read is written anew, empty."""
        try:
            self.cache.flush()
        except OSError:
            self.why = f"{self.cache.cache_path}: {getattr(error, 'strerror', None) or type(error).__name__}"


def _nowhere() -> str:
    places = [os.environ["NUMBA_CACHE_DIR"]] if os.environ.get("NUMBA_CACHE_DIR") else []
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return f"{', '.join([*places, str(Path(__file__).parent), home])}: cannot be written"


@njit(cache=True)
def _nothing() -> None:
    """Never called: says where code is kept."""


def code_folder() -> Path | None:
    """A folder that processes share when they share compiled code; None where none is kept."""
    kept = getattr(_nothing, "_cache", None)
    return None if kept is None or kept.why else Path(kept.cache_path)
