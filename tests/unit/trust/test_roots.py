"""The officer is replaced, keys are revoked, a clock was wrong: on a site without data, and who may do none of it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from release_pipeline.apps.cli import main, trusting
from release_pipeline.errors import Blocked, ReleasePipelineError, WrongUsage
from release_pipeline.publish.verification import verify
from release_pipeline.store import registry as registry_module
from release_pipeline.store.registry import Event
from release_pipeline.store.site import Site
from release_pipeline.trust.keys import NotSigned, PublicKey
from release_pipeline.trust.members import Trust, distrust, need_trust, trust_key
from release_pipeline.trust.revocation import (
    Proposal,
    accept,
    hand_over,
    name_recovery,
    recover,
    repair_clock,
    revoke,
    sign_proposal,
)
from tests.ssh_keys import hold

pytestmark = pytest.mark.slow
KEYS = {
    name: hold(Ed25519PrivateKey.from_private_bytes(name.encode().ljust(32, b".")))
    for name in ["olga", "otto", "eve", "ben", "cleo", "vera", "wim", "xia"]
}
HOLDERS = {name: KEYS[name].public for name in ("vera", "wim", "xia")}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """With olga as its officer and ben as a reviewer."""
    (tmp_path / "policies").mkdir()
    site = Site(tmp_path, {})
    trust_key(site, "olga", "officer", KEYS["olga"].public, key=KEYS["olga"])
    trust_key(site, "ben", "reviewer", KEYS["ben"].public, key=KEYS["olga"])
    return site


def trust_of(site: Site) -> Trust:
    with site.open_registry(read_only=True) as registry:
        return need_trust(site, registry)


def events_of(site: Site) -> tuple[Event, ...]:
    with site.open_registry(read_only=True) as registry:
        return registry.events


def failures(site: Site) -> list[str]:
    return [finding.words for finding in verify(site.home) if finding.level == "FAIL"]


def with_recovery(site: Site) -> Site:
    name_recovery(site, 2, HOLDERS, [], key=KEYS["olga"])
    return site


def signed_by(proposal: Proposal, *names: str) -> list[dict[str, object]]:
    return [sign_proposal(proposal, name, key=KEYS[name]) for name in names]


def test_hand_over_and_accept(site: Site) -> None:
    """The pin stays olga's; otto changes the list from then on, and olga no more."""
    accept(site, hand_over(site, "otto", KEYS["otto"].public, key=KEYS["olga"]), [], key=KEYS["otto"])
    trust = trust_of(site)
    assert (trust.officer.name, [member.name for member in trust.members]) == ("otto", ["ben", "otto"])
    assert site.officer == KEYS["olga"].public.fingerprint
    assert trust.officers
    assert failures(site) == []
    with pytest.raises(NotSigned):
        trust_key(site, "eve", "reviewer", KEYS["eve"].public, key=KEYS["olga"])
    assert trust_key(site, "eve", "reviewer", KEYS["eve"].public, key=KEYS["otto"]).officer.name == "otto"


def test_the_pin_may_be_moved_to_a_later_officer_and_to_nobody_else(site: Site) -> None:
    """Another fingerprint, or none, is found out as before."""
    accept(site, hand_over(site, "otto", KEYS["otto"].public, key=KEYS["olga"]), [], key=KEYS["otto"])
    for officer, fine in ((KEYS["otto"], True), (KEYS["eve"], False), (None, False)):
        text = "" if officer is None else f"officer: {officer.public.fingerprint}\n"
        (site.home / "site.yaml").write_text(text)
        assert (failures(site) == []) is fine
        if not fine:
            with pytest.raises(NotSigned):
                trust_of(site)


