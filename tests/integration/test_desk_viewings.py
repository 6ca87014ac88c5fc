"""Who saw a candidate at the desk, or took it away, is noted by the backend, and told to auditors and the officer."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from release_pipeline.apps.desk.backend.people import Viewings
from release_pipeline.apps.desk.backend.protocol import CallRequest
from tests.integration.desks import RELEASE, OpenDesk, open_desk
from tests.integration.people import copy_site
from tests.integration.test_desk_roles import question

pytestmark = pytest.mark.slow
PAGE = f"/releases/{RELEASE}"


@pytest.fixture
def desk(candidate: Path, tmp_path: Path) -> OpenDesk:
    """Of a site with a candidate."""
    return open_desk(copy_site(candidate, tmp_path / "site"))


def seen(desk: OpenDesk) -> list[tuple[str, str]]:
    """By whom, and what, in the order of people and things."""
    return sorted((one.person, one.saw) for one in Viewings(desk.tiny.site).list_of(RELEASE))


def test_whoever_sees_a_candidate_is_noted(desk: OpenDesk) -> None:
    """Its figures and its report, once each; and nobody who saw none."""
    ben = desk.open("ben")
    for path in ("/", "/releases", "/approvals/policies/people", "/caps", "/help", f"/chain/{RELEASE}"):
        assert ben.get(path).status == 200
    assert desk.open("otto").get(PAGE).status == 200  # who sees nothing of a candidate
    assert seen(desk) == []
    for path in (PAGE, PAGE, f"{PAGE}/report"):
        assert ben.get(path).status == 200
    assert desk.open("otto").get(f"{PAGE}/report").status == 403
    assert seen(desk) == [("ben", "its figures"), ("ben", "the report")]


def test_who_takes_the_bundle_is_noted(desk: OpenDesk) -> None:
    """That of a policy has no candidate."""
    ben, olga = desk.open("ben"), desk.open("olga")
    wish = {"verdict": "approve", "why": ""}
    assert olga.post("/bundle", {"what": "policy", "subject": "people", **wish}).status == 200
    assert seen(desk) == []
    assert ben.post("/bundle", {"what": "candidate", "subject": RELEASE, **wish}).status == 200
    assert seen(desk) == [("ben", "the bundle to sign")]


def test_auditors_and_the_officer_are_told_who(desk: OpenDesk) -> None:
    """On the chain's page; reviewers do not see who of the others has looked yet, nor do stewards."""
    desk.open("ben").get(f"{PAGE}/report")
    for person in ("vic", "olga", "cleo", "ana"):
        page = desk.open(person).get(f"/chain/{RELEASE}").text
        told = re.findall(r"<td><time[^>]*>[^<]*</time></td><th scope=\"row\">(\w+)</th><td>([^<]*)</td>", page)
        assert told == ([("ben", "the report")] if person in ("vic", "olga") else []), person
    answer = desk.backend.answer(question(desk.open("cleo"), "chain", release=RELEASE))
    assert "the report" not in json.dumps(answer.document)


def test_what_cannot_be_noted_is_not_shown(desk: OpenDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk, say: in words, without a figure, and no file stays that was packed."""

    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    ben = desk.open("ben")
    asked: list[CallRequest] = [
        question(ben, "release", release=RELEASE),
        question(ben, "report", release=RELEASE),
        question(ben, "bundle", what="candidate", subject=RELEASE, verdict="approve", why=""),
    ]
    monkeypatch.setattr(Viewings, "_write", fail)
    for one in asked:
        answer = desk.backend.answer(one)
        assert (answer.status, answer.file) == (503, None)
        assert "could not be noted" in str(answer.document["what"])
        assert set(answer.document) == {"what", "where", "remedy", "details"}
    assert not list(desk.tiny.site.vault.rglob("*.zip"))
    monkeypatch.undo()
    assert desk.backend.answer(asked[1]).status == 200
