"""Check a published package or an auditor's dossier, offline: python verify.py [PATH] [--officer FINGERPRINT]

PATH is a folder or a zip file of one; without it, the folder that this file lies in. This file alone does it: Python 3.9 or later
and nothing else. It is in every dossier; but who fears the sender takes it from the publisher, for a sender can change it too.
With --revocations FILE or URL the publisher's list of revoked keys is looked at too, and with --officers FILE or URL how the
office changed hands after the package was made; nothing else ever asks the network. With --since FILE a dossier must have the
event that was witnessed: what `head export` wrote, kept by somebody else. With --beside OTHER, another package or dossier of the
same publisher, both must come from one chain of events: two copies of a site that both went on spent one budget twice.
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
import time
import zipfile
import zlib
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Annotated, Any, TypedDict

if TYPE_CHECKING:
    from typing import TypeAlias


#!/usr/bin/env python3

_UTC = timezone.utc  # noqa: UP017  Python 3.9 has no datetime.UTC

# --- Ed25519 after RFC 8032: verification alone, where nothing is secret, so nothing need take constant time --------------------

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493  # the order of BASE
D = -121665 * pow(121666, -1, P) % P
ROOT = pow(2, (P - 1) // 4, P)  # of -1
Point = tuple[int, int, int, int]  # X, Y, Z, T with x = X/Z, y = Y/Z, xy = T/Z
ZERO: Point = (0, 1, 1, 0)


def add_points(p: Point, q: Point) -> Point:
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


def encode_point(p: Point) -> bytes:
    inverse = pow(p[2], -1, P)
    return (p[1] * inverse % P + (p[0] * inverse % P % 2 << 255)).to_bytes(32, "little")


BASE = _decode((4 * pow(5, -1, P) % P).to_bytes(32, "little")) or ZERO


def read_point(public: bytes) -> Point | None:
    """The point of a public key; None if there is none, in this encoding, or if it is of small order, which signs any message."""
    a = _decode(public) if len(public) == 32 else None
    if a is None:
        return None
    eight = add_points(a, a)
    for _ in range(2):
        eight = add_points(eight, eight)
    return None if encode_point(eight) == encode_point(ZERO) else a


def verify_signature(public: bytes, message: bytes, signature: bytes) -> bool:
    """Whether the Ed25519 signature is of the message by the key; strictly: of every signature there is one form that passes.

    Refused are s >= L, other encodings of the key or of R than the one, and keys of small order, which sign any message.
    """
    a, r, s = read_point(public), signature[:32], int.from_bytes(signature[32:], "little")
    if a is None or len(signature) != 64 or s >= L:
        return False
    k = int.from_bytes(hashlib.sha512(r + public + message).digest(), "little") % L
    minus, result = (P - a[0], a[1], 1, P - a[3]), ZERO
    summands = (None, minus, BASE, add_points(BASE, minus))
    for bit in range(L.bit_length() - 1, -1, -1):  # sB - kA, both products at once
        result, summand = add_points(result, result), summands[2 * (s >> bit & 1) + (k >> bit & 1)]
        result = add_points(result, summand) if summand else result
    return encode_point(result) == r  # as bytes, so another encoding of R does not pass


@lru_cache(maxsize=1024)
def _holds(public: bytes, message: bytes, signature: bytes) -> bool:
    """Likewise, once for what is looked at again: who was trusted when is found in several rounds."""
    return verify_signature(public, message, signature)


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
    given: list[str] = field(default_factory=list[str])
    officers: list[str] = field(default_factory=list[str])
    release: str = ""
    package_hash: str = ""
    findings: list[Finding] = field(default_factory=list[Finding])

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


def printable(words: str) -> str:
    """One line, which cannot play tricks on a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in words[:2000])


class _Report:
    def __init__(self, officer: str | Collection[str] | None) -> None:
        self.findings: list[Finding] = []
        self.given, self._told = frozenset(_list_officers(officer)), set[str]()
        self._linked: dict[str, str] = {}  # an officer, and the one who was given whom signed successions link them to
        self.left: dict[str, datetime] = {}  # when officers left: what they sign later is not the officer's
        self.taken: dict[str, datetime] = {}  # keys that holders of recovery keys revoked in successions, from when on
        self.lines: dict[str, tuple[str, ...]] = {}  # files that were named beside the package, and the officers in them
        self.officers: list[str] = []  # those who were met
        self.dated: list[tuple[str, str]] = []  # signed files of the package, and when each was signed
        self.revocations: _Revocations | None = None
        if not all(_HEX.fullmatch(fingerprint) for fingerprint in self.given):
            raise WrongUsage("--officer: a fingerprint is 64 digits from 0 to 9 and a to f; `key` and `trust` print it.")

    def __call__(self, level: str, words: str) -> None:
        self.findings.append(Finding(level, printable(words)))

    def about(self, name: str) -> _About:
        """A fault in the block becomes a line about `name`."""
        return _About(self, name)

    def note_moments(self, dated: Iterable[tuple[str, str]]) -> None:
        """A note on the first moment that is later than the clock of this machine, and on the first that is earlier than one
        before it. `dated`: what was dated, and its moment, in the order in which it happened."""
        now, last, ahead, back = datetime.now(_UTC), ("", datetime.min.replace(tzinfo=_UTC)), list[str](), list[str]()
        for name, at in dated:
            moment = _read_moment(at)
            if moment - now > SLACK:
                ahead.append(f"{name} is dated {at}, later than the clock of this machine says now: one of the two is wrong")
            if last[1] - moment > SLACK:
                back.append(f"{name} is dated {at}, earlier than {last[0]}, which came before it: a clock was wrong")
            last = (name, moment)
        for found in (ahead, back):
            if found:
                self("note", found[0] + (f" ({len(found) - 1} more)" if found[1:] else ""))

    def judge_officer(self, fingerprint: str, where: str) -> None:
        """Once for each: the officer must be one who was named; if none was, a person must compare."""
        words = f"{where}: the officer's fingerprint is {fingerprint}"
        if fingerprint not in self._told and fingerprint not in self.given and fingerprint in self._linked:
            self("ok", f"{words}, linked by signed successions to {self._linked[fingerprint]}, which was given")
        elif fingerprint not in self._told and self.given:
            known = fingerprint in self.given
            told = "as it was given" if known else self._tell_stranger(fingerprint)
            self("ok" if known else "FAIL", f"{words}, {told}")
        elif fingerprint not in self._told:
            self("note", f"{words}; everything stands on it: compare it with what the publisher tells by another channel")
        if fingerprint not in self._told:
            self.officers.append(fingerprint)
        self._told.add(fingerprint)

    def _tell_stranger(self, fingerprint: str) -> str:
        """What is wrong with an officer who is none of those who were given, and what to fetch."""
        words = "which is not the one that was given"
        if OFFICERS not in self.lines:
            return f"{words}: if the office changed hands, name the publisher's {OFFICERS} with --officers"
        return words

    def link(self, office: _Office) -> None:
        """Officers who followed each other by successions that were verified. Who knows one of them knows those before, whom the
        next one named when accepting; and those after, since whoever accepts signs for the recovery keys that there are, too."""
        for officer, moment in office.left.items():
            self.left[officer] = min(moment, self.left.get(officer, moment))
        for key, moment in office.taken.items():
            self.taken[key] = min(moment, self.taken.get(key, moment))
        for given in office.chain:
            if given in self.given:
                self._linked.update((known, given) for known in office.chain if known not in self.given)


class _About:
    """A block that ends at its first fault, which is reported: what comes after the block runs all the same."""

    def __init__(self, report: _Report, name: str) -> None:
        self._report, self._name = report, name

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool:
        if isinstance(error, Fault):
            self._report("FAIL", f"{self._name}: {error.what}")
        return isinstance(error, Fault)


# --- JSON that was written by somebody else -------------------------------------------------------------------------------------

Json: TypeAlias = "float | str | list[Json] | Mapping[str, Json] | None"
_HEX, _NAME = re.compile(r"[0-9a-f]{64}"), re.compile(r"[a-z][a-z0-9-]{0,62}")
RELEASE = re.compile(r"[a-z][a-z0-9-]{0,62}/[A-Za-z0-9][A-Za-z0-9._-]{0,62}/r[1-9][0-9]{0,8}")
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


def get(content: Json, name: str, wanted: type | re.Pattern[str]) -> Any:
    """What `content` has under the name: of this type, or a text of this pattern."""
    value = _find(content, name)
    right = isinstance(value, wanted) if isinstance(wanted, type) else isinstance(value, str) and wanted.fullmatch(value)
    if not right or isinstance(value, bool):
        raise Fault(f"'{name}' is missing or is not what it must be")
    return value


def _find(content: Json, name: str) -> Json:
    """What `content` has under the name, whatever it is; None where there is nothing, or nothing has names."""
    return content.get(name) if isinstance(content, dict) else None


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
    "return": ("reviewer",),
    "remarks": ("reviewer", "officer", "steward"),
    "package": ("service", "officer"),
    "retract": ("officer",),
    "supersede": ("officer",),
    "succession": ("officer",),
    "accept-office": ("officer",),
    "recovery": ("officer",),
    "revoke": ("officer",),
    "clock": ("officer",),
    "restored": ("officer",),
}
RECOVERY = "recovery"  # events that name recovery keys, and what a succession says of them
RECOVER, HOLDER = "recover", "recovery"  # what holders of recovery keys sign, and their role: they are in no list of trusted keys
_MAY_SIGN = {**MAY_SIGN, RECOVER: (HOLDER,)}
SIGNED_EVENTS = {
    "trusted": "trusted-keys",
    "approved": "approve",  # of a candidate; else "policy" or "populations"
    "rejected": "reject",
    "returned": "return",
    "remarked": "remarks",
    "published": "package",
    "retracted": "retract",
    "superseded": "supersede",
    "recovery": "recovery",
    "revoked": "revoke",
    "clock": "clock",
    "restored": "restored",
}
VOTES = ("approve", "return", "reject")  # what reviewers sign of a candidate
TOMBSTONES = {"RETRACTED": "retract", "SUPERSEDED": "supersede"}
NANO = 10**9
MOST_BEFORE = 50  # generations of populations
SSH_NAMESPACE = "statement@release-pipeline"  # so that no SSH signature for another purpose is a statement
SSH_MAGIC, _SSH_HASHES = b"SSHSIG", (b"sha512", b"sha256")
SSH_KEY, SSH_TOKEN_KEY = b"ssh-ed25519", b"sk-ssh-ed25519@openssh.com"  # the latter in a FIDO token
SSH_ARMOR = ("-----BEGIN SSH SIGNATURE-----\n", "-----END SSH SIGNATURE-----\n")
_APPLICATION = re.compile(rb"ssh:[!-~]{0,60}")  # what a token's key is for, and signs with the message
_PRESENT, _VERIFIED = 0x01, 0x04  # flags of a token: somebody touched it; it asked for a PIN or a finger


@dataclass(frozen=True)
class SshSignature:
    """An SSH signature, taken apart. `public`: the key as lists of trusted keys have it, 32 bytes and a token's application;
    `token`: what a token says of the moment, flags and a counter, else nothing; `namespace`: what it is a signature for."""

    public: bytes
    hash_name: bytes
    signature: bytes
    token: bytes = b""
    namespace: str = SSH_NAMESPACE

    def tell_signed(self, message: bytes) -> bytes:
        """The bytes that the key itself signed, where the signature is of `message`."""
        digest = hashlib.new(self.hash_name.decode(), message).digest()
        signed = SSH_MAGIC + pack_ssh(self.namespace.encode(), b"", self.hash_name, digest)
        if not self.token:
            return signed
        return hashlib.sha256(self.public[32:]).digest() + self.token + hashlib.sha256(signed).digest()


def pack_ssh(*parts: bytes) -> bytes:
    """Texts as SSH writes them, each after its length."""
    return b"".join(struct.pack(">I", len(part)) + part for part in parts)


def unpack_ssh(content: bytes, count: int) -> list[bytes]:
    """That many texts, and nothing after them."""
    parts: list[bytes] = []
    for _ in range(count):
        end = 4 + int.from_bytes(content[:4], "big")
        if not 4 <= end <= len(content):
            raise Fault("it is cut off")
        parts.append(content[4:end])
        content = content[end:]
    if content:
        raise Fault("something comes after its end")
    return parts


def armor_ssh(blob: bytes) -> str:
    """An SSH signature as `ssh-keygen` writes it."""
    encoded = base64.b64encode(blob).decode()
    return "".join((SSH_ARMOR[0], *(f"{encoded[at : at + 70]}\n" for at in range(0, len(encoded), 70)), SSH_ARMOR[1]))


def read_ssh_key(blob: bytes) -> bytes:
    """An SSH public key as lists of trusted keys have it; `Fault` unless it is Ed25519, alone or in a FIDO token."""
    if blob.startswith(pack_ssh(SSH_TOKEN_KEY)):
        _, public, application = unpack_ssh(blob, 3)
        if not _APPLICATION.fullmatch(application):
            raise Fault("the application of its FIDO token is none of SSH")
    else:
        kind, public, application = *unpack_ssh(blob, 2), b""
        if kind != SSH_KEY:
            raise Fault("it is not an Ed25519 key")
    if len(public) != 32:
        raise Fault("its key has not 32 bytes")
    return public + application


def read_ssh_signature(text: str, wanted: str = SSH_NAMESPACE) -> SshSignature:
    """What the text of an SSH signature says; `Fault` unless it is the one form of it, in the namespace that is `wanted`. Whether
    it holds is not looked at."""
    encoded = text.removeprefix(SSH_ARMOR[0]).removesuffix(SSH_ARMOR[1]).replace("\n", "")
    blob = _base64(encoded) if len(text) < 4096 else b""
    if armor_ssh(blob) != text or not blob.startswith(SSH_MAGIC + b"\0\0\0\1"):
        raise Fault("it is not an SSH signature as ssh-keygen writes it")
    key, namespace, reserved, hash_name, signature = unpack_ssh(blob[10:], 5)
    if namespace != wanted.encode() or reserved or hash_name not in _SSH_HASHES:
        raise Fault(f"it is not an SSH signature in the namespace {wanted}")
    public = read_ssh_key(key)
    token = signature[-5:] if len(public) > 32 else b""
    kind, signed = unpack_ssh(signature[: len(signature) - len(token)], 2)
    if kind != (SSH_TOKEN_KEY if token else SSH_KEY) or len(signed) != 64:
        raise Fault("it is by another kind of key than it names")
    if token and token[0] not in (_PRESENT, _PRESENT | _VERIFIED):
        raise Fault("the FIDO token signed it while nobody touched it")
    return SshSignature(public, hash_name, signed, token, wanted)


