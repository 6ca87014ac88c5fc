"""Simulated releases: what is compared, and that it is what a release would have."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from release_pipeline.policy import Policy, parse_policy
from release_pipeline.stages.ranges import predict, quantile_of_t
from release_pipeline.stages.simulation import Records, Reference, _compare, list_groupings, simulate  # pyright: ignore[reportPrivateUsage]
from release_pipeline.stages.strategies import RECORD

COLUMNS = """
  town:   {role: quasi, do: %(keep)s, values: [north, south], why: needed}
  income: {role: confidential, do: %(noise)s, domain: [0, 1000], grid: 1, outside: clamp, why: known%(codes)s}
  rent:   {role: confidential, do: %(noise)s, domain: [0, 100], grid: 0.5, outside: clamp, why: known}
"""
ROWS = 4_000
SECRET = bytes(range(32))


def policy_of(protect: str, *, synthetic: bool = False, codes: str = "", releases: str = "once", more: str = "") -> Policy:
    """A policy of three columns."""
    does = {"keep": "synthesise", "noise": "synthesise"} if synthetic else {"keep": "keep", "noise": "noise"}
    return parse_policy(
        "policy: people\nsteward: ana\npopulation: folk\nsource: {path: people.csv}\nperson: each-row\n"
        f"releases: {releases}\nprotect: {{{protect}}}\ncolumns:{COLUMNS % {**does, 'codes': codes}}"
        f"gates: {{min_rows: 1000}}\n{more}",
        name="people.yaml",
    )


def make_records(rows: int = ROWS, *, refused: int = 0) -> Records:
    """Rents go with incomes, a fifth of which are 0; towns with neither."""
    random = np.random.default_rng(5)
    income = np.where(random.random(rows) < 0.2, 0, random.integers(1, 1001, rows)).astype(np.float64)
    rent = np.clip(np.round((income / 20 + random.normal(20, 5, rows)) * 2) / 2, 0, 100)
    income[:refused] = 1001.0  # the point of the first reason
    towns = pa.array(["north" if odd else "south" for odd in random.random(rows) < 0.5])
    return Records({"town": towns, "income": pa.array(income), "rent": pa.array(rent)})


def refer(policy: Policy, records: Records) -> Reference:
    """What the records are like."""
    return Reference(records, policy.noise_columns, list_groupings(policy, records))


def test_figures_of_the_records_themselves() -> None:
    """Known answers: the mean, and means by group, by hand."""
    policy, records = policy_of("method: dp-cdf, epsilon: 2"), make_records()
    income = records.columns["income"].to_numpy()
    north = np.array(records.columns["town"].to_pylist()) == "north"
    means = refer(policy, records).means["income"].tolist()
    assert means == pytest.approx([income.mean(), income[north].mean(), income[~north].mean()])


def test_distances_are_those_of_the_definition() -> None:
    """Known answers of a table of six groups' worth: error, mean, worst group and correlation, by hand."""
    policy, records = policy_of("method: laplace, epsilon: 4"), make_records(60)
    reference = refer(policy, records)
    income, rent = (records.columns[name].to_numpy() for name in ("income", "rent"))
    moved = np.clip(income + np.where(np.arange(60) % 2 == 0, 30, 10), 0, 1000)
    own = np.arange(60)[::-1]  # rows are in another order than records
    table = pa.table(
        {
            RECORD: pa.array(own),
            "town": records.columns["town"].take(pa.array(own)),
            "income": pa.array(moved[own]),
            "rent": pa.array(rent[own]),
        }
    )
    columns, correlation = _compare(policy, reference, table)
    assert columns["rent"] == {"error": 0.0, "mean": 0.0, "group-mean": 0.0}
    assert columns["income"]["error"] == pytest.approx(np.mean((moved - income) ** 2) / income.var())
    assert columns["income"]["mean"] == pytest.approx(np.mean(moved - income))
    towns = np.array(records.columns["town"].to_pylist())
    worst = max(abs((moved - income)[towns == town].mean()) for town in ("north", "south"))
    assert columns["income"]["group-mean"] == pytest.approx(worst)
    expected = abs(np.corrcoef(moved, rent)[0, 1] - np.corrcoef(income, rent)[0, 1])
    assert correlation == pytest.approx(expected)


@pytest.mark.parametrize(
    "protect",
    [
        "method: laplace, epsilon: 2",
        "method: dp-um, epsilon: 2, k: 20",
        "method: idp-cbls, epsilon: 2, k: 20",
        "method: dp-cdf, epsilon: 2",
        "method: dp-mdav, epsilon: 2, k: 20, order: corner, scope: centroid",
        "method: mdav, k: 20",
        "method: dp-cdf, epsilon: 2, partitions: 2",
    ],
)
def test_every_method_is_compared_alike(protect: str) -> None:
    """Errors, means and correlations of every draw, and linkage of the first; the same secret, the same figures."""
    policy, records = policy_of(protect), make_records()
    reference = refer(policy, records)
    found = simulate(policy, [reference], secret=SECRET, draws=3)
    for name in ("income", "rent"):
        assert {figure: drawn.shape for figure, drawn in found.columns[name].items()} == dict.fromkeys(
            ("error", "mean", "group-mean"), (3,)
        )
        assert (found.columns[name]["error"] > 0).all()
    assert found.correlation.shape == (3,)
    assert [rung.masked for rung in found.linkage] == [0, 1, 2]
    assert found.linkage[-1].columns == ("income", "rent")
    again = simulate(policy, [reference], secret=SECRET, draws=3)
    assert again.columns["income"]["error"].tolist() == found.columns["income"]["error"].tolist()
    other = simulate(policy, [reference], secret=bytes(32), draws=1)
    assert protect.startswith("method: mdav") or other.columns["income"]["error"][0] != found.columns["income"]["error"][0]


