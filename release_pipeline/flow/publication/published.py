"""What a published package is, and may have become: its signature, and the tombstones beside it."""

from __future__ import annotations

from pathlib import Path

from release_pipeline.flow.states import RETRACTED, SUPERSEDED, ReleaseStatus
from release_pipeline.flow.sums import is_whole, read_sums
from release_pipeline.flow.trust.keys import write_statement
from release_pipeline.flow.trust.office import OFFICERS

SIGNATURE = "SHA256SUMS.sig"
TOMBSTONES = {RETRACTED: "RETRACTED", SUPERSEDED: "SUPERSEDED"}  # a state, and the name of the files that tell of it


def package_is_whole(folder: Path, status: ReleaseStatus) -> bool:
    """Whether a package is what was published, signature and all, beside the tombstones, and without the data if it was
    retracted."""
    signature = folder / SIGNATURE
    if not signature.is_file() or signature.read_bytes() != write_statement(status.package_signed).encode():
        return False
    retracted = status.state == RETRACTED
    if retracted and any(folder.glob("data.*")):
        return False
    away = [name for name in read_sums(folder, status.package_hash) if name.startswith("data.")] if retracted else ()
    return is_whole(folder, status.package_hash, besides=(SIGNATURE, *tombstone_files()), without=away)


def tombstone_files() -> list[str]:
    """What may be in a package and not in its list of sums, for it came later."""
    return [f"{name}.{ending}" for name in TOMBSTONES.values() for ending in ("json", "md", OFFICERS)]
