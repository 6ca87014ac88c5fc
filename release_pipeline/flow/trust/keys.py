"""Ed25519 keys of people, and what they sign: a statement that says what, about which hash, by whom and when.

Private keys belong to people, not to the site: encrypted files, wherever they keep them.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from release_pipeline.errors import ReleasePipelineError, WrongUsage
from release_pipeline.flow.files import check_output, write_text
from release_pipeline.store.registry import canonical_json
from release_pipeline.verify import read_point

PREFIX = "ed25519:"
SHORTEST_PASSPHRASE = 8
_CONTEXT = b"release-pipeline statement\n"
_FIELDS = {"kind", "subject", "hash", "signer", "name", "at", "why"}


class NotSigned(ReleasePipelineError):
    """A signature that is missing, does not hold, or is by somebody who may not give it."""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A public key, as a text in lists and files."""

    text: str

    @classmethod
    def parse(cls, text: str, *, where: str = "") -> PublicKey:
        """The key that `text` is, `ed25519:` and base64."""
        try:
            raw = base64.b64decode(text.removeprefix(PREFIX), validate=True)
        except binascii.Error:
            raw = b""
        if not text.startswith(PREFIX) or PREFIX + base64.b64encode(raw).decode() != text or read_point(raw) is None:
            raise NotSigned(
                "this is not a public key.", where=where, remedy="It looks like ed25519:... and is in the .pub file of `key new`."
            )
        return cls(text)

    @property
    def raw(self) -> bytes:
        """Its 32 bytes."""
        return base64.b64decode(self.text.removeprefix(PREFIX))

    @property
    def fingerprint(self) -> str:
        """SHA-256 of its bytes: short enough to compare over the telephone, group by group."""
        return hashlib.sha256(self.raw).hexdigest()


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
        return {"statement": statement, "signature": base64.b64encode(self.key.sign(_message(statement))).decode()}


def write_statement(signed: Any) -> str:
    """A signed statement as the text of a file."""
    return json.dumps(signed, indent=2, sort_keys=True) + "\n"


def check_signature(signed: Any, key: PublicKey, *, kind: str, subject: str, digest: str) -> Mapping[str, Any]:
    """The statement, if `key` signed it, and it says just this; raises `NotSigned` in words."""
    try:
        statement, signature = signed["statement"], base64.b64decode(signed["signature"], validate=True)
        if set(statement) != _FIELDS or any(not isinstance(part, str) for part in statement.values()):
            raise ValueError
        Ed25519PublicKey.from_public_bytes(key.raw).verify(signature, _message(statement))
    except (KeyError, TypeError, ValueError, InvalidSignature):
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
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(passphrase.encode()))
    public = PrivateKey(key).public
    write_text(public_file, public.text + "\n")
    write_text(file, pem.decode())
    return public


def read_passphrase(file: Path) -> str:
    """The passphrase in a file, without the end of its line."""
    try:
        return file.read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError):
        raise WrongUsage("there is no passphrase that can be read here.", where=str(file), remedy="Name another file.") from None


def read_key(file: Path, *, passphrase: str) -> PrivateKey:
    """The key in `file`."""
    try:
        key = load_pem_private_key(file.read_bytes(), passphrase.encode())
    except FileNotFoundError:
        raise WrongUsage("there is no such key.", where=str(file), remedy="`release-pipeline key new NAME` makes one.") from None
    except OSError as error:
        raise WrongUsage(f"the key cannot be read: {error.strerror}.", where=str(file)) from None
    except (ValueError, TypeError):
        raise WrongUsage(
            "this is not a private key, or the passphrase is not its.", where=str(file), remedy="Name a .key, and its passphrase."
        ) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise WrongUsage("this is not an Ed25519 key.", where=str(file))
    return PrivateKey(key)


def read_public_key(file: Path) -> PublicKey:
    """The public key in a `.pub` file."""
    try:
        text = file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        raise WrongUsage("this public key cannot be read.", where=str(file)) from None
    return PublicKey.parse(text, where=str(file))


def check_person(name: str) -> str:
    """A person's name as policies write it."""
    if re.fullmatch(r"[a-z][a-z0-9-]{0,62}", name) is None:
        raise WrongUsage("this is not a name for a person.", where=name, remedy="Use lower-case letters, digits, hyphens.")
    return name


def _message(statement: Mapping[str, Any]) -> bytes:
    return _CONTEXT + canonical_json(statement).encode()
