"""From keys to the public package: who may sign what, what voids a signature, and that publishing happens once."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from release_pipeline.apps.cli import main
from release_pipeline.errors import Blocked, ReleasePipelineError, WrongUsage
from release_pipeline.operate.retention import prune
from release_pipeline.pipeline.opening import revise_release
from release_pipeline.pipeline.release import run_release
from release_pipeline.publish.publish import publish
from release_pipeline.publish.verification import verify
from release_pipeline.store.files import Probe, hash_of
from release_pipeline.trust.approvals import approve_policy, reject_candidate
from release_pipeline.trust.keys import NotSigned, PrivateKey, make_key, read_key
from release_pipeline.trust.members import distrust, trust_key
from release_pipeline.verifier.command import verify_path
from tests.integration.people import RELEASE, appoint, approve_files, review
from tests.integration.sites import TinySite, make_site

INTENT, BUILT, NOTED, PLACED = (
    "the intent is noted",
    "the package is built",
    "published is noted",
    "the package is in its place",
)


@pytest.fixture
def tiny(candidate: Path, tmp_path: Path) -> TinySite:
    """A copy of the site with a candidate."""
    shutil.copytree(candidate, tmp_path / "site")
    return TinySite(tmp_path / "site")


def test_the_whole_path_ends_in_a_package_that_a_stranger_verifies(tiny: TinySite, keys: dict[str, PrivateKey]) -> None:
    """Two reviewers, the service's key: a folder whose every file is listed, signed, and traced to the officer."""
    review(tiny, keys, "ben", "cleo")
    assert tiny.status().state == "approved"
    folder = publish(tiny.site, RELEASE, key=keys["robot"])
    assert folder == tiny.home / "releases" / "people" / "1" / "r1"
    findings = verify_path(folder, keys["olga"].public.fingerprint)
    assert [finding.words for finding in findings if finding.level == "FAIL"] == []
    status = tiny.status()
    assert (status.state, status.package_hash) == ("published", hash_of(folder))
    assert (folder / "data.csv").read_bytes() == (tiny.folder() / "data.csv").read_bytes()
    kinds = [event.kind for event in tiny.events() if event.release == RELEASE]
    assert kinds[-4:] == ["approved", "approved", "publishing", "published"]


def test_a_changed_candidate_voids_its_approvals(tiny: TinySite, keys: dict[str, PrivateKey]) -> None:
    """A byte more in the data: not published, and no further approval."""
    review(tiny, keys, "ben", "cleo")
    data = tiny.folder() / "data.csv"
    data.write_bytes(data.read_bytes() + b" ")
    with pytest.raises(Blocked, match="not what was frozen"):
        publish(tiny.site, RELEASE, key=keys["robot"])
    with pytest.raises(Blocked, match="not what was frozen"):
        review(tiny, keys, "dora")


def test_what_was_made_without_an_officer_is_never_published(tmp_path: Path, keys: dict[str, PrivateKey]) -> None:
    """A site may run before it has an officer; an approval of the policy after the charge comes too late."""
    tiny = make_site(tmp_path / "site")
    run_release(tiny.flow())
    appoint(tiny, keys)
    review(tiny, keys, "ben", "cleo")
    with pytest.raises(Blocked, match="not approved by the privacy officer before the charge"):
        publish(tiny.site, RELEASE, key=keys["robot"])


def test_a_rejected_candidate_is_not_published(tiny: TinySite, keys: dict[str, PrivateKey]) -> None:
    """Whoever approved it before; and it is not run again: a correction is the next revision."""
    review(tiny, keys, "ben", "cleo")
    reject_candidate(tiny.site, RELEASE, key=keys["dora"], why="income looks wrong")
    assert (tiny.status().state, tiny.status().reason) == ("rejected", "rejected by dora: income looks wrong")
    with pytest.raises(Blocked, match="it is rejected, and cannot be published"):
        publish(tiny.site, RELEASE, key=keys["robot"])
    with pytest.raises(Blocked, match=r"people/1/r2"):
        run_release(tiny.flow())


def test_a_reviewer_who_is_taken_off_the_list_counts_no_more(tiny: TinySite, keys: dict[str, PrivateKey]) -> None:
    """Their approval was valid when it was given, and is not when it counts."""
    review(tiny, keys, "ben", "cleo")
    distrust(tiny.site, "cleo", key=keys["olga"])
    with pytest.raises(ReleasePipelineError):
        publish(tiny.site, RELEASE, key=keys["robot"])
    assert not tiny.site.package(str(RELEASE)).exists()


def test_embargo_and_a_clock_set_back_hold_the_package(tmp_path: Path, keys: dict[str, PrivateKey]) -> None:
    """Not before its time, and not by a clock that is behind what the registry has seen."""
    tiny = make_site(tmp_path / "site", publish='{formats: [csv], not_before: "2027-01-15T09:30Z"}')
    appoint(tiny, keys)
    run_release(tiny.flow())
    review(tiny, keys, "ben", "cleo")
    for now, words in (
        (datetime(2027, 1, 15, 9, 29, tzinfo=UTC), "under embargo until 2027-01-15 09:30 UTC"),
        (datetime.now(UTC) - timedelta(days=1), "clock is behind"),
    ):
        with pytest.raises(Blocked, match=words):
            publish(tiny.site, RELEASE, key=keys["robot"], now=now)
    folder = publish(tiny.site, RELEASE, key=keys["robot"], now=datetime(2027, 1, 15, 9, 30, tzinfo=UTC))
    assert not (folder / "data.parquet").exists()


