"""A site as the sixth version of the registry left it (tests/fixtures/site_6), with packages at a target: later ones go on."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from release_pipeline.flow.publication.delivery import deliver, list_outstanding
from release_pipeline.flow.publication.dossier import write_dossier
from release_pipeline.flow.publication.verification import verify
from release_pipeline.flow.site import Site
from release_pipeline.verify import verify_path
from tests.fixtures.site_6.make import FIRST, HALF, HERE, SECOND
from tests.integration.publishing import failures_of
from tests.integration.sites import TinySite
from tests.integration.test_delivery import look

EXPECTED: dict[str, Any] = json.loads((HERE / "expected.json").read_text())


@pytest.fixture
def old(tmp_path: Path) -> Site:
    """The site, for one test."""
    with tarfile.open(HERE / "site.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    return TinySite(tmp_path / "site").site


def test_what_was_noted_of_deliveries_is_read_and_verifies(old: Site, tmp_path: Path) -> None:
    """The events as they were, one thing outstanding; site and dossier verify."""
    with old.open_registry(read_only=True) as registry:
        events = registry.events
    assert [[event.kind, str(event.release or ""), event.hash] for event in events] == EXPECTED["events"]
    kinds = [event.kind for event in events]
    assert [kinds.count(kind) for kind in ("delivering", "delivered", "recalled")] == [3, 2, 2]
    [task] = list_outstanding(old)
    assert task.words.startswith(f"{HALF}: not delivered to open (public), begun at ")
    assert failures_of(verify(old.home, [EXPECTED["officer"]])) == []
    write_dossier(old, FIRST, tmp_path / "dossier.zip")
    found = verify_path(tmp_path / "dossier.zip", EXPECTED["officer"])
    assert [finding.words for finding in found if finding.level == "FAIL"] == []


def test_what_was_begun_is_finished(old: Site) -> None:
    """What is there is not sent again, and what was taken back stays so."""
    there = old.home / "public" / str(HALF)
    before = {file.name: file.stat().st_mtime_ns for file in there.iterdir()}
    deliver(old)
    assert look(there) == look(old.package(str(HALF)))
    assert {name: (there / name).stat().st_mtime_ns for name in before} == before
    assert list_outstanding(old) == []
    for release in (FIRST, SECOND):
        assert look(old.home / "public" / str(release)) == look(old.package(str(release)))
    assert failures_of(verify(old.home, [EXPECTED["officer"]])) == []
