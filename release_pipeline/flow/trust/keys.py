"""Ed25519 keys of people, and what they sign: a statement that says what, about which hash, by whom and when.

Private keys are those of OpenSSH and belong to people, not to the site: files, agents or FIDO tokens, wherever they keep them.
ssh-keygen makes the signatures (`verify.SshSignature`), and anybody can verify them with it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from release_pipeline.errors import ReleasePipelineError, WrongUsage
from release_pipeline.plain_files import open_plain
from release_pipeline.sign import Signer, find_ssh_keygen, read_signer, signature_file
from release_pipeline.verify import (
    SSH_KEY,
    SSH_NAMESPACE,
    SSH_TOKEN_KEY,
    Fault,
    Json,
    message_of,
    name_ssh_key,
    pack_ssh,
    read_json,
    read_point,
    read_ssh_key,
    read_ssh_signature,
)
from release_pipeline.verify import WrongUsage as Unusable

PREFIX, TOKEN_PREFIX = "ed25519:", "sk-ed25519:"
_LONGEST_STATEMENT = 2**16
_PROBE = "probe@release-pipeline"
_RAW = 32  # bytes of the key itself; a token's application comes after them
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
        if set(signed) != {"statement", "sshsig"}:
            raise InvalidSignature
        made = read_ssh_signature(signed["sshsig"])
        if made.public != self.raw:
            raise InvalidSignature
        Ed25519PublicKey.from_public_bytes(self.raw[:_RAW]).verify(made.signature, made.tell_signed(message_of(statement)))


@dataclass(frozen=True, slots=True)
class PrivateKey:
    """A private key of OpenSSH, by its file: ssh-keygen signs with it, or asks an agent or a FIDO token to."""

    signer: Signer

    @property
    def public(self) -> PublicKey:
        """Its public half."""
        return PublicKey.of(self.signer.public)

    def sign(self, *, kind: str, subject: str, digest: str, name: str, why: str = "", at: str | None = None) -> dict[str, Any]:
        """A signed statement. The same statement gets the same signature, except from a FIDO token."""
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

    def check(self) -> None:
        """Raise `WrongUsage` unless it can sign now; the signature is in a namespace that nothing accepts."""
        self.sign_for_ssh(b"", _PROBE)

    def sign_for_ssh(self, message: bytes, namespace: str = SSH_NAMESPACE) -> str:
        """An SSH signature in a namespace; `WrongUsage` where ssh-keygen makes none."""
        with _usage_errors(self.signer.file):
            return self.signer.sign(message, namespace)


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


def make_key(file: Path) -> PublicKey:
    """The public half of a new key without a passphrase in `file`, for made-up people; `FILE.pub` has it too."""
    with _usage_errors(file):
        command = [find_ssh_keygen(), "-q", "-t", "ed25519", "-N", "", "-C", file.name, "-f", str(file)]
    if file.exists() or subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode:  # noqa: S603
        raise WrongUsage("no key can be made there.", where=str(file), remedy="Name a new file in a folder of yours.")
    return read_key(file).public


def read_key(file: Path, *, attended: bool = True) -> PrivateKey:
    """The key in a file of OpenSSH, private or .pub. `attended`: somebody can type its passphrase."""
    if not file.exists():
        remedy = "Check the path; `ssh-keygen -t ed25519 -f FILE` makes a key."
        raise WrongUsage("there is no such file.", where=str(file), remedy=remedy)
    with _usage_errors(file):
        return PrivateKey(read_signer(file, attended=attended))


@contextmanager
def _usage_errors(file: Path) -> Iterator[None]:
    """Errors of the stand-alone signer as the site's own."""
    try:
        yield
    except Unusable as error:
        raise WrongUsage(f"{error.what.removeprefix(f'{file}: ')}.", where=str(file)) from None


def read_public_key(file: Path) -> PublicKey:
    """The public key in a `.pub` file of OpenSSH."""
    try:
        return PublicKey.parse_ssh(file.read_text(encoding="ascii").strip(), where=str(file))
    except (OSError, UnicodeDecodeError):
        raise WrongUsage("this public key cannot be read.", where=str(file)) from None
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
    remedy = "A .pub file of OpenSSH begins with ssh-ed25519 AAAA... or sk-ssh-ed25519@openssh.com AAAA...."
    return NotSigned("this is not a public key.", where=where, remedy=remedy)
