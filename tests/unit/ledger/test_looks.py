"""Looks at the data: who may note them, what their events have, and which releases they concern."""

from __future__ import annotations

from pathlib import Path

import pytest

from release_pipeline.errors import Blocked, PolicyInvalid, ReleasePipelineError, WrongUsage
from release_pipeline.ledger.looks import (
    LOOKED,
    PUBLIC,
    Look,
    count_looks_before,
    find_looks_before,
    group_looks,
    keep_looks,
    note_look,
)
from release_pipeline.ledger.policies import policy_of, read_caps, record_policy
from release_pipeline.store.ledger import RESERVED
from release_pipeline.store.registry import Event, ReleaseId
from release_pipeline.verifier.chain import Event as VerifiedEvent
from release_pipeline.verifier.chain import History
from release_pipeline.verifier.dossiers import _concerns, check_looks
from release_pipeline.verifier.report import Report
from tests.integration.sites import TinySite, make_site

DIGEST = "ab" * 32
ONE, TWO = ReleaseId("people", "1"), ReleaseId("people", "2")
SETTINGS = ("dp-cdf, epsilon 1", "dp-cdf, epsilon 2")
NOTED = "2026-03-10T12:00:00+00:00"
CONTENT = {
    "policy": "people",
    "population": "folk",
    "policy_hash": DIGEST,
    "on": "mask",
    "digest": "",
    "compared": list(SETTINGS),
}


@pytest.fixture
def tiny(tmp_path: Path) -> TinySite:
    """A site where nothing happened yet."""
    return make_site(tmp_path / "site")


def look(tiny: TinySite, policy: str = "people", by: str = "ana") -> Look:
    """Somebody looks at the source."""
    return note_look(tiny.site, tiny.site.policy(policy), by=by, digest="", compared=SETTINGS)


def chain_of(*parts: str | ReleaseId) -> tuple[Event, ...]:
    """A chain of looks by somebody, and of charges, for their places alone."""
    return tuple(
        Event(number, RESERVED, NOTED, part, {"population": "folk"}, "")
        if isinstance(part, ReleaseId)
        else Event(number, LOOKED, NOTED, None, {**CONTENT, "by": part}, "")
        for number, part in enumerate(parts, start=1)
    )


def test_a_look_is_an_event_with_its_policy_and_nothing_of_the_data(tiny: TinySite) -> None:
    """Whose policy can be read for ever after, whatever becomes of its file."""
    policy = tiny.site.policy("people")
    noted = note_look(tiny.site, policy, by=" ana ", digest=DIGEST, compared=[f" {SETTINGS[0]} ", SETTINGS[1]])
    *_, event = tiny.events()
    content = {"policy": "people", "population": "folk", "policy_hash": policy.canonical_hash()}
    content |= {"by": "ana", "on": "mask", "digest": DIGEST}
    assert (event.kind, event.release, dict(event.content)) == ("looked", None, {**content, "compared": list(SETTINGS)})
    assert group_looks(tiny.events()).get("people", ()) == (noted,)
    assert (noted.number, noted.noted, noted.compared) == (event.number, event.noted, SETTINGS)
    assert noted.description == f"{event.noted[:10]} by ana, at a source, which was masked: dp-cdf, epsilon 1; dp-cdf, epsilon 2"
    (tiny.home / "policies" / "people.yaml").unlink()
    with tiny.site.open_registry(read_only=True) as registry:
        assert policy_of(registry, noted.policy_hash) == policy


def test_a_look_concerns_what_is_charged_after_it() -> None:
    """By its place in the chain; what is not charged yet may be chosen by any."""
    events = chain_of("ana", ONE, "bea", TWO, "cleo")
    concerned = {ONE: ["ana"], TWO: ["ana", "bea"], ONE.next: ["ana", "bea", "cleo"], ReleaseId("others", "1"): []}
    assert {release: [found.by for found in find_looks_before(events, release)] for release in concerned} == concerned
    assert count_looks_before(events, concerned) == {release: len(names) for release, names in concerned.items()}


@pytest.mark.parametrize("by", ["", "  ", "a\nb", "a\x1b[31m", "a\u202eb", "x" * 65])
def test_a_name_is_one_line(tiny: TinySite, by: str) -> None:
    """That can be printed; else nothing is noted, and so nothing read."""
    with pytest.raises(WrongUsage, match="a name is one line"):
        look(tiny, by=by)
    assert tiny.events() == ()


def test_a_site_can_forbid_looks(tiny: TinySite) -> None:
    """And says so; what it does not know it does not guess."""
    (tiny.home / "site.yaml").write_text("looks: forbidden\n")
    with pytest.raises(Blocked, match="this site forbids to look at confidential records") as refused:
        look(tiny)
    assert refused.value.where.endswith("site.yaml")
    for said in ("looks: never\n", "looks: false\n", "looks:\n"):
        (tiny.home / "site.yaml").write_text(said)
        with pytest.raises(ReleasePipelineError) as unsaid:
            look(tiny)
        assert "looks is not said as it should be. Allowed: allowed, forbidden." in unsaid.value.in_full
    assert tiny.events() == ()
    (tiny.home / "site.yaml").write_text("looks: allowed\n")
    look(tiny)


def test_looks_of_another_chain_are_kept_once(tiny: TinySite, tmp_path: Path) -> None:
    """With the moment when they were noted first, however often they are put back; a backup that is put back loses none."""
    other = make_site(tmp_path / "other")
    first, second = look(other), look(other, by="bea")
    for _ in range(2):
        with tiny.site.open_registry() as registry:
            keep_looks(registry, other.events())
    found = group_looks(tiny.events()).get("people", ())
    assert [(kept.noted, kept.by) for kept in found] == [(first.noted, "ana"), (second.noted, "bea")]
    third = make_site(tmp_path / "third")
    with third.site.open_registry() as registry:
        keep_looks(registry, tiny.events())
        keep_looks(registry, other.events())
    assert [kept.by for kept in group_looks(third.events()).get("people", ())] == ["ana", "bea"]


