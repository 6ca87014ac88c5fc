"""The verifier: what is whole passes, and every single thing that is not is found and named.

Packages and dossiers are built here, signed with `cryptography`; nothing of the package but `verify` is used.
"""

from __future__ import annotations

import ast
import base64
import copy
import hashlib
import io
import json
import os
import shutil
import stat
import struct
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from hypothesis import example, given, settings
from hypothesis import strategies as st

from release_pipeline import verify
from release_pipeline.verify import Fault, Finding, WrongUsage, verify_chain, verify_path, verify_signature, verify_statement

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
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        b"\x72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ),
    (
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        b"\xaf\x82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
    ),
    (
        "833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42",
        "ec172b93ad5e563f4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
        hashlib.sha512(b"abc").digest(),
        "dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b58909351fc9ac90b3ecfdfbc7c66431e0303dca179c138ac17ad9bef1177331a704",
    ),
]
SECRET = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PUBLIC = SECRET.public_key().public_bytes_raw()
MESSAGE = b"a release of data about people"
ORDER, PRIME = 2**252 + 27742317777372353535851937790883648493, 2**255 - 19
Y_OF_ORDER_8 = 2707385501144840649318225287225658788936804267575313519463743609750303021562
SMALL_Y = (0, 1, PRIME - 1, Y_OF_ORDER_8, PRIME - Y_OF_ORDER_8, PRIME, PRIME + 1)  # of order 1, 2, 4 and 8; the last two not canonical


