"""Bundles that people take away to sign, statements that they bring back, and drafts of remarks. The desk signs nothing."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from release_pipeline.apps.desk.backend.calls import Asked, Call, Document, DraftRemark, File
from release_pipeline.apps.desk.backend.people import Role
from release_pipeline.apps.desk.backend.reviewing import READERS, RELEASE, check_reader, find_steward
from release_pipeline.apps.door import Refused
from release_pipeline.errors import WrongUsage
from release_pipeline.ledger.policies import read_caps
from release_pipeline.ledger.states import list_statuses, read_statuses
from release_pipeline.pipeline.opening import find_release
from release_pipeline.policy.documents import Plain
from release_pipeline.review.bundle import write_bundle
from release_pipeline.store.files import check_line
from release_pipeline.store.site import Site
from release_pipeline.trust.approvals import import_statement
from release_pipeline.trust.members import Trust, read_trust
from release_pipeline.verifier.documents import NAME
from release_pipeline.verifier.remarks import Remarks, hash_remarks
from release_pipeline.verifier.statements import FIELDS

MOST_STATEMENTS = 4
_NUMBER = re.compile(r"[0-9]{1,4}")
_WHAT = re.compile("candidate|policy|populations")
_VERDICTS = {
    "candidate": ("approve", "return", "reject", "remarks"),
    "policy": ("approve",),
    "populations": ("approve",),
}
_OPTIONS = {"approve": [], "return": ["--return"], "reject": ["--reject"], "remarks": ["--remarks-only"]}  # of `sign`
_SIGNERS = {"candidate": (Role.REVIEWER,), "policy": (Role.OFFICER,), "populations": (Role.OFFICER,)}
_REMARKERS = frozenset({Role.REVIEWER, Role.OFFICER, Role.STEWARD})


@dataclass(frozen=True, slots=True)
class Wish:
    """The subject that somebody wants to sign, with its hash, their verdict on it, and the remarks that they sign with it."""

    what: str
    subject: str
    digest: str
    verdict: str
    why: str
    remarks: Mapping[str, Any] | None

    @property
    def file(self) -> str:
        """Return the name of the bundle."""
        return f"{self.subject.replace('/', '-')}.zip"

    @property
    def command(self) -> str:
        """Return the command that signs it; only the key is left to name."""
        why = [f"--why={self.why}"] if self.why else []
        return shlex.join(["release-pipeline", "sign", self.file, "--key", "YOUR_KEY", *_OPTIONS[self.verdict], *why])


def _find_subject(asked: Asked) -> tuple[str, str, str]:
    """Return the kind, the name and the current hash of the subject that somebody asks about."""
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
    subject, digest = _find_remarked(asked)
    check_reader(asked, _find_steward_of(asked, subject))
    remark = DraftRemark(asked.get("passage"), asked.get("text", most=3000).replace("\r\n", "\n").strip())
    asked.drafts.add(asked.person.name, subject, digest, remark)
    return {}


def _drop_remark(asked: Asked) -> Document:
    subject, digest = _find_remarked(asked)
    asked.drafts.drop(asked.person.name, subject, digest, int(asked.find("number", _NUMBER)))
    return {}


def _find_remarked(asked: Asked) -> tuple[str, str]:
    """Return the release that is remarked on, and the hash of its candidate."""
    what, subject, digest = _find_subject(asked)
    if what != "candidate":
        raise Refused(400, "at the desk people remark on candidates.")
    return subject, digest


def _find_steward_of(asked: Asked, subject: str) -> str:
    """Return the steward of a release's policy."""
    release = find_release(asked.site, subject)
    with asked.site.open_registry(read_only=True) as registry:
        return find_steward(registry, read_statuses(registry.events)[release])


def _show_wish(asked: Asked) -> Document:
    """Return the subject that is to be signed, and the command that signs it."""
    wish = _read_wish(asked)
    alone = wish.remarks if wish.verdict == "remarks" else None
    trust = _read_trust(asked)
    keys = [] if trust is None else [member for member in trust.members if member.name == asked.person.name]
    return {
        "what": wish.what,
        "subject": wish.subject,
        "hash": wish.digest if alone is None else hash_remarks(alone),
        "alone": [] if alone is None else list(alone["remarks"]),
        "remarks": 0 if wish.remarks is None else len(wish.remarks["remarks"]),
        "file": wish.file,
        "command": wish.command,
        "keys": [{"role": member.role, "fingerprint": member.key.fingerprint} for member in keys],
    }


def _read_wish(asked: Asked) -> Wish:
    """Return the signer's wish, if they may sign: checked here for a clear message, and again when the statement is imported."""
    what, subject, digest = _find_subject(asked)
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
    return Wish(what, subject, digest, verdict, why, remarks)


