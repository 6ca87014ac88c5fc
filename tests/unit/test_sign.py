"""Signatures of SSH, and the one file that signs: against `cryptography` and ssh-keygen."""

from __future__ import annotations

import ast
import base64
import hashlib
import io
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from release_pipeline.errors import WrongUsage
from release_pipeline.signer.bundles import keep, list_changes
from release_pipeline.signer.keys import Signer, read_signer
from release_pipeline.signer.pages import find_active
from release_pipeline.trust.keys import NotSigned, PublicKey, check_signature, make_key, read_public_key
from release_pipeline.verifier.attestation import PACKAGE_NAMESPACE
from release_pipeline.verifier.documents import Fault
from release_pipeline.verifier.documents import WrongUsage as VerifiedWrongUsage
from release_pipeline.verifier.joining import join_signer, join_verifier
from release_pipeline.verifier.statements import SSH_NAMESPACE, armor_ssh, message_of, pack_ssh, verify_statement
from release_pipeline.verifier.trees import MOST_TO_PARSE, Tree
from tests.guards import HANGING
from tests.ssh_keys import hold

SECRET = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PUBLIC = SECRET.public_key().public_bytes_raw()
ABOUT = {"kind": "approve", "subject": "people/1/r1", "digest": "ab" * 32}
APPLICATION = b"ssh:"
NEEDS_SSH = pytest.mark.skipif(shutil.which("ssh-keygen") is None and not os.environ.get("CI"), reason="there is no ssh-keygen")


def sign_as_token(
    statement: dict[str, str], *, flags: int = 1, application: bytes = APPLICATION, hash_name: bytes = b"sha512"
) -> str:
    """What a FIDO token makes of a statement, in software: after PROTOCOL.u2f and PROTOCOL.sshsig of OpenSSH."""
    hash_name, digest = b"sha512", hashlib.sha512(message_of(statement)).digest()
    signed = b"SSHSIG" + pack_ssh(SSH_NAMESPACE.encode(), b"", hash_name, digest)
    moment = bytes([flags]) + struct.pack(">I", 7)
    kind = b"sk-ssh-ed25519@openssh.com"
    raw = SECRET.sign(hashlib.sha256(application).digest() + moment + hashlib.sha256(signed).digest())
    key, signature = pack_ssh(kind, PUBLIC, application), pack_ssh(kind, raw) + moment
    return armor_ssh(b"SSHSIG\0\0\0\1" + pack_ssh(key, SSH_NAMESPACE.encode(), b"", hash_name, signature))


def statement_of(key: PublicKey) -> dict[str, str]:
    return {
        "kind": "approve",
        "subject": "people/1/r1",
        "hash": "ab" * 32,
        "signer": key.fingerprint,
        "name": "ben",
        "at": "2026-01-02T03:04:05+00:00",
        "why": "",
    }


def list_keys(key: PublicKey) -> dict[str, object]:
    officer = hold(Ed25519PrivateKey.from_private_bytes(bytes(32))).public
    return {"keys": {"ben": {"role": "reviewer", "key": key.text}, "olga": {"role": "officer", "key": officer.text}}}


def accepts(signed: object, key: PublicKey) -> bool:
    """Whether the site and the verifier, who must agree, take it."""
    try:
        check_signature(signed, key, **ABOUT)
        site = True
    except NotSigned:
        site = False
    try:
        verify_statement(signed, list_keys(key))
        alone = True
    except Fault:
        alone = False
    assert site == alone
    return site


def test_one_form_of_a_signature_verifies() -> None:
    """SSH's, in the namespace of statements; no other bytes by the same key pass for it."""
    key = hold(SECRET)
    signed = key.sign(kind="approve", subject="people/1/r1", digest="ab" * 32, name="ben")
    assert set(signed) == {"statement", "sshsig"}
    assert accepts(signed, key.public)
    statement = signed["statement"]
    plain = base64.b64encode(SECRET.sign(message_of(statement))).decode()
    for other in (
        {"statement": statement, "signature": plain},
        {**signed, "signature": plain},
        {"statement": statement, "sshsig": plain},
        {"statement": statement, "sshsig": key.sign_for_ssh(message_of(statement), PACKAGE_NAMESPACE)},
        {"statement": statement, "sshsig": key.sign_for_ssh(message_of({**statement, "why": "so"}))},
    ):
        assert not accepts(other, key.public)


