"""What DuckDB has no memory for: written beside the vault's file, for this account alone, and gone afterwards."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from release_pipeline.store.vault import open_workspace
from tests.integration.sites import TinySite

LITTLE = 256 << 20  # of which DuckDB takes a quarter
MORE = "CREATE TEMP TABLE held AS SELECT hash(range) AS one, hash(range + 7) AS two FROM range(8_000_000)"


def files_of(folder: Path) -> list[Path]:
    """The files in a folder, however deep."""
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.slow
def test_it_is_written_there_and_gone_afterwards(tiny: TinySite) -> None:
    """Folders of 0700, files of 0600 whatever the umask says; and what a killed process left is gone, too."""
    spill = tiny.site.vault / "folk.duckdb.tmp"
    spill.mkdir(parents=True)
    (spill / "left").write_text("by a killed process")
    with open_workspace(tiny.site.vault, "folk", "people/1/r1", memory=LITTLE) as room:
        assert not spill.exists()
        room._connection.execute(MORE)
        held = files_of(spill)
        assert sum(file.stat().st_size for file in held) > 16 << 20
        assert {stat.S_IMODE(file.stat().st_mode) & 0o077 for file in (spill, *spill.rglob("*"))} == {0}
    assert not spill.exists()
