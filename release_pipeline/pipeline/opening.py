"""Finding the release and revision that is meant, and opening one: by hand, by its timetable, or as a correction with a
reason."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime

from release_pipeline.errors import Blocked, InvalidArgument, WrongUsage
from release_pipeline.ledger.policies import record_policy
from release_pipeline.ledger.states import FAILED, OPENED, ReleaseStatus, latest_revision, list_statuses, move, read_statuses
from release_pipeline.pipeline.cap import check_cap
from release_pipeline.pipeline.context import StageContext
from release_pipeline.pipeline.reservation import forget_secret
from release_pipeline.policy import Policy
from release_pipeline.policy.values.periods import EXAMPLE, end_of
from release_pipeline.store.files import PLAIN, Probe, check_line
from release_pipeline.store.registry import ReleaseId
from release_pipeline.store.site import Site
from release_pipeline.store.vault_files import locked_vault

LONGEST_REASON = 200
_RELEASE = r"([A-Za-z0-9._-]+?)(?:/r([1-9][0-9]{0,5}))?"  # its name, and perhaps its revision


def open_release(
    site: Site,
    policy_name: str,
    release: str | None,
    *,
    progress: Callable[[str], None] = lambda _: None,
    probe: Probe | None = None,
) -> StageContext:
    """Return the context of one release of a policy of the site, at its last opened revision.

    `release` is NAME, NAME/rN or POLICY/NAME/rN, and may be left out where there is only one. A revision that was not opened, or
    was given up for another, is refused.
    """
    policy = site.policy(policy_name)
    name, revision = _parse(policy, release)
    statuses = list_statuses(site)
    latest = latest_revision(statuses, policy.policy, name)
    if revision is None or revision == latest.revision:
        return StageContext(site, policy, latest, progress, probe or PLAIN)
    wanted = ReleaseId(policy.policy, name, revision)
    if revision > latest.revision:
        nobody = f"its last revision is r{latest.revision}."
        remedy = f"--revise 'REASON' opens r{latest.revision + 1}, with a fresh charge."
        raise WrongUsage(f"it has not been opened; {nobody}", where=str(wanted), remedy=remedy)
    raise Blocked(f"it was given up for {latest}.", where=str(wanted), remedy=f"Run {name}, or {name}/r{latest.revision}.")


def revise_release(site: Site, policy_name: str, release: str | None, *, why: str) -> ReleaseId:
    """Open the next revision of a release, with the reason, when there is room for its fresh charge; the one before is given
    up.

    Only what was charged can be revised. The secret of an unfinished one before is forgotten: its noise is never drawn.
    """
    if not (why := check_line(why, where="--revise", longest=LONGEST_REASON)):
        raise WrongUsage("a revision needs its reason.", where="--revise", remedy="It stays in the registry.")
    policy = site.policy(policy_name)
    name, revision = _parse(policy, release)
    with locked_vault(site.vault, policy.population), site.open_registry() as registry:  # no process masks it meanwhile
        statuses = read_statuses(registry.events)
        latest = latest_revision(statuses, policy.policy, name)
        if revision not in (None, latest.revision, latest.revision + 1):
            raise WrongUsage(f"its last revision is r{latest.revision}.", where=f"{policy.policy}/{name}/r{revision}")
        if (status := statuses.get(latest, ReleaseStatus(latest))).charge is None:
            raise WrongUsage(
                "nothing is charged for it yet, so there is nothing to revise.",
                where=str(latest),
                remedy="Run it without --revise.",
            )
        check_cap(site, registry, policy, latest.next)
        record_policy(site, registry, policy)
        move(registry, latest.next, OPENED, why=why)
    if status.drawn is None:
        forget_secret(site, latest)
    return latest.next


def last_revision(site: Site, policy_name: str, release: str | None) -> ReleaseId:
    """Return the last revision of a release that was opened, or the first one."""
    policy = site.policy(policy_name)
    return latest_revision(list_statuses(site), policy.policy, _parse(policy, release)[0])


def find_release(site: Site, text: str) -> ReleaseId:
    """Return the release that POLICY/RELEASE, where it has one revision, or POLICY/RELEASE/rN names; something must have happened
    to it."""
    match = re.fullmatch(rf"([a-z][a-z0-9-]*)/{_RELEASE}", text)
    if match is None:
        raise WrongUsage("this is not a release.", where=text, remedy="Write POLICY/RELEASE or POLICY/RELEASE/rN.")
    statuses = list_statuses(site)
    latest = latest_revision(statuses, match[1], match[2])
    wanted = ReleaseId(match[1], match[2], int(match[3])) if match[3] else latest
    if wanted not in statuses:
        raise WrongUsage("the registry has no such release.", where=text, remedy="`release-pipeline status` lists them.")
    if match[3] is None and latest.revision > 1:  # people must sign the very revision that they have read
        raise WrongUsage(f"it has {latest.revision} revisions.", where=text, remedy=f"Name one of them: {latest} is the last.")
    return wanted


def list_recorded_runs(site: Site) -> set[str]:
    """Return the runs that failed according to the registry."""
    with site.open_registry(read_only=True) as registry:
        return {event.content["run"] for event in registry.events if event.kind == FAILED}


def name_release(policy: Policy, text: str | None) -> str:
    """Return the release of a policy that is meant; the only one where none is named."""
    return _parse(policy, text)[0]


def _parse(policy: Policy, text: str | None) -> tuple[str, int | None]:
    """Return the release that is meant, and its revision if one was named."""
    names = policy.release_names
    if text is None and len(names) == 1:
        return names[0], None
    match = re.fullmatch(rf"(?:{re.escape(policy.policy)}/)?{_RELEASE}", text or "")
    name = match[1] if match else text
    if policy.every and name is not None:
        _check_period(policy, name)
    elif name not in names:
        what = f"policy {policy.policy} has no release {name}." if name else f"policy {policy.policy} has several releases."
        ended = f"a {policy.every} that has ended, like {EXAMPLE[policy.every]}" if policy.every else ", ".join(names)
        raise WrongUsage(what, remedy=f"Name one with --release: {ended}.")
    return name, int(match[2]) if match and match[2] else None


def _check_period(policy: Policy, name: str) -> None:
    assert policy.every is not None  # noqa: S101  for the type checker
    try:
        end = end_of(policy.every, name)
    except InvalidArgument as error:
        raise WrongUsage(error.what, where=policy.policy, remedy="That is what its releases are named after.") from None
    if end > datetime.now(UTC):
        raise WrongUsage(f"the {policy.every} {name} has not ended yet.", where=policy.policy, remedy="Wait for its end.")
