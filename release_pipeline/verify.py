#!/usr/bin/env python3
"""Check a published package or an auditor's dossier, offline: python verify.py [PATH] [--officer FINGERPRINT]

PATH is a folder or a zip file of one; without it, the folder that this file lies in. This file alone does it: Python 3.9 or later
and nothing else. It is in every dossier; but who fears the sender takes it from the publisher, for a sender can change it too.
Every line says what was checked (ok), what is wrong (FAIL) or what only a person can judge (note). The exit code is 0 when
nothing failed, 1 when something did or the package was retracted, 2 when PATH is neither.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import io
import json
import math
import os
import re
import stat
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, BinaryIO, TypedDict

# --- Ed25519 after RFC 8032: verification alone, where nothing is secret, so nothing need take constant time --------------------

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493  # the order of BASE
D = -121665 * pow(121666, -1, P) % P
ROOT = pow(2, (P - 1) // 4, P)  # of -1
Point = tuple[int, int, int, int]  # X, Y, Z, T with x = X/Z, y = Y/Z, xy = T/Z
ZERO: Point = (0, 1, 1, 0)


def _add(p: Point, q: Point) -> Point:
    """The sum; also of a point with itself, for the formula is complete."""
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % P, (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * p[3] * q[3] * D % P, 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def _decode(encoded: bytes) -> Point | None:
    """The point, or None if there is none or if this is not the one encoding of it."""
    sign, y = divmod(int.from_bytes(encoded, "little"), 2**255)
    if y >= P:
        return None
    u, v = (y * y - 1) % P, (D * y * y + 1) % P
    x = u * pow(v, 3, P) * pow(u * pow(v, 7, P), (P - 5) // 8, P) % P
    if (v * x * x - u) % P:
        x = x * ROOT % P
    if (v * x * x - u) % P or (x == 0 and sign):
        return None
    x = x if x % 2 == sign else P - x
    return x, y, 1, x * y % P


def _encode(p: Point) -> bytes:
    inverse = pow(p[2], -1, P)
    return (p[1] * inverse % P + (p[0] * inverse % P % 2 << 255)).to_bytes(32, "little")


BASE = _decode((4 * pow(5, -1, P) % P).to_bytes(32, "little")) or ZERO


def read_point(public: bytes) -> Point | None:
    """The point of a public key; None if there is none, in this encoding, or if it is of small order, which signs any message."""
    a = _decode(public) if len(public) == 32 else None
    if a is None:
        return None
    eight = _add(a, a)
    for _ in range(2):
        eight = _add(eight, eight)
    return None if _encode(eight) == _encode(ZERO) else a


def verify_signature(public: bytes, message: bytes, signature: bytes) -> bool:
    """Whether the Ed25519 signature is of the message by the key; strictly: of every signature there is one form that passes.

    Refused are s >= L, other encodings of the key or of R than the one, and keys of small order, which sign any message.
    """
    a, r, s = read_point(public), signature[:32], int.from_bytes(signature[32:], "little")
    if a is None or len(signature) != 64 or s >= L:
        return False
    k = int.from_bytes(hashlib.sha512(r + public + message).digest(), "little") % L
    minus, result = (P - a[0], a[1], 1, P - a[3]), ZERO
    summands = (None, minus, BASE, _add(BASE, minus))
    for bit in range(L.bit_length() - 1, -1, -1):  # sB - kA, both products at once
        result, summand = _add(result, result), summands[2 * (s >> bit & 1) + (k >> bit & 1)]
        result = _add(result, summand) if summand else result
    return _encode(result) == r  # as bytes, so another encoding of R does not pass


# --- What was found -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Finding:
    """One line: level is "ok", "FAIL" or "note"; words are printable and say it all, what was looked at first, up to a colon."""

    level: str
    words: str

    def __str__(self) -> str:
        return f"{self.level:<4}  {self.words}"

    @property
    def name(self) -> str:
        """What was looked at: a file, an event, a population; LOOSE where the words begin with no name."""
        name, colon, _ = self.words.partition(": ")
        return name if colon and name != _LOOSE else LOOSE

    def to_json(self) -> CheckView:
        """The line for a script."""
        passed = {"ok": True, "FAIL": False}.get(self.level)
        return {"name": self.name, "level": self.level, "passed": passed, "words": self.words}


class CheckView(TypedDict):
    """One line for a script."""

    name: Annotated[str, "what was looked at: a file, or what is in it"]
    level: Annotated[str, "pattern:^(ok|FAIL|note)$", "ok, FAIL, or note for what only a person can judge"]
    passed: Annotated[bool | None, "true for ok, false for FAIL, null for a note"]
    words: Annotated[str, "the line, as people read it"]


class VerificationView(TypedDict):
    """What `--json` prints."""

    format: Annotated[str, "pattern:^release-pipeline/verify/1$", "the format and its version"]
    path: Annotated[str, "what was checked, as it was named"]
    kind: Annotated[str, "pattern:^(package|dossier|site)?$", "package, dossier or site; empty where it cannot even be told"]
    ok: Annotated[bool, "whether nothing failed: with it the exit code is 0, else 1"]
    failed: Annotated[int, "how many checks failed"]
    fingerprint: Annotated[str | None, "that of the officer whom everything stands on; null where none is told"]
    officers: Annotated[list[str], "the fingerprints of every officer who was met, earlier ones of the chain included"]
    given: Annotated[list[str], "the fingerprints that they were compared with: --officer, or what a site pins"]
    compared: Annotated[bool, "whether anybody compared: if not, `ok` says that it holds together, not whose it is"]
    release: Annotated[str | None, "the release in it; null for a site"]
    package_hash: Annotated[str | None, "SHA-256 of the package's list of sums; null for a site"]
    checks: Annotated[list[CheckView], "everything that was checked, in order"]


@dataclass
class Verification:
    """What was checked and what was found. `kind`: package, dossier or site; `officers`: the fingerprints of officers that were
    met, the package's own first; `given`: those that they were compared with; `release` and `package_hash` (the SHA-256 of
    the list of sums) are empty for a site, and where the package does not tell."""

    path: str
    kind: str = ""
    given: list[str] = field(default_factory=list)
    officers: list[str] = field(default_factory=list)
    release: str = ""
    package_hash: str = ""
    findings: list[Finding] = field(default_factory=list)

    @property
    def failed(self) -> int:
        """How many checks failed."""
        return sum(finding.level == "FAIL" for finding in self.findings)

    @property
    def verdict(self) -> str:
        """The last line."""
        return (
            f"NOT verified: {self.failed} failed."
            if self.failed
            else f"Verified: nothing failed.{'' if self.given else UNCOMPARED}"
        )

    def to_json(self) -> VerificationView:
        """The document for a script, release-pipeline/verify/1."""
        return {
            "format": "release-pipeline/verify/1",
            "path": self.path,
            "kind": self.kind,
            "ok": not self.failed,
            "failed": self.failed,
            "fingerprint": self.officers[0] if self.officers else None,
            "officers": self.officers,
            "given": self.given,
            "compared": bool(self.given),
            "release": self.release or None,
            "package_hash": self.package_hash or None,
            "checks": [finding.to_json() for finding in self.findings],
        }


class WrongUsage(ValueError):
    """The path or the fingerprint that was given cannot be meant; `what` says why."""

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(what)


_LOOSE, LOOSE = "signed by nobody and in no chain, so the word of who sent it", "other files"
UNCOMPARED = " But nobody compared the officer's fingerprint: get it from the publisher, and name it with --officer."


class Fault(Exception):
    """Something is not as it must be; `what` says what, in words."""

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(what)


def _printable(words: str) -> str:
    """One line, which cannot play tricks on a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in words[:2000])