@pytest.mark.parametrize("field", ["kind", "subject", "hash", "signer", "name", "at", "why"])
def test_a_changed_field_voids_it(field: str) -> None:
    """Whoever carries a statement can change none of it."""
    signed = hold(SECRET).sign(kind="approve", subject="people/1/r1", digest="ab" * 32, name="ben")
    changed = signed["statement"][field].replace("a", "b") or "so"
    changed = changed if changed != signed["statement"][field] else changed[:-1] + "8"
    assert not accepts({**signed, "statement": {**signed["statement"], field: changed}}, hold(SECRET).public)


def _parts(**changed: bytes) -> str:
    """A signature whose parts are right but for these."""
    statement = statement_of(hold(SECRET).public)
    parts = {"key": pack_ssh(b"ssh-ed25519", PUBLIC), "namespace": SSH_NAMESPACE.encode(), "reserved": b"", "hash": b"sha512"}
    parts |= {name: part for name, part in changed.items() if name in parts}
    digest = hashlib.new(parts["hash"].decode(), message_of(statement)).digest()
    raw = SECRET.sign(b"SSHSIG" + pack_ssh(parts["namespace"], parts["reserved"], parts["hash"], digest))
    signature = changed.get("signature", pack_ssh(b"ssh-ed25519", raw + changed.get("more", b"")))
    blob = b"SSHSIG" + changed.get("version", b"\0\0\0\1") + pack_ssh(*parts.values(), signature) + changed.get("after", b"")
    return armor_ssh(blob)


@pytest.mark.parametrize(
    ("changed", "passes"),
    [
        ({}, True),
        ({"hash": b"sha256"}, True),
        ({"hash": b"sha1"}, False),
        ({"namespace": b"file"}, False),
        ({"reserved": b"x"}, False),
        ({"version": b"\0\0\0\2"}, False),
        ({"after": b"\0"}, False),
        ({"signature": b"\xff\xff\xff\xff"}, False),
        ({"key": pack_ssh(b"ssh-ed25519", PUBLIC + b"\0")}, False),
        ({"key": pack_ssh(b"ssh-rsa", PUBLIC)}, False),
        ({"key": pack_ssh(b"sk-ssh-ed25519@openssh.com", PUBLIC, b"ssh:")}, False),
    ],
    ids=str,
)
def test_an_ssh_signature_has_one_form(changed: dict[str, bytes], passes: bool) -> None:
    """Every part is looked at, though the signature over it is right."""
    key = hold(SECRET).public
    assert accepts({"statement": statement_of(key), "sshsig": _parts(**changed)}, key) == passes


@pytest.mark.parametrize("change", ["\n", " ", "-----BEGIN SSH SIGNATURE-----\n"])
def test_its_armor_too(change: str) -> None:
    """Not a space more."""
    key = hold(SECRET).public
    for text in (_parts() + change, change + _parts(), _parts().replace("\n", "\r\n"), ""):
        assert not accepts({"statement": statement_of(key), "sshsig": text}, key)


def test_a_token_signs_with_presence_and_for_its_application() -> None:
    """A software token after OpenSSH's protocol: touched it passes, untouched or for another application not."""
    key = PublicKey.of(PUBLIC + APPLICATION)
    assert key.text.startswith("sk-ssh-ed25519@openssh.com AAAA")
    assert PublicKey.parse(key.text) == key
    statement = statement_of(key)
    for flags, passes in ((1, True), (5, True), (0, False), (4, False), (0x41, False)):
        assert accepts({"statement": statement, "sshsig": sign_as_token(statement, flags=flags)}, key) == passes
    other = sign_as_token(statement, application=b"ssh:other")
    assert not accepts({"statement": statement, "sshsig": other}, key)
    bare = PublicKey.of(PUBLIC)
    assert not accepts({"statement": statement_of(bare), "sshsig": sign_as_token(statement_of(bare))}, bare)
    with pytest.raises(Fault):
        PublicKey.of(PUBLIC + b"web:")


