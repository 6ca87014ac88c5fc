"""Attacks that must fail: each is refused or found out, in words that name what is wrong, and nothing is published or changed.

Three attackers: a person with a key of their own who goes beyond their role; somebody who can write into files and databases of
the site; and somebody who owns the machine, and so the vault's key too, but nobody else's private key.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeAlias

import dagster as dg
import duckdb
import pytest

from release_pipeline.apps.dagster.launch import prepare
from release_pipeline.errors import Blocked, ReleasePipelineError, WrongUsage
from release_pipeline.ledger.policies import read_caps
from release_pipeline.masking import centroids
from release_pipeline.pipeline import audit as audit_stage
from release_pipeline.pipeline import gates
from release_pipeline.pipeline.ingest import ingest
from release_pipeline.pipeline.release import run_release
from release_pipeline.publish.dossier import write_dossier
from release_pipeline.publish.publish import list_publishable, publish, retract, supersede
from release_pipeline.publish.verification import examine, verify
from release_pipeline.store.files import Probe, hash_of
from release_pipeline.store.registry import Event, RegistryChanged, ReleaseId, canonical_json
from release_pipeline.store.site import Site, _RegistryAnchor
from release_pipeline.trust.approvals import (
    approve_candidate,
    approve_policy,
    approve_populations,
    reject_candidate,
    return_candidate,
)
from release_pipeline.trust.keys import NotSigned, PrivateKey
from release_pipeline.trust.members import distrust, trust_key
from tests.integration.people import CORRECTION, PEOPLE, RELEASE, appoint, copy_site, read_keys, review
from tests.integration.processes import PROCESSES, TOGETHER, child, hear
from tests.integration.sites import TinySite, make_site

Keys: TypeAlias = dict[str, PrivateKey]
OTHER = ReleaseId("people", "2")
ROUNDS = 2
NOBODY = "0" * 64


def digests(folder: Path) -> dict[str, str]:
    """Every file under a folder with its hash."""
    files = (file for file in sorted(folder.rglob("*")) if file.is_file())
    return {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def rows(tiny: TinySite) -> list[list[tuple[Any, ...]]]:
    """Every row of the registry, whether or not it is still believed."""
    with duckdb.connect(str(tiny.site.registry)) as registry:
        return [registry.execute(f"FROM {table} ORDER BY ALL").fetchall() for table in ("events", "head", "budgets")]


def look(tiny: TinySite) -> list[Any]:
    """Everything that must stay as it is: what is public, what people sign, and what is noted."""
    return [
        digests(tiny.site.releases),
        digests(tiny.site.vault / "candidates"),
        (tiny.site.vault / "registry.head").read_bytes(),
        rows(tiny),
    ]


@contextmanager
def refused(tiny: TinySite, words: str, error: type[ReleasePipelineError] = ReleasePipelineError) -> Iterator[None]:
    """The block is refused in these words, and nothing is published or noted."""
    before = look(tiny)
    with pytest.raises(error) as caught:
        yield
    assert words in caught.value.in_full
    assert look(tiny) == before


def write_anew(tiny: TinySite, keep: Callable[[Event], bool]) -> None:
    """Begin the registry and the vault's head again with some of the events only: sealed, for the vault's key is at hand."""
    events = tiny.events()
    tiny.site.registry.unlink()
    (tiny.site.vault / "registry.head").unlink()
    _RegistryAnchor(tiny.site).write(0, "")
    note(tiny, *(event for event in events if keep(event)))


def note(tiny: TinySite, *events: Event) -> None:
    """Note these events once more, with what belongs to them."""
    with tiny.site.open_registry() as registry:
        for event in events:
            registry.add(event.kind, event.release, **event.content)


def forge(tiny: TinySite, kind: str, about: ReleaseId | None, **content: Any) -> int:
    """Note an event with the registry's own means, as whoever owns the vault's key can; gives its number."""
    with tiny.site.open_registry() as registry:
        return registry.add(kind, about, **content).number


def forge_approval(tiny: TinySite, signed: Any, *, name: str, about: ReleaseId = RELEASE) -> int:
    """Note somebody's statement as an approval of the candidate as it is."""
    digest = tiny.status(about.release).candidate_hash
    return forge(tiny, "approved", about, what="candidate", subject=str(about), hash=digest, name=name, needed=2, signed=signed)


