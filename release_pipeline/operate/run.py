"""The texts of `run` about the release that it took to its candidate, and of a stopped command about its release."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

from release_pipeline.formats.evidence import load_evidence
from release_pipeline.ledger.exposure import warn_by_name
from release_pipeline.ledger.states import OUT, ReleaseStatus, list_statuses
from release_pipeline.operate.overview import Line, list_releases
from release_pipeline.report.page import REPORT
from release_pipeline.store.registry import ReleaseId
from release_pipeline.store.site import Site


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDocument(Line):
    """The document that `run --json` prints: the release as `status` has it, and where its candidate is."""

    FORMAT: ClassVar[str] = "release-pipeline/run/1"

    served: Annotated[bool, "whether its noise had been drawn before: nothing was charged, and what is stored was served"]
    candidate: Annotated[str, "the frozen folder, in the vault"]
    report: Annotated[str, "the page for the reviewers, in that folder"]
    warnings: Annotated[tuple[str, ...], "what was noticed in the data, a sentence each: columns and counts, never a cell"]
    same_people: Annotated[
        tuple[str, ...], "warnings: other populations with the same people, which the ledger adds up separately, a sentence each"
    ]


def is_drawn(site: Site, release: ReleaseId) -> bool:
    """Return whether a run of the release only serves what is stored."""
    return any(line.release == str(release) and line.state in ("drawn", "candidate") for line in list_releases(site)[0])


def view_run(site: Site, release: ReleaseId, *, served: bool) -> RunDocument:
    """Return the document of a release after its run."""
    [line] = [line for line in list_releases(site)[0] if line.release == str(release)]
    folder = site.candidate(str(release))
    parts = {field.name: getattr(line, field.name) for field in dataclasses.fields(line)}
    return RunDocument(
        **parts,
        served=served,
        candidate=str(folder),
        report=str(folder / REPORT),
        warnings=load_evidence(folder).warnings,
        same_people=tuple(warn_by_name(site, release.policy)),
    )


def describe_run(run: RunDocument) -> Iterator[str]:
    """Yield lines for a person on a release after its run."""
    yield f"{run.release}: {run.state}, {run.rows or 0:,} rows, {run.claim}"
    yield run.candidate
    yield from (f"warning: {warning}" for warning in run.same_people)


def describe_progress(site: Site, release: ReleaseId) -> str:
    """Return what was done for a release in progress, by the registry: what was charged for it, and how to go on."""
    status = list_statuses(site).get(release)
    command = f"`release-pipeline run {release.policy} --release {release.release}`"
    if status is None:
        return f"{release} is not opened, and nothing is charged for it: {command} begins it"
    if status.candidate_hash is not None:
        return f"{release} is made: it is charged, its state is {status.state}, and nothing is left to do"
    blocked = f"{release} is blocked (`release-pipeline status` says why)" if status.state == "blocked" else ""
    if status.charge is None:
        return f"{blocked or f'{release} is opened'}, and nothing is charged for it: {command} goes on"
    drawn = "its noise is drawn" if status.drawn is not None else "its noise is not noted as drawn"
    return f"{blocked or f'{release} is opened'}, charged, and {drawn}: {command} goes on, and charges nothing more"


def describe_people(site: Site, release: ReleaseId) -> str:
    """Return the state of a release that people approve, publish or retract, by the registry, and how to go on."""
    status = list_statuses(site).get(release, ReleaseStatus(release))
    state = "being published" if status.state == "publishing" else status.state
    public = "" if status.state in OUT else ", and nothing of it is public"
    return f"{release} is {state} by the registry{public}: the same command finishes what is left, or says that it is done"
