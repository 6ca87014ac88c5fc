"""A restore, and its acceptance, killed at every change of a name on the disk; and a backup in the middle of a run.

With real processes: nothing but a kill shows what is left by one.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from release_pipeline.apps.cli.program import main
from release_pipeline.operate import survivors as entering
from release_pipeline.operate.backup import restore, write_backup
from release_pipeline.pipeline.opening import open_release
from release_pipeline.pipeline.release import run_release
from release_pipeline.publish.verification import verify
from release_pipeline.store.files import Probe
from release_pipeline.store.registry import ReleaseId
from release_pipeline.store.site import Site
from release_pipeline.store.swap import find_left
from release_pipeline.trust.keys import PrivateKey, read_key
from tests.integration.people import RELEASE, copy_site
from tests.integration.processes import LONGEST, child, hear
from tests.integration.publishing import failures_of
from tests.integration.sites import TinySite, make_rows

pytestmark = pytest.mark.slow
CHANGES = ("os.rename", "shutil.rmtree")
LOST, NAMED = RELEASE, ReleaseId("people", "2")
GONE = -1  # in the place of a number: when nothing is in the place of the site
CHARGED, CLUSTERED, DRAWN = "the loss is charged", "the clusters are committed", "the masked table is committed"
DONE = "done"


def kill_before(place: int, home: Path, work: Callable[[], object], lines: Connection) -> None:
    """Do the work, killed before the change of a name with that number; tells each."""
    count = 0

    def look(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal count
        if event not in CHANGES:
            return
        lines.send(f"{event} {Path(str(arguments[0])).name}")
        if count == place or (place == GONE and not home.exists()):
            os.kill(os.getpid(), signal.SIGKILL)
        count += 1

    sys.addaudithook(look)
    work()
    lines.send(DONE)


def restore_and_die(file: Path, home: Path, place: int, lines: Connection) -> None:
    """Put the backup back."""
    kill_before(place, home, lambda: restore(file, home), lines)


def accept_and_die(home: Path, key: Path, place: int, lines: Connection) -> None:
    """Accept what was put back."""
    olga = read_key(key)
    kill_before(place, home, lambda: entering.accept(Site(home, {}), key=olga, named={NAMED: {"records": 60}}), lines)


def run_and_wait(home: Path, backups: Path, lines: Connection) -> None:
    """Run release 2, and wait in the middle until a backup was taken."""

    def wait(boundary: str) -> None:
        lines.send(boundary)
        end = time.monotonic() + LONGEST
        while boundary in (CLUSTERED, DRAWN) and not (backups / f"{boundary}.tar").exists() and time.monotonic() < end:
            time.sleep(0.01)

    run_release(open_release(Site(home, {}), "people", "2", probe=Probe(reached=wait)))
    lines.send(DONE)


def listen(hears: Connection) -> list[str]:
    """What a child tells until it is done, or killed."""
    told: list[str] = []
    try:
        while not told or told[-1] != DONE:
            told.append(hear(hears))
    except EOFError:
        pass
    return told


@dataclass(frozen=True)
class Broken:
    """A site, and a backup of it that is one release old."""

    home: Path
    backup: Path


@pytest.fixture(scope="module")
def broken(candidate: Path, published: Path, tmp_path_factory: pytest.TempPathFactory) -> Broken:
    """A site that published a release after its backup was made."""
    folder = tmp_path_factory.mktemp("broken")
    write_backup(TinySite(candidate).site, folder / "site.tar")
    return Broken(published, folder / "site.tar")


def test_a_restore_that_was_killed_is_done_by_the_same_command(
    broken: Broken, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whenever it is killed, the same command does all of it, knows of every lost charge, and nothing that was there is gone."""
    moments, gone = list[str](), 0
    while True:
        tiny = copy_site(broken.home, tmp_path / str(len(moments)) / "site")
        with child(restore_and_die, broken.backup, tiny.home, len(moments)) as hears:
            told = listen(hears)
        if told[-1] == DONE:
            break
        moments.append(told[-1])
        if not tiny.home.exists():
            gone += 1
            for command in (["status", "--home"], ["verify"]):
                assert main([*command, str(tiny.home)]) == 1
                assert "a restore of this site is at work, or was stopped halfway" in capsys.readouterr().err
        done = restore(broken.backup, tiny.home)
        assert ([entry["release"] for entry in done.lost], done.all_known) == ([str(LOST)], True), moments[-1]
        assert not find_left(tiny.home).exists()
        packages = [*tiny.home.parent.glob("site.before-restore-*/releases/people/1/r1/SHA256SUMS")]
        assert len(packages) == 1, moments[-1]
        assert failures_of(verify(tiny.home, deep=True)) == []
    assert gone == 1, moments
    assert len(moments) >= 5, moments


