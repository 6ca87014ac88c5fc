"""Sites with people, and the demo: built once, and never changed by a test, which works on a copy."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from release_pipeline.pipeline.opening import revise_release
from release_pipeline.pipeline.release import run_release
from release_pipeline.publish.publish import publish
from release_pipeline.trust.keys import PrivateKey
from tests.integration.people import CORRECTION, RELEASE, Demo, appoint, copy_site, make_keys, read_keys, review
from tests.integration.sites import ROOT, TinySite, make_site

collect_ignore = ["warm.py"]  # for other processes: what it imports takes seconds, and warns of what others deprecate


def _make_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """What `make` makes at a path, once for all workers: who comes meanwhile waits, and what failed is begun anew by the next."""
    base = factory.getbasetemp()
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shared"
    shared.mkdir(exist_ok=True)
    made, whole = shared / name, shared / f"{name}.whole"
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not whole.exists():
            shutil.rmtree(made, ignore_errors=True)
            make(made)
            whole.touch()
    return made


@pytest.fixture
def tiny(tmp_path: Path) -> TinySite:
    """A site where nothing has run."""
    return make_site(tmp_path / "site")


@pytest.fixture(scope="session")
def key_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everybody's key as a file, for processes of their own."""

    def make(folder: Path) -> None:
        folder.mkdir(mode=0o700)
        make_keys(folder)

    return _make_once(tmp_path_factory, "keys", make)


@pytest.fixture(scope="session")
def keys(key_folder: Path) -> dict[str, PrivateKey]:
    """Everybody's key, and a stranger's."""
    return read_keys(key_folder)


@pytest.fixture(scope="session")
def candidate(keys: dict[str, PrivateKey], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site with a list of trusted keys, an approved policy, and a candidate that nobody has reviewed."""

    def make(home: Path) -> None:
        tiny = make_site(home)
        appoint(tiny, keys)
        run_release(tiny.flow())

    return _make_once(tmp_path_factory, "candidate", make)


@pytest.fixture(scope="session")
def published(candidate: Path, keys: dict[str, PrivateKey], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same site after two reviews and the publication."""

    def make(home: Path) -> None:
        tiny = copy_site(candidate, home)
        review(tiny, keys, "ben", "cleo")
        publish(tiny.site, RELEASE, key=keys["robot"])

    return _make_once(tmp_path_factory, "published", make)


@pytest.fixture(scope="session")
def corrected(published: Path, keys: dict[str, PrivateKey], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same site after the next revision was published too; nobody has said yet that it supersedes the first."""

    def make(home: Path) -> None:
        tiny = copy_site(published, home)
        revise_release(tiny.site, "people", "1", why="a correction")
        run_release(tiny.flow())
        review(tiny, keys, "ben", "cleo", release=CORRECTION)
        publish(tiny.site, CORRECTION, key=keys["robot"])

    return _make_once(tmp_path_factory, "corrected", make)


@pytest.fixture(scope="session")
def finished_demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """The demo as its command leaves it, in a folder that was not there: once for all workers, for it takes a minute."""

    def make(folder: Path) -> None:
        folder.mkdir()
        command = [sys.executable, "-m", "release_pipeline.apps.cli", "demo", "--folder", str(folder / "demo")]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)})
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr
        (folder / "demo.txt").write_text(done.stdout)

    folder = _make_once(tmp_path_factory, "finished", make)
    return Demo(folder / "demo", (folder / "demo.txt").read_text())
