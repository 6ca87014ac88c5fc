"""The secret of a release between its reservation and the committed noise: a private file, never in a database."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from release_pipeline.errors import ReleasePipelineError
from release_pipeline.privacy.noise import SECRET_BYTES


class SecretLost(ReleasePipelineError):
    """Noise may have been drawn with a secret that is no longer there: the same noise cannot be made again."""


def secret_file(vault: Path, release: str) -> Path:
    """Where the secret of a release lies while it is needed."""
    return vault / "secrets" / release.replace("/", "~")


def make_secret(file: Path) -> bytes:
    """A new secret from the operating system, on disk before anybody uses it."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    secret = secrets.token_bytes(SECRET_BYTES)
    partial = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as new:
            new.write(secret)
            new.flush()
            os.fsync(new.fileno())
        partial.replace(file)
        _sync(file.parent)
    finally:
        partial.unlink(missing_ok=True)
    return secret


def read_secret(file: Path) -> bytes | None:
    """The secret, or None if there is none."""
    try:
        secret = file.read_bytes()
    except FileNotFoundError:
        return None
    return secret if len(secret) == SECRET_BYTES else None


def forget_secret(file: Path) -> None:
    """The secret is gone after this."""
    file.unlink(missing_ok=True)
    if file.parent.is_dir():
        _sync(file.parent)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
