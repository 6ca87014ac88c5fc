"""Two packages of one site that was copied, and moments that no right clock has, as anybody's verifier sees them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from release_pipeline.verifier.command import examine, main, verify_events
from release_pipeline.verifier.documents import WrongUsage
from release_pipeline.verifier.findings import Finding
from tests.unit import test_verify
from tests.unit.test_verify import LOSS, RELEASE, TIME, USUAL, Files, World, failures, pack, put, usual, with_steps
from tests.unit.test_verify_restored import LOST, enter

SPENT_TWICE = "two copies of one site that both went on: the same budget was spent twice"


def copied(*after: str) -> World:
    """As the usual world up to the charge, after which a copy of the site went another way."""
    return with_steps({"reserve": [lambda world: world.charge(RELEASE, spent="4", records=99), *after]})


def compare(one: Files, other: Files, tmp_path: Path, **how: Any) -> list[Finding]:
    """What is said of one beside the other."""
    found = examine(put(one, tmp_path / "one"), beside=put(other, tmp_path / "other"), **how).findings
    return [finding for finding in found if finding.words.startswith(f"{tmp_path / 'other'}: ")]


def test_packages_of_two_copies_of_a_site_fail_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each verifies by itself; both name the same event of the same registry, which has another hash in each."""
    one, other = put(usual().package, tmp_path / "one"), pack(copied().package, tmp_path / "other.zip")
    assert [main([str(path)]) for path in (one, other)] == [0, 0]
    assert main([str(one), "--beside", str(one)]) == 0
    capsys.readouterr()
    assert main([str(one), "--beside", str(other)]) == 1
    said = capsys.readouterr().out
    assert SPENT_TWICE in said
    assert "event 10 of the same registry has one hash here and another there" in said


def test_packages_of_two_sites_have_nothing_in_common(tmp_path: Path) -> None:
    """An office may have several sites, whose events have the same numbers."""
    another = World(lambda document, content: {**content, "site": "another"} if document == "event trusted" else content)
    [told] = compare(usual().package, another.do(*USUAL).package, tmp_path)
    assert (told.level, "it comes from another site" in told.words) == ("note", True)


def test_a_restore_that_the_officer_accepted_is_no_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was published before the site was lost is charged in the chain that went on after the backup."""
    restored = with_steps({"earlier": [enter]})
    monkeypatch.setattr(test_verify, "RELEASE", LOST)
    lost = World().do(*(step for step in USUAL if step != "earlier"))
    assert failures(examine(put(lost.package, tmp_path / "lost")).findings) == []
    [told] = compare(restored.dossier(), lost.package, tmp_path)
    assert (told.level, "restored from a backup" in told.words) == ("note", True)


def publish_lost(monkeypatch: pytest.MonkeyPatch, make: Callable[[World], Any], **charge: Any) -> World:
    """A site that went on with the release that another one lost, after it was changed."""
    monkeypatch.setattr(test_verify, "RELEASE", LOST)
    world = World()
    make(world)
    steps = {"earlier": [], "reserve": [lambda world: world.charge(LOST, **{"spent": "2", **charge})]}
    return with_steps(steps, world)


@pytest.mark.parametrize(
    ("make", "charge", "words"),
    [
        (lambda world: setattr(world, "records", 99), {}, "how many records it is of"),
        (lambda world: world.policy.update(drop=["town"]), {}, "its policy"),
        (lambda _: None, {"loss": {**LOSS, "idp_column": 10**9}, "spent": "1"}, "its loss"),
    ],
)
def test_a_name_alone_is_not_what_the_officer_entered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[World], Any], charge: dict[str, Any], words: str
) -> None:
    """Else a copy could publish what it likes as the release that a restore lost. A card has no loss: a dossier has."""
    restored = with_steps({"earlier": [enter]}).dossier()
    rogue = publish_lost(monkeypatch, make, **charge)
    [told] = compare(restored, rogue.dossier(), tmp_path)
    assert (told.level, words in told.words, "the same budget was spent twice" in told.words) == ("FAIL", True, True)
    if not charge:
        [told] = compare(rogue.package, restored, tmp_path)
        assert (told.level, words in told.words) == ("FAIL", True)


def test_a_package_that_does_not_verify_proves_nothing(tmp_path: Path) -> None:
    """Anybody could have made it; a retracted one was published all the same."""
    other = copied().package
    [told] = compare(usual().package, {**other, "privacy-card.json": usual().package["privacy-card.json"]}, tmp_path)
    assert "so the two cannot be compared" in told.words
    [told] = compare(usual().package, copied().do("retract").package, tmp_path)
    assert SPENT_TWICE in told.words
    with pytest.raises(WrongUsage, match="neither a package nor a dossier"):
        examine(tmp_path / "one", beside=tmp_path)


def test_a_package_that_names_another_first_event_fails(tmp_path: Path) -> None:
    """Else it would pass as one of another site."""

    def twist(document: str, content: Any) -> Any:
        head = "registry_head"
        return {**content, head: {**content[head], "first": "0" * 64}} if document == "card" else content

    world = World(twist)
    [told] = failures(examine(put(world.do(*USUAL).dossier(), tmp_path / "d")).findings)
    assert "its first event is not the one that the package names" in told


# -- moments


def later(**by: float) -> str:
    """A moment after that of the world."""
    return (datetime.fromisoformat(TIME) + timedelta(**by)).isoformat()


def dated(kind: str, at: str) -> World:
    """The usual world, with another moment in statements or events of a kind."""
    name = "noted" if kind.startswith("event") else "at"
    twist: Callable[[str, Any], Any] = lambda document, content: {**content, name: at} if document == kind else content  # noqa: E731
    return World(twist).do(*USUAL)


def test_a_vote_that_is_dated_before_its_candidate_fails(tmp_path: Path) -> None:
    """With a key that was stolen, or revoked since, one would date back."""
    early = dated("statement approve", later(days=-40))
    [told] = failures(examine(put(early.dossier(), tmp_path / "d")).findings)
    assert f"the vote of ben is dated {later(days=-40)}, before there was a candidate to vote on (event 7" in told
    assert any("before there was a candidate" in told for told in failures(verify_events(early.lines)))
    near = dated("statement approve", later(minutes=-9))
    assert failures(examine(put(near.dossier(), tmp_path / "d")).findings) == []
