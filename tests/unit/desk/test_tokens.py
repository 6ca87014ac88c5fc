"""Tokens: made for one person, kept as hashes, until they end or are withdrawn."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from release_pipeline.apps.desk.backend.people import LASTS_DAYS, MOST_DAYS, find_token, make_token, withdraw_tokens
from release_pipeline.apps.door import hash_secret
from release_pipeline.errors import ReleasePipelineError, WrongUsage
from release_pipeline.store.site import Site

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """With two people whom site.yaml names."""
    (tmp_path / "policies").mkdir()
    (tmp_path / "site.yaml").write_text("desk: {people: {vic: [auditor], otto: [operator]}}\n")
    return Site(tmp_path, {})


def whose(site: Site, token: str, now: datetime = NOW) -> str | None:
    """Whom it lets in."""
    found = find_token(site, hash_secret(token), now=now)
    return None if found is None else found.person


def test_a_token_lets_its_person_in_until_it_ends(site: Site) -> None:
    """Not a second longer; each is another."""
    one, two = (make_token(site, "vic", days=3, now=NOW) for _ in range(2))
    other = make_token(site, "otto", now=NOW)
    assert len({one, two, other}) == 3
    assert min(len(token) for token in (one, two, other)) >= 43
    assert [whose(site, token) for token in (one, two, other, "x", "")] == ["vic", "vic", "otto", None, None]
    assert whose(site, one, NOW + timedelta(days=3) - SECOND) == "vic"
    assert whose(site, one, NOW + timedelta(days=3)) is None
    assert whose(site, other, NOW + timedelta(days=LASTS_DAYS) - SECOND) == "otto"


def test_withdrawn_is_withdrawn_of_one_person(site: Site) -> None:
    """All of theirs, and of nobody else; how many is told."""
    tokens = [make_token(site, person, now=NOW) for person in ("vic", "vic", "otto")]
    assert withdraw_tokens(site, "vic") == 2
    assert [whose(site, token) for token in tokens] == [None, None, "otto"]
    assert withdraw_tokens(site, "vic") == withdraw_tokens(site, "nobody") == 0


def test_nobody_else_reads_the_file(site: Site) -> None:
    """Nor has it a token in it."""
    token = make_token(site, "vic")
    file = site.desk / "tokens.json"
    assert (site.desk.stat().st_mode & 0o777, file.stat().st_mode & 0o777) == (0o700, 0o600)
    assert token not in file.read_text()


@pytest.mark.parametrize(
    ("person", "days"), [("nina", 1), ("", 1), ("../vic", 1), ("vic", 0), ("vic", -1), ("vic", MOST_DAYS + 1)]
)
def test_who_does_not_work_here_gets_none(site: Site, person: str, days: int) -> None:
    """Nor does anybody get one for ever."""
    with pytest.raises(WrongUsage):
        make_token(site, person, days=days)
    assert not (site.desk / "tokens.json").exists()


@pytest.mark.parametrize("text", ["", "x", "[]", '{"tokens": 1}', '{"tokens": [{"person": "vic"}]}', "{}x"])
def test_a_file_that_is_none_lets_nobody_in(site: Site, text: str) -> None:
    """It says so, as an error or in words, and never by letting somebody in."""
    token = make_token(site, "vic", now=NOW)
    (site.desk / "tokens.json").write_text(text)
    with pytest.raises((ReleasePipelineError, ValueError)):
        whose(site, token)
