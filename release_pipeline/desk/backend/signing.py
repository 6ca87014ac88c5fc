"""What people take away to sign, and bring back: remarks in draft, tickets, bundles, statements."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from release_pipeline.desk.backend.access import Ticket
from release_pipeline.desk.backend.bundles import BUNDLE, make_bundle, note_statements, read_statements
from release_pipeline.desk.backend.calls import Asked, Call, Document, File, allow
from release_pipeline.desk.backend.drafts import DraftRemark
from release_pipeline.desk.backend.reviewing import READERS, RELEASE, check_reader, find_steward
from release_pipeline.desk.people import NAME, Role
from release_pipeline.door.refusal import Refused
from release_pipeline.errors import WrongUsage
from release_pipeline.fingerprint import spell
from release_pipeline.flow.opening import find_release
from release_pipeline.flow.policies import read_caps
from release_pipeline.flow.reviewing.remarks import hash_document
from release_pipeline.flow.states import list_statuses, read_statuses
from release_pipeline.flow.texts import check_line
from release_pipeline.flow.trust.members import read_trust

REMARKS_FORMAT = "release-pipeline/remarks/1"
NUMBER = re.compile(r"[0-9]{1,4}")
_WHAT = re.compile("candidate|policy|populations")
_VERDICTS = {
    "candidate": ("approve", "return", "reject", "remarks"),
    "policy": ("approve", "remarks"),
    "populations": ("approve",),
}
_SIGNERS = {"candidate": (Role.REVIEWER,), "policy": (Role.OFFICER,), "populations": (Role.OFFICER,)}
_REMARKERS = allow(Role.REVIEWER, Role.OFFICER, Role.STEWARD)


def find_subject(asked: Asked) -> tuple[str, str, str]:
    """What is meant: its kind, its name, and its hash as it is now."""
    what = asked.find("what", _WHAT)
    if what == "candidate":
        release = find_release(asked.site, asked.find("subject", RELEASE))
        digest = list_statuses(asked.site)[release].candidate_hash
        if digest is None:
            raise Refused(404, "it has no candidate.")
        return what, str(release), digest
    if what == "populations":
        return what, what, read_caps(asked.site).hash
    policy = asked.site.policy(asked.find("subject", NAME))
    return what, policy.policy, policy.canonical_hash()


def _add_remark(asked: Asked) -> Document:
    what, subject, digest = find_subject(asked)
    if what == "candidate":
        check_reader(asked, find_steward_of(asked, what, subject))
    remark = DraftRemark(asked.get("passage"), asked.get("text", most=3000).replace("\r\n", "\n").strip())
    asked.drafts.add(asked.person.name, subject, digest, remark)
    return {}


def _drop_remark(asked: Asked) -> Document:
    _, subject, digest = find_subject(asked)
    asked.drafts.drop(asked.person.name, subject, digest, int(asked.find("number", NUMBER)))
    return {}


def find_steward_of(asked: Asked, what: str, subject: str) -> str:
    """Whose policy it is, or is made under."""
    if what != "candidate":
        return asked.site.policy(subject).steward if what == "policy" else ""
    release = find_release(asked.site, subject)
    with asked.site.open_registry(read_only=True) as registry:
        return find_steward(registry, read_statuses(registry.events)[release])


def _give_ticket(asked: Asked) -> Document:
    ticket = make_ticket(asked)
    alone = ticket.remarks if ticket.verdict == "remarks" else None
    digest = ticket.digest if alone is None else hash_document(alone)
    return {
        "ticket": asked.tickets.give(ticket),
        "what": ticket.what,
        "subject": ticket.subject,
        "hash": digest,
        "words": list(spell(digest)),
        "alone": [] if alone is None else list(alone["remarks"]),
        "remarks": 0 if ticket.remarks is None else len(ticket.remarks["remarks"]),
    }


def make_ticket(asked: Asked) -> Ticket:
    """What somebody wants to sign, when they may: checked here for the words, and in the protocol for good."""
    what, subject, digest = find_subject(asked)
    verdict, why = asked.get("verdict", most=20), check_line(asked.arguments.get("why", ""), where="why")
    if verdict not in _VERDICTS[what]:
        raise Refused(400, "this is nothing that can be said of it.")
    if verdict != "remarks" and not asked.has(*_SIGNERS[what]):
        raise Refused(403, f"this is for a {_SIGNERS[what][0].value}.")
    if verdict in ("return", "reject") and not why.strip():
        raise WrongUsage("a return or a rejection needs its reason.", where=subject, remedy="Say why, for the steward.")
    remarks = _make_remarks(asked, what, subject, digest)
    if verdict == "remarks" and remarks is None:
        raise WrongUsage("there are no remarks to sign.", where=subject, remedy="Write one first.")
    _check_signer(asked, what, subject, verdict)
    back = asked.base + _find_page(what, subject, verdict)
    return Ticket(asked.person.name, what, subject, digest, verdict, why, back, remarks, asked.session)


def _check_signer(asked: Asked, what: str, subject: str, verdict: str) -> None:
    """Refuse whoever could sign nothing of it: a bundle has all that a candidate has, and is for those who sign."""
    with asked.site.open_registry(read_only=True) as registry:
        trust = read_trust(asked.site, registry)
    roles = set[str]() if trust is None else {member.role for member in trust.members if member.name == asked.person.name}
    needed = {role.value for role in (_REMARKERS if verdict == "remarks" else _SIGNERS[what])}
    if not roles & needed:
        raise Refused(403, f"your key is not in the list of trusted keys as that of a {' or '.join(sorted(needed))}.")
    if roles & needed == {"steward"} and find_steward_of(asked, what, subject) != asked.person.name:
        raise Refused(403, "its steward is somebody else.")


def _make_remarks(asked: Asked, what: str, subject: str, digest: str) -> Mapping[str, Any] | None:
    """The document of remarks that are to be signed beside, if there are any."""
    if what == "populations" or not asked.has(*_REMARKERS):
        return None
    draft = asked.drafts.read(asked.person.name, subject, digest)
    if not draft.remarks:
        return None
    remarks = [{"passage": one.passage, "text": one.text} for one in draft.remarks]
    return {"format": REMARKS_FORMAT, "subject": subject, "hash": digest, "remarks": remarks}


def _find_page(what: str, subject: str, verdict: str) -> str:
    """Where they came from; its own page of a policy that is approved is the officer's."""
    if what == "candidate":
        return f"/releases/{subject}"
    if what == "populations":
        return "/approvals/populations"
    return f"/approvals/policies/{subject}" if verdict == "approve" else f"/policies/{subject}"


def _fetch_bundle(asked: Asked) -> File:
    return make_bundle(asked.site, make_ticket(asked))


def _take_statements(asked: Asked) -> Document:
    what, subject, digest = find_subject(asked)
    remarks = _make_remarks(asked, what, subject, digest)
    statements = read_statements(asked.body)
    return {"words": note_statements(asked.site, asked.drafts, asked.person.name, subject, statements, remarks)}


def _show_own_key(asked: Asked) -> Document:
    """The key that counts for who asks, for them to compare."""
    with asked.site.open_registry(read_only=True) as registry:
        trust = read_trust(asked.site, registry)
    keys = [] if trust is None else [member for member in trust.members if member.name == asked.person.name]
    return {"keys": [{"role": member.role, "fingerprint": member.key.fingerprint} for member in keys]}


CALLS = (
    Call("remark", _REMARKERS, _add_remark, changes=True),
    Call("drop-remark", _REMARKERS, _drop_remark, changes=True),
    Call("sign", READERS, _give_ticket, changes=True),
    Call("bundle", READERS, _fetch_bundle, changes=True, shows=BUNDLE, of="subject"),
    Call("statements", READERS, _take_statements, changes=True),
    Call("own-key", READERS, _show_own_key),
)
