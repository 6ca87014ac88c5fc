"""mdav and dp-mdav through the whole pipeline: policy, plan, candidate, package, and what a policy may not ask for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pandas as pd
import pytest

from release_pipeline.errors import GateFailed, OverCap, PolicyInvalid
from release_pipeline.flow.opening import open_release
from release_pipeline.flow.publication.dossier import write_dossier
from release_pipeline.flow.publication.verification import verify
from release_pipeline.flow.secret_files import Probe
from release_pipeline.flow.trust.keys import PrivateKey
from release_pipeline.policy import load_policy
from release_pipeline.policy.plan import make_plan
from release_pipeline.policy.words import describe_claim
from release_pipeline.privacy import mdav
from release_pipeline.privacy.noise import SECRET_BYTES
from release_pipeline.report.public import CARD_SCHEMA
from tests.integration.people import RELEASE
from tests.integration.publishing import failures_of, make_trusted_site, publish_release
from tests.integration.sites import TinySite, make_rows, make_site

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
    return open_release(tiny.site, "people", release, probe=Probe(new_secret=lambda: SECRET)).run().facts


def released_of(tiny: TinySite, release: str = "1") -> pd.DataFrame:
    return pd.read_csv(tiny.folder(release) / "data.csv")


def evidence_of(tiny: TinySite) -> dict[str, Any]:
    return json.loads((tiny.folder() / "evidence.json").read_text())


def originals(release: str = "1") -> np.ndarray:
    rows = [row for row in make_rows() if row["year"] == release]
    return np.array([[float(row["income"]), float(row["rent"])] for row in rows])


@pytest.mark.parametrize("order", ["corner", "hilbert"])
@pytest.mark.parametrize(("statistic", "definition"), [("plain", "dp"), ("trimmed", "idp")])
@pytest.mark.parametrize("scope", ["centroid", "table"])
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


def test_mdav_beside_a_kept_column_counts_their_combinations(tmp_path: Path) -> None:
    """The anonymity that is told is that of masked and kept quasi-identifiers together; cells of kept ones are blanked alone."""
    bare = site_of(tmp_path / "bare", protect=MDAV, columns=KEPT, cap="releases: 2")
    assert (run(bare)["anonymity_k"] or 0) < 5
    safe = site_of(
        tmp_path / "safe", protect=MDAV, columns=KEPT, cap="releases: 2", suppress="{quasi_groups_below: 3, at_most: 100%}"
    )
    facts = run(safe)
    table = released_of(safe)
    assert facts["anonymity_k"] >= 3
    assert table.groupby(["income", "sex"], dropna=False).size().min() == facts["anonymity_k"]
    assert table.income.notna().all()
    assert table.sex.isna().sum() == facts["cells_blanked"]
    assert len(table) < 60  # whom no blank cell could hide is dropped


def test_what_mdav_would_suppress_is_known_before_the_charge(tmp_path: Path) -> None:
    """Nothing is drawn, so that a limit that cannot be met costs no release."""
    suppress = "{quasi_groups_below: 5, at_most: 5%}"
    tiny = site_of(tmp_path / "site", protect=MDAV, columns=KEPT, cap="releases: 2", suppress=suppress)
    with pytest.raises(GateFailed) as caught:
        run(tiny)
    assert "the suppression of small groups is over the limit 0.05" in caught.value.what
    assert not tiny.charges()


def test_a_population_that_counts_epsilon_has_no_room_for_mdav(tmp_path: Path) -> None:
    tiny = site_of(tmp_path / "site", protect=MDAV)
    with pytest.raises(OverCap) as caught:
        run(tiny)
    assert "needs a cap like {releases: 1}" in caught.value.remedy


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"columns": KEPT}, "columns.sex.do: a column that is kept as it is has no bound"),
        (
            {"protect": "{method: dp-mdav, epsilon: 1, k: 2, order: corner, statistic: trimmed}"},
            "trimmed sums need clusters of at least 3",
        ),
        ({"protect": "{method: dp-mdav, epsilon: 1, k: 5}"}, "'order' is missing. Say corner (the paper's) or hilbert."),
        ({"protect": "{method: dp-mdav, epsilon: 1, k: 5, order: peano}"}, "'peano' is not allowed for order."),
        ({"protect": "{method: mdav, k: 5, epsilon: 1}", "cap": "releases: 2"}, "mdav has no noise and no epsilon. Remove it."),
        ({"protect": "{method: mdav, k: 5, order: corner}", "cap": "releases: 2"}, "'order' is not for this method"),
        (
            {"protect": "{method: mdav, k: 5, clamp: no}", "cap": "releases: 2"},
            "'clamp' is not for this method: mdav has no noise, so that no value leaves its domain. Remove it.",
        ),
        ({"protect": "{method: dp-mdav, epsilon: 1, k: 5, order: corner, clamp: no}"}, "and dp-mdav offers none. Remove it."),
        ({"protect": "{method: mdav, k: 1}", "cap": "releases: 2"}, "The least allowed is 2."),
        ({"protect": "{method: dp-um, epsilon: 1, k: 5, order: corner}"}, "'order' is not known here."),
        (
            {
                "protect": "{method: dp-mdav, epsilon: 1, k: 5, order: corner, scope: centroid}",
                "columns": KEPT,
                "suppress": "{quasi_groups_below: 5, at_most: 5%}",
            },
            "dp-mdav suppresses nothing",
        ),
        ({"protect": DP.replace("hilbert}", "hilbert, consistency: isotonic}")}, "'consistency' is not known here."),
        (
            {
                "protect": "{method: dp-mdav, epsilon: 1, k: 5, order: corner, statistic: trimmed}",
                "person": "{column: person, records_per_release: 3}",
            },
            "dp-mdav with trimmed sums protects single records",
        ),
        ({"protect": MDAV, "person": "{column: person, records_per_release: 3}"}, "a cluster counts records"),
        ({"protect": DP, "gates": "{min_rows: 20, relative_error: {income: 1}}"}, "this method has none."),
    ],
)
def test_what_a_policy_may_not_ask_for_is_told_in_words(tmp_path: Path, parts: Mapping[str, str], words: str) -> None:
    tiny = site_of(tmp_path / "site", **parts)
    with pytest.raises(PolicyInvalid) as caught:
        load_policy(tiny.home / "policies" / "people.yaml")
    assert words in "\n".join(caught.value.problems)


def test_at_scope_centroid_a_column_may_be_kept_and_the_table_is_then_unbounded(tmp_path: Path) -> None:
    protect = "{method: dp-mdav, epsilon: 2, k: 10, order: corner, scope: centroid}"
    tiny = site_of(tmp_path / "site", protect=protect, columns=KEPT, cap="epsilon: 900, definition: dp, scope: column")
    facts = run(tiny)
    assert facts["table_bound"] == "not bounded"
    assert facts["claim"].endswith("for each centroid on its own; whole table: not bounded")
    assert facts["column_bound"] == "at most epsilon 12 in all"  # 6 clusters


def test_the_plan_names_the_noise_that_is_drawn(tmp_path: Path) -> None:
    """For plain sums exactly: the mean absolute value of a discrete Laplace of the public scale, over k."""
    tiny = site_of(tmp_path / "site")
    run(tiny)
    policy = load_policy(tiny.home / "policies" / "people.yaml")
    plan = {part.name: part for part in make_plan(policy, rows=60).columns}
    scales = tiny.tables()["statistics"].to_pandas().groupby("column_name").scale.agg(["min", "max"])
    for name, step in (("income", 1), ("rent", 0.5)):
        assert scales.loc[name, "min"] == scales.loc[name, "max"]
        assert plan[name].noise == pytest.approx(step / np.sinh(1 / scales.loc[name, "min"]) / 10)
        assert not plan[name].worst_case
    assert describe_claim(policy) == "epsilon 2 in all, DP, for the whole table (all 2 masked columns together)"


@pytest.mark.parametrize("scope", ["centroid", "table"])
def test_the_plan_bounds_the_noise_of_trimmed_sums(tmp_path: Path, scope: str) -> None:
    protect = f"{{method: dp-mdav, epsilon: 2, k: 10, order: corner, statistic: trimmed, scope: {scope}, weights: {{rent: 3}}}}"
    tiny = site_of(tmp_path / "site", protect=protect, cap=CAPS["idp"])
    run(tiny)
    plan = {part.name: part for part in make_plan(load_policy(tiny.home / "policies" / "people.yaml"), rows=60).columns}
    scales = tiny.tables()["statistics"].to_pandas().groupby("column_name").scale.max()
    for name, step in (("income", 1), ("rent", 0.5)):
        assert plan[name].worst_case
        assert scales[name] * step / 10 <= (plan[name].noise or 0)


@pytest.mark.parametrize("method", ["mdav", "dp", "idp", "centroid"])
def test_packages_and_dossiers_say_what_is_so(tmp_path: Path, keys: Mapping[str, PrivateKey], method: str) -> None:
    """Published, verified, with a card of its schema; nothing that is not so: no noise of mdav, no order restored."""
    protect, cap = {
        "mdav": (MDAV, "releases: 2"),
        "dp": (DP, CAPS["dp"]),
        "idp": (DP.replace("hilbert", "corner, statistic: trimmed"), CAPS["idp"]),
        "centroid": (DP.replace("hilbert", "hilbert, scope: centroid"), CAPS["dp"]),
    }[method]
    tiny = make_trusted_site(tmp_path / "site", keys, rows=make_rows(), protect=protect, columns=MASKED, cap=cap)
    package = publish_release(tiny, keys)
    card = json.loads((package / "privacy-card.json").read_text())
    jsonschema.validate(card, CARD_SCHEMA)
    page = (package / "privacy-card.html").read_text()
    note = (package / "RELEASE_NOTE.md").read_text()
    assert "Order restored" not in page + note
    assert "Each column has its own clusters" not in note
    assert card["k"]["is_k_anonymity"] == (method == "mdav")
    if method == "mdav":
        assert card["claim"]["epsilon"]["total"] is None
        assert card["series"]["epsilon"] is None
        assert "with random noise added" not in page
        assert "1.4 B" not in note
        assert {column["noise"] for column in card["columns"]} == {None}
    else:
        assert card["claim"]["epsilon"]["total"] == "2"
        assert all(column["noise"] for column in card["columns"])
    if method in ("dp", "idp"):
        assert card["claim"]["scope"]["name"] == "table"
        assert card["claim"]["wider"] == []
    if method == "centroid":
        bounds = {part["scope"]: part["bound"] for part in card["claim"]["wider"]}
        assert bounds["table"].startswith("at most ")
    file = tmp_path / "dossier.zip"
    write_dossier(tiny.site, RELEASE, file)
    for path in (package, file):
        assert not failures_of(verify(path, tiny.site.officer or ""))
