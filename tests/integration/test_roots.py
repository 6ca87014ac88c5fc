"""docs/roots.md, executed: an officer whose key is lost, stolen keys, an officer who leaves; and what that leaves of a site.

The site that docs/publishing.md ends with is made in process; from there on every command is a process of its own.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from release_pipeline.errors import Blocked
from release_pipeline.pipeline.opening import open_release, revise_release
from release_pipeline.pipeline.release import run_release
from release_pipeline.publish.publish import publish, retract, supersede
from release_pipeline.publish.verification import verify
from release_pipeline.store.registry import ReleaseId
from release_pipeline.store.site import Site
from release_pipeline.trust.approvals import approve_candidate, approve_policy, approve_populations
from release_pipeline.trust.keys import PrivateKey, make_key, read_key
from release_pipeline.trust.members import trust_key
from release_pipeline.trust.revocation import REVOKED_FILE, revoke
from tests.integration.publishing import failures_of, words_of
from tests.integration.shells import execute, open_shell, read_blocks

pytestmark = pytest.mark.slow
ROLES = {"olga": "officer", "ana": "steward", "ben": "reviewer", "cleo": "reviewer", "robot": "service"}
FIRST = ReleaseId("visits", "once")
SECOND, THIRD = FIRST.next, FIRST.next.next


@dataclass(frozen=True)
class Walked:
    """The folder in which the page was executed, and what its commands printed."""

    folder: Path
    done: subprocess.CompletedProcess[str]
    officer: str

    @property
    def package(self) -> Path:
        """The package that the page publishes, under the officer who came second."""
        return self.folder / "office" / "releases" / str(THIRD)

    @property
    def revoked(self) -> Path:
        """The public list of revoked keys."""
        return self.folder / "office" / "releases" / REVOKED_FILE


def read_keys(folder: Path) -> dict[str, PrivateKey]:
    return {name: read_key(folder / "keys" / name) for name in ROLES}


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What docs/publishing.md makes, up to the candidate of its correction, which nobody has reviewed; each key as a file."""
    folder = tmp_path_factory.mktemp("office")
    for part in ("keys", "office/policies", "office/data"):
        (folder / part).mkdir(parents=True)
    for name in ROLES:
        make_key(folder / "keys" / name)
    [files] = [block for block in read_blocks("publishing.md") if "visits.csv" in block]
    writing = "".join(line for line in files.splitlines(keepends=True) if not line.startswith(("mkdir", "release-pipeline")))
    subprocess.run(["bash", "-e", "-u"], input=writing, cwd=folder, text=True, check=True)
    site, keys = Site(folder / "office", {}), read_keys(folder)
    for name, role in ROLES.items():
        trust_key(site, name, role, keys[name].public, key=keys["olga"])
    approve_policy(site, "visits", key=keys["olga"])
    approve_populations(site, key=keys["olga"])
    run_release(open_release(site, "visits", "once"))
    publish_reviewed(site, keys, FIRST)
    revise_release(site, "visits", "once", why="clinic west was incomplete")
    run_release(open_release(site, "visits", "once"))
    return folder


def publish_reviewed(site: Site, keys: Mapping[str, PrivateKey], release: ReleaseId) -> Path:
    for name in ("ben", "cleo"):
        approve_candidate(site, release, key=keys[name])
    return publish(site, release, key=keys["robot"])


@pytest.fixture(scope="module")
def walked(office: Path, tmp_path_factory: pytest.TempPathFactory) -> Walked:
    """The page, from top to bottom in one shell, which stops at the first command that does not end as the page says."""
    folder = tmp_path_factory.mktemp("walked") / "empty"
    shutil.copytree(office, folder)
    site, keys = Site(folder / "office", {}), read_keys(folder)
    publish_reviewed(site, keys, SECOND)
    supersede(site, FIRST, SECOND, key=keys["olga"])
    retract(site, FIRST, key=keys["olga"], why="clinic west was incomplete")
    officer = keys["olga"].public.fingerprint
    begin = [
        'as() { echo "--key keys/$1"; }',
        "export RELEASE_PIPELINE_HOME=$PWD/office",
        f"officer={officer}",
    ]
    with open_shell(folder.parent / "bin") as environment:
        done = execute("\n".join([*begin, *read_blocks("roots.md")]), folder, environment)
    return Walked(folder, done, officer)


def test_the_walk_through_works_as_it_is_written(walked: Walked) -> None:
    """Every command ends as the page says; what is refused is refused for what the page says."""
    done = walked.done
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    assert "Traceback" not in done.stderr
    assert "NOT verified" not in done.stdout
    refusals = ("1 of the recovery keys signed it, and 2 must", "not in the list of trusted keys", "this key was revoked")
    assert [done.stderr.count(words) for words in refusals] == [1, 1, 1]
    assert done.stdout.count("Verified: nothing failed.") == done.stdout.count("erified") > 3


@pytest.mark.parametrize("before", [True, False], ids=["approved before", "approved since"])
def test_approvals_with_a_key_that_was_revoked(office: Path, tmp_path: Path, *, before: bool) -> None:
    """What the reviewer approved before the date counts, and is published. What was approved since does not, whoever did it:
    nothing is published until somebody else has approved."""
    shutil.copytree(office / "office", tmp_path / "office")
    site, keys = Site(tmp_path / "office", {}), read_keys(office)
    moment = datetime.now(UTC).replace(microsecond=0)
    for name in ("ben", "cleo"):
        approve_candidate(site, SECOND, key=keys[name])
    if before:
        time.sleep(1.1)  # moments are whole seconds
        moment = datetime.now(UTC).replace(microsecond=0)
    revoke(site, "ben", since=moment, why="stolen", key=keys["olga"])
    if before:
        publish(site, SECOND, key=keys["robot"])
    else:
        with pytest.raises(Blocked, match="1 of 2"):
            publish(site, SECOND, key=keys["robot"])
    findings = verify(site.home)
    assert failures_of(findings) == []
    assert any("counts no more" in words and "(approved)" in words for words in words_of(findings, "note")) is not before
