"""Records that stay in their source: the same counts, rows and refusals as of a copy, and no copy."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from release_pipeline.errors import Blocked, DataRefused, NotPassed, SourceError
from release_pipeline.pipeline import in_place
from release_pipeline.pipeline import validate as validate_stage
from release_pipeline.pipeline.context import StageContext
from release_pipeline.pipeline.ingest import ingest
from release_pipeline.pipeline.mask import mask
from release_pipeline.pipeline.mask_file import mask_table
from release_pipeline.pipeline.microaggregate import microaggregate
from release_pipeline.pipeline.opening import open_release
from release_pipeline.pipeline.release import STAGES, run_release
from release_pipeline.pipeline.validate import validate
from release_pipeline.rows.validate import judge_suite
from release_pipeline.store.files import Probe
from release_pipeline.store.in_place import RelationInPlace
from tests.integration.sites import TinySite
from tests.integration.test_whole_table import COLUMNS, PARTS, SECRET, make_people, site_of
from tests.leaks import find_canaries

PARQUET = "{path: people.parquet, release_column: year}"


def make(home: Path, **parts: str) -> TinySite:
    """A site whose source is Parquet, with numbers as numbers; some do not say their income."""
    tiny = site_of(home, **{"source": PARQUET, **parts})
    deliver(tiny)
    return tiny


def read_people() -> pd.DataFrame:
    """The people, with numbers as numbers."""
    people = pd.DataFrame(make_people())
    people["income"] = pd.to_numeric(people["income"])
    return people.astype({"rent": float, "sex": int})


def deliver(tiny: TinySite, **changed: Any) -> None:
    """Write the source; `changed`: cells of the first record."""
    people = read_people()
    for column, cell in changed.items():
        people.loc[0, column] = cell
    people.to_parquet(tiny.home / "people.parquet", index=False)
    (tiny.home / "people.duckdb").unlink(missing_ok=True)
    with duckdb.connect(str(tiny.home / "people.duckdb")) as connection:
        connection.from_df(people).create("folk")


def go(tiny: TinySite, stages: int = len(STAGES)) -> dict[str, Any]:
    """Run so many stages, each opened anew; gives the tables of the vault."""
    for stage in list(STAGES.values())[:stages]:
        stage(open_release(tiny.site, "people", "1", probe=Probe(new_secret=lambda: SECRET)))
    with tiny.flow().open_workspace() as workspace:
        return {name: workspace.read(name).to_pydict() for name in workspace.tables()}


@pytest.fixture
def same_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise that depends on the secret alone, not on path and hashes."""
    monkeypatch.setattr(StageContext, "noise_context", lambda *_: ("a test",))


