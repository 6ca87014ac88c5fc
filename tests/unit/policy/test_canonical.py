"""The canonical form: its hashes are for ever, and a policy is read from it as it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from release_pipeline.claims.suite import list_suite
from release_pipeline.errors import InvalidArgument, PolicyInvalid
from release_pipeline.policy import Policy, load_policy, parse_policy
from release_pipeline.policy.canonical import read_canonical
from tests.unit.policy.told import without_words

SHIPPED = sorted((Path(__file__).parents[3] / "policies").glob("*.yaml"))
HEAD = """\
policy: people
steward: ana
population: folk
"""
ONCE = f"""\
{HEAD}
source: {{path: people.csv}}
person: each-row
releases: once
"""
INCOME = "  income: {role: confidential, do: noise, domain: [0, 1000.50], grid: 0.5, outside: fail, why: known}\n"
RENT = "  rent: {role: quasi, do: noise, domain: [-1e2, 100], grid: 1, outside: clamp, missing: {fill: 0}, why: known%s}\n"
POLICIES = {
    "the least": f"{ONCE}protect: {{method: laplace, epsilon: 1}}\ncolumns:\n{INCOME}",
    "the same, spelled out": (
        f"# a comment\n{ONCE}columns:\n{INCOME}"
        "protect: {epsilon: 1.0, method: laplace, scope: column, clamp: yes, weights: {}}\n"
        "gates: {}\naudit: {}\nreview: {reviewers: 2}\npublish: {formats: [parquet, csv]}\ndrop: []\n"
    ),
    "column by column": f"""{HEAD}
source: {{postgres: "postgresql://${{HOST}}/x", table: people, release_column: year}}
person: {{column: person}}
releases: {{every: month, first: 2026-01, cron: "0 6 1 * *"}}
protect: {{method: idp-cbls, epsilon: 0.3, k: 5, scope: centroid, consistency: none, clamp: no, partitions: 2,
  weights: {{rent: 0.50}}}}
columns:
  person: {{role: identifier, do: drop}}
  job: {{role: confidential, do: keep, values: [a, b], why: needed}}
  town: {{role: quasi, do: keep, values: [north, 2, 3.50, true], missing: {{category: north}}, why: needed}}
{INCOME}{RENT % ", atoms: [5, 0]"}drop: [name, "Caf\\u0065\\u0301"]
suppress: {{quasi_groups_below: 5, at_most: 2.50%}}
gates: {{min_rows: 20, differencing_below: 4, expected_error: {{income: 0.10}}, atom_share: {{rent: 0.2}}, ks: {{rent: 0.3}},
  anonymity_k: 2, l_diversity: {{job: 2}}, t_closeness: {{income: 0.50}}, marketer_risk: 10%, clamped_at_most: {{rent: 2%}}}}
audit: {{predict: {{income: {{above: 500}}, town: {{equals: 2}}}}}}
review: {{reviewers: 3}}
publish: {{formats: [csv], not_before: "2027-01-15T10:30+01:00"}}
retain: 90 days
""",
    "a part a release": f"""{HEAD}
