"""Signatures of SSH, keys at rest, and the one file that signs: against `cryptography`, openssl and ssh-keygen."""

from __future__ import annotations

import ast
import base64
import hashlib
import io
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat

from release_pipeline import sign, verify
from release_pipeline.errors import WrongUsage
from release_pipeline.flow.trust import pkcs8
from release_pipeline.flow.trust.keys import (
    NotSigned,
    PrivateKey,
    PublicKey,
    check_signature,
    make_key,
    read_key,
    read_public_key,
)
from release_pipeline.verify import SSH_NAMESPACE, Fault, Json, armor_ssh, message_of, pack_ssh, verify_statement
from tests.guards import HANGING

SECRET = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PUBLIC = SECRET.public_key().public_bytes_raw()
COSTS = pkcs8.N, pkcs8.P  # as they are when tests are collected
PASSPHRASE = "correct horse battery"  # noqa: S105
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
    officer = PrivateKey(Ed25519PrivateKey.from_private_bytes(bytes(32))).public
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


def test_a_signature_is_one_of_ssh() -> None:
    """A bare one of the same key, beside it or in its place, does not pass."""
    key = PrivateKey(SECRET)
    signed = key.sign(kind="approve", subject="people/1/r1", digest="ab" * 32, name="ben")
    assert set(signed) == {"statement", "sshsig"}
    assert accepts(signed, key.public)
    statement = signed["statement"]
    text = json.dumps(statement, sort_keys=True, separators=(",", ":")).encode()
    bare = base64.b64encode(SECRET.sign(text + b"\n")).decode()
    assert not accepts({"statement": statement, "signature": bare}, key.public)
    assert not accepts({"statement": statement, "sshsig": bare}, key.public)
    assert not accepts({**signed, "signature": bare}, key.public)


@pytest.mark.parametrize("field", ["kind", "subject", "hash", "signer", "name", "at", "why"])
def test_a_changed_field_voids_it(field: str) -> None:
    """Whoever carries a statement can change none of it."""
    signed = PrivateKey(SECRET).sign(kind="approve", subject="people/1/r1", digest="ab" * 32, name="ben")
    changed = signed["statement"][field].replace("a", "b") or "so"
    changed = changed if changed != signed["statement"][field] else changed[:-1] + "8"
    assert not accepts({**signed, "statement": {**signed["statement"], field: changed}}, PrivateKey(SECRET).public)


def _parts(**changed: bytes) -> str:
    """A signature whose parts are right but for these."""
    statement = statement_of(PrivateKey(SECRET).public)
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
        ({"namespace": b"git"}, False),
        ({"reserved": b"x"}, False),
        ({"version": b"\0\0\0\2"}, False),
        ({"after": b"\0"}, False),
        ({"more": b"\0"}, False),
        ({"signature": b""}, False),
        ({"signature": b"\xff\xff\xff\xff"}, False),
        ({"key": pack_ssh(b"ssh-ed25519", PUBLIC + b"\0")}, False),
        ({"key": pack_ssh(b"ssh-rsa", PUBLIC)}, False),
        ({"key": pack_ssh(b"sk-ssh-ed25519@openssh.com", PUBLIC, b"ssh:")}, False),
    ],
    ids=str,
)
def test_an_ssh_signature_has_one_form(changed: dict[str, bytes], passes: bool) -> None:
    """Every part is looked at, though the signature over it is right."""
    key = PrivateKey(SECRET).public
    assert accepts({"statement": statement_of(key), "sshsig": _parts(**changed)}, key) == passes


@pytest.mark.parametrize("change", ["\n", " ", "-----BEGIN SSH SIGNATURE-----\n"])
def test_its_armor_too(change: str) -> None:
    """Not a space more."""
    key = PrivateKey(SECRET).public
    for text in (_parts() + change, change + _parts(), _parts().replace("\n", "\r\n"), ""):
        assert not accepts({"statement": statement_of(key), "sshsig": text}, key)


