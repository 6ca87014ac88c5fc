"""Bundles: a zip that somebody takes to their machine, with the subject that they sign, and what they need to judge it.

The signer need not believe the site: `sign.py` computes hash and changes from the canonical form, or from the candidate's files.
The rest (YAML, plan, difference and questions) is for reading. The same content gives the same bytes. A bundle is confidential: a
candidate's evidence describes the data.
"""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from release_pipeline.errors import Blocked, WrongUsage
from release_pipeline.formats.evidence import load_evidence
from release_pipeline.ledger.policies import list_policies, policy_of, read_caps
from release_pipeline.ledger.states import APPROVED, PUBLISHED, check_move, list_statuses, read_statuses, status_of
from release_pipeline.pipeline.check import Check, describe_check
from release_pipeline.pipeline.opening import find_release
from release_pipeline.policy import Policy
from release_pipeline.policy.loading.load import read_canonical, read_policy, read_text
from release_pipeline.policy.plans.diff import describe_diff
from release_pipeline.policy.plans.plan import make_plan
from release_pipeline.report.page import build_internal_view
from release_pipeline.signer.bundles import (
    ABOUT,
    BEFORE,
    BEFORE_SIGNED,
    CANDIDATE,
    CANONICAL,
    DRAFTS,
    FORMAT,
    REMARKED,
    list_changes,
)
from release_pipeline.store.files import SUMS, appearing, check_output, is_whole, read_sums
from release_pipeline.store.registry import Registry, ReleaseId, canonical_json
from release_pipeline.store.site import Site
from release_pipeline.trust.approvals import check_approvable, find_approvable, find_last_approval
from release_pipeline.trust.members import KEYS, Trust, need_trust
from release_pipeline.trust.remarks import (
    Remark,
    check_passages,
    check_remarks,
    list_policy_passages,
    list_release_passages,
    list_visible_remarks,
    read_visible_votes,
)
from release_pipeline.verifier.remarks import Remarks

_MOMENT = (1980, 1, 1, 0, 0, 0)  # of every file in the zip
_README = """\
# {subject}: to be looked at, and signed, on a machine of your own

    python sign.py THIS.zip --key YOUR.key        # or an OpenSSH key: id_ed25519, id_ed25519_sk, or the .pub of one in an agent

sign.py is one file that needs Python alone; take it from where you trust it, for this zip could bring a wrong one. It computes
the hash from what is in here, says all that changed (also in changes.txt, next to what it unpacks), asks, and writes a statement
and its signature: send back both.

What counts is {counts}. Everything else (plan.txt, difference.txt, questions.txt, a .yaml) is the site's word for it.
The drafts (draft.*.json) are what is signed, but for name, key and moment, which whoever signs fills in. CONFIDENTIAL.
"""


@dataclass(frozen=True, slots=True)
class _Item:
    """The subject to sign: its kind, name and hash, and of a file its canonical form."""

    what: str
    subject: str
    digest: str
    text: str = ""
    columns: tuple[str, ...] = ()


def write_bundle(site: Site, target: str, output: Path, remarks: Any = None) -> tuple[Path, str]:
    """Write the bundle of a release, a policy file or populations.yaml; returns the file, and the hash that is to be signed.
    `remarks`: a document of remarks on it, as it was read from JSON, that is to be signed with it."""
    check_output(output, endings=(".zip",), overwrite=False, hint=False)
    if Path(target).suffix != ".yaml":
        return _write_candidate(site, find_release(site, target), output, remarks)
    file = find_approvable(site, Path(target))
    policy: Policy | None = None
    if file == site.populations_file:
        if remarks is not None:
            raise WrongUsage("nobody remarks on populations.yaml.", where=target, remedy="Remark on a candidate or a policy.")
        caps, plan = read_caps(site), {"populations.yaml": read_text(file)}
        item = _Item("populations", "populations", caps.hash, caps.text)
    else:
        policy = site.policy(file.stem)
        plan = {"policy.yaml": f"# A copy to read: what is signed is {CANONICAL}.\n{read_policy(file)}"}
        plan["plan.txt"] = _lines(describe_check(Check(make_plan(policy), site.home)))
        item = _Item("policy", policy.policy, policy.canonical_hash(), policy.canonical_json(), tuple(policy.columns))
        plan |= _draft_remarks(remarks, item, list_policy_passages(policy))
    with site.open_registry(read_only=True) as registry:
        trust = need_trust(site, registry)
        if policy is not None and remarks is None:
            check_approvable(policy)  # people need not read what would be refused after they sign it
        texts = {**plan, **_describe_approved(registry, trust, item), CANONICAL: item.text}
    _write(output, item, trust, texts, {})
    return output, item.digest


