"""docs/five-people.md, executed with real accounts: a lost key, a stolen key, a broken disk, and publishing goes on."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from release_pipeline.verifier.command import verify_path
from tests.integration.publishing import failures_of
from tests.integration.shells import PEOPLE, execute, open_shell, read_blocks

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.getuid() != 0, reason="only root can become other accounts")]
Done = subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def walked() -> Iterator[tuple[Path, Done]]:
    """The page, from top to bottom, in a folder that every account can reach; what it printed."""
    folder = Path(tempfile.mkdtemp(dir="/tmp", prefix="five-people-"))
    folder.chmod(0o755)
    for name, uid in PEOPLE.items():
        (folder / "home" / name).mkdir(parents=True, mode=0o700)
        os.chown(folder / "home" / name, uid, uid)
    make_office(folder / "srv" / "office")
    (folder / "tmp").mkdir()
    (folder / "tmp").chmod(0o1777)
    with open_shell(folder / "bin") as environment:
        shell = {**environment, "TMPDIR": str(folder / "tmp")}
        yield folder, execute("\n".join(read_blocks("five-people.md")), folder, shell)
    shutil.rmtree(folder)


def make_office(home: Path) -> None:
    """What ana has written: the files of docs/publishing.md, with a larger cap."""
    for part in ("policies", "data"):
        (home / part).mkdir(parents=True)
    [files] = [block for block in read_blocks("publishing.md") if "visits.csv" in block]
    writing = "".join(line for line in files.splitlines(keepends=True) if not line.startswith(("mkdir", "release-pipeline")))
    subprocess.run(["bash", "-e", "-u"], input=writing, cwd=home.parent, text=True, check=True)
    caps = home / "populations.yaml"
    caps.write_text(caps.read_text().replace("epsilon: 3", "epsilon: 6"))
    (home / "data").chmod(0o700)
    for path in (home.parent, home, *home.rglob("*")):
        os.chown(path, PEOPLE["ana"], PEOPLE["ana"])


def test_the_walk_through_works_as_it_is_written(walked: tuple[Path, Done]) -> None:
    """Every command ends as the page says, and what is refused is refused for what the page says."""
    _, done = walked
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "Traceback" not in done.stderr
    for words, count in (
        ("Permission denied", 3),
        ("it is there already", 0),
        ("the vault does not know of visits/once/r1", 1),
        ("1 of the recovery keys signed it, and 2 must", 1),
        ("this key was revoked", 1),
        ("the officer has not entered what was charged after it", 1),
    ):
        assert done.stderr.count(words) == count, (words, done.stderr)
    assert done.stdout.count("NOT verified") == done.stdout.count("name the publisher's officers.json with --officers") == 1
    assert "accepted; 2 charges entered" in done.stdout
    assert "5 charges to patients add up to 5" in done.stdout


def test_a_thiefs_rejection_counts_no_more(walked: tuple[Path, Done]) -> None:
    """`status` says first that it was rejected, then, after the revocation, that it waits for reviewers."""
    _, done = walked
    assert re.findall(r"^visits/once/r2 +(rejected|candidate) ", done.stdout, re.MULTILINE) == ["rejected", "candidate"]


def test_who_owns_what_in_the_end(walked: tuple[Path, Done]) -> None:
    """No key of the officer's stayed with ana; and the packages verify for whoever knows either officer."""
    folder, _ = walked
    assert not [file.name for file in (folder / "home" / "ana").glob("olga*") if file.suffix != ".pub"]
    releases = folder / "srv" / "office" / "releases"
    officer = re.findall("[0-9a-f]{64}", (folder / "srv" / "office" / "site.yaml").read_text())
    for release in ("r1", "r2", "r5"):
        assert failures_of(verify_path(releases / "visits" / "once" / release, officer, str(releases / "revoked.json"))) == []
