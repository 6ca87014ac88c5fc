"""A site as the first version of the stored formats left it (tests/fixtures/site_1): later ones open it, and go on."""

from __future__ import annotations

import json
import shutil
import tarfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from release_pipeline import __version__
from release_pipeline.analyst import read_release
from release_pipeline.cli import main
from release_pipeline.errors import Blocked
from release_pipeline.flow.opening import open_release, revise_release
from release_pipeline.flow.passed_stages import Suppressed
from release_pipeline.flow.policies import policy_of
from release_pipeline.flow.publication.dossier import write_dossier
from release_pipeline.flow.publication.publish import publish
from release_pipeline.flow.publication.verification import verify
from release_pipeline.flow.retention import prune
from release_pipeline.flow.site import Site
from release_pipeline.flow.states import list_statuses
from release_pipeline.flow.status.ledger import read_ledgers
from release_pipeline.flow.status.overview import list_releases
from release_pipeline.flow.trust.approvals import approve_candidate
from release_pipeline.flow.trust.keys import PrivateKey, read_key
from release_pipeline.policy import Policy
from release_pipeline.policy.families import FAMILIES
from release_pipeline.store.formats import SITE, Format, FormatNewer
from release_pipeline.store.ledger import list_charges
from release_pipeline.store.registry import ReleaseId
from tests.fixtures.site_1.make import HERE, PASSPHRASE, PEOPLE
from tests.integration.publishing import failures_of

EXPECTED: dict[str, Any] = json.loads((HERE / "expected.json").read_text())
STATES = {
    "classes/1/r1": "published",
    "parts/1/r1": "published",
    "parts/2/r1": "reserved",
    "together/1/r1": "published",
    "waves/1/r1": "superseded",
    "waves/1/r2": "published",
    "waves/2/r1": "retracted",
    "waves/3/r1": "approved",
    "waves/4/r1": "candidate",
    "waves/5/r1": "rejected",
}
OUT = [name.split("/") for name, state in STATES.items() if state in ("published", "superseded")]
PUBLIC = [ReleaseId(policy, release, int(revision[1:])) for policy, release, revision in OUT]
APPROVED, WAITING, UNDRAWN = ReleaseId("waves", "3"), ReleaseId("waves", "4"), ReleaseId("parts", "2")


@pytest.fixture(scope="session")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, which no test changes."""
    folder = tmp_path_factory.mktemp("site_1")
    with tarfile.open(HERE / "site.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder / "site"


@pytest.fixture
def old(unpacked: Path, tmp_path: Path) -> Site:
    """A copy of it."""
    return Site(shutil.copytree(unpacked, tmp_path / "site"), {})


def keys_of(site: Site) -> dict[str, PrivateKey]:
    """Everybody's key."""
    return {name: read_key(site.home / "keys" / f"{name}.key", passphrase=PASSPHRASE) for name in PEOPLE}


def check_dossier(site: Site, release: ReleaseId) -> None:
    """A dossier of a release is written, and holds."""
    file = write_dossier(site, release, site.home / f"{release.file_name}.zip")
    found = failures_of(verify(file, [EXPECTED["officer"]]))
    assert [words for words in found if "RETRACTED" not in words] == []


def test_the_events_are_what_was_written(old: Site) -> None:
    """Hash by hash, with every state, charge and policy that they told of."""
    with old.open_registry(read_only=True) as registry:
        events = registry.events
        assert {str(event.number): [event.kind, event.hash] for event in events} == EXPECTED["events"]
        assert {str(charge.id): charge.loss.idp_column for charge in list_charges(registry)} == EXPECTED["losses"]
        for name, digest in EXPECTED["policies"]:
            policy = policy_of(registry, digest)
            assert (policy.policy, policy.canonical_hash()) == (name, digest)
    assert {str(name): known.state for name, known in list_statuses(old).items()} == STATES


def test_descriptors_of_the_first_version_are_valid(old: Site) -> None:
    """They are of Data Package 1, and others' programs read what they describe."""
    from frictionless import validate

    for release in PUBLIC:
        file = old.package(str(release)) / "datapackage.json"
        assert "$schema" not in json.loads(file.read_text())
        report = validate(str(file))
        assert (report.valid, len(report.tasks) >= 2) == (True, True)


def test_status_and_ledger_tell_of_it(old: Site) -> None:
    """What was spent stays spent, and every release has its line."""
    lines, broken = list_releases(old)
    assert ({line.release: line.state for line in lines}, broken) == (STATES, [])
    spent = {ledger.account.population: ledger.account.spent for ledger in read_ledgers(old)}
    assert spent == {"folk": "17", "halves": "2", "others": "1", "strict": "2"}


