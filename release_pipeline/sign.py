"""Sign what you were asked to review, on a machine of your own, offline: python sign.py BUNDLE.zip --key FILE

BUNDLE.zip comes from `release-pipeline review export`. What it says of itself is not believed: the hash that is signed is
computed from the content, and so is what changed. FILE is a key of OpenSSH (private, or the .pub of a key in an agent or a FIDO
token), and ssh-keygen signs with it. It needs Python 3.9 or later, ssh-keygen and nothing else.
Where it is installed, `python -m release_pipeline.sign --write-alone FILE.py` writes it and verify.py, whose curve and careful
reading it uses, as one file. Take that from where you trust it, never with a bundle. The exit code is 0 when a statement was
written, 1 when the bundle is wrong, 2 when nothing was signed for another reason.
"""

from __future__ import annotations

import argparse
import base64
import html
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, cast

from release_pipeline.verify import (
    KEYS,
    MAY_SIGN,
    MOST_TO_PARSE,
    RELEASE,
    SSH_NAMESPACE,
    SUMS,
    VOTES,
    Fault,
    Finding,
    Json,
    Key,
    Remarks,
    Tree,
    WrongUsage,
    canonical_json,
    get,
    hash_remarks,
    hash_ssh_key,
    message_of,
    name_ssh_key,
    open_tree,
    printable,
    read_keys,
    read_remarks,
    read_ssh_key,
    read_ssh_signature,
    read_sums,
    verify_signature,
    verify_statement,
)

#!/usr/bin/env python3

# --- Signing --------------------------------------------------------------------------------------------------------------------


NOT_A_KEY = "this is not a key of OpenSSH, of the kind ed25519 or ed25519-sk"
PATIENCE = 60.0  # seconds for a passphrase or a touch: the caller may hold a lock meanwhile


