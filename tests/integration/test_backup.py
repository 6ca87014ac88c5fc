"""A backup while somebody works, and what a restore must be told: nothing is drawn twice, and nothing is spent unseen."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from release_pipeline.apps.cli.program import main
from release_pipeline.errors import Blocked, WrongUsage
from release_pipeline.ledger.office import read_head
from release_pipeline.operate import backup
from release_pipeline.operate.backup import _list_files, _list_vaults, read_backup, restore, write_backup
from release_pipeline.operate.survivors import accept, read_named
from release_pipeline.pipeline.release import run_release
from release_pipeline.publish.verification import verify
from release_pipeline.store.registry import ReleaseId
from release_pipeline.trust.keys import NotSigned, PrivateKey
from tests.integration.people import copy_site, review
from tests.integration.publishing import failures_of, publish_release
from tests.integration.sites import TinySite, make_rows

pytestmark = pytest.mark.slow


@pytest.fixture
def tiny(candidate: Path, tmp_path: Path) -> TinySite:
    """A copy of a site with a candidate."""
    return copy_site(candidate, tmp_path / "site")


def test_two_releases_later_the_ledger_is_told(tiny: TinySite, keys: dict[str, PrivateKey], tmp_path: Path) -> None:
    file = tmp_path / "site.tar"
    write_backup(tiny.site, file)
    assert file.stat().st_mode & 0o777 == 0o600
    review(tiny, keys, "ben", "cleo")
    publish_release(tiny, keys, "2")
    spent = tiny.charges()[-1].loss
    (tiny.site.vault / "folk.duckdb").unlink()

    done = restore(file, tiny.home)
    assert done.all_known
    assert [entry["release"] for entry in done.lost] == ["people/2/r1"]
    assert done.aside is not None
    assert (done.aside / "releases").is_dir()
    with pytest.raises(Blocked, match="the officer has not entered"):
        run_release(tiny.flow("2"))
    with pytest.raises(NotSigned, match="needs officer"):
        accept(tiny.site, key=keys["ben"], named={})
    assert len(tiny.charges()) == 1

    [charge] = accept(tiny.site, key=keys["olga"], named={}).charges
    assert (charge.id, charge.loss) == (ReleaseId("people", "2"), spent)
    assert [known.id.release for known in tiny.charges()] == ["1", "2"]
    assert tiny.status("2").lost
    assert main(["status", "--json", "--home", str(tiny.home)]) == 0
    with pytest.raises(Blocked, match="it was lost"):
        run_release(tiny.flow("2"))
    assert tiny.status("2").drawn is None
    tiny.write_rows(make_rows())  # a source is in no backup
    publish_release(tiny, keys, "1")  # its candidate was in the backup
    assert failures_of(verify(tiny.home, deep=True)) == []


def test_a_lost_registry_leaves_packages_and_a_witness(tiny: TinySite, keys: dict[str, PrivateKey], tmp_path: Path) -> None:
    file = tmp_path / "site.tar"
    write_backup(tiny.site, file)
    publish_release(tiny, keys, "1")
    publish_release(tiny, keys, "2")
    witnessed, before = read_head(tiny.site), tiny.charges()
    tiny.site.registry.write_bytes(b"nothing that could be read" * 1000)

    done = restore(file, tiny.home, witnessed=witnessed)
    assert not done.all_known
    assert [entry["release"] for entry in done.lost] == ["people/1/r1", "people/2/r1"]
    assert accept(tiny.site, key=keys["olga"], named={}).charges[0].loss == before[-1].loss
    for release in ("1", "2"):
        with pytest.raises(Blocked, match="it was lost"):
            run_release(tiny.flow(release))


def test_what_nobody_can_find_the_officer_names(tiny: TinySite, keys: dict[str, PrivateKey], tmp_path: Path) -> None:
    file, named = tmp_path / "site.tar", tmp_path / "charged.yaml"
    write_backup(tiny.site, file)
    run_release(tiny.flow("2"))
    charged = tiny.charges()[-1]
    shutil.rmtree(tiny.home)
    assert restore(file, tiny.home).lost == []
    named.write_text(f"people/2/r1: {{records: {charged.records}}}\n")
    seen: list[str] = []
    [entered] = accept(tiny.site, key=keys["olga"], named=read_named(named), show=seen.append).charges
    assert seen == [f"people/2/r1: {charged.records} records, charged to folk: 2 (epsilon, iDP, column)"]
    assert (entered.id, entered.loss, entered.policy_hash) == (charged.id, charged.loss, charged.policy_hash)
    assert failures_of(verify(tiny.home)) == []
    named.write_text("people/2/r1: {records: 0}\n")
    with pytest.raises(WrongUsage, match="a release of 0 records was never charged"):
        read_named(named)
    named.write_text("people/2: {records: all}\n")
    with pytest.raises(WrongUsage, match="which releases were charged"):
        read_named(named)


def test_an_older_registry_does_not_tell_that_nothing_is_lost(tiny: TinySite, tmp_path: Path) -> None:
    """Beside it, what the vault knows: its last event, candidates, and who was charged. Elsewhere, nothing at all."""
    file = tmp_path / "site.tar"
    write_backup(tiny.site, file)
    older = tmp_path / "older"
    older.mkdir()
    shutil.copy(tiny.site.registry, older)
    run_release(tiny.flow("2"))
    shutil.copy(older / "registry.duckdb", tiny.site.registry)
    done = restore(file, tiny.home)
    assert [entry["release"] for entry in done.doubted] == ["people/2/r1"]
    assert not done.all_known
    assert not restore(file, tmp_path / "new", survived=[older]).all_known


def _add_files(file: Path, into: Path, files: dict[str, bytes]) -> None:
    """A backup with more files in it, and the manifest that goes with them."""
    with tarfile.open(file) as old, tarfile.open(into, "w") as new:
        contents = {member.name: (old.extractfile(member) or io.BytesIO()).read() for member in old.getmembers()}
        manifest = json.loads(contents.pop("manifest.json"))
        contents |= files
        manifest["files"] = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
        for name, content in [*contents.items(), ("manifest.json", json.dumps(manifest).encode())]:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            new.addfile(member, io.BytesIO(content))


def test_nothing_is_taken_from_a_backup_that_none_has(tiny: TinySite, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever has the file can make its manifest anew: Dagster's settings could name code that would run.
    With its SHA-256 kept elsewhere any change is found."""
    file, other, home = tmp_path / "site.tar", tmp_path / "other.tar", tmp_path / "new"
    assert main(["backup", "-o", str(file), "--home", str(tiny.home)]) == 0
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    assert f"SHA-256 {digest}" in capsys.readouterr().out
    for name in ("dagster/dagster.yaml", "evilmod.py", "data/people.csv", "policies/.hidden", "Vault/key", "policies/evil.py"):
        _add_files(file, other, {name: b"anything"})
        with pytest.raises(WrongUsage, match="it has a file that no backup has"):
            read_backup(other)
    assert main(["restore", str(other), "--into", str(home), "--sha256", digest]) == 2
    assert not home.exists()
    assert main(["restore", str(file), "--into", str(tmp_path / "whole"), "--sha256", digest.upper()]) == 0


