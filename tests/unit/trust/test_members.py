"""Who may sign what: the list of the site and that of the verifier, which shares no code with it, say the same."""

from __future__ import annotations

import json

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from release_pipeline.ledger import office, states
from release_pipeline.ledger import office as clocks
from release_pipeline.publish import delivery as published
from release_pipeline.publish import package
from release_pipeline.store.site import Site
from release_pipeline.trust import members as trust
from release_pipeline.trust.keys import NotSigned, PrivateKey
from release_pipeline.trust.members import ROLES, Trust, trust_key
from release_pipeline.verifier.documents import Fault
from release_pipeline.verifier.statements import MAY_SIGN, SIGNED_EVENTS, TOMBSTONES, verify_statement
from release_pipeline.verifier.statements import ROLES as VERIFIER_ROLES
from release_pipeline.verifier.trees import CARD, KEYS, KEYS_SIG, SUMS_SIG
from tests.ssh_keys import hold

DIGEST = "ab" * 32


@pytest.fixture(scope="module")
def people() -> dict[str, PrivateKey]:
    """A key for each role, and one of nobody."""
    return {name: hold(Ed25519PrivateKey.generate()) for name in (*ROLES, "stranger")}


@pytest.fixture(scope="module")
def trusted(people: dict[str, PrivateKey], tmp_path_factory: pytest.TempPathFactory) -> Trust:
    """A list with one person of each role, named after it; nobody changes it."""
    folder = tmp_path_factory.mktemp("trusted")
    (folder / "policies").mkdir()
    site = Site(folder, {})
    for role in ROLES:
        found = trust_key(site, role, role, people[role].public, key=people["officer"])
    return found


def test_the_two_lists_are_the_same() -> None:
    """Roles, kinds, and who may sign which; and the words of statements and files that both must know."""
    assert MAY_SIGN == MAY_SIGN
    assert ROLES == VERIFIER_ROLES
    assert {role for roles in MAY_SIGN.values() for role in roles} <= set(ROLES)
    assert (trust.KEYS, trust.KEYS_SIGNATURE) == (KEYS, KEYS_SIG)
    assert (published.SIGNATURE, package.CARD) == (SUMS_SIG, CARD)
    assert {name: MAY_SIGN[kind] for name, kind in TOMBSTONES.items()} == dict.fromkeys(
        published.TOMBSTONES.values(), ("officer",)
    )


def test_every_signed_event_is_of_a_kind_that_somebody_may_sign() -> None:
    """And every kind of signature belongs to an event."""
    assert set(SIGNED_EVENTS) == {
        trust.TRUSTED,
        states.APPROVED,
        states.REJECTED,
        states.RETURNED,
        states.REMARKED,
        states.PUBLISHED,
        states.RETRACTED,
        states.SUPERSEDED,
        office.RECOVERY,
        office.REVOKED,
        clocks.CLOCK,
        "restored",
    }
    of_successions = {office.SUCCESSION, office.ACCEPT}  # parts of the event `trusted`
    assert {*SIGNED_EVENTS.values(), "policy", "populations"} | of_successions == set(MAY_SIGN)


@pytest.mark.parametrize("kind", MAY_SIGN)
@pytest.mark.parametrize("role", [*ROLES, "stranger"])
def test_signer_site_and_verifier_agree(kind: str, role: str, people: dict[str, PrivateKey], trusted: Trust) -> None:
    """Whoever may sign can, and both accept it; whoever may not is refused, and both refuse what they signed all the same."""
    listed, key = json.loads(trusted.text), people[role]
    if role in MAY_SIGN[kind]:
        signed = trusted.sign(key, kind=kind, subject="people/1/r1", digest=DIGEST, why="so")
        assert trusted.check(signed, kind=kind, subject="people/1/r1", digest=DIGEST).role == role
        found = verify_statement(signed, listed)
        assert (found.kind, found.name, found.role, found.hash, found.why) == (kind, role, role, DIGEST, "so")
        return
    with pytest.raises(NotSigned):
        trusted.sign(key, kind=kind, subject="people/1/r1", digest=DIGEST)
    signed = key.sign(kind=kind, subject="people/1/r1", digest=DIGEST, name=role)
    with pytest.raises(NotSigned):
        trusted.check(signed, kind=kind, subject="people/1/r1", digest=DIGEST)
    with pytest.raises(Fault):
        verify_statement(signed, listed)


def test_nobody_signs_in_anothers_name(people: dict[str, PrivateKey], trusted: Trust) -> None:
    """The officer's key, with the service's name under it."""
    signed = people["officer"].sign(kind="package", subject="people/1/r1", digest=DIGEST, name="service")
    with pytest.raises(NotSigned, match="another name"):
        trusted.check(signed, kind="package", subject="people/1/r1", digest=DIGEST)
    with pytest.raises(Fault, match="not in the list"):
        verify_statement(signed, json.loads(trusted.text))