def pack_ssh_key(public: bytes) -> bytes:
    """An SSH public key of 32 bytes and a token's application; `read_ssh_key` reads it."""
    return pack_ssh(SSH_TOKEN_KEY, public[:32], public[32:]) if len(public) > 32 else pack_ssh(SSH_KEY, public)


def hash_ssh_key(public: bytes) -> str:
    """The fingerprint of a key, in hex; `ssh-keygen -l` writes the same SHA-256 in base64."""
    return hashlib.sha256(pack_ssh_key(public)).hexdigest()


def name_ssh_key(public: bytes) -> str:
    """A key as OpenSSH and lists of trusted keys write it: its kind, and base64."""
    kind = SSH_TOKEN_KEY if len(public) > 32 else SSH_KEY
    return f"{kind.decode()} {base64.b64encode(pack_ssh_key(public)).decode()}"


def parse_ssh_key(text: str) -> bytes:
    """The key that `name_ssh_key` wrote; `Fault` for any other text."""
    public = read_ssh_key(_base64(text.partition(" ")[2]))
    if name_ssh_key(public) != text:
        raise Fault("it is not a key as OpenSSH writes it")
    return public


def message_of(statement: Any) -> bytes:
    """The bytes that an SSH signature of a statement is of: a text file of one line."""
    return canonical_json(statement).encode() + b"\n"


def _is_signed_by(public: bytes, signed: Any) -> bool:
    """Whether the key made the SSH signature of a statement."""
    made = read_ssh_signature(get(signed, "sshsig", str))
    return made.public == public and _holds(public[:32], made.tell_signed(message_of(signed["statement"])), made.signature)


@dataclass(frozen=True)
class Key:
    """A trusted key: whose, for what, its 32 bytes (after them a FIDO token's application), and its fingerprint."""

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
    found = _read_entries(get(document, "keys", dict), ROLES)
    if [key.role for key in found.values()].count("officer") != 1 or len(document) != 1:
        raise Fault("it must name exactly one officer, and nothing but keys")
    return found


def _read_entries(entries: Mapping[str, Any], roles: Collection[str]) -> dict[str, Key]:
    found: dict[str, Key] = {}
    for name, entry in entries.items():
        text, role = get(entry, "key", str), get(entry, "role", str)
        try:
            public = parse_ssh_key(text)
        except Fault:
            public = b""
        if not _NAME.fullmatch(name) or not public or role not in roles or len(entry) != 2:
            raise Fault(f"the entry of '{name}' is not a name with an Ed25519 key and a role")
        found[name] = Key(name, role, public, hash_ssh_key(public))
    if len({key.fingerprint for key in found.values()}) < len(found):
        raise Fault("one key stands there under two names")
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


def _verify_keys(signed: Any, keys: Mapping[str, Key], digest: str) -> Statement:
    """What an officer signed of a list of keys: the list of that hash, by the officer in it."""
    return _verify_statement(signed, keys, kind="trusted-keys", subject="trusted-keys", hash=digest)


def _verify_statement(signed: Any, keys: Mapping[str, Key], **wanted: str) -> Statement:
    """Likewise, and its `kind`, `subject` and `hash` must be these where they are given."""
    statement = get(signed, "statement", dict)
    get(signed, "sshsig", str)
    for name, shape in _SHAPES.items():
        get(statement, name, shape)
    if len(statement) != len(_SHAPES) or len(signed) != 2:
        raise Fault("it has other parts than a signed statement")
    key = keys.get(statement["name"])
    if key is None or key.fingerprint != statement["signer"]:
        raise Fault(f"it names '{statement['name']}' with a key that is not in the list of trusted keys")
    if key.role not in _MAY_SIGN.get(statement["kind"], ()):
        raise Fault(f"'{key.name}' has the role {key.role}, which may not sign '{statement['kind'][:40]}'")
    if not _is_signed_by(key.public, signed):
        raise Fault(f"the signature of '{key.name}' is not valid")
    for name, value in wanted.items():
        if statement[name] != value:
            raise Fault(f"it is signed for another {name}: '{statement[name][:140]}' in place of '{value[:140]}'")
    return Statement(**statement, role=key.role)


# --- Remarks -------------------------------------------------------------------------------------------------------------------

REMARKS_FORMAT = "release-pipeline/remarks/1"
MOST_REMARKS, LONGEST_REMARK, LONGEST_PASSAGE = 200, 2000, 300
_HIDDEN = frozenset("\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")  # they turn what stands beside them


@dataclass(frozen=True)
class Remarks:
    """What somebody remarked of a candidate or a policy with this hash: passages with texts. The passage "" is the whole."""

    subject: str
    hash: str
    entries: tuple[tuple[str, str], ...]

    @property
    def document(self) -> dict[str, Any]:
        """What is signed, whose canonical JSON has the hash in the statement."""
        entries = [{"passage": passage, "text": text} for passage, text in self.entries]
        return {"format": REMARKS_FORMAT, "subject": self.subject, "hash": self.hash, "remarks": entries}


def read_remarks(document: Any) -> Remarks:
    """The remarks in a document; `Fault` unless it has its form, and nothing that cannot be read. No message has a text of it."""
    if get(document, "format", str) != REMARKS_FORMAT:
        raise Fault(f"its format is not {REMARKS_FORMAT}")
    subject, digest, listed = get(document, "subject", str), get(document, "hash", _HEX), get(document, "remarks", list)
    if not (RELEASE.fullmatch(subject) or _NAME.fullmatch(subject)):
        raise Fault("its subject is neither a release nor a policy")
    if len(document) != 4 or not 0 < len(listed) <= MOST_REMARKS:
        raise Fault(f"it must have 1 to {MOST_REMARKS} remarks, and nothing else")
    entries: list[tuple[str, str]] = []
    for number, entry in enumerate(listed, start=1):
        try:
            passage, text = get(entry, "passage", str), get(entry, "text", str)
        except Fault as fault:
            raise Fault(f"remark {number}: {fault.what}") from None
        if len(entry) != 2:
            raise Fault(f"remark {number} has more than a passage and a text")
        if len(passage) > LONGEST_PASSAGE or not (passage or " ").isprintable():
            raise Fault(f"remark {number}: a passage is one line of at most {LONGEST_PASSAGE} characters")
        if not text.strip() or len(text) > LONGEST_REMARK:
            raise Fault(f"remark {number}: a text has 1 to {LONGEST_REMARK} characters")
        if any(_is_unreadable(c) for c in text):
            raise Fault(f"remark {number}: its text has a character that cannot be seen, other than the end of a line")
        entries.append((passage, text))
    return Remarks(subject, digest, tuple(entries))


REVIEW, REVIEW_FORMAT = "review.json", "release-pipeline/reviewed/1"  # of dossiers: what people signed while it was reviewed


def is_review(kind: str, release: str, content: Mapping[str, Any], about: str) -> bool:
    """Whether an event is a vote on a release, or has remarks on it or on its policy."""
    if kind == "remarked":
        return content.get("subject") in (about, about.split("/")[0])
    return kind in ("approved", "returned", "rejected") and release == about


def hash_remarks(document: Any) -> str:
    """The hash that a statement of remarks has: SHA-256 of the canonical JSON of its document."""
    return _sha256(canonical_json(document))


def _is_unreadable(c: str) -> bool:
    return (c < " " and c != "\n") or "\x7f" <= c <= "\x9f" or "\ud800" <= c <= "\udfff" or c in _HIDDEN


# --- The office: who followed whom, and whose keys were revoked -----------------------------------------------------------------

OFFICE = "officer"  # what a succession is about
MOST_HOLDERS = 50
SLACK = timedelta(seconds=60)  # that the clocks of two machines may differ
VOTE_SLACK = timedelta(minutes=10)  # a clock that is so slow does not date a vote back: `approve` refuses by this number, too


@dataclass(frozen=True)
class Revocation:
    """That a key counts no more from a moment on: by which event, who signed that, and whether it was those who hold the recovery
    keys. `stands`: kind, subject and hash of what it signed before for the public; None where nobody listed that."""

    key: str
    since: datetime
    event: int
    signer: str
    quorum: bool = False
    stands: frozenset[tuple[str, str, str]] | None = None


class _Office:
    """The officer and how they came to it, as the events that it follows say. `chain`: the fingerprints of those who followed
    each other by successions that hold; `left`: when each left; `taken`: keys that successions revoked;
    `rooted`: whether a quorum must have named the officer before as the one it replaces."""

    def __init__(self, *, rooted: bool = True) -> None:
        self.keys: dict[str, Key] = {}
        self.chain: list[str] = []
        self.left: dict[str, datetime] = {}
        self.taken: dict[str, datetime] = {}
        self.revoked: list[tuple[str, datetime]] = []  # by the last succession that is followed
        self._rooted, self._was = rooted, set[str]()
        self.holders: dict[str, Key] = {}
        self.threshold = self.number = 0
        self._named = ""  # the hash of the recovery keys

    def follow_list(self, content: Mapping[str, Any], keys: dict[str, Key]) -> None:
        """A list of keys that its own officer signed; `Fault` where it tells of a succession that does not hold. An officer whom
        no succession brought begins a chain of their own, which a person must know."""
        officer, succession = _officer(keys), content.get("succession")
        if succession is not None:
            self._check_succession(succession, content, keys)
            if self.chain:
                self.left[self.chain[-1]] = _read_moment(succession["accepted"]["statement"]["at"])
            self.chain.append(officer)
        elif self.chain[-1:] != [officer]:
            self.chain, self.left, self.taken = [officer], {}, {}
        self._was.add(officer)
        self.keys, self.revoked = keys, [] if succession is None else _list_revoked(succession)
        for key, since in self.revoked:
            self.taken[key] = min(since, self.taken.get(key, since))

    def _check_succession(self, succession: Any, content: Mapping[str, Any], keys: dict[str, Key]) -> None:
        """That the officer before signed it over, or enough of those who hold recovery keys did."""
        officer, before = _officer(keys), _officer(self.keys) if self.keys else ""
        signed = get(succession, "signed", list)
        names = ("from", "registry", "revoked", RECOVERY)
        document = {name: succession.get(name) for name in names}
        wanted = {"subject": OFFICE, "hash": _sha256(canonical_json({**document, "keys": content.get("keys")}))}
        if len(succession) != len(names) + 2 or not 0 < len(signed) <= MOST_HOLDERS:
            raise Fault("it has other parts than a succession")
        if document[RECOVERY] != self._named:
            raise Fault("it was signed where other recovery keys were named, or none")
        if officer in self._was:
            raise Fault("its officer held the office before: a key that gave it away never gets it back")
        _verify_statement(succession.get("accepted"), keys, kind="accept-office", **wanted)
        recovered = get(get(signed[0], "statement", dict), "kind", str) == RECOVER
        if document["from"] != before and (self._rooted or not recovered):
            raise Fault("it names another officer than the one before it: a succession between them is missing")
        if recovered:
            self._check_quorum(signed, **wanted)
        elif len(signed) > 1 or document["revoked"] != []:
            raise Fault("more than one signed it over, or it revokes something, which only recovery keys may")
        else:
            _verify_statement(signed[0], self.keys, kind="succession", **wanted)

    def _check_quorum(self, signed: Json, **wanted: str) -> None:
        """Enough of those who hold recovery keys; each counts once."""
        if not isinstance(signed, list) or len(signed) > MOST_HOLDERS:
            raise Fault("there is no list of what the holders of recovery keys signed")
        people = {_verify_statement(each, self.holders, kind=RECOVER, **wanted).signer for each in signed}
        if not 0 < self.threshold <= len(people):
            raise Fault(f"{len(people)} of the recovery keys signed it, and {self.threshold or 'none was named and some'} must")

    def follow_recovery(self, content: Mapping[str, Any]) -> Statement:
        """Recovery keys that the officer named; once there are some, enough of them must agree to others."""
        document = {name: content.get(name) for name in ("keys", "number", "threshold")}
        digest, threshold = _sha256(canonical_json(document)), get(content, "threshold", int)
        signed = _verify_statement(content.get("signed"), self.keys, kind="recovery", subject="recovery", hash=digest)
        holders = _read_entries(get(content, "keys", dict), (HOLDER,))
        if not 0 < threshold <= len(holders) <= MOST_HOLDERS or get(content, "number", int) != self.number + 1:
            raise Fault("its threshold is none of so many keys, or it does not follow the recovery keys before it")
        if self.threshold:
            self._check_quorum(content.get("quorum"), subject="recovery", hash=digest)
        self.holders, self.threshold, self.number = holders, threshold, self.number + 1
        self._named = digest
        return signed


def _list_revoked(succession: Any) -> list[tuple[str, datetime]]:
    return [(get(each, "key", _HEX), _read_moment(get(each, "from", _TIME))) for each in get(succession, "revoked", list)]


def _read_revocation(content: Mapping[str, Any], number: int, signer: str) -> Revocation:
    """The last entry of a list of revoked keys: what the event that has it adds."""
    entries = get(get(content, "document", dict), "revoked", list)
    return _read_entry(entries[-1] if entries else None, number, signer)


def _read_entry(entry: Any, number: int, signer: str) -> Revocation:
    known = frozenset(_read_standing(each) for each in get(entry, "stands", list))
    return Revocation(get(entry, "key", _HEX), _read_moment(get(entry, "from", _TIME)), number, signer, stands=known)


def _read_standing(each: Json) -> tuple[str, str, str]:
    """The kind, subject and hash of something that stands although its key was revoked."""
    if not isinstance(each, list) or len(each) != 3 or not all(isinstance(part, str) for part in each):
        raise Fault("what stands of a revoked key is no list of kinds, subjects and hashes")
    kind, subject, digest = (str(part) for part in each)
    return kind, subject, digest


