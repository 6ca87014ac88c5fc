"""Sites with people, and the demo: built once, and never changed by a test, which works on a copy."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from release_pipeline.flow.opening import revise_release
from release_pipeline.flow.publication.publish import publish
from release_pipeline.flow.trust.keys import PrivateKey
from tests.integration.people import CORRECTION, RELEASE, Demo, appoint, copy_site, make_keys, read_keys, review
from tests.integration.sites import ROOT, make_site

collect_ignore = ["warm.py"]  # for other processes: what it imports takes seconds, and warns of what others deprecate


@pytest.fixture(scope="session")
def finished_demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """The demo as its command leaves it, in a folder that was not there: once for all workers, for it takes a minute."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    home, printed = shared / "finished" / "demo", shared / "demo.txt"
    with (shared / "demo.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not printed.exists():
            command = [sys.executable, "-m", "release_pipeline.cli", "demo", "--folder", str(home)]
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)}
            )
            assert done.returncode == 0, done.stderr
            assert "Traceback" not in done.stderr
            printed.write_text(done.stdout)
    return Demo(home, printed.read_text())


@pytest.fixture(scope="session")
def key_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everybody's key as a file, for processes of their own."""
    folder = tmp_path_factory.mktemp("keys")
    make_keys(folder)
    return folder


@pytest.fixture(scope="session")
def keys(key_folder: Path) -> dict[str, PrivateKey]:
    """Everybody's key, and a stranger's."""
    return read_keys(key_folder)


@pytest.fixture(scope="session")
def candidate(keys: dict[str, PrivateKey], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site with a list of trusted keys, an approved policy, and a candidate that nobody has reviewed."""
    tiny = make_site(tmp_path_factory.mktemp("candidate") / "site")
    appoint(tiny, keys)
    tiny.flow().run()
    return tiny.home


@pytest.fixture(scope="session")
def published(candidate: Path, keys: dict[str, PrivateKey], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same site after two reviews and the publication."""
    tiny = copy_site(candidate, tmp_path_factory.mktemp("published") / "site")
    review(tiny, keys, "ben", "cleo")
    publish(tiny.site, RELEASE, key=keys["robot"])
    return tiny.home


@pytest.fixture(scope="session")
def corrected(published: Path, keys: dict[str, PrivateKey], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same site after the next revision was published too; nobody has said yet that it supersedes the first."""
    tiny = copy_site(published, tmp_path_factory.mktemp("corrected") / "site")
    revise_release(tiny.site, "people", "1", why="a correction")
    tiny.flow().run()
    review(tiny, keys, "ben", "cleo", release=CORRECTION)
    publish(tiny.site, CORRECTION, key=keys["robot"])
    return tiny.home