def test_a_backup_that_was_cut_or_changed_is_refused(tiny: TinySite, tmp_path: Path) -> None:
    file, home = tmp_path / "site.tar", tmp_path / "new"
    assert main(["backup", "-o", str(file), "--home", str(tiny.home)]) == 0
    content = file.read_bytes()
    with tarfile.open(file) as archive:
        place = archive.getmember("vault/key").offset_data
    changed = content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]
    for spoiled in (content[: len(content) // 2], changed, b""):
        file.write_bytes(spoiled)
        with pytest.raises(WrongUsage):
            read_backup(file)
        assert main(["restore", str(file), "--into", str(home)]) == 2
        assert not home.exists()
    file.write_bytes(content)
    assert main(["restore", str(file), "--into", str(home)]) == 0
    assert {path.stat().st_mode & 0o777 for path in (home / "vault").rglob("*.duckdb")} == {0o600}
    assert (home / "vault").stat().st_mode & 0o777 == 0o700
    assert main(["restore", str(file), "--accept", "--home", str(home)]) == 2


def test_a_link_that_comes_while_a_backup_is_taken_is_not_followed(
    tiny: TinySite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stewards write in policies/: what they put there would be read as the operator, and restored for all of them to read."""
    listed = list(_list_files(tiny.home))

    def exchange(home: Path) -> Iterator[str]:
        (home / "policies" / "people.yaml").unlink()
        (home / "policies" / "people.yaml").symlink_to(home / "vault" / "key")
        yield from listed

    monkeypatch.setattr(backup, "_list_files", exchange)
    with pytest.raises(WrongUsage, match="a link to another place"):
        write_backup(tiny.site, tmp_path / "site.tar")
    assert list(tmp_path.glob("*.tar")) == []


def test_vaults_are_taken_in_the_order_in_which_a_run_takes_them(tiny: TinySite) -> None:
    """A run of an heir opens its own and then those whose charges it carries: a backup that went by the names would wait for it,
    and it for the backup."""
    cap = "cap: {releases: 3}"
    (tiny.home / "populations.yaml").write_text(
        f"north: {{{cap}}}\nsouth: {{{cap}}}\nwhole: {{{cap}, from: [north, south]}}\nyoung: {{{cap}, was: whole}}\n"
    )
    tiny.site.vault.mkdir(exist_ok=True)
    for name in ("forgotten", "north", "south", "whole", "young"):
        (tiny.site.vault / f"{name}.duckdb").touch()
    assert [file.stem for file in _list_vaults(tiny.site)] == ["young", "whole", "folk", "forgotten", "north", "south"]
    (tiny.home / "populations.yaml").write_text("what is this")
    assert len(_list_vaults(tiny.site)) == 6