def test_a_token_signs_with_presence_and_for_its_application() -> None:
    """A software token after OpenSSH's protocol: touched it passes, untouched or for another application not."""
    key = PublicKey.of(PUBLIC + APPLICATION)
    assert key.text.startswith("sk-ed25519:")
    assert PublicKey.parse(key.text) == key
    statement = statement_of(key)
    for flags, passes in ((1, True), (5, True), (0, False), (4, False), (0x41, False)):
        assert accepts({"statement": statement, "sshsig": sign_as_token(statement, flags=flags)}, key) == passes
    other = sign_as_token(statement, application=b"ssh:other")
    assert not accepts({"statement": statement, "sshsig": other}, key)
    bare = PublicKey.of(PUBLIC)
    assert not accepts({"statement": statement_of(bare), "sshsig": sign_as_token(statement_of(bare))}, bare)
    line = key.name_for_ssh("ben")
    assert PublicKey.parse_ssh(line) == key
    with pytest.raises(Fault):
        PublicKey.of(PUBLIC + b"web:")


def test_keys_of_openssh_are_trusted(tmp_path: Path) -> None:
    """From a .pub line, and nothing that only looks like one."""
    key = PublicKey.of(PUBLIC)
    file = tmp_path / "ben.pub"
    for text in (key.text, key.name_for_ssh("ben@home"), f"{key.name_for_ssh('ben')} of mine\n"):
        file.write_text(text)
        assert read_public_key(file) == key
    for text in (
        "",
        "ssh-ed25519",
        "ssh-ed25519 AAAA",
        key.name_for_ssh("x").replace("ssh-ed25519 ", "ssh-rsa "),
        "ed25519:AAAA",
    ):
        file.write_text(text)
        with pytest.raises(WrongUsage, match="not a public key"):
            read_public_key(file)


