"""What a stopped command says: how far it came, and how to go on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from release_pipeline.cli.commands import Params, Running

STOPPED = 130
AGAIN = "give the same command again: it finishes what is left, or says that it is done"
_UNKNOWN = "how far it came could not be read: `release-pipeline status` says it"
_OUTPUTS = ("output", "evidence")


def list_outputs(params: Params) -> dict[Path, object]:
    """The files that a command is to write, as they are before it. Each takes the place of what was there, whole."""
    return {file: _identify(file) for name in _OUTPUTS if isinstance(file := params.get(name), Path)}


def describe_stop(running: Running) -> str:
    """What was done before the command was stopped, and how it goes on. Stopping it once more does not wait for that."""
    try:
        if callable(running.stopped):
            return running.stopped(running.params)
        return running.stopped or _name_written(running.before)
    except (Exception, KeyboardInterrupt):  # the site is busy or broken, which is not what the person did now
        return _UNKNOWN


def tell_run(params: Params) -> str:
    """How far the release of `run` is."""
    from release_pipeline.flow.opening import last_revision
    from release_pipeline.flow.status.stopped import describe_run

    site = params["site"]
    release = last_revision(site, params["policy"], params["release"])
    words = describe_run(site, release)
    if params["revise"] is None:
        return words
    if release == params.get("before", release):
        return f"no revision of it was opened. {words}"
    return f"{words}. It was opened as a revision: another --revise would open one more"


def describe_release(params: Params) -> str:
    """What has become of the release that people sign."""
    from release_pipeline.flow.opening import find_release
    from release_pipeline.flow.status.stopped import describe_people

    return describe_people(params["site"], find_release(params["site"], params["target"]))


def describe_approval(params: Params) -> str:
    """What has become of what somebody approves: a release, or a file."""
    return AGAIN if Path(params["target"]).suffix == ".yaml" else describe_release(params)


def _name_written(before: Mapping[Path, object]) -> str:
    written = [str(file) for file, known in before.items() if _identify(file) != known]
    return f"{' and '.join(written)} {'was' if len(written) == 1 else 'were'} written" if written else "nothing was written"


def _identify(file: Path) -> object:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns
