"""The verifier: what is whole passes, and every single thing that is not is found and named.

Packages and dossiers are built here, signed with `cryptography`; nothing of the package but `verify` is used.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import copy
import hashlib
import json
import os
import re
import shutil
import stat
import struct
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from hypothesis import example, given, settings
from hypothesis import strategies as st

from release_pipeline.verifier import chain, trees
from release_pipeline.verifier.command import verify_path
from release_pipeline.verifier.documents import Fault, WrongUsage, printable
from release_pipeline.verifier.ed25519 import _decode, verify_signature
from release_pipeline.verifier.findings import Finding
from release_pipeline.verifier.joining import join_verifier
from release_pipeline.verifier.remarks import REMARKS_FORMAT, REVIEW_FORMAT, is_review
from release_pipeline.verifier.statements import read_keys, verify_statement
from tests.guards import HANGING

Files = dict[str, bytes]

# --- Signatures -----------------------------------------------------------------------------------------------------------------

RFC_8032 = [  # section 7.1: secret key, public key, message, signature
    (
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        b"",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        b"\xaf\x82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
    ),
    (
        "833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42",
        "ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
        hashlib.sha512(b"abc").digest(),
        "dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b58909351fc9ac90b3ecfdfbc7c66431e0303dca179c138ac17ad9bef1177331a704",
    ),
]
SECRET = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PUBLIC = SECRET.public_key().public_bytes_raw()
MESSAGE = b"a release of data about people"
ORDER, PRIME = 2**252 + 27742317777372353535851937790883648493, 2**255 - 19
Y_OF_ORDER_8 = 2707385501144840649318225287225658788936804267575313519463743609750303021562
SMALL_Y = (
    0,
    1,
    Y_OF_ORDER_8,
    PRIME,
    PRIME + 1,
)  # of order 1, 2, 4 and 8; the last two not canonical


def openssl_accepts(public: bytes, message: bytes, signature: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except InvalidSignature:
        return False
    return True


@pytest.mark.parametrize(("secret", "public", "message", "signature"), RFC_8032, ids=["empty", "2 bytes", "SHA(abc)"])
def test_the_vectors_of_rfc_8032(secret: str, public: str, message: bytes, signature: str) -> None:
    """Accepted as they are, and for no other message or key."""
    key, signed = bytes.fromhex(public), bytes.fromhex(signature)
    assert Ed25519PrivateKey.from_private_bytes(bytes.fromhex(secret)).sign(message) == signed
    assert verify_signature(key, message, signed)
    assert not verify_signature(key, message + b".", signed)
    assert not verify_signature(PUBLIC, message, signed)


@given(seed=st.binary(min_size=32, max_size=32), message=st.binary(max_size=300), other=st.binary(min_size=32, max_size=32))
@settings(max_examples=40)
def test_it_agrees_with_cryptography(seed: bytes, message: bytes, other: bytes) -> None:
    """What OpenSSL signs passes; under another key it does not."""
    key = Ed25519PrivateKey.from_private_bytes(seed)
    public, signature = key.public_key().public_bytes_raw(), key.sign(message)
    assert verify_signature(public, message, signature)
    wrong = Ed25519PrivateKey.from_private_bytes(other).public_key().public_bytes_raw()
    assert verify_signature(wrong, message, signature) == (wrong == public)


@pytest.mark.parametrize("bit", [0, 100, 255, 256, 400, 511])
def test_a_flipped_bit_is_refused(bit: int) -> None:
    """In R and in s, the highest bit too."""
    signature = bytearray(SECRET.sign(MESSAGE))
    signature[bit // 8] ^= 1 << bit % 8
    assert not verify_signature(PUBLIC, MESSAGE, bytes(signature))


def test_there_is_no_second_form_of_a_signature() -> None:
    """s + L solves the same equation and is refused, as is any other length."""
    signature = SECRET.sign(MESSAGE)
    s = int.from_bytes(signature[32:], "little")
    for times in range(1, 16):
        if s + times * ORDER < 2**256:
            assert not verify_signature(PUBLIC, MESSAGE, signature[:32] + (s + times * ORDER).to_bytes(32, "little"))
    for wrong in (b"", signature[:-1], signature + b"\0", signature[:32]):
        assert not verify_signature(PUBLIC, MESSAGE, wrong)
    for key in (b"", PUBLIC[:-1], PUBLIC + b"\0"):
        assert not verify_signature(key, MESSAGE, signature)


def test_another_encoding_of_r_is_refused() -> None:
    """R = 1 can be written as p + 1: with it, whoever has the key could make a second form of one signature."""
    digest = hashlib.sha512(bytes(range(32))).digest()[:32]
    secret = int.from_bytes(digest, "little") & ~7 & ~(1 << 255) | 1 << 254
    for y, accepted in ((1, True), (PRIME + 1, False)):
        r = y.to_bytes(32, "little")
        k = int.from_bytes(hashlib.sha512(r + PUBLIC + MESSAGE).digest(), "little")
        assert verify_signature(PUBLIC, MESSAGE, r + (k * secret % ORDER).to_bytes(32, "little")) == accepted


@pytest.mark.parametrize("sign", [0, 1])
@pytest.mark.parametrize("y", SMALL_Y)
def test_keys_of_small_order_sign_nothing(y: int, sign: int) -> None:
    """With them one signature would be of every message (or every eighth)."""
    public = (y | sign << 255).to_bytes(32, "little")
    nothing = (1).to_bytes(32, "little") + bytes(32)
    assert not any(verify_signature(public, bytes([number]), nothing) for number in range(64))
    point = _decode(public)
    if y < PRIME and not (sign and y in (1, PRIME - 1)):
        assert point is not None
        assert openssl_accepts(public, MESSAGE, nothing) or y != 1  # so the refusal above is ours
    else:
        assert point is None


# --- A site that publishes ------------------------------------------------------------------------------------------------------

PEOPLE = {"olga": "officer", "ana": "steward", "ben": "reviewer", "cara": "reviewer", "dan": "reviewer", "robot": "service"}
SECRETS = {
    name: Ed25519PrivateKey.from_private_bytes(hashlib.sha256(name.encode()).digest()) for name in (*PEOPLE, "eve", "otto")
}
RELEASE = "rand-hie/2/r1"
TIME = "2026-11-20T12:00:00+00:00"
POPULATIONS = {"participants": {"cap": {"definition": "idp", "epsilon": "4.5", "scope": "column"}}}
LOSS = {"dp_centroid": None, "dp_column": None, "dp_table": None, "idp_centroid": 2 * 10**9, "idp_column": 2 * 10**9}
USUAL = ["trust", "policy", "approve-policy", "approve-populations", "earlier", "reserve", "candidate", "ben", "cara"]
USUAL += ["publishing", "package", "published"]


def canonical(content: Any) -> str:
    return json.dumps(content, sort_keys=True, separators=(",", ":"))


def digest(content: bytes | str) -> str:
    return hashlib.sha256(content if isinstance(content, bytes) else content.encode()).hexdigest()


def pack_key(public: bytes) -> bytes:
    """As OpenSSH has it in a .pub file; a fingerprint is its hash."""
    return pack_texts(b"ssh-ed25519", public)


def raw(name: str) -> bytes:
    return SECRETS[name].public_key().public_bytes_raw()


def fingerprint(name: str) -> str:
    return digest(pack_key(raw(name)))


def public_text(name: str) -> str:
    return f"ssh-ed25519 {base64.b64encode(pack_key(raw(name))).decode()}"


def sums(files: Files) -> bytes:
    return "".join(f"{digest(files[name])}  {name}\n" for name in sorted(files)).encode()


def pack_texts(*parts: bytes) -> bytes:
    return b"".join(struct.pack(">I", len(part)) + part for part in parts)


def blob_of_ssh(namespace: str, message: bytes) -> bytes:
    """The bytes that a key signs, after PROTOCOL.sshsig of OpenSSH."""
    return b"SSHSIG" + pack_texts(namespace.encode(), b"", b"sha512", hashlib.sha512(message).digest())


def armor(blob: bytes) -> str:
    lines = "\n".join(re.findall(".{1,70}", base64.b64encode(blob).decode()))
    return f"-----BEGIN SSH SIGNATURE-----\n{lines}\n-----END SSH SIGNATURE-----\n"


def write_ssh_signature(message: bytes, secret: Ed25519PrivateKey, namespace: str = "statement@release-pipeline") -> str:
    key, kind = secret.public_key().public_bytes_raw(), b"ssh-ed25519"
    signature = pack_texts(kind, secret.sign(blob_of_ssh(namespace, message)))
    return armor(b"SSHSIG\0\0\0\1" + pack_texts(pack_texts(kind, key), namespace.encode(), b"", b"sha512", signature))


STATEMENT, SIGNERS = "attestation.intoto.json", "allowed_signers"
SSH, PACKAGES = f"{STATEMENT}.sig", "package@release-pipeline"


def sign_for_ssh(payload: bytes, secret: Ed25519PrivateKey, namespace: str = PACKAGES) -> bytes:
    return write_ssh_signature(payload, secret, namespace).encode()


def make_statement(files: Mapping[str, bytes], predicate: Mapping[str, Any]) -> dict[str, Any]:
    """About these files, after the specification of in-toto."""
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": name, "digest": {"sha256": digest(files[name])}} for name in sorted(files)],
        "predicateType": "urn:release-pipeline:package:1",
        "predicate": predicate,
    }


def plain(document: str, content: Any) -> Any:
    return content


class World:
    """A site, its chain of events and one release of it. `twist` may change every document before it is hashed or signed."""

    def __init__(self, twist: Callable[[str, Any], Any] = plain) -> None:
        self.twist = twist
        self.people, self.secrets = dict(PEOPLE), dict(SECRETS)
        self.policy: dict[str, Any] = {
            "policy": "rand-hie",
            "population": "participants",
            "steward": "ana",
            "review": {"reviewers": 2},
            "drop": ["größe"],
        }
        self.populations: Any = copy.deepcopy(POPULATIONS)
        self.cap, self.unit = "4.5", "epsilon, iDP, column"
        self.lines: list[str] = []
        self.records = 100
        self.data = {"data.csv": b"a,b\n1,2\n", "data.parquet": b"PAR1...PAR1"}
        self.candidate: Files = {"evidence.json": b'{"columns": {"a": 0.25}}\n', **self.data}
        self.candidate["SHA256SUMS"] = sums(self.candidate)
        self.package: Files = {}
        self.extra: Files = {}

    # what people and the service do

    def keys(self) -> Any:
        entries = {name: {"key": public_text(name), "role": role} for name, role in self.people.items()}
        return self.twist("keys", {"keys": entries})

    def sign(self, name: str, kind: str, subject: str, hash: str, why: str = "") -> dict[str, Any]:
        statement = {"kind": kind, "subject": subject, "hash": hash, "name": name, "at": TIME, "why": why}
        statement["signer"] = fingerprint(name)
        statement = self.twist(f"statement {kind}", statement)
        return {"statement": statement, "sshsig": write_ssh_signature(f"{canonical(statement)}\n".encode(), self.secrets[name])}

    def note(self, kind: str, release: str | None = "", **content: Any) -> None:
        release = RELEASE if release == "" else release  # as it is now, not when this was defined
        parts = None if release is None else [*release.split("/")[:2], int(release.rpartition("/r")[2])]
        previous = json.loads(self.lines[-1])["hash"] if self.lines else ""
        payload = {"number": len(self.lines) + 1, "previous": previous, "kind": kind, "noted": TIME, "release": parts}
        body = canonical(self.twist(f"event {kind}", {**payload, "content": content}))
        self.lines.append(json.dumps({"body": body, "hash": digest(body)}))

    def approve(self, name: str, kind: str, subject: str, hash: str, event: str = "approved") -> None:
        what = {"approve": "candidate", "reject": "candidate", "return": "candidate"}.get(kind, kind)
        release = subject if what == "candidate" else None
        self.note(event, release, what=what, subject=subject, hash=hash, signed=self.sign(name, kind, subject, hash))

    @property
    def policy_text(self) -> str:
        return json.dumps(self.twist("policy", self.policy), sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    @property
    def populations_text(self) -> str:
        return canonical(self.twist("populations", self.populations))

    @property
    def candidate_hash(self) -> str:
        return digest(self.candidate["SHA256SUMS"])

    @property
    def package_hash(self) -> str:
        return digest(self.package["SHA256SUMS"])

    def officer(self) -> str:
        return next(name for name, role in self.people.items() if role == "officer")

    def do(self, *steps: str | Callable[[World], None]) -> World:
        """The steps in order; a name of a reviewer approves."""
        for step in steps:
            if callable(step):
                step(self)
            elif step in self.secrets:
                self.approve(step, "approve", RELEASE, self.candidate_hash)
            else:
                getattr(self, "do_" + step.replace("-", "_"))()
        return self

    def do_trust(self, by: str = "") -> None:
        keys, by = self.keys(), by or self.officer()
        hash = digest(canonical(keys))
        signed = self.sign(by, "trusted-keys", "trusted-keys", hash)
        listed = keys.get("keys") if isinstance(keys, dict) else keys
        self.note("trusted", None, hash=hash, officer=fingerprint(by), keys=listed, signed=signed)

    def do_policy(self) -> None:
        text, names = self.policy_text, {name: self.policy[name] for name in ("policy", "population")}
        self.note("policy", None, hash=digest(text), text=text, **names)

    def do_approve_policy(self, by: str = "olga") -> None:
        self.approve(by, "policy", "rand-hie", digest(self.policy_text))

    def do_approve_populations(self, by: str = "olga") -> None:
        self.approve(by, "populations", "populations", digest(self.populations_text))

    def do_earlier(self) -> None:
        self.charge("rand-hie/1/r1", spent="2")

    def do_reserve(self) -> None:
        self.charge(RELEASE, spent="4")

    def charge(self, release: str, *, spent: str, **other: Any) -> None:
        content = {"population": "participants", "policy_hash": digest(self.policy_text), "loss": LOSS}
        content["records"] = self.records
        self.note("reserved", release, **{**content, "unit": self.unit, "cap": self.cap, "spent": spent, **other})

    def do_candidate(self) -> None:
        self.note("candidate", candidate_hash=self.candidate_hash, policy_hash=digest(self.policy_text), facts={"rows": 100})

    def do_publishing(self) -> None:
        self.note("publishing", candidate_hash=self.candidate_hash, by="paul")

    @property
    def head(self) -> dict[str, Any]:
        first, *_, last = [json.loads(line)["hash"] for line in [*self.lines[:1], *self.lines]] or ["", ""]
        return {"event": len(self.lines), "hash": last, "first": first}

    def do_package(self, by: str = "robot") -> None:
        card = {"release": RELEASE, "epsilon": 0.5, "registry_head": self.head}
        card |= {"hashes": {"policy": digest(self.policy_text)}, "rows": {"in": self.records, "out": self.records}}
        self.package = {
            **self.data,
            "datapackage.json": b"{}",
            "privacy-card.json": json.dumps(self.twist("card", card)).encode(),
            "privacy-card.html": b"<p>card</p>",
            "RELEASE_NOTE.md": b"note\n",
            **self.key_files(),
        }
        self.package |= self.attest(by, self.package)
        self.package["SHA256SUMS"] = sums(self.package)
        self.package["SHA256SUMS.sig"] = json.dumps(self.sign(by, "package", RELEASE, self.package_hash)).encode()

    def attest(self, by: str, package: Files) -> Files:
        """The statement about a package's files, its signature, and who may sign such."""
        files = {name: content for name, content in package.items() if not name.startswith(("SHA256SUMS", STATEMENT))}
        card, files[SIGNERS] = json.loads(package["privacy-card.json"]), self.write_signers(package)
        predicate = {
            name: card[name] for name in ("release", "hashes", "registry_head") if isinstance(card, dict) and name in card
        }
        payload = json.dumps(make_statement(files, predicate)).encode()
        return {SIGNERS: files[SIGNERS], STATEMENT: payload, SSH: sign_for_ssh(payload, self.secrets[by])}

    def write_signers(self, package: Files) -> bytes:
        """The officer and the service of a package's list of keys, as ssh-keygen reads them."""
        keys = json.loads(package["trusted-keys.json"])
        entries = keys["keys"] if isinstance(keys, dict) and isinstance(keys.get("keys"), dict) else {}
        return "".join(
            f'{name} namespaces="{PACKAGES},statement@release-pipeline" {entry["key"]}\n'
            for name, entry in sorted(entries.items())
            if isinstance(entry, dict) and entry.get("role") in ("officer", "service")
        ).encode()

    def key_files(self) -> Files:
        keys = canonical(self.keys()).encode()
        signed = self.sign(self.officer(), "trusted-keys", "trusted-keys", digest(keys))
        return {"trusted-keys.json": keys, "trusted-keys.sig": json.dumps(signed).encode()}

    def do_published(self) -> None:
        signed = json.loads(self.package["SHA256SUMS.sig"])
        self.note("published", package_hash=self.package_hash, signed=signed)

    def do_retract(self, by: str = "olga") -> None:
        signed = self.sign(by, "retract", RELEASE, self.package_hash, "wrong year\x1b[2J")
        self.note("retracted", signed=signed)
        self.package = {name: content for name, content in self.package.items() if not name.startswith("data.")}
        self.package |= {"RETRACTED.json": json.dumps(signed).encode(), "RETRACTED.md": b"retracted\n"}

    def do_supersede(self) -> None:
        signed = self.sign("olga", "supersede", RELEASE, self.package_hash, "rand-hie/2/r2")
        self.note("superseded", signed=signed)
        self.package |= {"SUPERSEDED.json": json.dumps(signed).encode(), "SUPERSEDED.md": b"superseded\n"}

    # what is handed out

    def review(self) -> Any:
        """What people signed while the release was reviewed, as its dossier tells it."""
        events: list[Any] = []
        for line in self.lines:
            event = json.loads(json.loads(line)["body"])
            try:
                kind, content, release = event["kind"], dict(event["content"]), event["release"]
                name = "" if release is None else f"{release[0]}/{release[1]}/r{release[2]}"
            except (KeyError, TypeError, ValueError, IndexError):  # it was twisted
                continue
            if is_review(kind, name, content, RELEASE):
                entry = {"event": event["number"], "kind": kind, "noted": event["noted"], "signed": content.get("signed")}
                events.append({**entry, **({"document": content.get("document")} if kind == "remarked" else {})})
        return {"format": REVIEW_FORMAT, "release": RELEASE, "events": events}

    def dossier(self) -> Files:
        files = {
            "README.md": b"read me\n",
            "verify.py": join_verifier().encode(),
            "events.jsonl": "".join(f"{line}\n" for line in self.lines).encode(),
            f"policies/rand-hie.{digest(self.policy_text)[:12]}.json": self.policy_text.encode(),
            "policies/diffs.txt": b"",
            "populations.json": self.populations_text.encode(),
            **self.key_files(),
            "ledger.json": b"{}",
            "review.json": canonical(self.review()).encode(),
            **{f"candidate/{name}": self.candidate[name] for name in ("SHA256SUMS", "evidence.json")},
            **{f"package/{name}": content for name, content in self.package.items() if not name.startswith("data.")},
        }
        payload = {"release": RELEASE, "made": TIME, "tool": "0.1.0", "officer": fingerprint(self.officer())}
        files["dossier.json"] = json.dumps(self.twist("dossier", {**payload, "series": [RELEASE]})).encode()
        return seal({**files, **self.extra})