source: {{path: people.csv}}
person: {{column: person, records_per_release: 1}}
releases: {{list: [a, b], cron: "0 6 1 * *"}}
protect: {{method: laplace, epsilon: 1, partitions: 2, publish_parts: one per release, amplification: sampling}}
columns:
  person: {{role: identifier, do: drop}}
{RENT % ""}gates: {{min_rows: 20, clamped_at_most: 5%}}
""",
    "together": (
        f"{ONCE}protect: {{method: dp-mdav, epsilon: 1, k: 5, order: hilbert, statistic: trimmed, scope: centroid, "
        f"weights: {{rent: 2}}}}\ncolumns:\n{RENT % ', transform: log'}{INCOME}".replace("[-1e2, 100]", "[0, 100]")
    ),
    "alike": f"{ONCE}protect: {{method: mdav, k: 5, blocks: kd}}\ncolumns:\n{RENT % ''}{INCOME}",
}
TOWN = "  town: {role: quasi, do: generalise, hierarchy: {csv: towns.csv}, missing: {category: north}}\n"
SEX = "  sex: {role: quasi, do: generalise, hierarchy: {groups: [f, m]}}\n"
CLASSES = f"""{ONCE}
protect: {{method: k-epsilon, grouping: ola, metric: entropy, k: 3, l: 2, epsilon: 1}}
columns:
{TOWN}{SEX}\
  age: {{role: quasi, do: generalise, hierarchy: {{intervals: [5, [20, 50]], domain: [0, 99], grid: 1, outside: clamp}},
    why: known}}
  zip: {{role: quasi, do: generalise, hierarchy: {{prefixes: [5, 3], of: digits}}}}
  born: {{role: quasi, do: generalise, hierarchy: {{dates: [day, year], first: 1900-01-01, last: 2030-12-31}}}}
  job: {{role: confidential, do: keep, values: [a, b], why: needed}}
{INCOME}suppress: {{grouping_at_most: 1%, confidence: 99%, confidence_at_most: 2%, at_most: 5%}}
gates: {{relative_error: {{income: 3}}}}
"""
CUT = f"""{ONCE}
protect: {{method: k-epsilon, grouping: mondrian, k: 3, epsilon: 1, partitions: 3}}
columns:
{TOWN}{SEX}\
  age: {{role: quasi, do: generalise, hierarchy: {{domain: [0, 99], grid: 1, outside: clamp}}, why: known}}
  id: {{role: quasi, do: drop}}
{INCOME}suppress: {{confidence: 99%, confidence_at_most: 2%, at_most: 5%}}
"""
SEVERAL = f"""{HEAD}
source: {{path: people.duckdb, table: people, release_column: wave}}
person: {{column: person, records_per_release: 3}}
releases: {{list: [a, b], cron: "0 6 1 * *"}}
protect: {{method: dp-um, epsilon: 1, k: 5, clamp: no}}
columns:
  person: {{role: identifier, do: drop}}
{INCOME}"""
POLICIES |= {
    "classes": CLASSES,
    "classes in another order": CLASSES.replace(TOWN + SEX, SEX + TOWN),
    "classes that are cut": CUT,
    "several records of one person": SEVERAL,
}


def read(text: str) -> Policy:
    """The policy, with the one hierarchy that lies in a file."""
    return parse_policy(text, name="people.yaml", read={"towns.csv": "level0,level1\nnorth,*\nsouth,*\n"}.__getitem__)


def list_policies() -> dict[str, Policy]:
    """Policies with every option, and those that are shipped."""
    return {name: read(text) for name, text in POLICIES.items()} | {file.stem: load_policy(file) for file in SHIPPED}


# Officers have approved policies by such hashes: none of them may ever change.
GOLDEN = {
    "the least": "f9ebc8b3dd87d4864b9fcccdf29a4261e85a73bccd55166c9e4cfe59e4f283e8",
    "the same, spelled out": "f9ebc8b3dd87d4864b9fcccdf29a4261e85a73bccd55166c9e4cfe59e4f283e8",
    "column by column": "395f52b4f09e54d7f3dd56c2f21a52780ae2f931ad39002988f4f17c0eee645a",
    "a part a release": "1ce8500605b00dc6cfc8dfecbfc1f01c87c631d7caf633e953d1d8ebf7d0f558",
    "together": "bf88d2bcb3bbb82ea1087b99a46024c3d0dfd07a8d4929d8018919d2ea0cc968",
    "alike": "0eec9ed16786ba6955821fb3a44e5ae813e0e529c78faa55e3512f85c969a450",
    "classes": "c6671062630de1b9adea758a70648b9733aecdac0f4345fe3ac942f69e158f70",
    "classes in another order": "fab2d4a2f819e27a489c7a2e1573739570699db1e42e6e317a8aad2ff29be23d",
    "classes that are cut": "58c671f953063612d483544784835ec841237c41bdd5e047b0e040c04bea2b2f",
    "several records of one person": "c201c5e481238f855b168ebb7dca7b81063415df316cde4f6655bf6c794d1506",
    "adult-k-epsilon": "991c927f5e18b292179592ebd5f9de2222b0932a95aa1608b98f6340163df799",
    "adult-table": "991517d6f77b28c2a87012a942c75659e002b5c5dbf94475159ef5ebdef56eb4",
    "census-once": "3ab5591af3be5a8630940d78d7a768658663e1552e0dfd3019f819bdc487c219",
    "census-together": "e778a852856806d3d053a681e4512b3dfaecd4f60e3cce723475101ed46f23d2",
    "rand-hie-dp": "4be1548468e0b4f52ef0dcfb1efc2bee2dbb5d0b049415c471e46797f451e895",
    "rand-hie-table": "10c7cbc31060a9e2674efd77aa480bd9bffdfe5be8d30ce83e3c5b53a0e83b26",
    "rand-hie": "0715eb6f0a626265c16c04c4398d779797b5acbcd4519b9b2ab05a0b20446742",
}
FORM = (
    '{"audit":{"predict":{"income":{"above":"500","equals":null},"town":{"above":null,"equals":2}}},"columns":{"income":{"do":"noise",'
    '"domain":["0","1000.5"],"grid":"0.5","missing":"fail","outside":"fail","role":"confidential","why":"known"},"job":{"do":"keep",'
    '"missing":"fail","role":"confidential","values":["a","b"],"why":"needed"},"person":{"do":"drop","role":"identifier"},"rent":'
    '{"atoms":["0","5"],"do":"noise","domain":["-100","100"],"grid":"1","missing":{"fill":"0"},"outside":"clamp","role":"quasi",'
    '"why":"known"},"town":{"do":"keep","missing":{"category":"north"},"role":"quasi","values":["north",2,"3.5","true"],"why":'
    '"needed"}},"drop":["name","Café"],"gates":{"anonymity_k":2,"atom_share":{"rent":"0.2"},"clamped_at_most":{"rent":"0.02"},'
    '"differencing_below":4,"expected_error":{"income":"0.1"},"ks":{"rent":"0.3"},"l_diversity":{"job":2},"marketer_risk":"0.1",'
    '"min_rows":20,"t_closeness":{"income":"0.5"}},"person":{"column":"person","records_per_release":1},"policy":"people",'
    '"population":"folk","protect":{"clamp":"no","consistency":"none","epsilon":"0.3","k":5,"method":"idp-cbls","partitions":2,'
    '"scope":"centroid","weights":{"rent":"0.5"}},"publish":{"formats":["csv"],"not_before":"2027-01-15T09:30:00Z"},"releases":'
    '{"cron":"0 6 1 * *","every":"month","first":"2026-01","list":null},"retain":90,"review":{"reviewers":3},"source":{'
    '"path":null,"postgres":"postgresql://${HOST}/x","release_column":"year","table":"people"},"steward":"ana","suppress":{"at_most":"0.025",'
    '"quasi_groups_below":5}}'
)


def test_hashes_are_for_ever() -> None:
    """Every option, and what is left out while it has its default (docs/formats.md); those that are shipped without what they
    say of data and columns, which earlier versions did not know."""
    found = {name: (without_words(policy) if name not in POLICIES else policy) for name, policy in list_policies().items()}
    assert {name: policy.canonical_hash() for name, policy in found.items()} == GOLDEN


def test_form_in_full() -> None:
    """Numbers as texts, percentages as shares, times in UTC, names in NFC, keys in order."""
    assert read(POLICIES["column by column"]).canonical_json() == FORM


ALL = list_policies() | {f"suite: {name}": policy for name, policy in list_suite().items()}


@pytest.mark.parametrize("policy", ALL.values(), ids=ALL)
def test_a_policy_is_read_back_from_its_form(policy: Policy) -> None:
    """All of it, with its columns in their order, and with the same form."""
    found = read_canonical(json.loads(policy.canonical_json()), list(policy.columns))
    assert found == policy
    assert list(found.columns) == list(policy.columns)
    assert found.canonical_json() == policy.canonical_json()


def test_columns_that_nobody_knows_the_order_of_come_last_by_name() -> None:
    """An order can be lost; a policy cannot."""
    found = read_canonical(json.loads(FORM), ["town", "gone"])
    assert list(found.columns) == ["town", "income", "job", "person", "rent"]


def _without_rules(form: dict[str, Any]) -> None:
    form["protect"] |= {"epsilon": "0.3", "k": 1}  # which the rules of idp-cbls refuse


def _unknown(form: dict[str, Any]) -> None:
    form["protect"]["colour"] = "secret-cell"


def _no_number(form: dict[str, Any]) -> None:
    form["protect"]["epsilon"] = "secret-cell"


def _no_columns(form: dict[str, Any]) -> None:
    del form["columns"]


def test_no_rule_is_asked() -> None:
    """What a rule would refuse today was met when it was noted."""
    form = json.loads(FORM)
    _without_rules(form)
    assert read_canonical(form, []).protect.k == 1


@pytest.mark.parametrize("spoil", [_unknown, _no_number, _no_columns])
def test_what_is_no_form_is_refused_without_quoting_it(spoil: Any) -> None:
    """A later version may know more; this one does not guess."""
    form = json.loads(FORM)
    spoil(form)
    with pytest.raises(InvalidArgument, match="not the canonical form") as refused:
        read_canonical(form, [])
    assert "secret-cell" not in str(refused.value)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("epsilon: 1", 'epsilon: "1"'), ("grid: 0.5", 'grid: "0.5"'), ("releases: once", "releases: once\nretain: 9")],
)
def test_files_are_read_as_strictly_as_before(right: str, wrong: str) -> None:
    """Only the canonical form has numbers as texts, and days as numbers."""
    with pytest.raises(PolicyInvalid, match="1 error"):
        read(POLICIES["the least"].replace(right, wrong))
