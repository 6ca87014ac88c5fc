"""The page of a site's state: its view, from the registry, the policies and the clock, and its file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from release_pipeline import __version__
from release_pipeline.errors import Blocked, ReleasePipelineError, WrongUsage
from release_pipeline.flow.exploring.trials import group_looks
from release_pipeline.flow.files import check_output, write_text
from release_pipeline.flow.policies import policy_of
from release_pipeline.flow.publication.delivery import list_outstanding
from release_pipeline.flow.site import Site
from release_pipeline.flow.states import ReleaseStatus, read_statuses
from release_pipeline.flow.status.ledger import Ledger, describe_lost, read_ledgers
from release_pipeline.flow.status.overview import Line, list_releases
from release_pipeline.flow.upcoming import words_of
from release_pipeline.policy import Policy
from release_pipeline.report.status import (
    PopulationView,
    ReleaseView,
    SeriesView,
    StatusView,
    StepView,
    list_matters,
    render_status,
)
from release_pipeline.store.registry import Registry

_PACKAGED = ("published", "superseded", "retracted")


def write_status(site: Site, file: Path, *, overwrite: bool, now: datetime | None = None) -> str:
    """The page is in `file`; gives in words what needs attention. Refused where it would spoil the vault or a package."""
    check_output(file, endings=(".html",), overwrite=overwrite)
    folder = file.parent.resolve()
    if folder.is_relative_to(site.vault) or site.releases in folder.parents:
        raise WrongUsage("nothing but the site's own files may stand there.", where=str(file), remedy="Name another folder.")
    view = build_status(site, folder=folder, now=now)
    write_text(file, render_status(view))
    return ", ".join(matter.words for matter in list_matters(view)) or "nothing"


def build_status(site: Site, *, folder: Path | None = None, now: datetime | None = None) -> StatusView:
    """The site as it is now; `folder` is where the page will lie (default: the site's), which its links begin at."""
    now = now or datetime.now(UTC)
    lines, broken = list_releases(site, now=now)
    broken += [f"{task.words}; `release-pipeline deliver` does it" for task in list_outstanding(site)]
    policies = {policy.policy: policy for policy in site.read_policies()[0]}
    try:
        ledgers = read_ledgers(site)
    except ReleasePipelineError as error:
        ledgers = list[Ledger]()
        broken += [str(error)] * (str(error) not in broken)
    with site.open_registry(read_only=True) as registry:
        statuses = {str(known): release_status for known, release_status in read_statuses(registry.events).items()}
        looks = group_looks(registry.events)
        needed = {name: _count_reviewers(registry, release_status, policies) for name, release_status in statuses.items()}
    shown = [_view_release(site, line, statuses.get(line.release), needed, (folder or site.home).resolve()) for line in lines]
    names = dict.fromkeys([*policies, *(_policy_of(line) for line in lines), *looks])
    return StatusView(
        site=site.home.name or str(site.home),
        made=words_of(now),
        tool=f"release-pipeline {__version__}",
        populations=tuple(view_population(ledger) for ledger in ledgers),
        series=tuple(
            SeriesView(
                policy=name,
                steward=policies[name].steward if name in policies else "",
                population=policies[name].population if name in policies else "",
                releases=tuple(view for line, view in zip(lines, shown, strict=True) if _policy_of(line) == name),
                looks=tuple(look.words for look in looks.get(name, ())),
            )
            for name in names
        ),
        broken=tuple(_shorten_paths(site, text) for text in broken),
    )


def _view_release(
    site: Site, line: Line, release_status: ReleaseStatus | None, needed: Mapping[str, int | None], folder: Path
) -> ReleaseView:
    if release_status is None:
        return ReleaseView(line.release, line.state, reason=line.reason)
    reason = line.note.strip()
    if reason.startswith("(") and reason.endswith(")"):
        reason = reason[1:-1]
    return ReleaseView(
        name=line.release,
        state=line.state,
        rows=line.rows,
        claim=str(release_status.facts.get("claim", "")),
        since=words_of(datetime.fromisoformat(line.since).astimezone(UTC)) if line.since else "",
        reason=_shorten_paths(site, reason),
        approvers=tuple(release_status.voters if release_status.is_blind else release_status.approvers),
        blind=release_status.is_blind,
        needed=needed[line.release],
        given_up="" if release_status.replaced is None else str(release_status.replaced),
        successor=release_status.successor,
        card=_find_address(site, release_status, "privacy-card.html", folder),
        note=_find_address(site, release_status, "RELEASE_NOTE.md", folder),
    )


def view_population(ledger: Ledger) -> PopulationView:
    """A population for a page: charges and plans as steps."""
    account = ledger.account
    charges = [
        StepView(
            str(charge.id),
            account.of(charge.loss),
            "reserved" if charge.id in ledger.undrawn else "spent",
            charge.noted[:10],
            remark=describe_lost(ledger, charge),
        )
        for charge in ledger.charges
    ]
    plans = [
        StepView(
            str(plan.release),
            plan.cost,
            "planned" if plan.fits else "refused",
            remark="at least, more with more rows" if plan.at_least else "",
        )
        for plan in ledger.planned
    ]
    return PopulationView(
        name=account.population,
        unit=account.unit,
        in_releases=account.cap.cap.releases is not None,
        cap=account.most,
        spent=account.total,
        reserved=ledger.reserved,
        remaining=account.remaining,
        steps=(*charges, *plans),
        endless=ledger.endless,
    )


def _count_reviewers(registry: Registry, release_status: ReleaseStatus, policies: Mapping[str, Policy]) -> int | None:
    """How many must approve a release: by the policy that it was made under, or else as the policy is now."""
    try:
        policy = (
            policy_of(registry, release_status.policy_hash)
            if release_status.policy_hash
            else policies.get(release_status.id.policy)
        )
    except Blocked:
        policy = policies.get(release_status.id.policy)
    return None if policy is None else policy.review.reviewers


def _find_address(site: Site, release_status: ReleaseStatus, name: str, folder: Path) -> str:
    """The relative address of a file of a package; empty where there is none."""
    file = site.package(str(release_status.id)) / name
    if release_status.state not in _PACKAGED or not file.is_file():
        return ""
    return quote(os.path.relpath(file, folder))


def _policy_of(line: Line) -> str:
    return line.release.partition("/")[0]


def _shorten_paths(site: Site, text: str) -> str:
    """A text whose paths begin at the site: where the site lies on its machine is no reader's business."""
    return text.replace(f"{site.home}/", "")
