"""Policies at the desk: faults in their lines, and what is another than what was approved."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest

from release_pipeline.trust.approvals import approve_policy
from release_pipeline.trust.keys import PrivateKey
from tests.integration.desks import OpenDesk, Page, name_people, open_desk
from tests.integration.people import copy_site
from tests.integration.sites import policy_text

CELLS = re.compile(r"\bp00\d\d\b|\bname\d+\b|\bremark\d+\b")


@pytest.fixture
def desk(candidate: Path, tmp_path: Path) -> OpenDesk:
    """Of a site with a candidate, and two more stewards without a key."""
    tiny = copy_site(candidate, tmp_path / "site")
    name_people(tiny, "{vic: [auditor], otto: [operator], stef: [steward], ana: [steward]}")
    return open_desk(tiny)


def file_of(desk: OpenDesk, name: str = "people") -> Path:
    return desk.tiny.home / "policies" / f"{name}.yaml"


def line_of(page: Page, number: int) -> str:
    """What stands at a line of the listing, without tags."""
    [found] = re.findall(rf'<li id="line-{number}".*?</li>', page.text, re.DOTALL)
    return unescape(re.sub(r"<[^>]+>|\s+", " ", found))


def at(text: str, words: str) -> int:
    """The line that these words stand in first."""
    return text[: text.index(words)].count("\n") + 1


def test_faults_are_shown_in_their_lines(desk: OpenDesk) -> None:
    """Every one with line and column, and the summary leads there."""
    text = file_of(desk).read_text().replace("k: 5", "k: 0").replace("outside: clamp", "outsied: clamp")
    file_of(desk).write_text(text)
    page = desk.open("otto").get("/policies/people")
    protect, rent = at(text, "protect"), at(text, "  rent")
    assert "'0' is too small" in line_of(page, protect)
    assert "Column 41" in line_of(page, protect)
    assert "'outsied' is not known here" in line_of(page, rent)
    assert f'href="#line-{protect}"' in page.text
    assert f'href="#line-{rent}"' in page.text
    file_of(desk).write_text(policy_text(policy="crowd"))
    assert "calls itself" in line_of(desk.open("ana").get("/policies/people"), 1)


@pytest.mark.slow
def test_what_is_another_than_what_was_approved_is_told(desk: OpenDesk, keys: dict[str, PrivateKey]) -> None:
    """The page says how the policy differs from what was approved, until that is approved too."""
    ana = desk.open("ana")
    assert ">approved<" in ana.get("/policies/people").text
    text = file_of(desk).read_text().replace("min_rows: 20", "min_rows: 30") + "# \u00e4\u4e2d\U0001f600 <b>\n"
    file_of(desk).write_text(text)
    page = ana.get("/policies/people")
    assert "not approved" in page.text
    assert "What is different from what was approved" in page.text
    assert re.search(r"min_rows[^<]*20[^<]*30", page.text)
    approve_policy(desk.tiny.site, "people", key=keys["olga"])
    assert "not approved" not in ana.get("/policies/people").text


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
        page = ana.get("/policies/people")
        assert re.search("no name of a list|leads out of the folder|is a link to another place", page.text), path
        assert not CELLS.search(page.text)


def test_a_link_is_not_shown(desk: OpenDesk, tmp_path: Path) -> None:
    """Nobody sees a line of the file that it leads to, and the policy is faulty on every page."""
    elsewhere = tmp_path / "people.yaml"
    file_of(desk).rename(elsewhere)
    file_of(desk).symlink_to(elsewhere)
    page = desk.open("ana").get("/policies/people")
    assert "is a link to another place" in page.text
    assert "is a link to another place" in str(desk.tiny.site.read_policies()[1])
    assert "min_rows" not in page.text
