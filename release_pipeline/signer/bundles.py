"""Reads a bundle, and describes the subject to sign and its changes since the last approval."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from release_pipeline.signer.keys import Signer
from release_pipeline.signer.pages import find_active
from release_pipeline.verifier.documents import NAME, RELEASE, Fault, Json, canonical_json, get
from release_pipeline.verifier.remarks import Remarks, hash_remarks, read_remarks
from release_pipeline.verifier.statements import Key, name_ssh_key, read_keys, verify_statement
from release_pipeline.verifier.trees import KEYS, MOST_TO_PARSE, SUMS, Tree, read_sums

ABOUT, CANONICAL, BEFORE, BEFORE_SIGNED = "review.json", "canonical.json", "before.json", "before.signed.json"
CANDIDATE, FORMAT = "candidate", "release-pipeline/review/1"
REMARKED = "remarks.json"  # a draft of remarks, in some bundles
REPORT, EVIDENCE = "report.html", "evidence.json"
_PAGES = (".html", ".htm", ".xhtml", ".xht", ".shtml", ".svg", ".xml")  # that a browser opens
WORDS = ("plan.txt", "difference.txt", "questions.txt")  # texts of the site, which no hash covers
REMARKS = (*WORDS, "policy.yaml", "populations.yaml", "README.txt")
DRAFTS: Mapping[str, tuple[str, ...]] = {
    "policy": ("policy",),
    "populations": ("populations",),
    "candidate": ("approve", "reject"),
}
MOST_LINES, MOST_BUNDLE = 400, 2**30  # of the site's texts; what is computed here is never cut
CHANGES, WHOLE = "changes.txt", "canonical.indented.json"  # computed here, next to what was unpacked
THEIRS, OURS = "| ", "  "  # the beginnings of lines from the site, and of lines that are computed here
_SUBJECT = {"policy": NAME, "populations": re.compile("populations"), "candidate": RELEASE}


@dataclass(frozen=True)
class Bundle:
    """The content of a bundle: `digest` is computed, `now` and `before` are its canonical forms,
    `files` the hashes of a candidate's files, each compared with its list of sums, and `site_texts`
    texts of the site that no hash covers."""

    what: str
    subject: str
    digest: str
    now: Any
    before: Any
    signed_before: Any
    keys: dict[str, Key]
    files: dict[str, str]
    site_texts: dict[str, str]
    remarks: Remarks | None = None


def read_bundle(tree: Tree) -> Bundle:
    """Return the content of a bundle; raises `Fault` unless everything in it belongs there and agrees."""
    about = tree.json(ABOUT)
    form = get(about, "format", str)
    if form != FORMAT:
        raise Fault(f"its format is not {FORMAT}: take a later sign.py")
    what = get(about, "what", str)
    if what not in DRAFTS:
        raise Fault("it is about nothing that is signed so")
    subject, files = get(about, "subject", _SUBJECT[what]), dict[str, str]()
    now: Json
    if what == "candidate":
        part = tree.under(CANDIDATE)
        digest, files = part.digest(SUMS), _read_candidate(part)
        evidence = part.json(EVIDENCE)
        if get(evidence, "release", str) != subject:
            raise Fault("the candidate in it is of another release than it says")
        now = get(evidence, "policy", dict)
    else:
        digest, now = tree.digest(CANONICAL), tree.json(CANONICAL)
        if not isinstance(now, dict) or (what == "policy" and now.get("policy") != subject):
            raise Fault("the policy in it is another one than it says")
    for kind in DRAFTS[what]:
        draft = tree.json(f"draft.{kind}.json")
        if [get(draft, name, str) for name in ("kind", "subject", "hash")] != [kind, subject, digest]:
            raise Fault("a draft in it is of something else than its content")
    known = {ABOUT, CANONICAL, BEFORE, BEFORE_SIGNED, KEYS, REMARKED, *REMARKS, *(f"draft.{kind}.json" for kind in DRAFTS[what])}
    known |= {f"{CANDIDATE}/{name}" for name in (SUMS, *files)}
    if strange := sorted(set(tree.sizes) - known):
        raise Fault(f"{strange[0][:200]}: it does not belong into a bundle")
    site_texts = {name: tree.read(name).decode("utf-8", "backslashreplace") for name in WORDS if name in tree.sizes}
    before, signed = (tree.json(name) if name in tree.sizes else None for name in (BEFORE, BEFORE_SIGNED))
    if signed is not None and get(get(signed, "statement", dict), "hash", str) != tree.digest(BEFORE):
        raise Fault("what it says was approved before is not what that signature is of")
    remarks = _read_draft(tree, subject, digest) if REMARKED in tree.sizes else None
    return Bundle(what, subject, digest, now, before, signed, read_keys(tree.json(KEYS)), files, site_texts, remarks)


def _read_draft(tree: Tree, subject: str, digest: str) -> Remarks:
    """Return the remarks to sign: on the bundle's subject, in the very bytes whose hash is signed."""
    document = tree.json(REMARKED)
    remarks = read_remarks(document)
    if (remarks.subject, remarks.hash) != (subject, digest):
        raise Fault(f"{REMARKED}: these remarks are on something else than its content")
    if tree.digest(REMARKED) != hash_remarks(document):
        raise Fault(f"{REMARKED}: it is not written as it is signed")
    return remarks


