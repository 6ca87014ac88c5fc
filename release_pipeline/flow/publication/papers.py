"""The papers of a release for the people of its site: what is known of it, from policy, evidence and events, as one view; and the
folder that an officer takes from here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from release_pipeline.errors import Blocked, WrongUsage
from release_pipeline.flow.evidence import load_evidence
from release_pipeline.flow.files import write_text
from release_pipeline.flow.policies import policy_of
from release_pipeline.flow.publication.public_view import build_view
from release_pipeline.flow.reviewing.page import build_internal_view
from release_pipeline.flow.site import Site
from release_pipeline.flow.states import PUBLISHING, RETRACTED, SUPERSEDED, ReleaseStatus, read_statuses
from release_pipeline.flow.sums import is_whole
from release_pipeline.policy.assessment import Assessment
from release_pipeline.report.papers import ENTRY, PaperView, WithdrawalView, render_papers
from release_pipeline.store.folders import make_private_folder
from release_pipeline.store.registry import Event, ReleaseId


def write_papers(site: Site, release: ReleaseId, folder: Path) -> list[Path]:
    """Every paper of a release that has a candidate, in a folder that is not there yet, or is empty; for its owner alone."""
    _check_folder(folder)
    files = render_papers(view_papers(site, release))
    try:
        make_private_folder(folder)
    except OSError as error:
        raise WrongUsage(f"the folder cannot be made: {error.strerror}.", where=str(folder), remedy="Name another.") from None
    for name, text in files.items():
        write_text(folder / name, text)
    return [folder / name for name in sorted(files)]


def view_papers(site: Site, release: ReleaseId) -> PaperView:
    """All that the papers may say of a release, as the registry has it now."""
    with site.open_registry(read_only=True) as registry:
        status = read_statuses(registry.events).get(release, ReleaseStatus(release))
        if status.candidate_hash is None:
            raise Blocked(
                f"it is {status.state}, and has no candidate: there is nothing to write papers about.", where=str(release)
            )
        candidate = site.candidate(str(release))
        if not is_whole(candidate, status.candidate_hash):
            raise Blocked(
                "the candidate's folder is not what was frozen.", where=str(release), remedy="See `verify` of the site."
            )
        policy, evidence = policy_of(registry, status.policy_hash), load_evidence(candidate)
        events = registry.events[: _find_last(registry.events, status)]
        stated = policy.assessment or Assessment()
        return PaperView(
            package=build_view(site, events, status, policy),
            state=status.state,
            published=events[-1].noted if status.package_hash is not None else None,
            assessment={part: getattr(stated, part) for part in Assessment.model_fields},
            internal=build_internal_view(policy, evidence),
            withdrawn=_find_withdrawal(registry.events, status),
        )


def _check_folder(folder: Path) -> None:
    try:
        if folder.exists() and not folder.is_dir():
            raise WrongUsage("this is a file.", where=str(folder), remedy="Name a folder.")
        if folder.is_dir() and any(folder.iterdir()):
            raise WrongUsage("the folder is not empty.", where=str(folder), remedy="Name another.")
        if not folder.parent.is_dir():
            raise WrongUsage("its folder does not exist.", where=str(folder), remedy="Make the folder first.")
    except OSError as error:
        raise WrongUsage(f"the path cannot be used: {error.strerror}.", where=str(folder), remedy="Name another.") from None


def _find_last(events: Sequence[Event], status: ReleaseStatus) -> int:
    """How many events there were when it was published, as its package names them; all, of one that is not."""
    if status.package_hash is None:
        return len(events)
    numbers = [event.number for event in events if event.kind == PUBLISHING and event.release == status.id]
    return max(numbers, default=len(events))


def _find_withdrawal(events: Sequence[Event], status: ReleaseStatus) -> WithdrawalView | None:
    """Who retracted or superseded it, by the event that gave it its state; None of a release that stands."""
    if status.state not in (RETRACTED, SUPERSEDED):
        return None
    event = next(event for event in reversed(events) if (event.kind, event.release) == (status.state, status.id))
    statement = event.content["signed"]["statement"]
    return WithdrawalView(str(statement["name"]), event.noted, str(statement.get("why") or ""))


__all__ = ["ENTRY", "view_papers", "write_papers"]
