"""The people of a site, each with a key of their own, and what they do to a release together."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.serialization import load_ssh_private_key

from release_pipeline.store.registry import ReleaseId
from release_pipeline.trust.approvals import approve_candidate, approve_policy, approve_populations
from release_pipeline.trust.keys import PrivateKey, make_key
from release_pipeline.trust.members import trust_key
from tests.integration.sites import TinySite
from tests.ssh_keys import hold

PEOPLE = {"olga": "officer", "ana": "steward", "ben": "reviewer", "cleo": "reviewer", "dora": "reviewer", "robot": "service"}
STRANGER = "stranger"  # somebody with a key that is in no list
RELEASE = ReleaseId("people", "1")
CORRECTION = RELEASE.next


@dataclass(frozen=True)
class Demo:
    """The demo's folder, and what the command printed that made it."""

    home: Path
    printed: str


def make_keys(folder: Path) -> None:
    """Everybody's key as a file, and a stranger's."""
    for name in (*PEOPLE, STRANGER):
        make_key(folder / name)


def read_keys(folder: Path) -> dict[str, PrivateKey]:
    """The same, in memory: they sign in no time, and what they sign is what ssh-keygen signs with the files."""
    files = {name: (folder / name).read_bytes() for name in (*PEOPLE, STRANGER)}
    return {name: hold(load_ssh_private_key(content, None)) for name, content in files.items()}


def set_passphrase(file: Path, old: str, new: str) -> None:
    """Another passphrase of a key."""
    subprocess.run(["ssh-keygen", "-q", "-p", "-P", old, "-N", new, "-f", str(file)], check=True, stdout=subprocess.DEVNULL)


def copy_site(site: Path, home: Path) -> TinySite:
    """The same site elsewhere."""
    shutil.copytree(site, home)
    return TinySite(home)


def appoint(tiny: TinySite, keys: dict[str, PrivateKey]) -> None:
    """The officer signs the list of trusted keys, the policy and the caps."""
    trust_people(tiny, keys)
    approve_files(tiny, keys)


def trust_people(tiny: TinySite, keys: Mapping[str, PrivateKey]) -> None:
    """The officer signs the list of trusted keys."""
    for name, role in PEOPLE.items():
        trust_key(tiny.site, name, role, keys[name].public, key=keys["olga"])


def approve_files(tiny: TinySite, keys: dict[str, PrivateKey]) -> None:
    """The officer approves the policy and the caps as they are now."""
    approve_policy(tiny.site, "people", key=keys["olga"])
    approve_populations(tiny.site, key=keys["olga"])


def review(tiny: TinySite, keys: dict[str, PrivateKey], *names: str, release: ReleaseId = RELEASE) -> None:
    """Approvals of the candidate."""
    for name in names:
        approve_candidate(tiny.site, release, key=keys[name])
