"""Holds still what differs from run to run: the clock, new secrets, the program's version. Import it before anything else."""

from __future__ import annotations

import datetime as dt
import gc
import importlib.metadata
import os
import secrets
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from types import ModuleType

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # sums of floats do not depend on how many threads there are
os.environ.setdefault("OMP_NUM_THREADS", "1")

import release_pipeline

MOMENT = dt.datetime(2026, 3, 2, 9, 30, tzinfo=dt.UTC)
VERSION = "0"
_REAL = dt.datetime
_token_bytes, _token_hex = secrets.token_bytes, secrets.token_hex
SECRET, SITE = 32, 16  # bytes of every secret (a vault's key, the noise), and of the name that a site begins with


class _AnyDatetime(type(_REAL)):
    """So that moments which a library made before count as moments."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _REAL)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, _REAL)


class Stopped(_REAL, metaclass=_AnyDatetime):
    """A clock that always shows `MOMENT`."""

    @classmethod
    def now(cls, tz: dt.tzinfo | None = None) -> dt.datetime:  # type: ignore[override]
        """The same moment whenever it is asked."""
        return MOMENT.astimezone(tz)


def _fixed_bytes(count: int | None = None) -> bytes:
    return b"g" * SECRET if count == SECRET else _token_bytes(count)


def _fixed_hex(count: int | None = None) -> str:
    return "60" * SITE if count == SITE else _token_hex(count)  # others name files that are gone at the end


def _do_nothing(_: object) -> None: ...


def _none(**_: object) -> Iterator[importlib.metadata.Distribution]:
    return iter(())


def _stop_clock_of(loader: SourceFileLoader, module: ModuleType) -> None:
    _load(loader, module)
    if module.__name__.startswith("release_pipeline.") and getattr(module, "datetime", None) is _REAL:
        vars(module)["datetime"] = Stopped


_load = SourceFileLoader.exec_module


def hold() -> None:
    """Stop the clock of every module of the program that is loaded from now on, and give every new secret and the version a known
    value, for the rest of this process, which waits for no disk."""
    gc.set_threshold(10_000)  # objects, as the other tests have it
    os.fsync = _do_nothing
    SourceFileLoader.exec_module = _stop_clock_of  # type: ignore[method-assign]
    secrets.token_bytes, secrets.token_hex = _fixed_bytes, _fixed_hex
    importlib.metadata.distributions = _none  # type: ignore[assignment]  # versions change; a list takes 0.5 s
    release_pipeline.__version__ = VERSION
