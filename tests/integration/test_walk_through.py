"""docs/publishing.md, executed: every block, in one shell, from top to bottom; and what it says of packages without our
software, tried on packages that somebody forged."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import pytest

from release_pipeline.trust.keys import PrivateKey, make_key, read_key
from release_pipeline.verifier.attestation import ATTESTATION, ATTESTATION_SSH, PACKAGE_NAMESPACE
from release_pipeline.verifier.command import verify_path
from release_pipeline.verifier.statements import name_ssh_key
from tests.integration.publishing import failures_of, sums_of
from tests.integration.shells import execute, open_shell, read_blocks

pytestmark = pytest.mark.slow
BLOCKS = read_blocks("publishing.md")
BY_HAND = next(block for block in BLOCKS if "officer_alone" in block)
TAKE_APART = next(block for block in BLOCKS if "take_apart() {" in block).partition("\ntake_apart stranger")[0]


@dataclass(frozen=True)
class Walked:
    """The folder in which the page was executed, the shell's environment, and what its commands printed."""

    folder: Path
    environment: dict[str, str]
    done: subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walked]:
    """The page, from top to bottom."""
    folder = tmp_path_factory.mktemp("walk")
    empty = folder / "empty"
    empty.mkdir()
    with open_shell(folder / "bin") as environment:
        unzip = folder / "bin" / "unzip"  # not everywhere
        unzip.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m zipfile -e "$2" "$4"\n')
        unzip.chmod(0o755)
        yield Walked(empty, environment, execute("\n".join(BLOCKS), empty, environment))


def test_the_walk_through_works_as_it_is_written(walked: Walked) -> None:
    """From five keys to a dossier that verifies; every command ends well, and the shell stops at the first that does not."""
    done, empty = walked.done, walked.folder
    assert len(BLOCKS) >= 8
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "Traceback" not in done.stderr
    assert done.stdout.count("Verified: nothing failed.") == 5
    assert "NOT verified: 1 failed." in done.stdout
    package = empty / "office" / "releases" / "visits" / "once"
    assert sorted(folder.name for folder in package.iterdir()) == ["r1", "r2"]
    assert not (package / "r1" / "data.csv").exists()
    assert "visits/once/r1" in (package / "r2" / "privacy-card.json").read_text()


def forge(package: Path, folder: Path, signers: list[str]) -> None:
    """A package with other data, whose list of keys, statement and sums somebody signed who is in no list; in `allowed_signers`
    these lines stand before their own."""
    made = {name: folder.parent / name for name in ("evil", "helper")}
    for file in made.values():
        make_key(file)
    evil, helper = (read_key(file) for file in made.values())
    shutil.copytree(package, folder)
    (folder / "data.csv").write_bytes((folder / "data.csv").read_bytes().replace(b"north", b"south"))
    listed = {"olga": {"key": evil.public.text, "role": "officer"}, "robot": {"key": helper.public.text, "role": "service"}}
    (folder / "trusted-keys.json").write_text(json.dumps({"keys": listed}))
    sign(
        evil, folder / "trusted-keys.json", folder / "trusted-keys.sig", kind="trusted-keys", subject="trusted-keys", name="olga"
    )
    own = [f"{name} {name_ssh_key(key.public.raw)}" for name, key in (("olga", evil), ("robot", helper))]
    lines = [line.format(forger=name_ssh_key(evil.public.raw)) for line in signers]
    (folder / "allowed_signers").write_text("".join(f"{line}\n" for line in [*lines, *own]))
    statement = json.loads((folder / ATTESTATION).read_text())
    for subject in statement["subject"]:
        subject["digest"]["sha256"] = sha256((folder / subject["name"]).read_bytes()).hexdigest()
    (folder / ATTESTATION).write_text(json.dumps(statement, indent=2) + "\n")
    (folder / ATTESTATION_SSH).write_text(helper.sign_for_ssh((folder / ATTESTATION).read_bytes(), PACKAGE_NAMESPACE))
    files = {file.name: file.read_bytes() for file in folder.iterdir()}
    (folder / "SHA256SUMS").write_bytes(sums_of({name: files[name] for name in files if name != "SHA256SUMS.sig"}))
    release = json.loads((folder / "privacy-card.json").read_text())["release"]
    sign(helper, folder / "SHA256SUMS", folder / "SHA256SUMS.sig", kind="package", subject=release, name="robot")


def sign(key: PrivateKey, file: Path, output: Path, *, kind: str, subject: str, name: str) -> None:
    digest = sha256(file.read_bytes()).hexdigest()
    output.write_text(json.dumps(key.sign(kind=kind, subject=subject, digest=digest, name=name)))


@pytest.mark.parametrize(
    "signers", [[], ["{officer}"], ["{officer}", "* {forger}"], ["* {forger}", "{officer}"], ["{officer}", "olga {forger}"]]
)
def test_a_forged_package_does_not_pass_by_hand(walked: Walked, tmp_path: Path, signers: list[str]) -> None:
    """Whatever stands in its list of signers, the officer's own key with others that count for everybody; nor by `verify`."""
    stranger = walked.folder / "stranger"
    officer = next(line for line in (stranger / "allowed_signers").read_text().splitlines() if line.startswith("olga "))
    fingerprint = next(
        line.split()[1]
        for line in (walked.folder / "office" / "site.yaml").read_text().splitlines()
        if line.startswith("officer:")
    )
    start = f"officer={fingerprint}\n{TAKE_APART}\n"
    (tmp_path / "good").mkdir()
    shutil.copytree(stranger, tmp_path / "good" / "stranger")
    assert execute(start + BY_HAND, tmp_path / "good", walked.environment).returncode == 0
    (tmp_path / "bad").mkdir()
    forge(stranger, tmp_path / "bad" / "stranger", [line.replace("{officer}", officer) for line in signers])
    assert execute(start + BY_HAND, tmp_path / "bad", walked.environment).returncode != 0
    assert failures_of(verify_path(tmp_path / "bad" / "stranger", [fingerprint]))