class _Report:
    def __init__(self, officer: str | Collection[str] | None) -> None:
        self.findings: list[Finding] = []
        self._officers, self._told = _list_officers(officer), set[str]()
        self.officers: list[str] = []
        if not all(_HEX.fullmatch(fingerprint) for fingerprint in self._officers):
            raise WrongUsage("--officer: a fingerprint is 64 digits from 0 to 9 and a to f; `key new` and `trust` print it.")

    def __call__(self, level: str, words: str) -> None:
        self.findings.append(Finding(level, _printable(words)))

    @contextmanager
    def about(self, name: str) -> Iterator[None]:
        """A fault in the block becomes a line about `name`."""
        try:
            yield
        except Fault as fault:
            self("FAIL", f"{name}: {fault.what}")

    def judge_officer(self, fingerprint: str, where: str) -> None:
        """Once for each: the officer must be one who was named; if none was, a person must compare."""
        words = f"{where}: the officer's fingerprint is {fingerprint}"
        if fingerprint not in self._told and self._officers:
            known = fingerprint in self._officers
            self("ok" if known else "FAIL", f"{words}, {'as it was given' if known else 'which is not the one that was given'}")
        elif fingerprint not in self._told:
            self("note", f"{words}; everything stands on it: compare it with what the publisher tells by another channel")
        if fingerprint not in self._told:
            self.officers.append(fingerprint)
        self._told.add(fingerprint)


# --- JSON that was written by somebody else -------------------------------------------------------------------------------------

_HEX, _NAME = re.compile(r"[0-9a-f]{64}"), re.compile(r"[a-z][a-z0-9-]{0,62}")
_RELEASE = re.compile(r"[a-z][a-z0-9-]{0,62}/[A-Za-z0-9][A-Za-z0-9._-]{0,62}/r[1-9][0-9]{0,8}")
MOST_JSON = 4 * 2**20  # of one text; parsed it may take thirty times as much memory
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{5,15}(Z|[+-][0-9]{2}:[0-9]{2})")


def read_json(text: str | bytes) -> Any:
    """The value; `Fault` unless it is UTF-8 and plain JSON, not too long, every key in it once, every number finite."""
    try:
        if len(text) > MOST_JSON:
            raise ValueError
        text = text.decode() if isinstance(text, bytes) else text
        return json.loads(text, object_pairs_hook=_once, parse_int=_integer, parse_float=_finite, parse_constant=_finite)
    except (ValueError, RecursionError):
        raise Fault("it is not valid JSON (or too long, or has a key twice, or a number that is none)") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(found := dict(pairs)) != len(pairs):
        raise ValueError
    return found


def _integer(text: str) -> int:
    if len(text) > 40:
        raise ValueError
    return int(text)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError
    return value


def canonical_json(content: Any) -> str:
    """The one text of `content` that hashes and signatures are of."""
    try:
        return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        raise Fault("it has no canonical JSON") from None


def _get(content: Any, name: str, wanted: type | re.Pattern[str]) -> Any:
    """What `content` has under the name: of this type, or a text of this pattern."""
    value = content.get(name) if isinstance(content, dict) else None
    right = isinstance(value, wanted) if isinstance(wanted, type) else isinstance(value, str) and wanted.fullmatch(value)
    if not right or isinstance(value, bool):
        raise Fault(f"'{name}' is missing or is not what it must be")
    return value


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


# --- Keys and signed statements -------------------------------------------------------------------------------------------------

ROLES = ("officer", "steward", "reviewer", "service")
MAY_SIGN = {
    "trusted-keys": ("officer",),
    "policy": ("officer",),
    "populations": ("officer",),
    "approve": ("reviewer",),
    "reject": ("reviewer",),
    "package": ("service", "officer"),
    "retract": ("officer",),
    "supersede": ("officer",),
}
SIGNED_EVENTS = {
    "trusted": "trusted-keys",
    "approved": "approve",  # of a candidate; else "policy" or "populations"
    "rejected": "reject",
    "published": "package",
    "retracted": "retract",
    "superseded": "supersede",
}
TOMBSTONES = {"RETRACTED": "retract", "SUPERSEDED": "supersede"}
NANO = 10**9


@dataclass(frozen=True)
class Key:
    """A trusted key: whose, for what, the 32 bytes and their SHA-256."""

    name: str
    role: str
    public: bytes
    fingerprint: str


@dataclass(frozen=True)
class Statement:
    """What somebody signed, after it was verified: `role` is what the list of trusted keys says of the signer."""

    kind: str
    subject: str
    hash: str
    signer: str
    name: str
    at: str
    why: str
    role: str


_SHAPES = {"kind": str, "subject": str, "hash": _HEX, "signer": _HEX, "name": _NAME, "at": _TIME, "why": str}


