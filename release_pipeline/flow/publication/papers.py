"""The papers of a release for the people of its site: what is known of it, from policy, evidence and events, as one view; and the
folder that an officer takes from here."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from release_pipeline.errors import Blocked, WrongUsage
from release_pipeline.flow.evidence import Evidence, load_evidence
from release_pipeline.flow.files import write_text
from release_pipeline.flow.policies import policy_of
from release_pipeline.flow.publication.public_view import build_view
from release_pipeline.flow.reviewing.page import build_internal_view
from release_pipeline.flow.site import Site
from release_pipeline.flow.states import (
    APPROVED,
    PUBLISHED,
    PUBLISHING,
    REJECTED,
    RETRACTED,
    RETURNED,
    SUPERSEDED,
    ReleaseStatus,
    read_statuses,
)
from release_pipeline.flow.sums import is_whole
from release_pipeline.flow.trust.approvals import find_last_approval, valid_approvers
from release_pipeline.flow.trust.members import Trust, read_trust
from release_pipeline.policy import Policy
from release_pipeline.report.papers import render_papers
from release_pipeline.report.papers.sources import write_key
from release_pipeline.report.papers.view import AssessmentView, CheckedView, DecisionView, PaperView, SignedView
from release_pipeline.store.folders import make_private_folder
from release_pipeline.store.ledger import RESERVED
from release_pipeline.store.registry import Event, Registry, ReleaseId


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
        trust, status = read_trust(site, registry), read_statuses(registry.events).get(release, ReleaseStatus(release))
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
        return PaperView(
            public=build_view(site, events, status, policy),
            edition="internal",
            state=status.state,
            published=events[-1].noted if status.package_hash is not None else None,
            assessment=_state_assessment(policy),
            internal=build_internal_view(policy, evidence),
            checked=_check(registry, trust, status, policy, evidence),
            withdrawn=_find_withdrawal(registry.events, status),
            places=dict(_list_places(policy, evidence)),
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


def _state_assessment(policy: Policy) -> AssessmentView:
    stated = policy.assessment
    if stated is None:
        return AssessmentView()
    return AssessmentView(**{part.name: getattr(stated, part.name) for part in dataclasses.fields(AssessmentView)})


def _list_places(policy: Policy, evidence: Evidence) -> Iterator[tuple[str, str]]:
    """Where in evidence.json each attack and each limit stands that the view has, in the order in which it has them."""
    audit = evidence.audit
    attacks = [f"audit.attacks[{place}]" for place, one in enumerate(audit.get("attacks", ())) if one["name"] != "inferring"]
    inferring = [name for name in policy.released_columns if name in audit.get("inference", {})]
    attacks += [f"audit.inference{write_key(name)}" for name in inferring]
    gates = ["facts.rows_in"] if policy.gates.min_rows is not None and evidence.facts else []
    gates += [f"clamping{write_key(name)}.share" for name in policy.clamped_at_most if name in evidence.clamping]
    gates += [f"expectations{write_key(name)}" for name in evidence.expectations]
    gates += [f"gates[{place}]" for place in range(len(evidence.gates))]
    for kind, places in (("attacks", attacks), ("gates", gates)):
        yield from ((f"internal.{kind}.{number}", place) for number, place in enumerate(places))


def _find_withdrawal(events: Sequence[Event], status: ReleaseStatus) -> SignedView | None:
    """The event that retracted or superseded it, by the state that it is in."""
    if status.state not in (RETRACTED, SUPERSEDED):
        return None
    event = next(event for event in reversed(events) if (event.kind, event.release) == (status.state, status.id))
    return _view_signed(event, event.content["signed"])


def _check(registry: Registry, trust: Trust | None, status: ReleaseStatus, policy: Policy, evidence: Evidence) -> CheckedView:
    """The check of the output, from the events."""
    charged = next((event.number for event in registry.events if event.kind == RESERVED and event.release == status.id), None)
    before = {
        what: _find_signed(registry, trust, what, subject, status.policy_hash if what == "policy" else None, charged)
        for what, subject in (("policy", policy.policy), ("populations", "populations"))
    }
    blind = status.is_blind
    return CheckedView(
        needed=policy.review.reviewers,
        decisions=() if blind else tuple(_list_decisions(registry.events, status)),
        voted=len(status.voters) if blind else None,
        holding=() if trust is None or blind else tuple(valid_approvers(registry, trust, status, policy.steward)),
        policy=before["policy"],
        caps=before["populations"],
        published=next(
            (
                _view_signed(event, event.content["signed"])
                for event in registry.events
                if event.kind == PUBLISHED and event.release == status.id
            ),
            None,
        ),
        checks=tuple(sorted(evidence.checks_passed.items())),
        retain=policy.retain,
    )


def _find_signed(
    registry: Registry, trust: Trust | None, what: str, subject: str, digest: str | None, before: int | None
) -> SignedView | None:
    """The officer's last approval of something before the charge; of the policy, of just the one that was charged."""
    if trust is None or before is None:
        return None
    event = find_last_approval(registry, trust, what=what, subject=subject, before=before)
    if event is None or (digest is not None and event.content["hash"] != digest):
        return None
    return _view_signed(event, event.content["signed"])


def _list_decisions(events: Sequence[Event], status: ReleaseStatus) -> Iterator[DecisionView]:
    for event in events:
        if event.release == status.id and event.kind in (APPROVED, RETURNED, REJECTED):
            yield DecisionView(event.kind, str(event.content["hash"]), _view_signed(event, event.content["signed"]))


def _view_signed(event: Event, signed: Mapping[str, Any]) -> SignedView:
    said = signed["statement"]
    return SignedView(event.number, event.noted, str(said["name"]), str(said["signer"]), str(said.get("why") or "") or None)
