"""mdav and dp-mdav through the whole pipeline: policy, plan, candidate, package, and what a policy may not ask for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from release_pipeline.mechanisms import mdav
from release_pipeline.mechanisms.noise import SECRET_BYTES
from release_pipeline.pipeline.opening import open_release
from release_pipeline.pipeline.release import run_release
from release_pipeline.policy import load_policy
from release_pipeline.store.files import Probe
from tests.integration.sites import TinySite, make_rows, make_site, refusal

SECRET = b"v" * SECRET_BYTES
MASKED = """
  person: {role: identifier, do: drop}
  town:   {role: quasi, do: drop}
  sex:    {role: quasi, do: drop}
  remark: {role: confidential, do: drop}
  income: {role: quasi, do: noise, domain: [0, 1000], grid: 1, outside: fail, why: known}
  rent:   {role: confidential, do: noise, domain: [0, 100], grid: 0.5, outside: clamp, why: known}"""
KEPT = MASKED.replace("sex:    {role: quasi, do: drop}", "sex:    {role: quasi, do: keep, values: [0, 1], why: needed}")
DP = "{method: dp-mdav, epsilon: 2, k: 10, order: hilbert}"
MDAV = "{method: mdav, k: 5}"
CAPS = {"dp": "epsilon: 900, definition: dp, scope: table", "idp": "epsilon: 900, definition: idp, scope: table"}


def site_of(home: Path, **parts: str) -> TinySite:
    """A site with a policy that masks two columns together."""
    content = {"protect": DP, "columns": MASKED, "cap": CAPS["dp"], **parts}
    tiny = make_site(home, rows=make_rows(), **content)
    tiny.fix_key(SECRET)  # the key of the noise has the keyed hash of the records
    return tiny


def run(tiny: TinySite, release: str = "1") -> dict[str, Any]:
    """The facts of the candidate, its noise drawn with a secret that the test knows."""
    return run_release(open_release(tiny.site, "people", release, probe=Probe(new_secret=lambda: SECRET))).facts


def released_of(tiny: TinySite, release: str = "1") -> pd.DataFrame:
    return pd.read_csv(tiny.folder(release) / "data.csv")


def evidence_of(tiny: TinySite) -> dict[str, Any]:
    return json.loads((tiny.folder() / "evidence.json").read_text())


def originals(release: str = "1") -> np.ndarray:
    rows = [row for row in make_rows() if row["year"] == release]
    return np.array([[float(row["income"]), float(row["rent"])] for row in rows])


@pytest.mark.parametrize(
    ("order", "statistic", "definition", "scope"), [("hilbert", "plain", "dp", "centroid"), ("corner", "trimmed", "idp", "table")]
)
def test_every_claim_of_dp_mdav_reaches_its_candidate(
    tmp_path: Path, order: str, statistic: str, definition: str, scope: str
) -> None:
    """Vectors shared by k records or more, facts as claimed, losses at or under epsilon inside, and a charge in the ledger."""
    protect = f"{{method: dp-mdav, epsilon: 2, k: 10, order: {order}, statistic: {statistic}, scope: {scope}}}"
    tiny = site_of(tmp_path / "site", protect=protect, cap=CAPS[definition])
    facts = run(tiny)
    table = released_of(tiny)
    sizes = table.groupby(["income", "rent"]).size()
    assert len(table) == 60
    assert sizes.min() >= 10
    assert len(sizes) == 6
    assert (facts["definition"], facts["scope"], facts["epsilon"]) == (definition, scope, 2.0)
    loss = evidence_of(tiny)["columns"]["income"]["loss_table"]
    [charge] = tiny.charges()
    charged = charge.loss.of(definition, "table")
    assert charged is not None
    assert loss <= charged / 1e9
    if scope == "table":
        assert charged == 2 * 10**9
        assert facts["table_bound"] == "at most epsilon 2 in all"
    else:
        assert charged > 2 * 10**9
    assert charge.loss.dp_table is None or definition == "dp"


def test_mdav_releases_the_means_of_its_clusters(tmp_path: Path) -> None:
    """Every record has the exact mean of its cluster, in all columns at once; nothing is drawn but the order of the rows."""
    tiny = site_of(tmp_path / "site", protect=MDAV, cap="releases: 2")
    facts = run(tiny)
    x = originals()
    labels = mdav(x, 5)
    means = pd.DataFrame(x).groupby(labels).transform("mean").to_numpy()
    table = released_of(tiny)
    assert np.allclose(np.array(sorted(table.to_numpy().tolist())), np.array(sorted(means.tolist())))
    assert (facts["definition"], facts["epsilon"], facts["k"], facts["anonymity_k"]) == ("k-anonymity", None, 5, 5)
    assert facts["population_spent"] == "1 of 2 (releases)"
    assert "loss_table" not in evidence_of(tiny)["columns"]["income"]


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"columns": KEPT}, "columns.sex.do: a column that is kept as it is has no bound"),
        ({"protect": "{method: mdav, k: 5, epsilon: 1}", "cap": "releases: 2"}, "mdav has no noise and no epsilon. Remove it."),
        (
            {
                "protect": "{method: dp-mdav, epsilon: 1, k: 5, order: corner, statistic: trimmed}",
                "person": "{column: person, records_per_release: 3}",
            },
            "dp-mdav with trimmed sums protects single records",
        ),
        ({"protect": MDAV, "person": "{column: person, records_per_release: 3}"}, "a cluster counts records"),
    ],
)
def test_what_a_policy_may_not_ask_for_is_told_in_words(tmp_path: Path, parts: Mapping[str, str], words: str) -> None:
    tiny = site_of(tmp_path / "site", **parts)
    assert words in refusal(lambda: load_policy(tiny.home / "policies" / "people.yaml"))