def test_the_list_is_the_officers(tiny: TinySite, keys: dict[str, PrivateKey]) -> None:
    """Nobody else adds; there is one officer; one key is one person."""
    with pytest.raises(NotSigned, match="only the officer's key"):
        trust_key(tiny.site, "eve", "reviewer", keys["stranger"].public, key=keys["ben"])
    with pytest.raises(WrongUsage, match="olga is the officer"):
        trust_key(tiny.site, "eve", "officer", keys["stranger"].public, key=keys["olga"])
    with pytest.raises(WrongUsage, match="one key, one person"):
        trust_key(tiny.site, "eve", "reviewer", keys["ben"].public, key=keys["olga"])


def test_a_key_file_is_private(tmp_path: Path) -> None:
    """0600, and never overwritten; no other file is taken for a key."""
    public = make_key(tmp_path / "ben")
    assert (tmp_path / "ben").stat().st_mode & 0o777 == 0o600
    with pytest.raises(WrongUsage, match="no key can be made there"):
        make_key(tmp_path / "ben")
    assert read_key(tmp_path / "ben").public == read_key(tmp_path / "ben.pub").public == public
    (tmp_path / "eve").write_text("no key")
    with pytest.raises(WrongUsage, match="not a key of OpenSSH"):
        read_key(tmp_path / "eve")


@pytest.mark.parametrize("what", ["policy", "populations"])
def test_what_was_approved_once_and_then_replaced_counts_no_more(tiny: TinySite, keys: dict[str, PrivateKey], what: str) -> None:
    """The officer approves something stricter; who puts the old file back is refused, until the officer approves that again."""
    old = {"policy": tiny.site.policy_file("people"), "populations": tiny.site.populations_file}[what]
    text = old.read_text()
    if what == "policy":
        tiny.write_policy(protect="{method: idp-cbls, epsilon: 1, k: 5}")
    else:
        tiny.write_cap("epsilon: 3, definition: idp, scope: column")
    approve_files(tiny, keys)
    old.write_text(text)
    with pytest.raises(Blocked, match="not approved by the privacy officer as it is now"):
        run_release(tiny.flow("2"))
    assert len(tiny.charges()) == 1
    approve_files(tiny, keys)
    assert run_release(tiny.flow("2")).stage == "candidate"


def test_only_files_of_the_site_are_approved(
    tiny: TinySite, key_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file of the same name elsewhere, there or not, is not taken for the site's."""
    (tmp_path / "people.yaml").write_text(tiny.site.policy_file("people").read_text())
    sign = ["--key", str(key_folder / "olga"), "--home", str(tiny.home)]
    events = tiny.events()
    for other in (tmp_path / "people.yaml", tmp_path / "populations.yaml", Path("/etc/populations.yaml")):
        assert main(["approve", str(other), *sign]) == 2
        assert "this is not a policy of this site" in capsys.readouterr().err
    assert tiny.events() == events
    assert main(["approve", "policies/people.yaml", *sign]) == 0
    assert f"{tiny.site.policy_file('people')}: approved by olga" in capsys.readouterr().out


def test_a_steward_who_is_in_no_list_gets_no_policy_approved(tiny: TinySite, keys: dict[str, PrivateKey]) -> None:
    """Otherwise its author could review it under another name."""
    tiny.write_policy(steward="nobody")
    with pytest.raises(NotSigned, match="its steward nobody is in no list"):
        approve_policy(tiny.site, "people", key=keys["olga"])


def test_who_empties_the_vault_is_the_officers_policy(tiny: TinySite, keys: dict[str, PrivateKey]) -> None:
    """An engineer's `retain` in the file does nothing to what was charged under the approved policy."""
    tiny.write_policy(retain="1 days")
    assert prune(tiny.site, now=datetime.now(UTC) + timedelta(days=400)) == []


def test_taking_the_service_off_the_list_meanwhile_stops_a_publication(tiny: TinySite, keys: dict[str, PrivateKey]) -> None:
    """Between the intent and the last look: nothing is public, and the next one publishes with a list that holds."""
    review(tiny, keys, "ben", "cleo")

    def remove(at: str) -> None:
        if at == BUILT:
            distrust(tiny.site, "robot", key=keys["olga"])

    with pytest.raises(Blocked, match="the list of trusted keys was changed meanwhile"):
        publish(tiny.site, RELEASE, key=keys["robot"], probe=Probe(reached=remove))
    assert not tiny.site.releases.exists()
    publish(tiny.site, RELEASE, key=keys["olga"])
    assert [finding.words for finding in verify(tiny.home) if finding.level == "FAIL"] == []


def test_a_publication_that_cannot_be_finished_is_public_nowhere(tiny: TinySite, keys: dict[str, PrivateKey]) -> None:
    """Killed after the package was built, and then rejected: no package, no part of one, and a correction may be made."""
    review(tiny, keys, "ben", "cleo")

    def stop(at: str) -> None:
        if at == BUILT:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        publish(tiny.site, RELEASE, key=keys["robot"], probe=Probe(reached=stop))
    reject_candidate(tiny.site, RELEASE, key=keys["dora"], why="rent looks wrong")
    with pytest.raises(Blocked, match="it is rejected, and cannot be published"):
        publish(tiny.site, RELEASE, key=keys["robot"])
    assert not tiny.site.releases.exists()
    assert revise_release(tiny.site, "people", "1", why="rent") == RELEASE.next
