"""Records without a value, each for a reason: part of what is protected, from the source to the analyst."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import frictionless
import numpy as np
import pandas as pd
import pyarrow.parquet
import pytest

from release_pipeline.analyst import read_release
from release_pipeline.errors import DataRefused, InvalidArgument
from release_pipeline.formats.package import COUNTS_FILE
from release_pipeline.mechanisms.noise import SECRET_BYTES
from release_pipeline.pipeline.opening import open_release
from release_pipeline.pipeline.release import run_release
from release_pipeline.publish.verification import verify
from release_pipeline.store.files import Probe
from release_pipeline.trust.keys import PrivateKey
from tests.integration.publishing import failures_of, make_trusted_site, publish_release
from tests.integration.sites import Row, TinySite, make_rows, make_site

SECRET = b"m" * SECRET_BYTES
ROWS = 400
SURE = 1 - 1e-9  # of intervals around noise that no test knows
COLUMNS = """
  person: {role: identifier, do: drop}
  remark: {role: confidential, do: drop}
  town:   {role: quasi, do: keep, values: [north, south, east], codes: {"-8": refused}, missing: keep, why: needed}
  sex:    {role: quasi, do: keep, values: [0, 1], codes: {-9: not asked}, missing: keep, why: needed}
  income: {role: confidential, do: noise, domain: [0, 1000], grid: 1, outside: clamp, why: known,
           codes: {-8: refused, -9: not asked, .a: left}, missing: keep}
  rent:   {role: confidential, do: noise, domain: [0, 100], grid: 0.5, outside: clamp, codes: {99: refused}, why: known}"""
PARTS = {
    "protect": "{method: dp-cdf, epsilon: 8, k: 5}",
    "columns": COLUMNS,
    "suppress": "{quasi_groups_below: 3, at_most: 10%}",
    "gates": "{min_rows: 20, clamped_at_most: 10%}",
}
CAP = "epsilon: 40, definition: dp, scope: column"


def make_records(count: int = ROWS) -> list[Row]:
    """Many of the records lack something, written in all the ways that a source may have."""
    rows, numbers = make_rows(count), random.Random(4)  # noqa: S311
    for row in rows:
        row["income"] = numbers.choices([row["income"], "-8", "-9.0", ".a", "", "1500"], [50, 20, 10, 10, 8, 2])[0]
        row["rent"] = numbers.choices([row["rent"], "99"], [80, 20])[0]
        row["town"] = numbers.choices([row["town"], "-8", " "], [80, 10, 10])[0]
        row["sex"] = numbers.choices([row["sex"], "-9", ""], [80, 10, 10])[0]
    return rows


def site_of(home: Path, **parts: str) -> TinySite:
    """A site whose records lack values."""
    tiny = make_site(home, rows=make_records(), **{**PARTS, "cap": CAP, **parts})
    tiny.fix_key(SECRET)  # the key of the noise has the keyed hash of the records
    return tiny


def run(tiny: TinySite) -> dict[str, Any]:
    """The candidate of the first release, its noise drawn with a secret that the test knows."""
    return run_release(open_release(tiny.site, "people", "1", probe=Probe(new_secret=lambda: SECRET))).facts


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> TinySite:
    """With its candidate."""
    tiny = site_of(tmp_path_factory.mktemp("missing") / "site")
    run(tiny)
    return tiny


def lacking(rows: list[Row], name: str, codes: dict[str, str]) -> Counter[str | None]:
    """How many records of the first release lack a value, by the reason; None: they have one."""
    return Counter(codes.get(row[name].strip()) for row in rows if row["year"] == "1")


INCOME = {"-8": "refused", "-9.0": "not asked", ".a": "left", "": "blank"}


def test_every_cell_has_a_value_or_a_reason(ran: TinySite) -> None:
    """In both formats, and about as many for each reason as in the source: of kept columns exactly as many, but for what was
    suppressed."""
    table = pyarrow.parquet.read_table(ran.folder() / "data.parquet").to_pandas()
    text = pd.read_csv(ran.folder() / "data.csv", dtype=str, keep_default_na=False)
    names = ["town", "town_missing", "sex", "sex_missing", "income", "income_missing", "rent", "rent_missing"]
    assert table.columns.tolist() == text.columns.tolist() == names
    for name in ("town", "sex", "income", "rent"):
        assert (table[name].isna() ^ table[f"{name}_missing"].isna()).all()
        assert ((text[name] == "") == (text[f"{name}_missing"] != "")).all()
    rows = make_records()
    expected = lacking(rows, "income", INCOME)
    for reason in INCOME.values():
        assert abs((table["income_missing"] == reason).sum() - expected[reason]) <= 8, reason
    assert abs((table["rent_missing"] == "refused").sum() - lacking(rows, "rent", {"99": "refused"})["refused"]) <= 8
    towns = Counter(table["town_missing"].dropna())
    assert towns["refused"] + towns["blank"] + towns["suppressed"] >= 60
    assert set(towns) <= {"refused", "blank", "suppressed"}
    assert set(table["sex_missing"].dropna()) <= {"not asked", "blank", "suppressed"}
    values = table["income"].dropna()
    assert values.between(0, 1000).all()
    assert -8 not in set(values)


def test_counts_have_a_cell_for_every_reason(ran: TinySite) -> None:
    """In every stage, behind the cells of values."""
    counts = pd.read_csv(ran.folder() / COUNTS_FILE, dtype=str)
    income = counts[counts["column"] == "income"]
    reasons = ["missing: refused", "missing: not asked", "missing: left", "missing: blank"]
    for _, stage in income.groupby("stage"):
        assert stage["first"].tolist()[-4:] == stage["last"].tolist()[-4:] == reasons
        assert stage["last"].tolist()[-5] == "1000"


@pytest.mark.slow
def test_a_package_says_it_and_an_analyst_reads_it(tmp_path: Path, keys: dict[str, PrivateKey]) -> None:
    """Verified, described to programs and to people; means and quantiles are of those that have a value."""
    tiny = make_trusted_site(tmp_path / "site", keys, rows=make_records(2000), cap=CAP, **PARTS)
    package = publish_release(tiny, keys)
    assert not failures_of(verify(package, [str(tiny.site.officer)]))
    assert frictionless.validate(str(package / "datapackage.json")).valid
    card = json.loads((package / "privacy-card.json").read_text())
    columns = {column["name"]: column for column in card["columns"]}
    assert columns["income_missing"]["done"] == "missing"
    assert columns["income_missing"]["values"] == ["refused", "not asked", "left", "blank"]
    assert columns["town_missing"]["values"] == ["refused", "blank", "suppressed"]
    assert "income_missing says why" in columns["income"]["missing"]
    release = read_release(package)
    rows = [row for row in make_records(2000) if row["year"] == "1"]
    values = np.clip(np.array([float(row["income"]) for row in rows if row["income"] not in INCOME]), 0, 1000)
    mean, median = release.mean("income", level=SURE), release.quantile("income", 0.5, level=SURE)
    assert mean.low <= values.mean() <= mean.high
    assert mean.high - mean.low < 100
    assert median.low <= np.quantile(values, 0.5, method="inverted_cdf") <= median.high
    refused = release.missing("income", "refused", level=SURE)
    assert refused.low <= lacking(rows, "income", INCOME)["refused"] / len(rows) <= refused.high
    assert refused.high - refused.low < 0.05
    anything = release.missing("income", level=SURE)
    assert anything.low <= 1 - len(values) / len(rows) <= anything.high
    with pytest.raises(InvalidArgument, match="declares no such reason"):
        release.missing("income", "bored")


def test_what_is_no_code_still_stops_everything(tmp_path: Path) -> None:
    """Other texts and blanks where they are not kept, by column and count, and no cell."""
    tiny = site_of(tmp_path / "site", columns=COLUMNS.replace(".a: left}, missing: keep", ".b: left}"))
    with pytest.raises(DataRefused) as refused:
        run(tiny)
    said = " ".join(refused.value.findings)
    assert "column income" in said
    assert "something else than a number" in said
    assert "missing is fail" in said
    assert ".a" not in said
    assert not tiny.charges()
