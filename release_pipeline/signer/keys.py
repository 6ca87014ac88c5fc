"""Keys of OpenSSH that sign statements: files, agents and tokens, through ssh-keygen."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from release_pipeline.verifier.documents import Fault, WrongUsage
from release_pipeline.verifier.ed25519 import verify_signature
from release_pipeline.verifier.statements import SSH_NAMESPACE, hash_ssh_key, read_ssh_key, read_ssh_signature

NOT_A_KEY = "this is not a key of OpenSSH, of the kind ed25519 or ed25519-sk"
PATIENCE = 60.0  # seconds for a passphrase or a touch: the caller may hold a lock meanwhile


@dataclass(frozen=True)
class Signer:
    """A key of OpenSSH that ssh-keygen signs with. `file`: the private key, or the .pub of one in an agent or a FIDO token.
    `attended`: somebody can type a passphrase."""

    public: bytes
    file: Path
    attended: bool = True

    @property
    def fingerprint(self) -> str:
        """Return the fingerprint, as statements name it."""
        return hash_ssh_key(self.public)

    def sign(self, message: bytes, namespace: str = SSH_NAMESPACE) -> str:
        """Return the SSH signature of a message; raises `WrongUsage` where ssh-keygen makes no valid one."""
        text = self._ask_ssh_keygen(message, namespace)
        try:
            made = read_ssh_signature(text, namespace)
        except Fault as fault:
            raise WrongUsage(f"ssh-keygen made a signature that cannot be used: {fault.what}") from None
        if made.public != self.public or not verify_signature(self.public[:32], made.signed_bytes(message), made.signature):
            raise WrongUsage("the signature by ssh-keygen does not hold, or is by another key")
        return text

    def _ask_ssh_keygen(self, message: bytes, namespace: str) -> str:
        command = [find_ssh_keygen(), "-q", "-Y", "sign", "-f", str(self.file), "-n", namespace]
        # ssh-keygen asks at the terminal, also where a desktop runs; without a session it has no terminal and cannot ask.
        settings = {"SSH_ASKPASS_REQUIRE": "never", **os.environ} if sys.stdin and sys.stdin.isatty() else None
        with subprocess.Popen(  # noqa: S603  a program of the system, and no shell
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=settings, start_new_session=not self.attended
        ) as running:
            try:
                signature, _ = running.communicate(message, timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                running.terminate()  # it gives the terminal its echo back
                raise WrongUsage(f"nobody answered ssh-keygen within {PATIENCE:.0f} seconds; nothing was signed") from None
        if running.returncode:
            raise WrongUsage("ssh-keygen did not sign; its own message says why")
        return signature.decode("ascii", "replace")


def find_ssh_keygen() -> str:
    """Return the path of ssh-keygen; raises `WrongUsage` where it is not installed."""
    program = shutil.which("ssh-keygen")
    if program is None:
        raise WrongUsage("ssh-keygen is not installed here: install the client of OpenSSH")
    return program


def read_signer(file: Path, *, attended: bool = True) -> Signer:
    """Return the signer with the key in a file of OpenSSH, private or .pub."""
    try:
        public = read_ssh_key(_find_ssh_public(file.read_text(encoding="ascii")))
    except (OSError, UnicodeDecodeError):
        raise WrongUsage(f"{file}: there is no such key, or it cannot be read") from None
    except (Fault, ValueError, IndexError):
        raise WrongUsage(f"{file}: {NOT_A_KEY}") from None
    return Signer(public, file.resolve(), attended)


def _find_ssh_public(text: str) -> bytes:
    """Return the public half in a file of OpenSSH, private (before the encrypted part) or .pub."""
    if not text.startswith("-----BEGIN OPENSSH PRIVATE KEY-----"):
        return base64.b64decode(text.split()[1], validate=True)
    content, parts = base64.b64decode("".join(text.split("-----")[2].split())), list[bytes]()
    content = content.partition(b"openssh-key-v1\0")[2]
    for place in range(5):  # cipher, derivation, its options, the number of keys, the public one
        size = 0 if place == 3 else int.from_bytes(content[:4], "big")
        parts.append(content[4 : 4 + size])
        content = content[4 + size :]
    return parts[4]