def _read_candidate(part: Tree) -> dict[str, str]:
    """Return the hashes of a candidate's files by name; raises `Fault` unless every file has the hash in its list of sums."""
    listed = read_sums(part)
    for name, digest in listed.items():
        if part.digest(name) != digest:
            raise Fault(f"{CANDIDATE}/{name}: its content is not what {SUMS} says")
    if set(part.sizes) != {SUMS, *listed} or REPORT not in listed:
        raise Fault(f"the files of the candidate are not those of its {SUMS}")
    for name in listed:
        if name.lower().endswith(_PAGES) and (active := find_active(part.read(name))):
            raise Fault(
                f"{CANDIDATE}/{name}: it has {active!r}, which no page of ours has: it could run, load or lead elsewhere and show"
                " other people other things. Do not open it, and ask the operator where it comes from"
            )
    return listed


_NONE = object()  # where there is no value, not even null
_DECIDES = ("protect", "cap", "population", "person", "review", "gates", "publish", "releases", "suppress")
REPEATED = 40  # weighty changes that are shown again before the question, where there are more changes than this


@dataclass(frozen=True)
class Change:
    """A difference at one path of two canonical forms, all of it in `line`; `added`: there was nothing before."""

    path: tuple[str, ...]
    line: str
    added: bool = False


def list_changes(old: Json, new: Json, *, named: bool = False) -> list[str]:
    """Return all differences between two canonical forms, the weightiest first. `named`: the first step of a path is a name, as
    in populations.yaml."""
    return [change.line for change in find_changes(old, new, named=named)]


def find_changes(old: Json, new: Json, *, named: bool = False) -> list[Change]:
    """Return the differences in order: single options that decide before long lists, removed or changed parts before new ones."""
    level = int(named)

    def weigh(change: Change) -> tuple[bool, bool, bool, int, tuple[str, ...]]:
        rank = _rank(change.path[level] if len(change.path) > level else "")
        return (rank == len(_DECIDES), len(change.path) > level + 2, change.added, rank, change.path)

    return sorted(_compare(old, new, ()), key=weigh)


def _rank(section: str) -> int:
    """Return the position of a section in the listing: the deciding ones first."""
    return _DECIDES.index(section) if section in _DECIDES else len(_DECIDES)


def _compare(old: Any, new: Any, path: tuple[str, ...]) -> Iterator[Change]:
    sides = [side for side in (old, new) if side is not _NONE]
    if all(isinstance(side, dict) for side in sides) and any(sides):
        was, now = (cast("dict[str, Any]", side) if isinstance(side, dict) else {} for side in (old, new))
        for name in sorted({*was, *now}):
            yield from _compare(was.get(name, _NONE), now.get(name, _NONE), (*path, name))
        return
    before, after = ("nothing" if side is _NONE else canonical_json(side) for side in (old, new))
    where, line = ".".join(path), f"{before} -> {after}"
    if isinstance(old, list) and isinstance(new, list) and len(line) > 200:
        left, come = _count_parts(cast("list[Any]", old)), _count_parts(cast("list[Any]", new))
        lines = [f"without {part}" for part in (left - come).elements()] + [
            f"and now {part}" for part in (come - left).elements()
        ]
        yield from (Change(path, f"{where}: {part}") for part in lines)
        line = "" if lines else line  # the same parts in another order are shown whole
    if before != after and line:
        yield Change(path, f"{where}: {line}", old is _NONE)


def _count_parts(whole: list[Any]) -> Counter[str]:
    return Counter(canonical_json(part) for part in whole)