def read_keys(document: Any) -> dict[str, Key]:
    """The keys by name of a trusted-keys.json; `Fault` unless each name and key stands once and exactly one is the officer's."""
    found: dict[str, Key] = {}
    for name, entry in _get(document, "keys", dict).items():
        kind, _, encoded = _get(entry, "key", str).partition(":")
        public, role = _base64(encoded), _get(entry, "role", str)
        if not _NAME.fullmatch(name) or kind != "ed25519" or len(public) != 32 or role not in ROLES or len(entry) != 2:
            raise Fault(f"the entry of '{name}' is not a name with an Ed25519 key and a role")
        found[name] = Key(name, role, public, hashlib.sha256(public).hexdigest())
    if len({key.fingerprint for key in found.values()}) < len(found):
        raise Fault("one key stands there under two names")
    if [key.role for key in found.values()].count("officer") != 1 or len(document) != 1:
        raise Fault("it must name exactly one officer, and nothing but keys")
    return found


def _base64(text: str) -> bytes:
    try:
        decoded = base64.b64decode(text, validate=True)
    except ValueError:
        raise Fault("there is something that is not base64") from None
    if base64.b64encode(decoded).decode() != text:
        raise Fault("there is base64 in another form than the usual one")
    return decoded


def verify_statement(signed: Any, keys: Any) -> Statement:
    """The statement; `Fault` unless it is signed by the key that it names, under its name in `keys` (the object of a
    trusted-keys.json), with a role that may sign its kind. Whether the subject and the hash are the right ones is for the caller;
    so is that a reviewer is not the steward.
    """
    return _verify_statement(signed, read_keys(keys))


def _verify_statement(signed: Any, keys: Mapping[str, Key], **wanted: str) -> Statement:
    """Likewise, and its `kind`, `subject` and `hash` must be these where they are given."""
    statement, signature = _get(signed, "statement", dict), _base64(_get(signed, "signature", str))
    for name, shape in _SHAPES.items():
        _get(statement, name, shape)
    if len(statement) != len(_SHAPES) or len(signed) != 2:
        raise Fault("it has other parts than a signed statement")
    key = keys.get(statement["name"])
    if key is None or key.fingerprint != statement["signer"]:
        raise Fault(f"it names '{statement['name']}' with a key that is not in the list of trusted keys")
    if key.role not in MAY_SIGN.get(statement["kind"], ()):
        raise Fault(f"'{key.name}' has the role {key.role}, which may not sign '{statement['kind'][:40]}'")
    if not verify_signature(key.public, b"release-pipeline statement\n" + canonical_json(statement).encode(), signature):
        raise Fault(f"the signature of '{key.name}' is not valid")
    for name, value in wanted.items():
        if statement[name] != value:
            raise Fault(f"it is signed for another {name}: '{statement[name][:140]}' in place of '{value[:140]}'")
    return Statement(**statement, role=key.role)


# --- Files of a folder or a zip, neither of them trusted ------------------------------------------------------------------------

SUMS, SUMS_SIG, CARD = "SHA256SUMS", "SHA256SUMS.sig", "privacy-card.json"
KEYS, KEYS_SIG, EVENTS = "trusted-keys.json", "trusted-keys.sig", "events.jsonl"
DOSSIER, POPULATIONS = "dossier.json", "populations.json"
MOST_FILES, MOST_FOLDERS_DEEP, MOST_BYTES, MOST_TO_PARSE = 10_000, 8, 64 * 2**30, 64 * 2**20
MOST_UNPACKED, MOST_RATIO, MOST_SIGNATURES = 2**30, 200, 20_000
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}")
_UNREADABLE = (OSError, EOFError, RuntimeError, ValueError, LookupError, struct.error, zlib.error, zipfile.BadZipFile)


def _is_plain(name: str) -> bool:
    return all(_PART.fullmatch(part) for part in name.split("/")) and name.count("/") < MOST_FOLDERS_DEEP


class _Tree:
    """Files by name, and what is wrong with names. `place` is the end of the path of the folder that they are in."""

    def __init__(self, open_file: Callable[[str], BinaryIO], place: str, prefix: str = "") -> None:
        self.sizes: dict[str, int] = {}
        self.faults: list[str] = []
        self.place, self.prefix = place, prefix
        self._open, self._digests, self._seen = open_file, dict[str, str](), set[str]()

    def add(self, name: str, size: int, fault: str = "") -> None:
        """A file, unless its name or kind is none that a package has."""
        if len(self.sizes) + len(self.faults) >= MOST_FILES:
            raise Fault(f"there are more than {MOST_FILES} files")
        twice = name.lower() in self._seen and "stands there twice (capitals do not count)"
        if fault or twice or not _is_plain(name):
            self.faults.append(f"{self.prefix}{name}: {fault or twice or 'is not a plain name'}")
        else:
            self.sizes[name] = size
        self._seen.add(name.lower())

    def under(self, folder: str) -> _Tree:
        """The files of one folder of it."""
        start = len(folder) + 1
        part = _Tree(lambda name: self._open(f"{folder}/{name}"), "", f"{self.prefix}{folder}/")
        part.sizes = {name[start:]: size for name, size in self.sizes.items() if name.startswith(f"{folder}/")}
        return part

    def digest(self, name: str) -> str:
        """SHA-256 of the file."""
        if name not in self._digests:
            whole = hashlib.sha256()
            for chunk in self._chunks(name):
                whole.update(chunk)
            self._digests[name] = whole.hexdigest()
        return self._digests[name]

    def read(self, name: str) -> bytes:
        """The content of a file that is to be parsed."""
        if self.sizes.get(name, 0) > MOST_TO_PARSE:
            raise Fault("it is too large to be what its name says")
        return b"".join(self._chunks(name))

    def json(self, name: str) -> Any:
        """The value of a JSON file."""
        return read_json(self.read(name))

    def _chunks(self, name: str) -> Iterator[bytes]:
        if name not in self.sizes:
            raise Fault("it is missing")
        left = self.sizes[name]
        try:
            with self._open(name) as file:
                while chunk := file.read(2**20):
                    left -= len(chunk)
                    if left < 0:
                        raise ValueError
                    yield chunk
        except _UNREADABLE:
            raise Fault("it cannot be read, or changed meanwhile") from None
        if left:
            raise Fault("it is shorter than it should be")


@contextmanager
def _open_tree(path: Path) -> Iterator[_Tree]:
    """What is at `path`; `WrongUsage` if that is neither a folder nor a zip file that can be read."""
    try:
        whole = path.resolve(strict=True)
        mode = whole.stat().st_mode
    except (OSError, RuntimeError, ValueError):
        raise WrongUsage(f"{path}: there is no such folder or file, or it may not be read.") from None
    if stat.S_ISDIR(mode):
        yield _scan_folder(whole)
        return
    try:
        file = _Careful(_open_plain(whole))
    except OSError:
        raise WrongUsage(f"{path}: this is neither a folder nor a file that may be read.") from None
    with file:
        try:
            archive = zipfile.ZipFile(file)
        except _UNREADABLE:
            raise WrongUsage(f"{path}: this is neither a folder nor a zip file that can be read.") from None
        with archive:
            yield _scan_zip(archive, whole.stat().st_size)


