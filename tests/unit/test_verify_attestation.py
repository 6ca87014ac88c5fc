"""The package's statement in the forms of other people's programs: made and verified here after their specifications, with
`cryptography` and ssh-keygen; and everything that could be wrong with it, found by the verifier.

Nothing that makes or judges a signature here is of the package.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import struct
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from hypothesis import given, settings
from hypothesis import strategies as st

from release_pipeline import verify
from release_pipeline.flow.publication.attestation import list_signers, write_attestations
from release_pipeline.flow.trust.keys import NotSigned, PrivateKey, PublicKey
from release_pipeline.flow.trust.members import Member, Trust
from release_pipeline.verify import verify_path
from tests.unit.test_verify import OFFICER, RELEASE, SECRETS, Files, digest, failures, public_text, put, raw, sums, usual

STATEMENT, ENVELOPE, SIGNERS = "attestation.intoto.json", "attestation.dsse.json", "allowed_signers"
SSH, MINISIGN = f"{STATEMENT}.sig", f"{STATEMENT}.minisig"
FORMS = (ENVELOPE, SSH, MINISIGN)
KIND = "application/vnd.in-toto+json"
NEEDS_SSH = pytest.mark.skipif(shutil.which("ssh-keygen") is None and not os.environ.get("CI"), reason="there is no ssh-keygen")


# --- The forms, after their specifications --------------------------------------------------------------------------------------


def encode_before_signing(kind: str, payload: bytes) -> bytes:
    """PAE of DSSE 1.0."""
    return b" ".join([b"DSSEv1", str(len(kind)).encode(), kind.encode(), str(len(payload)).encode(), payload])


def pack(*parts: bytes) -> bytes:
    return b"".join(struct.pack(">I", len(part)) + part for part in parts)


def blob_of_ssh(namespace: str, message: bytes) -> bytes:
    """What is signed, after PROTOCOL.sshsig of OpenSSH."""
    return b"SSHSIG" + pack(namespace.encode(), b"", b"sha512", hashlib.sha512(message).digest())


def sign_envelope(payload: bytes, by: str = "robot", kind: str = KIND, **changed: Any) -> bytes:
    signature = {"keyid": digest(raw(by)), "sig": encode(SECRETS[by].sign(encode_before_signing(kind, payload)))}
    envelope = {"payload": encode(payload), "payloadType": kind, "signatures": [signature]}
    return json.dumps({**envelope, **changed}).encode()


def sign_for_ssh(payload: bytes, by: str = "robot", namespace: str = "package@release-pipeline") -> bytes:
    parts = (pack(b"ssh-ed25519", SECRETS[by].sign(blob_of_ssh(namespace, payload))),)
    blob = b"SSHSIG" + struct.pack(">I", 1) + pack(pack(b"ssh-ed25519", raw(by)), namespace.encode(), b"", b"sha512", *parts)
    lines = "\n".join(re.findall(".{1,70}", encode(blob)))
    return f"-----BEGIN SSH SIGNATURE-----\n{lines}\n-----END SSH SIGNATURE-----\n".encode()


def sign_for_minisign(
    payload: bytes, by: str = "robot", comment: str = RELEASE, number: bytes = b"", legacy: bool = False, said: str = ""
) -> bytes:
    """After the page of minisign; `legacy`: of the content and not of its hash; `said`: another comment than was signed."""
    signature = SECRETS[by].sign(payload if legacy else hashlib.blake2b(payload).digest())
    packed = (b"Ed" if legacy else b"ED") + (number or hashlib.sha256(raw(by)).digest()[:8]) + signature
    of_both = SECRETS[by].sign(signature + comment.encode())
    lines = [f"untrusted comment: {STATEMENT}", encode(packed), f"trusted comment: {said or comment}", encode(of_both), ""]
    return "\n".join(lines).encode()


def encode(content: bytes) -> str:
    return base64.b64encode(content).decode()


def verify_envelope(envelope: Any, public: bytes) -> bytes:
    """The payload, by the protocol of DSSE 1.0: any other reader of it would do no less."""
    payload, kind = base64.b64decode(envelope["payload"]), envelope["payloadType"]
    if kind != KIND:
        raise InvalidSignature
    for signature in envelope["signatures"]:
        try:
            key = Ed25519PublicKey.from_public_bytes(public)
            key.verify(base64.b64decode(signature["sig"]), encode_before_signing(kind, payload))
        except InvalidSignature:
            continue
        return payload
    raise InvalidSignature


def verify_minisign(text: str, payload: bytes, key: str) -> str:
    """The comment, by the page of minisign: the number must be the key's, the hash and the comment signed."""
    public, (_, packed, comment, of_both, _) = base64.b64decode(key), text.split("\n")
    signature = base64.b64decode(packed)
    assert (public[:2], signature[:2], public[2:10]) == (b"Ed", b"ED", signature[2:10])
    words = comment.removeprefix("trusted comment: ")
    judge = Ed25519PublicKey.from_public_bytes(public[10:])
    judge.verify(signature[10:], hashlib.blake2b(payload).digest())
    judge.verify(base64.b64decode(of_both), signature[10:] + words.encode())
    return words