def test_site_packages_and_dossier_verify(old: Site) -> None:
    """The chain, every candidate, every package and its tombstones, and a dossier that was handed out then."""
    assert failures_of(verify(old.home, [EXPECTED["officer"]])) == []
    for release in PUBLIC:
        assert failures_of(verify(old.package(str(release)), [EXPECTED["officer"]])) == []
        read_release(old.package(str(release)))
        assert not any("attestation" in finding.words for finding in verify(old.package(str(release)), [EXPECTED["officer"]]))
    [retracted] = failures_of(verify(old.package("waves/2/r1"), [EXPECTED["officer"]]))
    assert "RETRACTED" in retracted
    assert failures_of(verify(old.home / "together.zip", [EXPECTED["officer"]])) == []


def test_dossiers_of_what_was_published(old: Site) -> None:
    """Also of what was superseded or retracted since."""
    for release in (*PUBLIC, ReleaseId("waves", "2")):
        check_dossier(old, release)


def test_a_candidate_that_waited_is_served_and_published(old: Site) -> None:
    """A rerun draws nothing and changes nothing; then the package, as the reviewers approved it then."""
    before = list_statuses(old)[APPROVED]
    assert open_release(old, "waves", "3").run().version == before.candidate_hash
    assert list_statuses(old)[APPROVED] == before
    package = publish(old, APPROVED, key=keys_of(old)["robot"])
    assert failures_of(verify(package, [EXPECTED["officer"]])) == []
    assert failures_of(verify(old.home, [EXPECTED["officer"]])) == []
    check_dossier(old, APPROVED)


def refuse_every_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that became stricter: no policy file meets it."""
    broken = [(("protect",), "the method is not allowed any more.", "")]
    monkeypatch.setattr("release_pipeline.policy.load.find_contradictions", lambda _: broken)


def write_another_form(monkeypatch: pytest.MonkeyPatch) -> None:
    """A canonical form that is written otherwise: every policy file has another hash than before."""
    form = Policy.canonical_json
    monkeypatch.setattr(Policy, "canonical_json", lambda self: form(self) + " ")


@pytest.mark.parametrize("change", [refuse_every_file, write_another_form], ids=lambda change: change.__name__)
def test_the_past_is_read_as_it_was_written(
    old: Site, monkeypatch: pytest.MonkeyPatch, change: Callable[[pytest.MonkeyPatch], None]
) -> None:
    """What changes in the rules or in the form of policies changes nothing of what was noted: hashes, approvals, retention."""
    change(monkeypatch)
    noted = {tuple(pair) for pair in EXPECTED["policies"]}
    check_dossier(old, ReleaseId("waves", "1"))
    given = approve_candidate(old, WAITING, key=keys_of(old)["cleo"])
    assert given.count == 2
    package = publish(old, WAITING, key=keys_of(old)["robot"])
    card = json.loads((package / "privacy-card.json").read_text())
    assert ("waves", card["hashes"]["policy"]) in noted
    assert failures_of(verify(old.home, [EXPECTED["officer"]])) == []
    assert [pruned.population for pruned in prune(old, now=datetime(2999, 1, 1, tzinfo=UTC))] == ["folk"]
    check_dossier(old, WAITING)


def test_what_is_known_not_to_be_proved_is_neither_approved_nor_published(old: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that a claim rests on became stricter, with candidates waiting. What was published before keeps its dossier."""
    unproved = [(("protect",), "this claim was found to be false.", "Use another method.")]
    for family in FAMILIES.values():
        monkeypatch.setattr(type(family), "find_contradictions", lambda *_: iter(unproved))
    with pytest.raises(Blocked, match="this claim was found to be false"):
        approve_candidate(old, WAITING, key=keys_of(old)["cleo"])
    with pytest.raises(Blocked, match="this claim was found to be false"):
        publish(old, APPROVED, key=keys_of(old)["robot"])
    check_dossier(old, ReleaseId("waves", "1"))


def test_a_half_approved_candidate_is_approved(old: Site) -> None:
    """The approval given then counts, and one more is enough."""
    given = approve_candidate(old, WAITING, key=keys_of(old)["cleo"])
    assert (given.count, given.needed) == (2, 2)
    publish(old, WAITING, key=keys_of(old)["robot"])


def test_a_charged_release_goes_on(old: Site) -> None:
    """The clusters of then and the secrets of release and series are those that the noise is drawn with."""
    flow = open_release(old, "parts", "2")
    flow.run()
    for name in ("ben", "cleo"):
        approve_candidate(old, UNDRAWN, key=keys_of(old)[name])
    publish(old, UNDRAWN, key=keys_of(old)["robot"])
    assert not (old.vault / "secrets" / "series.parts").exists()
    assert {str(charge.id): charge.loss.idp_column for charge in _charges(old)} == EXPECTED["losses"]


def test_a_correction_of_an_old_release(old: Site) -> None:
    """A new revision beside the old one, with a charge of its own."""
    revise_release(old, "waves", "2", why="the right file")
    open_release(old, "waves", "2").run()
    assert list_statuses(old)[ReleaseId("waves", "2", 2)].state == "candidate"
    assert len(_charges(old)) == len(EXPECTED["losses"]) + 1


def test_old_rooms_are_pruned(old: Site) -> None:
    """By what the policy of then says, and the dossier needs none of it."""
    [pruned] = prune(old, now=datetime(2999, 1, 1, tzinfo=UTC))
    assert pruned.population == "folk"
    assert {str(name) for name in pruned.releases} == {name for name in STATES if name.startswith("waves")}
    check_dossier(old, ReleaseId("waves", "1"))


def _charges(site: Site) -> list[Any]:
    with site.open_registry(read_only=True) as registry:
        return list_charges(registry)


# --- Up and down ----------------------------------------------------------------------------------------------------------------


def write_in(site: Site, monkeypatch: pytest.MonkeyPatch, format: Format) -> None:
    """An event by a version of the software with this format of the registry."""
    with monkeypatch.context() as later:
        later.setattr("release_pipeline.store.registry.SITE", format)
        with site.open_registry() as registry:
            registry.add("failed", APPROVED, reason="it broke", run="a run", told_elsewhere=False)


def test_the_format_is_noted_with_what_is_first_written_in_it(old: Site, tmp_path: Path) -> None:
    """Once, and not by reading; a new site begins with it."""
    known = len(EXPECTED["events"])
    list_statuses(old)
    for _ in range(2):
        with old.open_registry() as registry:
            assert registry.format == (1 if len(registry.events) == known else SITE.version)
            registry.add("failed", APPROVED, reason="it broke", run="a run", told_elsewhere=False)
    with old.open_registry(read_only=True) as registry:
        assert [event.kind for event in registry.events[known:]] == ["format", "failed", "failed"]
        assert dict(registry.events[known].content) == {"version": SITE.version, "tool": f"release-pipeline {__version__}"}
        assert [event.format for event in registry.events[known - 1 :]] == [1] + [SITE.version] * 3
    assert failures_of(verify(old.home, [EXPECTED["officer"]])) == []
    (tmp_path / "new" / "policies").mkdir(parents=True)
    with Site(tmp_path / "new", {}).open_registry() as registry:
        registry.add("opened", APPROVED, why="by hand")
        assert [event.kind for event in registry.events] == ["format", "opened"]


def test_what_a_later_version_wrote_is_refused_before_anything_is_written(
    old: Site, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By every command, in words: what, where, what to do."""
    later = Format(SITE.name, (*SITE.migrations, dict))
    write_in(old, monkeypatch, later)
    before = {file: file.read_bytes() for file in old.home.rglob("*") if file.is_file()}
    words = f"the registry of the site here has the format {later.version}, and this version of release-pipeline knows it up to"
    with pytest.raises(FormatNewer, match=words), old.open_registry() as registry:
        registry.add("opened", APPROVED.next, why="by hand")
    with pytest.raises(FormatNewer, match="Install the version that wrote it"):
        open_release(old, "waves", "3").run()
    for command in ("status", "ledger", "prune"):
        assert main([command, "--home", str(old.home)]) == 1
        shown = capsys.readouterr().err
        assert f"{old.registry}: {words} {SITE.version}." in shown
    assert any(words in failure for failure in failures_of(verify(old.home, [EXPECTED["officer"]])))
    assert {file: file.read_bytes() for file in old.home.rglob("*") if file.is_file()} == before


def test_facts_say_what_was_charged(old: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not what a later version would charge: a bound that is derived otherwise since changes nothing of what was."""
    monkeypatch.setattr("release_pipeline.policy.loss.wider_bound", lambda _, nano, **__: 2 * nano)
    facts = list_statuses(old)[APPROVED].facts
    header = {"policy_hash": "", "version": "", "tables": {}}
    numbers = {"rows_dropped": 0, "rows": facts["rows_out"], **{name: facts[name] for name in ("anonymity_k", "cells_blanked")}}
    suppressed = Suppressed(**header, **numbers)
    flow = open_release(old, "waves", "3")
    made = flow.public_facts(records=facts["rows_in"], rows_out=facts["rows_out"], suppressed=suppressed)
    assert made["column_bound"] == facts["column_bound"] == "at most epsilon 3 in all"