@dataclass(frozen=True)
class Signer:
    """A key of OpenSSH that ssh-keygen signs with. `file`: the private key, or the .pub of one in an agent or a FIDO token.
    `attended`: somebody can type a passphrase."""

    public: bytes
    file: Path
    attended: bool = True

    @property
    def fingerprint(self) -> str:
        """The fingerprint, as statements name it."""
        return hash_ssh_key(self.public)

    def sign(self, message: bytes, namespace: str = SSH_NAMESPACE) -> str:
        """The SSH signature of a message; `WrongUsage` where ssh-keygen makes none that holds."""
        text = self._ask_ssh_keygen(message, namespace)
        try:
            made = read_ssh_signature(text, namespace)
        except Fault as fault:
            raise WrongUsage(f"ssh-keygen made a signature that cannot be used: {fault.what}") from None
        if made.public != self.public or not verify_signature(self.public[:32], made.tell_signed(message), made.signature):
            raise WrongUsage("the signature by ssh-keygen does not hold, or is by another key")
        return text

    def _ask_ssh_keygen(self, message: bytes, namespace: str) -> str:
        command = [find_ssh_keygen(), "-q", "-Y", "sign", "-f", str(self.file), "-n", namespace]
        # It asks at the terminal, also where a desktop runs; without a session it has no terminal and asks nobody.
        settings = {"SSH_ASKPASS_REQUIRE": "never", **os.environ} if sys.stdin and sys.stdin.isatty() else None
        with subprocess.Popen(  # noqa: S603  a program of the system, and no shell
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=settings, start_new_session=not self.attended
        ) as running:
            try:
                signature, _ = running.communicate(message, timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                running.terminate()  # it gives the terminal its echo back
                raise WrongUsage(f"nobody answered ssh-keygen within {PATIENCE:.0f} seconds; nothing was signed") from None
        if running.returncode:
            raise WrongUsage("ssh-keygen did not sign; its own message says why")
        return signature.decode("ascii", "replace")


def find_ssh_keygen() -> str:
    """The path of ssh-keygen; `WrongUsage` where it is not installed."""
    program = shutil.which("ssh-keygen")
    if program is None:
        raise WrongUsage("ssh-keygen is not installed here: install the client of OpenSSH")
    return program


def read_signer(file: Path, *, attended: bool = True) -> Signer:
    """The signer with the key in a file of OpenSSH, private or .pub."""
    try:
        public = read_ssh_key(_find_ssh_public(file.read_text(encoding="ascii")))
    except (OSError, UnicodeDecodeError):
        raise WrongUsage(f"{file}: there is no such key, or it cannot be read") from None
    except (Fault, ValueError, IndexError):
        raise WrongUsage(f"{file}: {NOT_A_KEY}") from None
    return Signer(public, file.resolve(), attended)


def _find_ssh_public(text: str) -> bytes:
    """The public half in a file of OpenSSH, private (it stands before what is encrypted) or .pub."""
    if not text.startswith("-----BEGIN OPENSSH PRIVATE KEY-----"):
        return base64.b64decode(text.split()[1], validate=True)
    content, parts = base64.b64decode("".join(text.split("-----")[2].split())), list[bytes]()
    content = content.partition(b"openssh-key-v1\0")[2]
    for place in range(5):  # cipher, derivation, its options, how many keys there are, the public one
        size = 0 if place == 3 else int.from_bytes(content[:4], "big")
        parts.append(content[4 : 4 + size])
        content = content[4 + size :]
    return parts[4]


# --- What is in a bundle --------------------------------------------------------------------------------------------------------

ABOUT, CANONICAL, BEFORE, BEFORE_SIGNED = "review.json", "canonical.json", "before.json", "before.signed.json"
CANDIDATE, FORMAT = "candidate", "release-pipeline/review/1"
REMARKED = "remarks.json"  # a draft of remarks, in some bundles
REPORT, EVIDENCE = "report.html", "evidence.json"
_PAGES = (".html", ".htm", ".xhtml", ".xht", ".shtml", ".svg", ".xml")  # what a browser opens
WORDS = ("plan.txt", "difference.txt", "questions.txt")  # the site's, which nothing vouches for
REMARKS = (*WORDS, "policy.yaml", "populations.yaml", "README.txt")
DRAFTS = {"policy": ("policy",), "populations": ("populations",), "candidate": ("approve", "reject")}
MOST_LINES, MOST_BUNDLE = 400, 2**30  # of the site's words; what is computed here is never cut
CHANGES, WHOLE = "changes.txt", "canonical.indented.json"  # computed here, beside what was unpacked
THEIRS, OURS = "| ", "  "  # how lines of the site begin, and how those that are computed here
_SUBJECT = {"policy": re.compile(r"[a-z][a-z0-9-]{0,62}"), "populations": re.compile("populations"), "candidate": RELEASE}


@dataclass(frozen=True)
class Bundle:
    """What was found in a bundle, by its content: `digest` is computed, `now` and `before` are canonical forms as they lie there,
    `files` those of a candidate with the hashes that its list has, and each was compared with it."""

    what: str
    subject: str
    digest: str
    now: Any
    before: Any
    signed_before: Any
    keys: dict[str, Key]
    files: dict[str, str]
    words: dict[str, str]
    remarks: Remarks | None = None


def read_bundle(tree: Tree) -> Bundle:
    """What a bundle has; `Fault` unless everything in it belongs there and agrees."""
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
    words = {name: tree.read(name).decode("utf-8", "backslashreplace") for name in WORDS if name in tree.sizes}
    before, signed = (tree.json(name) if name in tree.sizes else None for name in (BEFORE, BEFORE_SIGNED))
    if signed is not None and get(get(signed, "statement", dict), "hash", str) != tree.digest(BEFORE):
        raise Fault("what it says was approved before is not what that signature is of")
    remarks = _read_draft(tree, subject, digest) if REMARKED in tree.sizes else None
    return Bundle(what, subject, digest, now, before, signed, read_keys(tree.json(KEYS)), files, words, remarks)


def _read_draft(tree: Tree, subject: str, digest: str) -> Remarks:
    """The remarks that are to be signed: on what the bundle has, in the very bytes whose hash is signed."""
    document = tree.json(REMARKED)
    remarks = read_remarks(document)
    if (remarks.subject, remarks.hash) != (subject, digest):
        raise Fault(f"{REMARKED}: these remarks are on something else than its content")
    if tree.digest(REMARKED) != hash_remarks(document):
        raise Fault(f"{REMARKED}: it is not written as it is signed")
    return remarks


def _read_candidate(part: Tree) -> dict[str, str]:
    """The hashes by name; every file is there, and is what the list says."""
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


_NONE = object()  # where nothing stands, not even null
_DECIDES = ("protect", "cap", "population", "person", "review", "gates", "publish", "releases", "suppress")
REPEATED = 40  # weighty changes that are told once more before the question, where there are more changes than this


@dataclass(frozen=True)
class Change:
    """What differs at one place of two canonical forms; `added` says that there was nothing. `line` says it, all of it."""

    path: tuple[str, ...]
    line: str
    added: bool = False


def list_changes(old: Json, new: Json, *, named: bool = False) -> list[str]:
    """What differs between two canonical forms, all of it, the weightiest first. `named` where the first step is a name, as in
    populations.yaml."""
    return [change.line for change in find_changes(old, new, named=named)]


def find_changes(old: Json, new: Json, *, named: bool = False) -> list[Change]:
    """Likewise: single options of what decides stand before long lists, what was there before what is new."""
    place = int(named)

    def weigh(change: Change) -> tuple[bool, bool, bool, int, tuple[str, ...]]:
        rank = _rank(change.path[place] if len(change.path) > place else "")
        return (rank == len(_DECIDES), len(change.path) > place + 2, change.added, rank, change.path)

    return sorted(_compare(old, new, ()), key=weigh)


def _rank(section: str) -> int:
    """How early a section is told: what decides first, in this order."""
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
        line = "" if lines else line  # the same parts in another order are told whole
    if before != after and line:
        yield Change(path, f"{where}: {line}", old is _NONE)


def _count_parts(whole: list[Any]) -> Counter[str]:
    return Counter(canonical_json(part) for part in whole)


def describe_bundle(bundle: Bundle, signer: Signer) -> Iterator[str]:
    """Everything that somebody must see before they sign it: first what the site says, then what was computed here."""
    for name, text in bundle.words.items():
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
    """Every remark that is signed with it, whole."""
    yield f"{len(remarks.entries)} remarks are to be signed in your name, hash {hash_remarks(remarks.document)}:"
    for number, (passage, text) in enumerate(remarks.entries, start=1):
        yield f"{OURS}{number}. on {passage or 'the whole'}:"
        yield from (f"{OURS}   {line}" for line in text.split("\n"))


def write_whole(bundle: Bundle) -> str:
    """The canonical form, indented: what decides first."""
    ordered = sorted(bundle.now, key=lambda name: (_rank(name) if bundle.what != "populations" else 0, name))
    return json.dumps({name: json.loads(canonical_json(bundle.now[name])) for name in ordered}, indent=1)


def describe_changes(bundle: Bundle, signer: Signer) -> Iterator[str]:
    """Every change since what was approved or published before, and who vouches that it was."""
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
    """Who vouches that this is what was approved before: one's own signature, somebody's in the list, or nobody's."""
    if bundle.what == "candidate":
        return "the policy of the last release that was published, as the site gives it"
    try:
        statement = get(bundle.signed_before, "statement", dict)
        mine = {"keys": {get(statement, "name", str): {"role": "officer", "key": name_ssh_key(signer.public)}}}
        if statement.get("signer") == signer.fingerprint:
            found = verify_statement(bundle.signed_before, mine)
        else:
            keys = {key.name: {"role": key.role, "key": name_ssh_key(key.public)} for key in bundle.keys.values()}
            found = verify_statement(bundle.signed_before, {"keys": keys})
        if (found.kind, found.subject) != (bundle.what, bundle.subject):
            raise Fault("it is about something else")
    except Fault:
        return "what the site says was approved before, which NO signature vouches for"
    who = "you signed" if found.signer == signer.fingerprint else f"{found.name} signed (by the list of keys in the bundle)"
    return f"what {who} at {found.at}"


def _quote(lines: list[str]) -> Iterator[str]:
    yield from (f"{THEIRS}{line[:2000]}" for line in lines[:MOST_LINES])
    if len(lines) > MOST_LINES:
        yield f"... and {len(lines) - MOST_LINES} more lines of the site: they are in the folder"


def keep(tree: Tree, folder: Path) -> tuple[Tree, int]:
    """A private copy of a bundle, every byte of it read once: whoever owns the original may change it while it is looked at, and
    what is judged, hashed and shown must be the same. Of files too large to look at, which are counted, only the hash is kept."""
    if tree.faults:
        raise Fault(tree.faults[0])
    if sum(tree.sizes.values()) > 64 * MOST_BUNDLE:
        raise Fault("it is larger than any bundle")
    kept, left, skipped = Tree(lambda name: (folder / name).open("rb"), ""), MOST_BUNDLE, 0
    kept.sizes = dict(tree.sizes)
    for name, size in sorted(tree.sizes.items()):
        if size > min(left, MOST_TO_PARSE) or shutil.disk_usage(folder).free < 2 * size + 2**26:
            kept.remember(name, tree.digest(name))
            skipped += 1
            continue
        left -= size
        _write_private(folder / name, tree.read(name))
    return kept, skipped


def _write_private(file: Path, content: bytes) -> None:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as new:
        new.write(content)


# --- What a page may have -------------------------------------------------------------------------------------------------------

_TAG = re.compile(r"</?([A-Za-z][A-Za-z0-9]*)((?:\s+[A-Za-z][A-Za-z0-9:_-]*(?:=\"[^\"<]*\")?)*)\s*/?>")
_ATTRIBUTE = re.compile(r"([A-Za-z][A-Za-z0-9:_-]*)(?:=\"([^\"<]*)\")?")
_INERT = re.compile(
    "a|abbr|article|aside|b|bdi|bdo|blockquote|body|br|caption|circle|clippath|code|col|colgroup|dd|defs|desc|details|dfn|div|dl|dt"
    "|ellipse|em|figcaption|figure|footer|g|h[1-6]|head|header|hr|html|i|kbd|li|line|lineargradient|main|mark|marker|meta|nav|ol|p"
    "|path|pattern|polygon|polyline|pre|q|rect|s|samp|section|small|span|stop|strong|style|sub|summary|sup|svg|symbol|table|tbody"
    "|td|text|tfoot|th|thead|time|title|tr|tspan|u|ul|var|wbr"
)
_FETCHES = re.compile(
    "on.*|action|background|cite|data|dynsrc|formaction|icon|itemtype|longdesc|lowsrc|manifest|ping|poster|profile|src|srcdoc|srcset"
    "|usemap|xlink:.*|xml:base"
)
_TEXTS = re.compile("aria-.*|data-.*|class|content|id|lang|name|role|title")  # attributes that are no style
_CSS = re.compile(
    r"\\|url\((?!#)|@(?!media\b|page\b|container\b|supports\b)|(?:image|image-set|src|cross-fade|expression)\(", re.IGNORECASE
)
_STYLE = re.compile(r"<style[^>]*>([^<]*)(</style)?", re.IGNORECASE)


def find_active(page: bytes) -> str:
    """The first thing in a page that no reviewers' page of ours has: what could run, load or lead elsewhere, so that it shows
    different things to different people; empty where there is none. Every `<` must begin a tag that is known, wherever it stands,
    so that no reader of HTML sees another tag than this one."""
    try:
        text = page.decode("utf-8")
    except UnicodeDecodeError:
        return "what is not UTF-8"
    if any(ord(c) < 32 and c not in "\n\t\r" for c in text):
        return "a control character"
    text = text[15:] if text[:15].lower() == "<!doctype html>" else text
    at = text.find("<")
    while at >= 0:
        tag = _TAG.match(text, at)
        if tag is None:
            return text[at : at + 60]
        if _is_active(tag):
            return tag[0][:60]
        at = text.find("<", tag.end())
    for css, end in _STYLE.findall(text):
        if not end:
            return "a style with another tag in it"
        if found := _CSS.search(css) or _CSS.search(html.unescape(css)):  # in an <svg> a style has entities
            return f"the style {found[0][:60]}"
    return ""


def _is_active(tag: re.Match[str]) -> bool:
    if not _INERT.fullmatch(tag[1].lower()):
        return True
    found = _ATTRIBUTE.findall(tag[2])
    given = {name.lower(): html.unescape(value).strip() for name, value in found}
    if len(given) < len(found):  # of two with one name a browser takes the first
        return True
    if given.get("http-equiv", "Content-Security-Policy").lower() != "content-security-policy":
        return True
    if not given.get("href", "#").startswith("#") or given.get("charset", "utf-8").lower() != "utf-8":
        return True
    if any(_FETCHES.fullmatch(name) for name in given):
        return True
    return any(_CSS.search(value) for name, value in given.items() if not _TEXTS.fullmatch(name))


# --- The deed -------------------------------------------------------------------------------------------------------------------


def make_statement(bundle: Bundle, signer: Signer, *, verdict: str = "", why: str) -> dict[str, str]:
    """What is to be signed, of a candidate with a `verdict` of VOTES; `WrongUsage` where it would count nowhere."""
    verdict = verdict or DRAFTS[bundle.what][0]
    if verdict != DRAFTS[bundle.what][0] and bundle.what != "candidate":
        raise WrongUsage(f"a {bundle.what} is not {'returned' if verdict == 'return' else 'rejected'}: do not sign it")
    if verdict in ("reject", "return") and not why.strip():
        raise WrongUsage(f"a {'rejection' if verdict == 'reject' else 'return'} needs its reason: add --why 'REASON'")
    if len(why) > 500 or not (why or " ").isprintable():
        raise WrongUsage("--why: a reason is one line of at most 500 characters")
    return _fill_in(bundle, signer, verdict, bundle.digest, why)


def make_remarks(bundle: Bundle, signer: Signer, remarks: Remarks) -> dict[str, str]:
    """The statement of the remarks in a bundle, to be signed beside the vote, or alone."""
    return _fill_in(bundle, signer, "remarks", hash_remarks(remarks.document), "")


def _fill_in(bundle: Bundle, signer: Signer, kind: str, digest: str, why: str) -> dict[str, str]:
    """The seven fields of a statement, by somebody who may make it."""
    me = next((key for key in bundle.keys.values() if key.public == signer.public), None)
    if me is None or me.role not in MAY_SIGN[kind]:
        found = "in no list of this site" if me is None else f"that of a {me.role}"
        raise WrongUsage(
            f"this needs the key of the {' or '.join(MAY_SIGN[kind])}, and yours ({signer.fingerprint[:16]}...) is {found}"
        )
    if kind in VOTES and bundle.now.get("steward") == me.name:
        raise WrongUsage(f"{me.name} is the steward of the policy, and no steward reviews")
    at = datetime.now(timezone.utc).isoformat(timespec="seconds")  # noqa: UP017  Python 3.9
    parts = {"kind": kind, "subject": bundle.subject, "hash": digest, "signer": signer.fingerprint, "name": me.name}
    return {**parts, "at": at, "why": why.strip()}


def write_signed(statement: dict[str, str], signature: str, output: Path) -> None:
    """The statement, and its signature beside it: two files, as ssh-keygen wants them. Neither replaces another."""
    _write_new(output, message_of(statement))
    _write_new(signature_file(output), signature.encode())


def _write_new(file: Path, content: bytes) -> None:
    try:
        with os.fdopen(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644), "wb") as new:
            new.write(content)
    except OSError as error:
        raise WrongUsage(f"{file}: it cannot be written: {error.strerror}") from None


