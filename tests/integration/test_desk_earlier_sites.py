"""Sites that earlier versions left: the officer's and the auditor's pages are there for each of them, and tell every event."""

from __future__ import annotations

import re
import tarfile
from pathlib import Path

import pytest

from tests.integration.desks import OpenDesk, open_desk
from tests.integration.sites import ROOT, TinySite
from tests.unit.report.accessibility import find_faults

pytestmark = pytest.mark.slow
FIXTURES = ("site_1", "site_6", "site_7")


@pytest.fixture(params=FIXTURES)
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> OpenDesk:
    """Of one of these sites."""
    with tarfile.open(ROOT / "tests" / "fixtures" / request.param / "site.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    [home] = [file.parent for file in tmp_path.rglob("registry.duckdb")]
    return open_desk(TinySite(home))


def test_their_chains_are_told(desk: OpenDesk) -> None:
    """Each event of each release once, and nothing without words; what verifies, verifies."""
    browser = desk.open("vic")
    events = desk.tiny.events()
    for release, status in desk.tiny.statuses().items():
        page = browser.get(f"/chain/{release}")
        assert page.status == 200, page.text
        assert "no words for" not in page.text
        numbers = [int(number) for number in re.findall(r'id="event-(\d+)"', page.text)]
        mine = [event.number for event in events if event.release == release]
        assert numbers == sorted(set(numbers))
        assert set(mine) <= set(numbers)
        if status.package_hash is not None:
            assert "nothing failed" in browser.post(f"/chain/{release}/verify").text


def test_their_pages_are_there(desk: OpenDesk) -> None:
    """With policies, caps and keys of then."""
    browser = desk.open("vic")
    policies = [f"/approvals/policies/{file.stem}" for file in desk.tiny.site.policy_files()]
    for path in ("/approvals", "/approvals/populations", "/caps", "/keys", "/overlaps", "/audit", *policies):
        page = browser.get(path)
        assert page.status == 200, page.text
        assert find_faults(page.text) == [], path