def _open_plain(path: Path) -> io.FileIO:
    """Open a regular file, never what a link names, and without waiting for a pipe."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    file = io.FileIO(os.open(path, flags), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError
    return file


class _Careful(io.BufferedReader):
    """Never gives more than a few MiB at once, whatever length a zip's directory claims."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(min(size, 2**22) if size is not None and size >= 0 else 2**22)


def _scan_folder(root: Path) -> _Tree:
    tree, folders = _Tree(lambda name: io.BufferedReader(_open_plain(root / name)), "/".join(root.parts[-3:])), [""]
    while folders:
        folder = folders.pop()
        try:
            for entry in (root / folder).iterdir():
                name, found = f"{folder}{entry.name}", entry.lstat()
                if stat.S_ISDIR(found.st_mode) and _is_plain(name) and len(folders) < MOST_FILES:
                    folders.append(f"{name}/")
                else:
                    tree.add(name, found.st_size, "" if stat.S_ISREG(found.st_mode) else "is not a plain file (a link, perhaps)")
        except OSError:
            tree.add(folder, 0, "cannot be read")
    if sum(tree.sizes.values()) > MOST_BYTES:
        raise Fault("it is larger than any package")
    return tree


def _scan_zip(archive: zipfile.ZipFile, size: int) -> _Tree:
    entries = [entry for entry in archive.infolist() if not (entry.filename.endswith("/") and entry.file_size == 0)]
    folder = min((entry.filename.rpartition("/")[0] for entry in entries), key=len, default="")  # around everything, if one is
    if not (_is_plain(folder) and all(entry.filename.startswith(f"{folder}/") for entry in entries)):
        folder = ""
    start = len(folder) + 1 if folder else 0
    infos: dict[str, zipfile.ZipInfo] = {}
    tree = _Tree(lambda name: archive.open(infos[name]), "/".join(folder.split("/")[-3:]))  # type: ignore[arg-type,return-value]
    for entry in entries:
        name, kind = entry.filename[start:], stat.S_IFMT(entry.external_attr >> 16)
        unusual = kind not in (0, stat.S_IFREG) or entry.flag_bits & 1 or entry.compress_type not in (0, zipfile.ZIP_DEFLATED)
        cut = entry.orig_filename != entry.filename
        tree.add(name, entry.file_size, "is a link, or encrypted, or packed in an unusual way" if unusual or cut else "")
        infos.setdefault(name, entry)
    if sum(entry.file_size for entry in entries) > min(MOST_BYTES, max(MOST_UNPACKED, MOST_RATIO * size)):
        raise Fault("unpacked it would be larger than any package: perhaps it is made to fill a disk")
    return tree


def _read_sums(tree: _Tree) -> dict[str, str]:
    """Hashes by name."""
    try:
        lines = tree.read(SUMS).decode("ascii").split("\n")
    except UnicodeDecodeError:
        raise Fault("it is not a list of hashes and names") from None
    found: dict[str, str] = {}
    for number, line in enumerate(lines[:-1], start=1):
        digest, _, name = line.partition("  ")
        if not _HEX.fullmatch(digest) or not _is_plain(name) or name in found or name == SUMS:
            raise Fault(f"line {number} is not a hash and a plain name that stands there once")
        found[name] = digest
    if lines[-1] or not found or len(found) > MOST_FILES or len({name.lower() for name in found}) < len(found):
        raise Fault("it is cut off, empty or too long, or two names are the same but for capitals")
    return found


def _check_sums(report: _Report, tree: _Tree, *, beside: Collection[str], absent: Callable[[str], str]) -> dict[str, str]:
    """Compare every file with SHA256SUMS, both ways, and give what that lists. `beside`: files that it need not list;
    `absent(name)`: why a listed one may be missing."""
    listed: dict[str, str] = {}
    before = len(report.findings)
    with report.about(tree.prefix + SUMS):
        listed = _read_sums(tree)
    for fault in tree.faults:
        report("FAIL", fault)
    for name in sorted(set(tree.sizes) - set(listed) - {SUMS, *beside}):
        report("FAIL", f"{tree.prefix}{name}: {SUMS} does not list it")
    away: list[str] = []
    for name, digest in listed.items():
        if name not in tree.sizes and absent(name):
            away.append(f"{tree.prefix}{name}: {absent(name)}; its SHA-256 is {digest}")
            continue
        with report.about(tree.prefix + name):
            if tree.digest(name) != digest:
                raise Fault(f"its content is not what {SUMS} says")
    if len(report.findings) == before:
        there = f"{len(listed) - len(away)} of {len(listed)} listed files"
        report("ok", f"{tree.prefix}{SUMS}: {there} are there, with the hashes that it lists, and nothing else is")
    for words in away:
        report("note", words)
    return listed


# --- A package ------------------------------------------------------------------------------------------------------------------


@dataclass
class _Package:
    """What the rest of a dossier is compared with; empty where the package does not say."""

    release: str = ""
    hash: str = ""
    head: tuple[int, str] = (0, "")
    sums: dict[str, str] = field(default_factory=dict)
    tombstones: list[str] = field(default_factory=list)


def _check_keys(report: _Report, tree: _Tree) -> dict[str, Key]:
    """The list of trusted keys, and whether its officer signed it and is the one that was given."""
    keys: dict[str, Key] = {}
    with report.about(tree.prefix + KEYS):
        keys = read_keys(tree.json(KEYS))
        report.judge_officer(_officer(keys), tree.prefix + KEYS)
    with report.about(tree.prefix + KEYS_SIG):
        wanted = {"kind": "trusted-keys", "subject": "trusted-keys", "hash": tree.digest(KEYS)}
        signed = _verify_statement(tree.json(KEYS_SIG), keys, **wanted)
        report("ok", f"{tree.prefix}{KEYS_SIG}: the list of {len(keys)} trusted keys is signed by its officer {signed.name}")
    return keys


def _officer(keys: Mapping[str, Key]) -> str:
    return next(key.fingerprint for key in keys.values() if key.role == "officer")


