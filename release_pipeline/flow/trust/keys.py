"""Ed25519 keys of people, and what they sign: a statement that says what, about which hash, by whom and when.

Private keys belong to people, not to the site: encrypted files or FIDO tokens, wherever they keep them. Signatures are those of
SSH (`verify.SshSignature`), so that ssh-keygen makes and verifies them too; those of the first form go on verifying.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from release_pipeline.errors import ReleasePipelineError, WrongUsage
from release_pipeline.flow.files import PUBLIC, check_output, write_text
from release_pipeline.flow.trust.pkcs8 import encrypt
from release_pipeline.plain_files import open_plain
from release_pipeline.sign import signature_file
from release_pipeline.verify import (
    SSH_KEY,
    SSH_NAMESPACE,
    SSH_TOKEN_KEY,
    Fault,
    Json,
    SshSignature,
    message_of,
    name_ssh_key,
    pack_ssh,
    read_json,
    read_point,
    read_ssh_key,
    read_ssh_signature,
)

PREFIX, TOKEN_PREFIX = "ed25519:", "sk-ed25519:"
_LONGEST_STATEMENT = 2**16
_RAW = 32  # bytes of the key itself; a token's application comes after them
SHORTEST_PASSPHRASE = 8
_FIELDS = {"kind", "subject", "hash", "signer", "name", "at", "why"}


class NotSigned(ReleasePipelineError):
    """A signature that is missing, does not hold, or is by somebody who may not give it."""


@lru_cache(maxsize=1024)
def _is_point(raw: bytes) -> bool:
    """Whether these bytes are a point of the curve: the same lists of keys are read again and again."""
    return read_point(raw) is not None


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A public key, as a text in lists and files: `ed25519:` and its bytes, or `sk-ed25519:` and those of a key in a FIDO token,
    with the application that the token signs for after them."""

    text: str

    @classmethod
    def parse(cls, text: str, *, where: str = "") -> PublicKey:
        """The key that `text` is, in base64 after what kind it is."""
        try:
            key = cls.of(base64.b64decode(text.partition(":")[2], validate=True))
        except (ValueError, Fault):
            key = None
        if key is None or key.text != text:
            raise _no_public_key(where)
        return key

    @classmethod
    def of(cls, raw: bytes) -> PublicKey:
        """The key of these bytes; `Fault` if they are none."""
        kind, application = (SSH_TOKEN_KEY, [raw[_RAW:]]) if len(raw) > _RAW else (SSH_KEY, [])
        read_ssh_key(pack_ssh(kind, raw[:_RAW], *application))
        if not _is_point(raw[:_RAW]):
            raise Fault("there is no such key")
        return cls((TOKEN_PREFIX if application else PREFIX) + base64.b64encode(raw).decode())

    @classmethod
    def parse_ssh(cls, text: str, *, where: str = "") -> PublicKey:
        """The key in a line as OpenSSH writes it: its kind, base64, and perhaps a remark."""
        kind, encoded, *_ = [*text.split(), "", ""]
        try:
            blob = base64.b64decode(encoded, validate=True)
            if not blob.startswith(pack_ssh(kind.encode())):
                raise Fault("it names another kind of key than it is")
            return cls.of(read_ssh_key(blob))
        except (ValueError, Fault):
            raise _no_public_key(where) from None

    @property
    def raw(self) -> bytes:
        """Its 32 bytes, and after them the application of a token."""
        return base64.b64decode(self.text.partition(":")[2])

    @property
    def fingerprint(self) -> str:
        """SHA-256 of its bytes: short enough to compare over the telephone, group by group."""
        return hashlib.sha256(self.raw).hexdigest()

    def name_for_ssh(self, name: str) -> str:
        """It as the line of a person in a .pub file of OpenSSH."""
        return f"{name_ssh_key(self.raw)} {name}"

    def verify(self, statement: Any, signed: Mapping[str, Any]) -> None:
        """Raise `InvalidSignature` unless this key signed the statement; `Fault` or `ValueError` where there is no signature."""
        found = read_ssh_signature(signed["sshsig"])
        if found.public != self.raw or set(signed) != {"statement", "sshsig"}:
            raise InvalidSignature
        key = Ed25519PublicKey.from_public_bytes(self.raw[:_RAW])
        key.verify(found.signature, found.tell_signed(message_of(statement)))


@dataclass(frozen=True, slots=True)
class PrivateKey:
    """A person's key while they sign."""

    key: Ed25519PrivateKey

    @property
    def public(self) -> PublicKey:
        """Its public half."""
        raw = self.key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        return PublicKey(PREFIX + base64.b64encode(raw).decode())

    def sign(self, *, kind: str, subject: str, digest: str, name: str, why: str = "", at: str | None = None) -> dict[str, Any]:
        """A signed statement. The same statement gets the same signature."""
        statement = {
            "kind": kind,
            "subject": subject,
            "hash": digest,
            "signer": self.public.fingerprint,
            "name": name,
            "at": at or datetime.now(UTC).isoformat(timespec="seconds"),
            "why": why,
        }
        return {"statement": statement, "sshsig": self.sign_for_ssh(message_of(statement))}

    def sign_for_ssh(self, message: bytes, namespace: str = SSH_NAMESPACE) -> str:
        """An SSH signature, as `ssh-keygen -Y sign` would make it."""
        unsigned = SshSignature(self.public.raw, b"sha512", b"", namespace=namespace)
        return dataclasses.replace(unsigned, signature=self.key.sign(unsigned.tell_signed(message))).write()


