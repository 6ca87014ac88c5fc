"""Remarks on passages of a candidate (sections of its reviewers' page) or of a policy (paths of its
canonical form); and votes.

Reviewers, the officer and the policy's steward sign remarks as one document; `verifier.remarks` has
its form. A reviewer's remarks on a candidate are as blind as the votes.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from release_pipeline.errors import Blocked, WrongUsage
from release_pipeline.ledger.policies import policy_of
from release_pipeline.ledger.states import REMARKED, ReleaseStatus, Vote, last_votes, read_statuses, status_of
from release_pipeline.plain_files import open_plain
from release_pipeline.policy import Policy
from release_pipeline.policy.documents import Plain
from release_pipeline.signer.bundles import REPORT
from release_pipeline.store.files import read_sums
from release_pipeline.store.registry import Event, Registry, ReleaseId
from release_pipeline.store.site import Site
from release_pipeline.trust.keys import NotSigned
from release_pipeline.trust.members import Trust
from release_pipeline.verifier.documents import Fault, read_json
from release_pipeline.verifier.remarks import Remarks, read_remarks

KIND = "remarks"
WHOLE = ""  # the passage of a remark on the whole
MOST_BYTES = 2**22  # of a document: the longest possible one has a third of that
_SECTION = re.compile(r'<h2 id="([^"<>]{1,300})">([^<]*)</h2>')


@dataclass(frozen=True, slots=True)
class Remark:
    """A recorded remark. `about`: the hash of the candidate or policy that it is on; `holds`: the signer is in the list of
    trusted keys now, too."""

    number: int
    name: str
    role: str
    noted: str
    passage: str
    text: str
    about: str
    holds: bool


def read_document(file: Path) -> Any:
    """Return the JSON of a file of remarks; raises `WrongUsage` where it is none, or longer than any may be."""
    try:
        with open_plain(file) as content:
            return read_json(content.read(MOST_BYTES))
    except (OSError, Fault):
        raise WrongUsage("this is no document of remarks.", where=str(file), remedy="Take the file that `sign` wrote.") from None


def check_remarks(document: Any) -> Remarks:
    """Return the remarks of a document that came from elsewhere; raises `WrongUsage`, without a text of it, where it has not
    their form."""
    try:
        return read_remarks(document)
    except Fault as fault:
        raise WrongUsage(f"{fault.what}.", where="the document of remarks", remedy="docs/formats.md says what it has.") from None


def list_release_passages(site: Site, release: ReleaseId, digest: str) -> dict[str, str]:
    """Return the passages of the candidate with this hash and their titles: the sections of its reviewers' page, in order."""
    folder = site.candidate(str(release))
    page = (folder / REPORT).read_text(encoding="utf-8") if REPORT in read_sums(folder, digest) else ""
    return {WHOLE: "", **{html.unescape(anchor): html.unescape(title) for anchor, title in _SECTION.findall(page)}}


def list_policy_passages(policy: Policy) -> dict[str, str]:
    """Return the passages of a policy: the path of each part of its canonical form, with dots. They have no titles."""
    return dict.fromkeys([WHOLE, *_list_paths(json.loads(policy.canonical_json()), "")], "")


def _list_paths(part: Plain, path: str) -> Iterator[str]:
    if isinstance(part, Mapping):
        for name, inner in part.items():
            below = f"{path}.{name}" if path else str(name)
            yield below
            yield from _list_paths(inner, below)


def check_passages(remarks: Remarks, passages: Iterable[str]) -> None:
    """Refuse a remark on a passage that does not exist."""
    known = set(passages)
    for number, (passage, _) in enumerate(remarks.entries, start=1):
        if passage not in known:
            raise WrongUsage(
                f"remark {number} is on a passage that is not there.",
                where=remarks.subject,
                remedy=f"There are: {', '.join(sorted(known - {WHOLE})[:40])}; and none, for the whole.",
            )