def _read_officers(document: Any) -> _Office:
    """The office as an officers.json tells it: the first list of keys, and everything by which officers followed each other."""
    office, links = _Office(), get(document, "officers", list)
    if not 0 < len(links) <= 1000:
        raise Fault("there is no officer in it, or more than any office had")
    for link in links:
        kind, content = get(link, "kind", str), get(link, "content", dict)
        if kind == "recovery":
            office.follow_recovery(content)
        elif kind == "trusted" and (not office.chain or content.get("succession") is not None):
            document = {"keys": content.get("keys")}
            keys = read_keys(document)
            _verify_keys(content.get("signed"), keys, _sha256(canonical_json(document)))
            office.follow_list(content, keys)
        else:
            raise Fault("there is something in it that makes nobody officer")
    return office


# --- The list of revoked keys that a publisher gives away -----------------------------------------------------------------------

REVOKED_FORMAT = "release-pipeline/revoked/1"
MOST_SECONDS = 30.0


@dataclass(frozen=True)
class _Revocations:
    """The list, verified: its number, when it was signed, the office up to who signed it, and what it says by key."""

    number: int
    at: str
    office: _Office
    entries: Mapping[str, Revocation]


def _read_revocations(content: bytes) -> _Revocations:
    """`Fault` unless its last officer signed it."""
    whole = read_json(content)
    document, office = get(whole, "document", dict), _read_officers(whole)
    digest, number, entries = _sha256(canonical_json(document)), get(document, "number", int), get(document, "revoked", list)
    if get(document, "format", str) != REVOKED_FORMAT or document.get("officers") != office.chain or not entries:
        raise Fault("it is no list of revoked keys of these officers, in a format that is known")
    last = get(entries[-1], "key", _HEX)
    signed = _verify_statement(whole.get("signed"), office.keys, kind="revoke", subject=last, hash=digest)
    found: dict[str, Revocation] = {}
    for entry in (_read_entry(each, sys.maxsize, signed.signer) for each in entries):  # by its date alone
        if entry.key not in found or entry.since < found[entry.key].since:  # the earlier date tells what the later one does
            found[entry.key] = entry
    return _Revocations(number, signed.at, office, found)


def _fetch(place: str) -> bytes:
    """A file, or what an address that begins with http:// or https:// gives: not too long, nor too slow, by no other protocol."""
    if not place.startswith(("http://", "https://")):
        try:
            with io.BufferedReader(_open_plain(Path(place))) as file:
                return file.read(MOST_JSON + 1)
        except (OSError, ValueError):
            raise Fault("there is no such file that can be read") from None
    import http.client  # here, for what only asks this file to read a signature would load the network's libraries, too
    import urllib.request

    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.UnknownHandler(),
    ):  # no redirections: what answers is what was named
        opener.add_handler(handler)
    until, content = time.monotonic() + MOST_SECONDS, b""
    try:
        with opener.open(place, timeout=MOST_SECONDS / 3) as answer:
            while len(content) <= MOST_JSON and (chunk := answer.read1(2**16)):
                content += chunk
                if time.monotonic() > until:
                    raise Fault(f"it took longer than {MOST_SECONDS:.0f} s to come")
    except (OSError, ValueError, http.client.HTTPException):  # urllib's own errors are among the first
        raise Fault("the address gives nothing: try again, or fetch the list yourself and name the file") from None
    return content


# --- Files of a folder or a zip, neither of them trusted ------------------------------------------------------------------------

SUMS, SUMS_SIG, CARD = "SHA256SUMS", "SHA256SUMS.sig", "privacy-card.json"
KEYS, KEYS_SIG, EVENTS = "trusted-keys.json", "trusted-keys.sig", "events.jsonl"
DOSSIER, POPULATIONS, OFFICERS = "dossier.json", "populations.json", "officers.json"
PACKAGE = "package/"  # of a dossier
MOST_FILES, MOST_FOLDERS_DEEP, MOST_BYTES, MOST_TO_PARSE = 10_000, 8, 64 * 2**30, 64 * 2**20
MOST_UNPACKED, MOST_RATIO, MOST_SIGNATURES = 2**30, 200, 20_000
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}")
_UNREADABLE = (OSError, EOFError, RuntimeError, ValueError, LookupError, struct.error, zlib.error, zipfile.BadZipFile)


def _is_plain(name: str) -> bool:
    return all(_PART.fullmatch(part) for part in name.split("/")) and name.count("/") < MOST_FOLDERS_DEEP


class Tree:
    """Files by name, and what is wrong with names. `place` is the end of the path of the folder that they are in."""

    def __init__(self, open_file: Callable[[str], IO[bytes]], place: str, prefix: str = "") -> None:
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

    def under(self, folder: str) -> Tree:
        """The files of one folder of it."""
        start = len(folder) + 1
        part = Tree(lambda name: self._open(f"{folder}/{name}"), "", f"{self.prefix}{folder}/")
        part.sizes = {name[start:]: size for name, size in self.sizes.items() if name.startswith(f"{folder}/")}
        part._digests = {name[start:]: digest for name, digest in self._digests.items() if name.startswith(f"{folder}/")}
        return part

    def remember(self, name: str, digest: str) -> None:
        """The hash of a file that is not read again."""
        self._digests[name] = digest

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
def open_tree(path: Path) -> Generator[Tree]:
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
            yield _scan_zip(archive, file, whole.stat().st_size)


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


def _scan_folder(root: Path) -> Tree:
    tree, folders = Tree(lambda name: io.BufferedReader(_open_plain(root / name)), "/".join(root.parts[-3:])), [""]
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


def _scan_zip(archive: zipfile.ZipFile, file: io.BufferedReader, size: int) -> Tree:
    folders = [entry for entry in archive.infolist() if entry.filename.endswith("/") and entry.file_size == 0]
    entries = [entry for entry in archive.infolist() if not (entry.filename.endswith("/") and entry.file_size == 0)]
    folder = min((entry.filename.rpartition("/")[0] for entry in entries), key=len, default="")  # around everything, if one is
    if not (_is_plain(folder) and all(entry.filename.startswith(f"{folder}/") for entry in entries)):
        folder = ""
    start = len(folder) + 1 if folder else 0
    infos: dict[str, zipfile.ZipInfo] = {}
    tree = Tree(lambda name: io.BufferedReader(_Packed(file, infos[name])), "/".join(folder.split("/")[-3:]))
    for entry in entries:
        name, kind = entry.filename[start:], stat.S_IFMT(entry.external_attr >> 16)
        unusual = kind not in (0, stat.S_IFREG) or entry.flag_bits & 1 or entry.compress_type not in (0, zipfile.ZIP_DEFLATED)
        cut = entry.orig_filename != entry.filename
        tree.add(name, entry.file_size, "is a link, or encrypted, or packed in an unusual way" if unusual or cut else "")
        infos.setdefault(name, entry)
    if sum(entry.file_size for entry in entries) > min(MOST_BYTES, max(MOST_UNPACKED, MOST_RATIO * size)):
        raise Fault("unpacked it would be larger than any package: perhaps it is made to fill a disk")
    tree.faults += _judge_folders(folders, {entry.filename.lower() for entry in entries})
    if not tree.faults:  # else it is refused anyway, by words that name a file
        _check_layout(file, archive)
    return tree


def _judge_folders(folders: Sequence[zipfile.ZipInfo], files: Collection[str]) -> list[str]:
    """What is wrong with folders that stand in a zip for themselves: some programs make them."""
    if len(folders) > MOST_FILES:
        raise Fault(f"there are more than {MOST_FILES} folders")
    faults = list[str]()
    for entry in folders:
        name, kind = entry.orig_filename[:-1], stat.S_IFMT(entry.external_attr >> 16)
        if entry.orig_filename != entry.filename or not _is_plain(name):
            faults.append(f"{name}/: is not a plain name")
        elif kind not in (0, stat.S_IFDIR) or entry.compress_size > len(_EMPTY) or name.lower() in files:
            faults.append(f"{name}/: is more than a folder")
    return faults


class _Packed(io.RawIOBase):
    """A file of a zip, unpacked. All of its packed bytes are of it: another program could find another file behind its end."""

    def __init__(self, file: io.BufferedReader, entry: zipfile.ZipInfo) -> None:
        super().__init__()
        file.seek(entry.header_offset + 26)
        self._file, self._entry = file, entry
        self._at = entry.header_offset + 30 + sum(struct.unpack("<2H", file.read(4)))
        self._left, self._crc = entry.compress_size, 0
        self._unpacker = zlib.decompressobj(-zlib.MAX_WBITS) if entry.compress_type else None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        content = self._take(len(buffer)) if self._unpacker is None else self._unpack(self._unpacker, len(buffer))
        self._crc = zlib.crc32(content, self._crc)
        if not content and (self._left or (self._unpacker and self._unpacker.unused_data) or self._crc != self._entry.CRC):
            raise zipfile.BadZipFile
        buffer[: len(content)] = content
        return len(content)

    def _unpack(self, unpacker: Any, most: int) -> bytes:
        while not unpacker.eof:
            packed: bytes = unpacker.unconsumed_tail or self._take(2**16)
            content: bytes = unpacker.decompress(packed, most)
            if content:
                return content
            if not packed and not unpacker.eof:
                raise zipfile.BadZipFile
        return b""

    def _take(self, most: int) -> bytes:
        self._file.seek(self._at)
        packed = self._file.read(min(most, self._left))
        self._at, self._left = self._at + len(packed), self._left - len(packed)
        return packed


_LARGE, _UNICODE_PATH = 0xFFFFFFFF, 0x7075
_EMPTY = b"\x03\0"  # nothing, deflated
_CRYPTIC, _DEFERRED, _NAMED, _MASKED = 0x41, 0x8, 0x800, 0x2000  # flags: encrypted, sizes after it, UTF-8, headers hidden
_OTHERWISE = "other programs may find other files in this zip than its directory names: pack the folder anew"


def _check_layout(file: io.BufferedReader, archive: zipfile.ZipFile) -> None:
    """The files lie one after the other from the first byte up to the directory, each as that says, and it up to the end. Who
    reads a zip from its start sees the directory last, and must find the same."""
    entries = sorted(archive.infolist(), key=lambda entry: entry.header_offset)
    ends = [*(entry.header_offset for entry in entries[1:]), archive.start_dir]
    if (entries[0].header_offset if entries else archive.start_dir) != 0:
        raise Fault(f"something stands before its first file: {_OTHERWISE}")
    try:
        for entry, end in zip(entries, ends):  # noqa: B905  Python 3.9 has no strict
            if not _is_as_told(file, entry, end):
                raise Fault(f"{entry.filename}: the directory tells otherwise of it, or something stands after it: {_OTHERWISE}")
        if not _ends_the_file(file, archive):
            raise Fault(f"its directory does not reach from its last file to its end: {_OTHERWISE}")
    except (ValueError, LookupError, struct.error, OSError):
        raise Fault(f"its entries are cut off: {_OTHERWISE}") from None


def _is_as_told(file: io.BufferedReader, entry: zipfile.ZipInfo, end: int) -> bool:
    """Whether an entry says of itself what the directory does, under that name alone, and ends at `end`."""
    file.seek(entry.header_offset)
    signature, _, flags, method, _, _, *told, of_name, of_extra = struct.unpack("<4s5H3L2H", file.read(30))
    name, mine, theirs = file.read(of_name), _read_extras(file.read(of_extra)), _read_extras(entry.extra)
    if _LARGE in told[1:]:
        told[2], told[1] = struct.unpack("<2Q", mine[1][:16])
    deferred, wanted = flags & _DEFERRED, [entry.CRC, entry.compress_size, entry.file_size]
    right = all(one == other or (deferred and not one) for one, other in zip(told, wanted))  # noqa: B905  Python 3.9 has no strict
    alike = not (flags ^ entry.flag_bits) & (_CRYPTIC | _DEFERRED | _MASKED) and method == entry.compress_type
    coding = "utf-8" if entry.flag_bits & _NAMED else "cp437"
    file.seek(packed_to := entry.header_offset + 30 + of_name + of_extra + entry.compress_size)
    after = file.read(end - packed_to) if 0 <= end - packed_to <= 24 else b"something else"
    return (
        (signature, name) == (b"PK\3\4", entry.orig_filename.encode(coding))
        and _UNICODE_PATH not in {*mine, *theirs}
        and right
        and alike
        and after in (_list_deferred(wanted) if deferred else (b"",))
        and not (deferred and method == zipfile.ZIP_STORED and entry.file_size)  # nobody could tell where it ends
    )


def _list_deferred(wanted: Sequence[int]) -> list[bytes]:
    """How CRC and sizes can stand behind a file."""
    forms = [struct.pack("<L2Q", *wanted)]
    if max(wanted) <= _LARGE:
        forms.append(struct.pack("<3L", *wanted))
    return [mark + form for form in forms for mark in (b"", b"PK\7\10")]


def _read_extras(extra: bytes) -> dict[int, bytes]:
    """The extra fields of an entry by their kinds, each once."""
    found: dict[int, bytes] = {}
    while len(extra) >= 4:
        kind, length = struct.unpack("<2H", extra[:4])
        if 4 + length > len(extra) or kind in found:
            raise ValueError
        found[kind], extra = extra[4 : 4 + length], extra[4 + length :]
    return found


def _ends_the_file(file: io.BufferedReader, archive: zipfile.ZipFile) -> bool:
    """Whether the directory has the entries that were read, and after it comes what ends a zip, once."""
    at, count = archive.start_dir, len(archive.infolist())
    for _ in range(count):
        file.seek(at + 28)
        at += 46 + sum(struct.unpack("<3H", file.read(6)))
    told = [count, at - archive.start_dir, archive.start_dir]
    file.seek(at)
    last = file.read(2**17)
    if last.startswith(b"PK\6\6"):  # of a large one
        large = struct.pack("<2L4Q", 0, 0, count, *told), struct.pack("<4sLQL", b"PK\6\7", 0, at, 1)
        if (last[4:12], last[16:56], last[56:76]) != (struct.pack("<Q", 44), *large):
            return False
        last = last[76:]
    signature, disk, disk_of_it, *numbers, of_comment = struct.unpack("<4s4H2LH", last[:22])
    known = [{count, 0xFFFF}, {count, 0xFFFF}, {told[1], _LARGE}, {told[2], _LARGE}]
    right = all(number in wanted for number, wanted in zip(numbers, known))  # noqa: B905  Python 3.9 has no strict
    whole = len(last) == 22 + of_comment and b"PK" not in last[22:]
    return right and whole and (signature, disk, disk_of_it) == (b"PK\5\6", 0, 0)