def _check_package(report: _Report, tree: _Tree, *, data_may_be_away: bool) -> _Package:
    keys, found, at = _check_keys(report, tree), _Package(), tree.prefix
    with report.about(at + CARD):
        card = tree.json(CARD)
        found.release, head = _get(card, "release", _RELEASE), _get(card, "registry_head", dict)
        found.head = (_get(head, "event", int), _get(head, "hash", _HEX))
        report("ok", f"{at}{CARD}: release {found.release}; the registry stood at event {found.head[0]}, hash {found.head[1]}")
    with report.about(at + SUMS_SIG):
        found.hash = tree.digest(SUMS)
        signed = _verify_statement(tree.json(SUMS_SIG), keys, kind="package", subject=found.release, hash=found.hash)
        report("ok", f"{at}{SUMS_SIG}: release {found.release} is signed by {signed.name} ({signed.role}) at {signed.at}")
    if _RELEASE.fullmatch(tree.place):
        level, words = ("ok", "as") if tree.place == found.release else ("FAIL", "otherwise than")
        report(level, f"{tree.place}: the folder is named {words} the release in it, {found.release or 'which does not tell'}")
    tombstones = [name for name in TOMBSTONES if f"{name}.json" in tree.sizes]
    for name in tombstones:
        with report.about(f"{at}{name}.json"):
            wanted = {"kind": TOMBSTONES[name], "subject": found.release, "hash": found.hash}
            _report_tombstone(report, f"{at}{name}.json", _verify_statement(tree.json(f"{name}.json"), keys, **wanted))
            found.tombstones.append(TOMBSTONES[name])
            report("note", f"{at}{name}.md: signed by nobody; what counts is {name}.json")
    away = "removed by the retraction" if "retract" in found.tombstones else "not in a dossier" if data_may_be_away else ""
    beside = [SUMS_SIG, *(f"{name}.{end}" for name in tombstones for end in ("json", "md"))]
    found.sums = _check_sums(report, tree, beside=beside, absent=lambda name: away if name.startswith("data.") else "")
    return found


def _report_tombstone(report: _Report, where: str, signed: Statement) -> None:
    """A retraction fails whatever else is right; that something newer is there is for a person to weigh."""
    level, word = ("FAIL", "retracted") if signed.kind == "retract" else ("note", "superseded")
    report(level, f"{where}: {word.upper()}: release {signed.subject} was {word} at {signed.at} by {signed.name}: {signed.why}")


# --- The chain of events, and what is signed in it ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Event:
    """An event of the chain: `release` is POLICY/PARTITION/rN, or empty when it is of none."""

    number: int
    kind: str
    release: str
    content: Mapping[str, Any]
    hash: str
    noted: str = ""


def verify_chain(lines: Iterable[str | bytes]) -> list[Event]:
    """The events; `Fault` names the first that is not a canonical body with its own hash, its number and the hash before it."""
    events: list[Event] = []
    for number, line in enumerate(lines, start=1):
        try:
            entry = read_json(line)
            body, digest = _get(entry, "body", str), _get(entry, "hash", str)
            content = read_json(body)
            kind, previous, named = _get(content, "kind", str), _get(content, "previous", str), content.get("release")
            if _sha256(body) != digest or len(entry) != 2 or canonical_json(content) != body:
                raise Fault("its hash is not that of its body")
            if previous != (events[-1].hash if events else "") or _get(content, "number", int) != number:
                raise Fault("it does not follow the one before it")
            release = f"{named[0]}/{named[1]}/r{named[2]}" if isinstance(named, list) and len(named) == 3 else ""
            events.append(Event(number, kind, release, _get(content, "content", dict), digest, _get(content, "noted", str)))
        except Fault as fault:
            raise Fault(f"event {number} was changed, or events before it are missing: {fault.what}") from None
    return events


class _History:
    """The events of a chain, each signed one verified with the list of keys that was trusted when it happened."""

    def __init__(self, report: _Report, events: list[Event]) -> None:
        self.events, self.signed = events, list[tuple[int, Statement]]()
        self.lists: list[tuple[int, str, dict[str, Key]]] = []  # number of the event, hash of the list, keys
        self.policies: dict[str, tuple[int, Any]] = {}
        self._keys: dict[str, Key] = {}
        self._listed = ""  # when the last list of keys was signed
        self._published, self._stewards = dict[str, str](), dict[str, str]()
        for event in events:
            with report.about(f"{EVENTS}: event {event.number} ({event.kind})"):
                if event.kind == "policy":
                    self._read_policy(event)
                elif event.kind == "reserved":
                    charged = self.policies.get(_get(event.content, "policy_hash", _HEX))
                    self._stewards[event.release] = charged[1]["steward"] if charged else ""
                elif event.kind in SIGNED_EVENTS and len(self.signed) >= MOST_SIGNATURES:
                    raise Fault(f"more than {MOST_SIGNATURES} signatures are too many: this one is not looked at")
                elif event.kind in SIGNED_EVENTS:
                    self.signed.append((event.number, self._verify(event)))
                    if event.kind == "trusted":
                        report.judge_officer(_officer(self._keys), f"{EVENTS}: event {event.number} (trusted)")

    def _read_policy(self, event: Event) -> None:
        text, digest = _get(event.content, "text", str), _get(event.content, "hash", str)
        if _sha256(text) != digest:
            raise Fault("the policy's hash is not that of its text")
        policy = read_json(text)
        named = {name: _get(policy, name, _NAME) for name in ("policy", "population", "steward")}
        if any(event.content.get(name) != named[name] for name in ("policy", "population")):
            raise Fault("its text is of another policy or population")
        self.policies.setdefault(digest, (event.number, policy))

    def _verify(self, event: Event) -> Statement:
        """What is signed in the event, if it says what the event does."""
        content, kind, subject, keys = event.content, SIGNED_EVENTS[event.kind], event.release, self._keys
        if event.kind == "trusted":
            document, subject, digest = {"keys": content.get("keys")}, "trusted-keys", _get(content, "hash", _HEX)
            keys = read_keys(document)
            if (_sha256(canonical_json(document)), _officer(keys)) != (digest, content.get("officer")):
                raise Fault("the hash or the officer of the trusted keys is not what it tells")
        elif event.kind in ("approved", "rejected"):
            what, subject, digest = _get(content, "what", str), _get(content, "subject", str), _get(content, "hash", _HEX)
            kind = what if event.kind == "approved" and what in ("policy", "populations") else kind if what == "candidate" else ""
            if subject != (event.release or subject) or (kind == "populations" and subject != kind):
                raise Fault("it is noted for something else than what was judged")
        else:
            digest = _get(content, "package_hash", _HEX) if event.kind == "published" else self._published.get(event.release, "")
        signed = _verify_statement(content.get("signed"), keys, kind=kind, subject=subject, hash=digest)
        if kind in ("approve", "reject") and signed.name == self._stewards.get(subject):
            raise Fault(f"'{signed.name}' is the steward of the policy and may not judge the candidate")
        if event.kind == "trusted":
            if signed.at < self._listed:
                raise Fault(f"the list of {signed.at} was put back after that of {self._listed}")
            self._keys, self._listed = keys, signed.at
            self.lists.append((event.number, digest, keys))
        elif event.kind == "published":
            self._published[event.release] = digest
        return signed

    def of(self, kind: str, release: str) -> list[Event]:
        """The events of a kind of a release."""
        return [event for event in self.events if (event.kind, event.release) == (kind, release)]

    def last(self, kind: str, subject: str, *, before: int) -> tuple[int, str]:
        """The number of the last event before another that has something signed of a kind about a subject, and the hash in it."""
        found = {at: signed.hash for at, signed in self.find(kind, subject).items() if at < before}
        return max(found.items(), default=(0, ""))

    def find_caps(self, digest: str) -> Any:
        """The caps of that hash, as an event of their approval tells them."""
        for event in self.events:
            text = event.content.get("text") if event.kind == "approved" else None
            if isinstance(text, str) and event.content.get("what") == "populations" and _sha256(text) == digest:
                return read_json(text)
        raise Fault("no event tells the caps that the officer approved last before the charge")

    def find(self, kind: str, subject: str, digest: str | None = None) -> dict[int, Statement]:
        """What was signed of a kind about a subject (and a hash), by the number of the event."""
        wanted = [(number, signed) for number, signed in self.signed if (signed.kind, signed.subject) == (kind, subject)]
        return {number: signed for number, signed in wanted if digest in (None, signed.hash)}


