"""Policies at the desk: faults with their lines, and no line of another file."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest

from tests.integration.desks import OpenDesk, name_people, open_desk
from tests.integration.people import copy_site
from tests.integration.sites import policy_text

PAGE = "/approvals/policies/people"
CELLS = re.compile(r"\bp00\d\d\b|\bname\d+\b|\bremark\d+\b")


@pytest.fixture
def desk(candidate: Path, tmp_path: Path) -> OpenDesk:
    """Of a site with a candidate, and two more stewards without a key."""
    tiny = copy_site(candidate, tmp_path / "site")
    name_people(tiny, "{vic: [auditor], otto: [operator], stef: [steward], ana: [steward]}")
    return open_desk(tiny)


def file_of(desk: OpenDesk, name: str = "people") -> Path:
    return desk.tiny.home / "policies" / f"{name}.yaml"


def at(text: str, words: str) -> int:
    """The line that these words stand in first."""
    return text[: text.index(words)].count("\n") + 1


def test_faults_are_shown_with_their_lines(desk: OpenDesk) -> None:
    """Every one with line and column, in place of a form to approve it."""
    text = file_of(desk).read_text().replace("k: 5", "k: 0").replace("outside: clamp", "outsied: clamp")
    file_of(desk).write_text(text)
    page = unescape(desk.open("ana").get(PAGE).text)
    assert f"people.yaml:{at(text, 'protect')}:41: " in page
    assert f"people.yaml:{at(text, '  rent')}:" in page
    assert "'0' is too small" in page
    assert "'outsied' is not known here" in page
    assert "Go on to sign" not in page
    file_of(desk).write_text(policy_text(policy="crowd"))
    assert "calls itself" in desk.open("ana").get(PAGE).text


@pytest.mark.slow
def test_a_policy_names_no_file_elsewhere(desk: OpenDesk, tmp_path: Path) -> None:
    """Else what the site's account can read would be told as the values of a column: another's file, by any way there."""
    secret = tmp_path / "secret.csv"
    secret.write_text("top\nsecret\n")
    folder, ana = desk.tiny.home / "policies", desk.open("ana")
    (folder / "link.csv").symlink_to(secret)
    (folder / "there").symlink_to(tmp_path)
    others = (str(secret), "../../secret.csv", "link.csv", "there/secret.csv", '"a\\0b"', "x" * 5000, "..", "~/x")
    for path in (*others, "../site.yaml", "../people.csv, column: name", "../vault/key"):  # of the site, and none of its policies
        file_of(desk).write_text(policy_text().replace("values: [north, south, east]", f"values: {{file: {path}}}"))
        page = ana.get(PAGE)
        assert re.search("no name of a list|leads out of the folder|is a link to another place", page.text), path
        assert not CELLS.search(page.text)


def test_a_link_is_not_shown(desk: OpenDesk, tmp_path: Path) -> None:
    """Nobody sees a line of the file that it leads to, and the policy is faulty on every page."""
    elsewhere = tmp_path / "people.yaml"
    file_of(desk).rename(elsewhere)
    file_of(desk).symlink_to(elsewhere)
    page = desk.open("ana").get(PAGE)
    assert "is a link to another place" in page.text
    assert "is a link to another place" in str(desk.tiny.site.read_policies()[1])
    assert "min_rows" not in page.text