def write_statement(signed: Any) -> str:
    """A signed statement as the text of a file."""
    return json.dumps(signed, indent=2, sort_keys=True) + "\n"


def check_signature(signed: Any, key: PublicKey, *, kind: str, subject: str, digest: str) -> Mapping[str, Any]:
    """The statement, if `key` signed it, and it says just this; raises `NotSigned` in words."""
    try:
        statement = signed["statement"]
        if set(statement) != _FIELDS or any(not isinstance(part, str) for part in statement.values()):
            raise ValueError
        key.verify(statement, signed)
    except (KeyError, TypeError, ValueError, Fault, InvalidSignature):
        raise NotSigned("the signature does not hold.", where=f"{kind} of {subject}") from None
    said = (statement["kind"], statement["subject"], statement["hash"], statement["signer"])
    if said != (kind, subject, digest, key.fingerprint):
        raise NotSigned("the signature is for something else.", where=f"{kind} of {subject}")
    return statement


def make_key(file: Path, *, passphrase: str) -> PublicKey:
    """A new key in `file`, encrypted, for its owner alone; the public half beside it in a `.pub` file."""
    if len(passphrase) < SHORTEST_PASSPHRASE:
        raise WrongUsage(f"a passphrase has at least {SHORTEST_PASSPHRASE} characters.", where=str(file))
    public_file = file.with_suffix(".pub")
    check_output(file, endings=(".key",), overwrite=False, hint=False)
    check_output(public_file, endings=(".pub",), overwrite=False, hint=False)
    key = Ed25519PrivateKey.generate()
    public = PrivateKey(key).public
    write_text(public_file, public.text + "\n", mode=PUBLIC)
    write_text(file, encrypt(key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption()), passphrase.encode()))
    return public


def read_passphrase(file: Path) -> str:
    """The passphrase in a file, without the end of its line."""
    try:
        return file.read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError):
        raise WrongUsage("there is no passphrase that can be read here.", where=str(file), remedy="Name another file.") from None


def read_key_file(file: Path) -> bytes:
    """What is in the file of a key; `WrongUsage` where there is none."""
    try:
        return file.read_bytes()
    except FileNotFoundError:
        remedy = "Check the path; `release-pipeline key new NAME` makes a key."
        raise WrongUsage("there is no such file.", where=str(file), remedy=remedy) from None
    except OSError as error:
        raise WrongUsage(f"the key cannot be read: {error.strerror}.", where=str(file)) from None


def read_key(file: Path, *, passphrase: str) -> PrivateKey:
    """The key in `file`."""
    try:
        key = load_pem_private_key(read_key_file(file), passphrase.encode())
    except (ValueError, TypeError):
        raise WrongUsage(
            "this is not a private key, or the passphrase is not its.", where=str(file), remedy="Name a .key, and its passphrase."
        ) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise WrongUsage("this is not an Ed25519 key.", where=str(file))
    return PrivateKey(key)


def read_public_key(file: Path) -> PublicKey:
    """The public key in a `.pub` file, ours or OpenSSH's."""
    try:
        text = file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        raise WrongUsage("this public key cannot be read.", where=str(file)) from None
    parse = PublicKey.parse if ":" in text.split(" ")[0] else PublicKey.parse_ssh
    try:
        return parse(text, where=str(file))
    except NotSigned as error:  # a file that was named and is none, like one that is not there
        raise WrongUsage(error.what, where=error.where, remedy=error.remedy) from None


def read_moment(text: str) -> datetime:
    """A moment that somebody signed."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise NotSigned("the signed moment is none.") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def read_statement(file: Path) -> dict[str, Any]:
    """A statement that `sign` wrote, or a person by ssh-keygen: the file is what is signed, and beside it is its signature."""
    beside = signature_file(file)
    try:
        content, signature = _read_small(file), _read_small(beside).decode("ascii", "replace")
        statement: Json = read_json(content)
        known = (
            isinstance(statement, dict)
            and set(statement) == _FIELDS
            and all(isinstance(part, str) for part in statement.values())
        )
        if not known or message_of(statement) != content:
            raise Fault("it is not a statement")
    except OSError:
        what = "the statement, or its signature beside it, cannot be read."
        raise WrongUsage(what, where=str(file), remedy=f"Both are needed: {file.name} and {beside.name}.") from None
    except Fault:
        raise NotSigned("this is not a statement as `sign` writes it, in one line.", where=str(file)) from None
    return {"statement": statement, "sshsig": signature}


def _read_small(file: Path) -> bytes:
    with open_plain(file) as content:
        return content.read(_LONGEST_STATEMENT)


def check_person(name: str) -> str:
    """A person's name as policies write it."""
    if re.fullmatch(r"[a-z][a-z0-9-]{0,62}", name) is None:
        raise WrongUsage("this is not a name for a person.", where=name, remedy="Use lower-case letters, digits, hyphens.")
    return name


def _no_public_key(where: str) -> NotSigned:
    remedy = "It looks like ed25519:..., in the .pub file of `key new`, or like ssh-ed25519 AAAA..., in that of OpenSSH."
    return NotSigned("this is not a public key.", where=where, remedy=remedy)
