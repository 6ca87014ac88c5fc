"""Random parts of the records in one release: how they are masked, what they show, what is refused."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from release_pipeline.pipeline.release import run_release
from release_pipeline.policy import load_policy
from tests.integration import test_k_epsilon as classes
from tests.integration.sites import TinySite, make_rows, make_site, refusal
from tests.integration.test_vectors import MASKED

IN_PARTS = {
    "source": "{path: people.csv}",
    "releases": "once",
    "drop": "[name, year]",
    "columns": MASKED,
    "gates": "{min_rows: 60}",
}
IDP = "{method: idp-cbls, epsilon: 2, k: 5, partitions: 3}"
DP = "{method: dp-mdav, epsilon: 2, k: 5, order: hilbert, partitions: 3, publish_parts: one per release}"
IN_IDP = "epsilon: 2, definition: idp, scope: column"
METHODS = {
    "laplace": "{method: laplace, epsilon: 2, partitions: 4}",
    "dp-um": "{method: dp-um, epsilon: 2, k: 5, partitions: 4}",
    "idp-ls": "{method: idp-ls, epsilon: 2, k: 5, partitions: 4}",
    "idp-cbls": "{method: idp-cbls, epsilon: 2, k: 5, partitions: 4}",
    "mdav": "{method: mdav, k: 5, partitions: 4}",
    "dp-mdav": "{method: dp-mdav, epsilon: 2, k: 5, order: corner, partitions: 4}",
}


def make_parted(home: Path, protect: str = IDP, *, cap: str = IN_IDP, count: int = 61, **parts: str) -> TinySite:
    """A site whose release is of three random parts of one table."""
    rows = make_rows(count, releases=("1",))
    return make_site(home, rows=rows, cap=cap, **{**IN_PARTS, "protect": protect, **parts})


def released_of(tiny: TinySite, release: str) -> pd.DataFrame:
    return pd.read_csv(tiny.folder(release) / "data.csv")


@pytest.mark.parametrize("method", METHODS)
def test_every_method_masks_each_part_on_its_own(tmp_path: Path, method: str) -> None:
    """Clusters have members of one part alone, of which there are equally many; the rows of the release show no part."""
    cap = "releases: 2" if method == "mdav" else "epsilon: 900, definition: idp, scope: column"
    tiny = make_site(
        tmp_path / "site", rows=make_rows(82), cap=cap, protect=METHODS[method], columns=MASKED, gates="{min_rows: 80}"
    )
    facts = run_release(tiny.flow()).facts
    tables = tiny.tables()
    part = tables["parts"]["release_pipeline_part"].to_numpy()
    assert sorted(np.bincount(part)) == [20, 20, 21, 21]
    assert facts["rows_in"] == facts["rows_out"] == 82
    assert facts["parts"] == 4
    masked = tables["masked"].to_pandas()
    own = part[masked["release_pipeline_record"].to_numpy()]
    for name in ("income", "rent"):
        if method == "laplace":
            continue
        groups = masked.assign(part=own).groupby(["part", name]).size()
        assert groups.min() >= 5
    changes = int(np.count_nonzero(np.diff(own)))
    assert changes > 40  # parts one after the other would have 3
    assert list(released_of(tiny, "1").columns) == ["income", "rent"]
    expected = json.loads((tiny.folder() / "evidence.json").read_text())
    assert expected["columns"]["income"]["parts"] == 4
    assert expected["columns"]["income"]["error"] == pytest.approx(expected["audit"]["error"]["income"], rel=1.5, abs=0.5)


def test_classes_of_each_part_have_k_records_too(tmp_path: Path) -> None:
    """(k,epsilon)-anonymity grouped part by part. A label is one class over all parts: one scale, as wide as its numbers."""
    tiny = classes.site_of(
        tmp_path / "site",
        rows=classes.records(240),
        protect="{method: k-epsilon, grouping: ola, k: 4, epsilon: 2, partitions: 2}",
        suppress="{grouping_at_most: 20%, confidence: 95%, at_most: 90%}",
        gates="{min_rows: 200, differencing_below: 0}",
    )
    facts = classes.run(tiny)  # with a secret for which the parts come to the same levels
    table = classes.released_of(tiny)
    assert table.groupby(classes.QUASI).size().min() == facts["anonymity_k"] >= 4
    assert len(table) == facts["rows_out"] < facts["rows_in"] == 240
    made = {name: tiny.tables()[name].to_pandas() for name in ("membership", "labels", "statistics", "records", "suppressed")}
    part = tiny.tables()["parts"]["release_pipeline_part"].to_numpy()
    group = made["membership"]["release_pipeline_class"]
    assert np.bincount(part).tolist() == [120, 120]
    assert group[group >= 0].groupby([part[group >= 0], group[group >= 0]]).size().min() >= 4
    assert not made["labels"].duplicated().any()
    for name, share, step in (("income", 1, 1), ("rent", 1, 0.5)):
        units = (made["records"][name] / step).round()[group >= 0]
        wanted = [math.ceil((of.max() - of.min()) / share) for _, of in units.groupby(group[group >= 0])]
        assert made["statistics"].query("column_name == @name")["scale"].tolist() == wanted
    kept = made["suppressed"]
    assert kept.groupby(classes.QUASI)["release_pipeline_class"].nunique().max() == 1
    own = part[kept["release_pipeline_record"]]
    assert kept.assign(part=own).groupby(classes.QUASI).part.nunique().max() == 2
    assert np.count_nonzero(np.diff(own)) > 20
    evidence = json.loads((tiny.folder() / "evidence.json").read_text())
    assert 0 <= evidence["audit"]["record_linkage"]["value"] <= 1
    assert evidence["audit"]["groups"]["smallest"] == facts["anonymity_k"]
    assert evidence["columns"]["income"]["parts"] == 2


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"protect": IDP.replace("partitions: 3", "partitions: 1")}, "The least allowed is 2."),
        ({"gates": "{min_rows: 29}"}, "min_rows is below 30, twice k in each of 3 parts."),
        ({"gates": "{}"}, "3 parts need gates.min_rows"),
    ],
)
def test_what_a_policy_of_parts_may_not_ask_for(tmp_path: Path, parts: Mapping[str, str], words: str) -> None:
    tiny = make_parted(tmp_path / "site", **parts)
    assert words in refusal(lambda: load_policy(tiny.home / "policies" / "people.yaml"))