def seal(files: Files) -> Files:
    """With a right list of sums, which nobody signs."""
    rest = {name: content for name, content in files.items() if name != "SHA256SUMS"}
    return {**rest, "SHA256SUMS": sums(rest)}


def usual(*before_or_after: str) -> World:
    return World().do(*USUAL, *before_or_after)


def with_steps(changes: dict[str, list[Any]], world: World | None = None) -> World:
    """The usual steps, some of them replaced."""
    return (world or World()).do(*(new for step in USUAL for new in changes.get(step, [step])))


def put(files: Files, folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def pack(files: Files, file: Path, prefix: str = "") -> Path:
    return pack_entries([(prefix + name, content) for name, content in files.items()], file)


def pack_entries(entries: Iterable[tuple[str | zipfile.ZipInfo, bytes]], file: Path) -> Path:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return file


def failures(findings: list[Finding]) -> list[str]:
    assert all(finding.words.isprintable() for finding in findings)
    return [finding.words for finding in findings if finding.level == "FAIL"]


def judge(files: Files, folder: Path, officer: str | None = None) -> list[str]:
    return failures(verify_path(put(files, folder), officer))


@pytest.fixture(scope="module")
def package() -> Files:
    return usual().package


@pytest.fixture(scope="module")
def dossier() -> Files:
    return usual().dossier()


OFFICER = fingerprint("olga")

# --- What is whole passes -------------------------------------------------------------------------------------------------------


def test_a_package_passes(package: Files, tmp_path: Path) -> None:
    """As a folder and as a zip, flat or in folders; its release and the registry's head are told."""
    folder = put(package, tmp_path / "releases" / RELEASE)
    for path in (
        folder,
        pack(package, tmp_path / "a.zip"),
        pack(package, tmp_path / "b.zip", "x/y/"),
        pack(package, tmp_path / "c.zip", RELEASE + "/"),
    ):
        findings = verify_path(path, OFFICER)
        assert failures(findings) == []
        assert {finding.level for finding in findings} == {"ok"}
        assert any(RELEASE in finding.words and "event 10, hash" in finding.words for finding in findings)


def test_a_dossier_passes(dossier: Files, tmp_path: Path) -> None:
    """As a folder and as a zip; what nobody signed is told, and the hashes of the data that are not in it."""
    for path in (
        put(dossier, tmp_path / "d"),
        pack(dossier, tmp_path / "d.zip"),
        pack(dossier, tmp_path / "e.zip", "dossier-rand-hie/"),
    ):
        findings = verify_path(str(path), [OFFICER])
        assert failures(findings) == []
        assert sum(OFFICER in finding.words for finding in findings) == 1
        notes = [finding.words for finding in findings if finding.level == "note"]
        assert any(digest(b"a,b\n1,2\n") in words for words in notes)
        loose = next(words for words in notes if "the word of who sent it" in words)
        for name in ("README.md", "verify.py", "ledger.json"):
            assert name in loose
        assert "events.jsonl" not in loose
        assert "package/" not in loose


def test_without_a_fingerprint_a_person_must_compare(package: Files, tmp_path: Path) -> None:
    """A note prints it; another one than was given fails; one that is none is wrong usage."""
    folder = put(package, tmp_path / "p")
    notes = [finding.words for finding in verify_path(folder) if finding.level == "note"]
    assert len(notes) == 1
    assert OFFICER in notes[0]
    assert "another channel" in notes[0]
    assert any(OFFICER in words for words in failures(verify_path(folder, "0" * 64)))
    with pytest.raises(WrongUsage, match="fingerprint"):
        verify_path(folder, OFFICER[:-1])


def test_a_hash_is_compared_to_its_end(package: Files, tmp_path: Path) -> None:
    """Other data whose hash begins alike: with the first of its digits, and with the last."""
    content = package["data.csv"]
    wanted, others = digest(content), [content + b"%d\n" % number for number in range(2000)]
    for part in (slice(2), slice(-2, None)):
        other = next(other for other in others if digest(other)[part] == wanted[part])
        assert any("data.csv" in words for words in judge({**package, "data.csv": other}, tmp_path / "p"))


def test_a_retracted_package_fails_loudly(tmp_path: Path) -> None:
    """The one failure says so; the data may be away, everything else is still checked; an escape sequence stays visible."""
    world = usual("retract")
    for files in (world.package, world.dossier()):
        findings = verify_path(put(files, tmp_path / "p"), OFFICER)
        assert failures(findings)
        assert all("retracted" in words and "wrong year" in words for words in failures(findings))
    findings = verify_path(put(world.package, tmp_path / "p"), OFFICER)
    assert len(failures(findings)) == 1
    assert sum("data." in finding.words and "retraction" in finding.words for finding in findings) == 2
    broken = {**world.package, "RELEASE_NOTE.md": b"all is well\n"}
    assert any("RELEASE_NOTE.md" in words for words in judge(broken, tmp_path / "p"))


def test_lists_of_keys_change_over_time(tmp_path: Path) -> None:
    """Who left before the publication, or before his approval, does not count; who left afterwards does."""

    def leave(world: World) -> None:
        del world.people["ben"]
        world.do_trust()

    left_after = with_steps({"published": ["published", leave]})
    assert judge(left_after.dossier(), tmp_path / "d", OFFICER) == []
    left_between = with_steps({"published": [leave, "published"]})  # the package names the intent, and was signed
    assert judge(left_between.dossier(), tmp_path / "d", OFFICER) == []
    found = judge(with_steps({"cara": ["cara", leave]}).dossier(), tmp_path / "d")
    assert len(found) == 1
    assert "1 reviewers approved" in found[0]
    found = judge(with_steps({"candidate": ["candidate", leave]}).dossier(), tmp_path / "d")
    assert any("event 9 (approved)" in words and "ben" in words for words in found)
    assert any("1 reviewers approved" in words for words in found)


def test_an_office_may_change_hands_if_both_are_known(tmp_path: Path) -> None:
    """Every officer of the chain must be one who was given; without any, each is told for a person to compare."""

    def hand_over(world: World) -> None:
        del world.people["olga"]
        world.people["otto"] = "officer"
        world.do_trust()

    files = with_steps({"published": ["published", hand_over]}).dossier()
    new = fingerprint("otto")
    path = put(files, tmp_path / "d")
    assert failures(verify_path(path, [OFFICER, new])) == []
    assert any(OFFICER in words for words in failures(verify_path(path, new)))
    assert sum("another channel" in finding.words for finding in verify_path(path)) == 2


@pytest.mark.parametrize(
    ("cap", "noted", "unit", "spent"),
    [
        ({"releases": 2}, "2", "releases", ("1", "2")),
        ({"epsilon": 4, "definition": "idp", "scope": "column"}, "4", "epsilon, iDP, column", ("2", "4")),
        (
            {"epsilon": "4.000000001", "definition": "idp", "scope": "centroid"},
            "4.000000001",
            "epsilon, iDP, centroid",
            ("2", "4"),
        ),
    ],
)
def test_caps_of_every_kind(cap: Any, noted: str, unit: str, spent: tuple[str, str], tmp_path: Path) -> None:
    """Releases are counted, nano-epsilon added up; the cap itself may be reached."""
    world = World()
    world.populations, world.cap, world.unit = {"participants": {"cap": cap}}, noted, unit
    first, second = (
        lambda world: world.charge("rand-hie/1/r1", spent=spent[0]),
        lambda world: world.charge(RELEASE, spent=spent[1]),
    )
    findings = verify_path(put(with_steps({"earlier": [first], "reserve": [second]}, world).dossier(), tmp_path / "d"), OFFICER)
    assert failures(findings) == []
    assert any(f"2 charges to participants add up to {spent[1]} of {noted} ({unit})" in finding.words for finding in findings)


def test_caps_that_were_changed_since(tmp_path: Path) -> None:
    """The caps in a dossier must be those that were approved last before the charge."""

    def raise_cap(world: World) -> None:
        world.populations["participants"]["cap"]["epsilon"] = "9"
        world.do_approve_populations()

    findings = verify_path(put(with_steps({"published": ["published", raise_cap]}).dossier(), tmp_path / "d"), OFFICER)
    [words] = failures(findings)
    assert words == "populations.json: these are not the caps that the officer approved last before the charge"


# --- Every single file ----------------------------------------------------------------------------------------------------------

PACKAGE_NAMES, DOSSIER_NAMES = sorted(usual().package), sorted(usual().dossier())


def spoilt(content: bytes) -> Iterator[bytes]:
    """The content with a bit flipped in the middle, with a line more, and without its last byte."""
    middle = len(content) // 2
    if content:
        yield content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
        yield content[:-1]
    yield content + b"\n"


@pytest.mark.parametrize("name", PACKAGE_NAMES)
def test_every_file_of_a_package(package: Files, name: str, tmp_path: Path) -> None:
    """Changed or away, it is found and named."""
    for content in spoilt(package[name]):
        if name.endswith(".sig") and content == package[name] + b"\n":
            continue  # around the signed statement JSON may have spaces
        assert any(name in words for words in judge({**package, name: content}, tmp_path / "p"))
    rest = {other: content for other, content in package.items() if other != name}
    assert any(name in words for words in judge(rest, tmp_path / "p"))
    assert any(name in words for words in failures(verify_path(pack(rest, tmp_path / "p.zip"))))


@pytest.mark.parametrize("name", DOSSIER_NAMES)
def test_every_file_of_a_dossier(dossier: Files, name: str, tmp_path: Path) -> None:
    """Likewise; and when the list of sums, which nobody signed, is made to fit: still, or the file is told as loose."""
    rest = {other: content for other, content in dossier.items() if other != name}
    assert any(name in words for words in judge(rest, tmp_path / "d"))
    for content in spoilt(dossier[name]):
        changed = {**dossier, name: content}
        assert any(name in words for words in judge(changed, tmp_path / "d"))
        harmless = content == dossier[name] + b"\n" and name.endswith((".sig", "dossier.json", "review.json"))
        if name != "SHA256SUMS" and not harmless:
            findings = verify_path(put(seal(changed), tmp_path / "d"))
            loose = [f for f in findings if f.level == "note" and "the word of who sent it" in f.words]
            assert any(name in words for words in [*failures(findings), *(f.words for f in loose)])
    findings = verify_path(put(seal(rest), tmp_path / "d"))
    loose_names = {"README.md", "verify.py", "policies/diffs.txt", "ledger.json"}
    if name not in {*loose_names, "SHA256SUMS"}:
        assert any(name in words for words in failures(findings))


@pytest.mark.parametrize(
    "name", ["extra.txt", "data.xlsx", "RETRACTED.md", "SHA256SUMS.old", ".hidden", "sub/data.csv", "ü", "a\nok    b"]
)
def test_files_that_do_not_belong_there(package: Files, dossier: Files, name: str, tmp_path: Path) -> None:
    """Each is named, in a package and in a dossier's parts."""
    named = printable(name)
    assert any(named in words for words in judge({**package, name: b"x"}, tmp_path / "p"))
    for folder in ("", "package/", "candidate/"):
        assert any(named in words for words in judge({**dossier, folder + name: b"x"}, tmp_path / "d"))
    for folder in ("package/", "candidate/"):
        found = judge(seal({**dossier, folder + name: b"x"}), tmp_path / "d")
        assert any(named in words for words in found) or "\n" in name  # which is not a line of a list of sums at all
        assert found


def test_an_empty_folder_and_another_folder(tmp_path: Path) -> None:
    """What is neither is one sentence, and so is what is not there."""
    file = tmp_path / "file.zip"
    file.write_bytes(b"PK no zip")
    for path in (tmp_path, file, tmp_path / "none", "", "\0", "a" * 5000, tmp_path / "file.zip" / "x"):
        with pytest.raises(WrongUsage):
            verify_path(path)


# --- Roles, order and history ---------------------------------------------------------------------------------------------------


def approve_other_candidate(name: str) -> Callable[[World], None]:
    return lambda world: world.approve(name, "approve", RELEASE, "5" * 64)


def reject(name: str) -> Callable[[World], None]:
    return lambda world: world.approve(name, "reject", RELEASE, world.candidate_hash, "rejected")


def reject_other(name: str) -> Callable[[World], None]:
    return lambda world: world.approve(name, "reject", RELEASE, "5" * 64, "rejected")


def give_back(name: str) -> Callable[[World], None]:
    return lambda world: world.approve(name, "return", RELEASE, world.candidate_hash, "returned")


def remark(name: str, **changes: Any) -> Callable[[World], None]:
    """Remarks on the candidate, with these parts of the event otherwise."""

    def step(world: World) -> None:
        document = {"format": REMARKS_FORMAT, "subject": RELEASE, "hash": world.candidate_hash}
        document |= {"remarks": [{"passage": "claim", "text": "too coarse"}]}
        signed = world.sign(name, "remarks", RELEASE, digest(canonical(document)))
        world.note("remarked", RELEASE, **{"subject": RELEASE, "document": document, "signed": signed, **changes})

    return step


def approve_as_another(name: str, claimed: str) -> Callable[[World], None]:
    """Signs with the own key under the name of another."""

    def step(world: World) -> None:
        world.secrets[claimed] = SECRETS[name]
        world.do(claimed)

    return step


def approve_openly_as_another(name: str, claimed: str) -> Callable[[World], None]:
    """Names the own key too, rightly."""

    def step(world: World) -> None:
        world.twist = lambda document, content: {**content, "name": claimed} if document == "statement approve" else content
        world.do(name)
        world.twist = plain

    return step


def reviewing_steward(world: World) -> None:
    world.policy["steward"] = "ben"


def lenient_policy(world: World) -> None:
    world.policy["review"]["reviewers"] = 1


def other_data(world: World) -> None:
    world.data = {**world.data, "data.csv": b"a,b\n1,3\n"}


def other_cap(world: World) -> None:
    world.populations["participants"]["cap"]["epsilon"] = 9


def charge(**content: Any) -> Callable[[World], None]:
    return lambda world: world.charge(RELEASE, **content)


def reviewers(number: int) -> Callable[[World], None]:
    def ask(world: World) -> None:
        world.policy["review"]["reviewers"] = number

    return ask


def cap_of(epsilon: int | str) -> Callable[[World], None]:
    def declare(world: World) -> None:
        world.populations["participants"]["cap"]["epsilon"] = epsilon

    return declare


def embargo(world: World) -> None:
    world.policy["publish"] = {"not_before": "2100-01-01T00:00:00Z"}


def give_up(world: World) -> None:
    name, _, revision = RELEASE.rpartition("/r")
    world.note("opened", f"{name}/r{int(revision) + 1}", why="a mistake")


def two_names_one_key(world: World) -> None:
    """One key under two names."""
    world.twist = lambda document, content: (
        content | {"keys": content["keys"] | {"dan": {**content["keys"]["ben"]}}} if document == "keys" else content
    )


GOOD_REMARKS = {"format": REMARKS_FORMAT, "subject": RELEASE, "hash": "5" * 64, "remarks": [{"passage": "", "text": "so"}]}
NOT_THE_CAP = "is not the one that the officer approved last before it"
ATTACKS: dict[str, tuple[dict[str, list[Any]], str]] = {
    "a reviewer signs the package": ({"package": [lambda world: world.do_package("ben")]}, "may not sign 'package'"),
    "a stranger signs the package": ({"package": [lambda world: world.do_package("eve")]}, "not in the list of trusted keys"),
    "the service approves": ({"cara": ["robot"]}, "'robot' has the role service"),
    "the officer approves": ({"cara": ["olga"]}, "'olga' has the role officer"),
    "the steward by role approves": ({"cara": ["ana"]}, "'ana' has the role steward"),
    "a reviewer who is the policy's steward approves": ({"trust": ["trust", reviewing_steward]}, "'ben' is the steward"),
    "a reviewer who is the steward approves before the charge names the policy": (
        {"trust": ["trust", reviewing_steward], "reserve": [], "cara": ["cara", "reserve"]},
        "'ben' is the steward of the policy and approved the candidate",
    ),
    "one reviewer twice": ({"cara": ["ben"]}, "1 reviewers approved"),
    "one reviewer only": ({"cara": []}, "1 reviewers approved"),
    "another candidate was approved": ({"cara": [approve_other_candidate("cara")]}, "1 reviewers approved"),
    "a key outside the list approves": ({"cara": ["eve"]}, "not in the list of trusted keys"),
    "a key outside the list under a known name": ({"cara": [approve_as_another("eve", "cara")]}, "of 'cara' is not valid"),
    "a reviewer's key under the name of another": ({"cara": [approve_openly_as_another("ben", "cara")]}, "not in the list"),
    "approved before anybody was trusted": (
        {"trust": [], "policy": ["policy", "trust"], "ben": ["ben"], "approve-policy": []},
        "policy",
    ),
    "approved only after it was published": ({"cara": [], "published": ["published", "cara"]}, "1 reviewers approved"),
    "rejected after the approvals": ({"publishing": [reject("dan"), "publishing"]}, "it was rejected in event 10"),
    "rejected before them": ({"ben": [reject("dan"), "ben"]}, "it was rejected in event 8"),
    "rejected after it was published": ({"published": ["published", reject("dan")]}, "it was rejected in event 12"),
    "returned before the approvals": ({"ben": [give_back("dan"), "ben"]}, "dan returned it before it was published"),
    "returned by who approved it before": ({"cara": ["cara", give_back("cara"), "dan"]}, "cara returned it before"),
    "returned by the steward": ({"cara": ["cara", give_back("ana")]}, "'ana' has the role steward"),
    "remarked by the service": (
        {"cara": ["cara", remark("robot")]},
        "'robot' has the role service, which may not sign 'remarks'",
    ),
    "remarks that are not those that were signed": (
        {"cara": ["cara", remark("ben", document=GOOD_REMARKS)]},
        "signed for another hash",
    ),
    "remarks on another release": (
        {"cara": ["cara", remark("ben", document={**GOOD_REMARKS, "subject": "rand-hie/9/r1"})]},
        "noted for something else than what was remarked on",
    ),
    "another candidate of it was rejected": ({"candidate": ["candidate", reject_other("dan")]}, "it was rejected in event 8"),
    "the policy approved only after the charge": (
        {"approve-policy": [], "reserve": ["reserve", "approve-policy"]},
        "is not what the officer approved last before the charge",
    ),
    "the policy approved by a reviewer": (
        {"approve-policy": [lambda world: world.do_approve_policy("ben")]},
        "may not sign 'policy'",
    ),
    "the policy never approved": ({"approve-policy": []}, "is not what the officer approved last before the charge"),
    "another policy than the approved one": (
        {"earlier": [lenient_policy, "policy", "earlier"]},
        "is not what the officer approved last before",
    ),
    "the policy not told before the charge": ({"policy": [], "reserve": ["reserve", "policy"]}, "tells its policy"),
    "an old policy put back": (
        {"approve-policy": ["approve-policy", reviewers(3), "policy", "approve-policy", reviewers(2)]},
        "is not what the officer approved last before",
    ),
    "an old cap put back": (
        {"approve-populations": ["approve-populations", cap_of(1), "approve-populations", cap_of("4.5")]},
        "not the caps that the officer approved last",
    ),
    "published before its embargo ended": ({"trust": ["trust", embargo]}, "before its embargo ended"),
    "given up before it was published": ({"published": [give_up, "published"]}, "it was given up in event 11"),
    "approved before there was a candidate": ({"ben": [], "candidate": ["ben", "candidate"]}, "1 reviewers approved"),
    "caps never approved": ({"approve-populations": []}, "populations.json: the officer did not approve any caps"),
    "caps approved after the charge": (
        {"approve-populations": [], "candidate": ["approve-populations", "candidate"]},
        "populations.json",
    ),
    "caps approved by the steward": (
        {"approve-populations": [lambda world: world.do_approve_populations("ana")]},
        "may not sign",
    ),
    "caps approved that are not those of the charge": ({"policy": [other_cap, "policy"]}, NOT_THE_CAP),
    "no cap in the approved caps": (
        {"policy": [lambda world: world.populations["participants"].clear(), "policy"]},
        "'definition'",
    ),
    "no such population in the approved caps": (
        {"policy": [lambda world: world.populations.clear(), "policy"]},
        "'participants'",
    ),
    "charged twice": ({"reserve": ["reserve", charge(spent="6")]}, "charged 2 times"),
    "never charged": ({"reserve": []}, "charged 0 times"),
    "charged after it was published": ({"reserve": [], "published": ["published", "reserve"]}, "only after it was published"),
    "over the cap": ({"reserve": ["earlier", charge(spent="6")]}, "go over the cap"),
    "charges that do not add up": ({"reserve": [charge(spent="3")]}, "do not add up"),
    "a negative charge": ({"earlier": [charge(spent="0", loss={"idp_column": -1}), "earlier"]}, "charged 2 times"),
    "a refund": (
        {"reserve": [lambda world: world.charge("rand-hie/9/r1", spent="1", loss={"idp_column": -(10**9)}), charge(spent="3")]},
        "do not add up",
    ),
    "an unbounded loss": ({"reserve": [charge(spent="4", loss={**LOSS, "idp_column": None})]}, "'idp_column' is missing"),
    "another cap than the declared": ({"reserve": [charge(spent="4", cap="9")]}, NOT_THE_CAP),
    "a cap that is no number": ({"reserve": [charge(spent="4", cap="much")]}, "not a decimal number"),
    "a cap with more digits than there are": ({"reserve": [charge(spent="4", cap="4.5000000000")]}, "not a decimal number"),
    "what is spent is no text": ({"reserve": [charge(spent=4)]}, "not a decimal number"),
    "a cap in no unit": ({"reserve": [charge(spent="4", unit="euro")]}, "unknown unit"),
    "charged to another population": ({"reserve": [charge(spent="2", population="others")]}, "population"),
    "other data than the candidate's": ({"package": [other_data, "package"]}, "it lists other data than the package"),
    "another candidate noted": (
        {"candidate": [lambda world: world.note("candidate", candidate_hash="1" * 64, policy_hash="2" * 64)]},
        "another candidate, or missing",
    ),
    "another candidate was being published": (
        {"publishing": [lambda world: world.note("publishing", candidate_hash="1" * 64)]},
        "another candidate, or missing",
    ),
    "never noted as published": ({"published": []}, "events at the end are missing"),
    "published before the package's head": (
        {"published": [], "package": ["package", "published", "package"]},
        "events at the end",
    ),
    "published with other content too": (
        {"published": ["published", other_data, "package", "published"]},
        "published with other content too",
    ),
    "trusted by a reviewer": ({"trust": [lambda world: world.do_trust("ben")]}, "event 1 (trusted)"),
    "one key under two names": ({"trust": [two_names_one_key, "trust"]}, "one key stands there under two names"),
    "the package's list of keys was never trusted": (
        {"package": [lambda world: world.people.update(eve="service"), "package"]},
        "is not the list that was trusted when the package was made",
    ),
    "retracted by a reviewer": ({"published": ["published", lambda world: world.do_retract("ben")]}, "may not sign 'retract'"),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_attacks_on_roles_order_and_history(attack: str, tmp_path: Path) -> None:
    """All hashes and lists are right in these; each is found for its own reason."""
    changes, expected = ATTACKS[attack]
    found = judge(with_steps(changes).dossier(), tmp_path / "d", OFFICER)
    assert any(expected in words for words in found), found


def test_a_package_is_of_its_release_and_place(package: Files, tmp_path: Path) -> None:
    """The right package in the wrong place, a card of another release, and a signature for another one."""
    assert any("rand-hie/3/r1" in words for words in judge(package, tmp_path / "rand-hie/3/r1"))
    assert any("rand-hie/3/r1" in words for words in failures(verify_path(pack(package, tmp_path / "p.zip", "rand-hie/3/r1/"))))

    def another(document: str, content: Any) -> Any:
        return {**content, "release": "rand-hie/3/r1"} if document == "card" else content

    found = judge(World(another).do(*USUAL).package, tmp_path / "p")
    assert any("SHA256SUMS.sig" in words and "another subject" in words for words in found)


@pytest.mark.parametrize(
    "steps",
    [
        [give_back("ben"), "ben", "cara"],
        [give_back("dan"), "ben", "cara", "dan"],
        ["ben", give_back("ben"), remark("ben"), remark("ana"), remark("olga"), "cara", "ben"],
    ],
)
def test_what_was_returned_and_approved_after_that_passes(steps: list[Any], tmp_path: Path) -> None:
    """By whoever returned it; remarks are by reviewers, steward and officer."""
    assert judge(with_steps({"ben": [], "cara": steps}).dossier(), tmp_path / "d") == []


def test_a_statement_is_not_good_for_another_kind(tmp_path: Path) -> None:
    """A signature over the approval of a policy with a candidate's hash approves no candidate."""

    def step(world: World) -> None:
        signed = world.sign("cara", "reject", RELEASE, world.candidate_hash)
        world.note("approved", RELEASE, what="candidate", subject=RELEASE, hash=world.candidate_hash, signed=signed)

    found = judge(with_steps({"cara": [step]}).dossier(), tmp_path / "d")
    assert any("another kind" in words for words in found)


def test_a_forged_tombstone(tmp_path: Path) -> None:
    """It retracts nothing: data that are away are missing, and it is named itself."""
    world = usual()
    world.do_retract("eve")
    found = judge(world.package, tmp_path / "p")
    assert any("RETRACTED.json" in words and "not in the list" in words for words in found)
    assert any("data.csv: it is missing" in words for words in found)
    assert not any("was retracted" in words for words in found)


def test_a_tombstone_that_no_event_tells_of(tmp_path: Path) -> None:
    """Events after the package's head were cut off: what is signed in the package still shows it."""
    world = usual("retract")
    world.lines.pop()
    assert any("tombstone" in words and "events at the end" in words for words in judge(world.dossier(), tmp_path / "d"))


# --- The chain ------------------------------------------------------------------------------------------------------------------


def rewrite(lines: list[str], change: Callable[[list[Any]], None]) -> list[str]:
    """The chain with its bodies changed, and every number and hash made to fit."""
    bodies = [json.loads(json.loads(line)["body"]) for line in lines]
    change(bodies)
    world = World()
    for body in bodies:
        release = None if body["release"] is None else "{}/{}/r{}".format(*body["release"])
        world.note(body["kind"], release, **body["content"])
    return world.lines


def with_lines(dossier: Files, lines: list[str]) -> Files:
    return seal({**dossier, "events.jsonl": "".join(f"{line}\n" for line in lines).encode()})


@pytest.mark.slow
def test_an_event_removed_from_the_middle_or_changed(dossier: Files, tmp_path: Path) -> None:
    """The chain tells which; likewise when two change places, one stands there twice or one is put in."""
    lines = dossier["events.jsonl"].decode().splitlines()
    for place in range(len(lines)):
        rest = [*lines[:place], *lines[place + 1 :]]
        assert any("events.jsonl" in words for words in judge(with_lines(dossier, rest), tmp_path / "d"))
        twice = [*lines[: place + 1], *lines[place:]]
        assert any(f"event {place + 2} was changed" in words for words in judge(with_lines(dossier, twice), tmp_path / "d"))
        event = json.loads(lines[place])
        event["body"] = event["body"].replace('"noted":"2026', '"noted":"2025')
        changed = [*lines[:place], json.dumps(event), *lines[place + 1 :]]
        assert any(f"event {place + 1} was changed" in words for words in judge(with_lines(dossier, changed), tmp_path / "d"))


def test_an_event_follows_the_one_whose_hash_it_has(dossier: Files, tmp_path: Path) -> None:
    """Where one is taken out and all numbers and hashes after it are made to fit, the hash of the one before does not."""
    bodies = [json.loads(json.loads(line)["body"]) for line in dossier["events.jsonl"].decode().splitlines()]
    del bodies[3]
    texts = [canonical(body | {"number": number}) for number, body in enumerate(bodies, 1)]
    lines = [json.dumps({"body": text, "hash": digest(text)}) for text in texts]
    assert any("event 4 was changed" in words for words in judge(with_lines(dossier, lines), tmp_path / "d"))


def test_events_cut_off_before_the_head(dossier: Files, tmp_path: Path) -> None:
    """However many."""
    lines = dossier["events.jsonl"].decode().splitlines()
    for length in (0, 1, 5, 9):
        found = judge(with_lines(dossier, lines[:length]), tmp_path / "d")
        assert any("cut off" in words for words in found)
    assert any("events at the end are missing" in words for words in judge(with_lines(dossier, lines[:10]), tmp_path / "d"))


def test_a_chain_rewritten_with_right_hashes(dossier: Files, tmp_path: Path) -> None:
    """The head that the package names is another."""
    lines = dossier["events.jsonl"].decode().splitlines()

    def without(number: int) -> Callable[[list[Any]], None]:
        return lambda bodies: bodies.__delitem__(number)

    assert rewrite(lines, lambda bodies: None) == lines
    for number in range(10):
        found = judge(with_lines(dossier, [*rewrite(lines, without(number))]), tmp_path / "d")
        assert any("the chain was written anew" in words for words in found)

    def cheaper(bodies: list[Any]) -> None:
        bodies[4]["content"]["loss"]["idp_column"] = 0

    assert any(
        "the chain was written anew" in words for words in judge(with_lines(dossier, rewrite(lines, cheaper)), tmp_path / "d")
    )


@pytest.mark.parametrize(
    "entry",
    [
        ("Otto", {"key": public_text("otto"), "role": "steward"}),
        ("otto", {"key": public_text("otto").replace("ssh-ed25519", "ssh-rsa"), "role": "steward"}),
        ("otto", {"key": f"ssh-ed25519 {base64.b64encode(pack_key(bytes(31))).decode()}", "role": "steward"}),
        ("otto", {"key": public_text("otto"), "role": "auditor"}),
        ("otto", {"key": public_text("otto")}),
        ("otto", {"key": public_text("ben"), "role": "steward"}),
        ("otto", {"key": public_text("otto"), "role": "officer"}),
    ],
)
def test_a_list_of_keys_is_plain(entry: tuple[str, Any]) -> None:
    """A name, an Ed25519 key and a known role each; one officer; no key twice; and then nothing in it is believed."""
    keys = World().keys()
    assert len(read_keys(keys)) == len(PEOPLE)
    fine = {**keys["keys"], "otto": {"key": public_text("otto"), "role": "steward"}}
    assert len(read_keys({"keys": fine})) == len(PEOPLE) + 1
    with pytest.raises(Fault):
        read_keys({"keys": {**keys["keys"], entry[0]: entry[1]}})


@pytest.mark.parametrize(
    ("name", "value"),
    [("at", "yesterday"), ("at", f"{TIME}\n"), ("hash", "A" * 64), ("hash", "0" * 63), ("signer", "0"), ("name", "Ben")],
)
def test_a_statement_has_its_shape(name: str, value: str) -> None:
    """Even when it is signed so."""
    world = World(lambda document, content: {**content, name: value} if document.startswith("statement") else content)
    with pytest.raises(Fault, match=f"'{name}'"):
        verify_statement(world.sign("ben", "approve", RELEASE, "0" * 64), world.keys())


def test_a_card_names_its_release_and_the_head(tmp_path: Path) -> None:
    """In the shape that they have, even when it is signed otherwise."""
    wrong = [{"release": "../../etc"}, {"release": "rand-hie/2"}, {"release": None}, {"registry_head": None}]
    for change in [*wrong, {"registry_head": {"event": 10, "hash": "x"}}, {"registry_head": {"event": True, "hash": "0" * 64}}]:
        twist = lambda document, content, change=change: {**content, **change} if document == "card" else content  # noqa: E731
        assert any("privacy-card.json: '" in words for words in judge(World(twist).do(*USUAL).package, tmp_path / "p"))


def test_a_statement_has_seven_parts() -> None:
    """A part more is refused, though it is signed."""
    world = World()
    signed = world.sign("ben", "approve", RELEASE, "0" * 64)
    lines = signed["sshsig"].splitlines(keepends=True)
    last = lines[-2]  # it ends in one letter of which four bits are unused, and two signs that fill up
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    for unused in range(1, 16):
        other = last[:-4] + alphabet[alphabet.index(last[-4]) ^ unused] + last[-3:]
        assert base64.b64decode("".join((*lines[1:-2], other))) == base64.b64decode("".join(lines[1:-1]))
        with pytest.raises(Fault, match="another form"):
            verify_statement({**signed, "sshsig": "".join((*lines[:-2], other, lines[-1]))}, world.keys())
    world.twist = lambda document, content: {**content, "more": ""} if document.startswith("statement") else content
    with pytest.raises(Fault, match="other parts"):
        verify_statement(world.sign("ben", "approve", RELEASE, "0" * 64), plain("keys", World().keys()))


# --- Hostile input --------------------------------------------------------------------------------------------------------------


def test_links_pipes_and_folders_in_place_of_files(package: Files, tmp_path: Path) -> None:
    """None is followed, opened or waited for; each is named."""
    folder = tmp_path / "p"
    outside = tmp_path / "outside.csv"
    outside.write_bytes(package["data.csv"])
    for replace in (lambda file: file.symlink_to(outside), os.mkfifo, Path.mkdir, lambda file: file.symlink_to(file)):
        for name in ("data.csv", "SHA256SUMS", "trusted-keys.json"):
            put(package, folder)
            (folder / name).unlink()
            replace(folder / name)
            assert any(name in words for words in failures(verify_path(folder)))
    put(package, folder)
    (folder / "loop").symlink_to(folder)
    assert any("loop" in words for words in failures(verify_path(folder)))
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path(os.devnull)):
        with pytest.raises(WrongUsage):
            verify_path(path)
    (tmp_path / "link").symlink_to(put(package, tmp_path / "q"))
    assert failures(verify_path(tmp_path / "link")) == []  # PATH itself may be one


@pytest.mark.parametrize(
    "name", ["../data.csv", "/etc/passwd", "a/../../b", "./data.csv", "C:\\x", "..\\x", "a//b", "x\0y", "", "-rf"]
)
def test_names_with_tricks_in_a_zip(package: Files, name: str, tmp_path: Path) -> None:
    """They are failures, and nothing is ever unpacked."""
    file = tmp_path / "p.zip"
    with zipfile.ZipFile(file, "w") as archive:
        for other, content in package.items():
            archive.writestr(other, content)
        entry = zipfile.ZipInfo("placeholder")
        entry.filename = entry.orig_filename = name
        archive.writestr(entry, b"x")
    assert failures(verify_path(file))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.zip"]


@pytest.mark.parametrize("name", ["../data.csv", "/etc/passwd", "sub/../data.csv", "data.csv\\", "", "SHA256SUMS", "DATA.csv"])
def test_names_with_tricks_in_a_list_of_sums(package: Files, name: str, tmp_path: Path) -> None:
    """Even when the list is signed."""

    def step(world: World) -> None:
        world.package["SHA256SUMS"] += f"{digest(package['data.csv'])}  {name}\n".encode()
        world.package["SHA256SUMS.sig"] = json.dumps(world.sign("robot", "package", RELEASE, world.package_hash)).encode()

    found = judge(World().do(*USUAL, step).package, tmp_path / "p")
    assert any("SHA256SUMS" in words for words in found)


def test_duplicate_links_and_encrypted_entries_in_a_zip(package: Files, tmp_path: Path) -> None:
    """A name twice (whichever comes first), a link, an entry packed with what needs much memory."""
    for place in (0, len(package)):
        entries = list(package.items())
        entries.insert(place, ("data.csv", b"another"))
        with pytest.warns(UserWarning, match="Duplicate"):
            pack_entries(entries, tmp_path / "p.zip")
        assert any("data.csv: stands there twice" in words for words in failures(verify_path(tmp_path / "p.zip")))
    link = zipfile.ZipInfo("data.csv")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    strange = zipfile.ZipInfo("data.csv")
    strange.compress_type = zipfile.ZIP_LZMA
    for entry in (link, strange):
        with zipfile.ZipFile(tmp_path / "p.zip", "w") as archive:
            for name, content in package.items():
                archive.writestr(entry if name == entry.filename else name, content)
        assert any("data.csv" in words for words in failures(verify_path(tmp_path / "p.zip")))
    content = pack(package, tmp_path / "p.zip").read_bytes()
    place = content.index(b"PK\x01\x02")
    (tmp_path / "p.zip").write_bytes(content[: place + 8] + b"\1" + content[place + 9 :])  # its flag of encryption
    assert any("encrypted" in words for words in failures(verify_path(tmp_path / "p.zip")))


def test_a_zip_bomb(package: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What would unpack to far more than its size is not unpacked; a directory that claims a great length is not read."""
    monkeypatch.setattr(trees, "MOST_UNPACKED", 2**20)
    with zipfile.ZipFile(tmp_path / "p.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in package.items():
            archive.writestr(name, content)
        archive.writestr("zeros", bytes(2**24))
    assert any("larger than any package" in words for words in failures(verify_path(tmp_path / "p.zip")))
    content = bytearray(pack(package, tmp_path / "p.zip").read_bytes())
    end = content.rindex(b"PK\x05\x06")
    content[end + 12 : end + 16] = struct.pack("<L", 2**31)
    (tmp_path / "p.zip").write_bytes(content)
    with pytest.raises(WrongUsage):
        verify_path(tmp_path / "p.zip")


def test_sizes_that_are_no_package(package: Files, dossier: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terabyte of nothing, a huge file where JSON should be, thousands of files: a sentence, at once."""
    begun = time.process_time()
    folder = put(package, tmp_path / "p")
    os.truncate(folder / "data.csv", 2**40)
    assert any("larger than any package" in words for words in failures(verify_path(folder)))
    for name in ("privacy-card.json", "SHA256SUMS", "trusted-keys.sig"):
        monkeypatch.setattr(trees, "MOST_TO_PARSE", 2**20)
        put(package, folder)
        os.truncate(folder / name, 2**21)
        assert any(name in words for words in failures(verify_path(folder)))
    monkeypatch.setattr(trees, "MOST_FILES", 12)
    assert any("more than 12 files" in words for words in failures(verify_path(put(dossier, tmp_path / "d"))))
    monkeypatch.undo()
    monkeypatch.setattr(chain, "MOST_SIGNATURES", 4)
    assert any("too many" in words for words in failures(verify_path(tmp_path / "d")))
    assert time.process_time() - begun < 60  # of the processor, however busy it is: to read a terabyte takes far longer


JSON_TRICKS = {
    "twice": b'{"release": "rand-hie/2/r1", "release": "rand-hie/2/r1", "registry_head": {"event": 10, "hash": "HASH"}}',
    "nan": b'{"release": "rand-hie/2/r1", "epsilon": NaN, "registry_head": {"event": 10, "hash": "HASH"}}',
    "too long": b'"' + b"9" * 5_000_000 + b'"',
    "deep": b"[" * 200_000,
    "true": b'{"release": "rand-hie/2/r1", "registry_head": {"event": true, "hash": "HASH"}}',
    "latin-1": b'{"release": "\xff"}',
    "surrogate": b'{"release": "\\ud800", "registry_head": 1}',
}


@pytest.mark.parametrize("trick", JSON_TRICKS)
@pytest.mark.parametrize(
    "name",
    [
        "privacy-card.json",
        "SHA256SUMS.sig",
        "events.jsonl",
    ],
)
def test_json_with_tricks(dossier: Files, trick: str, name: str, tmp_path: Path) -> None:
    """It is no JSON to us, wherever it stands."""
    path = name if name in dossier else f"package/{name}"
    content = JSON_TRICKS[trick].replace(b"HASH", json.loads(usual().lines[9])["hash"].encode())
    assert any(path in words for words in judge(seal({**dossier, path: content}), tmp_path / "d"))


WEIRD = [
    None,
    True,
    0,
    -1,
    10**30,
    1.5,
    "",
    "x",
    "\ud800",
    "\x1b[2J",
    "../..",
    [],
    {},
    [[]],
    [None],
    {"a": None},
    "0" * 64,
    "9" * 5000,
]


def spots(content: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(content, dict):
        for name, part in content.items():
            yield from spots(part, (*path, name))
    elif isinstance(content, list):
        for place, part in enumerate(content):
            yield from spots(part, (*path, place))


def replaced(content: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    copied = copy.copy(content)
    copied[path[0]] = replaced(content[path[0]], path[1:], value)
    return copied


class Twist:
    """Puts something weird into one place of one document, before hashes and signatures are made over it."""

    def __init__(self, document: int, place: int, value: Any) -> None:
        self.document, self.place, self.value = document, place, value
        self.seen: list[str] = []

    def __call__(self, document: str, content: Any) -> Any:
        if document not in self.seen:
            self.seen.append(document)
        if self.seen.index(document) != self.document:
            return content
        paths = list(spots(content))
        return replaced(content, paths[self.place % len(paths)], self.value)


@pytest.mark.slow
@given(document=st.integers(0, 22), place=st.integers(0, 60), value=st.sampled_from(WEIRD))
@settings(max_examples=60)
@example(document=1, place=5, value="\ud800")
def test_whatever_was_signed_there_is_no_traceback(
    document: int, place: int, value: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A publisher who holds every key may have signed anything: the verifier ends with findings."""
    twist = Twist(document, place, value)
    try:
        files = World(twist).do(*USUAL, "supersede", "retract").dossier()
    except (TypeError, ValueError, AttributeError):  # the builder itself, not what is tested
        return
    file = pack(files, tmp_path_factory.mktemp("twist") / "d.zip")
    findings = verify_path(file)
    assert findings
    assert failures(findings)  # it is retracted, at least
    shutil.rmtree(file.parent)


@pytest.mark.slow
@given(data=st.data())
@settings(max_examples=60)
def test_whatever_bytes_a_zip_has_there_is_no_traceback(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Bytes changed anywhere, its directory above all: a sentence or findings."""
    file = tmp_path_factory.mktemp("zip") / "p.zip"
    content = bytearray(pack(usual().package, file).read_bytes())
    start = content.index(b"PK\x01\x02") if data.draw(st.booleans()) else 0
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(start, len(content) - 1))] = data.draw(st.integers(0, 255))
    file.write_bytes(content[: data.draw(st.integers(len(content) // 2, len(content)))] if data.draw(st.booleans()) else content)
    with contextlib.suppress(WrongUsage):
        assert verify_path(file)
    shutil.rmtree(file.parent)


# --- The program ----------------------------------------------------------------------------------------------------------------


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-I", "-S", "verify.py", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=HANGING,
    )


@pytest.mark.slow
def test_it_runs_alone_in_a_dossier(tmp_path: Path) -> None:
    """With nothing but the dossier, without site packages: 0, 1 and 2, a line each, and nothing is left behind."""
    folder = put(usual().dossier(), tmp_path / "d")
    before = sorted(folder.rglob("*"))
    done = run(folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1].startswith("Verified: nothing failed. But nobody compared the officer's fingerprint")
    assert {line[:6] for line in done.stdout.splitlines()[:-1]} == {"ok    ", "note  "}
    done = run(folder, ".", "--officer", OFFICER)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "Verified: nothing failed.")
    assert sorted(folder.rglob("*")) == before
    assert run(folder, "--officer", "0" * 64).returncode == 1
    (folder / "ledger.json").write_text("[]")
    done = run(folder)
    assert done.returncode == 1
    assert "FAIL  ledger.json" in done.stdout
    for arguments in (("nowhere",), ("--officer", "me"), ("--what",)):
        done = run(folder, *arguments)
        assert done.returncode == 2
        assert "Traceback" not in done.stderr
        assert done.stdout == ""
    assert len(run(folder, "nowhere").stderr.splitlines()) == 1


def test_it_needs_python_3_9_and_nothing_else() -> None:
    """By its grammar and its imports."""
    tree = ast.parse(join_verifier(), feature_version=(3, 9))
    for node in ast.walk(tree):
        assert not isinstance(node, ast.Match)
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        assert {name.split(".")[0] for name in names} <= sys.stdlib_module_names
