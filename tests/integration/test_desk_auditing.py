"""The auditor's pages: the chain of a release, its verification in place, its dossier, and all releases."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from release_pipeline.ledger.states import read_statuses
from release_pipeline.pipeline.opening import revise_release
from release_pipeline.pipeline.release import run_release
from release_pipeline.publish.delivery import deliver
from release_pipeline.publish.history import _describe, _list_approvals, tell_history
from release_pipeline.publish.publish import retract, supersede
from release_pipeline.publish.verification import verify
from release_pipeline.store.registry import Event, ReleaseId
from release_pipeline.trust.approvals import approve_candidate, reject_candidate, return_candidate
from release_pipeline.trust.keys import PrivateKey, make_key, read_key
from release_pipeline.trust.members import read_trust, trust_key
from release_pipeline.trust.revocation import revoke
from tests.integration.desks import OpenDesk, open_desk
from tests.integration.people import CORRECTION, RELEASE, copy_site
from tests.integration.publishing import failures_of, flip
from tests.integration.sites import TinySite
from tests.unit.report.accessibility import find_faults

pytestmark = pytest.mark.slow
SECOND = ReleaseId("people", "2")
CELL = re.compile(r"\bp\d{4}\b|\bname\d|\bremark\d")  # what the records have that no page may have


@pytest.fixture(scope="module")
def story(corrected: Path, keys: dict[str, PrivateKey], tmp_path_factory: pytest.TempPathFactory) -> TinySite:
    """A site that had everything: a revision, deliveries, a supersession, a retraction, a rejection, a return, a revoked key, a
    rejection that its thief signed and that counts for nothing."""
    folder = tmp_path_factory.mktemp("story")
    tiny = copy_site(corrected, folder / "site")
    file = tiny.home / "site.yaml"
    file.write_text(f"{file.read_text()}targets: {{mirror: {{to: {folder}/mirror/}}}}\n")
    (folder / "mirror").mkdir()
    deliver(tiny.site)
    supersede(tiny.site, RELEASE, CORRECTION, key=keys["olga"], why="a correction")
    retract(tiny.site, RELEASE, key=keys["olga"], why="not to be used")
    deliver(tiny.site)
    run_release(tiny.flow("2"))
    return_candidate(tiny.site, SECOND, key=keys["cleo"], why="say how people were drawn")
    approve_candidate(tiny.site, SECOND, key=keys["dora"])
    reject_candidate(tiny.site, SECOND, key=keys["ben"], why="the note does not say it")
    revise_release(tiny.site, "people", "2", why="with the note")
    run_release(tiny.flow("2"))
    approve_candidate(tiny.site, SECOND.next, key=keys["cleo"])
    reject_candidate(tiny.site, SECOND.next, key=keys["dora"], why="a thief's word")
    revoke(tiny.site, "dora", since=tiny.events()[-1].moment, why="her laptop was stolen", key=keys["olga"])
    make_key(folder / "dora2")
    trust_key(tiny.site, "dora", "reviewer", read_key(folder / "dora2").public, key=keys["olga"])
    return tiny


@pytest.fixture(scope="module")
def desk(story: TinySite) -> OpenDesk:
    """Its desk, of which nothing is changed."""
    return open_desk(story)


def test_every_event_of_a_release_is_told_once(desk: OpenDesk) -> None:
    """In the order of the registry, by a call and on a page; besides them only what the officer had approved."""
    browser, events = desk.open("vic"), desk.tiny.events()
    releases = [str(release) for release in desk.tiny.statuses()]
    assert len(releases) == 4
    for release in releases:
        mine = [event.number for event in events if str(event.release) == release]
        history = tell_history(desk.tiny.site, next(one for one in desk.tiny.statuses() if str(one) == release))
        numbers = [entry.number for entry in history.entries]
        assert numbers == sorted(set(numbers))
        assert set(mine) <= set(numbers)
        approvals = [(events[n - 1].kind, events[n - 1].content["what"]) for n in numbers if n not in mine]
        assert approvals == [("approved", "policy"), ("approved", "populations")]
        assert {entry.number: entry.hash for entry in history.entries} == {n: events[n - 1].hash for n in numbers}
        page = browser.get(f"/chain/{release}").text
        assert [int(number) for number in re.findall(r'id="event-(\d+)"', page)] == numbers
        assert all(events[number - 1].hash in page for number in numbers)


def test_what_a_revoked_key_signed_is_told(desk: OpenDesk) -> None:
    """That it counts for nothing stands at the vote."""
    history = tell_history(desk.tiny.site, SECOND.next)
    [rejected] = [entry for entry in history.entries if "rejected it" in entry.title]
    assert any("counts for nothing" in line for line in rejected.warnings)
    assert not rejected.signature
    assert history.state != "rejected"
    [approved] = [entry for entry in history.entries if "approved it" in entry.title or "voted" in entry.title]
    assert not approved.warnings


def test_a_signature_of_something_else_does_not_hold(story: TinySite) -> None:
    """A statement in the event of another: a rejection or another release's vote as an approval, a retraction as a package's."""
    with story.site.open_registry(read_only=True) as registry:
        events, trust = registry.events, read_trust(story.site, registry)
        statuses = read_statuses(events)
    assert trust is not None

    def judge(event: Event, signed: object) -> tuple[str, bool]:
        other = replace(event, _content={**event.content, "signed": signed})
        entry = _describe(other, events, trust, statuses[event.release], "vic")
        return entry.signature, any("signature is for something else" in line for line in entry.warnings)

    def find(kind: str, release: ReleaseId) -> Event:
        return next(event for event in events if event.kind == kind and event.release == release)

    approved, published = find("approved", RELEASE), find("published", RELEASE)
    assert judge(approved, approved.content["signed"])[0]
    for event, other in (
        (approved, find("returned", SECOND)),
        (approved, find("approved", SECOND.next)),
        (published, find("superseded", RELEASE)),
    ):
        assert judge(event, other.content["signed"]) == ("", True), (event.kind, other.kind)


def test_an_approval_of_another_text_is_told(story: TinySite) -> None:
    """The policy that was charged, and what the officer approved last."""
    with story.site.open_registry(read_only=True) as registry:
        trust = read_trust(story.site, registry)
        charge = next(event for event in registry.events if event.kind == "reserved")
        other = replace(charge, _content={**charge.content, "policy_hash": "0" * 64})
        assert trust is not None
        told = {name: dict(_list_approvals(registry, trust, event)) for name, event in (("same", charge), ("other", other))}
        none = dict(_list_approvals(registry, trust, replace(charge, number=2)))
    assert [entry is not None and entry.warnings for entry in told["same"].values()] == [(), ()]
    assert [entry is not None and len(entry.warnings) for entry in told["other"].values()] == [1, 0]
    assert set(none.values()) == {None}


def test_nobody_saves_a_chain_with_open_votes(published: Path, keys: dict[str, PrivateKey], tmp_path: Path) -> None:
    """A dossier of another release would tell them; what to do instead is said."""
    desk = open_desk(copy_site(published, tmp_path / "site"))
    browser = desk.open("vic")
    assert browser.post(f"/chain/{RELEASE}/dossier").header("content-type") == "application/zip"
    run_release(desk.tiny.flow("2"))
    approve_candidate(desk.tiny.site, SECOND, key=keys["cleo"])
    page = browser.post(f"/chain/{RELEASE}/dossier")
    assert page.status == 409
    assert "people/2/r1 are not to be told yet" in page.text
    approve_candidate(desk.tiny.site, SECOND, key=keys["ben"])
    assert browser.post(f"/chain/{RELEASE}/dossier").status == 200


def test_a_dossier_is_what_the_command_writes(desk: OpenDesk, keys: dict[str, PrivateKey], tmp_path: Path) -> None:
    """It verifies; nothing of it is left in the vault; reviewers and stewards do not get it, nor does anybody of what is not
    published."""
    file = tmp_path / "dossier.zip"
    for release in (RELEASE, CORRECTION):
        page = desk.open("vic").post(f"/chain/{release}/dossier")
        assert page.status == 409  # a vote on the second release is open
    for name in ("ana", "ben", "otto"):
        assert desk.open(name).post(f"/chain/{RELEASE}/dossier").status == 403
    closed = open_desk(copy_site(desk.tiny.home, tmp_path / "site"))
    approve_candidate(closed.tiny.site, SECOND.next, key=keys["ben"])
    for release in (RELEASE, CORRECTION):
        page = closed.open("olga").post(f"/chain/{release}/dossier")
        assert page.header("content-disposition").endswith(f"dossier-{str(release).replace('/', '-')}.zip")
        file.write_bytes(page.content)
        failures = failures_of(verify(file, [str(closed.tiny.site.officer)]))
        assert bool(failures) == (release == RELEASE)  # nobody is to use it
        assert all(": RETRACTED: " in words for words in failures)
    assert list((closed.tiny.site.vault / "sent").iterdir()) == []
    assert "a dossier is of a published release" in closed.open("olga").post(f"/chain/{SECOND}/dossier").text
    assert list((closed.tiny.site.vault / "sent").iterdir()) == []


SPOILED = {"package": f"releases/{CORRECTION}/data.csv", "candidate": f"vault/candidates/{CORRECTION}/evidence.json"}


@pytest.mark.parametrize("what", SPOILED)
def test_one_byte_is_found(desk: OpenDesk, keys: dict[str, PrivateKey], tmp_path: Path, what: str) -> None:
    """Of a package or a candidate: there is no dossier of it, and a damaged package shows on the page."""
    spoiled = open_desk(copy_site(desk.tiny.home, tmp_path / "site"))
    approve_candidate(spoiled.tiny.site, SECOND.next, key=keys["ben"])  # no vote is open
    file = spoiled.tiny.home / SPOILED[what]
    file.chmod(0o600)
    file.write_bytes(flip(file.read_bytes()))
    browser = spoiled.open("vic")
    assert "its package or candidate is not what was published" in browser.post(f"/chain/{CORRECTION}/dossier").text
    assert ("the package is not what was published" in browser.get(f"/chain/{CORRECTION}").text) == (what == "package")


def test_the_pages_are_whole(desk: OpenDesk) -> None:
    """For who does not see them; with no cell of the data, no style and no script of their own, and no path of the machine."""
    browser = desk.open("vic")
    paths = ["/audit", *(f"/chain/{release}" for release in desk.tiny.statuses())]
    pages = {path: browser.get(path).text for path in paths}
    for path, page in pages.items():
        assert find_faults(page) == [], path
        assert not CELL.search(page), path
        assert not re.search(r"<script|<style|\bstyle=|\bon[a-z]+=", page), path
        assert str(desk.tiny.home) not in page, path
