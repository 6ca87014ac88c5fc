"""What a site's folders may be read by, whatever the umask of whoever runs the first command."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from release_pipeline.apps.dagster.launch import prepare
from release_pipeline.store.files import make_vault
from release_pipeline.store.site import Site


@pytest.fixture
def no_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def list_open(folder: Path) -> list[str]:
    """What others could change, or read of what is private."""
    return [
        str(path)
        for path in (folder, *folder.rglob("*"))
        if stat.S_IMODE(path.stat().st_mode) & (0o077 if path.is_dir() else 0o022)
    ]


@pytest.mark.parametrize("there", [False, True])
def test_folders_are_their_owners(there: bool, tmp_path: Path, no_umask: None) -> None:
    """Made now, or by somebody who left their modes to the umask."""
    tmp_path.chmod(0o700)
    site = Site(tmp_path, {})
    if there:
        (site.dagster_home / "history" / "runs").mkdir(parents=True)
        (tmp_path / "vault").mkdir()
        assert list_open(tmp_path)
    make_vault(tmp_path / "vault")
    prepare(site)
    assert list_open(tmp_path) == []
    assert stat.S_IMODE((tmp_path / "vault" / ".gitignore").stat().st_mode) == 0o600
