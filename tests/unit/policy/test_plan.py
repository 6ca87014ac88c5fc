"""The plan: what the claim says, what it covers, and how large the noise can be before any data are seen."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.policy import Policy, load_policy, parse_policy
from release_pipeline.policy.families.base import Plan
from release_pipeline.policy.families.whole_table import WholeTableFamily
from release_pipeline.policy.options import WholeTableOptions
from release_pipeline.policy.plan import describe_plan, make_plan
from release_pipeline.policy.views import plan_to_json
from release_pipeline.policy.words import describe_claim, describe_scopes, not_covered_words
from release_pipeline.privacy import MaskedColumn, mask_column
from release_pipeline.privacy.figures import show_figure

RAND_HIE = Path(__file__).resolve().parents[3] / "policies/rand-hie.yaml"
INCOME = "income: {role: confidential, do: noise, domain: [0, 100], grid: 1, outside: clamp, why: known}"
RENT = "rent: {role: confidential, do: noise, domain: [-5, 5], grid: 0.1, outside: clamp, why: known}"
SITE = "site: {role: quasi, do: keep, values: [1, 2], why: known}"
METHODS = [("laplace", None), ("dp-um", 5), ("idp-ls", 5), ("idp-cbls", 5)]


def policy_of(
    method: str = "idp-cbls",
    k: int | None = 5,
    *columns: str,
    epsilon: object = 2,
    options: str = "",
    records: int = 1,
    rows: str = "",
) -> Policy:
    """A small policy with these columns (default: income alone)."""
    lines = [
        "policy: people\nsteward: ana\npopulation: people\nsource: {path: people.csv}\nreleases: once",
        f"person: {{column: id, records_per_release: {records}}}",
        f"protect: {{method: {method}, epsilon: {epsilon}{f', k: {k}' if k else ''}{options}}}",
        "columns:\n  id: {role: identifier, do: drop}",
        *(f"  {column}" for column in columns or [INCOME]),
        rows,
    ]
    return parse_policy("\n".join(lines), name="p.yaml")


def one_column(method: str, k: int | None, *, width: int, epsilon: object, scope: str) -> Policy:
    """A policy with one noise column of so many grid steps."""
    column = f"income: {{role: confidential, do: noise, domain: [0, {width}], grid: 1, outside: clamp, why: known}}"
    return policy_of(method, k, column, epsilon=epsilon, options=f", scope: {scope}")


def mask(policy: Policy, values: Sequence[int]) -> MaskedColumn:
    """What these values get under the policy's only noise column."""
    [(name, column)] = policy.noise_columns.items()
    return mask_column(
        np.array(values, dtype=np.int64),
        domain=column.domain,
        grid=column.grid,
        method=policy.protect.method,
        epsilon=policy.column_epsilon[name],
        k=policy.protect.k,
        scope=policy.protect.scope,
        secret=bytes(32),
    )


def largest_noise(masked: MaskedColumn) -> float:
    """The largest mean |Z| / size over the clusters, E|Z| = 1 / sinh(1/t), in grid steps; scale 0 has none."""
    noisy = masked.scale > 0
    return float(np.max(1 / np.sinh(1 / masked.scale[noisy]) / masked.size[noisy], initial=0.0))


def planned_noise(policy: Policy, rows: int) -> float:
    [column] = make_plan(policy, rows=rows).columns
    assert column.noise is not None
    return column.noise


def test_the_claim_of_the_demo() -> None:
    """The sentence of the specification, word for word."""
    claim = describe_claim(load_policy(RAND_HIE))
    assert claim == "epsilon 2 in all (0.5 for each of 4 columns), iDP, for the column lists; whole table: not bounded"