def _draft_remarks(document: Any, item: _Item, passages: Iterable[str]) -> dict[str, str]:
    """Return the draft in the form that is signed; raises `WrongUsage` unless it is on just this item, and on passages that
    exist."""
    if document is None:
        return {}
    remarks = check_remarks(document)
    if (remarks.subject, remarks.hash) != (item.subject, item.digest):
        raise WrongUsage(
            f"these remarks are on something else than it is now ({item.digest[:12]}).",
            where=item.subject,
            remedy="Look at it as it is now, and remark on that.",
        )
    check_passages(remarks, passages)
    return {REMARKED: canonical_json(remarks.document)}


def _write_candidate(site: Site, release: ReleaseId, output: Path, remarks: Any) -> tuple[Path, str]:
    with site.open_registry(read_only=True) as registry:
        trust, status = need_trust(site, registry), status_of(registry, release)
        check_move(registry, release, APPROVED)
        if status.replaced is not None:
            raise Blocked(f"it was given up for {status.replaced}.", where=str(release), remedy="Export that one.")
        folder, digest = site.candidate(str(release)), str(status.candidate_hash)
        if not is_whole(folder, digest):
            raise Blocked(
                "the candidate's folder is not what was frozen.", where=str(release), remedy="See `verify` of the site."
            )
        policy = policy_of(registry, status.policy_hash)
        texts = _describe_published(registry, release, policy, status.policy_hash)
    item = _Item("candidate", str(release), digest)
    texts |= _draft_remarks(remarks, item, list_release_passages(site, release, digest))
    view = build_internal_view(policy, load_evidence(folder))
    texts["questions.txt"] = _lines(view.decide)
    files = {f"{CANDIDATE}/{name}": folder / name for name in (SUMS, *read_sums(folder, digest))}
    _write(output, item, trust, texts, files)
    return output, digest


def _describe_approved(registry: Registry, trust: Trust, item: _Item) -> dict[str, str]:
    """Return the last approval that still counts, with its signature, and the changes since, as texts by file name."""
    event = find_last_approval(registry, trust, what=item.what, subject=item.subject)
    if event is None:
        return {"difference.txt": "Nothing of it was approved before.\n"}
    last = event.content
    if item.what == "populations":
        was, changes = str(last["text"]), list_changes(json.loads(last["text"]), json.loads(item.text), named=True)
    else:
        old = next(known for known in list_policies(registry.events) if known.hash == last["hash"])
        was, changes = old.text, describe_diff(old.policy, read_canonical(json.loads(item.text), item.columns))
    words = _lines(changes) or "No change since it was approved last.\n"
    return {BEFORE: was, BEFORE_SIGNED: canonical_json(last["signed"]), "difference.txt": words}


def _describe_published(registry: Registry, release: ReleaseId, policy: Policy, digest: str) -> dict[str, str]:
    """Return the policy of the last published release of the series, and the changes since, as texts by file name."""
    statuses = read_statuses(registry.events)
    published = [known for known in statuses.values() if known.package_hash is not None and known.id.policy == release.policy]
    if not published:
        return {"difference.txt": "Nothing of this series was published before.\n"}
    last = max(published, key=lambda known: known.moments[PUBLISHED])
    old = next(known for known in list_policies(registry.events) if known.hash == last.policy_hash)
    words = _lines(describe_diff(old.policy, policy)) or f"{last.id} was published under the same policy ({digest[:12]}).\n"
    return {BEFORE: old.text, "difference.txt": words}


