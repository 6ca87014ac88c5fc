"""One base error: what is wrong, where, and what to do. Never a cell value.

Every error that a person may see derives from `ReleasePipelineError`. Its parts are written by us from declared names
(columns, files, options) and from counts; text of a library's exception never goes in, because DuckDB, Arrow and
NumPy fill theirs with cells of the data.
"""

from __future__ import annotations

import errno
import re

_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_KEPT = "Then try again: nothing that was stored or charged is lost."


class ReleasePipelineError(Exception):
    """What is wrong, where, and the remedy, in sentences for a person.

    `exit_code` is what the command line returns: 1 for refused or failed, 2 for wrong usage. `code` is the kind of error for a
    script, by its name: that of `OverCap` is over-cap. `cause`: the error that this one passes on in a sentence of its own.
    """

    exit_code = 1
    code: str = "failed"
    cause: ReleasePipelineError | None = None
    details: tuple[str, ...] = ()  # one sentence each, where there are several reasons

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "code" not in vars(cls):
            cls.code = re.sub(r"(?<!^)(?=[A-Z])", "-", cls.__name__).lower()

    def __init__(self, what: str, *, where: str = "", remedy: str = "") -> None:
        self.what = what
        self.where = where
        self.remedy = remedy
        super().__init__(what, where, remedy)

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        return f"{text} {self.remedy}" if self.remedy else text

    def __reduce__(self) -> tuple[object, ...]:
        """Errors go from process to process whole, whatever their constructors ask for."""
        return _restore, (type(self), self.args, self.__dict__)

    @property
    def in_full(self) -> str:
        """Everything in one line, for those who see nothing else of it."""
        return " ".join((str(self), *self.details))


def _restore(kind: type[ReleasePipelineError], args: tuple[object, ...], parts: dict[str, object]) -> ReleasePipelineError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(parts)
    return error


class InvalidArgument(ReleasePipelineError, ValueError):
    """A function of the core was called with a value outside its admissible range."""


class InvalidType(ReleasePipelineError, TypeError):
    """A function of the core was called with a value of the wrong type (floats where only integers are exact)."""


class WrongUsage(ReleasePipelineError):
    """The command line was called wrongly."""

    exit_code = 2


class SourceError(ReleasePipelineError):
    """An input file or table cannot be read as what it should be."""


class StoreError(ReleasePipelineError):
    """A database of the site cannot be read or written."""


class StoreBusy(StoreError):
    """Another process holds the database for longer than one waits: it may go on later."""


class OutOfSpace(StoreError):
    """The disk is full, or this process has no memory left: nothing is wrong with the data, and it may go on later."""

    code = "out-of-room"  # as scripts know it


def disk_full(where: str) -> OutOfSpace:
    """That a file could not be written for want of space."""
    return OutOfSpace("the disk is full, or this account may write no more to it.", where=where, remedy=f"Make room. {_KEPT}")


def spill_full() -> OutOfSpace:
    """That DuckDB, whose memory was full, had no room on the disk that it went on on."""
    what = "the vault's disk is full, on which a stage goes on where its memory does not suffice."
    return OutOfSpace(what, remedy=f"Make room there. {_KEPT}")


def memory_full(where: str) -> OutOfSpace:
    """That this process could not get the memory that it asked for."""
    what = "this process has no memory left."
    return OutOfSpace(what, where=where, remedy=f"Let it have more, end other programs, or use a larger machine. {_KEPT}")


def read_out_of_space(caught: BaseException, where: str = "") -> OutOfSpace | None:
    """What an error of Python or NumPy says of disk or memory, if it does; `where`, unless it names the file itself. Of memory
    it names the line of this software."""
    if isinstance(caught, MemoryError) or _is_unmapped(caught):
        return memory_full(own_frame(caught))
    if isinstance(caught, OSError) and is_full(caught):
        return disk_full(str(caught.filename2 or caught.filename or where))
    return None


def is_full(caught: OSError) -> bool:
    """Whether it says that a disk, or what this account may have of it, is full."""
    return caught.errno in _NO_SPACE


def _is_unmapped(caught: BaseException) -> bool:
    """Whether a library could not be loaded, or a process or thread not begun, for want of memory."""
    if isinstance(caught, OSError):
        return caught.errno == errno.ENOMEM
    return isinstance(caught, ImportError) and any(words in str(caught) for words in ("failed to map", "cannot allocate"))


def own_frame(error: BaseException) -> str:
    """The file and line of this software where an exception came from."""
    frame, trace = "?", error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if "release_pipeline" in code.co_filename:
            frame = f"{code.co_filename.rpartition('/')[2]}:{trace.tb_lineno}"
        trace = trace.tb_next
    return frame


class DataRefused(ReleasePipelineError):
    """The data are readable and do not meet the policy. `findings` has one sentence per reason; `families`: the checks that
    failed, where they are known."""

    families: tuple[str, ...] = ()

    def __init__(self, what: str, *, findings: tuple[str, ...], where: str = "", remedy: str = "") -> None:
        self.findings = self.details = findings
        super().__init__(what, where=where, remedy=remedy)


class PolicyInvalid(ReleasePipelineError):
    """A policy file has errors; `problems` has a sentence for each, with its line, and `faults` the same in parts
    (`policy.documents.Fault`)."""

    def __init__(
        self, what: str, *, problems: tuple[str, ...], faults: tuple[object, ...] = (), where: str = "", remedy: str = ""
    ) -> None:
        self.problems = self.details = problems
        self.faults = faults
        super().__init__(what, where=where, remedy=remedy)


class Blocked(ReleasePipelineError):
    """A release that must not go on, and why."""


class NotPassed(Blocked):
    """A stage was started before the one that it needs had been passed."""


class GateFailed(Blocked):
    """A gate of the policy does not let the release through. `findings` has a sentence per gate, without its figure."""

    def __init__(self, what: str, *, findings: tuple[str, ...], where: str = "", remedy: str = "") -> None:
        self.findings = findings
        super().__init__(what, where=where, remedy=remedy)


class Held(Blocked):
    """A release of a series that somebody holds: nothing is wrong with it, and it waits."""


class OverCap(Blocked):
    """A release that would bring its population over the cap."""


class SecretLost(Blocked):
    """Noise may have been drawn with a secret that is no longer there: the same noise cannot be made again."""