def openssl_accepts(public: bytes, message: bytes, signature: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except InvalidSignature:
        return False
    return True


@pytest.mark.parametrize(("secret", "public", "message", "signature"), RFC_8032, ids=["empty", "1 byte", "2 bytes", "SHA(abc)"])
def test_the_vectors_of_rfc_8032(secret: str, public: str, message: bytes, signature: str) -> None:
    """Accepted as they are, and for no other message or key."""
    key, signed = bytes.fromhex(public.zfill(64)), bytes.fromhex(signature)
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


@given(public=st.binary(min_size=32, max_size=32), signature=st.binary(min_size=64, max_size=64))
@settings(max_examples=40)
def test_random_bytes_do_not_pass(public: bytes, signature: bytes) -> None:
    """Half of all texts are no point; the others sign nothing."""
    assert not verify_signature(public, MESSAGE, signature)


@pytest.mark.parametrize("bit", [*range(0, 512, 7), 511])
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
    point = verify._decode(public)
    if y < PRIME and not (sign and y in (1, PRIME - 1)):
        assert point is not None
        assert openssl_accepts(public, MESSAGE, nothing) or y != 1  # so the refusal above is ours
    else:
        assert point is None


def test_keys_in_another_encoding_are_refused() -> None:
    """y + p for every y that leaves room for it."""
    assert all(verify._decode((PRIME + y).to_bytes(32, "little")) is None for y in range(19))
    assert any(verify._decode(y.to_bytes(32, "little")) for y in range(2, 19))


# --- A site that publishes ------------------------------------------------------------------------------------------------------

PEOPLE = {"olga": "officer", "ana": "steward", "ben": "reviewer", "cara": "reviewer", "dan": "reviewer", "robot": "service"}
SECRETS = {
    name: Ed25519PrivateKey.from_private_bytes(hashlib.sha256(name.encode()).digest()) for name in (*PEOPLE, "eve", "otto")
}
RELEASE = "rand-hie/2/r1"
TIME = "2026-11-20T12:00:00+00:00"
POPULATIONS = {"participants": {"cap": {"definition": "idp", "epsilon": "4.5", "scope": "column"}}}
LOSS = {"dp_centroid": None, "dp_column": None, "dp_table": None, "idp_centroid": 2 * 10**9, "idp_column": 2 * 10**9}
USUAL = "trust policy approve-policy approve-populations earlier reserve candidate ben cara publishing package published".split()


def canonical(content: Any) -> str:
    return json.dumps(content, sort_keys=True, separators=(",", ":"))


def digest(content: bytes | str) -> str:
    return hashlib.sha256(content if isinstance(content, bytes) else content.encode()).hexdigest()


def raw(name: str) -> bytes:
    return SECRETS[name].public_key().public_bytes_raw()


def public_text(name: str) -> str:
    return "ed25519:" + base64.b64encode(raw(name)).decode()


def sums(files: Files) -> bytes:
    return "".join(f"{digest(files[name])}  {name}\n" for name in sorted(files)).encode()


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
        statement["signer"] = digest(raw(name))
        statement = self.twist(f"statement {kind}", statement)
        signature = self.secrets[name].sign(b"release-pipeline statement\n" + canonical(statement).encode())
        return {"statement": statement, "signature": base64.b64encode(signature).decode()}

    def note(self, kind: str, release: str | None = RELEASE, **content: Any) -> None:
        parts = None if release is None else [*release.split("/")[:2], int(release.rpartition("/r")[2])]
        previous = json.loads(self.lines[-1])["hash"] if self.lines else ""
        told = {"number": len(self.lines) + 1, "previous": previous, "kind": kind, "noted": TIME, "release": parts}
        body = canonical(self.twist(f"event {kind}", {**told, "content": content}))
        self.lines.append(json.dumps({"body": body, "hash": digest(body)}))

    def approve(self, name: str, kind: str, subject: str, hash: str, event: str = "approved") -> None:
        what = {"approve": "candidate", "reject": "candidate"}.get(kind, kind)
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
        self.note("trusted", None, hash=hash, officer=digest(raw(by)), keys=keys, signed=signed)

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
        content = {"population": "participants", "policy_hash": digest(self.policy_text), "records": 100, "loss": LOSS}
        self.note("reserved", release, **{**content, "unit": self.unit, "cap": self.cap, "spent": spent, **other})

    def do_candidate(self) -> None:
        self.note("candidate", candidate_hash=self.candidate_hash, policy_hash=digest(self.policy_text), facts={"rows": 100})

    def do_publishing(self) -> None:
        self.note("publishing", candidate_hash=self.candidate_hash, by="paul")

    def do_package(self, by: str = "robot") -> None:
        head = json.loads(self.lines[-1])["hash"] if self.lines else ""
        card = {"release": RELEASE, "epsilon": 0.5, "registry_head": {"event": len(self.lines), "hash": head}}
        self.package = {
            **self.data,
            "datapackage.json": b"{}",
            "privacy-card.json": json.dumps(self.twist("card", card)).encode(),
            "privacy-card.html": b"<p>card</p>",
            "RELEASE_NOTE.md": b"note\n",
            **self.key_files(),
        }
        self.package["SHA256SUMS"] = sums(self.package)
        self.package["SHA256SUMS.sig"] = json.dumps(self.sign(by, "package", RELEASE, self.package_hash)).encode()

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

    def dossier(self) -> Files:
        files = {
            "README.md": b"read me\n",
            "verify.py": Path(verify.__file__).read_bytes(),
            "events.jsonl": "".join(f"{line}\n" for line in self.lines).encode(),
            f"policies/rand-hie.{digest(self.policy_text)[:12]}.json": self.policy_text.encode(),
            "policies/diffs.txt": b"",
            "populations.json": self.populations_text.encode(),
            **self.key_files(),
            "ledger.json": b"{}",
            "checks.json": b"{}",
            "lineage.svg": b"<svg/>",
            "columns.csv": b"a\n",
            "requirements.lock": b"unknown\n",
            "versions.json": b"{}",
            **{f"candidate/{name}": self.candidate[name] for name in ("SHA256SUMS", "evidence.json")},
            **{f"package/{name}": content for name, content in self.package.items() if not name.startswith("data.")},
        }
        told = {"release": RELEASE, "made": TIME, "tool": "0.1.0", "commit": "unknown", "officer": digest(raw(self.officer()))}
        files["dossier.json"] = json.dumps(self.twist("dossier", {**told, "series": [RELEASE]})).encode()
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
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(prefix + name, content)
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


OFFICER = digest(raw("olga"))

# --- What is whole passes -------------------------------------------------------------------------------------------------------


def test_a_package_passes(package: Files, tmp_path: Path) -> None:
    """As a folder and as a zip, flat or in folders; its release and the registry's head are told."""
    folder = put(package, tmp_path / "releases" / RELEASE)
    for path in (folder, pack(package, tmp_path / "a.zip"), pack(package, tmp_path / "b.zip", "x/y/"), pack(package, tmp_path / "c.zip", RELEASE + "/")):
        findings = verify_path(path, OFFICER)
        assert failures(findings) == []
        assert {finding.level for finding in findings} == {"ok"}
        assert any(RELEASE in finding.words and "event 10, hash" in finding.words for finding in findings)


def test_a_dossier_passes(dossier: Files, tmp_path: Path) -> None:
    """As a folder and as a zip; what nobody signed is told, and the hashes of the data that are not in it."""
    for path in (put(dossier, tmp_path / "d"), pack(dossier, tmp_path / "d.zip"), pack(dossier, tmp_path / "e.zip", "dossier-rand-hie/")):
        findings = verify_path(str(path), [OFFICER])
        assert failures(findings) == []
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


def test_a_superseded_package_has_a_note(tmp_path: Path) -> None:
    """It is what was published; that there is a newer one is for the reader to weigh."""
    world = usual("supersede")
    for files in (world.package, world.dossier()):
        findings = verify_path(put(files, tmp_path / "p"), OFFICER)
        assert failures(findings) == []
        assert any("superseded" in finding.words and "rand-hie/2/r2" in finding.words for finding in findings)


def test_the_officer_may_sign_a_package(tmp_path: Path) -> None:
    """Not only the service."""
    world = with_steps({"package": [lambda world: world.do_package("olga")]})
    assert judge(world.dossier(), tmp_path / "d", OFFICER) == []


def test_lists_of_keys_change_over_time(tmp_path: Path) -> None:
    """A reviewer who left had the right to approve when he did; a later approval of his is none."""

    def leave(world: World) -> None:
        del world.people["ben"]
        world.do_trust()

    left_after = with_steps({"cara": ["cara", leave]})
    assert judge(left_after.dossier(), tmp_path / "d", OFFICER) == []
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
    new = digest(raw("otto"))
    path = put(files, tmp_path / "d")
    assert failures(verify_path(path, [OFFICER, new])) == []
    assert any(OFFICER in words for words in failures(verify_path(path, new)))
    assert sum("another channel" in finding.words for finding in verify_path(path)) == 2
