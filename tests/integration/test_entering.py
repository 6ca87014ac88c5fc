"""What the officer enters after a restore: what nobody signed is asked for, what happened is entered even over the cap, and whose
people nobody knows is compared with nothing in silence."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from release_pipeline.errors import Blocked, OverCap, WrongUsage
from release_pipeline.ledger.account import describe_exposure, describe_ledger, read_ledgers, view_ledger
from release_pipeline.operate.backup import restore, write_backup
from release_pipeline.operate.survivors import accept, read_named
from release_pipeline.pipeline.opening import revise_release
from release_pipeline.pipeline.release import run_release
from release_pipeline.publish.verification import verify
from release_pipeline.store.registry import ReleaseId
from release_pipeline.trust.approvals import approve_populations
from release_pipeline.trust.keys import PrivateKey
from tests.integration.people import RELEASE, copy_site
from tests.integration.publishing import failures_of, make_trusted_site, with_new_sums, write_folder
from tests.integration.sites import TinySite

pytestmark = pytest.mark.slow
FORGED = ReleaseId("people", "2")


@pytest.fixture(scope="module")
def waiting(candidate: Path, published: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site put back from before release 1 was published. Its package survived, and one of release 2 that nobody signed."""
    folder = tmp_path_factory.mktemp("waiting")
    write_backup(TinySite(candidate).site, folder / "site.tar")
    packages = shutil.copytree(published / "releases", folder / "packages")
    mine = packages / str(RELEASE)
    card = json.loads((mine / "privacy-card.json").read_text()) | {"release": str(FORGED)}
    files = {file.name: file.read_bytes() for file in mine.iterdir()} | {"privacy-card.json": json.dumps(card).encode()}
    write_folder(with_new_sums(files), packages / str(FORGED))
    done = restore(folder / "site.tar", folder / "site", survived=[packages])
    assert [entry["release"] for entry in done.lost] == [str(RELEASE)]
    [doubted] = done.doubted
    assert doubted["release"] == str(FORGED)
    assert "SHA256SUMS.sig" in doubted["why"]
    return folder / "site"


@pytest.fixture
def tiny(waiting: Path, tmp_path: Path) -> TinySite:
    """A copy of it."""
    return copy_site(waiting, tmp_path / "site")


def test_what_nobody_signed_costs_nothing_unless_the_officer_says_so(
    tiny: TinySite, keys: dict[str, PrivateKey], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(WrongUsage, match=f"of {FORGED} there are packages that nobody of this site signed"):
        accept(tiny.site, key=keys["olga"], named={})
    with pytest.raises(WrongUsage, match="was found in the registry or in a signed package"):
        accept(tiny.site, key=keys["olga"], named={FORGED: None, RELEASE: None})
    with pytest.raises(WrongUsage, match="is told of by no package"):
        accept(tiny.site, key=keys["olga"], named={FORGED: None, FORGED.next: None})
    file = tmp_path / "charged.yaml"
    file.write_text(f"{FORGED}: never charged\n")
    assert accept(tiny.site, key=keys["olga"], named=read_named(file)).charges == ()
    assert [charge.id for charge in tiny.charges()] == [RELEASE]
    assert (tiny.status("1").lost, tiny.status("2").lost) == (True, False)
    assert tiny.events()[-2].content["document"]["denied"] == [str(FORGED)]
    assert failures_of(verify(tiny.home)) == []
    file.write_text(f"{FORGED}: never\n")
    with pytest.raises(WrongUsage, match="does not say which releases were charged"):
        read_named(file)


def test_the_officer_may_enter_it_all_the_same(tiny: TinySite, keys: dict[str, PrivateKey]) -> None:
    [entered] = accept(tiny.site, key=keys["olga"], named={FORGED: {"records": 60}}).charges
    assert (entered.id, entered.records) == (FORGED, 60)
    assert tiny.status("2").lost
    assert failures_of(verify(tiny.home)) == []


def test_a_second_restore_hands_on_what_the_first_found(waiting: Path, tmp_path: Path) -> None:
    """Also where the packages are not at hand any more."""
    tiny, file = copy_site(waiting, tmp_path / "site"), waiting.parent / "site.tar"
    done = restore(file, tiny.home)
    assert [entry["release"] for entry in done.lost] == [str(RELEASE)]
    assert [entry["release"] for entry in done.doubted] == [str(FORGED)]
    assert not done.all_known


@pytest.mark.parametrize(("cap", "spent"), [("", "12 of 10"), ("epsilon: 10, definition: dp, scope: column", "infinity of 10")])
def test_what_happened_is_entered_over_the_cap(
    tiny: TinySite, keys: dict[str, PrivateKey], cap: str, spent: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The ledger then says so, and refuses what is new until the officer raises the cap."""
    if cap:
        tiny.write_cap(cap)
        approve_populations(tiny.site, key=keys["olga"])
    named = {ReleaseId("people", "2", revision): {"records": 60} for revision in range(1, 6)}
    done = accept(tiny.site, key=keys["olga"], named=named)
    assert len(done.charges) == 5
    assert [words for words in done.overdrawn if words.startswith(f"folk: {spent}") and "over the cap" in words]
    [ledger] = read_ledgers(tiny.site)
    told = list(describe_ledger(ledger))
    assert any("overdrawn" in line for line in told)
    assert sum("lost with the site; charged as of 60 records by the officer on 20" in line for line in told) == 5
    assert sum("lost with the site, after it was charged" in line for line in told) == 1
    assert not any("reserved" in line for line in told)
    view = view_ledger(ledger)
    assert {(charge.state, charge.drawn) for charge in view.charges} == {("spent", True)}
    assert all(charge.lost for charge in view.charges)
    assert any("over the cap" in words for words in failures_of(verify(tiny.home)))
    with pytest.raises(OverCap, match="the ledger refuses"):
        revise_release(tiny.site, "people", "1", why="once more")
    tiny.write_cap("epsilon: 20, definition: idp, scope: column")
    approve_populations(tiny.site, key=keys["olga"])
    revise_release(tiny.site, "people", "1", why="once more")
    assert failures_of(verify(tiny.home)) == []


def test_nobody_knows_who_joined_since_a_lost_release(keys: dict[str, PrivateKey], tmp_path: Path) -> None:
    """The differencing guard does not pass over a release whose people were lost."""
    tiny = make_trusted_site(tmp_path / "site", keys)
    write_backup(tiny.site, tmp_path / "site.tar")
    restore(tmp_path / "site.tar", tiny.home)
    shutil.copy(next(tmp_path.glob("site.before*")) / "people.csv", tiny.home)
    accept(tiny.site, key=keys["olga"], named={ReleaseId("people", "2"): {"records": 60}})
    with pytest.raises(Blocked, match="since people/2/r1: it was lost with the site, and with it who was in it"):
        run_release(tiny.flow("1"))
    assert [charge.id.release for charge in tiny.charges()] == ["2"]
    [ledger] = read_ledgers(tiny.site)
    assert any("without people/2/r1: lost with the site" in line for line in describe_exposure(tiny.site, ledger))