def read_sums(tree: Tree) -> dict[str, str]:
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


def _check_sums(report: _Report, tree: Tree, *, beside: Collection[str], absent: Callable[[str], str]) -> dict[str, str]:
    """Compare every file with SHA256SUMS, both ways, and give what that lists. `beside`: files that it need not list;
    `absent(name)`: why a listed one may be missing."""
    listed: dict[str, str] = {}
    before = len(report.findings)
    with report.about(tree.prefix + SUMS):
        listed = read_sums(tree)
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
    site: str = ""  # the hash of the first event of its registry, which is no other site's
    events: dict[int, str] = field(default_factory=dict[int, str])  # hashes of events that are known, by their number
    charge: Mapping[str, Any] = field(default_factory=dict[str, Any])  # as far as the card tells; in a dossier, the event's
    # charges of releases that were lost in a restore, those from before the backup and those that an officer entered
    lost: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    sums: dict[str, str] = field(default_factory=dict[str, str])
    tombstones: list[str] = field(default_factory=list[str])
    looks: int = 0  # at the data before the charge, as the card tells


def _check_keys(report: _Report, tree: Tree) -> dict[str, Key]:
    """The list of trusted keys, and whether its officer signed it and is the one that was given."""
    keys, at = dict[str, Key](), tree.prefix + KEYS
    with report.about(at):
        keys = read_keys(tree.json(KEYS))
    _check_officers(report, tree, keys)
    if keys:
        report.judge_officer(_officer(keys), at)
    with report.about(at):
        if keys:
            _check_same_office(report, tree, _officer(keys))
    with report.about(tree.prefix + KEYS_SIG):
        signed = _verify_keys(tree.json(KEYS_SIG), keys, tree.digest(KEYS))
        report("ok", f"{tree.prefix}{KEYS_SIG}: the list of {len(keys)} trusted keys is signed by its officer {signed.name}")
        _check_counts(report, tree.prefix + KEYS_SIG, signed, keys)
        report.dated.append((tree.prefix + KEYS_SIG, signed.at))
        _tell_what_dates_prove(report, at, _officer(keys))
    return keys


def _check_officers(report: _Report, tree: Tree, keys: Mapping[str, Key]) -> None:
    """How the officers followed each other, where a file tells it: where there was one officer only, none does. It must lead to
    the officer of these keys: an earlier one could put the way to a later one beside what they made since."""
    if OFFICERS not in tree.sizes:
        return
    with report.about(tree.prefix + OFFICERS):
        office = _read_officers(tree.json(OFFICERS))
        if keys and office.chain[-1] != _officer(keys):
            raise Fault(f"it leads to another officer than that of {KEYS}")
        report.link(office)
        report("ok", f"{tree.prefix}{OFFICERS}: {_tell_way(office)}")


def _tell_way(office: _Office) -> str:
    return f"the office went from {' to '.join(each[:12] for each in office.chain)}, each time signed by who had to"


def _check_same_office(report: _Report, tree: Tree, officer: str) -> None:
    """What was named beside the package, and the package, must be of one line of officers: an officer may have signed for two."""
    mine = tuple(_read_officers(tree.json(OFFICERS)).chain) if report.lines and OFFICERS in tree.sizes else (officer,)
    for name, known in report.lines.items():
        if officer in known and mine in (known[: len(mine)], (officer,)):
            continue
        if known != mine[: len(known)]:
            raise Fault(f"the {name} is of other officers: the office has forked, or it is another publisher's")
        report("note", f"{tree.prefix}{KEYS}: the {name} was signed before this officer came: get a newer one")


def _check_counts(report: _Report, where: str, signed: Statement, keys: Mapping[str, Key]) -> None:
    """What a revoked key signed stands only where the list names it: the moment in it is the word of who had the key. In a
    package the signature must be of the office's time too; in a dossier the place of the event decides."""
    revoked = report.revocations.entries.get(signed.signer) if report.revocations else None
    since = f"{revoked.since:%Y-%m-%d %H:%M} UTC" if revoked else ""
    if revoked and (signed.kind, signed.subject, signed.hash) in (revoked.stands or ()):
        report("ok", f"{where}: the key of {signed.name} was revoked from {since} on; this was signed before, as the list says")
    elif revoked and _read_moment(signed.at) >= revoked.since:
        raise Fault(f"it was signed at {signed.at} with the key of {signed.name}, which was revoked from {since} on")
    elif revoked:
        words = f"it says that it was signed at {signed.at}, before the key of {signed.name} was revoked from {since} on"
        raise Fault(f"{words}, and the list does not name it among what stands: it is dated back, or was never published")
    elif not where.startswith(PACKAGE):
        _check_not_taken(report, signed)
        _check_in_office(report, signed, _officer(keys))


def _check_not_taken(report: _Report, signed: Statement) -> None:
    """A key that holders of recovery keys took back in a succession signs nothing from then on; nor before, for all that a
    stranger can tell: a thief dates as they like. Only a list tells what stands."""
    taken = report.taken.get(signed.signer)
    if taken is None:
        return
    since = f"{taken:%Y-%m-%d %H:%M} UTC"
    if _read_moment(signed.at) >= taken:
        words = f"it was signed at {signed.at} with the key of {signed.name}, which recovery keys revoked from {since} on"
        raise Fault(f"{words}: it does not count")
    words = (
        f"recovery keys revoked the key of {signed.name} from {since} on, and whoever has it can date this back to {signed.at}"
    )
    if report.revocations is None:
        raise Fault(f"{words}: name the publisher's list of revoked keys with --revocations, which tells what stands")
    raise Fault(f"{words}: the list of revoked keys does not name that key: get the newest")


def _check_in_office(report: _Report, signed: Statement, officer: str) -> None:
    """What was signed under the list of an officer who left was signed before; where there is a list of revoked keys, it must
    name what stands of that officer."""
    left = report.left.get(officer)
    if left is None:
        return
    since = f"{left:%Y-%m-%d %H:%M:%S} UTC"
    if _read_moment(signed.at) > left:
        words = f"it was signed at {signed.at}, and the officer of its {KEYS} left at {since}"
        raise Fault(f"{words}: it does not count (if a clock was wrong then, --revocations tells what stands)")
    if report.revocations is not None and signed.signer == officer:
        words = (
            f"list {report.revocations.number} of revoked keys does not tell what stands of {signed.name}, who left at {since}"
        )
        raise Fault(
            f"{words}, and whose key can date this back: get the newest; if none does, the publisher must revoke that key"
        )


def _tell_what_dates_prove(report: _Report, where: str, officer: str) -> None:
    """Where only dates say that a former officer's key signed in time, a person must know that."""
    revoked = report.revocations is not None and officer in report.revocations.entries
    if officer in report.left and not revoked and not where.startswith(PACKAGE):
        left = f"its officer left at {report.left[officer]:%Y-%m-%d %H:%M:%S} UTC"
        words = "that it was signed before is the word of who had the key then: the list of revoked keys knows (--revocations)"
        report("note", f"{where}: {left}; {words}")


def _officer(keys: Mapping[str, Key]) -> str:
    return next(key.fingerprint for key in keys.values() if key.role == "officer")


def _check_package(report: _Report, tree: Tree, *, data_may_be_away: bool) -> _Package:
    keys, found, at = _check_keys(report, tree), _Package(), tree.prefix
    with report.about(at + CARD):
        card = tree.json(CARD)
        found.release, head = get(card, "release", RELEASE), get(card, "registry_head", dict)
        found.head, found.site = (get(head, "event", int), get(head, "hash", _HEX)), get(head, "first", _HEX)
        found.events = dict([found.head])
        report("ok", f"{at}{CARD}: release {found.release}; the registry stood at event {found.head[0]}, hash {found.head[1]}")
        found.charge = {"policy_hash": _find(_find(card, "hashes"), "policy"), "rows": _find(_find(card, "rows"), "in")}
        if _find(card, "looks") is not None:
            found.looks = get(get(card, "looks", dict), "count", int)
            words = f"parameters may have been chosen with knowledge of the data, by {_looks(found.looks)}"
            words += ", which no epsilon accounts for"
            report("note", f"{at}{CARD}: {words}")
    signer = ""
    with report.about(at + SUMS_SIG):
        found.hash = tree.digest(SUMS)
        signed = _verify_statement(tree.json(SUMS_SIG), keys, kind="package", subject=found.release, hash=found.hash)
        signer = signed.signer
        report("ok", f"{at}{SUMS_SIG}: release {found.release} is signed by {signed.name} ({signed.role}) at {signed.at}")
        _check_counts(report, at + SUMS_SIG, signed, keys)
        report.dated.append((at + SUMS_SIG, signed.at))
    if RELEASE.fullmatch(tree.place):
        level, words = ("ok", "as") if tree.place == found.release else ("FAIL", "otherwise than")
        report(level, f"{tree.place}: the folder is named {words} the release in it, {found.release or 'which does not tell'}")
    tombstones = [name for name in TOMBSTONES if f"{name}.json" in tree.sizes]
    for name in tombstones:
        with report.about(f"{at}{name}.json"):
            wanted = {"kind": TOMBSTONES[name], "subject": found.release, "hash": found.hash}
            theirs = _keys_of_tombstone(report, tree, name, keys)
            signed = _verify_statement(tree.json(f"{name}.json"), theirs, **wanted)
            _check_counts(report, f"{at}{name}.json", signed, theirs)
            report.dated.append((f"{at}{name}.json", signed.at))
            _report_tombstone(report, f"{at}{name}.json", signed)
            found.tombstones.append(TOMBSTONES[name])
            report("note", f"{at}{name}.md: signed by nobody; what counts is {name}.json")
    away = "removed by the retraction" if "retract" in found.tombstones else "not in a dossier" if data_may_be_away else ""
    beside = [SUMS_SIG, *(f"{name}.{end}" for name in tombstones for end in ("json", "md", OFFICERS))]
    found.sums = _check_sums(report, tree, beside=beside, absent=lambda name: away if name.startswith("data.") else "")
    with report.about(at + SUMS_SIG):
        report.note_moments(report.dated)
    _check_attestation(report, tree, keys, found, signer)
    return found


def _keys_of_tombstone(report: _Report, tree: Tree, name: str, keys: Mapping[str, Key]) -> Mapping[str, Key]:
    """The package's own, or those of an officer who came after it was made, with the way from its officer to them beside it."""
    if (beside := f"{name}.{OFFICERS}") not in tree.sizes:
        return keys
    office = _read_officers(tree.json(beside))
    if not keys or _officer(keys) not in office.chain:
        raise Fault(f"{beside} does not begin with the officer of the package")
    lines = dict(report.lines)
    if OFFICERS in tree.sizes:
        lines[OFFICERS] = tuple(_read_officers(tree.json(OFFICERS)).chain)
    for line, known in lines.items():
        if any(one != other for one, other in zip(office.chain, known)):  # noqa: B905  Python 3.9 has no strict
            raise Fault(f"{beside} and the {line} are of other officers: the office has forked, or it is another publisher's")
    report.link(office)
    report.judge_officer(office.chain[-1], tree.prefix + beside)
    return office.keys


def _report_tombstone(report: _Report, where: str, signed: Statement) -> None:
    """A retraction fails whatever else is right; that something newer is there is for a person to weigh."""
    level, word = ("FAIL", "retracted") if signed.kind == "retract" else ("note", "superseded")
    report(level, f"{where}: {word.upper()}: release {signed.subject} was {word} at {signed.at} by {signed.name}: {signed.why}")


# --- The package's statement, in the form of in-toto ---------------- -----------------------------------------------------------

ALLOWED, ATTESTATION = "allowed_signers", "attestation.intoto.json"
ATTESTATION_SSH = f"{ATTESTATION}.sig"
ATTESTATIONS = (ATTESTATION, ATTESTATION_SSH)  # the statement cannot name these
STATEMENT_TYPE, PREDICATE_TYPE = "https://in-toto.io/Statement/v1", "urn:release-pipeline:package:1"
ATTESTED = (  # what the statement repeats of the card, word for word
    *("release", "published", "supersedes", "tool", "policy", "population", "claim", "method", "looks", "hashes"),
    "registry_head",
)
PACKAGE_NAMESPACE = "package@release-pipeline"  # of SSH signatures of such a statement, and of nothing else


def write_allowed_signers(keys: Mapping[str, Key]) -> str:
    """The keys of a list of trusted keys that may sign packages, as ssh-keygen reads them."""
    return "".join(
        f'{key.name} namespaces="{PACKAGE_NAMESPACE},{SSH_NAMESPACE}" {name_ssh_key(key.public)}\n'
        for key in keys.values()
        if key.role in MAY_SIGN["package"]
    )


def _check_attestation(report: _Report, tree: Tree, keys: Mapping[str, Key], package: _Package, signer: str) -> None:
    """The statement about the package's files: it agrees with the list of sums and the card, and is signed by the key that signed
    the list of sums, whose revocation was looked at there."""
    at, of_package = tree.prefix, {key.fingerprint: key for key in keys.values() if key.role in MAY_SIGN["package"]}
    with report.about(at + ALLOWED):
        if tree.read(ALLOWED) != write_allowed_signers(keys).encode():
            raise Fault(f"it does not have just the keys that may sign packages by {KEYS}")
        report("ok", f"{at}{ALLOWED}: the keys that may sign packages by {KEYS}, which vouches for them; alone it proves nothing")
    with report.about(at + ATTESTATION):
        for name in ATTESTATIONS:
            if name not in package.sums:
                raise Fault(f"{SUMS} does not list {name}, which every package has")
        count = _compare_statement(tree.json(ATTESTATION), tree.json(CARD), package)
        words = f"a statement about {count} files, with the hashes that {SUMS} lists; of the release it says what {CARD} says"
        report("ok", f"{at}{ATTESTATION}: {words}")
    if ATTESTATION_SSH not in tree.sizes:  # if it should be there, the list of sums has said so
        return
    with report.about(at + ATTESTATION_SSH):
        try:
            text = tree.read(ATTESTATION_SSH).decode("ascii")
        except UnicodeDecodeError:
            raise Fault("it has bytes that no such signature has") from None
        key = _find_attester(tree.read(ATTESTATION), text, of_package)
        if signer and key.fingerprint != signer:
            raise Fault(f"it is signed by {key.name}, who did not sign {SUMS}")
        report("ok", f"{at}{ATTESTATION_SSH}: that statement is signed by {key.name} ({key.role})")