# --- A dossier ------------------------------------------------------------------------------------------------------------------


def _check_dossier(report: _Report, tree: _Tree) -> _Package:
    listed = _check_sums(report, tree, beside=(), absent=lambda name: "")
    package = _check_package(report, tree.under("package"), data_may_be_away=True)
    keys, bound = _check_keys(report, tree), {SUMS, EVENTS, KEYS, KEYS_SIG, POPULATIONS, "candidate/SHA256SUMS"}
    with report.about(DOSSIER):
        dossier = tree.json(DOSSIER)
        if (_get(dossier, "release", str), _get(dossier, "officer", str)) != (package.release, keys and _officer(keys)):
            raise Fault("it names another release or officer than the package and the list of trusted keys")
    candidate = _check_candidate(report, tree.under("candidate"), package)
    history = None
    with report.about(EVENTS):
        content, before = tree.read(EVENTS), len(report.findings)
        if not content.endswith(b"\n"):
            raise Fault("its last line is cut off")
        history = _History(report, verify_chain(content.splitlines()))
        if not any(finding.level == "FAIL" for finding in report.findings[before:]):
            words = f"{len(history.signed)} signed statements, each by a key that was trusted then, with the role for it"
            report("ok", f"{EVENTS}: {words}")
        _check_head(report, history.events, package)
    if history is not None:
        with report.about(f"{EVENTS}, {KEYS}"):
            _check_lists_of_keys(history, tree, package)
        policy = None
        with report.about(f"{EVENTS}, {package.release}"):
            policy = _check_charge(report, history, package, lambda digest: _read_caps(tree, digest))
        with report.about(f"{EVENTS}, candidate/{SUMS}"):
            _check_approvals(report, history, package, candidate, policy)
        with report.about(f"{EVENTS}, {package.release}"):
            _check_moment(report, history, package, policy)
        with report.about(f"{EVENTS}, package"):
            _check_publication(report, history, package)
        bound |= _check_policy_files(report, history, tree)
    bound |= {f"package/{name}" for name in (*package.sums, SUMS, SUMS_SIG)} | {
        "candidate/evidence.json",
        "candidate/report.html",
    }
    bound |= {f"package/{name}.json" for name in TOMBSTONES}
    if loose := sorted({*listed, *tree.sizes} - bound):
        report("note", f"{_LOOSE}: {', '.join(loose)}")
    return package


def _check_candidate(report: _Report, tree: _Tree, package: _Package) -> str:
    """The candidate's hash, after evidence and data were compared with its list of sums."""
    listed = _check_sums(report, tree, beside=(), absent=lambda name: "not in a dossier" * name.startswith("data."))
    with report.about(f"{tree.prefix}{SUMS}"):
        data, published = ({n: h for n, h in sums.items() if n.startswith("data.")} for sums in (listed, package.sums))
        if data != published or not data or "evidence.json" not in listed:
            raise Fault("it lists other data than the package, or no data or no evidence: other data were judged than published")
        report("ok", f"{tree.prefix}{SUMS}: the published data are the candidate's ({', '.join(data)})")
        return tree.digest(SUMS)
    return ""


def _check_head(report: _Report, events: list[Event], package: _Package) -> None:
    number, digest = package.head
    if number > len(events):
        raise Fault(f"it ends with event {len(events)}, and the package names event {number}: events at its end were cut off")
    if number < 1 or events[number - 1].hash != digest:
        raise Fault(f"event {number} is not the one that the package names: the chain was written anew, or is another site's")
    after = f"what the {len(events) - number} after it say is signed or the word of who sent it"
    report("ok", f"{EVENTS}: whole up to event {number}, which the package names: nothing before was changed; {after}")


def _check_lists_of_keys(history: _History, tree: _Tree, package: _Package) -> None:
    """The package's list was trusted at its head, or became so before it was noted as published; the dossier's was once."""
    published = max(history.find("package", package.release, package.hash), default=0)
    hashes = [(number, digest) for number, digest, _ in history.lists]
    then = [digest for number, digest in hashes if number <= package.head[0]][-1:]
    then += [digest for number, digest in hashes if package.head[0] < number < published]
    if tree.under("package").digest(KEYS) not in then:
        raise Fault(f"package/{KEYS} is not the list that was trusted when the package was made")
    if tree.digest(KEYS) not in [digest for _, digest in hashes]:
        raise Fault("no event trusted this list")


def _read_caps(tree: _Tree, digest: str) -> Any:
    """The caps in a dossier, if they are those of that hash."""
    if tree.digest(POPULATIONS) != digest:
        raise Fault("these are not the caps that the officer approved last before the charge")
    return tree.json(POPULATIONS)


