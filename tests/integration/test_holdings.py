"""A vault that is missing, cut short, halved or changed is found out, and nothing is written in its place."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from release_pipeline.apps.cli.program import main
from release_pipeline.pipeline.opening import revise_release
from release_pipeline.pipeline.release import run_release
from release_pipeline.pipeline.vaults import find_people_faults
from release_pipeline.publish.verification import verify
from release_pipeline.store.ledger import VaultDamaged
from release_pipeline.store.vault_files import open_vault, prune_workspaces
from tests.integration.people import copy_site
from tests.integration.publishing import failures_of
from tests.integration.sites import TinySite

pytestmark = pytest.mark.slow
ROOM = "people/1/r1"


@pytest.fixture
def tiny(candidate: Path, tmp_path: Path) -> TinySite:
    """A copy of a site with a candidate."""
    return copy_site(candidate, tmp_path / "site")


def _delete(file: Path) -> None:
    file.unlink()


def _cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:5000])


def _halve(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])


def _empty(file: Path) -> None:
    file.unlink()
    duckdb.connect(str(file)).close()


@pytest.mark.parametrize("damage", [_delete, _cut, _halve, _empty])
def test_a_lost_vault_stops_a_run_and_is_told(tiny: TinySite, damage: Callable[[Path], None]) -> None:
    file = tiny.site.vault / "folk.duckdb"
    damage(file)
    left = file.read_bytes() if file.exists() else None
    assert any("vault/folk.duckdb" in words for words in failures_of(verify(tiny.home)))
    with pytest.raises(Exception) as refused:
        run_release(tiny.flow("2"))
    assert "folk.duckdb" in str(refused.value)
    if damage in (_delete, _cut, _empty):
        assert isinstance(refused.value, VaultDamaged)
    after = file.read_bytes() if file.exists() else None
    if damage is _halve:  # DuckDB opens what is left before it finds that blocks are missing, and writes its header
        assert after is not None
        assert left is not None
        assert len(after) == len(left)
    elif damage is not _empty:
        assert after == left, "no new one was begun"
    assert tiny.status("2").charge is None


def test_a_missing_key_is_not_made_anew(tiny: TinySite) -> None:
    shutil.rmtree(tiny.site.vault)
    with pytest.raises(VaultDamaged, match="key is missing"):
        run_release(tiny.flow("2"))
    assert not (tiny.site.vault / "key").exists()


@pytest.mark.parametrize("table", ["masked", "membership", "people"])
def test_a_changed_table_is_found_by_deep_alone(tiny: TinySite, table: str) -> None:
    file = tiny.site.vault / "folk.duckdb"
    with duckdb.connect(str(file)) as vault:
        [(room,)] = vault.execute("SELECT schema_name FROM duckdb_tables() WHERE table_name = $t", {"t": table}).fetchall()
        vault.execute(f'DELETE FROM "{room}"."{table}" WHERE rowid = 0')  # noqa: S608
    assert failures_of(verify(tiny.home)) == []
    [words] = failures_of(verify(tiny.home, deep=True))
    assert words == f"vault/folk.duckdb: {ROOM}: the table {table} in the vault is not what was written"


CHANGES = {
    "a person less": "DELETE FROM exposed WHERE rowid = 0",
    "a person more": "INSERT INTO exposed VALUES ('people/1/r1', unhex('00112233445566778899aabbccddeeff'))",
    "a person in another release": "UPDATE exposed SET release = 'people/9/r1' WHERE rowid = 0",
    "somebody else elsewhere": "UPDATE identities SET everywhere = unhex('00112233445566778899aabbccddeeff') WHERE rowid = 0",
    "nobody elsewhere": "DELETE FROM identities",
    "nobody kept": "UPDATE charged SET people = false",
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_who_was_in_a_release_is_under_a_seal(tiny: TinySite, change: str) -> None:
    """Whoever has the file and not the key cannot change who was exposed unseen."""
    with duckdb.connect(str(tiny.site.vault / "folk.duckdb")) as vault:
        vault.execute(change)
    assert failures_of(verify(tiny.home, deep=True)) == ["vault/folk.duckdb: who was in which release is not what was written"]


def test_the_seal_follows_every_release_and_outlives_its_room(tiny: TinySite) -> None:
    """A second release and its revision leave it whole, and so does pruning; without it, or with another, nothing goes on."""
    run_release(tiny.flow("2"))
    revise_release(tiny.site, "people", "2", why="once more")
    run_release(tiny.flow("2"))
    assert failures_of(verify(tiny.home, deep=True)) == []
    revise_release(tiny.site, "people", "2", why="and again")
    file = tiny.site.vault / "folk.duckdb"
    assert len(prune_workspaces(file, lambda rooms: rooms)) == 3
    with open_vault(tiny.site.vault, "folk", wait=0) as rooms:
        assert list(find_people_faults(tiny.site, "folk", rooms, tiny.events(), deep=True)) == []
    with duckdb.connect(str(file)) as vault:
        vault.execute('UPDATE people_notes SET note = replace(note, \'"charged":"\', \'"charged":"1\')')
    words = "the note of who was in which release is not what was written"
    assert f"vault/folk.duckdb: {words}" in failures_of(verify(tiny.home))
    with pytest.raises(VaultDamaged, match=words):
        run_release(tiny.flow("2"))
    with duckdb.connect(str(file)) as vault:
        vault.execute("DELETE FROM people_notes")
    assert "vault/folk.duckdb: the note of who was in which release is missing" in failures_of(verify(tiny.home))
    with pytest.raises(VaultDamaged, match="which releases were charged is not what was written"):
        run_release(tiny.flow("2"))


def test_a_witnessed_head_is_asked_for(tiny: TinySite, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "head.json"
    assert main(["head", "export", "-o", str(file), "--home", str(tiny.home)]) == 0
    assert main(["verify", str(tiny.home), "--since", str(file)]) == 0
    assert "is the one that was witnessed" in capsys.readouterr().out
    file.write_text(file.read_text().replace('"hash": "', '"hash": "0'))
    assert main(["verify", str(tiny.home), "--since", str(file)]) == 1
    assert "not the one that was witnessed" in capsys.readouterr().out