def _compare_statement(said: Any, card: Any, package: _Package) -> int:
    """How many files the statement is about; `Fault` unless these are all of the package, and it agrees with the card."""
    if (get(said, "_type", str), get(said, "predicateType", str)) != (STATEMENT_TYPE, PREDICATE_TYPE):
        raise Fault(f"it is not a statement of {STATEMENT_TYPE} that says {PREDICATE_TYPE}")
    if set(said) - {"_type", "subject", "predicateType", "predicate"}:
        raise Fault("it says more than such a statement does")
    told = dict[str, str]()
    for subject in get(said, "subject", list):
        name = get(subject, "name", str)
        if name in told:
            raise Fault("it names a file twice")
        digest = get(subject, "digest", dict)
        if set(subject) - {"name", "digest"} or set(digest) - {"sha256"}:
            raise Fault(f"of {name[:200]} it says more than a SHA-256")
        told[name] = get(digest, "sha256", _HEX)
    wanted = {name: digest for name, digest in package.sums.items() if name not in ATTESTATIONS}
    for name in sorted({*told, *wanted}):
        if told.get(name) != wanted.get(name):
            raise Fault(f"of {name[:200]} it says otherwise than {SUMS}")
    predicate = get(said, "predicate", dict)
    if get(predicate, "release", RELEASE) != package.release:
        raise Fault("it is about another release than the card")
    for name in sorted({*predicate, *(name for name in ATTESTED if _find(card, name) is not None)}):
        if name not in predicate or canonical_json(_find(card, name)) != canonical_json(predicate[name]):
            raise Fault(f"of '{name[:200]}' it says otherwise than {CARD}")  # what the card has not, it says nothing of
    return len(told)


def _find_attester(payload: bytes, text: str, keys: Mapping[str, Key]) -> Key:
    """The key with this SSH signature of just these bytes, in the namespace of packages."""
    made = read_ssh_signature(text, PACKAGE_NAMESPACE)
    key = keys.get(hash_ssh_key(made.public))
    if key is None:
        raise Fault(f"it is signed with a key that may not sign packages by {KEYS}")
    if not verify_signature(key.public[:32], made.tell_signed(payload), made.signature):
        raise Fault(f"the signature of '{key.name}' is not valid")
    return key


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
            body, digest = get(entry, "body", str), get(entry, "hash", str)
            content = read_json(body)
            kind, previous = get(content, "kind", str), get(content, "previous", str)
            named: Json = content.get("release")
            if _sha256(body) != digest or len(entry) != 2 or canonical_json(content) != body:
                raise Fault("its hash is not that of its body")
            if previous != (events[-1].hash if events else "") or get(content, "number", int) != number:
                raise Fault("it does not follow the one before it")
            release = f"{named[0]}/{named[1]}/r{named[2]}" if isinstance(named, list) and len(named) == 3 else ""
            events.append(Event(number, kind, release, get(content, "content", dict), digest, get(content, "noted", str)))
        except Fault as fault:
            raise Fault(f"event {number} was changed, or events before it are missing: {fault.what}") from None
    return events


@dataclass(frozen=True)
class _Known:
    """What must be known of a whole chain before its events can be judged: keys that count no more from a moment on, the events
    whose moment the officer does not believe, and the latest moment that each event can be of."""

    revoked: Sequence[Revocation] = ()
    doubted: Collection[int] = ()
    moments: Mapping[int, datetime] = field(default_factory=dict[int, datetime])


AT_TARGETS = ("delivering", "delivered", "recalled")
OFFICE_EVENTS = ("trusted", "recovery", "revoked", "clock")
MADE = ("reserved", "secret", "drawn", "candidate", "publishing", "published")  # what happens to a release that is made


class _History:
    """The events of a chain, each signed one verified with the list of keys that was trusted when it happened. `known` is what an
    earlier round found of revoked keys and wrong clocks; `lost`: what was published with a revoked key."""

    def __init__(self, report: _Report, events: list[Event], known: _Known | None = None, *, office_alone: bool = False) -> None:
        self.events, self.signed = events, list[tuple[int, Statement]]()
        self.lists: list[tuple[int, str, dict[str, Key]]] = []  # number of the event, hash of the list, keys
        self.policies: dict[str, tuple[int, Any]] = {}
        self.revoked: list[Revocation] = []  # what the events themselves revoke
        self.looked: list[Event] = []  # the looks at the data, and what was said of files that they are public
        self.doubted: set[int] = set()
        self.lost: dict[int, str] = {}
        self._report, self.office, self._known = report, _Office(rooted=known is not None or not office_alone), known or _Known()
        self._listed = ""  # when the last list of keys was signed
        self._copies: set[str] = set()  # what was signed of lists at a moment that is not believed
        self._published, self._stewards = dict[str, str](), dict[str, str]()
        self._of: dict[tuple[str, str], list[Event]] = {}  # of each kind and release: a chain is asked for each of its releases
        self._about: dict[tuple[str, str], dict[int, Statement]] = {}  # of each kind and subject what was signed
        self._caps: dict[str, Any] = {}  # by their hash, once somebody asked for them
        self._entered: set[int] = set()  # events that follow from what the officer accepted after a restore
        self._looked = 0  # signatures, also those that do not hold
        self._held: dict[str, int] = {}  # policies whose series are held, and the events since which they are
        self._delivering = set[tuple[str, ...]]()  # packages that began to go to targets
        self._gone: set[str] = set()  # releases that were lost with the site: nothing is made under their names again
        for event in events:
            self._of.setdefault((event.kind, event.release), []).append(event)
            if office_alone and event.kind not in OFFICE_EVENTS:
                continue
            with report.about(f"{EVENTS}: event {event.number} ({event.kind})"):
                self._take(event)

    @property
    def chain(self) -> list[str]:
        """The officers who followed each other up to the last."""
        return self.office.chain

    def _take(self, event: Event) -> None:
        if event.release in self._gone and event.kind in MADE:
            raise Fault(f"{event.release} was lost, and a lost release is never made again")
        if event.kind == "policy":
            self._read_policy(event)
        elif event.kind == "lost":
            self._follow_lost(event)
        elif event.kind in ("looked", "public"):
            for name in ("policy", "population"):
                get(event.content, name, _NAME)
            self.looked.append(event)
        elif event.kind in ("held", "resumed"):
            self._follow_hold(event)
        elif event.kind in AT_TARGETS:
            self._follow_delivery(event)
        elif event.kind == "reserved":
            charged = self.policies.get(get(event.content, "policy_hash", _HEX))
            self._stewards[event.release] = charged[1]["steward"] if charged else ""
            held = self._held.get(event.release.split("/")[0])
            if held is not None and event.number not in self._entered:  # what a restore enters was charged elsewhere before
                raise Fault(f"it charges {event.release} while its series was held (event {held})")
        elif event.kind in SIGNED_EVENTS and self._looked >= MOST_SIGNATURES:
            raise Fault(f"more than {MOST_SIGNATURES} signatures are too many: this one is not looked at")
        elif event.kind in SIGNED_EVENTS:
            self._looked += 1
            self._follow(event)

    def _follow_hold(self, event: Event) -> None:
        policy, held = get(event.content, "policy", _NAME), event.kind == "held"
        if (policy in self._held) == held:
            raise Fault(f"it is noted for a series that was {'held already' if held else 'not held'}")
        if held:
            self._held[policy] = event.number
        else:
            del self._held[policy]

    def _follow_delivery(self, event: Event) -> None:
        """What went to a target is what was published, and what came back was retracted or superseded before."""
        name, address = get(event.content, "target", _NAME), get(event.content, "address", str)
        place = (event.release, name, get(event.content, "via", _NAME), address)
        if get(event.content, "package_hash", _HEX) != self._published.get(event.release):
            raise Fault(f"it tells of another package of {event.release} than was published before it")
        if event.kind == "delivering":
            self._delivering.add(place)
        elif place not in self._delivering:
            raise Fault(f"it tells of a delivery to {name} that no event before it began")
        elif event.kind == "recalled":
            self._check_recalled(event)

    def _check_recalled(self, event: Event) -> None:
        state = get(event.content, "state", _NAME)
        if state not in ("retracted", "superseded") or not self.of(state, event.release):  # up to this event
            raise Fault(f"it tells {event.content['target']} that {event.release} was {state}, and no event before it says so")
        if undone := get(event.content, "undone", str):
            words = f"{event.release} was {state}, and at {event.content['target']} this was not done: {undone}"
            self._report("note", f"{EVENTS}: event {event.number} (recalled): {words}")

    def _follow_lost(self, event: Event) -> None:
        self._gone.add(event.release)
        if event.number not in self._entered:
            raise Fault(f"it tells that {event.release} was lost, and follows from nothing that the officer accepted")

    def _follow(self, event: Event) -> None:
        if event.kind == "restored":
            self._entered |= _list_entered(event)
        if (revocation := self._find_revocation(event)) is not None:
            since = f"{revocation.since:%Y-%m-%d %H:%M} UTC"
            words = f"it is signed with a key that counts no more from {since} on, and so counts for nothing"
            self._report("note", f"{EVENTS}: event {event.number} ({event.kind}): {words}")
            if event.kind == "published":
                self._published[event.release] = get(event.content, "package_hash", _HEX)
                self.lost[event.number] = event.release
            return
        signed = self._verify(event)
        self.signed.append((event.number, signed))
        self._about.setdefault((signed.kind, signed.subject), {})[event.number] = signed
        if event.kind == "trusted":
            self._report.link(self.office)
            self._report.judge_officer(self.chain[-1], f"{EVENTS}: event {event.number} (trusted)")
        elif event.kind == "clock":
            words = f"the officer does not believe the moment of event {event.content['event']}: it was noted by a wrong clock"
            self._report("note", f"{EVENTS}: event {event.number} (clock): {words}")
        elif event.kind == "revoked":
            revoked = self.revoked[-1]
            words = f"the key {revoked.key} counts no more from {revoked.since:%Y-%m-%d %H:%M} UTC on: {signed.why}"
            self._report("note", f"{EVENTS}: event {event.number} (revoked): {words}")

    def _find_revocation(self, event: Event) -> Revocation | None:
        """The revocation that takes an event back: its key signed it after the moment, or after the revocation was noted. Named
        recovery keys stay named, and no officer takes back how the office came to them."""
        succession: Json = event.content.get("succession")
        signers = {_signer(event.content.get("signed"))}
        if event.kind == "recovery" or not self._known.revoked:
            return None
        if event.kind == "trusted" and isinstance(succession, dict):
            handed = _find(succession, "signed")
            signers = {_signer(each) for each in handed} if isinstance(handed, list) else set[str]()
        for revocation in self._known.revoked:
            over = event.number > revocation.event or self._known.moments[event.number] >= revocation.since
            if revocation.key in signers and over and (revocation.quorum or succession is None):
                return revocation
        return None

    def _read_policy(self, event: Event) -> None:
        text, digest = get(event.content, "text", str), get(event.content, "hash", str)
        if _sha256(text) != digest:
            raise Fault("the policy's hash is not that of its text")
        policy = read_json(text)
        named = {name: get(policy, name, _NAME) for name in ("policy", "population", "steward")}
        if any(event.content.get(name) != named[name] for name in ("policy", "population")):
            raise Fault("its text is of another policy or population")
        self.policies.setdefault(digest, (event.number, policy))

    def _verify(self, event: Event) -> Statement:
        """What is signed in the event, if it says what the event does."""
        if event.kind == "recovery":
            return self.office.follow_recovery(event.content)
        officers = {
            "trusted": self._verify_list,
            "revoked": self._verify_revocation,
            "clock": self._verify_clock,
            "restored": self._verify_restored,
        }
        if event.kind in officers:
            return officers[event.kind](event)
        content, kind, subject, keys = event.content, SIGNED_EVENTS[event.kind], event.release, self.office.keys
        if event.kind == "remarked":
            return self._verify_remarks(event)
        if event.kind in ("approved", "rejected", "returned"):
            what, subject, digest = get(content, "what", str), get(content, "subject", str), get(content, "hash", _HEX)
            kind = what if event.kind == "approved" and what in ("policy", "populations") else kind if what == "candidate" else ""
            if subject != (event.release or subject) or (kind == "populations" and subject != kind):
                raise Fault("it is noted for something else than what was judged")
        else:
            digest = get(content, "package_hash", _HEX) if event.kind == "published" else self._published.get(event.release, "")
        signed = _verify_statement(content.get("signed"), keys, kind=kind, subject=subject, hash=digest)
        if kind in VOTES and signed.name == self._stewards.get(subject):
            raise Fault(f"'{signed.name}' is the steward of the policy and may not judge the candidate")
        if event.kind == "published":
            self._published[event.release] = digest
        return signed

    def _verify_remarks(self, event: Event) -> Statement:
        """What is signed is the document that the event has, about its release or, of none, about a policy."""
        document = get(event.content, "document", dict)
        remarks = read_remarks(document)
        if remarks.subject != (event.release or remarks.subject) or (not event.release and RELEASE.fullmatch(remarks.subject)):
            raise Fault("it is noted for something else than what was remarked on")
        wanted = {"kind": "remarks", "subject": remarks.subject, "hash": hash_remarks(document)}
        return _verify_statement(event.content.get("signed"), self.office.keys, **wanted)

    def _verify_list(self, event: Event) -> Statement:
        content = event.content
        document, digest = {"keys": content.get("keys")}, get(content, "hash", _HEX)
        keys = read_keys(document)
        if (_sha256(canonical_json(document)), _officer(keys)) != (digest, content.get("officer")):
            raise Fault("the hash or the officer of the trusted keys is not what it tells")
        signed = _verify_keys(content.get("signed"), keys, digest)
        handed = content.get("succession") is not None  # for this chain and one place in it: dates begin anew
        if not handed and event.number not in self._known.doubted and signed.at < self._listed:
            raise Fault(f"the list of {signed.at} was put back after that of {self._listed}")
        if (said := canonical_json(content["signed"]["statement"])) in self._copies:
            raise Fault("a list that was signed at a moment that is not believed was put back")
        if handed:
            self._check_registry(event)
            self._tell_stale(event)
        self.office.follow_list(content, keys)
        self.revoked += [Revocation(key, since, event.number, signed.signer, quorum=True) for key, since in self.office.revoked]
        if event.number in self._known.doubted:
            self._copies.add(said)
        else:
            self._listed = signed.at
        self.lists.append((event.number, digest, keys))
        return signed

    def _check_registry(self, event: Event) -> None:
        """What a succession was signed for is this chain, and not another site's."""
        head = get(event.content.get("succession"), "registry", dict)
        number: int = get(head, "event", int)
        if not 0 <= number < event.number or head != {"event": number, "hash": self.events[number - 1].hash if number else ""}:
            raise Fault("it was signed for another registry than this")

    def _tell_stale(self, event: Event) -> None:
        """A succession that was signed before the list was changed, and accepted after it, brings the older list back.
        What was signed since stands."""
        head: int = event.content["succession"]["registry"]["event"]
        changed = {number for number, _, _ in self.lists} | {each.event for each in self.revoked}
        changed |= {number for number, signed in self.signed if signed.kind == RECOVERY}
        if later := sorted(number for number in changed if head < number < event.number):
            words = "the list of keys, recovery keys or revoked keys were changed after this succession was signed"
            words += f", and it brought back the list of before: look who is on it (event {', '.join(map(str, later))})"
            self._report("note", f"{EVENTS}: event {event.number} (trusted): {words}")

    def _verify_revocation(self, event: Event) -> Statement:
        document = get(event.content, "document", dict)
        about = {"kind": "revoke", "subject": get(event.content, "key", _HEX), "hash": _sha256(canonical_json(document))}
        signed = _verify_statement(event.content.get("signed"), self.office.keys, **about)
        revocation = _read_revocation(event.content, event.number, signed.signer)
        if revocation.key != signed.subject or revocation.key == signed.signer:
            raise Fault("it revokes another key than it tells, or the officer's own, which the next officer or a quorum may")
        self.revoked.append(revocation)
        return signed

    def _verify_clock(self, event: Event) -> Statement:
        number: int = get(event.content, "event", int)
        named = self.events[number - 1] if 0 < number < event.number else None
        if named is None or _read_moment(named.noted) - _read_moment(event.noted) <= SLACK:
            raise Fault("it doubts an event that is none before it, or one that is not dated later than itself")
        wanted = {"kind": "clock", "subject": str(number), "hash": named.hash}
        signed = _verify_statement(event.content.get("signed"), self.office.keys, **wanted)
        self.doubted.add(number)
        return signed

    def _verify_restored(self, event: Event) -> Statement:
        """What the officer accepted is a backup that was put back here, with the charges that came after it."""
        document: Mapping[str, Json] = get(event.content, "document", dict)
        number: int = get(document, "event", int)
        named = self.events[number - 1] if 0 < number < event.number else None
        if named is None or (named.kind, named.hash) != ("restoring", document.get("hash")):
            raise Fault("it accepts a backup that was not put back here")
        wanted = {"kind": "restored", "subject": str(number), "hash": _sha256(canonical_json(document))}
        signed = _verify_statement(event.content.get("signed"), self.office.keys, **wanted)
        self._check_entered(event.number, document)
        words = "the officer accepted a backup that was put back, and entered the charges that came after it"
        self._report("note", f"{EVENTS}: event {event.number} (restored): {words}")
        return signed

    def _check_entered(self, number: int, document: Mapping[str, Json]) -> None:
        """The charges that follow are those that the officer signed, none missing and none more; then what is lost."""
        charged: list[Json] = get(document, "charged", list)
        lost: list[Json] = get(document, "lost", list)
        names = [get(entry, "release", str) for entry in charged]
        after = self.events[number : number + len(charged) + len(lost)]
        for place, (name, entry) in enumerate(zip(names, charged)):  # noqa: B905  Python 3.9 has no strict
            event = after[place] if place < len(after) else None
            if event is None or (event.kind, event.release) != ("reserved", name):
                raise Fault(f"the officer signed the charge of {name}, which does not follow, or other charges come before it")
            if wrong := self._compare_entered(entry, event.content):
                raise Fault(f"the charge of {name} in event {event.number} is not what the officer signed: {', '.join(wrong)}")
        told = [(event.kind, event.release, event.content.get("entered")) for event in after[len(charged) :]]
        if told != [("lost", name, name in names) for name in lost]:
            raise Fault("after the charges that the officer signed comes something else than what was signed to be lost")

    def _compare_entered(self, entry: Json, charge: Mapping[str, Any]) -> list[str]:
        """What of a charge is otherwise than signed, in words."""
        digest = get(entry, "policy_hash", _HEX)
        pairs = {
            "its policy, and so k": (digest, charge.get("policy_hash")),
            "its people": (get(entry, "population", str), charge.get("population")),
            "how many records it is of": (get(entry, "records", int), charge.get("records")),
            "its epsilon": (get(entry, "loss", dict), get(charge, "loss", dict)),
        }
        return [words for words, (signed, noted) in pairs.items() if signed != noted]

    def of(self, kind: str, release: str) -> list[Event]:
        """The events of a kind of a release."""
        return self._of.get((kind, release), [])

    def last(self, kind: str, subject: str, *, before: int) -> tuple[int, str]:
        """The number of the last event before another that has something signed of a kind about a subject, and the hash in it."""
        found = {at: signed.hash for at, signed in self.find(kind, subject).items() if at < before}
        return max(found.items(), default=(0, ""))

    def find_caps(self, digest: str) -> Any:
        """The caps of that hash, as an event of their approval tells them."""
        if digest in self._caps:
            return self._caps[digest]
        for event in self._of.get(("approved", ""), []):
            text = event.content.get("text")
            if isinstance(text, str) and event.content.get("what") == "populations" and _sha256(text) == digest:
                return self._caps.setdefault(digest, read_json(text))
        raise Fault("no event tells the caps that the officer approved last before the charge")

    def find(self, kind: str, subject: str, digest: str | None = None) -> dict[int, Statement]:
        """What was signed of a kind about a subject (and a hash), by the number of the event."""
        wanted = self._about.get((kind, subject), {})
        return {number: signed for number, signed in wanted.items() if digest in (None, signed.hash)}


