"""Ed25519 keys of people, and signed statements: each has its kind, a subject and its hash, the signer, and the moment.

Private keys are those of OpenSSH and belong to people, not to the site: files, agents or FIDO tokens, wherever they keep them.
ssh-keygen makes the signatures (`verifier.statements.SshSignature`), and anyone can verify them with it.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Generator, Mapping
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
from release_pipeline.signer.command import signature_file
from release_pipeline.signer.keys import Signer, find_ssh_keygen, read_signer
from release_pipeline.verifier.documents import NAME, Fault, Json, read_json
from release_pipeline.verifier.documents import WrongUsage as Unusable
from release_pipeline.verifier.ed25519 import read_point
from release_pipeline.verifier.statements import (
    FIELDS,
    SSH_NAMESPACE,
    hash_ssh_key,
    message_of,
    name_ssh_key,
    pack_ssh_key,
    parse_ssh_key,
    read_ssh_key,
    read_ssh_signature,
)

_LONGEST_STATEMENT = 2**16
_PROBE = "probe@release-pipeline"
_RAW = 32  # bytes of the key; a token's application comes after them


class NotSigned(ReleasePipelineError):
    """A signature that is missing, invalid, or by somebody who may not give it."""


@lru_cache(maxsize=1024)
def _is_point(raw: bytes) -> bool:
    """Return whether these bytes are a point of the curve. Remembered, because the same lists of keys are read repeatedly."""
    return read_point(raw) is not None


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A public key, as OpenSSH writes it without a remark: its kind, and base64."""

    text: str

    @classmethod
    def parse(cls, text: str, *, where: str = "") -> PublicKey:
        """Return the key of such a text; raises `NotSigned` for any other."""
        try:
            return cls.of(parse_ssh_key(text))
        except Fault:
            remedy = "A .pub file of OpenSSH begins with ssh-ed25519 AAAA... or sk-ssh-ed25519@openssh.com AAAA...."
            raise NotSigned("this is not a public key.", where=where, remedy=remedy) from None

    @classmethod
    def of(cls, raw: bytes) -> PublicKey:
        """Return the key of its 32 bytes and a token's application; raises `Fault` if they are none."""
        read_ssh_key(pack_ssh_key(raw))
        if not _is_point(raw[:_RAW]):
            raise Fault("there is no such key")
        return cls(name_ssh_key(raw))

    @property
    def raw(self) -> bytes:
        """Return its 32 bytes, and after them the application of a token."""
        return parse_ssh_key(self.text)

    @property
    def fingerprint(self) -> str:
        """Return the SHA-256 of the key: short enough to compare over the telephone, group by group."""
        return hash_ssh_key(self.raw)

    def verify(self, statement: Any, signed: Mapping[str, Any]) -> None:
        """Raise `InvalidSignature` unless this key signed the statement; `Fault` or `ValueError`
        where there is no signature."""
        if set(signed) != {"statement", "sshsig"}:
            raise InvalidSignature
        made = read_ssh_signature(signed["sshsig"])
        if made.public != self.raw:
            raise InvalidSignature
        Ed25519PublicKey.from_public_bytes(self.raw[:_RAW]).verify(made.signature, made.signed_bytes(message_of(statement)))


@dataclass(frozen=True, slots=True)
class PrivateKey:
    """A private key of OpenSSH, by its file: ssh-keygen signs with it, or asks an agent or a FIDO token to."""

    signer: Signer

    @property
    def public(self) -> PublicKey:
        """Return its public half."""
        return PublicKey.of(self.signer.public)

    def sign(self, *, kind: str, subject: str, digest: str, name: str, why: str = "", at: str | None = None) -> dict[str, Any]:
        """Return a signed statement. The same statement gets the same signature, except from a FIDO token."""
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
        """Return an SSH signature in a namespace; raises `WrongUsage` where ssh-keygen makes none."""
        with _usage_errors(self.signer.file):
            return self.signer.sign(message, namespace)


def write_statement(signed: Any) -> str:
    """Return a signed statement as the text of a file."""
    return json.dumps(signed, indent=2, sort_keys=True) + "\n"


