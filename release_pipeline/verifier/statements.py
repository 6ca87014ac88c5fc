"""Keys, and statements that are signed with them."""

from __future__ import annotations

import base64
import hashlib
import re
import struct
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from release_pipeline.verifier.documents import HEX, NAME, TIME, Fault, canonical_json, get
from release_pipeline.verifier.ed25519 import is_valid_signature

ROLES = ("officer", "steward", "reviewer", "service")
MAY_SIGN: Mapping[str, tuple[str, ...]] = {
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
RECOVERY = "recovery"  # events that name recovery keys, and the part of a succession about them
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
VOTES = ("approve", "return", "reject")  # the statements of reviewers on a candidate
TOMBSTONES = {"RETRACTED": "retract", "SUPERSEDED": "supersede"}
NANO = 10**9
MOST_BEFORE = 50  # generations of populations
SSH_NAMESPACE = "statement@release-pipeline"  # so that no SSH signature for another purpose is a statement
SSH_MAGIC, _SSH_HASHES = b"SSHSIG", (b"sha512", b"sha256")
SSH_KEY, SSH_TOKEN_KEY = b"ssh-ed25519", b"sk-ssh-ed25519@openssh.com"  # the latter in a FIDO token
SSH_ARMOR = ("-----BEGIN SSH SIGNATURE-----\n", "-----END SSH SIGNATURE-----\n")
_APPLICATION = re.compile(rb"ssh:[!-~]{0,60}")  # the application of a token's key, which it signs with the message
_PRESENT, _VERIFIED = 0x01, 0x04  # flags of a token: somebody touched it; it asked for a PIN or a finger


@dataclass(frozen=True)
class SshSignature:
    """An SSH signature, taken apart. `public`: the key as lists of trusted keys have it, 32 bytes and a token's application;
    `token`: a token's flags and counter, else nothing; `namespace`: the purpose of the signature."""

    public: bytes
    hash_name: bytes
    signature: bytes
    token: bytes = b""
    namespace: str = SSH_NAMESPACE

    def signed_bytes(self, message: bytes) -> bytes:
        """Return the bytes that the key itself signed, where the signature is of `message`."""
        digest = hashlib.new(self.hash_name.decode(), message).digest()
        signed = SSH_MAGIC + pack_ssh(self.namespace.encode(), b"", self.hash_name, digest)
        if not self.token:
            return signed
        return hashlib.sha256(self.public[32:]).digest() + self.token + hashlib.sha256(signed).digest()


def pack_ssh(*parts: bytes) -> bytes:
    """Return texts as SSH writes them, each after its length."""
    return b"".join(struct.pack(">I", len(part)) + part for part in parts)


def unpack_ssh(content: bytes, count: int) -> list[bytes]:
    """Return the `count` texts in SSH's form; raises `Fault` if anything comes after them."""
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
    """Return an SSH signature as `ssh-keygen` writes it."""
    encoded = base64.b64encode(blob).decode()
    return "".join((SSH_ARMOR[0], *(f"{encoded[at : at + 70]}\n" for at in range(0, len(encoded), 70)), SSH_ARMOR[1]))


def read_ssh_key(blob: bytes) -> bytes:
    """Return an SSH public key as lists of trusted keys have it; raises `Fault` unless it is Ed25519, by itself or in a FIDO
    token."""
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
    """Return the parts of an SSH signature; raises `Fault` unless its text has the one valid form, in the namespace `wanted`.
    Does not check whether the signature is valid."""
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
    """Return an SSH public key of 32 bytes and a token's application; `read_ssh_key` reads it."""
    return pack_ssh(SSH_TOKEN_KEY, public[:32], public[32:]) if len(public) > 32 else pack_ssh(SSH_KEY, public)


def hash_ssh_key(public: bytes) -> str:
    """Return the fingerprint of a key, in hex; `ssh-keygen -l` writes the same SHA-256 in base64."""
    return hashlib.sha256(pack_ssh_key(public)).hexdigest()


def name_ssh_key(public: bytes) -> str:
    """Return a key as OpenSSH and lists of trusted keys write it: its kind, and base64."""
    kind = SSH_TOKEN_KEY if len(public) > 32 else SSH_KEY
    return f"{kind.decode()} {base64.b64encode(pack_ssh_key(public)).decode()}"


def parse_ssh_key(text: str) -> bytes:
    """Return the key that `name_ssh_key` wrote; raises `Fault` for any other text."""
    public = read_ssh_key(_base64(text.partition(" ")[2]))
    if name_ssh_key(public) != text:
        raise Fault("it is not a key as OpenSSH writes it")
    return public


def message_of(statement: Any) -> bytes:
    """Return the bytes that an SSH signature of a statement is of: a text file of one line."""
    return canonical_json(statement).encode() + b"\n"


def _is_signed_by(public: bytes, signed: Any) -> bool:
    """Return whether the key made the SSH signature of a statement."""
    made = read_ssh_signature(get(signed, "sshsig", str))
    return made.public == public and is_valid_signature(
        public[:32], made.signed_bytes(message_of(signed["statement"])), made.signature
    )


@dataclass(frozen=True)
class Key:
    """A trusted key: its person, their role, its 32 bytes (after them a FIDO token's application), and its fingerprint."""

    name: str
    role: str
    public: bytes
    fingerprint: str


@dataclass(frozen=True)
class Statement:
    """A signed statement, after it was verified: `role` is the signer's in the list of trusted keys."""

    kind: str
    subject: str
    hash: str
    signer: str
    name: str
    at: str
    why: str
    role: str


FIELDS = {"kind": str, "subject": str, "hash": HEX, "signer": HEX, "name": NAME, "at": TIME, "why": str}


def read_keys(document: Any) -> dict[str, Key]:
    """Return the keys by name of a trusted-keys.json; raises `Fault` unless each name and key occurs once and exactly one is the
    officer's."""
    keys = read_entries(get(document, "keys", dict), ROLES)
    if [key.role for key in keys.values()].count("officer") != 1 or len(document) != 1:
        raise Fault("it must name exactly one officer, and nothing but keys")
    return keys


def read_entries(entries: Mapping[str, Any], roles: Collection[str]) -> dict[str, Key]:
    keys: dict[str, Key] = {}
    for name, entry in entries.items():
        text, role = get(entry, "key", str), get(entry, "role", str)
        try:
            public = parse_ssh_key(text)
        except Fault:
            public = b""
        if not NAME.fullmatch(name) or not public or role not in roles or len(entry) != 2:
            raise Fault(f"the entry of '{name}' is not a name with an Ed25519 key and a role")
        keys[name] = Key(name, role, public, hash_ssh_key(public))
    if len({key.fingerprint for key in keys.values()}) < len(keys):
        raise Fault("one key stands there under two names")
    return keys


def _base64(text: str) -> bytes:
    try:
        decoded = base64.b64decode(text, validate=True)
    except ValueError:
        raise Fault("there is something that is not base64") from None
    if base64.b64encode(decoded).decode() != text:
        raise Fault("there is base64 in another form than the usual one")
    return decoded


def verify_statement(signed: Any, keys: Any) -> Statement:
    """Return the statement; raises `Fault` unless it is signed by the key that it names, under its name in `keys` (the object of
    a trusted-keys.json), with a role that may sign its kind. The caller checks that the subject and the hash are the right ones,
    and that a reviewer is not the steward."""
    return check_statement(signed, read_keys(keys))


def verify_keys(signed: Any, keys: Mapping[str, Key], digest: str) -> Statement:
    """Return the verified statement of an officer about a list of keys with this hash."""
    return check_statement(signed, keys, kind="trusted-keys", subject="trusted-keys", hash=digest)


def check_statement(signed: Any, keys: Mapping[str, Key], **wanted: str) -> Statement:
    """Return the statement, verified by keys; its `kind`, `subject` and `hash` must be these where they are given."""
    statement = get(signed, "statement", dict)
    get(signed, "sshsig", str)
    for name, shape in FIELDS.items():
        get(statement, name, shape)
    if len(statement) != len(FIELDS) or len(signed) != 2:
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


def find_officer(keys: Mapping[str, Key]) -> str:
    return next(key.fingerprint for key in keys.values() if key.role == "officer")
