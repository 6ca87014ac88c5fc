"""What is asked of policies: all of them, and one with its faults in place and what it would do. Everybody may look."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from release_pipeline.apps.desk.backend.calls import EVERYBODY, Asked, Call, Document
from release_pipeline.apps.desk.backend.lookups import describe_line, keep, list_lines, read_policies
from release_pipeline.apps.desk.backend.people import NAME, Role
from release_pipeline.apps.door import Refused
from release_pipeline.errors import ReleasePipelineError
from release_pipeline.explore.editing import Examined, Since, examine_text, find_since, find_steward, read_file
from release_pipeline.ledger.looks import find_looks
from release_pipeline.operate.overview import Line
from release_pipeline.policy import Policy
from release_pipeline.policy.documents import Fault
from release_pipeline.policy.plans.plan import describe_claim
from release_pipeline.store.registry import Registry
from release_pipeline.store.site import Site
from release_pipeline.trust.members import Trust, read_trust
from release_pipeline.trust.remarks import list_policy_passages, tell_remarks

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
    """All that a page of a policy shows, of the text that its file has."""
    site, name = asked.site, find_policy(asked)
    try:
        text = read_file(site, name)
        examined = keep(site, ("examined", name, text), lambda: examine_text(site, name, text))
    except ReleasePipelineError as error:  # too large, or no text
        text, examined = "", Examined((Fault(f"policies/{name}.yaml", None, None, "", error.what, error.remedy),))
    policy = examined.policy
    with site.open_registry(read_only=True) as registry:
        trust = read_trust(site, registry)
        since = find_since(registry, trust, name, policy)
        steward = find_steward(site, name, registry.events)
        looks = [look.description for look in find_looks(registry.events, name)]
        remarks = _describe_remarks(asked, registry, trust, name, policy)
    return {
        "name": name,
        "steward": steward,
        "looks": looks,
        "hash": "" if policy is None else policy.canonical_hash(),
        "faults": [asdict(fault) for fault in examined.faults],
        "listing": list(_mark(text, examined.faults)),
        "plan": group_plan(examined.lines) if examined.lines else [],
        "warnings": [words for label, words in _split(examined.lines) if label == "warning"],
        "skeleton": list(examined.skeleton),
        "trouble": examined.trouble,
        "since": _describe_since(since),
        "releases": [describe_line(line) for line in list_lines(site).lines if line.policy == name],
        **remarks,
    }


def find_policy(asked: Asked) -> str:
    """The name of a policy whose file is there, whatever is in it."""
    name = asked.find("name", NAME)
    if asked.site.policy_file(name) not in asked.site.policy_files():
        raise Refused(404, "this site has no policy of that name.")
    return name


def _describe_remarks(asked: Asked, registry: Registry, trust: Trust | None, name: str, policy: Policy | None) -> Document:
    """What people remarked on the policy, and what who asks may still sign of it as it stands in its file."""
    noted = () if trust is None else tell_remarks(registry, trust, name, reader=asked.person.name)
    is_mine = policy is not None and policy.steward == asked.person.name
    may_remark = policy is not None and (is_mine or asked.has(Role.REVIEWER, Role.OFFICER))
    digest = "" if policy is None else policy.canonical_hash()
    draft = asked.drafts.read(asked.person.name, name, digest).remarks if may_remark else ()
    return {
        "remarks": [{**asdict(one), "is_of_now": one.about == digest} for one in noted],
        "draft": {"remarks": [asdict(one) for one in draft]},
        "passages": [one for one in list_policy_passages(policy) if one.count(".") < _DEEP] if may_remark and policy else [],
    }


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
)
