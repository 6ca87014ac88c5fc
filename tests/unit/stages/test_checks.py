"""What the counts of a source are told as."""

from __future__ import annotations

import pytest

from release_pipeline.policy import parse_policy
from release_pipeline.privacy.utility import Clamping
from release_pipeline.stages.checks import Facts, notice, notice_clamping, notice_releases

TEXT = """\
policy: people
steward: ana
population: folk
source: {path: people.csv}
person: each-row
releases: once
protect: {method: dp-um, epsilon: 4, k: 20}
columns:
  income: {role: confidential, do: noise, domain: [0, 20000], grid: 1, outside: clamp, why: known}
gates: {min_rows: 1000}
"""


@pytest.mark.parametrize(("beyond", "told"), [(3, "less than 0.01%"), (8, "0.01%"), (20_000, "25.00%")])
def test_what_is_clamped_is_never_told_as_nothing(beyond: int, told: str) -> None:
    """Three records of 80,000 are no 0.00%."""
    facts = Facts(80_000, {"income": {"above": beyond}}, {"income": "number"})
    noticed = notice(facts, parse_policy(TEXT, name="people.yaml"))
    assert noticed == [f"column income: {beyond:,} records outside the declared domain, clamped to it: {told} of all."]


@pytest.mark.parametrize(
    ("missing", "counts", "told"),
    [
        ("fail", {"above": 1_200}, "1,200 records outside the declared domain, clamped to it: 50.00% of all."),
        ("keep, codes: {-8: refused}", {"coded": 1}, "1 record with a code for no value, released without one as declared."),
        ("keep", {"missing": 1_000}, "1,000 records without a value, released without one as declared."),
        ("{fill: 0}", {"missing": 2}, "2 records without a value, filled as declared."),
        (
            "fail",
            {"most_frequent": 1_200},
            "heavy ties; at least half of the records share one value, so many clusters are constant.",
        ),
    ],
)
def test_what_is_noticed_is_told_with_column_and_count(missing: str, counts: dict[str, int], told: str) -> None:
    """Word for word, one record and many."""
    text = TEXT.replace("why: known", f"why: known, missing: {missing}")
    text = text.replace("dp-um, epsilon: 4, k: 20", "dp-cdf, epsilon: 4") if "keep" in missing else text
    policy = parse_policy(text, name="people.yaml")
    assert notice(Facts(2_400, {"income": counts}, {"income": "number"}), policy) == [f"column income: {told}"]


def test_much_clamping_and_records_of_other_releases_are_told() -> None:
    """Of clamping only that it took much."""
    policy = parse_policy(TEXT, name="people.yaml")
    taken = {"income": Clamping(share=0.001, variance=0.2)}
    assert notice_clamping(taken, policy) == [
        "column income: clamping took more than 10% of its variance. Means, spreads and links between columns are those of the "
        "clamped values."
    ]
    own = TEXT.replace("{path: people.csv}", "{path: people.csv, release_column: year}").replace("once", '["1"]')
    policy = parse_policy(own, name="people.yaml")
    assert notice_releases({"undeclared": 0}, policy) == []
    assert notice_releases({"undeclared": 3}, policy) == ["column year: 3 records of releases that the policy does not list."]
