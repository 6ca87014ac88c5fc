"""What is asked of policies: all of them, one with its faults in place and what it would do, and writing its file.

Everybody at the desk may look; only its steward edits a policy, or begins one. What is written here is approved by nobody: it
counts when the officer has signed it, on a machine of their own.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from release_pipeline.desk.backend.calls import EVERYBODY, Asked, Call, Document, allow
from release_pipeline.desk.backend.lookups import describe_line, keep, list_lines, read_policies
from release_pipeline.desk.people import NAME, Role
from release_pipeline.door import Refused
from release_pipeline.errors import ReleasePipelineError, WrongUsage
from release_pipeline.flow.editing import (
    MOST_BYTES,
    ChangedMeanwhile,
    Examined,
    Since,
    check_text,
    examine_text,
    find_since,
    find_steward,
    hash_text,
    read_file,
    save_text,
)
from release_pipeline.flow.exploring.trials import find_looks
from release_pipeline.flow.init import draft_empty
from release_pipeline.flow.policies import Registry
from release_pipeline.flow.reviewing.remarks import list_policy_passages, tell_remarks
from release_pipeline.flow.site import Site
from release_pipeline.flow.status.overview import Line
from release_pipeline.flow.trust.members import Trust, read_trust
from release_pipeline.policy import Policy
from release_pipeline.policy.documents import Fault
from release_pipeline.policy.words import describe_claim

_DIGEST = re.compile(r"[0-9a-f]{64}|")
_MOST_CHANGES = 400  # lines of a difference
_MOST_COMPARED = 5000  # lines of a text: repeated ones take the square of their number
_DEEP = 2  # dots in the path of a passage that can be chosen
_LABEL = 12  # characters at the beginning of a line of a plan


def _list_policies(asked: Asked) -> Document:
    return {"policies": keep(asked.site, "overview", lambda: _describe_policies(asked.site))}


def _describe_policies(site: Site) -> list[Document]:
    found = read_policies(site)
    newest = _find_newest(list_lines(site).lines)
    with site.open_registry(read_only=True) as registry:
        trust = read_trust(site, registry)
        return [
            {
                "name": one.name,
                "has_page": NAME.fullmatch(one.name) is not None,
                "steward": find_steward(site, one.name, registry.events) if one.policy is None else one.policy.steward,
                "faults": len(one.faults),
                **_describe_kind(one.policy),
                "since": _describe_since(find_since(registry, trust, one.name, one.policy)),
                "last": None if (line := newest.get(one.name)) is None else describe_line(line),
            }
            for one in found
        ]


def _describe_kind(policy: Policy | None) -> Document:
    if policy is None:
        return {"population": "", "method": "", "claim": ""}
    return {"population": policy.population, "method": policy.protect.method, "claim": describe_claim(policy)}


def _find_newest(lines: Iterable[Line]) -> dict[str, Line]:
    """Of each policy the release to which something happened last."""
    newest: dict[str, Line] = {}
    for line in lines:
        if line.policy not in newest or line.since > newest[line.policy].since:
            newest[line.policy] = line
    return newest


def _describe_since(since: Since | None) -> Document | None:
    return None if since is None else asdict(since)


def _show_policy(asked: Asked) -> Document:
    name = find_policy(asked)
    try:
        text, digest = read_file(asked.site, name)
    except ReleasePipelineError as error:  # too large, or no text
        fault = Fault(f"policies/{name}.yaml", None, None, "", error.what, error.remedy)
        return {**_describe(asked, name, "", "", Examined((fault,))), "may_edit": False, "why_not": error.what}
    steward = asked.person.name if _may_edit(asked, name) == "" else ""
    examined = keep(
        asked.site, ("examined", name, steward, digest), lambda: examine_text(asked.site, name, text, steward=steward)
    )
    return _describe(asked, name, text, digest, examined)


def _begin_policy(asked: Asked) -> Document:
    """A text to begin a policy with, of a name that is free."""
    name = asked.get("name", most=63).strip()
    if NAME.fullmatch(name) is None:
        raise WrongUsage("this is not a name for a policy.", where=name[:63], remedy="Use lower-case letters, digits, hyphens.")
    _check_free(asked, name)
    text = draft_empty(name, asked.person.name)
    return _describe(asked, name, text, "", _examine(asked, name, text))


def _check_policy(asked: Asked) -> Document:
    name, text = asked.find("name", NAME), _read_body(asked)
    began = asked.find("began", _DIGEST)
    if not began:
        _check_free(asked, name)
    if words := _may_edit(asked, name):
        raise Refused(403, words)
    return _describe(asked, name, text, began, _examine(asked, name, text))


def _save_policy(asked: Asked) -> Document:
    """Written, or why not, with all that the page needs to go on: nothing that somebody wrote is lost."""
    name, text, began = asked.find("name", NAME), _read_body(asked), asked.find("began", _DIGEST)
    if words := _may_edit(asked, name):
        raise Refused(403, words)
    examined = _examine(asked, name, text)
    found = {**_describe(asked, name, text, began, examined), "saved": False}
    if examined.policy is None:
        count = len(examined.faults)
        words = f"it has {count} fault{'s' * (count != 1)}. Nothing was written."
        return {**found, "refusal": _refuse(name, words, "Mend what is marked below, and save again.")}
    try:
        if not began:
            _check_free(asked, name)
        digest = save_text(asked.site, name, text, began=began)
    except ChangedMeanwhile as error:
        now, digest = read_file(asked.site, name)
        return {
            **found,
            "refusal": _refuse(name, error.what, error.remedy),
            "now": {"text": now, "digest": digest, **_compare(now, text)},
        }
    except ReleasePipelineError as error:  # another account may have put something else there
        return {**found, "refusal": _refuse(name, error.what, error.remedy)}
    return {**found, "saved": True, "digest": digest, "unsaved": None}


def _refuse(name: str, what: str, remedy: str) -> Document:
    return {"what": what, "where": f"policies/{name}.yaml", "remedy": remedy, "details": []}


def _compare_file(site: Site, name: str, text: str, digest: str) -> Document | None:
    """What is another line than in the file; None where nothing is, or there is no file to compare with."""
    if not digest:
        return None
    with suppress(ReleasePipelineError):  # whoever reads or saves it says why it cannot be read
        now, there = read_file(site, name)
        if there == digest != hash_text(text):
            return _compare(now, text)
    return None


def _compare(now: str, mine: str) -> Document:
    """What is another line in mine than in the file as it is now; nothing where so many lines would take too long to compare."""
    before, after = now.splitlines(), mine.splitlines()
    if max(len(before), len(after)) > _MOST_COMPARED:
        return {"changes": [], "more": 0, "too_long": _MOST_COMPARED}
    lines = list(difflib.unified_diff(before, after, "the file as it is now", "yours", lineterm="", n=2))
    return {"changes": lines[:_MOST_CHANGES], "more": max(0, len(lines) - _MOST_CHANGES), "too_long": 0}


def _read_body(asked: Asked) -> str:
    if len(asked.body) > 2 * MOST_BYTES:  # ends of lines may be two
        raise WrongUsage(f"a policy here has at most {MOST_BYTES // 1024} KB.", where="the policy", remedy="Nothing was written.")
    return check_text(asked.body)


def _examine(asked: Asked, name: str, text: str) -> Examined:
    return examine_text(asked.site, name, text, steward=asked.person.name)


def find_policy(asked: Asked) -> str:
    """The name of a policy whose file is there, whatever is in it."""
    name = asked.find("name", NAME)
    if asked.site.policy_file(name) not in asked.site.policy_files():
        raise Refused(404, "this site has no policy of that name.")
    return name


def _check_free(asked: Asked, name: str) -> None:
    """Refuse a name that is taken."""
    if asked.site.policy_file(name) in asked.site.policy_files():
        raise WrongUsage(f"the name '{name}' is taken.", where="name", remedy="Choose another one.")
    if words := _may_edit(asked, name):
        raise Refused(403, words)


def _may_edit(asked: Asked, name: str) -> str:
    """Empty where who asks may edit the policy; else why not."""
    if not asked.has(Role.STEWARD):
        return "Stewards edit policies."
    with asked.site.open_registry(read_only=True) as registry:
        steward = find_steward(asked.site, name, registry.events)
    if steward and steward != asked.person.name:
        return f"{steward} is its steward, and alone edits it here."
    if not steward and asked.site.policy_file(name).exists():
        return "Nobody can tell who its steward is: the operator mends its file."
    return ""


def _describe(asked: Asked, name: str, text: str, digest: str, examined: Examined) -> Document:
    """All that a page of a policy shows, of a text that its file has or may get."""
    site, words = asked.site, _may_edit(asked, name)
    with site.open_registry(read_only=True) as registry:
        trust = read_trust(site, registry)
        since = find_since(registry, trust, name, examined.policy)
        steward = find_steward(site, name, registry.events)
        looks = [look.words for look in find_looks(registry.events, name)]
        is_file = bool(digest) and hash_text(text) == digest
        is_approved = _is_file_approved(site, registry, trust, name, text, since)
        remarks = _describe_remarks(asked, registry, trust, name, examined.policy, is_file=is_file)
    lines = [line for line in list_lines(site).lines if line.policy == name]
    return {
        "name": name,
        "text": text,
        "digest": digest,
        "is_new": not digest,
        "unsaved": _compare_file(site, name, text, digest),
        "steward": steward,
        "looks": looks,
        "may_edit": not words,
        "why_not": words,
        "hash": "" if examined.policy is None else examined.policy.canonical_hash(),
        "has_shape": examined.policy is not None and examined.policy.shape is not None,
        "faults": [asdict(fault) for fault in examined.faults],
        "listing": list(_mark(text, examined.faults)) if examined.faults or words else [],
        "plan": group_plan(examined.lines) if examined.lines else [],
        "warnings": [words for label, words in _split(examined.lines) if label == "warning"],
        "skeleton": list(examined.skeleton),
        "trouble": examined.trouble,
        "since": _describe_since(since),
        "is_approved": is_approved,
        "releases": [describe_line(line) for line in lines],
        **remarks,
    }


def _describe_remarks(
    asked: Asked, registry: Registry, trust: Trust | None, name: str, policy: Policy | None, *, is_file: bool
) -> Document:
    """What people remarked on the policy, and what who asks may still sign of it as it stands in its file."""
    noted = () if trust is None else tell_remarks(registry, trust, name, reader=asked.person.name)
    is_mine = policy is not None and policy.steward == asked.person.name
    may_remark = policy is not None and is_file and (is_mine or asked.has(Role.REVIEWER, Role.OFFICER))
    digest = "" if policy is None else policy.canonical_hash()
    draft = asked.drafts.read(asked.person.name, name, digest).remarks if may_remark else ()
    return {
        "remarks": [{**asdict(one), "is_of_now": one.about == digest} for one in noted],
        "draft": {"remarks": [asdict(one) for one in draft]},
        "passages": [one for one in list_policy_passages(policy) if one.count(".") < _DEEP] if may_remark and policy else [],
    }


def _is_file_approved(site: Site, registry: Registry, trust: Trust | None, name: str, text: str, since: Since | None) -> bool:
    """Whether what stands in the file now is what was approved last: whoever saves another text ends that."""
    if since is None:
        return False
    with suppress(ReleasePipelineError):
        if hash_text(text) == read_file(site, name)[1]:
            return since.is_same
    policy = next((one.policy for one in read_policies(site) if one.name == name), None)
    found = find_since(registry, trust, name, policy)
    return found is not None and found.is_same


def _mark(text: str, faults: Sequence[Fault]) -> Iterator[Document]:
    """Each line with its number, and what is wrong in it."""
    found: dict[int, list[Document]] = {}
    for fault in faults:
        if fault.line is not None:
            found.setdefault(fault.line, []).append(asdict(fault))
    lines = text.split("\n")
    for number, line in enumerate(lines[:-1] if lines[-1] == "" and len(lines) not in found else lines, start=1):
        yield {"number": number, "text": line, "faults": found.get(number, [])}


def group_plan(lines: Sequence[str]) -> list[Document]:
    """The plan in blocks: paragraphs with their labels, and what stands in columns as it is."""
    blocks: list[Any] = []
    for place, part in enumerate(_split_blocks(lines)):
        if place == 1:
            blocks.append({"table": "\n".join(part), "rows": []})
            continue
        rows: list[dict[str, Any]] = []
        for label, words in _split(part):
            if label == "warning":
                continue  # they have a place of their own
            if rows and label in ("", rows[-1]["label"]):
                rows[-1]["texts"].append(words)
            else:
                rows.append({"label": label, "texts": [words]})
        blocks.append({"table": "", "rows": rows})
    return blocks


def _split_blocks(lines: Iterable[str]) -> list[list[str]]:
    blocks: list[list[str]] = [[]]
    for line in lines:
        if line:
            blocks[-1].append(line)
        else:
            blocks.append([])
    return blocks


def _split(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        yield line[:_LABEL].strip(), line[_LABEL:]


CALLS = (
    Call("policies", EVERYBODY, _list_policies),
    Call("policy", EVERYBODY, _show_policy),
    Call("begin-policy", allow(Role.STEWARD), _begin_policy),
    Call("check-policy", allow(Role.STEWARD), _check_policy),
    Call("save-policy", allow(Role.STEWARD), _save_policy, changes=True),
)
