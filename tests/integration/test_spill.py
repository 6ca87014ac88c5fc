"""What DuckDB has no memory for: written where site.yaml says, for this account alone, and gone afterwards."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from release_pipeline.store.vault import open_workspace
from tests.integration.sites import TinySite, make_site

LITTLE = 256 << 20  # of which DuckDB takes a quarter
MORE = "CREATE TEMP TABLE held AS SELECT hash(range) AS one, hash(range + 7) AS two FROM range(8_000_000)"


@pytest.fixture
def tiny(tmp_path: Path) -> TinySite:
    """A site with some people."""
    return make_site(tmp_path / "site")


@pytest.fixture
def spill(tmp_path: Path) -> Path:
    """A folder that is not there yet."""
    return tmp_path / "fast" / "spill"


def files_of(folder: Path) -> list[Path]:
    """The files in a folder, however deep."""
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.slow
def test_it_is_written_there_and_gone_afterwards(tiny: TinySite, spill: Path) -> None:
    """Nothing lies beside the vault's file; folders of 0700, files of 0600 whatever the umask says."""
    with open_workspace(tiny.site.vault, "folk", "people/1/r1", memory=LITTLE, spill=spill) as room:
        room._connection.execute(MORE)
        held = files_of(spill)
        assert sum(file.stat().st_size for file in held) > 16 << 20
        assert {stat.S_IMODE(file.stat().st_mode) & 0o077 for file in (spill, *spill.rglob("*"))} == {0}
        assert not list(tiny.site.vault.glob("*.tmp"))
    assert list(spill.iterdir()) == []