def test_keys_of_openssh_are_trusted(tmp_path: Path) -> None:
    """From a .pub line, and nothing that only looks like one."""
    key = PublicKey.of(PUBLIC)
    file = tmp_path / "ben.pub"
    for text in (key.text, f"{key.text} ben@home", f"{key.text} ben of mine\n"):
        file.write_text(text)
        assert read_public_key(file) == key
    for text in (
        "",
        "ssh-ed25519",
        "ssh-ed25519 AAAA",
        key.text.replace("ssh-ed25519 ", "ssh-rsa "),
        "ssh-ed25519",
    ):
        file.write_text(text)
        with pytest.raises(WrongUsage, match="not a public key"):
            read_public_key(file)


@pytest.mark.parametrize("text", ["", "no key", "-----BEGIN OPENSSH PRIVATE KEY-----\nAA==\n-----END OPENSSH PRIVATE KEY-----"])
def test_a_file_that_is_no_key_is_refused(tmp_path: Path, text: str) -> None:
    """Without a traceback; and so is a file that is not there."""
    (tmp_path / "id").write_text(text)
    with pytest.raises(VerifiedWrongUsage, match="not a key of OpenSSH"):
        read_signer(tmp_path / "id")
    with pytest.raises(VerifiedWrongUsage, match="no such key"):
        read_signer(tmp_path / "none")


@NEEDS_SSH
def test_a_key_with_a_passphrase_signs_for_who_knows_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked by a program that SSH_ASKPASS names; a wrong one signs nothing, and neither does nobody at all."""
    file, words, ask = tmp_path / "id", tmp_path / "words", tmp_path / "ask"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "right words", "-f", str(file)], check=True)
    ask.write_text(f"#!/bin/sh\ncat {words}\n")
    ask.chmod(0o700)
    signer = read_signer(file, attended=False)
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    with pytest.raises(VerifiedWrongUsage, match="ssh-keygen did not sign"):
        signer.sign(b"text")
    monkeypatch.setenv("SSH_ASKPASS", str(ask))
    monkeypatch.setenv("SSH_ASKPASS_REQUIRE", "force")
    words.write_text("wrong words\n")
    with pytest.raises(VerifiedWrongUsage, match="ssh-keygen did not sign"):
        signer.sign(b"text")
    words.write_text("right words\n")
    statement = statement_of(read_public_key(tmp_path / "id.pub"))
    assert accepts({"statement": statement, "sshsig": signer.sign(message_of(statement))}, read_public_key(tmp_path / "id.pub"))


@NEEDS_SSH
def test_a_signature_by_another_key_is_not_taken(tmp_path: Path) -> None:
    """As where a .pub file is beside another private key."""
    public = make_key(tmp_path / "ben")
    make_key(tmp_path / "eve")
    with pytest.raises(VerifiedWrongUsage, match="by another key"):
        Signer(public.raw, tmp_path / "eve").sign(b"text")


@NEEDS_SSH
def test_ssh_keygen_signs_and_verifies(tmp_path: Path) -> None:
    """What it signs we take, by its private and public file; what we sign, it takes."""
    file = tmp_path / "id"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(file)], check=True)
    public = read_public_key(tmp_path / "id.pub")
    signer = read_signer(file)
    assert signer.public == public.raw == read_signer(tmp_path / "id.pub").public
    statement = statement_of(public)
    assert accepts({"statement": statement, "sshsig": signer.sign(message_of(statement))}, public)
    ours = hold(SECRET)
    signed = ours.sign(kind="approve", subject="people/1/r1", digest="ab" * 32, name="ben")
    (tmp_path / "allowed").write_text(f'ben namespaces="{SSH_NAMESPACE}" {ours.public.text}\n')
    (tmp_path / "ben.sig").write_text(signed["sshsig"])
    command = ["ssh-keygen", "-Y", "verify", "-f", "allowed", "-I", "ben", "-n", SSH_NAMESPACE, "-s", "ben.sig"]
    for message, code in ((message_of(signed["statement"]), 0), (message_of(statement), 255)):
        assert subprocess.run(command, cwd=tmp_path, input=message, capture_output=True, check=False).returncode == code


@NEEDS_SSH
def test_an_agent_signs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the public file alone: the private one is nowhere but in the agent, as a token's is nowhere but in the token."""
    file, socket = tmp_path / "id", Path(tempfile.mkdtemp(prefix="agent-")) / "agent"  # the name of a socket is a short one
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(file)], check=True)
    monkeypatch.setenv("SSH_AUTH_SOCK", str(socket))
    with subprocess.Popen(["ssh-agent", "-D", "-a", str(socket)], stdout=subprocess.DEVNULL) as agent:
        try:
            deadline = time.monotonic() + HANGING
            while not socket.exists():
                assert time.monotonic() < deadline
                time.sleep(0.02)
            subprocess.run(["ssh-add", "-q", str(file)], check=True)
            file.unlink()
            public = read_public_key(tmp_path / "id.pub")
            statement = statement_of(public)
            signed = read_signer(tmp_path / "id.pub").sign(message_of(statement))
            assert accepts({"statement": statement, "sshsig": signed}, public)
            subprocess.run(["ssh-add", "-q", "-D"], check=True)
            with pytest.raises(VerifiedWrongUsage, match="ssh-keygen did not sign"):
                read_signer(tmp_path / "id.pub").sign(message_of(statement))
        finally:
            agent.terminate()
    shutil.rmtree(socket.parent)