# --- A package with them --------------------------------------------------------------------------------------------------------


def write_signers() -> bytes:
    """The officer and the service, as ssh-keygen and minisign read them."""
    lines = ""
    for name in ("olga", "robot"):
        space = "package@release-pipeline,statement@release-pipeline"
        lines += f'{name} namespaces="{space}" ssh-ed25519 {encode(pack(b"ssh-ed25519", raw(name)))}\n'
        lines += f"# {name} minisign {encode(b'Ed' + hashlib.sha256(raw(name)).digest()[:8] + raw(name))}\n"
    return lines.encode()


def make_statement(files: Mapping[str, bytes]) -> dict[str, Any]:
    card = json.loads(files["privacy-card.json"])
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": name, "digest": {"sha256": digest(files[name])}} for name in sorted(files)],
        "predicateType": "urn:release-pipeline:package:1",
        "predicate": {name: card[name] for name in ("release", "hashes", "registry_head")},
    }


Change = Callable[[Any], Any]


def attest(change: Change = lambda said: said, /, **parts: bytes | Callable[[bytes], bytes]) -> Files:
    """A package whose service signed everything: its statement after `change`, and files of it that are made otherwise."""
    world = usual()
    files = {name: content for name, content in world.package.items() if not name.startswith("SHA256SUMS")}
    files[SIGNERS] = write_signers()
    payload = json.dumps(change(make_statement(files)), indent=2).encode()
    made: dict[str, Callable[[bytes], bytes]] = {ENVELOPE: sign_envelope, SSH: sign_for_ssh, MINISIGN: sign_for_minisign}
    files |= {STATEMENT: payload, **{name: sign(payload) for name, sign in made.items()}}
    for name, part in parts.items():
        files[name] = part if isinstance(part, bytes) else part(payload)
    return seal({name: content for name, content in files.items() if content != b"away"})


def seal(files: Files, by: str = "robot") -> Files:
    """With a list of sums that this person signs."""
    world, rest = usual(), {name: content for name, content in files.items() if not name.startswith("SHA256SUMS")}
    listed = sums(rest)
    return {
        **rest,
        "SHA256SUMS": listed,
        "SHA256SUMS.sig": json.dumps(world.sign(by, "package", RELEASE, digest(listed))).encode(),
    }


def judge(files: Files, folder: Path) -> list[str]:
    return failures(verify_path(put(files, folder), OFFICER))


def test_a_package_with_them_passes(tmp_path: Path) -> None:
    """Each is named as what it is; in a dossier too, whose data are away."""
    found = verify_path(put(attest(), tmp_path / "package"), OFFICER)
    assert failures(found) == []
    words = [finding.words for finding in found if finding.level == "ok"]
    for name in FORMS:
        assert f"{name}: that statement is signed by robot (service)" in words
    assert any(said.startswith(f"{STATEMENT}: a statement about 9 files") for said in words)
    world = usual()
    world.package = attest()
    dossier = world.dossier()
    found = verify_path(put(dossier, tmp_path / "dossier"), OFFICER)
    assert [said for said in failures(found) if "attestation" in said or "allowed" in said] == []
    assert f"package/{ENVELOPE}: that statement is signed by robot (service)" in [finding.words for finding in found]


def test_without_them_it_is_a_package_of_before(tmp_path: Path) -> None:
    """Nothing is missed where the list of sums names none; where it names them, they must be there."""
    found = verify_path(put(usual().package, tmp_path / "before"), OFFICER)
    assert not any("attestation" in finding.words for finding in found)
    files = attest()
    for name in (STATEMENT, SIGNERS, *FORMS):
        assert f"{name}: it is missing" in judge({key: part for key, part in files.items() if key != name}, tmp_path / "away")
    left = {name: part for name, part in files.items() if not name.startswith(("attestation", "allowed"))}
    assert len(judge(left, tmp_path / "all")) >= 5