def check_signature(signed: Any, key: PublicKey, *, kind: str, subject: str, digest: str) -> Mapping[str, Any]:
    """Return the statement, if `key` signed it, and its kind, subject and hash are these; else raises `NotSigned`."""
    try:
        statement = signed["statement"]
        if set(statement) != set(FIELDS) or any(not isinstance(part, str) for part in statement.values()):
            raise ValueError
        key.verify(statement, signed)
    except (KeyError, TypeError, ValueError, Fault, InvalidSignature):
        raise NotSigned("the signature does not hold.", where=f"{kind} of {subject}") from None
    signed_for = (statement["kind"], statement["subject"], statement["hash"], statement["signer"])
    if signed_for != (kind, subject, digest, key.fingerprint):
        raise NotSigned("the signature is for something else.", where=f"{kind} of {subject}")
    return statement


def make_key(file: Path) -> PublicKey:
    """Make a key without a passphrase in `file` and `FILE.pub`, for made-up people; returns its public half."""
    with _usage_errors(file):
        command = [find_ssh_keygen(), "-q", "-t", "ed25519", "-N", "", "-C", file.name, "-f", str(file)]
    if file.exists() or subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode:  # noqa: S603
        raise WrongUsage("no key can be made there.", where=str(file), remedy="Name a new file in a folder of yours.")
    return read_key(file).public


def read_key(file: Path, *, attended: bool = True) -> PrivateKey:
    """Return the key in a file of OpenSSH, private or .pub. `attended`: somebody can type its passphrase."""
    if not file.exists():
        remedy = "Check the path; `ssh-keygen -t ed25519 -f FILE` makes a key."
        raise WrongUsage("there is no such file.", where=str(file), remedy=remedy)
    with _usage_errors(file):
        return PrivateKey(read_signer(file, attended=attended))


@contextmanager
def _usage_errors(file: Path) -> Generator[None]:
    """Turn errors of the stand-alone signer into the site's while the block runs."""
    try:
        yield
    except Unusable as error:
        raise WrongUsage(f"{error.what.removeprefix(f'{file}: ')}.", where=str(file)) from None


def read_public_key(file: Path) -> PublicKey:
    """Return the public key in a `.pub` file of OpenSSH."""
    try:
        kind_and_key = file.read_text(encoding="ascii").split()[:2]  # a remark may follow
        return PublicKey.parse(" ".join(kind_and_key), where=str(file))
    except (OSError, UnicodeDecodeError):
        raise WrongUsage("this public key cannot be read.", where=str(file)) from None
    except NotSigned as error:  # a named file that is no key is refused like one that does not exist
        raise WrongUsage(error.what, where=error.where, remedy=error.remedy) from None


def read_moment(text: str) -> datetime:
    """Return a moment that somebody signed."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise NotSigned("the signed moment is none.") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def read_statement(file: Path) -> dict[str, Any]:
    """Return a statement with its signature, which is in a file next to it, as `sign` or a person with ssh-keygen wrote them."""
    signature_path = signature_file(file)
    try:
        content, signature = _read_small(file), _read_small(signature_path).decode("ascii", "replace")
        statement: Json = read_json(content)
        has_form = (
            isinstance(statement, dict)
            and set(statement) == set(FIELDS)
            and all(isinstance(part, str) for part in statement.values())
        )
        if not has_form or message_of(statement) != content:
            raise Fault("it is not a statement")
    except OSError:
        what = "the statement, or its signature next to it, cannot be read."
        raise WrongUsage(what, where=str(file), remedy=f"Both are needed: {file.name} and {signature_path.name}.") from None
    except Fault:
        raise NotSigned("this is not a statement as `sign` writes it, in one line.", where=str(file)) from None
    return {"statement": statement, "sshsig": signature}


def _read_small(file: Path) -> bytes:
    with open_plain(file) as content:
        return content.read(_LONGEST_STATEMENT)


def check_person(name: str) -> str:
    """Return the name of a person, if it has the form that policies use; else raises `WrongUsage`."""
    if NAME.fullmatch(name) is None:
        raise WrongUsage("this is not a name for a person.", where=name, remedy="Use lower-case letters, digits, hyphens.")
    return name
