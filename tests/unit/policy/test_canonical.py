"""The canonical form: its hashes are for ever, and a policy is read from it as it was."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from experiments.claims import list_suite
from release_pipeline.errors import InvalidArgument, PolicyInvalid
from release_pipeline.policy import Policy, load_policy, parse_policy
from release_pipeline.policy.loading.load import read_canonical
from release_pipeline.policy.values.scalars import Frozen

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
  anonymity_k: 2, l_diversity: {{job: 2}}, clamped_at_most: {{rent: 2%}}}}
audit: {{predict: {{income: {{above: 500}}, town: {{equals: 2}}}}}}
review: {{reviewers: 3}}
publish: {{formats: [csv], not_before: "2027-01-15T10:30+01:00"}}
retain: 90 days
""",
    "in parts": f"""{HEAD}
source: {{path: people.csv, release_column: year}}
person: {{column: person, records_per_release: 1}}
releases: {{list: [a, b], cron: "0 6 1 * *"}}
protect: {{method: laplace, epsilon: 1, partitions: 2}}
columns:
  person: {{role: identifier, do: drop}}
{RENT % ""}gates: {{min_rows: 20, clamped_at_most: 5%}}
""",
    "together": (
        f"{ONCE}protect: {{method: dp-mdav, epsilon: 1, k: 5, order: hilbert, statistic: trimmed, scope: centroid, "
        f"weights: {{rent: 2}}}}\ncolumns:\n{RENT % ''}{INCOME}".replace("[-1e2, 100]", "[0, 100]")
    ),
    "alike": f"{ONCE}protect: {{method: mdav, k: 5}}\ncolumns:\n{RENT % ''}{INCOME}",
}

