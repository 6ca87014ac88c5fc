"""A site as the seventh version of the registry left it (tests/fixtures/site_7), with returns, remarks and an open vote: later
ones go on."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from release_pipeline.flow.publication.dossier import write_dossier
from release_pipeline.flow.publication.publish import publish
from release_pipeline.flow.publication.verification import verify
from release_pipeline.flow.reviewing.remarks import tell_remarks
from release_pipeline.flow.reviewing.votes import read_votes, tell_votes
from release_pipeline.flow.site import Site
from release_pipeline.flow.states import list_statuses
from release_pipeline.flow.trust.approvals import approve_candidate
from release_pipeline.flow.trust.members import need_trust
from tests.fixtures.site_7.make import BACK, HERE, OPEN, OUT
from tests.integration.people import read_keys
from tests.integration.publishing import failures_of
from tests.integration.sites import TinySite

EXPECTED: dict[str, Any] = json.loads((HERE / "expected.json").read_text())


@pytest.fixture
def old(tmp_path: Path) -> Site:
    """The site, for one test."""
    with tarfile.open(HERE / "site.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    return TinySite(tmp_path / "site").site


def test_what_was_noted_of_reviews_is_read_and_verifies(old: Site, tmp_path: Path) -> None:
    """The events as they were, the states that votes made, what may be told; site, package and dossier verify."""
    with old.open_registry(read_only=True) as registry:
        events, trust = registry.events, need_trust(old, registry)
        votes = {release: tell_votes(read_votes(registry, release)) for release in (OUT, BACK, OPEN)}
        remarks = tell_remarks(registry, trust, str(OUT))
    assert [[event.kind, str(event.release or ""), event.hash] for event in events] == EXPECTED["events"]
    assert {release: known.state for release, known in list_statuses(old).items()} == {
        OUT: "published",
        BACK: "returned",
        OPEN: "candidate",
    }
    assert list_statuses(old)[BACK].reason == "returned by cleo: cleo finds it wrong; returned by dora: dora finds it wrong"
    assert {release: (told.count, told.are_in) for release, told in votes.items()} == {
        OUT: (2, True),
        BACK: (2, True),
        OPEN: (1, False),
    }
    assert [(one.name, one.passage) for one in remarks] == [("ben", "claim"), ("ben", ""), ("ana", "claim")]
    for part in (old.home, old.package(str(OUT)), write_dossier(old, OUT, tmp_path / "dossier.zip")):
        assert failures_of(verify(part, [EXPECTED["officer"]])) == []


@pytest.mark.slow
def test_what_was_returned_is_approved_and_published(old: Site) -> None:
    """By those who returned it; the open vote is still nobody's to see."""
    keys = read_keys(old.home / "keys")
    for name in ("cleo", "dora"):
        approve_candidate(old, BACK, key=keys[name])
    publish(old, BACK, key=keys["robot"])
    assert list_statuses(old)[BACK].state == "published"
    assert list_statuses(old)[OPEN].is_blind
    assert failures_of(verify(old.home, [EXPECTED["officer"]])) == []