@pytest.mark.parametrize("source", [PARQUET, "{path: people.duckdb, table: folk, release_column: year}"])
def test_counts_and_rows_are_those_of_a_copy(
    tmp_path: Path, source: str, same_noise: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For one secret; and no table has a record, nor a person's name."""
    lying = go(make(tmp_path / "lying", source=source))
    with monkeypatch.context() as patched:
        patched.setattr(in_place, "find_in_place", lambda *_: None)
        copied = go(make(tmp_path / "copied", source=source))
    assert "records" in copied
    assert not {"records", "raw"} & set(lying)
    for name in ("column_cells", "pair_cells", "masked"):
        assert lying[name] == copied[name], name
    assert {name for name in lying if name.startswith("cells_")} == {f"cells_{number}" for number in (3, 4, 5, 6)}
    assert lying["people"].keys() == copied["people"].keys()
    assert len(lying["people"]["person"]) == len(copied["people"]["person"])
    vault = (tmp_path / "lying" / "vault" / "folk.duckdb").read_bytes()
    assert not find_canaries({"vault": vault}, ["remark123", "name12345"])


def test_no_person_is_stored_even_until_the_checks(tmp_path: Path) -> None:
    """Only hashes of them are, each once."""
    tables = go(make(tmp_path / "site"), 1)
    assert set(tables) == {"notes", "people", *(f"cells_{number}" for number in (3, 4, 5, 6))}
    assert len(set(tables["people"]["person"])) == read_people().query("year == '1'")["person"].nunique()


def test_one_record_changed_between_two_stages_is_refused(tmp_path: Path) -> None:
    """Where column by column nothing changed, too: two incomes were exchanged. Before the charge nothing is charged."""
    tiny = make(tmp_path / "site")
    go(tiny, 2)
    deliver(tiny, income=1000.0)
    with pytest.raises(Blocked, match="the source has other records now"):
        microaggregate(tiny.flow())
    assert tiny.charges() == []
    deliver(tiny)
    go(tiny, 3)
    people = pd.read_parquet(tiny.home / "people.parquet")
    people.loc[[0, 1], "income"] = people.loc[[1, 0], "income"].to_numpy()
    people.to_parquet(tiny.home / "people.parquet", index=False)
    with pytest.raises(Blocked, match="the source has other records now"):
        mask(tiny.flow())
    deliver(tiny)
    go(tiny)


def test_a_change_while_tables_are_counted_stops_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the sum over all records did not see it, the margins of the tables do; nothing is drawn."""
    tiny = make(tmp_path / "site")
    go(tiny, 3)
    with tiny.flow().open_workspace() as workspace:
        snapshot = (workspace.checkpoint("validated") or {})["snapshot"]
    deliver(tiny, income=1000.0)
    monkeypatch.setattr("release_pipeline.store.in_place.RelationInPlace.snapshot", lambda _: snapshot)
    with pytest.raises(SourceError, match="changed while they were counted"):
        mask(tiny.flow())
    assert tiny.status().drawn is None


SPOILT: Mapping[str, Mapping[str, Any]] = {
    "far out": {"income": 4000.0, "rent": 900.0},
    "not finite": {"income": float("inf")},
    "another category": {"town": "west", "sex": 5},
    "nobody": {"person": None},
    "somebody twice": {"person": "p0001"},
}


@pytest.mark.parametrize("spoilt", SPOILT.values(), ids=SPOILT)
def test_what_is_refused_of_a_copy_is_refused_in_place(
    tmp_path: Path, spoilt: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the same words, without a cell."""
    said: list[tuple[str, ...]] = []
    for copies in (False, True):
        tiny = make(tmp_path / f"site{copies}")
        deliver(tiny, **spoilt)
        if copies:
            monkeypatch.setattr(in_place, "find_in_place", lambda *_: None)
        with pytest.raises(DataRefused) as caught:
            run_release(tiny.flow())
        said.append(caught.value.findings)
        assert not find_canaries({"message": str(caught.value).encode()}, ["4000.0000", "p0001p0001"])
    assert said[0] == said[1] != ()


def test_a_refused_release_is_refused_again_for_the_same_reason(tmp_path: Path) -> None:
    """Of the tables that the first stage made none is gone."""
    tiny = make(tmp_path / "site")
    deliver(tiny, income=4000.0)
    ingest(tiny.flow())
    refusals = [validate(tiny.flow()).refusal for _ in range(2)]
    assert refusals[0] == refusals[1] != ()


def test_absent_columns_are_named(tmp_path: Path) -> None:
    """Where the source has the persons, and of what is counted nothing."""
    tiny = make(tmp_path / "site")
    others = {name: f"other_{name}" for name in ("town", "sex", "income", "rent")}
    read_people().rename(columns=others).to_parquet(tiny.home / "people.parquet", index=False)
    with pytest.raises(DataRefused) as caught:
        run_release(tiny.flow())
    assert all(any(name in finding for finding in caught.value.findings) for name in others)


def test_persons_that_are_changed_while_checks_are_judged_stop_the_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In place, and of a copy, whose persons are written by the same stage."""
    for copies in (False, True):
        tiny = make(tmp_path / f"site{copies}")
        if copies:
            monkeypatch.setattr(in_place, "find_in_place", lambda *_: None)
        ingest(tiny.flow())

        def change(checks: Any, *others: Any, tiny: TinySite = tiny, **more: Any) -> Any:
            with tiny.flow().open_workspace() as workspace:
                workspace.write("people", workspace.read("people").slice(1))
            return judge_suite(checks, *others, **more)

        monkeypatch.setattr(validate_stage, "judge_suite", change)
        with pytest.raises(NotPassed, match="another run ingested or validated it"):
            validate(tiny.flow())


def test_a_file_with_missing_numbers_is_masked(tmp_path: Path) -> None:
    """By the tool for scripts, which compares the released numbers with those that came."""
    tiny = make(tmp_path / "site")
    made = mask_table(tiny.flow().policy, tiny.home / "people.parquet", release="1")
    assert made.records == 600


def test_of_many_records_a_sample_is_attacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the evidence says of how many."""
    for module in ("pipeline.in_place", "audit.audit"):
        monkeypatch.setattr(f"release_pipeline.{module}.ATTACKED_SAMPLE", 250)
    tiny = make(tmp_path / "site")
    go(tiny)
    with tiny.flow().open_workspace() as workspace:
        audited = workspace.checkpoint("audited")
    assert audited is not None
    assert audited["internal"]["attacked_sample"] == {"tried": 250, "among": 600}


def test_decimals_are_copied(tmp_path: Path) -> None:
    """Their texts are not those of floats: only plain numbers and texts are counted in place."""
    tiny = make(tmp_path / "site")
    file = tiny.home / "people.parquet"
    people = pq.read_table(file)
    place = people.column_names.index("rent")
    pq.write_table(people.set_column(place, "rent", people.column("rent").cast(pa.decimal128(9, 1))), file)
    assert "records" in go(tiny, 2)


def test_a_cursor_of_a_reader_does_not_keep_the_vault(tmp_path: Path) -> None:
    """A stage that failed after it opened the source leaves the vault to the next."""
    tiny = make(tmp_path / "site")
    go(tiny, 2)
    with pytest.raises(RuntimeError, match="a test"):
        _fail_while_reading(tiny.flow())
    assert "cells_3" in go(tiny, 3)


def _fail_while_reading(flow: StageContext) -> None:
    with flow.open_workspace() as workspace:
        columns = {"income": "income"}
        place = workspace.open_in_place(flow.open_source(), columns, None, engine="auto", workers=None)
        assert place is not None
        next(iter(place.read_column("income")))
        raise RuntimeError("a test")


def test_entries_that_change_places_while_tables_are_counted_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every margin stays as it was checked; nothing is drawn."""
    tiny = make(tmp_path / "site")
    go(tiny, 3)
    people = pd.read_parquet(tiny.home / "people.parquet")
    people["income"] = people.groupby("year")["income"].transform(lambda incomes: incomes.to_numpy()[::-1])
    count = RelationInPlace.reduce

    def exchange(self: RelationInPlace, *asked: Any) -> pa.Table:
        people.to_parquet(tiny.home / "people.parquet", index=False)
        return count(self, *asked)

    monkeypatch.setattr(RelationInPlace, "reduce", exchange)
    with pytest.raises(Blocked, match="the source has other records now"):
        mask(tiny.flow())
    assert tiny.status().drawn is None


def test_cells_of_an_earlier_policy_are_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A column that is dropped comes first in the policy, so that all have other numbers; and then records are copied."""
    tiny = make(tmp_path / "site")
    go(tiny, 1)
    drop = "  remark: {role: confidential, do: drop}\n"
    moved = "\n".join(["", drop.rstrip(), *[line for line in COLUMNS.splitlines() if line and line != drop.rstrip()]])
    tiny.write_policy(**{**PARTS, "source": PARQUET, "columns": moved})
    assert {name for name in go(tiny, 2) if name.startswith("cells_")} == {f"cells_{number}" for number in (3, 4, 5, 6)}
    tiny.write_policy(**{**PARTS, "source": PARQUET, "columns": COLUMNS.replace(drop, "") + "\n" + drop.rstrip()})
    assert {name for name in go(tiny, 2) if name.startswith("cells_")} == {f"cells_{number}" for number in (2, 3, 4, 5)}
    monkeypatch.setattr(in_place, "find_in_place", lambda *_: None)
    assert not [name for name in go(tiny, 1) if name.startswith("cells_")]


def test_a_source_that_changes_while_cells_are_counted_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose records they are was read of other records than the cells."""
    tiny = make(tmp_path / "site")
    read = RelationInPlace.read_column

    def read_later(self: RelationInPlace, column: str) -> Any:
        yield from (batch.slice(0, 5) for batch in read(self, column))

    monkeypatch.setattr(RelationInPlace, "read_column", read_later)
    with pytest.raises(SourceError, match="changed while it was read"):
        ingest(tiny.flow())