@NEEDS_SSH
@pytest.mark.parametrize("application", [APPLICATION, b"ssh:office"])
def test_ssh_keygen_takes_what_our_token_signs(tmp_path: Path, application: bytes) -> None:
    """So the token in software, which the other tests use, signs as one of hardware does; and what it signs we take."""
    public = PublicKey.of(PUBLIC + application)
    statement = statement_of(public)
    signed = sign_as_token(statement, application=application)
    assert accepts({"statement": statement, "sshsig": signed}, public)
    (tmp_path / "allowed").write_text(f'ben namespaces="{SSH_NAMESPACE}" {public.text}\n')
    (tmp_path / "ben.sig").write_text(signed)
    command = ["ssh-keygen", "-Y", "verify", "-f", "allowed", "-I", "ben", "-n", SSH_NAMESPACE, "-s", "ben.sig"]
    for message, code in ((message_of(statement), 0), (message_of({**statement, "why": "so"}), 255)):
        assert subprocess.run(command, cwd=tmp_path, input=message, capture_output=True, check=False).returncode == code


@pytest.mark.slow
@pytest.mark.parametrize("join", [join_signer, join_verifier])
def test_the_one_file_has_every_name_once_and_imports_nothing_of_ours(join: Callable[[], str]) -> None:
    """No module hides a name of another."""
    tree = ast.parse(join())
    defined = [name for node in tree.body for name in _names(node)]
    assert [name for name, count in Counter(defined).items() if count > 1] == []
    modules = {
        ((node.module or "") if isinstance(node, ast.ImportFrom) else node.names[0].name).partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    assert modules <= sys.stdlib_module_names


@pytest.mark.slow
def test_the_one_file_is_written_and_runs_alone(tmp_path: Path) -> None:
    alone = tmp_path / "sign.py"
    command = [sys.executable, "-m", "release_pipeline.signer", "--write-alone"]
    assert subprocess.run([*command, str(alone)], check=False).returncode == 0
    assert alone.read_text() == join_signer()
    shown = subprocess.run([sys.executable, "-I", "-S", str(alone), "--help"], capture_output=True, text=True, check=True)
    assert "BUNDLE.zip" in shown.stdout
    done = subprocess.run([*command, str(tmp_path / "no" / "sign.py")], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


def _names(node: ast.stmt) -> set[str]:
    """What a statement of a module defines."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}


BEFORE = {"protect": {"epsilon": "1", "k": 10}, "columns": {"income": {"domain": ["0", "9"]}}, "retain": None}


def test_no_change_is_hidden_behind_others() -> None:
    """The attack: hundreds of new columns, and behind them another epsilon and fewer reviewers. What decides comes first."""
    columns = {f"c{number:03}": {"do": "drop"} for number in range(500)}
    now = {"protect": {"epsilon": "2", "k": 10, "weights": dict.fromkeys(columns, "1")}, "review": {"reviewers": 1}}
    now |= {"columns": {**columns, "income": {"domain": ["0", "90"]}}, "retain": None}
    found = list_changes(BEFORE, now)
    assert found[:2] == ['protect.epsilon: "1" -> "2"', "review.reviewers: nothing -> 1"]
    assert found[502] == 'columns.income.domain: ["0","9"] -> ["0","90"]'
    assert len(found) == 2 + 500 + 1 + 500


PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="default-src 'none'">
<style>@media print { p { fill: url(#tip) } }</style></head><body><p style="--wide: 3px" aria-label="url(x">BODY</p></body></html>
"""


@pytest.mark.parametrize(
    "body",
    [
        "<style><b>{}body{background:url(https://evil.example/x)}</style>",
        '<svg><style>&#64;import "https://evil.example/x.css";</style></svg>',
        '<svg><style><g/>@import "https://evil.example/x.css";</style></svg>',
        '<meta http-equiv="refresh" http-equiv="Content-Security-Policy" content="0;url=https://evil.example/">',
        "<script>x</script>",
        "<svg/onload=alert(1)>",
        "<p onclick='x'>",
        '<a href="java&#115;cript:x">',
        '<img src="x">',
        '<meta charset="iso-2022-jp">',
        '<p style="background: u&#114;l(x)">',
        '<rect fill="u\\72l(x)">',
        "<style>@import 'x'</style>",
        "<!-- x -->",
        "<svg><title><script>x</script></title></svg>",
        '<p title="<script>x</script>">',
        "\x1b$B",
        '<form action="x">',
        "<animate>",
    ],
)
def test_a_page_that_does_something_is_found(body: str) -> None:
    """Scripts, handlers, addresses, and what a browser may read as another tag than we do."""
    assert find_active(PAGE.encode()) == ""
    assert find_active(PAGE.replace("BODY", body).encode())
    assert find_active(b"\xff") == "what is not UTF-8"


def test_a_bundle_is_read_once(tmp_path: Path) -> None:
    """Its owner changes it after every reading: what is judged, hashed and looked at is the first one, in our copy."""
    contents, reads = {"a.txt": b"shown", "large": b"counted"}, list[str]()

    def open_file(name: str) -> io.BytesIO:
        reads.append(name)
        return io.BytesIO(contents[name] if reads.count(name) == 1 else b"other")

    tree = Tree(open_file, "")
    tree.sizes = {"a.txt": 5, "large": MOST_TO_PARSE + 1}
    contents["large"] = bytes(MOST_TO_PARSE + 1)
    kept, skipped = keep(tree, tmp_path)
    assert (kept.read("a.txt"), kept.digest("a.txt")) == (b"shown", hashlib.sha256(b"shown").hexdigest())
    assert kept.digest("large") == hashlib.sha256(contents["large"]).hexdigest()
    assert (skipped, sorted(reads), list(tmp_path.iterdir())) == (1, ["a.txt", "large"], [tmp_path / "a.txt"])