def signature_file(statement: Path) -> Path:
    """Where the signature of a statement lies."""
    return statement.with_name(f"{statement.name}.sig")


def remarks_file(statement: Path) -> Path:
    """Where the statement of remarks lies that was signed beside another one."""
    return statement.with_name(f"{statement.stem}.remarks.json")


def document_file(statement: Path) -> Path:
    """Where the document lies that a statement of remarks is of."""
    return statement.with_name(f"{statement.stem}.document.json")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of signing, for this file alone and for the command line of the whole."""
    parser.add_argument("bundle", type=Path, metavar="BUNDLE.zip", help="what `review export` wrote")
    parser.add_argument(
        "--key", type=Path, required=True, metavar="FILE", help="your OpenSSH key: private, or .pub of an agent's or token's"
    )
    deeds = parser.add_mutually_exclusive_group()
    deeds.add_argument("--reject", action="store_true", help="reject the candidate for good, in place of approving it")
    deeds.add_argument(
        "--return", action="store_true", dest="give_back", help="return the candidate with reasons, in place of approving it"
    )
    deeds.add_argument("--remarks-only", action="store_true", help="sign the remarks in the bundle, and nothing else")
    parser.add_argument("--why", default="", help="a remark, or the reason of a return or rejection, signed with it")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="STATEMENT.json", help="where to write the statement (default: here)"
    )
    parser.add_argument("--yes", action="store_true", help="do not ask: you have seen what is in the bundle")


def sign_bundle(options: argparse.Namespace) -> None:
    """Show a bundle, ask, and write what was signed; `WrongUsage` or `Fault` in words when nothing was signed."""
    signer = read_signer(options.key)
    folder = Path(tempfile.mkdtemp(prefix="review-"))
    try:
        with open_tree(options.bundle) as tree:
            kept, skipped = keep(tree, folder)
        bundle = read_bundle(kept)
        deeds = _list_deeds(options, bundle, signer)
        for file in (file for output, statement in deeds for file in _list_outputs(output, statement)):
            if file.exists() or not file.parent.is_dir():
                raise WrongUsage(f"{file}: {'it is there already' if file.exists() else 'its folder does not exist'}")
        lines = "".join(f"{make_plain(line)}\n" for line in describe_changes(bundle, signer))
        _write_private(folder / CHANGES, lines.encode())
        _write_private(folder / WHOLE, f"{write_whole(bundle)}\n".encode())
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    for line in describe_bundle(bundle, signer):
        _show(line)
    _show(
        f"unpacked for you alone, confidential, yours to delete: {folder}" + (f" ({skipped} large files not)" if skipped else "")
    )
    _show(f"computed here and the same as above: {CHANGES} and {WHOLE} in it")
    if bundle.what == "candidate":
        _show(f"the reviewers' page: {folder / CANDIDATE / REPORT}")
    for _, statement in deeds:
        why = f", why: {statement['why']}" if statement["why"] else ""
        _show(f"to be signed by {statement['name']}: {statement['kind']} of {bundle.subject}{why}")
    if not options.yes:
        _ask(bundle.digest)
    signed = [(output, statement, signer.sign(message_of(statement))) for output, statement in deeds]
    for output, statement, signature in signed:
        write_signed(statement, signature, output)
        if statement["kind"] == "remarks" and bundle.remarks is not None:
            _write_new(document_file(output), canonical_json(bundle.remarks.document).encode())
    for output, statement in deeds:
        *most, last = map(str, _list_outputs(output, statement))
        _show(f"{', '.join(most)} and {last}: signed; send them back, to be imported with `review import`")


def _list_deeds(options: argparse.Namespace, bundle: Bundle, signer: Signer) -> list[tuple[Path, dict[str, str]]]:
    """The statements that are to be signed, and where each is written: the vote or approval, and remarks, if there are any."""
    if options.remarks_only and (bundle.remarks is None or options.why):
        raise WrongUsage("--remarks-only: there are no remarks in the bundle" if not options.why else "--why is of a vote")
    deeds: list[tuple[Path, dict[str, str]]] = []
    if not options.remarks_only:
        verdict = "reject" if options.reject else "return" if options.give_back else ""
        statement = make_statement(bundle, signer, verdict=verdict, why=options.why)
        given = Path(f"{statement['kind']}-{bundle.digest[:8]}-{statement['name']}.json")
        deeds.append((options.output or given, statement))
    if bundle.remarks is not None:
        statement = make_remarks(bundle, signer, bundle.remarks)
        alone = options.output or Path(f"remarks-{bundle.digest[:8]}-{statement['name']}.json")
        deeds.append((remarks_file(deeds[0][0]) if deeds else alone, statement))
    return deeds


def _list_outputs(output: Path, statement: dict[str, str]) -> list[Path]:
    """The files of one signed statement."""
    return [output, signature_file(output), *([document_file(output)] if statement["kind"] == "remarks" else [])]


def _ask(digest: str) -> None:
    """Go on only for somebody who types the hash's beginning."""
    if not sys.stdin.isatty():
        raise WrongUsage("nothing was signed: there is nobody to ask. --yes says that you have seen it")
    try:
        typed = input("type the first 8 characters of the hash to sign, anything else not to: ").strip()
    except EOFError:  # Ctrl-D
        typed = ""
    if typed != digest[:8]:
        raise WrongUsage("nothing was signed")


