"""The package's statement and its SSH signature, made and verified here after their specifications, with `cryptography` and
ssh-keygen; and everything that could be wrong with them, found by the verifier.

Nothing that makes or judges a signature here is of the package.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from release_pipeline.publish.package import list_signers, write_attestations
from release_pipeline.trust.keys import PublicKey
from release_pipeline.trust.members import Member, Trust
from release_pipeline.verifier.attestation import ATTESTED
from release_pipeline.verifier.command import verify_path
from tests.ssh_keys import hold
from tests.unit.test_verify import (
    OFFICER,
    RELEASE,
    SECRETS,
    SIGNERS,
    SSH,
    STATEMENT,
    Files,
    armor,
    digest,
    failures,
    make_statement,
    pack_texts,
    public_text,
    put,
    raw,
    sums,
    usual,
)
from tests.unit.test_verify import sign_for_ssh as sign_payload

ALLOWED = usual().package[SIGNERS]
NEEDS_SSH = pytest.mark.skipif(shutil.which("ssh-keygen") is None and not os.environ.get("CI"), reason="there is no ssh-keygen")


def encode(content: bytes) -> str:
    return base64.b64encode(content).decode()


def sign_for_ssh(payload: bytes, by: str = "robot", namespace: str = "package@release-pipeline") -> bytes:
    return sign_payload(payload, SECRETS[by], namespace)


def put_under_package(signature: bytes) -> bytes:
    """These 64 bytes as the robot's signature of a package."""
    key, kind = pack_texts(b"ssh-ed25519", raw("robot")), pack_texts(b"ssh-ed25519", signature)
    return armor(b"SSHSIG\0\0\0\1" + pack_texts(key, b"package@release-pipeline", b"", b"sha512", kind)).encode()


def state_files(files: Mapping[str, bytes]) -> dict[str, Any]:
    card = json.loads(files["privacy-card.json"])
    return make_statement(files, {name: card[name] for name in ("release", "hashes", "registry_head")})


Change = Callable[[Any], Any]


def attest(change: Change = lambda said: said, /, **parts: bytes | Callable[[bytes], bytes]) -> Files:
    """A package whose service signed everything: its statement after `change`, and files of it that are made otherwise."""
    world = usual()
    files = {name: content for name, content in world.package.items() if not name.startswith(("SHA256SUMS", "attestation"))}
    payload = json.dumps(change(state_files(files)), indent=2).encode()
    files |= {STATEMENT: payload, SSH: sign_for_ssh(payload)}
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
    assert f"{SSH}: that statement is signed by robot (service)" in words
    assert any(said.startswith(f"{STATEMENT}: a statement about 9 files") for said in words)
    world = usual()
    world.package = attest()
    dossier = world.dossier()
    found = verify_path(put(dossier, tmp_path / "dossier"), OFFICER)
    assert [said for said in failures(found) if "attestation" in said or "allowed" in said] == []
    assert f"package/{SSH}: that statement is signed by robot (service)" in [finding.words for finding in found]


def test_every_package_has_them(tmp_path: Path) -> None:
    """They must be there, whether the list of sums names them or not."""
    files = attest()
    for name in (STATEMENT, SIGNERS, SSH):
        assert f"{name}: it is missing" in judge({key: part for key, part in files.items() if key != name}, tmp_path / "away")
    left = {name: part for name, part in files.items() if not name.startswith(("attestation", "allowed"))}
    assert len(judge(left, tmp_path / "all")) >= 3
    assert {words.partition(":")[0] for words in judge(seal(left), tmp_path / "unlisted")} == {SIGNERS, STATEMENT}