CASES = {  # of a look, and of the charge that follows it: what their events say, and whether the one concerns the other
    "its own people": ({}, {}, True),
    "others at another source": ({"policy": "draft", "population": "strangers", "origins": ["a"]}, {"origins": ["b"]}, False),
    "others, and nobody knows where": ({"policy": "draft", "population": "strangers"}, {}, False),
    "a policy of its name": ({"population": "strangers"}, {}, True),
    "people that were renamed": ({"policy": "draft", "population": "old"}, {"carries": ["old"]}, True),
    "people that were merged": ({"policy": "draft", "population": "north"}, {"carries": ["north", "south"]}, True),
    "heirs of the people": ({"policy": "draft", "population": "new", "carries": ["folk"]}, {}, True),
    "people that another part was split off": (
        {"policy": "draft", "population": "b", "carries": ["all"]},
        {"carries": ["all"]},
        False,
    ),
    "the same source under a draft": (
        {"policy": "draft", "population": "strangers", "origins": ["a", "b"]},
        {"origins": ["b"]},
        True,
    ),
}


@pytest.mark.parametrize(("look", "charge", "concerns"), CASES.values(), ids=CASES)
def test_a_look_concerns_the_same_people_and_the_same_source(
    look: dict[str, object], charge: dict[str, object], *, concerns: bool
) -> None:
    """Whatever policy or population they are called; who verifies counts by the same rule."""
    looked = Event(1, LOOKED, NOTED, None, {**CONTENT, "by": "ana", **look}, "")
    charged = Event(2, RESERVED, NOTED, ONE, {"population": "folk", **charge}, "")
    assert bool(find_looks_before((looked, charged), ONE)) is concerns
    theirs = [VerifiedEvent(each.number, each.kind, str(each.release), dict(each.content), "") for each in (looked, charged)]
    assert _concerns(*theirs) is concerns  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize(("origin", "concerns"), [("a", True), ("b", False)])
def test_what_was_called_public_is_a_look_if_it_was_the_source(origin: str, *, concerns: bool) -> None:
    """And tells then who said it, at what, and what was compared; else it is none."""
    content = {name: CONTENT[name] for name in ("policy", "population", "policy_hash", "compared")}
    said = Event(1, PUBLIC, NOTED, None, {**content, "by": "ana", "where": "shelf", "origins": ["a"]}, "")
    charged = Event(2, RESERVED, NOTED, ONE, {"population": "folk", "origins": [origin]}, "")
    found = find_looks_before((said, charged), ONE)
    assert [look.on for look in found] == ["public"] * concerns
    assert all("that is public, as they said (shelf): dp-cdf, epsilon 1" in look.description for look in found)
    theirs = [VerifiedEvent(each.number, each.kind, str(each.release), dict(each.content), "") for each in (said, charged)]
    assert _concerns(*theirs) is concerns  # pyright: ignore[reportPrivateUsage]


def test_a_look_says_what_its_people_were_before_and_whose_they_are(tiny: TinySite) -> None:
    """As the officer's file has it now; of people whom it does not have, none is noted."""
    (tiny.home / "populations.yaml").write_text("folk: {cap: {releases: 9}, was: people}\npeople: {cap: {releases: 9}}\n")
    assert look(tiny).carries == ("people",)
    (tiny.home / "populations.yaml").write_text("people: {cap: {releases: 9}}\n")
    before = tiny.events()
    with pytest.raises(PolicyInvalid, match="population 'folk' is not declared"):
        look(tiny)
    assert tiny.events() == before


def test_looks_so_far_are_those_at_what_the_people_were_before(tiny: TinySite) -> None:
    """Of a release that is not charged, by what is declared now."""
    (tiny.home / "populations.yaml").write_text("old: {cap: {releases: 9}}\nfolk: {cap: {releases: 9}, was: old}\n")
    tiny.write_policy(policy="earlier", population="old")
    look(tiny, "earlier")
    with tiny.site.open_registry() as registry:
        record_policy(tiny.site, registry, tiny.site.policy("people"))
    declared = read_caps(tiny.site).declared
    assert count_looks_before(tiny.events(), [ONE], declared) == {ONE: 1}
    assert count_looks_before(tiny.events(), [ONE]) == {ONE: 0}


def test_who_verifies_counts_runs_that_became_charges_likewise() -> None:
    """A run that nobody refused is none of its own release's, nor of one that was charged later still."""
    run = {**CONTENT, "by": "", "on": "run", "policy": "others", "stopped": "others/1/r1"}
    others = ReleaseId("others", "1")
    chain = [Event(1, LOOKED, NOTED, None, run, "")]
    for number, release in enumerate((ONE, others, TWO), start=2):
        chain.append(Event(number, RESERVED, NOTED, release, {"population": "folk", "policy_hash": DIGEST}, ""))
    theirs = [VerifiedEvent(each.number, each.kind, str(each.release or ""), dict(each.content), "") for each in chain]
    history = History(Report(None), theirs)  # pyright: ignore[reportPrivateUsage]
    for release, count in ((ONE, 1), (others, 0), (TWO, 0)):
        assert len(find_looks_before(chain, release)) == count
        check_looks(history, str(release), count, by="the card")  # pyright: ignore[reportPrivateUsage]