def make_plain(line: str) -> str:
    """All of a line, made so that it cannot play tricks on a terminal; `printable` alone cuts it."""
    return "".join(printable(line[start : start + 1000]) for start in range(0, len(line), 1000))


def _show(line: str) -> None:
    """Print a line. On a terminal a long one is broken here, so that every piece begins as it does: the terminal would begin
    at the edge, where a line of the site could pass for one of ours."""
    coding = sys.stdout.encoding or "ascii"
    start, text = next(((sign, line[2:]) for sign in (THEIRS, OURS) if line.startswith(sign)), ("", line))
    text = make_plain(text).encode(coding, "backslashreplace").decode(coding)
    wide = max(len(text), 1)
    if start and sys.stdout.isatty():
        wide = max(20, shutil.get_terminal_size().columns - 3) // (1 if text.isascii() else 2)
    for at in range(0, max(len(text), 1), wide):
        print(start + text[at : at + wide], flush=True)


_IMPORTS = re.compile(r"^from release_pipeline.verify import \([^)]*\)\n", re.MULTILINE)


def join_sources() -> str:
    """This file and verify.py as one that runs alone. A test runs it, and that neither hides a name of the other."""
    theirs, ours = (inspect.getsource(sys.modules[part.__module__]) for part in (Finding, Signer))
    if theirs == ours:  # it is the one file
        return ours
    theirs = theirs.partition('\nif __name__ == "__main__":')[0].partition("from __future__")
    head, _, rest = ours.partition("from __future__ import annotations\n")
    return f"{head}{theirs[1]}{theirs[2]}\n{_IMPORTS.sub('', rest)}"


def _write_alone(file: Path) -> None:
    try:
        file.write_text(join_sources(), encoding="utf-8")
    except OSError as error:
        raise WrongUsage(f"{file}: it cannot be written: {error.strerror}") from None


def main(arguments: list[str] | None = None) -> int:
    """Sign one bundle; give the exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    parser = argparse.ArgumentParser(prog="sign.py", description="Look at what you are asked to sign, offline, and sign it.")
    add_arguments(parser)
    parser.epilog = "--write-alone FILE.py, and nothing else, writes this program as one file."
    try:
        if given[:1] == ["--write-alone"] and len(given) == 2:
            _write_alone(Path(given[1]))
        else:
            sign_bundle(parser.parse_args(given))
    except (WrongUsage, Fault) as error:
        print(printable(error.what), file=sys.stderr)
        return 2 if isinstance(error, WrongUsage) else 1
    except KeyboardInterrupt:
        print("stopped; nothing was signed", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
