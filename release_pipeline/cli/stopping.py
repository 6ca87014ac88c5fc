"""What a command says when somebody stopped it: what is true then, whatever it was doing."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from release_pipeline.cli.failure import ErrorView, fail
from release_pipeline.cli.options import PROGRAM

if TYPE_CHECKING:
    from release_pipeline.flow.site import Site
    from release_pipeline.flow.states import ReleaseId

STOPPED = 130
AGAIN = "give the same command again: it finishes what is left, or says that it is done"
_UNKNOWN = "how far it came could not be read: `release-pipeline status` says it"
_OUTPUTS = ("output", "evidence", "html")
Written: TypeAlias = Mapping[Path, object]


def list_outputs(options: argparse.Namespace) -> Written:
    """The files that a command is to write, as they are before it. Each takes the place of what was there, whole."""
    files = [file for name in _OUTPUTS if isinstance(file := getattr(options, name, None), Path)]
    return {file: _identify(file) for file in files}


def say_stopped(options: argparse.Namespace, before: Written) -> int:
    """Print what was done before the command was stopped, and how it goes on; gives the exit code. Who stops it once more does
    not wait for that."""
    tell: Callable[[argparse.Namespace], str] | str | None = getattr(options, "stopped", None)
    try:
        words = _name_written(before) if tell is None else tell if isinstance(tell, str) else tell(options)
    except (Exception, KeyboardInterrupt):  # the site is busy or broken, which is not what the person did now
        words = _UNKNOWN
    print(f"{PROGRAM}: stopped; {words}.", file=sys.stderr)
    return fail(options, STOPPED, ErrorView("stopped", f"stopped; {words}."))


def tell_run(options: argparse.Namespace) -> str:
    """How far the release of `run` is."""
    from release_pipeline.flow.opening import last_revision
    from release_pipeline.flow.status.stopped import describe_run

    site = _site_of(options)
    release = last_revision(site, options.policy, options.release)
    words = describe_run(site, release)
    if options.revise is None:
        return words
    if release == getattr(options, "before", release):
        return f"no revision of it was opened. {words}"
    return f"{words}. It was opened as a revision: another --revise would open one more"


def describe_release(options: argparse.Namespace) -> str:
    """What has become of the release that people sign."""
    from release_pipeline.flow.status.stopped import describe_people

    return describe_people(*_release_of(options))


def _site_of(options: argparse.Namespace) -> Site:
    from release_pipeline.flow.site import find_site

    return find_site(options.home)


def _release_of(options: argparse.Namespace) -> tuple[Site, ReleaseId]:
    from release_pipeline.cli.options import read_release_of

    return read_release_of(options)


def _name_written(before: Written) -> str:
    written = [str(file) for file, known in before.items() if _identify(file) != known]
    return f"{' and '.join(written)} {'was' if len(written) == 1 else 'were'} written" if written else "nothing was written"


def _identify(file: Path) -> object:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns
