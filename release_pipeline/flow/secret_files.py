"""How secrets lie on the disk: files of their owner alone, whole or not there. And what a test may put in the place of the
system."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from release_pipeline.privacy.noise import SECRET_BYTES
from release_pipeline.store.folders import sync


def _nothing(_: str) -> None: ...


def _draw_secret() -> bytes:
    return secrets.token_bytes(SECRET_BYTES)


@dataclass(frozen=True, slots=True)
class Probe:
    """What a test may put in the place of the system's own: `reached` is called at every boundary that a release reaches, and
    `new_secret` gives a new secret. Neither the command line nor Dagster nor a policy can set them."""

    reached: Callable[[str], None] = _nothing
    new_secret: Callable[[], bytes] = _draw_secret


PLAIN = Probe()


def list_partials(file: Path) -> list[Path]:
    """What broken attempts to write a file left."""
    return [path for path in file.parent.iterdir() if path.name.startswith(f".{file.name}.")]


def keep_secret(file: Path, secret: bytes, probe: Probe) -> None:
    """A new secret on the disk before anybody uses it, in the place of whatever lies there."""
    for left in list_partials(file):
        left.unlink(missing_ok=True)
    partial = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as new:
            new.write(secret)
            new.flush()
            os.fsync(new.fileno())
        probe.reached("the secret is written, not yet in its place")
        partial.replace(file)
        sync(file.parent)
    finally:
        partial.unlink(missing_ok=True)


def read_secret(file: Path) -> bytes:
    """The secret, or nothing where there is no file."""
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return b""


def remove_secret(file: Path) -> None:
    """The secret is gone after this, and so is what a broken attempt left of it."""
    if file.parent.is_dir():
        for left in (file, *list_partials(file)):
            left.unlink(missing_ok=True)
        sync(file.parent)


def check_value(secret: bytes, *, what: str) -> str:
    """What the registry notes of a secret: it tells another one from it, and nothing of it. `what` it is the secret of."""
    return hashlib.sha256(f"release-pipeline: check value of {what}\n".encode() + secret).hexdigest()


def is_secret(secret: bytes, noted: str, *, what: str) -> bool:
    """Whether this is the secret whose check value was noted."""
    return len(secret) == SECRET_BYTES and hmac.compare_digest(check_value(secret, what=what), noted)