def _list_entered(event: Event) -> set[int]:
    """The numbers of the charges and losses that were noted right after the event that accepts them: as many as it names."""
    named = [_find(_find(event.content, "document"), name) for name in ("charged", "lost")]
    count = sum(len(part) for part in named if isinstance(part, list))
    return set(range(event.number + 1, event.number + 1 + count))


def _signer(signed: Json) -> str:
    signer = _find(_find(signed, "statement"), "signer")
    return signer if isinstance(signer, str) else ""


def _latest_moments(events: Sequence[Event], doubted: Collection[int]) -> dict[int, datetime]:
    """The latest moment that each event can be of: clocks that were set back do not make it earlier, and one that is not believed
    counts as what comes after it."""
    found, last, waiting = dict[int, datetime](), datetime.min.replace(tzinfo=_UTC), list[int]()
    for event in events:
        if event.number in doubted:
            waiting.append(event.number)
            continue
        last = max(last, _read_moment(event.noted))
        found.update(dict.fromkeys((*waiting, event.number), last))
        waiting.clear()
    return found | dict.fromkeys(waiting, datetime.max.replace(tzinfo=_UTC))


def _read_history(report: _Report, events: list[Event]) -> _History:
    """The events, after it is known whose keys count from when to when."""
    extra = list(report.revocations.entries.values()) if report.revocations else []
    extra += [Revocation(key, since, sys.maxsize, "", quorum=True) for key, since in report.taken.items()]
    if not extra and not has_office(events):
        return _History(report, events)
    known = _find_known(events)
    known = _Known([*known.revoked, *extra], known.doubted, known.moments)
    report.link(_History(_Report(None), events, known, office_alone=True).office)
    return _History(report, events, known)


def has_office(events: Iterable[Any]) -> bool:
    """Whether more happened to the office than that one officer changed the list of keys."""
    return any(event.kind in OFFICE_EVENTS and (event.kind != "trusted" or "succession" in event.content) for event in events)


Head = tuple[int, str, str]  # number and hash of an event, and when it was noted
HEAD_FORMAT = "release-pipeline/head/1"


def read_head(content: bytes) -> Head:
    """What `head export` writes: the last event of a registry, for somebody outside to keep."""
    said = read_json(content)
    if get(said, "format", str) != HEAD_FORMAT or get(said, "event", int) < 1:
        raise Fault("it is not what `head export` writes")
    return said["event"], get(said, "hash", str), get(said, "noted", str)


def _find_known(events: list[Event]) -> _Known:
    """The rounds that it takes: what holders of recovery keys revoked counts first; then what officers did whom that leaves,
    a later one before an earlier."""
    quiet = _Report(None)
    first = _History(quiet, events, office_alone=True)
    moments = _latest_moments(events, first.doubted)
    quorum = [revocation for revocation in first.revoked if revocation.quorum]
    second = _History(quiet, events, _Known(quorum, first.doubted, moments), office_alone=True)
    standing = list[Revocation]()
    for revocation in reversed([each for each in second.revoked if not each.quorum]):
        if not any(over.key == revocation.signer and moments[revocation.event] >= over.since for over in standing):
            standing.append(revocation)
    return _Known([*quorum, *reversed(standing)], first.doubted, moments)


@dataclass(frozen=True)
class Office:
    """Who held the office, as the events of a chain prove it. `lists`: the number of the event of each list of keys that stands,
    with the keys; `links`: the numbers of the events by which the officers followed each other; `faults`: what does not hold."""

    chain: tuple[str, ...]
    lists: tuple[tuple[int, Mapping[str, Key]], ...]
    links: tuple[int, ...]
    known: _Known
    holders: Mapping[str, Key]
    threshold: int
    faults: tuple[str, ...]

    @property
    def revoked(self) -> tuple[Revocation, ...]:
        """Every revocation that stands."""
        return tuple(self.known.revoked)

    def is_taken_back(self, number: int, signer: str) -> bool:
        """Whether what a key signed in an event counts no more."""
        over = [each for each in self.revoked if each.key == signer]
        return any(number > each.event or self.known.moments[number] >= each.since for each in over)

    def moment(self, number: int) -> datetime:
        """The latest moment that an event can be of."""
        return self.known.moments[number]


def read_office(events: list[Event], *, revoked: Sequence[Revocation] = ()) -> Office:
    """Likewise; `revoked`: as if the holders of recovery keys had revoked these too."""
    known, report = _find_known(events), _Report(None)
    known = _Known([*revoked, *known.revoked], known.doubted, known.moments)
    history = _History(report, events, known, office_alone=True)
    stand = {number for number, _, _ in history.lists}
    begun = [number for number in sorted(stand) if "succession" not in events[number - 1].content][:1]
    links = [event.number for event in events if event.number in stand and "succession" in event.content]
    named = [number for number, signed in history.signed if signed.kind == "recovery"]
    return Office(
        tuple(history.chain),
        tuple((number, keys) for number, _, keys in history.lists),
        tuple(sorted({*begun, *links, *named})),
        known,
        history.office.holders,
        history.office.threshold,
        tuple(finding.words for finding in report.findings if finding.level == "FAIL"),
    )


# --- A dossier ------------------------------------------------------------------------------------------------------------------


def _check_dossier(report: _Report, tree: Tree, witnessed: Head | None) -> _Package:
    listed = _check_sums(report, tree, beside=(), absent=lambda name: "")
    with report.about(OFFICERS):  # the package may be older than the officer of today
        office = _read_officers(tree.json(OFFICERS)) if OFFICERS in tree.sizes else None
        if office is not None and office.chain[-1] == _officer(read_keys(tree.json(KEYS))):
            report.link(office)
    package = _check_package(report, tree.under("package"), data_may_be_away=True)
    keys, bound = _check_keys(report, tree), {SUMS, EVENTS, KEYS, KEYS_SIG, OFFICERS, POPULATIONS, "candidate/SHA256SUMS"}
    with report.about(DOSSIER):
        dossier = tree.json(DOSSIER)
        if (get(dossier, "release", str), get(dossier, "officer", str)) != (package.release, keys and _officer(keys)):
            raise Fault("it names another release or officer than the package and the list of trusted keys")
    candidate = _check_candidate(report, tree.under("candidate"), package)
    history = None
    with report.about(EVENTS):
        content, before = tree.read(EVENTS), len(report.findings)
        if not content.endswith(b"\n"):
            raise Fault("its last line is cut off")
        history = _read_history(report, verify_chain(content.splitlines()))
        package.events = {event.number: event.hash for event in history.events}
        package.charge = {**package.charge, **_find_charge(history, package.release)}
        lost = {name for event in history.of("restored", "") for name in _list_lost(event)}
        package.lost = {name: _find_charge(history, name) for name in lost}
        _note_history(report, history)
        if not any(finding.level == "FAIL" for finding in report.findings[before:]):
            words = f"{len(history.signed)} signed statements, each by a key that was trusted then, with the role for it"
            report("ok", f"{EVENTS}: {words}")
        _check_head(report, history.events, package)
    if history is not None:
        with report.about(EVENTS):
            _check_witnessed(report, history.events, witnessed)
        with report.about(EVENTS):
            _check_newest_list(report, history)
        with report.about(EVENTS):
            _check_nothing_after_the_office(report, history)
        with report.about(f"{EVENTS}, {KEYS}"):
            _check_lists_of_keys(history, tree, package)
        policy = None
        with report.about(f"{EVENTS}, {package.release}"):
            policy = _check_charge(report, history, package, lambda digest: _read_caps(tree, digest))
        with report.about(f"{EVENTS}, package/{CARD}"):
            _check_looks(history, package.release, package.looks, "the card")
        with report.about(f"{EVENTS}, candidate/{SUMS}"):
            _check_approvals(report, history, package, candidate, policy)
        with report.about(f"{EVENTS}, {REVIEW}"):
            _check_review(report, history, tree.json(REVIEW), package.release)
        bound.add(REVIEW)
        with report.about(f"{EVENTS}, {package.release}"):
            _check_moment(report, history, package, policy)
        with report.about(f"{EVENTS}, package"):
            _check_publication(report, history, package)
        bound |= _check_policy_files(report, history, tree)
    bound |= {f"package/{name}" for name in (*package.sums, SUMS, SUMS_SIG)} | {
        "candidate/evidence.json",
        "candidate/report.html",
    }
    bound |= {f"package/{name}.{end}" for name in TOMBSTONES for end in ("json", OFFICERS)}
    if loose := sorted({*listed, *tree.sizes} - bound):
        report("note", f"{_LOOSE}: {', '.join(loose)}")
    return package


