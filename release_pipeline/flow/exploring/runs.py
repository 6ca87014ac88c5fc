"""Runs that read confidential records. Before a run judges records, the vault keeps a note of it, one file for each release.

A charge for those records ends the matter. Else the run becomes a trial in the registry: at once where it is refused. A run that
somebody stopped becomes one before the release reads other records or another policy, and before another policy is charged. The
note needs no seal: whoever can write to the vault can read the records there without a run.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from release_pipeline.flow.exploring.trials import note_run
from release_pipeline.flow.files import clear_partials, write_private_json
from release_pipeline.flow.site import Site
from release_pipeline.policy.typed import read_as
from release_pipeline.store import formats
from release_pipeline.store.folders import locked
from release_pipeline.store.registry import ReleaseId


@dataclass(frozen=True, slots=True)
class Run:
    """The last run of a release that read records (`digest`: their keyed hash, empty where the source had too few) under a policy
    of that hash. `told`: the registry has it as a trial; `charged`: the release was charged for it."""

    release: str
    policy_hash: str
    digest: str
    origins: tuple[str, ...]
    told: bool = False
    charged: bool = False


def begin_run(site: Site, release: ReleaseId, policy_hash: str, *, digest: str, origins: list[str]) -> None:
    """Note a run before anything is judged. The one before it becomes a trial if it was for other records or another policy, and
    was not charged; one that found too few records, and now has enough under the same policy, was no other."""
    with _held(site) as folder:
        file = _file_of(folder, release)
        known, run = _read(file), Run(str(release), policy_hash, digest, tuple(origins))
        if known is not None:
            if (known.policy_hash, known.digest) == (policy_hash, digest):
                return
            if known.digest or known.policy_hash != policy_hash:
                _tell(site, known)
        _write(file, run)


def refuse_run(site: Site, release: ReleaseId) -> None:
    """The last run of a release is a trial, unless the release was charged for it; call it before anybody reads why it was
    refused."""
    with _held(site) as folder:
        file = _file_of(folder, release)
        known = _read(file)
        if known is not None and not known.charged:
            _tell(site, known)
            _write(file, replace(known, told=True))


def tell_stopped_runs(site: Site, release: ReleaseId, policy_hash: str) -> None:
    """Every run under another policy that was neither charged nor refused is a trial; call it before a release is charged. A run
    of another release that still goes on is one, too, until it is charged: nobody can tell it from one that was stopped."""
    with _held(site) as folder:
        for file in sorted(folder.glob("*.json")):
            known = _read(file)
            if known is None or known.charged or known.told:
                continue
            if known.release != str(release) and known.policy_hash != policy_hash:
                _tell(site, known, stopped=known.release)
                _write(file, replace(known, told=True))


def charge_run(site: Site, release: ReleaseId) -> None:
    """The release was charged for its last run, which is no trial."""
    with _held(site) as folder:
        file = _file_of(folder, release)
        known = _read(file)
        if known is not None and not known.charged:
            _write(file, replace(known, charged=True))


def _tell(site: Site, run: Run, *, stopped: str = "") -> None:
    if not run.charged:
        note_run(site, run.policy_hash, digest=run.digest, origins=run.origins, stopped=stopped)


@contextmanager
def _held(site: Site) -> Generator[Path]:
    folder = site.vault / "runs"
    with locked(folder):
        clear_partials(folder)  # what a killed run left
        yield folder


def _file_of(folder: Path, release: ReleaseId) -> Path:
    return folder / f"{release.file_name}.json"


def _read(file: Path) -> Run | None:
    if not file.exists():
        return None
    content = formats.RUN.read(json.loads(file.read_text()), where=file.name)
    return read_as(Run, content, where=file.name)


def _write(file: Path, run: Run) -> None:
    write_private_json(file, asdict(run))