def find_noted(registry: Registry, statement: Mapping[str, Any]) -> Event | None:
    """Return the event that has this statement of remarks, or None."""
    noted = (event for event in registry.events if event.kind == REMARKED)
    return next((event for event in noted if event.content["signed"]["statement"] == statement), None)


def list_remarks(registry: Registry, trust: Trust, subject: str) -> tuple[Remark, ...]:
    """Return every remark on a release (POLICY/PARTITION/rN) or a policy, in order, except those signed with a key that was
    revoked from before. `list_visible_remarks` returns those that a reader may see."""
    remarks: list[Remark] = []
    for event in registry.events:
        if event.kind != REMARKED or event.content["subject"] != subject:
            continue
        content, statement = event.content, event.content["signed"]["statement"]
        if trust.office is not None and trust.office.is_taken_back(event.number, statement["signer"]):
            continue
        try:
            holds = bool(trust.check_event(event, kind=KIND, subject=subject, digest=content["hash"]))
        except NotSigned:
            holds = False
        role, document = find_role(registry.events, event), content["document"]
        remarks += [
            Remark(event.number, statement["name"], role, event.noted, entry["passage"], entry["text"], document["hash"], holds)
            for entry in document["remarks"]
        ]
    return tuple(remarks)


def find_role(events: Sequence[Event], event: Event) -> str:
    """Return the role that the signer of an event had then."""
    for before in reversed(events[: event.number]):
        if before.kind == "trusted":
            return str(before.content["keys"].get(event.content["name"], {}).get("role", ""))
    return ""


def list_visible_remarks(
    registry: Registry, trust: Trust | None, subject: str, *, reader: str | None = None
) -> tuple[Remark, ...]:
    """Return the remarks that a reader may see now; without a reader, those that everyone may. Others see a reviewer's remarks on
    a candidate once they may see the votes on it, or on the candidate that replaced it."""
    remarks = () if trust is None else list_remarks(registry, trust, subject)
    status = next((known for name, known in read_statuses(registry.events).items() if str(name) == subject), None)
    return tuple(
        remark for remark in remarks if status is None or remark.name == reader or is_visible(remark.role, remark.about, status)
    )


def is_visible(role: str, about: str, status: ReleaseStatus) -> bool:
    """Return whether everyone may see a remark by somebody in this role on the candidate with that hash."""
    return role != "reviewer" or about in status.disclosed or (about != status.candidate_hash and not status.is_blind)


# Votes on a candidate are blind: until as many people have voted as must approve, or one rejected,
# people see only their vote and how many there are. That is what commands and pages show; anyone who
# can read the registry's file can read them all.


@dataclass(frozen=True, slots=True)
class VisibleVotes:
    """The votes on the current candidate of a release, as far as a reader may know them: how many people have voted (`count`) and
    how many must approve (`needed`). `own_vote` is the reader's last, `votes` the last of each person and `given` every one in
    order, both empty until all `are_in`."""

    count: int
    needed: int
    are_in: bool
    own_vote: Vote | None
    votes: tuple[Vote, ...]
    given: tuple[Vote, ...]


def read_visible_votes(registry: Registry, release: ReleaseId, *, reader: str | None = None) -> VisibleVotes:
    """Return the votes that a reader may see; without a reader, those that everyone may. The steward sees no more than others.
    Raises `Blocked` where there is no candidate."""
    status = status_of(registry, release)
    if status.candidate_hash is None:
        raise Blocked("it has no candidate, so nobody votes.", where=str(release), remedy="See `release-pipeline status`.")
    given = tuple(vote for vote in status.votes if vote.hash == status.candidate_hash)
    last = last_votes(given, status.candidate_hash)
    shown = ((), ()) if status.is_blind else (tuple(last[name] for name in sorted(last)), given)
    needed, own_vote = policy_of(registry, status.policy_hash).review.reviewers, None if reader is None else last.get(reader)
    return VisibleVotes(len(status.voters), needed, not status.is_blind, own_vote, *shown)