@pytest.mark.slow
@pytest.mark.parametrize("name", [STATEMENT, SIGNERS, *FORMS])
def test_one_that_was_changed_is_named(name: str, tmp_path: Path) -> None:
    """A byte of it anywhere: by the list of sums; and where somebody wrote that anew, by what is wrong with it."""
    files = attest()
    for place in range(0, len(files[name]), len(files[name]) // 12):
        content = files[name][:place] + bytes([files[name][place] ^ 1]) + files[name][place + 1 :]
        assert any(words.startswith(f"{name}: ") for words in judge({**files, name: content}, tmp_path / "p"))
        again = judge(seal({**files, name: content}), tmp_path / "p")
        assert any(words.startswith((f"{name}: ", f"{ENVELOPE}: ")) for words in again), (name, place)


def drop(key: str) -> Change:
    return lambda said: {name: value for name, value in said.items() if name != key}


def with_predicate(**changed: Any) -> Change:
    return lambda said: {**said, "predicate": {**said["predicate"], **changed}}


def with_subjects(change: Callable[[list[Any]], list[Any]]) -> Change:
    return lambda said: {**said, "subject": change(said["subject"])}


OTHER = {"name": "data.csv", "digest": {"sha256": "ab" * 32}}
WRONG: dict[str, tuple[Change, str]] = {
    "another type": (lambda said: {**said, "_type": "https://in-toto.io/Statement/v0.1"}, "it is not a statement of"),
    "no type": (drop("_type"), "'_type' is missing"),
    "another predicate": (lambda said: {**said, "predicateType": "https://slsa.dev/provenance/v1"}, "it is not a statement of"),
    "no subject": (drop("subject"), "'subject' is missing"),
    "no predicate": (drop("predicate"), "'predicate' is missing"),
    "nothing": (lambda _: None, "'_type' is missing"),
    "a list": (lambda said: [said], "'_type' is missing"),
    "a file is away": (with_subjects(lambda files: files[1:]), "of RELEASE_NOTE.md it says otherwise than SHA256SUMS"),
    "a file more": (with_subjects(lambda files: [*files, {**OTHER, "name": "more"}]), "of more it says otherwise"),
    "another hash": (with_subjects(lambda files: [{**files[0], "digest": OTHER["digest"]}, *files[1:]]), "it says otherwise"),
    "no hash": (with_subjects(lambda files: [{"name": files[0]["name"], "digest": {}}, *files[1:]]), "'sha256' is missing"),
    "no name": (with_subjects(lambda files: [*files, {"digest": OTHER["digest"]}]), "'name' is missing"),
    "no subject in it": (with_subjects(lambda files: [*files, "data.csv"]), "'name' is missing"),
    "twice": (with_subjects(lambda files: [*files, OTHER]), "it names a file twice"),
    "another release": (with_predicate(release="rand-hie/3/r1"), "it is about another release than the card"),
    "another head": (with_predicate(registry_head={"event": 1, "hash": "ab" * 32}), "of 'registry_head' it says otherwise"),
    "what is not in the card": (with_predicate(claim="none"), "of 'claim' it says otherwise than privacy-card.json"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_statement_that_says_something_else(name: str, tmp_path: Path) -> None:
    """Signed by the service in every form, and listed: who has its key can make it say what they like, and it does not pass."""
    change, words = WRONG[name]
    [found] = judge(attest(change), tmp_path / "package")
    assert found.startswith(f"{STATEMENT}: ")
    assert words in found


def envelope_of(**changed: Any) -> Callable[[bytes], bytes]:
    return lambda payload: sign_envelope(payload, **changed)


def with_signatures(change: Callable[[list[Any]], Any]) -> Callable[[bytes], bytes]:
    def make(payload: bytes) -> bytes:
        envelope = json.loads(sign_envelope(payload))
        return json.dumps({**envelope, "signatures": change(envelope["signatures"])}).encode()

    return make


PARTS: dict[str, tuple[str, bytes | Callable[[bytes], bytes], str]] = {
    "another payload": (ENVELOPE, lambda payload: sign_envelope(payload + b" "), "what is in it is not attestation.intoto.json"),
    "another type": (ENVELOPE, envelope_of(kind="application/json"), "is not said to be application/vnd.in-toto+json"),
    "a type that was put in": (
        ENVELOPE,
        lambda payload: sign_envelope(payload, kind="text/plain", payloadType=KIND),
        "not valid",
    ),
    "a key that is in no list": (ENVELOPE, envelope_of(by="eve"), "a key that may not sign packages"),
    "a reviewer's key": (ENVELOPE, envelope_of(by="ben"), "a key that may not sign packages"),
    "the officer's key": (ENVELOPE, envelope_of(by="olga"), "signed by olga, who did not sign SHA256SUMS"),
    "another's name": (ENVELOPE, with_signatures(lambda them: [{**them[0], "keyid": OFFICER}]), "of 'olga' is not valid"),
    "no key": (ENVELOPE, with_signatures(lambda them: [{"sig": them[0]["sig"]}]), "'keyid' is missing"),
    "no signature": (ENVELOPE, with_signatures(lambda _: []), "it has not one signature"),
    "two": (ENVELOPE, with_signatures(lambda them: them * 2), "it has not one signature"),
    "one before a wrong one": (ENVELOPE, with_signatures(lambda them: [*them, {"keyid": "x", "sig": ""}]), "not one signature"),
    "signatures of nothing": (ENVELOPE, with_signatures(lambda _: None), "'signatures' is missing"),
    "a signature that is a text": (ENVELOPE, with_signatures(lambda _: ["sig"]), "'keyid' is missing"),
    "not base64": (ENVELOPE, with_signatures(lambda them: [{**them[0], "sig": "!"}]), "not base64"),
    "of the payload itself": (
        ENVELOPE,
        lambda payload: sign_envelope(
            payload, signatures=[{"keyid": digest(raw("robot")), "sig": encode(SECRETS["robot"].sign(payload))}]
        ),
        "is not valid",
    ),
    "a key twice": (
        ENVELOPE,
        lambda payload: sign_envelope(payload)[:-1] + b', "payloadType": "' + KIND.encode() + b'"}',
        "has a key twice",
    ),
    "huge": (ENVELOPE, lambda payload: sign_envelope(payload, more="x" * verify.MOST_JSON), "not valid JSON (or too long"),
    "deep": (ENVELOPE, b"[" * 100_000, "not valid JSON"),
    "not text": (ENVELOPE, b"\xff", "bytes that no such signature has"),
    "empty": (ENVELOPE, b"", "not valid JSON"),
    "ssh: a statement's": (
        SSH,
        lambda payload: sign_for_ssh(payload, namespace="statement@release-pipeline"),
        "in the namespace package@",
    ),
    "ssh: a file's": (SSH, lambda payload: sign_for_ssh(payload, namespace="file"), "in the namespace package@release-pipeline"),
    "ssh: another file": (SSH, lambda payload: sign_for_ssh(payload + b"\n"), "of 'robot' is not valid"),
    "ssh: a reviewer's": (SSH, lambda payload: sign_for_ssh(payload, by="ben"), "a key that may not sign packages"),
    "ssh: the officer's": (SSH, lambda payload: sign_for_ssh(payload, by="olga"), "signed by olga, who did not sign SHA256SUMS"),
    "ssh: cut off": (SSH, lambda payload: sign_for_ssh(payload)[:-9], "not base64"),
    "minisign: another file": (MINISIGN, lambda payload: sign_for_minisign(payload + b"\n"), "of 'robot' is not valid"),
    "minisign: not of the hash": (MINISIGN, lambda payload: sign_for_minisign(payload, legacy=True), "as it is written here"),
    "minisign: another release": (
        MINISIGN,
        lambda payload: sign_for_minisign(payload, comment="a/1/r1"),
        "names another release",
    ),
    "minisign: a comment put in": (
        MINISIGN,
        lambda payload: sign_for_minisign(payload, comment="a/1/r1", said=RELEASE),
        "is not of its comment",
    ),
    "minisign: another number": (MINISIGN, lambda payload: sign_for_minisign(payload, number=bytes(8)), "may not sign packages"),
    "minisign: a reviewer's": (MINISIGN, lambda payload: sign_for_minisign(payload, by="ben"), "may not sign packages"),
    "minisign: the officer's": (MINISIGN, lambda payload: sign_for_minisign(payload, by="olga"), "who did not sign SHA256SUMS"),
    "minisign: a line more": (MINISIGN, lambda payload: sign_for_minisign(payload) + b"more\n", "as it is written here"),
    "minisign: cut off": (MINISIGN, lambda payload: b"\n".join(sign_for_minisign(payload).split(b"\n")[:2]), "as it is written"),
    "minisign: nothing in it": (MINISIGN, b"\n\n\n\n", "may not sign packages"),
    "signers: one more": (SIGNERS, write_signers() + b"eve ssh-ed25519 AAAA\n", "the keys that may sign packages"),
    "signers: one fewer": (SIGNERS, b"".join(write_signers().splitlines(keepends=True)[:2]), "the keys that may sign packages"),
    "signers: for everything": (SIGNERS, write_signers().replace(b"package@release-pipeline,", b"*,"), "the keys that may sign"),
}


@pytest.mark.parametrize("name", PARTS)
def test_a_file_that_is_made_otherwise(name: str, tmp_path: Path) -> None:
    """Everything around it is signed by the service: what is wrong is said of the file, and of nothing else."""
    file, part, words = PARTS[name]
    files = attest(**{file: part})
    if file == SIGNERS:  # of which the statement has the hash
        rest = {key: content for key, content in files.items() if not key.startswith(("SHA256SUMS", "attestation"))}
        payload = json.dumps(make_statement(rest)).encode()
        signed = {ENVELOPE: sign_envelope(payload), SSH: sign_for_ssh(payload), MINISIGN: sign_for_minisign(payload)}
        files = seal({**rest, STATEMENT: payload, **signed})
    [found] = judge(files, tmp_path / "package")
    assert found.startswith(f"{file}: ")
    assert words in found


def test_a_signature_is_looked_at_even_where_another_is_away(tmp_path: Path) -> None:
    """Whoever may sign can leave forms out; what is there is judged."""
    assert judge(attest(**{MINISIGN: b"away", SSH: b"away"}), tmp_path / "package") == []
    [found] = judge(attest(**{MINISIGN: b"away", ENVELOPE: envelope_of(by="eve")}), tmp_path / "package")
    assert found.startswith(f"{ENVELOPE}: ")
    found = judge(attest(**{STATEMENT: b"away"}), tmp_path / "package")
    assert {words.partition(":")[0] for words in found} == {STATEMENT, *FORMS}


@pytest.mark.parametrize("card", [None, 5, "release", ["release"], {}])
@pytest.mark.parametrize("release", ["", RELEASE])
def test_beside_a_card_that_is_none(card: Any, release: str, tmp_path: Path) -> None:
    """Failures in words, of the card and of the statement that agrees with nothing."""
    files = {name: part for name, part in attest().items() if not name.startswith(("SHA256SUMS", "attestation"))}
    files["privacy-card.json"] = json.dumps(card).encode()
    subjects = [{"name": name, "digest": {"sha256": digest(files[name])}} for name in sorted(files)]
    said = {"_type": "https://in-toto.io/Statement/v1", "subject": subjects, "predicateType": "urn:release-pipeline:package:1"}
    payload = json.dumps({**said, "predicate": {"release": release}}).encode()
    found = judge(seal({**files, STATEMENT: payload, ENVELOPE: sign_envelope(payload)}), tmp_path / "package")
    assert {words.partition(":")[0] for words in found} >= {"privacy-card.json", STATEMENT}


def test_who_signed_the_sums_must_have_signed_the_statement(tmp_path: Path) -> None:
    """The officer may sign packages too: then everything is the officer's."""
    found = judge(seal(attest(), by="olga"), tmp_path / "package")
    assert [words.partition(":")[0] for words in found] == list(FORMS)
    theirs = {ENVELOPE: envelope_of(by="olga"), SSH: lambda payload: sign_for_ssh(payload, by="olga")}
    files = attest(**theirs, **{MINISIGN: lambda payload: sign_for_minisign(payload, by="olga")})
    assert judge(seal(files, by="olga"), tmp_path / "package") == []


# --- One key in all forms -------------------------------------------------------------------------------------------------------


def messages_of(payload: bytes, comment: str) -> dict[str, bytes]:
    """The bytes that the key signs, form by form."""
    digests = hashlib.blake2b(payload).digest()
    return {
        "envelope": encode_before_signing(KIND, payload),
        "ssh package": blob_of_ssh("package@release-pipeline", payload),
        "ssh statement": blob_of_ssh("statement@release-pipeline", payload),
        "first statement": b"release-pipeline statement\n" + payload,
        "minisign": digests,
        "minisign comment": SECRETS["robot"].sign(digests) + comment.encode(),
    }


@given(one=st.binary(max_size=200), other=st.binary(max_size=200), comment=st.text(max_size=20))
@settings(max_examples=40)
def test_no_bytes_are_signed_in_two_forms(one: bytes, other: bytes, comment: str) -> None:
    """Whatever is signed, and however it is chosen: the forms differ in their first bytes or, of a hash, in their length."""
    first, second = messages_of(one, comment), messages_of(other, comment)
    beginnings = {"envelope": b"DSSEv1 ", "ssh package": b"SSHSIG\0\0\0\x18package@release-pipeline\0\0\0\0"}
    beginnings |= {"ssh statement": b"SSHSIG\0\0\0\x1astatement@release-pipeline\0\0\0\0"}
    beginnings |= {"first statement": b"release-pipeline statement\n"}
    for form, beginning in beginnings.items():
        assert first[form].startswith(beginning)
        assert not any(first[form].startswith(given) for name, given in beginnings.items() if name != form)
    assert len(first["minisign"]) == 64
    for form in first:
        assert [name for name in second if second[name] == first[form] and name != form] == []


@pytest.mark.slow
def test_a_signature_of_one_form_is_none_of_another(tmp_path: Path) -> None:
    """The 64 bytes of each in the place of each: only its own form takes them."""
    payload = attest()[STATEMENT]
    signed = {form: SECRETS["robot"].sign(message) for form, message in messages_of(payload, RELEASE).items()}
    keyid, key = digest(raw("robot")), pack(b"ssh-ed25519", raw("robot"))

    def put_into(form: str, signature: bytes) -> bytes:
        if form == ENVELOPE:
            return sign_envelope(payload, signatures=[{"keyid": keyid, "sig": encode(signature)}])
        if form == SSH:
            parts = (key, b"package@release-pipeline", b"", b"sha512", pack(b"ssh-ed25519", signature))
            lines = "\n".join(re.findall(".{1,70}", encode(b"SSHSIG\0\0\0\1" + pack(*parts))))
            return f"-----BEGIN SSH SIGNATURE-----\n{lines}\n-----END SSH SIGNATURE-----\n".encode()
        lines_of = sign_for_minisign(payload).decode().split("\n")
        lines_of[1] = encode(b"ED" + hashlib.sha256(raw("robot")).digest()[:8] + signature)
        lines_of[3] = encode(SECRETS["robot"].sign(signature + RELEASE.encode()))
        return "\n".join(lines_of).encode()

    own = {ENVELOPE: "envelope", SSH: "ssh package", MINISIGN: "minisign"}
    for form in FORMS:
        for of, signature in signed.items():
            found = judge(attest(**{form: put_into(form, signature)}), tmp_path / "package")
            assert found == ([] if own[form] == of else [f"{form}: the signature of 'robot' is not valid"]), (form, of)


# --- What the product writes ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trust() -> Trust:
    """The people of the package, as the site knows them; one of the officer's keys is in a token."""
    people = {"ben": "reviewer", "olga": "officer", "robot": "service"}
    return Trust(tuple(Member(name, role, PublicKey.parse(public_text(name))) for name, role in people.items()), {})


CARD = {
    "release": RELEASE,
    "registry_head": {"event": 1, "hash": "ab" * 32},
    "rows": {"in": 7},
    "claim": {"words": "epsilon 1 \u00e9"},
}
HASHES = {"data.csv": "cd" * 32, "a.json": "ef" * 32}


def test_what_is_written_is_what_the_specifications_say(trust: Trust) -> None:
    """Byte by byte as it is made here, each time; of the card what is told in the statement, and no more."""
    made = write_attestations(CARD, HASHES, trust, PrivateKey(SECRETS["robot"]))
    payload = made[STATEMENT].encode()
    assert made == write_attestations(CARD, HASHES, trust, PrivateKey(SECRETS["robot"]))
    assert json.loads(payload)["predicate"] == {name: CARD[name] for name in ("release", "claim", "registry_head")}
    names = [subject["name"] for subject in json.loads(payload)["subject"]]
    assert names == ["a.json", "data.csv"]
    assert made[SSH].encode() == sign_for_ssh(payload)
    assert made[MINISIGN].encode() == sign_for_minisign(payload)
    assert json.loads(made[ENVELOPE]) == json.loads(sign_envelope(payload))
    assert list_signers(trust).encode() == write_signers()
    assert verify_envelope(json.loads(made[ENVELOPE]), raw("robot")) == payload
    key = write_signers().decode().split("# robot minisign ")[1].strip()
    assert verify_minisign(made[MINISIGN], payload, key) == RELEASE
    with pytest.raises(InvalidSignature):
        verify_minisign(made[MINISIGN].replace(RELEASE, "rand-hie/3/r1"), payload, key)
    with pytest.raises(InvalidSignature):
        verify_envelope(json.loads(made[ENVELOPE]), raw("olga"))
    with pytest.raises(InvalidSignature):
        verify_envelope({**json.loads(made[ENVELOPE]), "payloadType": "application/json"}, raw("robot"))


@pytest.mark.parametrize("name", ["ben", "eve"])
def test_who_may_not_sign_packages_signs_no_statement(trust: Trust, name: str) -> None:
    """A reviewer, and somebody who is in no list."""
    with pytest.raises(NotSigned):
        write_attestations(CARD, HASHES, trust, PrivateKey(SECRETS[name]))


def test_a_key_in_a_token_is_listed_for_ssh_alone() -> None:
    """minisign knows no tokens; ssh-keygen does."""
    keys = verify.read_keys({"keys": {"olga": {"role": "officer", "key": "sk-ed25519:" + encode(raw("olga") + b"ssh:")}}})
    [line] = verify.write_allowed_signers(keys).splitlines()
    blob = base64.b64decode(line.split(" ")[-1])
    assert line.split(" ")[2] == "sk-ssh-ed25519@openssh.com"
    assert blob == pack(b"sk-ssh-ed25519@openssh.com", raw("olga"), b"ssh:")


def run_ssh_keygen(folder: Path, name: str, namespace: str, signature: str, message: bytes) -> int:
    """What ssh-keygen says of a signature, by the list of signers in the folder."""
    command = ["ssh-keygen", "-Y", "verify", "-f", SIGNERS, "-I", name, "-n", namespace, "-s", signature]
    return subprocess.run(command, cwd=folder, input=message, capture_output=True, check=False).returncode


@NEEDS_SSH
def test_ssh_keygen_verifies_the_statement(trust: Trust, tmp_path: Path) -> None:
    """As it is, by the one who signed it, for what it was signed; and nothing else."""
    made = write_attestations(CARD, HASHES, trust, PrivateKey(SECRETS["robot"]))
    put({**{name: text.encode() for name, text in made.items()}, SIGNERS: list_signers(trust).encode()}, tmp_path)
    statement, space = made[STATEMENT].encode(), "package@release-pipeline"
    assert run_ssh_keygen(tmp_path, "robot", space, SSH, statement) == 0
    for name, namespace, message in (
        ("robot", space, statement.replace(b"data", b"dada")),
        ("robot", "statement@release-pipeline", statement),
        ("robot", "file", statement),
        ("olga", space, statement),
        ("ben", space, statement),
    ):
        assert run_ssh_keygen(tmp_path, name, namespace, SSH, message) != 0, (name, namespace)


@NEEDS_SSH
def test_ssh_keygen_verifies_the_list_of_sums(trust: Trust, tmp_path: Path) -> None:
    """The statement in SHA256SUMS.sig is signed for SSH too: the two parts of it taken apart, as docs/publishing.md does."""
    key = PrivateKey(SECRETS["robot"])
    signed = trust.sign(key, kind="package", subject=RELEASE, digest="ab" * 32)
    message = json.dumps(signed["statement"], sort_keys=True, separators=(",", ":")).encode() + b"\n"
    put({SIGNERS: list_signers(trust).encode(), "sig": signed["sshsig"].encode()}, tmp_path)
    assert run_ssh_keygen(tmp_path, "robot", "statement@release-pipeline", "sig", message) == 0
    assert run_ssh_keygen(tmp_path, "robot", "package@release-pipeline", "sig", message) != 0
    assert run_ssh_keygen(tmp_path, "robot", "statement@release-pipeline", "sig", message.replace(b"ab", b"ac")) != 0