def _check_charge(report: _Report, history: _History, package: _Package, find_caps: Callable[[str], Any]) -> Any:
    """The policy that the release was charged under, after its approval, that of the caps, and the cap itself were looked at.
    `find_caps` gives the caps of a hash."""
    charges = history.of("reserved", package.release)
    if len(charges) != 1 or charges[0].number > package.head[0]:
        raise Fault(f"it was charged {len(charges)} times, or only after it was published, in place of once before")
    number, content = charges[0].number, charges[0].content
    digest, population = _get(content, "policy_hash", _HEX), _get(content, "population", str)
    noted_as, policy = history.policies.get(digest, (0, {}))
    if not 0 < noted_as < number or (policy["policy"], policy["population"]) != (package.release.split("/")[0], population):
        raise Fault(f"no event before the charge (event {number}) tells its policy, or it is another release's or population's")
    with report.about(f"{EVENTS}, policy {policy['policy']}"):
        approved, hash = history.last("policy", policy["policy"], before=number)
        if hash != digest:
            raise Fault(f"it is not what the officer approved last before the charge (event {number})")
        report("ok", f"{EVENTS}: the policy ({digest[:12]}) was approved in event {approved}, before the charge in {number}")
    with report.about(POPULATIONS):
        approved, hash = history.last("populations", "populations", before=number)
        if not approved:
            raise Fault(f"the officer did not approve any caps before the charge (event {number})")
        if not _is_declared(_get(find_caps(hash), population, dict).get("cap"), content):
            raise Fault("the cap that the charge notes is not the one that the officer approved last before it")
        report("ok", f"{POPULATIONS}: approved in event {approved}, before the charge; the cap that this notes is declared in it")
    _check_cap(report, history, charges[0], population)
    return policy


def _is_declared(cap: Any, charge: Mapping[str, Any]) -> bool:
    """Whether the cap that a charge notes is this one of populations.json."""
    if isinstance(cap, dict) and "releases" in cap:
        return (charge.get("unit"), charge.get("cap")) == ("releases", str(cap["releases"]))
    definition = {"dp": "DP", "idp": "iDP"}.get(_get(cap, "definition", str))
    unit = f"epsilon, {definition}, {_get(cap, 'scope', str)}"
    return (charge.get("unit"), _amount(charge.get("cap"))) == (unit, _amount(str(cap.get("epsilon"))))


def _check_cap(report: _Report, history: _History, charge: Event, population: str) -> None:
    """The sum, in integers, of what the population was charged up to here, beside what is noted of it."""
    charged, unit = charge.content, _get(charge.content, "unit", str)
    most, spent = _amount(charged.get("cap")), _amount(charged.get("spent"))
    loss = re.fullmatch(r"(releases)|epsilon, (DP|iDP), (centroid|column|table)", unit)
    if loss is None:
        raise Fault(f"the cap of event {charge.number} counts in an unknown unit")
    charges = [event.content for event in history.events[: charge.number] if event.kind == "reserved"]
    mine = [content for content in charges if content.get("population") == population]
    losses = [_get(each, "loss", dict) for each in mine]
    if loss[1]:  # of a series of parts only the first counts
        costs = [NANO * _get({"releases": 1, **each}, "releases", int) for each in losses]
    else:
        costs = [_get(each, f"{loss[2].lower()}_{loss[3]}", int) for each in losses]
    if min(costs) < 0 or sum(costs) != spent or spent > most:
        raise Fault(f"the charges up to event {charge.number} do not add up to what it notes as spent, or go over the cap")
    words = f"{charged['spent']} of {charged['cap']} ({unit})"
    report("ok", f"{EVENTS}: {len(mine)} charges to {population} add up to {words} with that of event {charge.number}")


def _amount(words: Any) -> int:
    """Nano-epsilon of a decimal."""
    match = re.fullmatch(r"([0-9]{1,18})(?:\.([0-9]{1,9}))?", words if isinstance(words, str) else "")
    if match is None:
        raise Fault("a cap or what is spent of it is not a decimal number")
    return int(match[1]) * NANO + int((match[2] or "").ljust(9, "0"))


def _check_approvals(report: _Report, history: _History, package: _Package, candidate: str, policy: Any) -> None:
    release, head = package.release, package.head[0]
    for kind in ("candidate", "publishing"):
        candidates = [event.content.get("candidate_hash") for event in history.of(kind, release) if event.number <= head]
        if candidates[-1:] != [candidate] and (candidates or kind == "candidate"):
            raise Fault(f"the last event of the kind '{kind}' before it was published is about another candidate, or missing")
    if policy is None:
        raise Fault("how many reviewers must approve it cannot be told")
    needed = _get(_get(policy, "review", dict), "reviewers", int)
    rejected = min(history.find("reject", release), default=0)
    if rejected:
        raise Fault(f"it was rejected in event {rejected}, so it should never have been published")
    trusted = next((keys for number, _, keys in reversed(history.lists) if number <= head), {})
    reviewers = {key.fingerprint for key in trusted.values() if key.role == "reviewer"}  # those who left since do not count
    made = min(event.number for event in history.of("candidate", release) if event.content.get("candidate_hash") == candidate)
    judged = [signed for at, signed in history.find("approve", release, candidate).items() if made < at <= head]
    if any(signed.name == policy["steward"] for signed in judged):
        raise Fault(f"'{policy['steward']}' is the steward of the policy and approved the candidate")
    people = {signed.signer: signed.name for signed in judged if signed.signer in reviewers}
    if len(people) < max(needed, 1):
        raise Fault(f"{len(people)} reviewers approved it before it was published, and the policy asks for {needed}")
    words = f"approved by {', '.join(people.values())}, none of them the steward; the policy asks for {needed}"
    report("ok", f"{EVENTS}: candidate {candidate[:12]} was {words}")


def _check_moment(report: _Report, history: _History, package: _Package, policy: Any) -> None:
    """That it was published neither before its embargo ended, by the clock of the site, nor after it was given up."""
    published = [event for event in history.of("published", package.release) if event.number > package.head[0]]
    if policy is None or not published:
        return
    not_before = policy.get("publish", {}).get("not_before")
    if isinstance(not_before, str) and _read_moment(published[0].noted) < _read_moment(not_before):
        raise Fault(
            f"it was published in event {published[0].number}, at {published[0].noted}, before its embargo ended: {not_before}"
        )
    name, _, revision = package.release.rpartition("/r")
    given_up = [event.number for event in history.of("opened", f"{name}/r{int(revision) + 1}")]
    if given_up and given_up[0] < published[0].number:
        raise Fault(f"it was given up in event {given_up[0]} for the next revision, and published after that")
    report("ok", f"{EVENTS}: published at {published[0].noted}, not before its time, nor after it was given up")