@pytest.fixture
def real_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the software: tests of whole sites, which this process may have run before, make keys at lower ones."""
    monkeypatch.setattr(pkcs8, "N", COSTS[0])
    monkeypatch.setattr(pkcs8, "P", COSTS[1])


@pytest.mark.slow
@pytest.mark.usefixtures("real_costs")
def test_a_key_at_rest_is_under_scrypt(tmp_path: Path) -> None:
    """With these costs; `cryptography`, openssl and sign.py read it, and keys of before; a wrong passphrase opens none."""
    file = tmp_path / "ben.key"
    public = make_key(file, passphrase=PASSPHRASE)
    assert (file.stat().st_mode & 0o777, file.with_suffix(".pub").stat().st_mode & 0o777) == (0o600, 0o644)
    whole = sign._read_der(base64.b64decode("".join(file.read_text().split("-----")[2].split())))
    derivation, (_, *costs) = whole[0][0][1][0]
    assert (derivation, costs) == ("2b06010401da47040b", [2**14, 8, 8])
    assert read_key(file, passphrase=PASSPHRASE).public == public
    secret = sign.read_private_key(file.read_text(), PASSPHRASE)
    assert sign.public_of(secret) == public.raw
    openssl = shutil.which("openssl")
    if openssl is not None:
        command = [openssl, "pkey", "-in", str(file), "-passin", f"pass:{PASSPHRASE}", "-pubout", "-outform", "DER"]
        assert subprocess.run(command, capture_output=True, check=True).stdout.endswith(public.raw)
    with pytest.raises(verify.WrongUsage, match="passphrase"):
        sign.read_private_key(file.read_text(), "another one")
    before = SECRET.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(PASSPHRASE.encode()))
    assert sign.read_private_key(before.decode(), PASSPHRASE) == bytes(range(32))
    file.write_bytes(before)
    assert read_key(file, passphrase=PASSPHRASE).public.raw == PUBLIC


@pytest.mark.parametrize(
    "text", ["", "no key", "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAA==\n-----END ENCRYPTED PRIVATE KEY-----"]
)
def test_what_is_no_key_is_refused_in_words(text: str) -> None:
    """Without a traceback."""
    with pytest.raises(verify.WrongUsage, match="not a private key"):
        sign.read_private_key(text, PASSPHRASE)


def test_curve_and_cipher_agree_with_cryptography() -> None:
    """On fixed texts of several lengths."""
    for number in range(6):
        secret, key, start = (hashlib.sha512(bytes([number, part])).digest() for part in range(3))
        theirs = Ed25519PrivateKey.from_private_bytes(secret[:32])
        assert sign.sign_ed25519(secret[:32], start[: 9 * number]) == theirs.sign(start[: 9 * number])
        assert sign.public_of(secret[:32]) == theirs.public_key().public_bytes_raw()
        cipher = Cipher(algorithms.AES(key[:32]), modes.CBC(start[:16])).encryptor()
        assert (
            sign._decrypt(key[:32], start[:16], cipher.update(secret[: 16 + 16 * (number % 3)]))
            == secret[: 16 + 16 * (number % 3)]
        )


@NEEDS_SSH
def test_ssh_keygen_signs_and_verifies(tmp_path: Path) -> None:
    """What it signs we take, by its private and public file; what we sign, it takes."""
    file = tmp_path / "id"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(file)], check=True)
    public = read_public_key(tmp_path / "id.pub")
    signer = sign.read_signer(file, None)
    assert signer.public == public.raw == sign.read_signer(tmp_path / "id.pub", None).public
    statement = statement_of(public)
    assert accepts({"statement": statement, "sshsig": signer.sign(statement)}, public)
    ours = PrivateKey(SECRET)
    signed = ours.sign(kind="approve", subject="people/1/r1", digest="ab" * 32, name="ben")
    (tmp_path / "allowed").write_text(f'ben namespaces="{SSH_NAMESPACE}" {ours.public.name_for_ssh("ben")}\n')
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
            signed = sign.read_signer(tmp_path / "id.pub", None).sign(statement)
            assert accepts({"statement": statement, "sshsig": signed}, public)
            subprocess.run(["ssh-add", "-q", "-D"], check=True)
            with pytest.raises(verify.WrongUsage, match="ssh-keygen did not sign"):
                sign.read_signer(tmp_path / "id.pub", None).sign(statement)
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
    (tmp_path / "allowed").write_text(f'ben namespaces="{SSH_NAMESPACE}" {public.name_for_ssh("ben")}\n')
    (tmp_path / "ben.sig").write_text(signed)
    command = ["ssh-keygen", "-Y", "verify", "-f", "allowed", "-I", "ben", "-n", SSH_NAMESPACE, "-s", "ben.sig"]
    for message, code in ((message_of(statement), 0), (message_of({**statement, "why": "so"}), 255)):
        assert subprocess.run(command, cwd=tmp_path, input=message, capture_output=True, check=False).returncode == code


@pytest.mark.slow
def test_the_one_file_runs_alone(tmp_path: Path) -> None:
    """Joined from two: neither hides a name of the other, nothing of the package is imported, and it writes itself."""
    alone = tmp_path / "sign.py"
    assert sign.main(["--write-alone", str(alone)]) == 0
    text = alone.read_text()
    names = [_names(Path(str(part.__file__)).read_text()) for part in (sign, verify)]
    assert names[0] & names[1] == {"main"}
    modules = {
        ((node.module or "") if isinstance(node, ast.ImportFrom) else node.names[0].name).partition(".")[0]
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    assert modules <= sys.stdlib_module_names
    again = subprocess.run([sys.executable, "-I", "-S", str(alone), "--write-alone", str(tmp_path / "two.py")], check=False)
    assert again.returncode == 0
    assert (tmp_path / "two.py").read_text() == text


def _names(text: str) -> set[str]:
    """What a module defines at its top."""
    found: set[str] = set()
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        found |= {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
    return found


BEFORE = {"protect": {"epsilon": "1", "k": 10}, "columns": {"income": {"domain": ["0", "9"]}}, "retain": None}


def test_no_change_is_hidden_behind_others() -> None:
    """The attack: hundreds of new columns, and behind them another epsilon and fewer reviewers. What decides comes first."""
    columns = {f"c{number:03}": {"do": "drop"} for number in range(500)}
    now = {"protect": {"epsilon": "2", "k": 10, "weights": dict.fromkeys(columns, "1")}, "review": {"reviewers": 1}}
    now |= {"columns": {**columns, "income": {"domain": ["0", "90"]}}, "retain": None}
    found = sign.list_changes(BEFORE, now)
    assert found[:2] == ['protect.epsilon: "1" -> "2"', "review.reviewers: nothing -> 1"]
    assert found[502] == 'columns.income.domain: ["0","9"] -> ["0","90"]'
    assert len(found) == 2 + 500 + 1 + 500


def test_nor_behind_other_populations() -> None:
    """What was there before what is new."""
    caps = {f"a{number:03}": {"cap": {"epsilon": "1"}} for number in range(500)}
    found = sign.list_changes({"people": {"cap": {"epsilon": "5"}}}, {"people": {"cap": {"epsilon": "50"}}, **caps}, named=True)
    assert found[0] == 'people.cap.epsilon: "5" -> "50"'
    assert len(found) == 501


def test_a_change_is_told_whole() -> None:
    """Null is not nothing; of long lists the parts that differ; long texts to their end."""
    assert sign.list_changes({"retain": None}, {}) == ["retain: null -> nothing"]
    rows: list[Json] = [[f"city {number}", "region"] for number in range(100)]
    assert sign.list_changes({"rows": rows}, {"rows": [*rows[:-1], ["city 99", "*"]]}) == [
        'rows: without ["city 99","region"]',
        'rows: and now ["city 99","*"]',
    ]
    [other_order] = sign.list_changes({"rows": rows}, {"rows": rows[::-1]})
    assert other_order.endswith('["city 0","region"]]')
    assert sign.list_changes({"why": "x" * 5000}, {"why": "x" * 5000 + "y"})[0].endswith('xy"')
    assert sign.make_plain("a" * 5000 + "\n\x1b") == "a" * 5000 + "\\n\\x1b"


def test_a_line_of_the_site_cannot_pass_for_ours(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Where a terminal would break it, either."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    for line in sign._quote(["all is well" + " " * 67 + "=== computed here ===", "=== computed here ==="]):
        sign._show(line)
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == 3
    assert all(line.startswith("| ") and len(line) < 80 for line in shown)


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
        '<a href="https://evil.example/" href="#x">',
        '<meta http-equiv="refresh" http-equiv="Content-Security-Policy" content="0;url=https://evil.example/">',
        '<p style="background:url(https://evil.example/)" style="color:red">',
        "<script>x</script>",
        "<ScRiPt src=x>",
        "<svg/onload=alert(1)>",
        '<p onclick="x">',
        "<p onclick='x'>",
        '<a href="https://evil.example">',
        '<a href="java&#115;cript:x">',
        '<a href="other.html">',
        '<img src="x">',
        '<meta http-equiv="refresh" content="0">',
        '<meta charset="iso-2022-jp">',
        '<p style="background: u&#114;l(x)">',
        '<rect fill="u\\72l(x)">',
        "<style>@import 'x'</style>",
        "<style>p { background: URL(x) }</style>",
        "<!-- x -->",
        "<svg><title><script>x</script></title></svg>",
        '<p title="<script>x</script>">',
        "<",
        "\x1b$B",
        "<iframe>",
        '<form action="x">',
        "<animate>",
    ],
)
def test_a_page_that_does_something_is_found(body: str) -> None:
    """Scripts, handlers, addresses, and what a browser may read as another tag than we do."""
    assert sign.find_active(PAGE.encode()) == ""
    assert sign.find_active(PAGE.replace("BODY", body).encode())
    assert sign.find_active(b"\xff") == "what is not UTF-8"


def test_a_bundle_is_read_once(tmp_path: Path) -> None:
    """Its owner changes it after every reading: what is judged, hashed and looked at is the first one, in our copy."""
    contents, reads = {"a.txt": b"shown", "large": b"counted"}, list[str]()

    def open_file(name: str) -> io.BytesIO:
        reads.append(name)
        return io.BytesIO(contents[name] if reads.count(name) == 1 else b"other")

    tree = verify.Tree(open_file, "")
    tree.sizes = {"a.txt": 5, "large": verify.MOST_TO_PARSE + 1}
    contents["large"] = bytes(verify.MOST_TO_PARSE + 1)
    kept, skipped = sign.keep(tree, tmp_path)
    assert (kept.read("a.txt"), kept.digest("a.txt")) == (b"shown", hashlib.sha256(b"shown").hexdigest())
    assert kept.digest("large") == hashlib.sha256(contents["large"]).hexdigest()
    assert (skipped, sorted(reads), list(tmp_path.iterdir())) == (1, ["a.txt", "large"], [tmp_path / "a.txt"])


def test_where_it_cannot_write_itself_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In words."""
    assert sign.main(["--write-alone", str(tmp_path / "none" / "sign.py")]) == 2
    assert "none/sign.py: it cannot be written" in capsys.readouterr().err
