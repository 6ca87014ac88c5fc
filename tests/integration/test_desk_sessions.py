"""Who is let in at the desk, and for how long."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.desks import OpenDesk, open_desk, serving_counter
from tests.integration.people import copy_site


@pytest.fixture
def desk(candidate: Path, tmp_path: Path) -> OpenDesk:
    """Of a site with a candidate."""
    return open_desk(copy_site(candidate, tmp_path / "site"))


def test_people_come_in_with_their_tokens(desk: OpenDesk) -> None:
    """And find their name and what waits."""
    page = desk.open("ben").get("/")
    assert page.status == 200
    assert "For you, ben" in page.text
    assert "Review people/1/r1" in page.text


def test_the_same_through_a_socket(candidate: Path, tmp_path: Path) -> None:
    """As in earnest."""
    with serving_counter(copy_site(candidate, tmp_path / "site"), tmp_path / "socket") as desk:
        browser = desk.open("cleo")
        assert browser.get("/releases/people/1/r1/report").content.startswith(b"<!DOCTYPE html>")
        assert (
            "Your remark is kept"
            in browser.post("/remarks", {"what": "candidate", "subject": "people/1/r1", "text": "why?", "passage": ""}).text
        )