def test_a_site_made_where_a_restore_was_stopped_is_not_touched(broken: Broken, tmp_path: Path) -> None:
    tiny = copy_site(broken.home, tmp_path / "site")
    with child(restore_and_die, broken.backup, tiny.home, GONE) as hears:
        listen(hears)
    assert not tiny.home.exists()
    (tiny.home / "policies").mkdir(parents=True)
    assert main(["restore", str(broken.backup), "--into", str(tiny.home)]) == 1
    assert [path.name for path in tiny.home.iterdir()] == ["policies"]
    shutil.rmtree(tiny.home)
    assert [entry["release"] for entry in restore(broken.backup, tiny.home).lost] == [str(LOST)]


def test_an_acceptance_that_was_killed_is_none_or_whole(
    broken: Broken, key_folder: Path, keys: dict[str, PrivateKey], tmp_path: Path
) -> None:
    """Killed before each change of a name: either nothing was entered, and the officer does it again, or all of it was."""
    restored = copy_site(broken.home, tmp_path / "restored" / "site")
    restore(broken.backup, restored.home)
    moments = list[str]()
    while True:
        tiny = copy_site(restored.home, tmp_path / str(len(moments)) / "site")
        with child(accept_and_die, tiny.home, key_folder / "olga", len(moments)) as hears:
            told = listen(hears)
        if told[-1] != DONE:
            moments.append(told[-1])
        if not any(event.kind == "restored" for event in tiny.events()):
            entering.accept(tiny.site, key=keys["olga"], named={NAMED: {"records": 60}})
        assert [charge.id for charge in tiny.charges()] == [LOST, NAMED]
        assert failures_of(verify(tiny.home, deep=True)) == []
        if told[-1] == DONE:
            break
    assert moments


def test_a_backup_in_the_middle_of_a_run(candidate: Path, keys: dict[str, PrivateKey], tmp_path: Path) -> None:
    """Taken while a process masks: the site that it restores to is whole, and the release goes on to the same candidate."""
    tiny, backups = copy_site(candidate, tmp_path / "site"), tmp_path / "backups"
    backups.mkdir()
    with child(run_and_wait, tiny.home, backups) as hears:
        told = ""
        while told != DONE:
            told = hear(hears)
            if told in (CHARGED, CLUSTERED, DRAWN):  # at the first it works in the vault, and the backup waits
                write_backup(tiny.site, backups / f"{told}.tar")
    ended = tiny.status("2").candidate_hash
    for boundary in (CHARGED, CLUSTERED, DRAWN):
        copy = TinySite(tmp_path / boundary)
        restore(backups / f"{boundary}.tar", copy.home)
        assert copy.status("2").candidate_hash is None, "the backup is not of the middle"
        assert failures_of(verify(copy.home, deep=True)) == []
        entering.accept(copy.site, key=keys["olga"], named={})
        assert failures_of(verify(copy.home, deep=True)) == []
        copy.write_rows(make_rows())
        run_release(copy.flow("2"))
        assert copy.status("2").candidate_hash == ended
        assert failures_of(verify(copy.home, deep=True)) == []