def test_rows_that_are_nobodys_are_compared_by_rank() -> None:
    """No linkage, and an error of distributions."""
    policy = policy_of("method: dp-table, epsilon: 6", synthetic=True)
    found = simulate(policy, [refer(policy, make_records())], secret=SECRET, draws=2)
    assert found.linkage == ()
    assert float(np.median(found.columns["income"]["error"])) < 0.05


def test_the_error_of_plain_noise_is_what_its_law_says() -> None:
    """Laplace noise that nothing moves back: twice the square of its scale over the variance, within 5 deviations of the mean."""
    policy, records = policy_of("method: laplace, epsilon: 4, clamp: no"), make_records()
    found = simulate(policy, [refer(policy, records)], secret=SECRET, draws=20)
    income = records.columns["income"].to_numpy()
    expected = 2 * (1000 / 2) ** 2 / income.var()
    spread = expected * np.sqrt(5 / (ROWS * 20))  # the fourth moment of a Laplace number is 24 scales, its square's variance 20
    assert abs(found.columns["income"]["error"].mean() - expected) < 5 * spread
    assert abs(found.columns["income"]["error"].mean() - 0.9 * expected) > 5 * spread


def test_records_without_a_value_are_left_out() -> None:
    """Errors and means are of those that have one."""
    policy = policy_of("method: dp-cdf, epsilon: 4", codes=", codes: {-8: refused}")
    records = make_records(refused=400)
    mean = refer(policy, records).means["income"][0]
    assert mean == pytest.approx(records.columns["income"].to_numpy()[400:].mean())
    found = simulate(policy, [refer(policy, records)], secret=SECRET, draws=3)
    assert (found.columns["income"]["error"] < 0.2).all()


def test_small_groups_are_not_told() -> None:
    """Of fewer than ten records there is no mean, of the records or of a release."""
    policy, records = policy_of("method: dp-cdf, epsilon: 2"), make_records()
    towns = ["north"] * 9 + ["south"] * (ROWS - 9)
    few = Records({**records.columns, "town": pa.array(towns)})
    assert np.isnan(refer(policy, few).means["income"][1])
    found = simulate(policy, [refer(policy, few)], secret=SECRET, draws=1)
    assert np.isfinite(found.columns["income"]["group-mean"]).all()


def test_what_would_be_refused_is_told() -> None:
    """Suppression of more than the policy allows: no release, no figures."""
    text = policy_of("method: dp-cdf, epsilon: 2")
    policy = text.model_copy(update={"suppress": _suppress()})
    records = make_records(60)
    towns = ["north"] * 3 + ["south"] * 57
    found = simulate(policy, [refer(policy, Records({**records.columns, "town": pa.array(towns)}))], secret=SECRET, draws=2)
    assert found.refusal
    assert not found.columns


def _suppress() -> object:
    from decimal import Decimal

    from release_pipeline.policy.suppression import Suppress

    return Suppress.model_validate({"quasi_groups_below": 5, "at_most": Decimal("0.01")}, context={"canonical": True})


def test_resampled_records_keep_their_groups() -> None:
    """So that the figures of all draws lie side by side."""
    policy, records = policy_of("method: dp-cdf, epsilon: 2"), make_records()
    reference = refer(policy, records)
    second = reference.resample(np.arange(100))
    assert second.groups["town"][1] == reference.groups["town"][1]
    assert len(second.seen["income"]) == 100


def test_ranges_are_prediction_intervals() -> None:
    """Of 99%: a normal sample's next number is in them as often as they say, and one third as wide is not enough."""
    random = np.random.default_rng(11)
    samples: npt.NDArray[np.float64] = np.exp(random.normal(size=(4_000, 9)))
    held = narrow = 0
    for sample in samples:
        low, high = predict(sample[:8], positive=True)
        held += low <= sample[8] <= high
        low, high = predict(sample[:8], positive=True, widened=1 / 3)
        narrow += low <= sample[8] <= high
    assert 0.984 < held / len(samples) < 0.996
    assert narrow / len(samples) < 0.9
    assert quantile_of_t(4) == pytest.approx(4.6041, abs=1e-4)


def test_nothing_left_is_a_refusal_and_no_error() -> None:
    """Of suppression that takes everybody."""
    policy = policy_of("method: dp-cdf, epsilon: 40", more="suppress: {quasi_groups_below: 5000, at_most: 100%}\n")
    found = simulate(policy, [refer(policy, make_records())], secret=SECRET, draws=2)
    assert "every record would have to be suppressed" in found.refusal


def test_a_column_without_any_value_is_looked_at() -> None:
    """Everybody has a reason: its figures are none."""
    policy = policy_of("method: dp-cdf, epsilon: 8", codes=", codes: {-8: refused}, missing: keep")
    records = make_records(refused=ROWS)
    found = simulate(policy, [refer(policy, records)], secret=SECRET, draws=2)
    assert np.isnan(refer(policy, records).means["income"]).all()
    assert found.draws == 2