@pytest.mark.slow
@pytest.mark.parametrize("name", [STATEMENT, SIGNERS, SSH])
def test_one_that_was_changed_is_named(name: str, tmp_path: Path) -> None:
    """A byte of it anywhere: by the list of sums; and where somebody wrote that anew, by what is wrong with it."""
    files = attest()
    for place in range(0, len(files[name]), len(files[name]) // 12):
        content = files[name][:place] + bytes([files[name][place] ^ 1]) + files[name][place + 1 :]
        assert any(words.startswith(f"{name}: ") for words in judge({**files, name: content}, tmp_path / "p"))
        again = judge(seal({**files, name: content}), tmp_path / "p")
        assert any(words.startswith((f"{name}: ", f"{SSH}: ")) for words in again), (name, place)


def drop(key: str) -> Change:
    return lambda said: {name: value for name, value in said.items() if name != key}


def with_predicate(**changed: Any) -> Change:
    return lambda said: {**said, "predicate": {**said["predicate"], **changed}}


def with_subjects(change: Callable[[list[Any]], list[Any]]) -> Change:
    return lambda said: {**said, "subject": change(said["subject"])}


OTHER = {"name": "data.csv", "digest": {"sha256": "ab" * 32}}

WRONG: dict[str, tuple[Change, str]] = {
    "another type": (lambda said: {**said, "_type": "https://in-toto.io/Statement/v0.1"}, "it is not a statement of"),
    "another predicate": (lambda said: {**said, "predicateType": "https://slsa.dev/provenance/v1"}, "it is not a statement of"),
    "no predicate": (drop("predicate"), "'predicate' is missing"),
    "a file is away": (with_subjects(lambda files: files[1:]), "of RELEASE_NOTE.md it says otherwise than SHA256SUMS"),
    "a file more": (with_subjects(lambda files: [*files, {**OTHER, "name": "more"}]), "of more it says otherwise"),
    "another hash": (with_subjects(lambda files: [{**files[0], "digest": OTHER["digest"]}, *files[1:]]), "it says otherwise"),
    "no hash": (with_subjects(lambda files: [{"name": files[0]["name"], "digest": {}}, *files[1:]]), "'sha256' is missing"),
    "twice": (with_subjects(lambda files: [*files, OTHER]), "it names a file twice"),
    "another release": (with_predicate(release="rand-hie/3/r1"), "it is about another release than the card"),
    "another head": (with_predicate(registry_head={"event": 1, "hash": "ab" * 32}), "of 'registry_head' it says otherwise"),
    "what is not in the card": (with_predicate(claim="none"), "of 'claim' it says otherwise than privacy-card.json"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_statement_that_says_something_else(name: str, tmp_path: Path) -> None:
    """Signed by the service, and listed: who has its key can make it say what they like, and it does not pass."""
    change, words = WRONG[name]
    [found] = judge(attest(change), tmp_path / "package")
    assert found.startswith(f"{STATEMENT}: ")
    assert words in found


PARTS: dict[str, tuple[str, bytes | Callable[[bytes], bytes], str]] = {
    "not text": (SSH, b"\xff", "bytes that no such signature has"),
    "of the payload itself": (SSH, lambda payload: put_under_package(SECRETS["robot"].sign(payload)), "is not valid"),
    "a key that is in no list": (SSH, lambda payload: sign_for_ssh(payload, by="eve"), "a key that may not sign packages"),
    "ssh: a statement's": (
        SSH,
        lambda payload: sign_for_ssh(payload, namespace="statement@release-pipeline"),
        "in the namespace package@",
    ),
    "ssh: another file": (SSH, lambda payload: sign_for_ssh(payload + b"\n"), "of 'robot' is not valid"),
    "ssh: a reviewer's": (SSH, lambda payload: sign_for_ssh(payload, by="ben"), "a key that may not sign packages"),
    "ssh: the officer's": (SSH, lambda payload: sign_for_ssh(payload, by="olga"), "signed by olga, who did not sign SHA256SUMS"),
    "signers: one more": (SIGNERS, ALLOWED + b"eve ssh-ed25519 AAAA\n", "the keys that may sign packages"),
    "signers: for everything": (SIGNERS, ALLOWED.replace(b"package@release-pipeline,", b"*,"), "the keys that may sign"),
}


@pytest.mark.parametrize("name", PARTS)
def test_a_file_that_is_made_otherwise(name: str, tmp_path: Path) -> None:
    """Everything around it is signed by the service: what is wrong is said of the file, and of nothing else."""
    file, part, words = PARTS[name]
    files = attest(**{file: part})
    if file == SIGNERS:  # of which the statement has the hash
        rest = {key: content for key, content in files.items() if not key.startswith(("SHA256SUMS", "attestation"))}
        payload = json.dumps(state_files(rest)).encode()
        files = seal({**rest, STATEMENT: payload, SSH: sign_for_ssh(payload)})
    [found] = judge(files, tmp_path / "package")
    assert found.startswith(f"{file}: ")
    assert words in found


def test_who_signed_the_sums_must_have_signed_the_statement(tmp_path: Path) -> None:
    """The officer may sign packages too: then everything is the officer's."""
    found = judge(seal(attest(), by="olga"), tmp_path / "package")
    assert [words.partition(":")[0] for words in found] == [SSH]
    files = attest(**{SSH: lambda payload: sign_for_ssh(payload, by="olga")})
    assert judge(seal(files, by="olga"), tmp_path / "package") == []


@pytest.fixture(scope="module")
def trust() -> Trust:
    """The people of the package, as the site knows them; one of the officer's keys is in a token."""
    people = {"ben": "reviewer", "olga": "officer", "robot": "service"}
    return Trust(tuple(Member(name, role, PublicKey.parse(public_text(name))) for name, role in people.items()), {})


CARD = {
    **dict.fromkeys(ATTESTED),
    "release": RELEASE,
    "registry_head": {"event": 1, "hash": "ab" * 32},
    "rows": {"in": 7},
    "claim": {"words": "epsilon 1 \u00e9"},
}
HASHES = {"data.csv": "cd" * 32, "a.json": "ef" * 32}


def test_what_is_written_is_what_the_specifications_say(trust: Trust) -> None:
    """Byte by byte as it is made here, each time; of the card what is told in the statement, and no more."""
    made = write_attestations(CARD, HASHES, trust, hold(SECRETS["robot"]))
    payload = made[STATEMENT].encode()
    assert made == write_attestations(CARD, HASHES, trust, hold(SECRETS["robot"]))
    assert json.loads(payload)["predicate"] == {name: CARD[name] for name in ATTESTED}
    names = [subject["name"] for subject in json.loads(payload)["subject"]]
    assert names == ["a.json", "data.csv"]
    assert made[SSH].encode() == sign_for_ssh(payload)
    assert list_signers(trust).encode() == ALLOWED


def run_ssh_keygen(folder: Path, name: str, namespace: str, signature: str, message: bytes) -> int:
    """What ssh-keygen says of a signature, by the list of signers in the folder."""
    command = ["ssh-keygen", "-Y", "verify", "-f", SIGNERS, "-I", name, "-n", namespace, "-s", signature]
    return subprocess.run(command, cwd=folder, input=message, capture_output=True, check=False).returncode


@NEEDS_SSH
def test_ssh_keygen_verifies_the_statement(trust: Trust, tmp_path: Path) -> None:
    """As it is, by the one who signed it, for what it was signed; and nothing else."""
    made = write_attestations(CARD, HASHES, trust, hold(SECRETS["robot"]))
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
    key = hold(SECRETS["robot"])
    signed = trust.sign(key, kind="package", subject=RELEASE, digest="ab" * 32)
    message = json.dumps(signed["statement"], sort_keys=True, separators=(",", ":")).encode() + b"\n"
    put({SIGNERS: list_signers(trust).encode(), "sig": signed["sshsig"].encode()}, tmp_path)
    assert run_ssh_keygen(tmp_path, "robot", "statement@release-pipeline", "sig", message) == 0
    assert run_ssh_keygen(tmp_path, "robot", "package@release-pipeline", "sig", message) != 0
    assert run_ssh_keygen(tmp_path, "robot", "statement@release-pipeline", "sig", message.replace(b"ab", b"ac")) != 0