def _check_candidate(report: _Report, tree: Tree, package: _Package) -> str:
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
    if events[0].hash != package.site:
        raise Fault("its first event is not the one that the package names: it is the chain of another site")
    after = f"what the {len(events) - number} after it say is signed or the word of who sent it"
    report("ok", f"{EVENTS}: whole up to event {number}, which the package names: nothing before was changed; {after}")


def _note_history(report: _Report, history: _History) -> None:
    """Notes on the moments of events, but of those that an officer has declared wrong."""
    believed = [event for event in history.events if event.number not in history.doubted]
    report.note_moments((f"{EVENTS}: event {event.number}", event.noted) for event in believed)


def _list_lost(event: Event) -> list[str]:
    """The releases that were lost, by what an officer signed when accepting a backup."""
    lost = get(get(event.content, "document", dict), "lost", list)
    return [name for name in lost if isinstance(name, str)]


def _find_charge(history: _History, release: str) -> Mapping[str, Any]:
    """What was charged for a release; nothing where no event tells it."""
    return next((event.content for event in history.of("reserved", release)), dict[str, Any]())


def _compare_lost(noted: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """What a package or dossier of a lost release says otherwise than the chain that went on after the restore. A card has no
    loss: it follows from policy and records."""
    rows, records = get(other, "rows", int), get(noted, "records", int)
    pairs = {
        "its policy": get(noted, "policy_hash", _HEX) == other["policy_hash"],
        "how many records it is of": rows == records and other.get("records", records) == records,
        "its loss": "loss" not in other or get(other, "loss", dict) == get(noted, "loss", dict),
    }
    return [words for words, is_same in pairs.items() if not is_same]


def _check_witnessed(report: _Report, events: Sequence[Event], witnessed: Head | None) -> None:
    """That the chain has the event that somebody outside was told of."""
    if witnessed is None:
        return
    number, digest, _ = witnessed
    if number > len(events):
        ends = f"it ends with event {len(events)}, and event {number} was witnessed"
        raise Fault(f"{ends}: the dossier is older than that, or events at its end were cut off: ask for one of today")
    if events[number - 1].hash != digest:
        raise Fault(f"event {number} is not the one that was witnessed: the chain was written anew, or an older copy put back")
    report("ok", f"{EVENTS}: event {number} is the one that was witnessed")


def _check_newest_list(report: _Report, history: _History) -> None:
    """An older list of revoked keys that was put back is found out where the events tell of a newer one."""
    last = history.of("revoked", "")[-1:]
    newest = get(get(last[0].content, "document", dict), "number", int) if last else 0
    if report.revocations is not None and report.revocations.number < newest:
        words = f"list {report.revocations.number} of revoked keys is older than list {newest}, which event {last[0].number} has"
        raise Fault(f"{words}: get the newest")


def _check_nothing_after_the_office(report: _Report, history: _History) -> None:
    """Where the events end with an officer who is known to have left since, nothing in them is dated later: with the key one
    could go on with the chain as it was before."""
    left = report.left.get(history.chain[-1]) if history.chain else None
    for number, signed in history.signed:
        if left is not None and number not in history.doubted and _read_moment(signed.at) > left:
            words = f"event {number} was signed at {signed.at}, and the last officer whom the events know left"
            raise Fault(f"{words} at {left:%Y-%m-%d %H:%M:%S} UTC: it does not count")


def _check_lists_of_keys(history: _History, tree: Tree, package: _Package) -> None:
    """The package's list was trusted at its head, or became so before it was noted as published; the dossier's was once."""
    published = max(history.find("package", package.release, package.hash), default=0)
    hashes = [(number, digest) for number, digest, _ in history.lists]
    then = [digest for number, digest in hashes if number <= package.head[0]][-1:]
    then += [digest for number, digest in hashes if package.head[0] < number < published]
    if tree.under("package").digest(KEYS) not in then:
        raise Fault(f"package/{KEYS} is not the list that was trusted when the package was made")
    if tree.digest(KEYS) not in [digest for _, digest in hashes]:
        raise Fault("no event trusted this list")


def _read_caps(tree: Tree, digest: str) -> Any:
    """The caps in a dossier, if they are those of that hash."""
    if tree.digest(POPULATIONS) != digest:
        raise Fault("these are not the caps that the officer approved last before the charge")
    return tree.json(POPULATIONS)


def _looks(count: int) -> str:
    return f"{count} look{'' if count == 1 else 's'}"


def _check_looks(history: _History, release: str, told: int, by: str) -> None:
    """That as many looks at the data are told of as the events have before the charge."""
    charges = history.of("reserved", release)
    found = sum(
        charge.number > look.number and _concerns(look, charge) and not _became_charge(history, look, charge.number)
        for charge in charges[:1]
        for look in history.looked
    )
    if told != found:
        raise Fault(f"{by} tells of {_looks(told)} at the data before its charge, and the events of {found}")


def _became_charge(history: _History, look: Event, last: int) -> bool:
    """Whether a run that nobody refused went on to the charge of its release, by the event `last`."""
    stopped, under = look.content.get("stopped"), look.content.get("policy_hash")
    charges = history.of("reserved", stopped) if isinstance(stopped, str) else []
    return any(charge.number <= last and charge.content.get("policy_hash") == under for charge in charges)


def _concerns(look: Event, charge: Event) -> bool:
    """Whether a look concerns what was charged after it: at the same source, at records of its population or of one that it was
    before, or under a policy of its name. Of a file that was called public: whether it was the source."""
    is_same = bool(_texts(look, "origins") & _texts(charge, "origins"))
    if look.kind == "public":
        return is_same
    charged, looked = get(charge.content, "population", _NAME), look.content["population"]
    is_of_these = looked in {charged, *_list_carried(charge)} or charged in _texts(look, "carries")
    return is_same or is_of_these or look.content["policy"] == charge.release.split("/")[0]


def _texts(event: Event, name: str) -> set[str]:
    """The texts of a list that an event may have."""
    found: Json = event.content.get(name, [])
    return {text for text in found if isinstance(text, str)} if isinstance(found, list) else set[str]()


def _check_charge(report: _Report, history: _History, package: _Package, find_caps: Callable[[str], Any]) -> Any:
    """The policy that the release was charged under, after its approval, that of the caps, and the cap itself were looked at.
    `find_caps` gives the caps of a hash."""
    charges = history.of("reserved", package.release)
    if len(charges) != 1 or charges[0].number > package.head[0]:
        raise Fault(f"it was charged {len(charges)} times, or only after it was published, in place of once before")
    number, content = charges[0].number, charges[0].content
    digest, population = get(content, "policy_hash", _HEX), get(content, "population", str)
    noted_as, policy = history.policies.get(digest, (0, {}))
    if not 0 < noted_as < number or (policy["policy"], policy["population"]) != (package.release.split("/")[0], population):
        raise Fault(f"no event before the charge (event {number}) tells its policy, or it is another release's or population's")
    with report.about(f"{EVENTS}, policy {policy['policy']}"):
        approved, hash = history.last("policy", policy["policy"], before=number)
        if hash != digest:
            raise Fault(f"it is not what the officer approved last before the charge (event {number})")
        report("ok", f"{EVENTS}: the policy ({digest[:12]}) was approved in event {approved}, before the charge in {number}")
    caps: Mapping[str, Any] = {}
    with report.about(POPULATIONS):
        approved, hash = history.last("populations", "populations", before=number)
        if not approved:
            raise Fault(f"the officer did not approve any caps before the charge (event {number})")
        found = find_caps(hash)
        declared, caps = get(found, population, dict), found
        if not _is_declared(declared.get("cap"), content):
            raise Fault("the cap that the charge notes is not the one that the officer approved last before it")
        report("ok", f"{POPULATIONS}: approved in event {approved}, before the charge; the cap that this notes is declared in it")
    _check_cap(report, history, charges[0], population, caps)
    return policy


def _is_declared(cap: Json, charge: Mapping[str, Any]) -> bool:
    """Whether the cap that a charge notes is this one of populations.json."""
    if isinstance(cap, dict) and "releases" in cap:
        return (charge.get("unit"), charge.get("cap")) == ("releases", str(cap["releases"]))
    kind = {"dp": "epsilon, DP", "idp": "epsilon, iDP", "zcdp": "rho, zCDP"}.get(get(cap, "definition", str))
    amount = _find(cap, "rho" if kind == "rho, zCDP" else "epsilon")  # of an epsilon at a delta the officer signed its rho, too
    unit = f"{kind}, {get(cap, 'scope', str)}"
    return (charge.get("unit"), _amount(charge.get("cap"))) == (unit, _amount(str(amount)))


def _check_cap(report: _Report, history: _History, charge: Event, population: str, caps: Mapping[str, Any]) -> None:
    """The sum, in integers, of what the population was charged up to here, and those that `caps` says its people were in before,
    beside what is noted of it."""
    charged, unit = charge.content, get(charge.content, "unit", str)
    most, spent = _amount(charged.get("cap")), _amount(charged.get("spent"))
    loss = re.fullmatch(r"(releases)|(?:epsilon, (?=DP|iDP)|rho, (?=zCDP))(DP|iDP|zCDP), (centroid|column|table)", unit)
    if loss is None:
        raise Fault(f"the cap of event {charge.number} counts in an unknown unit")
    counted = _list_counted(caps, population)
    events = [event for event in history.events[: charge.number] if event.kind == "reserved"]
    mine = [event for event in events if _find_population(event) in counted]
    if sorted(counted - {population}) != charged.get("carries", []):
        raise Fault(f"event {charge.number} counts the charges of other populations than the approved caps say")
    for event in mine:
        if not counted.issuperset(carried := _list_carried(event)):
            raise Fault(f"event {event.number} counted what {', '.join(sorted({*carried} - counted))} was charged: no more now")
    name = f"{loss[2]}_{loss[3]}".lower()
    costs = [NANO if loss[1] else get(get(event.content, "loss", dict), name, int) for event in mine]
    if min(costs) < 0 or sum(costs) != spent or spent > most:
        raise Fault(f"the charges up to event {charge.number} do not add up to what it notes as spent, or go over the cap")
    words = f"{charged['spent']} of {charged['cap']} ({unit})"
    whom = ", ".join([population, *sorted(counted - {population})])
    report("ok", f"{EVENTS}: {len(mine)} charges to {whom} add up to {words} with that of event {charge.number}")
    _note_people(report, charge, events, counted)


def _find_population(charge: Event) -> str:
    """The population that was charged; empty where that is none."""
    name: Json = charge.content.get("population")
    return name if isinstance(name, str) else ""


def _list_carried(charge: Event) -> list[str]:
    """The populations whose charges counted with this one."""
    carried: Json = charge.content.get("carries", [])
    if not isinstance(carried, list) or not all(isinstance(name, str) for name in carried):
        raise Fault(f"event {charge.number} counts the charges of something that is no population")
    return [str(name) for name in carried]


def _note_people(report: _Report, charge: Event, charges: Iterable[Event], counted: Collection[str]) -> None:
    """A note on a revision that was charged to other people than the ones before it."""
    for event in charges:
        is_earlier = event.release.rpartition("/r")[0] == charge.release.rpartition("/r")[0]
        if is_earlier and _find_population(event) not in counted:
            words = f"was charged to {_find_population(event)}, which does not count with event {charge.number}"
            report("note", f"{EVENTS}: {event.release} {words}: a correction in other people's name")


def _list_counted(caps: Mapping[str, Any], name: str) -> frozenset[str]:
    """A population and all that its people were in before."""
    known: dict[str, frozenset[str]] = {}
    _trace_counted(caps, name, (), known)
    return known[name]


def _trace_counted(caps: Mapping[str, Any], name: str, below: tuple[str, ...], known: dict[str, frozenset[str]]) -> None:
    declared: Json = caps.get(name)
    before = _list_before(declared if isinstance(declared, dict) else {})
    if name in below or len(below) > MOST_BEFORE:
        raise Fault("in the approved caps a population comes from itself, or from more than can be told apart")
    for ancestor in before:
        if ancestor not in known:
            _trace_counted(caps, ancestor, (*below, name), known)
    known[name] = frozenset({name}).union(*(known[ancestor] for ancestor in before))


def _list_before(population: Mapping[str, Json]) -> list[str]:
    """The populations that an entry of the caps names as those that its people were in before."""
    named = population.get("from", [population["was"]] if "was" in population else [])
    if not isinstance(named, list) or not all(isinstance(name, str) for name in named):
        raise Fault("in the approved caps a population comes from something that is none")
    return [str(name) for name in named]


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
    needed = get(get(policy, "review", dict), "reviewers", int)
    rejected = min(history.find("reject", release), default=0)
    if rejected:
        raise Fault(f"it was rejected in event {rejected}, so it should never have been published")
    trusted = next((keys for number, _, keys in reversed(history.lists) if number <= head), dict[str, Key]())
    reviewers = {key.fingerprint for key in trusted.values() if key.role == "reviewer"}  # those who left since do not count
    frozen = next(event for event in history.of("candidate", release) if event.content.get("candidate_hash") == candidate)
    judged = [signed for at, signed in history.find("approve", release, candidate).items() if frozen.number < at <= head]
    for signed in judged if frozen.number not in history.doubted else ():
        if _read_moment(frozen.noted) - _read_moment(signed.at) > VOTE_SLACK:
            words = f"the vote of {signed.name} is dated {signed.at}, before there was a candidate to vote on"
            raise Fault(f"{words} (event {frozen.number}, {frozen.noted}): it is dated back, or a clock was wrong")
    if any(signed.name == policy["steward"] for signed in judged):
        raise Fault(f"'{policy['steward']}' is the steward of the policy and approved the candidate")
    named = {key.name for key in trusted.values() if key.role == "reviewer"}
    last = {at: signed for kind in ("approve", "return") for at, signed in history.find(kind, release, candidate).items()}
    votes = {signed.name: signed for at, signed in sorted(last.items()) if at <= head}
    returned = sorted(name for name, signed in votes.items() if signed.kind == "return" and name in named)
    if returned:
        raise Fault(f"{', '.join(returned)} returned it before it was published, and did not approve it after that")
    judged = [signed for signed in judged if votes[signed.name].kind == "approve"]
    people = {signed.signer: signed.name for signed in judged if signed.signer in reviewers}
    if len(people) < max(needed, 1):
        raise Fault(f"{len(people)} reviewers approved it before it was published, and the policy asks for {needed}")
    words = f"approved by {', '.join(people.values())}, none of them the steward; the policy asks for {needed}"
    report("ok", f"{EVENTS}: candidate {candidate[:12]} was {words}")


def _check_review(report: _Report, history: _History, document: Any, release: str) -> None:
    """That what the dossier tells of its review is what the chain has, all of it; the signatures were looked at there."""
    if (get(document, "format", str), get(document, "release", str)) != (REVIEW_FORMAT, release):
        raise Fault(f"its format is not {REVIEW_FORMAT}, or it is of another release")
    wanted: list[Json] = []
    held, count = {number for number, _ in history.signed}, 0
    for event in history.events:
        if is_review(event.kind, event.release, event.content, release):
            count += event.number in held
            entry = {"event": event.number, "kind": event.kind, "noted": event.noted, "signed": event.content.get("signed")}
            wanted.append({**entry, **({"document": event.content.get("document")} if event.kind == "remarked" else {})})
    if canonical_json(get(document, "events", list)) != canonical_json(wanted):
        raise Fault("it does not tell the votes and remarks that the events have")
    report("ok", f"{REVIEW}: {count} votes and remarks, as the events have them, each with a signature that holds")


def _check_moment(report: _Report, history: _History, package: _Package, policy: Any) -> None:
    """That it was published neither before its embargo ended, by the clock of the site, nor after it was given up."""
    published = [event for event in history.of("published", package.release) if event.number > package.head[0]]
    if policy is None or not published:
        return
    not_before = _find(_find(policy, "publish"), "not_before")
    if isinstance(not_before, str) and published[0].number in history.doubted:
        report(
            "note",
            f"{EVENTS}: the moment of event {published[0].number} is not believed: whether its embargo had ended is not told",
        )
    elif isinstance(not_before, str) and _read_moment(published[0].noted) < _read_moment(not_before):
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
        return moment if moment.tzinfo else moment.replace(tzinfo=_UTC)
    except ValueError:
        raise Fault("there is a moment that is none") from None


def _check_not_lost(report: _Report, history: _History, release: str) -> None:
    """A release that was published with a revoked key is none; once it is retracted, that is told and no more."""
    lost = [number for number, name in history.lost.items() if name == release]
    if lost and not history.find("retract", release):
        raise Fault(f"it was published in event {lost[0]} with a revoked key: retract it, and tell who has it")


def _check_publication(report: _Report, history: _History, package: _Package) -> None:
    _check_not_lost(report, history, package.release)
    published = history.find("package", package.release)
    if not any(at > package.head[0] and signed.hash == package.hash for at, signed in published.items()):
        raise Fault("no event after the one that it names published it: events at the end are missing")
    if {signed.hash for signed in published.values()} != {package.hash}:
        raise Fault("the release was published with other content too")
    report("ok", f"{EVENTS}: published in event {max(published)}, as signed")
    for event in history.of("delivered", package.release):
        target, where = get(event.content, "target", _NAME), get(event.content, "where", str)
        report("ok", f"{EVENTS}: delivered in event {event.number} to {target}: {where}")
    for kind in TOMBSTONES.values():
        events = history.find(kind, package.release, package.hash)
        for at, signed in events.items():
            _report_tombstone(report, f"{EVENTS}: event {at}", signed)
        if kind in package.tombstones and not events:
            raise Fault(f"a tombstone ({kind}) is in the package and no event tells of it: events at the end are missing")


def _check_policy_files(report: _Report, history: _History, tree: Tree) -> set[str]:
    """The files of policies, each with the text that an event tells; all that any event tells are there."""
    wanted = {f"policies/{known['policy']}.{digest[:12]}.json": digest for digest, (_, known) in history.policies.items()}
    there = {name for name in tree.sizes if name.startswith("policies/") and name.endswith(".json")}
    for name in sorted(there | set(wanted)):
        with report.about(name):
            if name not in wanted or tree.digest(name) != wanted[name]:
                raise Fault("it is not a policy that an event tells under this name")
    return there


# --- The door -------------------------------------------------------------------------------------------------------------------


def verify_path(
    path: str | os.PathLike[str], officer: str | Collection[str] | None = None, revocations: str = "", officers: str = ""
) -> list[Finding]:
    """Everything that was checked of the package or dossier at `path` (a folder or a zip), and what was found.

    `officer` is the fingerprint that the officer must have; several, if the office changed hands. `WrongUsage` unless there is
    something to be checked at all. `revocations`: a file or address of the publisher's list of revoked keys; `officers`: likewise
    of an officers.json that tells more than the package knows.
    """
    return examine(path, officer, revocations, officers).findings


def examine(
    path: str | os.PathLike[str],
    officer: str | Collection[str] | None = None,
    revocations: str = "",
    officers: str = "",
    witnessed: Head | None = None,
    beside: str | os.PathLike[str] = "",
) -> Verification:
    """Likewise, with what it is that was checked. `witnessed`: an event that a dossier must have, as somebody outside kept it.
    `beside`: another package or dossier, which must be of the same chain of events if it is of the same site."""
    report, kind, package = _examine(path, officer, revocations, officers, witnessed)
    if beside:
        with report.about(str(beside)):
            other, _, its = _examine(beside, officer, revocations, officers, None)
            _compare_chains(report, str(beside), package, its, other.findings)
    given = _list_officers(officer)
    return Verification(printable(str(path)), kind, given, report.officers, package.release, package.hash, report.findings)


def _examine(
    path: str | os.PathLike[str],
    officer: str | Collection[str] | None,
    revocations: str,
    officers: str,
    witnessed: Head | None,
) -> tuple[_Report, str, _Package]:
    """What was found of one package or dossier, which of the two it is, and what it says of itself."""
    report, kind, package = _Report(officer), "", _Package()
    if officers:
        _take_officers(report, officers)
    if revocations:
        _take_revocations(report, revocations)
    try:
        with open_tree(Path(path)) as tree:
            if any(name in (DOSSIER, EVENTS) or name.startswith(("package/", "candidate/")) for name in tree.sizes):
                kind = "dossier"
                package = _check_dossier(report, tree, witnessed)
            elif {SUMS, SUMS_SIG, CARD, KEYS, KEYS_SIG} & set(tree.sizes):
                kind = "package"
                if witnessed is not None:
                    raise WrongUsage(f"{path}: --since: a package has no events to look for; a dossier has them, and a site.")
                package = _check_package(report, tree, data_may_be_away=False)
            else:
                raise WrongUsage(f"{path}: this is neither a package nor a dossier: there is no {SUMS} in it.")
    except Fault as fault:
        report("FAIL", f"{path}: {fault.what}")
    return report, kind, package


def _compare_chains(report: _Report, name: str, one: _Package, other: _Package, findings: Iterable[Finding]) -> None:
    """Whether two packages or dossiers of one site are of one chain of events. A copied site goes on under its own cap, and each
    chain holds by itself; they differ from the first event on that only one of them has."""
    failed = sum(finding.level == "FAIL" and ": RETRACTED: " not in finding.words for finding in findings)
    if failed or not one.site or not other.site:
        raise Fault(f"{failed} checks of it failed, so the two cannot be compared: verify it by itself")
    if one.site != other.site:
        report("note", f"{name}: it comes from another site, whose registry begins otherwise: there is nothing to compare")
        return
    common = sorted(one.events.keys() & other.events.keys())
    if not common:
        words = f"this one names event {one.head[0]} of the same registry, and that one event {other.head[0]}"
        report("note", f"{name}: {words}: only a dossier of the later one shows whether one chain has both")
        return
    apart = [number for number in common if one.events[number] != other.events[number]]
    if not apart:
        report("ok", f"{name}: event {common[-1]} is the same in both: they come from one chain of events")
    elif other.release in one.lost or one.release in other.lost:
        lost, by = (other, one) if other.release in one.lost else (one, other)
        if wrong := _compare_lost(by.lost[lost.release], lost.charge):
            words = f"the site was restored from a backup, and {lost.release} is charged there otherwise than here published"
            raise Fault(f"event {apart[0]} differs; {words}: {', '.join(wrong)}: the same budget was spent twice")
        words = f"event {apart[0]} differs, for the site was restored from a backup in between"
        report("note", f"{name}: {words}; what the earlier release was charged is in the chain of the later one")
    else:
        words = "these two come from two copies of one site that both went on: the same budget was spent twice"
        restored = "unless the site was restored from a backup in between, which a dossier of the later one shows"
        raise Fault(f"event {apart[0]} of the same registry has one hash here and another there: {words}, {restored}")


def _take_revocations(report: _Report, place: str) -> None:
    """Read the list of revoked keys, and judge everything by it from now on; where it cannot be had, that is a failure."""
    with report.about(f"{place}"):
        known = _read_revocations(_fetch(place))
        report.link(known.office)
        report.judge_officer(known.office.chain[-1], place)
        report.revocations, report.lines["list of revoked keys"] = known, tuple(known.office.chain)
        words = f"list {known.number} of revoked keys, signed by the officer at {known.at}; {len(known.entries)} keys"
        report("ok", f"{place}: {words}. Whether a newer one is out, the publisher knows")


def _take_officers(report: _Report, place: str) -> None:
    """Read how the officers followed each other from another place than the package, and judge everything by it."""
    with report.about(f"{place}"):
        office = _read_officers(read_json(_fetch(place)))
        report.lines[OFFICERS] = tuple(office.chain)
        if report.given and not report.given & set(office.chain):
            raise Fault("none of its officers is one that was given: it is another publisher's")
        report.link(office)
        report("ok", f"{place}: {_tell_way(office)}")


def _list_officers(officer: str | Collection[str] | None) -> list[str]:
    return [officer] if isinstance(officer, str) else list(officer or ())


def verify_events(lines: Iterable[str | bytes], officer: str | Collection[str] | None = None) -> list[Finding]:
    """What was checked of a chain of events on its own, a line each as in a dossier's events.jsonl, and what was found."""
    report = _Report(officer)
    with report.about(EVENTS):
        history = _read_history(report, verify_chain(lines))
        if not any(finding.level == "FAIL" for finding in report.findings):
            words = f"{len(history.events)} events, each with the hash of the one before it"
            report("ok", f"{EVENTS}: {words}; {len(history.signed)} signed statements, each by a key that was trusted then")
        _note_history(report, history)
        for event in history.events:
            if event.kind == "published":
                with report.about(f"{EVENTS}, {event.release}"):
                    _check_published(report, history, event)
    return report.findings


def _told_looks(history: _History, release: str, candidate: str) -> int:
    """How many looks the public facts of a candidate have."""
    found = [event for event in history.of("candidate", release) if event.content.get("candidate_hash") == candidate]
    told = _find(get(found[-1].content, "facts", dict), "looks") if found else 0
    return told if isinstance(told, int) else 0


def _check_published(report: _Report, history: _History, event: Event) -> None:
    """What a dossier shows of a release, from the events alone."""
    intents = [intent for intent in history.of("publishing", event.release) if intent.number < event.number]
    if not intents:
        raise Fault(f"it was published in event {event.number} without an intent")
    head = (intents[-1].number, intents[-1].hash)
    package = _Package(event.release, get(event.content, "package_hash", _HEX), head)
    _check_not_lost(report, history, event.release)
    if event.number in history.lost:
        return
    policy = _check_charge(report, history, package, history.find_caps)
    candidate = get(intents[-1].content, "candidate_hash", _HEX)
    _check_approvals(report, history, package, candidate, policy)
    _check_moment(report, history, package, policy)
    _check_looks(history, event.release, _told_looks(history, event.release, candidate), "the candidate")


def main(arguments: list[str] | None = None) -> int:
    """Print the findings, a line each; give the exit code."""
    parser = argparse.ArgumentParser(prog="verify.py", description="Check a published package or an auditor's dossier, offline.")
    here = Path(__file__).resolve().parent
    parser.add_argument("path", nargs="?", default=here, help="folder or zip (default: the folder that this file lies in)")
    parser.add_argument("--officer", action="append", metavar="FINGERPRINT", help="the officer's; again for an earlier officer's")
    parser.add_argument(
        "--revocations", default="", metavar="FILE|URL", help="the publisher's list of revoked keys (revoked.json)"
    )
    parser.add_argument("--since", metavar="FILE", help="what `head export` wrote: an event that a dossier must have")
    parser.add_argument("--json", action="store_true", help="the findings as JSON")
    parser.add_argument(
        "--officers", default="", metavar="FILE|URL", help="the publisher's officers.json, if it is newer than the package's"
    )
    parser.add_argument(
        "--beside", default="", metavar="OTHER", help="another package or dossier: do both come from one chain of events?"
    )
    wanted = parser.parse_args(arguments)
    try:
        witnessed = None if wanted.since is None else _load_head(Path(wanted.since))
        found = examine(wanted.path, wanted.officer, wanted.revocations, wanted.officers, witnessed, wanted.beside)
    except WrongUsage as error:
        lines, code, where = [printable(error.what)], 2, sys.stderr
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


def _load_head(file: Path) -> Head:
    try:
        return read_head(file.read_bytes())
    except OSError as error:
        raise WrongUsage(f"{file}: it cannot be read: {error.strerror}.") from None
    except Fault as fault:
        raise WrongUsage(f"{file}: this is not what `head export` writes: {fault.what}.") from None


def _report_usage(what: str) -> dict[str, Any]:
    """What cannot be checked, as a script reads it, release-pipeline/error/1."""
    error: dict[str, str | list[str]] = {"code": "wrong-usage", "what": what, "where": "", "remedy": "", "details": []}
    return {"format": "release-pipeline/error/1", "command": "verify", "exit_code": 2, "error": error}


if __name__ == "__main__":
    sys.exit(main())