@pytest.mark.parametrize(
    ("policy", "claim"),
    [
        (policy_of(), "epsilon 2 in all (all for the column income), iDP, for the column lists; whole table: not bounded"),
        (
            policy_of("dp-um", 5, INCOME, RENT, epsilon="0.1"),
            "epsilon 0.1 in all (0.05 for each of 2 columns), DP, for the column lists; whole table: not bounded",
        ),
        (
            policy_of("idp-ls", 5, INCOME, RENT, options=", weights: {rent: 3}"),
            "epsilon 2 in all (income 0.5, rent 1.5), iDP, for the column lists; whole table: not bounded",
        ),
        (
            policy_of(options=", scope: centroid"),
            "epsilon 2 in all (all for the column income), iDP, for each centroid on its own; whole table: not bounded",
        ),
        (
            policy_of("laplace", None),
            "epsilon 2 in all (all for the column income), DP, for the column lists; whole table: covered with the same epsilon",
        ),
        (
            policy_of("laplace", None, INCOME, RENT, SITE, records=3),
            "epsilon 6 in all (1 for each of 2 columns; times 3 records per person), DP, for the column lists; "
            "whole table: not bounded",
        ),
        (
            policy_of("dp-um", 5, INCOME, RENT, epsilon="0.000000003", records=10000),
            "epsilon 0.00003 in all (income 0.000000002, rent 0.000000001; times 10000 records per person), DP, "
            "for the column lists; whole table: not bounded",
        ),
    ],
    ids=["one-column", "even", "weights", "centroid", "laplace", "records", "odd-nano"],
)
def test_a_claim_says_what_its_epsilon_is_of(policy: Policy, claim: str) -> None:
    """Total, split, definition and scope, and what is known of the whole table: never a number alone."""
    assert describe_claim(policy) == claim


@pytest.mark.parametrize(("method", "k"), METHODS)
@pytest.mark.parametrize("kept", [(), (SITE,)], ids=["all-noise", "one-kept"])
def test_only_laplace_without_kept_columns_covers_the_table(method: str, k: int | None, kept: tuple[str, ...]) -> None:
    """Clusters show which records were ranked together, and a kept column is not protected: the table is not bounded."""
    policy = policy_of(method, k, INCOME, RENT, *kept)
    covered = method == "laplace" and not kept
    assert policy.covers_table == covered
    table = dict(describe_scopes(make_plan(policy)))["table"]
    assert table == ("covered with the same epsilon" if covered else "not bounded")
    assert any(line.startswith("not covered ") for line in describe_plan(make_plan(policy, rows=100))) != covered
    words = " ".join(not_covered_words(policy))
    assert ("ranked together" in words) == (method != "laplace")
    assert ("in one row with which masked values is not covered" in words) == (method == "laplace" and not covered)


@pytest.mark.parametrize("epsilon", ["0.1", "0.7", "2", "30", "1000"])
@pytest.mark.parametrize(("method", "k"), [("laplace", None), ("dp-um", 1), ("dp-um", 7)])
@pytest.mark.parametrize(("column", "width", "step"), [(INCOME, 100, 1.0), (RENT, 100, 0.1)], ids=["whole", "tenths"])
def test_dp_noise_is_the_mean_of_the_discrete_laplace(
    method: str, k: int | None, epsilon: str, column: str, width: int, step: float
) -> None:
    """Mean |Z| summed from the law itself, for the scale ceil(W / eps), in the column's unit and over k records."""
    policy = policy_of(method, k, column, epsilon=epsilon)
    t = math.ceil(round(width / float(epsilon), 9))
    weights = [math.exp(-z / t) for z in range(1, 60 * t)]
    mean = 2 * math.fsum(z * weight for z, weight in enumerate(weights, start=1)) / (1 + 2 * math.fsum(weights))
    [planned] = make_plan(policy).columns
    assert planned.noise == pytest.approx(mean * step / (k or 1), rel=1e-9)
    assert planned.share == pytest.approx(mean / (k or 1) / width, rel=1e-9)
    assert not planned.worst_case
    assert set(mask(policy, range(20)).scale) == {t}


IDP = [("idp-ls", 1), ("idp-ls", 2), ("idp-ls", 5), ("idp-cbls", 3), ("idp-cbls", 4), ("idp-cbls", 6)]