def approval(tiny: TinySite, key: PrivateKey, *, name: str) -> dict[str, Any]:
    """A statement that the candidate is approved, whoever signs it in whatever name."""
    return key.sign(kind="approve", subject=str(RELEASE), digest=str(tiny.status().candidate_hash), name=name)


def flip(file: Path) -> None:
    """Change one byte in the middle."""
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def faults(path: Path, keys: Keys) -> list[str]:
    """What the verifier, who knows the officer, finds wrong with a package, a dossier or a site."""
    return [found.words for found in verify(path, [keys["olga"].public.fingerprint]) if found.level == "FAIL"]


def payload(words: Sequence[str], *wanted: str) -> bool:
    """Whether one of the findings says all of this."""
    return any(all(part in line for part in wanted) for line in words)


def head_of(package: Path) -> tuple[int, str]:
    """The last event that a package knows of."""
    head = json.loads((package / "privacy-card.json").read_text())["registry_head"]
    return head["event"], head["hash"]


@pytest.fixture
def tiny(candidate: Path, tmp_path: Path) -> TinySite:
    """A site with a candidate that ben has approved, so that one more is needed."""
    return copy_site(candidate, tmp_path / "site")


@pytest.fixture
def out(published: Path, tmp_path: Path) -> TinySite:
    """A site with a published release."""
    return copy_site(published, tmp_path / "site")


@pytest.fixture(scope="module")
def unchanged(candidate: Path, corrected: Path, keys: Keys, tmp_path_factory: pytest.TempPathFactory) -> dict[str, TinySite]:
    """An approved release that is not out yet, and a published one with its correction: nothing that is refused changes them."""
    folder = tmp_path_factory.mktemp("unchanged")
    found = {"approved": copy_site(candidate, folder / "approved"), "published": copy_site(corrected, folder / "published")}
    review(found["approved"], keys, "ben", "cleo")
    return found


@pytest.fixture(scope="module")
def two(candidate: Path, keys: Keys, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two candidates of the same people: the first approved and published, the second not looked at by anybody."""
    tiny = copy_site(candidate, tmp_path_factory.mktemp("two") / "site")
    run_release(tiny.flow("2"))
    review(tiny, keys, "ben", "cleo")
    publish(tiny.site, RELEASE, key=keys["robot"])
    return tiny.home


def test_two_copies_of_a_site_that_both_go_on_are_found_out(candidate: Path, tmp_path: Path, keys: Keys) -> None:
    """Each publishes under its own cap, and each package verifies by itself; side by side they do not, nor does a dossier of one
    beside the package of the other."""
    copies = [copy_site(candidate, tmp_path / name / "site") for name in ("one", "other")]
    for tiny, reviewers in zip(copies, (("ben", "cleo"), ("cleo", "ben")), strict=True):
        review(tiny, keys, *reviewers)
        publish(tiny.site, RELEASE, key=keys["robot"])
    one, other = (tiny.site.package(str(RELEASE)) for tiny in copies)
    officer = [keys["olga"].public.fingerprint]
    assert faults(one, keys) == faults(other, keys) == []
    dossier = tmp_path / "one.zip"
    write_dossier(copies[0].site, RELEASE, dossier)
    assert examine(one, officer, beside=str(one)).failed == 0
    for first in (one, dossier):
        [told] = [found.words for found in examine(first, officer, beside=str(other)).findings if found.level == "FAIL"]
        assert "two copies of one site that both went on: the same budget was spent twice" in told
    with pytest.raises(WrongUsage, match="--beside compares packages and dossiers"):
        examine(copies[0].home, officer, beside=str(other))


ACTIONS: dict[str, tuple[str, Callable[[Site, PrivateKey], object]]] = {
    "approve": ("approved", lambda site, key: approve_candidate(site, RELEASE, key=key)),
    "reject": ("approved", lambda site, key: reject_candidate(site, RELEASE, key=key, why="no")),
    "return": ("approved", lambda site, key: return_candidate(site, RELEASE, key=key, why="no")),
    "policy": ("approved", lambda site, key: approve_policy(site, "people", key=key)),
    "populations": ("approved", lambda site, key: approve_populations(site, key=key)),
    "trust": ("approved", lambda site, key: trust_key(site, "eve", "reviewer", key.public, key=key)),
    "distrust": ("approved", lambda site, key: distrust(site, "dora", key=key)),
    "publish": ("approved", lambda site, key: publish(site, RELEASE, key=key)),
    "retract": ("published", lambda site, key: retract(site, RELEASE, key=key, why="no")),
    "supersede": ("published", lambda site, key: supersede(site, RELEASE, CORRECTION, key=key)),
}
MAY = {
    "olga": {"policy", "populations", "trust", "distrust", "publish", "retract", "supersede"},
    "ben": {"approve", "reject", "return"},
    "robot": {"publish"},
}


def test_nobody_signs_beyond_their_role(unchanged: dict[str, TinySite], keys: Keys) -> None:
    """The steward who reviews, the service key that does more than publish, the officer who reviews, a stranger at all: the
    refusal names their role, or says that the key is in no list."""
    for who in ("olga", "ana", "ben", "robot", "stranger"):
        for what in ACTIONS.keys() - MAY.get(who, set()):
            state, act = ACTIONS[what]
            words = f"{who} has the role {PEOPLE.get(who)}, and this needs"
            if what in ("trust", "distrust"):
                words = "only the officer's key may change the list"
            elif who == "stranger":
                words = "this key is not in the list of trusted keys"
            elif who == "ana" and what in ("approve", "reject", "return"):
                words = "ana is the steward of the policy, and no steward reviews"
            with pytest.raises(NotSigned, match=words):
                act(unchanged[state].site, keys[who])


def test_steward_who_becomes_a_reviewer_does_not_count(tiny: TinySite, keys: Keys) -> None:
    """With the role given by the officer, and with their approval put into the registry, it is the steward's own release."""
    review(tiny, keys, "ben")
    trust_key(tiny.site, "ana", "reviewer", keys["ana"].public, key=keys["olga"])
    with refused(tiny, "ana is the steward of the policy, and no steward reviews", NotSigned):
        review(tiny, keys, "ana")
    number = forge_approval(tiny, approval(tiny, keys["ana"], name="ana"), name="ana")
    assert tiny.status().approvers == ["ana", "ben"]
    with refused(tiny, "1 of 2 reviewers have approved it as it is.", Blocked):
        publish(tiny.site, RELEASE, key=keys["robot"])
    assert payload(faults(tiny.home, keys), f"event {number} (approved)", "'ana' is the steward of the policy")


@pytest.mark.parametrize("how", ["noted twice", "in another name", "under two names"])
def test_one_person_counts_once(tiny: TinySite, keys: Keys, how: str) -> None:
    """However ben approves again, it is one of two; what was noted by force is found out by name."""
    review(tiny, keys, "ben")
    words: tuple[str, ...] = ()
    if how == "noted twice":
        forge_approval(tiny, approval(tiny, keys["ben"], name="ben"), name="ben")
    elif how == "in another name":
        number = forge_approval(tiny, approval(tiny, keys["ben"], name="cleo"), name="cleo")
        words = (f"event {number} (approved)", "it names 'cleo' with a key that is not in the list")
    else:
        with refused(tiny, "this key is somebody else's already; one key, one person", WrongUsage):
            trust_key(tiny.site, "benny", "reviewer", keys["ben"].public, key=keys["olga"])
        distrust(tiny.site, "ben", key=keys["olga"])
        trust_key(tiny.site, "benny", "reviewer", keys["ben"].public, key=keys["olga"])
        review(tiny, {"benny": keys["ben"]}, "benny")
        assert tiny.status().approvers == ["ben", "benny"]
    blocked = "1 of 2 reviewers have approved" if how == "in another name" else "is not approved yet: 1 of 2 reviewers have voted"
    with refused(tiny, blocked, Blocked):
        publish(tiny.site, RELEASE, key=keys["robot"])
    assert payload(faults(tiny.home, keys), *words) or not words


@pytest.mark.parametrize(
    ("who", "name", "words"),
    [
        ("stranger", "cleo", "it names 'cleo' with a key that is not in the list of trusted keys"),
        ("olga", "olga", "'olga' has the role officer, which may not sign 'approve'"),
    ],
)
def test_approval_that_was_put_into_the_registry_does_not_count(
    tiny: TinySite, keys: Keys, who: str, name: str, words: str
) -> None:
    """Signed with a key outside of the list, by the service or the officer, and noted with the vault's key: one of two still."""
    review(tiny, keys, "ben")
    number = forge_approval(tiny, approval(tiny, keys[who], name=name), name=name)
    assert tiny.status().state == ("approved" if name == "cleo" else "candidate"), "noted it is, and cleo alone is a reviewer"
    blocked = "1 of 2 reviewers have approved it as it is." if name == "cleo" else "1 of 2 reviewers have voted."
    with refused(tiny, blocked, Blocked):
        publish(tiny.site, RELEASE, key=keys["robot"])
    assert payload(faults(tiny.home, keys), f"event {number} (approved)", words)


@pytest.mark.parametrize(("who", "what"), [("ben", "policy"), ("robot", "populations")])
def test_approval_of_a_file_by_anybody_else_does_not_count(tiny: TinySite, keys: Keys, who: str, what: str) -> None:
    """A policy with more epsilon, a higher cap, approved with another key than the officer's: no run, no charge."""
    if what == "policy":
        tiny.write_policy(protect="{method: idp-cbls, epsilon: 3, k: 5}")
        subject, digest, text = "people", tiny.site.policy("people").canonical_hash(), ""
    else:
        tiny.write_cap("epsilon: 100, definition: idp, scope: column")
        caps = read_caps(tiny.site)
        subject, digest, text = what, caps.hash, caps.text
    signed = keys[who].sign(kind=what, subject=subject, digest=digest, name=who)
    number = forge(tiny, "approved", None, what=what, subject=subject, hash=digest, name=who, signed=signed, text=text)
    with refused(tiny, f"{what if what == 'populations' else 'policies/people'}.yaml is not approved by the privacy officer"):
        ingest(tiny.flow("2"))
    assert payload(faults(tiny.home, keys), f"event {number} (approved)", f"'{who}'")


def test_withdrawal_that_was_put_into_the_registry_is_found_out(out: TinySite, keys: Keys) -> None:
    """A retraction that the service signed: the verifier names it, and no tombstone is made of it, even by the officer's hand."""
    digest = out.status().package_hash
    signed = keys["robot"].sign(kind="retract", subject=str(RELEASE), digest=str(digest), name="robot", why="no")
    number = forge(out, "retracted", RELEASE, reason="no", hash=digest, signed=signed)
    assert payload(faults(out.home, keys), f"event {number} (retracted)", "'robot'")
    with refused(out, f"retract of {RELEASE}", NotSigned):
        retract(out.site, RELEASE, key=keys["olga"], why="again")


@pytest.mark.parametrize("who", ["ben", "stranger"])
def test_list_of_keys_that_the_officer_did_not_sign_stops_everything(tiny: TinySite, keys: Keys, who: str) -> None:
    """A list with one reviewer more, signed by somebody else, or by somebody who names themself officer."""
    review(tiny, keys, "ben", "cleo")
    [*_, last] = [event.content for event in tiny.events() if event.kind == "trusted"]
    entries = {**last["keys"], "eve": {"role": "reviewer", "key": keys["stranger"].public.text}}
    if who == "stranger":
        entries = {**last["keys"], "olga": {"role": "officer", "key": keys["stranger"].public.text}}
    digest = hashlib.sha256(canonical_json({"keys": entries}).encode()).hexdigest()
    name = "olga" if who == "stranger" else who
    signed = keys[who].sign(kind="trusted-keys", subject="trusted-keys", digest=digest, name=name)
    officer = keys["stranger" if who == "stranger" else "olga"].public.fingerprint
    number = forge(tiny, "trusted", None, hash=digest, officer=officer, keys=entries, signed=signed)
    words = "the officer in the list is not the one that the site names" if who == "stranger" else f"{who} has the role"
    with refused(tiny, words, NotSigned):
        publish(tiny.site, RELEASE, key=keys["robot"])
    with refused(tiny, words, NotSigned):
        review(tiny, keys, "dora")
    named = "the officer's fingerprint is" if who == "stranger" else f"'{who}' has the role"
    assert payload(faults(tiny.home, keys), f"event {number} (trusted)", named)


def test_older_list_of_keys_that_is_put_back_stops_everything(tiny: TinySite, keys: Keys) -> None:
    """Cleo was taken off the list: that of before, which the officer did sign, is noted again and its files are put back."""
    review(tiny, keys, "ben", "cleo")
    files = {name: (tiny.home / name).read_bytes() for name in ("trusted-keys.yaml", "trusted-keys.sig")}
    before = next(event for event in reversed(tiny.events()) if event.kind == "trusted")
    time.sleep(1.1)  # a list is signed to the second
    distrust(tiny.site, "cleo", key=keys["olga"])
    number = forge(tiny, "trusted", None, **before.content)
    for name, content in files.items():
        (tiny.home / name).write_bytes(content)
    with refused(tiny, "an older list than the last was put back", NotSigned):
        publish(tiny.site, RELEASE, key=keys["robot"])
    assert payload(faults(tiny.home, keys), f"event {number} (trusted)", "was put back after that of")


@pytest.mark.parametrize("how", ["as it is", "in its own name"])
def test_approval_of_one_candidate_is_none_of_another(two: Path, tmp_path: Path, keys: Keys, how: str) -> None:
    """What ben and cleo signed about release 1, noted for release 2 with the registry's own means: nobody has approved that."""
    tiny = copy_site(two, tmp_path / "site")
    given = [event for event in tiny.events() if event.kind == "approved" and event.release == RELEASE]
    numbers: list[int] = []
    for event in given:
        if how == "as it is":
            numbers.append(forge(tiny, "approved", OTHER, **event.content))
        else:
            numbers.append(forge_approval(tiny, event.content["signed"], name=event.content["name"], about=OTHER))
    assert tiny.status("2").state == ("candidate" if how == "as it is" else "approved")
    blocked = "0 of 2 reviewers have voted." if how == "as it is" else "0 of 2 reviewers have approved it as it is."
    with refused(tiny, blocked, Blocked):
        publish(tiny.site, OTHER, key=keys["robot"])
    words = "noted for something else" if how == "as it is" else "it is signed for another subject"
    found = faults(tiny.home, keys)
    assert all(payload(found, f"event {number} (approved)", words) for number in numbers)


def test_candidate_that_is_changed_after_it_was_looked_at_is_not_published(tiny: TinySite, keys: Keys) -> None:
    """Between the last look and the copy other data are put in its place: nothing is signed that nobody has reviewed."""
    review(tiny, keys, "ben", "cleo")

    def swap(boundary: str) -> None:
        if boundary == "the intent is noted":
            data = tiny.folder() / "data.csv"
            first, second, *others = data.read_text().splitlines(keepends=True)
            data.write_text("".join([first, *others, second]))

    with pytest.raises(Blocked, match="not what was frozen"):
        publish(tiny.site, RELEASE, key=keys["robot"], probe=Probe(reached=swap))
    assert digests(tiny.site.releases) == {}
    assert tiny.status().state == "publishing"


def test_changed_package_is_found_out(out: TinySite, keys: Keys) -> None:
    """By a stranger with the package alone, by the site, and by whoever publishes again."""
    package = out.site.package(str(RELEASE))
    flip(package / "data.csv")
    assert payload(faults(package, keys), "data.csv")
    assert payload(faults(out.home, keys), f"releases/{RELEASE}")
    with refused(out, "its package is not what was published", Blocked):
        publish(out.site, RELEASE, key=keys["robot"])
    with pytest.raises(Blocked, match="not what was published"):
        write_dossier(out.site, RELEASE, out.home / "dossier.zip")


def test_changed_policy_file_stops_the_next_run_and_changes_no_package(tiny: TinySite, keys: Keys) -> None:
    """A k of 4 in place of 5: nothing is run under it, and what was approved goes out under the policy that was approved."""
    before = tiny.site.policy("people").canonical_hash()
    file = tiny.site.policy_file("people")
    file.write_text(file.read_text().replace("k: 5", "k: 4"))
    with refused(tiny, "policies/people.yaml is not approved by the privacy officer as it is now", Blocked):
        ingest(tiny.flow("2"))
    review(tiny, keys, "ben", "cleo")
    card = json.loads((publish(tiny.site, RELEASE, key=keys["robot"]) / "privacy-card.json").read_text())
    assert (card["hashes"]["policy"], tiny.site.policy("people").protect.k) == (before, 4)


@pytest.mark.parametrize(
    ("file", "old", "new", "words"),
    [
        ("trusted-keys.yaml", "role: steward", "role: reviewer", "are not the last that the registry knows of"),
        ("trusted-keys.sig", '"kind"', '"king"', "are not the last that the registry knows of"),
        ("site.yaml", "officer: ", f"officer: {NOBODY} # ", "the officer in the list is not the one that the site names"),
        ("site.yaml", "officer: ", "# ", "the site had a privacy officer, and no longer names one"),
    ],
)
def test_changed_list_of_keys_stops_everything(tiny: TinySite, keys: Keys, file: str, old: str, new: str, words: str) -> None:
    """A role, a name, the signature, the pinned officer: no review, no run and no publication."""
    review(tiny, keys, "ben", "cleo")
    path = tiny.home / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))
    for act in (
        lambda: publish(tiny.site, RELEASE, key=keys["robot"]),
        lambda: review(tiny, keys, "dora"),
        lambda: ingest(tiny.flow("2")),
        lambda: approve_policy(tiny.site, "people", key=keys["olga"]),
    ):
        with refused(tiny, words, NotSigned):
            act()
    assert payload(faults(tiny.home, keys), words)