def _check_signer(asked: Asked, what: str, subject: str, verdict: str) -> None:
    """Refuse anyone who cannot sign the subject: a bundle has the whole candidate, and is only for people who sign."""
    trust = _read_trust(asked)
    roles = set[str]() if trust is None else {member.role for member in trust.members if member.name == asked.person.name}
    needed = {role.value for role in (_REMARKERS if verdict == "remarks" else _SIGNERS[what])}
    if not roles & needed:
        raise Refused(403, f"your key is not in the list of trusted keys as that of a {' or '.join(sorted(needed))}.")
    if roles & needed == {"steward"} and _find_steward_of(asked, subject) != asked.person.name:
        raise Refused(403, "its steward is somebody else.")


def _read_trust(asked: Asked) -> Trust | None:
    with asked.site.open_registry(read_only=True) as registry:
        return read_trust(asked.site, registry)


def _make_remarks(asked: Asked, what: str, subject: str, digest: str) -> Mapping[str, Any] | None:
    """Return the person's remarks as the document that is signed; None where there are none."""
    if what != "candidate" or not asked.has(*_REMARKERS):
        return None
    draft = asked.drafts.read(asked.person.name, subject, digest)
    if not draft.remarks:
        return None
    return Remarks(subject, digest, tuple((remark.passage, remark.text) for remark in draft.remarks)).document


def _fetch_bundle(asked: Asked) -> File:
    """Return the bundle of the current subject; the person's own program computes the hash."""
    wish = _read_wish(asked)
    target = {"candidate": wish.subject, "policy": f"policies/{wish.subject}.yaml", "populations": "populations.yaml"}[wish.what]
    return pack(asked.site, wish.file, lambda file: write_bundle(asked.site, target, file, remarks=wish.remarks))


def _take_statements(asked: Asked) -> Document:
    """Record the person's signed statements, as `review import` does: only their own, on the subject that they were asked
    about."""
    what, subject, digest = _find_subject(asked)
    person, remarks, parts = asked.person.name, _make_remarks(asked, what, subject, digest), read_statements(asked.body)
    statements = [part["statement"] for part in parts]
    if strange := [each for each in statements if each["name"] != person or each["subject"] != subject]:
        signer, signed = strange[0]["name"][:63], strange[0]["subject"][:140]
        raise Refused(403, f"this is signed by {signer}, of {signed}; {person} was asked about {subject}.")
    done: list[str] = []
    for part in sorted(parts, key=lambda part: part["statement"]["kind"] != "remarks"):  # a vote may end the review
        kind = part["statement"]["kind"]
        decision = import_statement(asked.site, part, remarks if kind == "remarks" else None)
        done.append(_describe_decision(kind, decision.count, decision.needed, decision.new))
    if any(each["kind"] == "remarks" for each in statements):  # else they are not signed yet
        asked.drafts.forget(person, subject)
    return {"words": f"{subject}: {'; '.join(done)}."}


def read_statements(body: str) -> list[dict[str, Any]]:
    """Return the statements in a body, each with the seven fields and its signature; raises `WrongUsage` for anything else."""
    try:
        document: Plain = json.loads(body)
        parts = cast("list[dict[str, Any]]", document["statements"]) if isinstance(document, dict) else []
        is_right = 1 <= len(parts) <= MOST_STATEMENTS and all(
            set(part) == {"statement", "sshsig"}
            and isinstance(part["sshsig"], str)
            and set(part["statement"]) == set(FIELDS)
            and all(isinstance(value, str) and value.isprintable() for value in part["statement"].values())
            for part in parts
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        is_right, parts = False, []
    if not is_right:
        raise WrongUsage("these are no signed statements.", where="statements", remedy="Send what `sign` wrote.")
    return parts


def _describe_decision(kind: str, count: int, needed: int, new: bool) -> str:
    if kind == "remarks":
        return "remarks noted"
    if kind == "reject":
        return "rejected, for good"
    if kind == "return":
        return "returned to its steward"
    if not new:
        return "was approved by you before"
    return f"approved, {count} of {needed}" if kind == "approve" else "approved"


def pack(site: Site, name: str, write: Callable[[Path], object]) -> File:
    """Return a zip that `write` writes, to be saved under this name. It is confidential: until it is sent it is in the vault."""
    _find_folder(site).mkdir(mode=0o700, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=_find_folder(site)))
    try:
        write(folder / name)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return File("application/zip", folder / name, name=name, temporary=True)


def clear_folder(site: Site) -> None:
    """Remove files that a killed backend had not sent."""
    shutil.rmtree(_find_folder(site), ignore_errors=True)


def _find_folder(site: Site) -> Path:
    return site.vault / "sent"


CALLS = (
    Call("remark", _REMARKERS, _add_remark, changes=True),
    Call("drop-remark", _REMARKERS, _drop_remark, changes=True),
    Call("sign", READERS, _show_wish),
    Call("bundle", READERS, _fetch_bundle, changes=True, shows="the bundle to sign", of="subject"),
    Call("statements", READERS, _take_statements, changes=True),
)