CHANGES: dict[str, Callable[[Site], object]] = {
    "somebody taken off the list": lambda site: distrust(site, "ben", key=KEYS["olga"]),
    "a revoked key": lambda site: revoke(site, "ben", since=datetime.now(UTC), why="stolen", key=KEYS["olga"]),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("way", ["handed over", "handed over by one officer alone", "recovered"])
def test_an_old_proposal_undoes_nothing(site: Site, way: str, change: Callable[[Site], object]) -> None:
    """Signed, kept, and accepted after keys were changed: it would bring back who was taken off."""
    if way != "handed over by one officer alone":
        with_recovery(site)
    if way == "recovered":
        proposal = recover(site, "otto", KEYS["otto"].public)
        statements = signed_by(proposal, "vera", "xia")
    else:
        proposal, statements = hand_over(site, "otto", KEYS["otto"].public, key=KEYS["olga"]), []
    change(site)
    before = events_of(site)
    with pytest.raises(NotSigned, match=r"since this was proposed .* were changed") as refused:
        accept(site, proposal, statements, key=KEYS["otto"])
    assert "Make a new proposal" in refused.value.remedy
    assert events_of(site) == before
    fresh = hand_over(site, "otto", KEYS["otto"].public, key=KEYS["olga"])
    assert accept(site, fresh, [], key=KEYS["otto"]).officer.name == "otto"


def test_an_old_proposal_that_was_accepted_is_told(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stands, for much was signed since; `verify` says that somebody should look."""
    proposal = hand_over(site, "otto", KEYS["otto"].public, key=KEYS["olga"])
    distrust(site, "ben", key=KEYS["olga"])
    monkeypatch.setattr("release_pipeline.trust.revocation._check_fresh", lambda *_: None)
    accept(site, proposal, [], key=KEYS["otto"])
    notes = [finding.words for finding in verify(site.home) if finding.level == "note"]
    assert any("brought back the list of before: look who is on it (event" in words for words in notes)
    assert failures(site) == []


def test_a_thief_cannot_shut_out_the_holders_with_lists(site: Site) -> None:
    """What the stolen key changes after the proposal of those who recover is taken back by it, and does not stop it."""
    with_recovery(site)
    time.sleep(1.1)  # moments are whole seconds
    proposal = recover(site, "otto", KEYS["otto"].public, stolen=datetime.now(UTC).replace(microsecond=0))
    trust_key(site, "eve", "reviewer", KEYS["eve"].public, key=KEYS["olga"])
    revoke(site, "ben", since=datetime.now(UTC), why="not so", key=KEYS["olga"])
    accept(site, proposal, signed_by(proposal, "vera", "wim"), key=KEYS["otto"])
    assert [member.name for member in trust_of(site).members] == ["ben", "otto"]


def test_a_thief_of_the_officers_key_is_put_out(site: Site) -> None:
    """Who handed the office to herself: recovered, all of it is gone, and olga's list is there again."""
    with_recovery(site)
    time.sleep(1.1)  # moments are whole seconds
    stolen = datetime.now(UTC).replace(microsecond=0)
    accept(site, hand_over(site, "eve", KEYS["eve"].public, key=KEYS["olga"]), [], key=KEYS["eve"])
    proposal = recover(site, "otto", KEYS["otto"].public, stolen=stolen)
    accept(site, proposal, signed_by(proposal, "vera", "wim"), key=KEYS["otto"])
    trust = trust_of(site)
    assert [member.name for member in trust.members] == ["ben", "otto"]
    assert {KEYS[name].public.fingerprint for name in ("olga", "eve")} <= trust.revoked
    assert failures(site) == []


class Far(datetime):
    """The clock of a thief, who dates as they like."""

    @classmethod
    def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
        return datetime(2099, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("way", ["adds somebody", "hands the office over"])
def test_a_thief_cannot_shut_out_the_holders_with_dates(site: Site, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of 2099 by the stolen key would keep every later one away; it is taken back with all else that the key signed."""
    with_recovery(site)
    time.sleep(1.1)  # moments are whole seconds
    stolen = datetime.now(UTC).replace(microsecond=0)
    with monkeypatch.context() as far:
        far.setattr("release_pipeline.trust.keys.datetime", Far)
        if way == "adds somebody":
            trust_key(site, "eve", "reviewer", KEYS["eve"].public, key=KEYS["olga"])
        else:
            accept(site, hand_over(site, "eve", KEYS["eve"].public, key=KEYS["olga"]), [], key=KEYS["eve"])
    proposal = recover(site, "otto", KEYS["otto"].public)
    with pytest.raises(Blocked) as refused:
        accept(site, proposal, signed_by(proposal, "vera", "wim"), key=KEYS["otto"])
    assert "recover --stolen-from" in str(refused.value)
    proposal = recover(site, "otto", KEYS["otto"].public, stolen=stolen)
    accept(site, proposal, signed_by(proposal, "vera", "wim"), key=KEYS["otto"])
    assert [member.name for member in trust_of(site).members] == ["ben", "otto"]
    assert trust_key(site, "cleo", "reviewer", KEYS["cleo"].public, key=KEYS["otto"]).officer.name == "otto"
    assert failures(site) == []


ATTACKS: dict[str, Callable[[Site], object]] = {}


def attack(step: Callable[[Site], object]) -> Callable[[Site], object]:
    ATTACKS[step.__doc__ or step.__name__] = step
    return step


def _recovered(site: Site, *names: str, change: Callable[[Proposal], Proposal] = lambda proposal: proposal) -> None:
    proposal = recover(with_recovery(site), "otto", KEYS["otto"].public)
    accept(site, change(proposal), signed_by(proposal, *names), key=KEYS["otto"])


@attack
def one_of_two(site: Site) -> None:
    """k-1 of the recovery keys"""
    _recovered(site, "vera")


@attack
def one_twice(site: Site) -> None:
    """the same recovery key twice"""
    _recovered(site, "vera", "vera")


@attack
def stranger(site: Site) -> None:
    """a key that is no recovery key"""
    _recovered(site, "vera", "eve")


@attack
def replayed(site: Site) -> None:
    """statements about another list"""
    revoked = [{"key": KEYS["ben"].public.fingerprint, "from": "2026-01-01T00:00:00+00:00"}]
    _recovered(site, "vera", "wim", change=lambda proposal: replace(proposal, document={**proposal.document, "revoked": revoked}))


@attack
def by_reviewer(site: Site) -> None:
    """handed over by a reviewer"""
    hand_over(site, "otto", KEYS["otto"].public, key=KEYS["ben"])


@attack
def by_reviewers_signature(site: Site) -> None:
    """handed over with a reviewer's signature"""
    proposal = hand_over(site, "otto", KEYS["otto"].public, key=KEYS["olga"])
    signed = KEYS["ben"].sign(kind="succession", subject="officer", digest=proposal.digest, name="ben")
    accept(site, replace(proposal, signed=(signed,)), [], key=KEYS["otto"])


@attack
def by_new_officer_alone(site: Site) -> None:
    """handed over by the new officer to themselves"""
    proposal = hand_over(site, "otto", KEYS["otto"].public, key=KEYS["olga"])
    signed = KEYS["otto"].sign(kind="succession", subject="officer", digest=proposal.digest, name="otto")
    accept(site, replace(proposal, signed=(signed,)), [], key=KEYS["otto"])


@attack
def cycle(site: Site) -> None:
    """an officer who comes back"""
    accept(site, hand_over(site, "otto", KEYS["otto"].public, key=KEYS["olga"]), [], key=KEYS["otto"])
    hand_over(site, "olga", KEYS["olga"].public, key=KEYS["otto"])


@attack
def second_successor(site: Site) -> None:
    """two successors of one officer"""
    one, other = (hand_over(site, name, KEYS[name].public, key=KEYS["olga"]) for name in ("otto", "eve"))
    accept(site, one, [], key=KEYS["otto"])
    accept(site, other, [], key=KEYS["eve"])


@attack
def other_recovery(site: Site) -> None:
    """other recovery keys without those of today"""
    name_recovery(with_recovery(site), 1, {"eve": KEYS["eve"].public}, [], key=KEYS["olga"])


@attack
def recovery_by_reviewer(site: Site) -> None:
    """recovery keys named by a reviewer"""
    name_recovery(site, 2, HOLDERS, [], key=KEYS["ben"])


@attack
def shared(site: Site) -> None:
    """a recovery key that is in the list"""
    name_recovery(site, 1, {"ben": KEYS["ben"].public}, [], key=KEYS["olga"])


@attack
def revoked_by_reviewer(site: Site) -> None:
    """revoked by a reviewer"""
    revoke(site, "olga", since=datetime.now(UTC), why="so", key=KEYS["ben"])


@attack
def revoked_by_itself(site: Site) -> None:
    """the officer's key revoked by itself"""
    revoke(site, "olga", since=datetime.now(UTC), why="so", key=KEYS["olga"])


@pytest.mark.parametrize("name", ATTACKS)
def test_who_replaces_nobody(site: Site, name: str) -> None:
    """Refused, and nothing of it is in the registry: olga (or who followed her rightly) is the officer."""
    with pytest.raises((NotSigned, WrongUsage, Blocked)):
        ATTACKS[name](site)
    assert trust_of(site).officer.name in (
        "olga",
        "otto" if name in ("an officer who comes back", "two successors of one officer") else "olga",
    )
    assert failures(site) == []


def test_a_revoked_key_signs_nothing_more(site: Site) -> None:
    """It stands in the public list, by its fingerprint; an older list put back is found out."""
    moment = datetime.now(UTC).replace(microsecond=0)
    fingerprint = revoke(site, "ben", since=moment, why="stolen", key=KEYS["olga"])
    first = (site.releases / "revoked.json").read_text()
    assert json.loads(first)["document"]["revoked"][-1]["key"] == fingerprint
    with pytest.raises(NotSigned, match="revoked"):
        trust_of(site).sign(KEYS["ben"], kind="approve", subject="people/1/r1", digest="ab" * 32)
    trust_key(site, "ben", "reviewer", KEYS["eve"].public, key=KEYS["olga"])
    revoke(site, KEYS["eve"].public.fingerprint, since=moment, why="stolen too", key=KEYS["olga"])
    assert failures(site) == []
    (site.releases / "revoked.json").write_text(first)
    assert any("revoked.json" in words for words in failures(site))


def test_only_the_officer_repairs_clocks(site: Site) -> None:
    """And nothing that is not ahead of now."""
    assert repair_clock(site, key=KEYS["olga"]) == []
    with pytest.raises(NotSigned):
        repair_clock(site, key=KEYS["ben"])


def test_an_event_of_2037_is_repaired(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """It blocks `trust` for years; the officer says that it is not to be believed, and `verify` tells it."""

    class Ahead(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
            return datetime(2037, 1, 1, tzinfo=UTC)

    with monkeypatch.context() as ahead:
        ahead.setattr(registry_module, "datetime", Ahead)
        ahead.setattr("release_pipeline.trust.keys.datetime", Ahead)
        trust_key(site, "eve", "reviewer", KEYS["eve"].public, key=KEYS["olga"])
    with pytest.raises(ReleasePipelineError, match="clock is behind"):
        trust_key(site, "otto", "service", KEYS["otto"].public, key=KEYS["olga"])
    assert [event.number for event in repair_clock(site, key=KEYS["olga"])] == [len(events_of(site)) - 1]
    trust = trust_key(site, "otto", "service", KEYS["otto"].public, key=KEYS["olga"])
    assert [member.name for member in trust.members] == ["ben", "eve", "olga", "otto"]
    assert trust_of(site).members == trust.members
    assert failures(site) == []
    assert any("wrong clock" in finding.words for finding in verify(site.home))


@pytest.mark.parametrize("text", ["ssh-ed25519 Zm\u2013v", "ssh-ed25519 \u00e9", "", "ssh-ed25519", "\u2013"])
def test_what_is_no_key_is_told(text: str) -> None:
    """Also a dash that a word processor made of a hyphen."""
    with pytest.raises(ReleasePipelineError, match="key"):
        PublicKey.parse(text)


@pytest.mark.parametrize("stolen", [True, False])
def test_who_accepts_sees_what_and_what_becomes_of_the_key_before(
    site: Site, stolen: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The list and the revocations that they sign; and of a stolen key not that what it signed stands."""
    with_recovery(site)
    time.sleep(1.1)  # moments are whole seconds
    since = datetime.now(UTC).replace(microsecond=0) if stolen else None
    proposal = recover(site, "otto", KEYS["otto"].public, stolen=since)
    (tmp_path / "proposal.json").write_text(proposal.text)
    statements: list[Path] = []
    for name, statement in zip(("vera", "wim"), signed_by(proposal, "vera", "wim"), strict=True):
        statements.append(tmp_path / f"{name}.json")
        statements[-1].write_text(json.dumps(statement))
    monkeypatch.setattr(trusting, "read_key", lambda _: KEYS["otto"])
    given = [word for file in statements for word in ("--statement", str(file))]
    command = ["officer", "accept", str(tmp_path / "proposal.json"), *given, "--key", "otto", "--home", str(site.home)]
    assert main(command) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("The privacy officer is otto, fingerprint")
    assert ("what it signed until now stands" in shown) is not stolen
    assert ("on counts for nothing" in shown) is stolen
    (tmp_path / "proposal.json").write_text(proposal.text.replace('"keys"', '"locks"'))
    assert main(command) == 2
    assert "no proposal" in capsys.readouterr().err