def test_chain_written_anew_with_the_vaults_key_is_not_that_of_a_kept_package(two: Path, tmp_path: Path, keys: Keys) -> None:
    """Release 2 and its charge never happened: all signatures hold, the site opens, and the head in the kept package is in no
    such chain. Site and dossier say so."""
    tiny = copy_site(two, tmp_path / "site")
    kept = copy_site(tiny.site.package(str(RELEASE)), tmp_path / "kept").home
    time.sleep(1.1)  # so that no event is noted in the same second again
    write_anew(tiny, lambda event: event.release != OTHER)
    shutil.rmtree(tiny.site.candidate("people/2"))
    assert [str(charge.id) for charge in tiny.charges()] == [str(RELEASE)], "the budget is as if it had never been"
    number, head = head_of(kept)
    assert head not in {event.hash for event in tiny.events()}
    assert publish(tiny.site, RELEASE, key=keys["robot"]) == tiny.site.package(str(RELEASE))
    found = faults(tiny.home, keys)
    assert payload(found, f"releases/{RELEASE}", f"event {number}"), found
    write_dossier(tiny.site, RELEASE, tmp_path / "forged.zip")
    assert payload(faults(tmp_path / "forged.zip", keys), "events.jsonl", f"the package names event {number}")


def test_changed_budget_charges_nobody(tiny: TinySite, keys: Keys) -> None:
    """What is spent of the cap is told by the events; a row beside them that says otherwise stops the next charge."""
    with duckdb.connect(str(tiny.site.registry)) as registry:
        registry.execute("UPDATE budgets SET spent = spent - 1")
    with pytest.raises(RegistryChanged, match="do not agree on what is spent"):
        run_release(tiny.flow("2"))
    assert [str(charge.id) for charge in tiny.charges()] == [str(RELEASE)]
    assert not tiny.folder("2").exists()
    budget = "the row of the cap of folk in the table 'budgets' is not what its last charge says"
    assert payload(faults(tiny.home, keys), budget)