def _write(output: Path, item: _Item, trust: Trust, texts_of_site: Mapping[str, str], files: Mapping[str, Path]) -> None:
    """Write the zip, whole or not at all, readable only by its owner."""
    counts = f"{CANDIDATE}/{SUMS} with the files that it lists" if files else CANONICAL
    about = {"format": FORMAT, "what": item.what, "subject": item.subject}
    draft = {"subject": item.subject, "hash": item.digest, "signer": "", "name": "", "at": "", "why": ""}
    texts = {
        "README.txt": _README.format(subject=item.subject, counts=counts),
        ABOUT: canonical_json(about),
        KEYS: trust.text,
        **texts_of_site,
        **{f"draft.{kind}.json": canonical_json({"kind": kind, **draft}) for kind in DRAFTS[item.what]},
    }
    with appearing(output) as file, zipfile.ZipFile(file, "w") as archive:
        for name in sorted({*texts, *files}):
            info = zipfile.ZipInfo(name, _MOMENT)
            info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o600 << 16
            if name in texts:
                archive.writestr(info, texts[name])
                continue
            with files[name].open("rb") as content, archive.open(info, "w", force_zip64=True) as packed:
                shutil.copyfileobj(content, packed)


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


DEEDS = {"approve": "approved", "return": "returned", "reject": "rejected"}


@dataclass(frozen=True, slots=True)
class Subject:
    """A candidate or a policy as it is now, with its passages and their titles; of a candidate its release."""

    name: str
    hash: str
    passages: Mapping[str, str]
    release: ReleaseId | None = None

    def remark_on(self, entries: Iterable[tuple[str, str]]) -> Remarks:
        """Return remarks on passages of it; raises `WrongUsage` where they have not the form of remarks."""
        return check_remarks(Remarks(self.name, self.hash, tuple(entries)).document)


def find_subject(site: Site, target: str) -> Subject:
    """Return the candidate or policy of the site that a text names: POLICY/RELEASE, or policies/NAME.yaml."""
    if Path(target).suffix == ".yaml":
        file = find_approvable(site, Path(target))
        if file == site.populations_file:
            raise WrongUsage("nobody remarks on populations.yaml.", where=target, remedy="Name a candidate or a policy.")
        policy = site.policy(file.stem)
        return Subject(policy.policy, policy.canonical_hash(), list_policy_passages(policy))
    release = find_release(site, target)
    status = list_statuses(site)[release]
    if status.candidate_hash is None:
        raise Blocked(f"it is {status.state}, and has no candidate.", where=str(release), remedy="See `release-pipeline status`.")
    passages = list_release_passages(site, release, status.candidate_hash)
    return Subject(str(release), status.candidate_hash, passages, release)


def describe_review(site: Site, target: str) -> Iterator[str]:
    """Yield the votes on a candidate and the remarks on it or on a policy, as far as everyone may see them, in lines."""
    subject = find_subject(site, target)
    with site.open_registry(read_only=True) as registry:
        remarks = list_visible_remarks(registry, need_trust(site, registry), subject.name)
        votes = None if subject.release is None else read_visible_votes(registry, subject.release)
    yield f"{subject.name}  hash {subject.hash[:12]}"
    if votes is not None:
        hidden = "" if votes.are_in else "; they are told when all are in"
        yield f"{votes.count} of {votes.needed} votes are in{hidden}"
        for vote in votes.given:
            reason = f": {vote.why}" if vote.why else ""
            yield f"{vote.noted}  {vote.name} {DEEDS[vote.verdict]} it{reason}"
    for remark in remarks:
        yield from _describe_remark(remark, subject)
    if not remarks:
        yield "no remarks that everybody may see"
    yield f"passages: {', '.join(name for name in subject.passages if name) or 'none'}"


def _describe_remark(remark: Remark, subject: Subject) -> Iterator[str]:
    """Yield a remark in lines."""
    title = subject.passages.get(remark.passage, "")
    where = f"{remark.passage}{f' ({title})' if title else ''}" if remark.passage else "the whole"
    older = "" if remark.about == subject.hash else f", as it was before ({remark.about[:12]})"
    yield f"{remark.noted}  {remark.name} ({remark.role}) on {where}{older}:"
    yield from (f"    {line}" for line in remark.text.split("\n"))