def _read_moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    except ValueError:
        raise Fault("there is a moment that is none") from None


def _check_publication(report: _Report, history: _History, package: _Package) -> None:
    published = history.find("package", package.release)
    if not any(at > package.head[0] and signed.hash == package.hash for at, signed in published.items()):
        raise Fault("no event after the one that it names published it: events at the end are missing")
    if {signed.hash for signed in published.values()} != {package.hash}:
        raise Fault("the release was published with other content too")
    report("ok", f"{EVENTS}: published in event {max(published)}, as signed")
    for kind in TOMBSTONES.values():
        events = history.find(kind, package.release, package.hash)
        for at, signed in events.items():
            _report_tombstone(report, f"{EVENTS}: event {at}", signed)
        if kind in package.tombstones and not events:
            raise Fault(f"a tombstone ({kind}) is in the package and no event tells of it: events at the end are missing")


def _check_policy_files(report: _Report, history: _History, tree: _Tree) -> set[str]:
    """The files of policies, each with the text that an event tells; all that any event tells are there."""
    wanted = {f"policies/{known['policy']}.{digest[:12]}.json": digest for digest, (_, known) in history.policies.items()}
    there = {name for name in tree.sizes if name.startswith("policies/") and name.endswith(".json")}
    for name in sorted(there | set(wanted)):
        with report.about(name):
            if name not in wanted or tree.digest(name) != wanted[name]:
                raise Fault("it is not a policy that an event tells under this name")
    return there


# --- The door -------------------------------------------------------------------------------------------------------------------


def verify_path(path: str | os.PathLike[str], officer: str | Collection[str] | None = None) -> list[Finding]:
    """Everything that was checked of the package or dossier at `path` (a folder or a zip), and what was found.

    `officer` is the fingerprint that the officer must have; several, if the office changed hands. `WrongUsage` unless there is
    something to be checked at all.
    """
    return examine(path, officer).findings


def examine(path: str | os.PathLike[str], officer: str | Collection[str] | None = None) -> Verification:
    """Likewise, with what it is that was checked."""
    report, kind, package = _Report(officer), "", _Package()
    try:
        with _open_tree(Path(path)) as tree:
            if any(name in (DOSSIER, EVENTS) or name.startswith(("package/", "candidate/")) for name in tree.sizes):
                kind = "dossier"
                package = _check_dossier(report, tree)
            elif {SUMS, SUMS_SIG, CARD, KEYS, KEYS_SIG} & set(tree.sizes):
                kind = "package"
                package = _check_package(report, tree, data_may_be_away=False)
            else:
                raise WrongUsage(f"{path}: this is neither a package nor a dossier: there is no {SUMS} in it.")
    except Fault as fault:
        report("FAIL", f"{path}: {fault.what}")
    given = _list_officers(officer)
    return Verification(_printable(str(path)), kind, given, report.officers, package.release, package.hash, report.findings)


def _list_officers(officer: str | Collection[str] | None) -> list[str]:
    return [officer] if isinstance(officer, str) else list(officer or ())


def verify_events(lines: Iterable[str | bytes], officer: str | Collection[str] | None = None) -> list[Finding]:
    """What was checked of a chain of events on its own, a line each as in a dossier's events.jsonl, and what was found."""
    report = _Report(officer)
    with report.about(EVENTS):
        history, before = _History(report, verify_chain(lines)), len(report.findings)
        if not any(finding.level == "FAIL" for finding in report.findings[:before]):
            words = f"{len(history.events)} events, each with the hash of the one before it"
            report("ok", f"{EVENTS}: {words}; {len(history.signed)} signed statements, each by a key that was trusted then")
        for event in history.events:
            if event.kind == "published":
                with report.about(f"{EVENTS}, {event.release}"):
                    _check_published(report, history, event)
    return report.findings


def _check_published(report: _Report, history: _History, event: Event) -> None:
    """What a dossier shows of a release, from the events alone."""
    intents = [intent for intent in history.of("publishing", event.release) if intent.number < event.number]
    if not intents:
        raise Fault(f"it was published in event {event.number} without an intent")
    head = (intents[-1].number, intents[-1].hash)
    package = _Package(event.release, _get(event.content, "package_hash", _HEX), head)
    policy = _check_charge(report, history, package, history.find_caps)
    _check_approvals(report, history, package, _get(intents[-1].content, "candidate_hash", _HEX), policy)
    _check_moment(report, history, package, policy)


def main(arguments: list[str] | None = None) -> int:
    """Print the findings, a line each; give the exit code."""
    parser = argparse.ArgumentParser(prog="verify.py", description="Check a published package or an auditor's dossier, offline.")
    here = Path(__file__).resolve().parent
    parser.add_argument("path", nargs="?", default=here, help="folder or zip (default: the folder that this file lies in)")
    parser.add_argument("--officer", action="append", metavar="FINGERPRINT", help="the officer's; again for an earlier officer's")
    parser.add_argument("--json", action="store_true", help="the findings as JSON")
    wanted = parser.parse_args(arguments)
    try:
        found = examine(wanted.path, wanted.officer)
    except WrongUsage as error:
        lines, code, where = [_printable(error.what)], 2, sys.stderr
        if wanted.json:
            print(json.dumps(_report_usage(lines[0]), indent=2), flush=True)
    else:
        lines, code, where = [*map(str, found.findings), found.verdict], int(found.failed > 0), sys.stdout
        if wanted.json:
            lines = [json.dumps(found.to_json(), indent=2)]
    coding = where.encoding or "ascii"
    try:
        print("\n".join(lines).encode(coding, "backslashreplace").decode(coding), file=where, flush=True)
    except BrokenPipeError:  # whoever read it has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), where.fileno())
    return code


def _report_usage(what: str) -> dict[str, Any]:
    """What cannot be checked, as a script reads it, release-pipeline/error/1."""
    error = {"code": "wrong-usage", "what": what, "where": "", "remedy": "", "details": []}
    return {"format": "release-pipeline/error/1", "command": "verify", "exit_code": 2, "error": error}


if __name__ == "__main__":
    sys.exit(main())
