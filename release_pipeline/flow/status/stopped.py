"""What a person is told after they stopped a command: how far the release is by the registry, and how it goes on."""

from __future__ import annotations

from release_pipeline.flow.site import Site
from release_pipeline.flow.states import OUT, ReleaseStatus, list_statuses
from release_pipeline.store.registry import ReleaseId


def describe_run(site: Site, release: ReleaseId) -> str:
    """How far the making of a release has come, what was charged for it, and how it goes on."""
    return describe_progress(release, list_statuses(site).get(release))


def describe_progress(release: ReleaseId, status: ReleaseStatus | None) -> str:
    """The same of what is known of a release already."""
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
    """What has become of a release that people approve, publish or take back, and how it goes on."""
    status = list_statuses(site).get(release, ReleaseStatus(release))
    state = "being published" if status.state == "publishing" else status.state
    public = "" if status.state in OUT else ", and nothing of it is public"
    return f"{release} is {state} by the registry{public}: the same command finishes what is left, or says that it is done"
