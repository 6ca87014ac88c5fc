"""A vault that is missing, cut short, halved or changed is found out, and nothing is written in its place."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from release_pipeline.cli.program import main
from release_pipeline.flow.publication.verification import verify
from release_pipeline.store.holdings import VaultDamaged
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
        tiny.flow("2").run()
    assert "folk.duckdb" in str(refused.value)
    if damage in (_delete, _cut, _empty):
        assert isinstance(refused.value, VaultDamaged)
    assert (file.read_bytes() if file.exists() else None) == left or damage is _empty  # no new one was begun
    assert tiny.status("2").charge is None


def test_a_missing_key_is_not_made_anew(tiny: TinySite) -> None:
    shutil.rmtree(tiny.site.vault)
    with pytest.raises(VaultDamaged, match="key is missing"):
        tiny.flow("2").run()
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


def test_a_whole_site_passes_deep(tiny: TinySite) -> None:
    assert failures_of(verify(tiny.home, deep=True)) == []


def test_a_witnessed_head_is_asked_for(tiny: TinySite, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "head.json"
    assert main(["head", "export", "-o", str(file), "--home", str(tiny.home)]) == 0
    assert main(["verify", str(tiny.home), "--since", str(file)]) == 0
    assert "is the one that was witnessed" in capsys.readouterr().out
    file.write_text(file.read_text().replace('"hash": "', '"hash": "0'))
    assert main(["verify", str(tiny.home), "--since", str(file)]) == 1
    assert "not the one that was witnessed" in capsys.readouterr().out