def describe_bundle(bundle: Bundle, signer: Signer) -> Iterator[str]:
    """Yield everything that somebody must see before they sign: first the site's texts, then what was computed here."""
    for name, text in bundle.site_texts.items():
        yield f"--- {name}: in the words of the site, every line after '{THEIRS.strip()}'; nothing vouches for them ---"
        yield from _quote(text.split("\n"))
    yield "=== computed here, from what is signed ==="
    if bundle.what == "candidate":
        yield f"the candidate {bundle.subject}, {len(bundle.files)} files, each with the hash that the list has:"
        yield from (f"{OURS}{digest}  {name}" for name, digest in sorted(bundle.files.items()))
    else:
        yield f"{'the policy ' if bundle.what == 'policy' else ''}{bundle.subject}, the whole of what counts:"
        yield from (f"{OURS}{line}" for line in write_whole(bundle).split("\n"))
    yield from describe_changes(bundle, signer)
    if bundle.remarks is not None:
        yield from describe_remarks(bundle.remarks)
    yield f"hash  {bundle.digest}"


def describe_remarks(remarks: Remarks) -> Iterator[str]:
    """Yield every remark that is signed with it, whole."""
    yield f"{len(remarks.entries)} remarks are to be signed in your name, hash {hash_remarks(remarks.document)}:"
    for number, (passage, text) in enumerate(remarks.entries, start=1):
        yield f"{OURS}{number}. on {passage or 'the whole'}:"
        yield from (f"{OURS}   {line}" for line in text.split("\n"))


def write_whole(bundle: Bundle) -> str:
    """Return the canonical form, indented, the deciding sections first."""
    ordered = sorted(bundle.now, key=lambda name: (_rank(name) if bundle.what != "populations" else 0, name))
    return json.dumps({name: json.loads(canonical_json(bundle.now[name])) for name in ordered}, indent=1)


def describe_changes(bundle: Bundle, signer: Signer) -> Iterator[str]:
    """Yield every change since what was approved or published before, and who vouches for that earlier version."""
    if bundle.before is None:
        yield "nothing of it was approved or published before, says the site: there is nothing to compare it with"
        return
    yield f"compared with {_describe_before(bundle, signer)}:"
    named = bundle.what == "populations"
    changes = find_changes(bundle.before, bundle.now, named=named)
    yield from (f"{OURS}{change.line}" for change in changes) if changes else (f"{OURS}no change",)
    if len(changes) > REPEATED:
        weighty = [change for change in changes if named or _rank(change.path[0] if change.path else "") < len(_DECIDES)]
        yield f"these were {len(changes)} changes, {len(weighty)} of what decides; the weightiest once more:"
        yield from (f"{OURS}{change.line}" for change in weighty[:REPEATED])


def _describe_before(bundle: Bundle, signer: Signer) -> str:
    """Return who signed what was approved before: the signer, somebody in the list, or none."""
    if bundle.what == "candidate":
        return "the policy of the last release that was published, as the site gives it"
    try:
        statement = get(bundle.signed_before, "statement", dict)
        mine = {"keys": {get(statement, "name", str): {"role": "officer", "key": name_ssh_key(signer.public)}}}
        if statement.get("signer") == signer.fingerprint:
            verified = verify_statement(bundle.signed_before, mine)
        else:
            keys = {key.name: {"role": key.role, "key": name_ssh_key(key.public)} for key in bundle.keys.values()}
            verified = verify_statement(bundle.signed_before, {"keys": keys})
        if (verified.kind, verified.subject) != (bundle.what, bundle.subject):
            raise Fault("it is about something else")
    except Fault:
        return "what the site says was approved before, which NO signature vouches for"
    who = "you signed" if verified.signer == signer.fingerprint else f"{verified.name} signed (by the list of keys in the bundle)"
    return f"what {who} at {verified.at}"


def _quote(lines: list[str]) -> Iterator[str]:
    yield from (f"{THEIRS}{line[:2000]}" for line in lines[:MOST_LINES])
    if len(lines) > MOST_LINES:
        yield f"... and {len(lines) - MOST_LINES} more lines of the site: they are in the folder"


def keep(tree: Tree, folder: Path) -> tuple[Tree, int]:
    """Return a private copy of a bundle, every byte of it read once: its owner may change it meanwhile, and what is judged,
    hashed and shown must be the same. Of files too large to show, whose number is returned, only the hash is kept."""
    if tree.faults:
        raise Fault(tree.faults[0])
    if sum(tree.sizes.values()) > 64 * MOST_BUNDLE:
        raise Fault("it is larger than any bundle")
    copy, left, skipped = Tree(lambda name: (folder / name).open("rb"), ""), MOST_BUNDLE, 0
    copy.sizes = dict(tree.sizes)
    for name, size in sorted(tree.sizes.items()):
        if size > min(left, MOST_TO_PARSE) or shutil.disk_usage(folder).free < 2 * size + 2**26:
            copy.remember(name, tree.digest(name))
            skipped += 1
            continue
        left -= size
        write_private(folder / name, tree.read(name))
    return copy, skipped


def write_private(file: Path, content: bytes) -> None:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as new:
        new.write(content)