def test_candidate_that_fails_a_gate_is_not_published(tmp_path: Path, keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody has switched the gates off where candidates are made: they are judged again, and the figure is not told."""
    tiny = make_site(tmp_path / "site", gates="{min_rows: 20, expected_error: {income: 0.000001}}")
    appoint(tiny, keys)
    with monkeypatch.context() as patch:
        for module in (gates, audit_stage):
            patch.setattr(module, "judge_gates", lambda *_: [])
        run_release(tiny.flow())
    review(tiny, keys, "ben", "cleo")
    with refused(tiny, "the expected error of income is over the limit 1e-06 (the figure is in the vault)", Blocked):
        publish(tiny.site, RELEASE, key=keys["robot"])


def test_candidate_with_cells_that_the_policy_does_not_let_out_is_not_published(
    tmp_path: Path, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Likewise for small groups that were not suppressed: the data are looked at once more."""
    tiny = make_site(tmp_path / "site", suppress="{quasi_groups_below: 15, at_most: 100%}")
    appoint(tiny, keys)
    real = centroids.suppress_table
    with monkeypatch.context() as patch:
        patch.setattr(centroids, "suppress_table", lambda table, quasi, **_: real(table, quasi, below=0))
        run_release(tiny.flow())
    review(tiny, keys, "ben", "cleo")
    with refused(tiny, "There are groups of released quasi-identifiers below 15.", Blocked):
        publish(tiny.site, RELEASE, key=keys["robot"])


def test_candidate_of_another_policy_than_was_charged_is_not_published(tiny: TinySite, keys: Keys) -> None:
    """An earlier policy of the officer's, without the embargo that the charged one has, noted as that of the candidate."""
    before = tiny.site.policy("people").canonical_hash()
    tiny.write_policy(publish='{formats: [parquet, csv], not_before: "2099-01-15T09:30Z"}')
    approve_policy(tiny.site, "people", key=keys["olga"])
    run_release(tiny.flow("2"))
    review(tiny, keys, "ben", "cleo", release=OTHER)
    with refused(tiny, "under embargo", Blocked):
        publish(tiny.site, OTHER, key=keys["robot"])
    release_status = tiny.status("2")
    forge(
        tiny,
        "candidate",
        OTHER,
        candidate_hash=release_status.candidate_hash,
        policy_hash=before,
        facts=dict(release_status.facts),
    )
    review(tiny, keys, "dora", release=OTHER)
    with refused(tiny, "It was charged under another policy", Blocked):
        publish(tiny.site, OTHER, key=keys["robot"])


def test_facts_that_nobody_signed_do_not_reach_the_card(tiny: TinySite, keys: Keys) -> None:
    """The registry is made to tell of more records and less suppression than the evidence that the reviewers signed."""
    release_status = tiny.status()
    facts = {**release_status.facts, "rows_in": 6000, "cells_blanked": 0, "anonymity_k": 100}
    forge(
        tiny,
        "candidate",
        RELEASE,
        candidate_hash=release_status.candidate_hash,
        policy_hash=release_status.policy_hash,
        facts=facts,
    )
    review(tiny, keys, "ben", "cleo")
    with refused(tiny, "The registry tells other facts of it than the evidence that was signed.", Blocked):
        publish(tiny.site, RELEASE, key=keys["robot"])


def test_materialization_forged_through_dagster_is_nothing(tiny: TinySite, keys: Keys) -> None:
    """Somebody who reaches Dagster reports candidates and publications of both releases: Dagster believes it, and nobody else."""
    facts = {"candidate_hash": str(tiny.status().candidate_hash), "state": "approved"}
    before = look(tiny)
    prepare(tiny.site)
    with dg.DagsterInstance.from_config(str(tiny.site.dagster_home)) as instance:
        for asset in ("candidate", "published"):
            key = dg.AssetKey(["people", asset])
            for partition in ("1", "2"):
                instance.report_runless_asset_event(dg.AssetMaterialization(key, metadata=facts, partition=partition))
            assert instance.get_materialized_partitions(key) == {"1", "2"}, "Dagster believes it"
    with refused(tiny, "it is not approved yet: 0 of 2 reviewers", Blocked):
        publish(tiny.site, RELEASE, key=keys["robot"])
    with refused(tiny, "it is not opened, and cannot be published", Blocked):
        publish(tiny.site, OTHER, key=keys["robot"])
    with refused(tiny, "it is not opened, and cannot be approved", Blocked):
        review(tiny, keys, "ben", release=OTHER)
    assert list_publishable(tiny.site, "people") == ([], [])
    assert look(tiny) == before


def publish_together(folder: Path, key_folder: Path, barrier: Any, tells: Connection) -> None:
    """Publish release 1 of the site `folder/N`, for each N, together with another process."""
    key = read_keys(key_folder)["robot"]
    for place in range(ROUNDS):
        site = Site(folder / str(place), {})
        barrier.wait(TOGETHER)
        try:
            tells.send(("published", hash_of(publish(site, RELEASE, key=key))))
        except ReleasePipelineError as error:
            tells.send((type(error).__name__, str(error)))


def test_two_publications_at_once_are_one(unchanged: dict[str, TinySite], key_folder: Path, tmp_path: Path, keys: Keys) -> None:
    """Two processes, each time: both end well with the same package, which was noted once, and nothing lies beside it."""
    sites = [copy_site(unchanged["approved"].home, tmp_path / str(place)) for place in range(ROUNDS)]
    barrier = PROCESSES.Barrier(2)
    with (
        child(publish_together, tmp_path, key_folder, barrier) as one,
        child(publish_together, tmp_path, key_folder, barrier) as other,
    ):
        ends = [(hear(one), hear(other)) for _ in range(ROUNDS)]
    for tiny, both in zip(sites, ends, strict=True):
        package = tiny.site.package(str(RELEASE))
        assert both == (("published", hash_of(package)),) * 2
        assert [str(path.relative_to(tiny.site.releases)) for path in tiny.site.releases.glob("*/*/*")] == [str(RELEASE)]
        assert [tiny.states().count(kind) for kind in ("publishing", "published")] == [1, 1]
        assert faults(tiny.home, keys) == []


def test_package_in_the_folder_of_another_release_is_found_out(two: Path, tmp_path: Path, keys: Keys) -> None:
    """Release 1 copied, or linked, to where release 2 belongs: the folder's name is wrong, no event published it, and release 2
    is not published over it."""
    tiny = copy_site(two, tmp_path / "site")
    package, other = tiny.site.package(str(RELEASE)), tiny.site.package(str(OTHER))
    shutil.copytree(package, other)
    assert payload(faults(other, keys), f"{OTHER}: the folder is named otherwise than the release in it, {RELEASE}")
    assert payload(faults(tiny.home, keys), "releases/people/2: no event published it")
    review(tiny, keys, "ben", "cleo", release=OTHER)
    for put in (lambda: None, lambda: other.symlink_to(package), lambda: other.symlink_to(tiny.home / "nowhere")):
        put()
        with refused(tiny, f"Something lies where its package belongs: {other}.", Blocked):
            publish(tiny.site, OTHER, key=keys["robot"])
        other.unlink() if other.is_symlink() else shutil.rmtree(other)
    publish(tiny.site, OTHER, key=keys["robot"])
    assert faults(tiny.home, keys) == []
    shutil.rmtree(package)
    shutil.copytree(other, package)
    assert payload(faults(tiny.home, keys), f"releases/{RELEASE}", "not what was published")
    with refused(tiny, "its package is not what was published", Blocked):
        publish(tiny.site, RELEASE, key=keys["robot"])


def test_nothing_is_published_over_the_cap(tiny: TinySite, keys: Keys) -> None:
    """The officer lowers the cap after the charge: what was charged stays charged, and does not go out."""
    review(tiny, keys, "ben", "cleo")
    tiny.write_cap("epsilon: 1.9, definition: idp, scope: column")
    approve_populations(tiny.site, key=keys["olga"])
    with refused(tiny, "folk is over its cap: 2 of 1.9 (epsilon, iDP, column)", Blocked):
        publish(tiny.site, RELEASE, key=keys["robot"])
    assert payload(faults(tiny.home, keys), "population folk: 2 of 1.9")
