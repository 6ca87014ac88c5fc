"""Keys in memory, for tests that sign often or with fixed keys: they sign as ssh-keygen does, byte for byte."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from release_pipeline.signer.keys import Signer
from release_pipeline.trust.keys import PrivateKey
from release_pipeline.verifier.statements import SSH_NAMESPACE, armor_ssh, pack_ssh


@dataclass(frozen=True)
class MemorySigner(Signer):
    """A signer without a file."""

    secret: bytes = b""

    def sign(self, message: bytes, namespace: str = SSH_NAMESPACE) -> str:
        """The SSH signature, after PROTOCOL.sshsig of OpenSSH."""
        name, hashed = namespace.encode(), hashlib.sha512(message).digest()
        signature = Ed25519PrivateKey.from_private_bytes(self.secret).sign(b"SSHSIG" + pack_ssh(name, b"", b"sha512", hashed))
        key = pack_ssh(b"ssh-ed25519", self.public)
        parts = (key, name, b"", b"sha512", pack_ssh(b"ssh-ed25519", signature))
        return armor_ssh(b"SSHSIG\0\0\0\1" + pack_ssh(*parts))


def hold(secret: Ed25519PrivateKey) -> PrivateKey:
    """A person's key that lies in memory."""
    return PrivateKey(MemorySigner(secret.public_key().public_bytes_raw(), Path("memory"), secret=secret.private_bytes_raw()))
