"""The definitions of a site that is served are made anew when one of its files was changed, and only then."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread

import pytest

from release_pipeline.apps.dagster.names import reload_when_changed, stamp_files
from tests.guards import HANGING


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A site's files, and some that no definition depends on."""
    (tmp_path / "policies" / "lists").mkdir(parents=True)
    (tmp_path / "vault").mkdir()
    for name in ("policies/a.yaml", "policies/lists/a.csv", "populations.yaml", "registry.duckdb", "vault/folk.duckdb"):
        (tmp_path / name).write_text("one")
    return tmp_path


CHANGES: dict[str, Callable[[Path], object]] = {
    "a policy is changed": lambda home: (home / "policies" / "a.yaml").write_text("another"),
    "a policy is taken away": lambda home: (home / "policies" / "a.yaml").unlink(),
    "a file of a policy is changed": lambda home: (home / "policies" / "lists" / "a.csv").write_text("another"),
    "site.yaml is added": lambda home: (home / "site.yaml").touch(),
}


def test_each_change_reloads_once(home: Path) -> None:
    """As often as something was changed, until it ends."""
    reloaded, ending = Event(), Event()
    times: list[int] = []

    def reload() -> None:
        times.append(1)
        reloaded.set()

    loaded = stamp_files(home)
    watching = Thread(target=reload_when_changed, args=(home, loaded, reload, ending), kwargs={"seconds": 0.01})
    watching.start()
    try:
        for change in CHANGES:
            reloaded.clear()
            CHANGES[change](home)
            assert reloaded.wait(HANGING)
    finally:
        ending.set()
        watching.join(HANGING)
    assert not watching.is_alive()
    assert len(times) == len(CHANGES)