TOWN = "  town: {role: quasi, do: generalise, hierarchy: {groups: [north, south]}, missing: {category: north}}\n"
SEX = "  sex: {role: quasi, do: generalise, hierarchy: {groups: [f, m]}}\n"
CLASSES = f"""{ONCE}
protect: {{method: k-epsilon, grouping: ola, metric: entropy, k: 3, epsilon: 1}}
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
    return parse_policy(text, name="people.yaml")


def list_policies() -> dict[str, Policy]:
    """Policies with every option, and those that are shipped."""
    return {name: read(text) for name, text in POLICIES.items()} | {file.stem: load_policy(file) for file in SHIPPED}


# Officers approve policies by such hashes: from 0.1.0 on none of them may change.
GOLDEN = {
    "the least": "9f60313c6b3cc5570a5e92bfc96e933b7fcfe0ee6aabe146342f5e38958ca5cd",
    "the same, spelled out": "9f60313c6b3cc5570a5e92bfc96e933b7fcfe0ee6aabe146342f5e38958ca5cd",
    "column by column": "9457cc3828d387bbd49edb42b0d9d7ac488f44ae13d2d3ac5b2e3da5506992ac",
    "in parts": "d990e30fda298543b9e6c335943aa5688d1b0279b5875453d20f6efe6cb822d0",
    "together": "dc0cb1699b0edcc8b3419ace037592b354e9512b50acfd7ae03e17d42ebd3cbd",
    "alike": "5df7c50f4b56cf8e3899566b988e93a4885f3ca3f4a1bf7fc0182af4f399fb18",
    "classes": "f622865b14cb5ccc1f46e5a54c0d19c3878e5c5dc4118fcb23dad0178a023d0e",
    "classes in another order": "7371dae5c2b08bd934fc94957409cd8f7b8a9fc59d076a40c38bacdee8146753",
    "classes that are cut": "3e5269e63ec759bfde66c4f75b6b313538b4af1714bfd1119bb287f0d895efc5",
    "several records of one person": "79d3b12e2d0cb36e7873e0906e546587540264966a97fe3657687aef67ba1c0a",
    "adult-k-epsilon": "f00204c9e6e0246bc2730adc8233258e08988d5b78f4f69af4719ef5944428bc",
    "adult-table": "a6d9b0ca3a1413d6afa4d4b7ee3785ff2c78ab7d9dc3629cc5e867428403b063",
    "census-once": "6c7db1ae8dacc986bf224ed65a18b57a43c6acf9c7ab3a70379e3c0485674385",
    "census-together": "e41ea8e1f21a9a0935062e565e4ccc763f6d7036b8f91edf605147ac5a7c9547",
    "election-licensed": "f326b660a1811a927e8eb65905b4c7b8df21062d67cd0cd18d7a66efbc28a606",
    "election-public": "0f64bf108a8f4f0c86f8bf2d6fe9686a3174c9e39d19380294793d6c35a91461",
    "rand-hie-dp": "e30c4b65bb3a9c5be4a756954dc3bfefb36ca4ca31edfd1d6e6d991538ee813c",
    "rand-hie-table": "10944d2a48fd3577de2359e29b513af5cc7abe8510d187da5d1eb3294556cbeb",
    "rand-hie": "55276c726fb6774374f2e04cbaba84b015cc6a6dea9e47697a66b00bbd4d34bc",
}

FORM = (
    '{"audit":{"predict":{"income":{"above":"500"},"town":{"equals":2}}},"columns":{"income":{"'
    'do":"noise","domain":["0","1000.5"],"grid":"0.5","missing":"fail","outside":"fail","role":'
    '"confidential","why":"known"},"job":{"do":"keep","missing":"fail","role":"c'
    'onfidential","values":["a","b"],"why":"needed"},"person":{"do":"drop","role":"identifier"}'
    ',"rent":{"atoms":["0","5"],"do":"noise","domain":["-100","100"],"grid":"1","missing":{"fil'
    'l":"0"},"outside":"clamp","role":"quasi","why":"known"},"town":{"do":"keep"'
    ',"missing":{"category":"north"},"role":"quasi","values":["north",2,"3.5","true"],"why":"ne'
    'eded"}},"drop":["name","Café"],"gates":{"anonymity_k":2,"atom_share":{"rent":"0.2"},"clamp'
    'ed_at_most":{"rent":"0.02"},"differencing_below":4,"expected_error":{"income":"0.1"},"ks":'
    '{"rent":"0.3"},"l_diversity":{"job":2},"min_rows":20},"person":{"column":"person","records_per_release":1},"policy":"people","p'
    'opulation":"folk","protect":{"clamp":"no","consistency":"none","epsilon":"0.3","k":5,"meth'
    'od":"idp-cbls","partitions":2,"scope":"centroid","weights":{"rent":"0.5"}},"publish":{"for'
    'mats":["csv"],"not_before":"2027-01-15T09:30:00Z"},"releases":{"cron":"0 6 1 * *","every":'
    '"month","first":"2026-01"},"retain":90,"review":{"reviewers":3},"source":{"postgres":"post'
    'gresql://${HOST}/x","release_column":"year","table":"people"},"steward":"ana","suppress":{'
    '"at_most":"0.025","quasi_groups_below":5}}'
)


def test_hashes_are_for_ever() -> None:
    """Every option, and what is left out since it is empty (docs/formats.md)."""
    assert {name: policy.canonical_hash() for name, policy in list_policies().items()} == GOLDEN


def list_parts(kind: type[BaseModel] = Frozen) -> Iterator[type[BaseModel]]:
    """Every part of a policy, by its type."""
    for part in kind.__subclasses__():
        yield part
        yield from list_parts(part)


def test_options_that_may_be_empty_are_empty_by_default() -> None:
    """The canonical form leaves out what is empty: else it would be read back as the default."""
    for option in (option for part in list_parts() for option in part.model_fields.values()):
        default = None if option.is_required() else option.get_default(call_default_factory=True)
        accepted = TypeAdapter(Annotated[option.annotation, "any", *option.metadata])
        for empty in (None, (), {}) if default not in (None, (), {}) else ():
            with suppress(ValidationError):
                assert accepted.validate_python(empty) == default


def test_form_in_full() -> None:
    """Numbers as texts, percentages as shares, times in UTC, names in NFC, keys in order."""
    assert read(POLICIES["column by column"]).canonical_json() == FORM


def test_a_policy_is_read_back_from_its_form() -> None:
    """All of it, with its columns in their order, and with the same form."""
    for name, policy in (list_policies() | list_suite()).items():
        found = read_canonical(json.loads(policy.canonical_json()), list(policy.columns))
        assert found == policy, name
        assert list(found.columns) == list(policy.columns), name
        assert found.canonical_json() == policy.canonical_json(), name


def _unknown(form: dict[str, Any]) -> None:
    form["protect"]["colour"] = "secret-cell"


def _no_number(form: dict[str, Any]) -> None:
    form["protect"]["epsilon"] = "secret-cell"


def _no_columns(form: dict[str, Any]) -> None:
    del form["columns"]


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