@st.composite
def small_tables(draw: st.DrawFn) -> tuple[Policy, list[int]]:
    """A policy with one column, and at least two clusters of values on its grid, many of them at the ends and equal."""
    method, k = draw(st.sampled_from(IDP))
    width = draw(st.sampled_from([1, 2, 7, 1000, 10**6]))
    policy = one_column(
        method,
        k,
        width=width,
        epsilon=draw(st.sampled_from(["0.3", "1", "2.7", "40"])),
        scope=draw(st.sampled_from(["centroid", "column"])),
    )
    value = st.one_of(st.sampled_from([0, width, width // 2]), st.integers(0, width))
    return policy, draw(st.lists(value, min_size=2 * k, max_size=8 * k))


@pytest.mark.slow
@given(small_tables())
def test_no_small_table_gets_more_noise_than_planned(table: tuple[Policy, list[int]]) -> None:
    """The worst case over all data is an upper bound: every cluster's mean noise stays at or under it."""
    policy, values = table
    assert largest_noise(mask(policy, values)) <= planned_noise(policy, len(values)) * (1 + 1e-12)


def worst_table(method: str, k: int, clusters: int, width: int, share: float) -> list[int]:
    """Clusters whose moves are as large as can be: one has `share` of the domain's width, the others the rest evenly.

    idp-cbls: half of a cluster at its lower end and half at its upper end. idp-ls: each cluster starts where the last one ended
    and jumps up at once, so that both its ups and its downs are as large as its part of the domain.
    """
    parts = [share] + [(1 - share) / max(clusters - 1, 1)] * (clusters - 1)
    ends = [round(width * sum(parts[:j])) for j in range(clusters)] + [width]
    table = list[int]()
    for lo, hi in pairwise(ends):
        low = 2 if method == "idp-cbls" and k > 3 else k // 2 + k % 2
        table += [lo] * low + [hi] * (k - low)
    return table


@pytest.mark.parametrize(("method", "k"), IDP)
@pytest.mark.parametrize("scope", ["centroid", "column"])
@pytest.mark.parametrize(("width", "epsilon"), [(1, "3"), (10, "40"), (10**9, "1"), (10**9, "0.3")])
def test_adversarial_tables_stay_at_or_under_the_plan(method: str, k: int, scope: str, width: int, epsilon: str) -> None:
    """Tables made to need much noise never get more than was planned, also where a scale is only a grid step or two."""
    policy = one_column(method, k, width=width, epsilon=epsilon, scope=scope)
    for clusters in (1, 2, 10, 200):
        for share in (0.0, 0.1, 1 / 3, 0.5, 1.0):
            values = worst_table(method, k, clusters, width, share)
            found, planned = largest_noise(mask(policy, values)), planned_noise(policy, len(values))
            assert found <= planned * (1 + 1e-12), f"{clusters} clusters, share {share:g}: {found} above {planned}"


@pytest.mark.parametrize(
    ("method", "scope", "reached"), [("idp-cbls", "centroid", 0.99), ("idp-cbls", "column", 0.95), ("idp-ls", "centroid", 0.99)]
)
@pytest.mark.parametrize("clusters", [2, 10, 200])
def test_the_planned_worst_case_is_nearly_reached(method: str, scope: str, reached: float, clusters: int) -> None:
    """The bound is no guess on the safe side: some table comes close to it."""
    policy = one_column(method, 4, width=10**9, epsilon=1, scope=scope)
    tables = (worst_table(method, 4, clusters, 10**9, share) for share in np.linspace(0, 1, 101))
    found = max((largest_noise(mask(policy, values)), len(values)) for values in tables)
    assert reached <= found[0] / planned_noise(policy, found[1]) <= 1


@pytest.mark.slow
@given(small_tables())
def test_a_centroid_claim_never_costs_a_list_more_than_it_says(table: tuple[Policy, list[int]]) -> None:
    """Scope centroid: the joint loss of the list stays under the public bound that the plan names."""
    policy, values = table
    if policy.protect.scope == "column":
        return
    words = " ".join(" ".join(describe_plan(make_plan(policy, rows=len(values)))).split())
    bound = float(words.partition("column lists: at most ")[2].split()[0])
    assert mask(policy, values).loss["column"] <= bound


@pytest.mark.parametrize(("method", "k"), [("laplace", None), ("dp-um", 5)])
def test_records_per_person_multiply_the_claim_and_not_the_noise(method: str, k: int | None) -> None:
    """Three records of one person cost three times epsilon; each column still spends its own once."""
    one, three = policy_of(method, k), policy_of(method, k, records=3)
    assert plan_to_json(make_plan(one))["epsilon"] == "2"
    assert plan_to_json(make_plan(three))["epsilon"] == "6"
    assert "times 3 records per person" in describe_claim(three)
    assert make_plan(one).columns == make_plan(three).columns
    plan = " ".join(" ".join(describe_plan(make_plan(three))).split())
    assert "at most 3 records of a person in a release; how many records a person has is not protected" in plan


def test_the_largest_claim_can_be_told() -> None:
    """An epsilon that is allowed, times the records that are allowed, is told and not an error."""
    assert describe_claim(policy_of("laplace", None, epsilon=1000, records=10000)).startswith("epsilon 10000000 in all")


@pytest.mark.parametrize(
    ("method", "k", "rows", "words"),
    [
        ("dp-um", 5, 100, "column lists: the same epsilon"),
        ("idp-ls", 5, 100, "column lists: at most 3.386294362 in all (1 + ln 2 times epsilon)"),
        ("idp-cbls", 5, 100, "column lists: at most 40 in all for 100 rows (20 clusters times epsilon)"),
        ("idp-cbls", 5, None, "column lists: at most the number of clusters (rows / k) times epsilon"),
        ("idp-cbls", 3, 6_000_000, "column lists: at most 4000000 in all for 6,000,000 rows (2000000 clusters times epsilon)"),
    ],
)
def test_a_centroid_claim_names_the_bound_of_the_list(method: str, k: int, rows: int | None, words: str) -> None:
    """The wider scope is named with what is known of it from declared facts, however many rows there are."""
    plan = make_plan(policy_of(method, k, options=", scope: centroid"), rows=rows)
    assert words in " ".join(" ".join(describe_plan(plan)).split())


@pytest.mark.parametrize("rows", [1, 9, 10, 10**12])
@pytest.mark.parametrize("scope", ["centroid", "column"])
def test_any_number_of_rows_can_be_planned(rows: int, scope: str) -> None:
    """--rows may name few or many: a plan comes out."""
    plan = make_plan(policy_of(options=f", scope: {scope}"), rows=rows)
    assert list(describe_plan(plan))
    assert plan_to_json(plan)["rows"] == rows


def test_rows_default_to_the_least_that_are_let_through() -> None:
    """min_rows is planned for when no number is named; without either, a worst case that needs it is not named."""
    least = policy_of(rows="gates: {min_rows: 100}")
    assert (make_plan(least).rows, make_plan(least).clusters) == (100, 20)
    assert (make_plan(least, rows=50).rows, make_plan(least, rows=50).clusters) == (50, 10)
    unknown = make_plan(policy_of())
    assert (unknown.rows, unknown.clusters, unknown.columns[0].noise, unknown.columns[0].share) == (None, None, None, None)
    assert make_plan(policy_of(options=", scope: centroid")).columns[0].noise is not None


def test_more_rows_never_lower_the_worst_case() -> None:
    """With more clusters the column calibration can give one of them more."""
    noise = [planned_noise(policy_of(), rows) for rows in (10, 50, 100, 1000, 10_000)]
    assert noise == sorted(noise)
    assert len(set(noise)) == len(noise)


def test_plan_as_json() -> None:
    """What a script reads: exact epsilon as text, noise as a number with what kind of figure it is."""
    policy = policy_of("dp-um", 5, INCOME, SITE, epsilon="0.3")
    plan = plan_to_json(make_plan(policy, rows=10))
    [column] = plan.pop("columns")
    sentences, unsaid = plan.pop("not_covered"), plan.pop("unsaid")
    assert [words.partition(":")[0] for words in unsaid] == [
        "about is missing",
        "2 released columns without a label (income, site)",
    ]
    assert plan == {
        "policy": "people",
        "steward": "ana",
        "population": "people",
        "hash": policy.canonical_hash(),
        "method": "dp-um",
        "k": 5,
        "definition": "dp",
        "scope": "column",
        "epsilon": "0.3",
        "claim": describe_claim(policy),
        "records_per_person": 1,
        "privacy_unit": "person",
        "wider": {"column": {"bounded": True, "epsilon": "0.3"}, "table": {"bounded": False, "epsilon": None}},
        "rows": 10,
        "amplification": None,
        "kept": ["site"],
        "generalised": [],
    }
    assert sentences == list(not_covered_words(policy))
    assert (column["name"], column["epsilon"], column["noise_is_worst_case"]) == ("income", "0.3", False)
    assert column["noise"] == pytest.approx(1 / math.sinh(1 / 334) / 5)


def lines_of(plan: Plan) -> dict[str, Any]:
    """The plan's paragraphs by their label."""
    paragraphs, label = dict[str, str](), ""
    for line in describe_plan(plan):
        label = line[:12].strip() or label
        paragraphs[label] = f"{paragraphs.get(label, '')} {line[12:].strip()}".strip()
    return paragraphs


def test_plan_in_words() -> None:
    """The demo's plan names source, person, method, definition, gates and review in a sentence each."""
    content = lines_of(make_plan(load_policy(RAND_HIE)))
    assert content["policy"] == "rand-hie (population rand-hie-participants, steward ana)"
    assert content["source"] == "data/randhie.csv, 5 releases: 1, 2, 3, 4, 5"
    assert content["person"] == "column zper, at most 1 record of a person in a release"
    assert content["method"].endswith("noise by cluster sensitivity (IDP24 Prop. 9), k = 25")
    assert content["definition"].endswith("neighbours differ in one record; groups are not covered")
    assert content["suppress"] == "groups of kept quasi-identifiers below 5, at most 5% of rows"
    assert content["gates"].startswith("at least 1,000 rows; expected error of income, mhi at most 0.2")
    assert content["review"] == "2 reviewers, then parquet and csv"


def series(releases: str, gates: str = "{min_rows: 1000}") -> dict[str, Any]:
    """The paragraphs of the demo's plan with other releases and gates."""
    text = RAND_HIE.read_text()
    for part, value in (("releases", releases), ("gates", gates)):
        text, found = re.subn(rf"^{part}: .*$", f"{part}: {value}", text, flags=re.MULTILINE)
        assert found == 1, part
    return lines_of(make_plan(parse_policy(text, name="p.yaml")))


@pytest.mark.parametrize(
    ("releases", "words"),
    [
        ('["1"]', "1 release: 1"),
        ('["1", "2"]', "2 releases: 1, 2"),
        (
            '{list: ["1", "2"], cron: "0 6 1 * *"}',
            "2 releases: 1, 2, opened by the timetable '0 6 1 * *' (UTC)",
        ),
        ('{list: ["1"], cron: "30  5 * * mon"}', "1 release: 1, opened by the timetable '30 5 * * mon' (UTC)"),
        (
            '{every: month, cron: "0 6 1 * *"}',
            "a release for every month that has ended, opened by the timetable '0 6 1 * *' (UTC)",
        ),
        (
            '{every: quarter, first: 2026-Q2, cron: "0 6 2 1,4,7,10 *"}',
            "a release for every quarter that has ended from 2026-Q2 on, opened by the timetable '0 6 2 1,4,7,10 *' (UTC)",
        ),
    ],
)
def test_plan_says_which_releases_there_are_and_who_opens_them(releases: str, words: str) -> None:
    """By name, or by the period of which each is; and the timetable with its zone, where there is one."""
    assert series(releases)["source"] == f"data/randhie.csv, {words}"


@pytest.mark.parametrize(
    ("releases", "gates", "least"),
    [
        ('["1", "2"]', "{}", 10),
        ('{every: year, cron: "0 6 1 1 *"}', "{}", 10),
        ('{list: ["1", "2"], cron: "0 6 1 1 *"}', "{differencing_below: 3}", 3),
        ('["1", "2"]', "{differencing_below: 0}", None),
        ('["1", "2"]', "{differencing_below: 1}", None),
        ('["1"]', "{}", None),
    ],
)
def test_plan_names_the_gate_between_two_releases_where_it_is(releases: str, gates: str, least: int | None) -> None:
    """The default too, which no policy names; and not where it lets everything through or there is nothing to compare."""
    clamped = "at most 1% of records clamped in income, mdvis, outpdol"
    words = f"between two releases nobody joins, or at least {least} people do, and likewise leaving"
    assert series(releases, gates)["gates"] == (clamped if least is None else f"{clamped}; {words}")


def test_plan_names_every_column_and_what_is_done_to_it() -> None:
    """Identifiers, kept and noisy columns each have a line; dropped ones are counted."""
    lines = list(describe_plan(make_plan(policy_of("idp-cbls", 5, INCOME, SITE, rows="drop: [note]"), rows=100)))
    rows = {line.split()[0]: line for line in lines if line.split()[:1] in (["id"], ["site"], ["income"])}
    assert "never released" in rows["id"]
    assert "released as it is: one of 2 declared values" in rows["site"]
    assert "epsilon 2; noise at most" in rows["income"]
    assert "domain 0 to 100 by 1, clamp outside" in rows["income"]
    assert any("1 further column, by name" in line for line in lines)


@pytest.mark.parametrize(
    ("method", "k", "noise"),
    [("dp-um", 5, "noise alone, before order is restored"), ("laplace", None, "noise alone")],
)
def test_plan_says_where_values_may_lie(method: str, k: int | None, noise: str) -> None:
    """Only where they may leave the domain; the claim is the same in every word, and scripts are told too."""
    free, inside = (policy_of(method, k, options=options) for options in (", clamp: no", ""))
    lines = list(describe_plan(make_plan(free, rows=100)))
    assert any(line.startswith("clamp") for line in lines)
    assert "and may lie outside their domain; the claim is the same" in " ".join(" ".join(lines).split())
    assert next(line for line in lines if line.startswith("noise: ")).endswith(noise)
    plain = list(describe_plan(make_plan(inside, rows=100)))
    assert not any(line.startswith("clamp") for line in plain)
    assert next(line for line in plain if line.startswith("noise: ")).endswith("before order and domain are restored")
    assert describe_claim(free) == describe_claim(inside)
    content, other = (plan_to_json(make_plan(policy, rows=100)) for policy in (free, inside))
    assert (content["clamp"], "clamp" in other) == ("no", False)


CLASSES = """
policy: classes
steward: ana
population: people
source: {{path: people.csv}}
person: each-row
releases: once
protect: {{method: k-epsilon, grouping: ola, k: 4, epsilon: 1.5{more}}}
columns:
  town: {{role: quasi, do: generalise, hierarchy: {{groups: [here, there]}}}}
  pay: {{role: quasi, do: noise, domain: [0, 9], grid: 1, outside: clamp, missing: fail, why: test}}
  illness: {{role: confidential, do: keep, values: [flu, none], why: test}}
suppress: {{{confidence}at_most: 7%}}
gates: {{min_rows: 100}}
review: {{reviewers: 1}}
"""


@pytest.mark.parametrize(
    ("confidence", "said"),
    [
        ("confidence: 99%, ", "covered with 2 times epsilon, 3, for two records of a class: whether"),
        ("", None),
    ],
)
def test_check_says_what_being_kept_costs(confidence: str, said: str | None) -> None:
    """Where records are dropped for standing out; elsewhere there is nothing to say."""
    policy = parse_policy(CLASSES.format(more="", confidence=confidence), name="classes.yaml")
    content = " ".join(" ".join(describe_plan(make_plan(policy))).split())
    assert (said in content) if said else "times epsilon" not in content


def test_check_says_what_a_class_is_in_parts() -> None:
    policy = parse_policy(CLASSES.format(more=", partitions: 2", confidence=""), name="classes.yaml")
    content = " ".join(" ".join(describe_plan(make_plan(policy))).split())
    assert "2 random parts of 50 to 50 rows by the number of the row, each grouped on its own" in content
    assert "a class is all records with the same labels, of whatever parts" in content
    assert "masked on its own" not in content


def test_the_plan_says_what_dp_table_would_give() -> None:
    """Where columns are kept beside masked ones, which no such claim covers: as many records as dp-table itself asks for."""
    [said] = [words for label, words in _paragraphs_of(policy_of("dp-um", 5, SITE, INCOME, RENT)) if label == "instead"]
    columns = [
        column.replace("do: noise", "do: synthesise").replace("do: keep", "do: synthesise") for column in (SITE, INCOME, RENT)
    ]
    itself = policy_of("dp-table", None, *columns)
    [needed] = re.findall(r"about ([\d,]+) records", said)
    assert any(f"fewer than about {needed} records is refused" in words for _, words in _paragraphs_of(itself))
    assert "epsilon 2 of eps-DP" in said
    others = (policy_of("dp-um", 5), itself, policy_of("idp-cbls", 5, INCOME, RENT))
    assert not [label for policy in others for label, _ in _paragraphs_of(policy) if label == "instead"]
    concentrated = policy_of("dp-um", 5, SITE, INCOME, options=", definition: zcdp, delta: 0.000001")
    assert any("of zCDP" in words for label, words in _paragraphs_of(concentrated) if label == "instead")


def test_the_plan_says_how_exactly_dp_table_will_know_means_of_groups() -> None:
    """The noise of a cell times the root of the column's groups, over the people."""
    columns = [re.sub("do: (noise|keep)", "do: synthesise", column) for column in (SITE, INCOME, RENT)]
    policy = policy_of("dp-table", None, *columns, epsilon=4, options=", definition: zcdp, delta: 0.000001")
    text = lines_of(make_plan(policy, rows=5_000))["group means"]
    design = WholeTableFamily(WholeTableOptions).declare(policy, 5_000)
    off = float(design.pairs[0, 1].spread) * math.sqrt(design.groups)
    assert f"by about {show_figure(off / 50)} (50 people), {show_figure(off / 500)} (500 people), " in text


def test_the_plan_says_nothing_of_means_where_there_are_categories_only() -> None:
    """They have none."""
    columns = [SITE.replace("do: keep", "do: synthesise").replace("site", name) for name in ("site", "other")]
    plan = make_plan(policy_of("dp-table", None, *columns), rows=5_000)
    assert "group means" not in lines_of(plan)


def _paragraphs_of(policy: Policy) -> list[tuple[str, str]]:
    lines = describe_plan(make_plan(policy), width=10_000)
    return [(label, words) for label, _, words in (line.partition(" ") for line in lines)]
