"""Who saw what: a line each, which nobody else reads, for two years."""

from __future__ import annotations

import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

from release_pipeline.apps.desk.backend.people import Viewing, Viewings
from release_pipeline.apps.door import Refused
from release_pipeline.store.site import Site

NOW = datetime(2026, 5, 31, 23, 59, 59, tzinfo=UTC)
RELEASE = "people/1/r1"


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """An empty one."""
    return Site(tmp_path, {})


def test_each_is_a_line_that_the_account_alone_reads(site: Site) -> None:
    """Of a release, the newest first, over months; the same within ten minutes once."""
    kept = Viewings(site)
    assert kept.list_of(RELEASE) == []
    kept.note("ben", "the report", RELEASE, now=NOW)
    kept.note("ben", "the report", RELEASE, now=NOW)
    kept.note("cleo", "the report", RELEASE, now=datetime(2026, 6, 1, tzinfo=UTC))
    kept.note("ben", "the report", "people/2/r1", now=NOW)
    assert kept.list_of(RELEASE) == [
        Viewing("2026-06-01T00:00:00+00:00", "cleo", "the report", RELEASE),
        Viewing("2026-05-31T23:59:59+00:00", "ben", "the report", RELEASE),
    ]
    files = sorted(site.desk.glob("viewings-*"))
    assert [file.name for file in files] == ["viewings-2026-05.jsonl", "viewings-2026-06.jsonl"]
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_half_a_line_takes_no_other_with_it(site: Site) -> None:
    """What a crash left counts for nothing, and the next line is whole."""
    kept = Viewings(site)
    kept.note("ben", "the report", RELEASE, now=NOW)
    file = site.desk / "viewings-2026-05.jsonl"
    file.write_bytes(file.read_bytes() + b'{"at": "2026-05')
    kept.note("cleo", "the report", RELEASE, now=NOW)
    assert [one.person for one in kept.list_of(RELEASE)] == ["ben", "cleo"]


def test_they_are_kept_for_two_years(site: Site) -> None:
    """And nothing else of the desk goes with them."""
    kept = Viewings(site)
    for year, month in ((2024, 4), (2024, 5), (2026, 4)):
        kept.note(f"p{year}-{month}", "the report", RELEASE, now=datetime(year, month, 1, tzinfo=UTC))
    (site.desk / "viewings-x.jsonl").write_text("x")
    kept.forget_old(now=NOW)
    assert {file.name for file in site.desk.glob("viewings-*")} == {
        "viewings-2024-05.jsonl",
        "viewings-2026-04.jsonl",
        "viewings-x.jsonl",
    }


def test_what_cannot_be_noted_is_refused(site: Site, tmp_path: Path) -> None:
    """A link in its place is not followed; and the next try is noted."""
    kept, other = Viewings(site), tmp_path / "other"
    site.desk.mkdir()
    link = site.desk / "viewings-2026-05.jsonl"
    link.symlink_to(other)
    with pytest.raises(Refused, match="could not be noted"):
        kept.note("ben", "the report", RELEASE, now=NOW)
    assert not other.exists()
    link.unlink()
    kept.note("ben", "the report", RELEASE, now=NOW)
    assert len(kept.list_of(RELEASE)) == 1
