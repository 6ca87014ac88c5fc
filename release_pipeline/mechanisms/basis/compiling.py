"""Functions that numba compiles, once for an account and a machine. Only modules that are loaded when they are needed import this
one, because it imports numba.

Compiling takes seconds, more than most tables then need. So what was compiled is kept in the account's own cache folder
(`release-pipeline` in $XDG_CACHE_HOME or ~/.cache); whoever deletes it loses these seconds. It is code that runs as the account:
a folder that is somebody else's, or that others can write to, is neither read nor written. No file in it is a reason to fail.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

_numba: Any = importlib.import_module("numba")


def compiled(function: Function) -> Function:
    """The function, compiled when it is first called, while other threads run; a private one can only be called by others of its
    module."""
    # what Python would need to call the private ones takes a quarter of the time that compiling takes
    is_private = function.__name__.startswith("_")
    made = _numba.njit(nogil=True, no_cpython_wrapper=is_private, no_cfunc_wrapper=True)(function)
    if not is_private:
        # without a folder that is ours, or with a numba that keeps nothing in this way, it is compiled by every process
        with suppress(RuntimeError, OSError, ImportError, AttributeError):
            made._cache = _Cache(function)
    return made


def cache_folder() -> Path:
    """Where what was compiled is kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "release-pipeline"


class _Cache:
    """numba's, in our folder."""

    def __init__(self, function: Callable[..., Any]) -> None:
        folder = cache_folder()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
        if found.st_uid != os.geteuid() or found.st_mode & 0o022:
            raise PermissionError(str(folder))
        before, _numba.config.CACHE_DIR = _numba.config.CACHE_DIR, str(folder)  # others' functions stay where they were
        try:
            caching: Any = importlib.import_module("numba.core.caching")
            self._cache = caching.FunctionCache(function)
        finally:
            _numba.config.CACHE_DIR = before
        if not Path(self._cache.cache_path).is_relative_to(folder):
            raise PermissionError(str(folder))

    def load_overload(self, signature: Any, context: Any) -> Any:
        """What was compiled for these types, or None if that cannot be read: then it is compiled anew."""
        try:
            return self._cache.load_overload(signature, context)
        except Exception:
            return None

    def save_overload(self, signature: Any, made: Any) -> None:
        """Keep it, in the place of whatever cannot be read."""
        with suppress(Exception):
            try:
                self._cache.save_overload(signature, made)
            except Exception:
                self._cache.flush()
                self._cache.save_overload(signature, made)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)
