"""Declared groups through a whole release: in the evidence, on the reviewers' page, and nowhere else."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pyarrow.parquet as parquet
import pytest

from tests.integration.sites import make_rows, make_site


@pytest.mark.slow
def test_groups_of_a_release_are_those_of_its_tables(tmp_path: Path) -> None:
    """By group what a reader of the source and of the candidate would compute; the page says who is served worst."""
    rows = [{**row, "town": "east"} if i < 4 else {**row, "town": "north"} for i, row in enumerate(make_rows(releases=["1"]))]
    tiny = make_site(tmp_path / "site", rows=rows, audit="{groups: [sex, town]}")
    tiny.flow("1").run()
    folder = tiny.folder("1")
    found = json.loads((folder / "evidence.json").read_text())["audit"]["subgroups"]
    data = parquet.read_table(folder / "data.parquet").to_pylist()
    for group in found["sex"]:
        mine = [float(row["income"]) for row in rows if row["sex"] == group["label"]]
        said = [float(row["income"]) for row in data if str(row["sex"]) == group["label"]]
        assert (group["records"], group["released"]) == (len(mine), len(said)) == (30, 30)
        assert group["columns"]["income"]["original"] == pytest.approx(np.mean(mine), rel=1e-5)
        assert group["columns"]["income"]["released"] == pytest.approx(np.mean(said), rel=1e-5)
    assert [(group["label"], group["records"], bool(group["columns"])) for group in found["town"]] == [
        ("north", 56, True),
        ("east", 4, False),
    ]
    page = (folder / "report.html").read_text()
    assert f"By sex, {found['sex'][0]['label']} is served worst" in re.sub(r"<[^>]*>", "", page)
    assert "too small to be measured" in page
