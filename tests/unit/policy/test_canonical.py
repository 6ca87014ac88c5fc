"""The canonical form: its hashes are for ever, and a policy is read from it as it was."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from release_pipeline.claims.suite import list_suite
from release_pipeline.errors import InvalidArgument, PolicyInvalid
from release_pipeline.policy import Policy, load_policy, parse_policy
from release_pipeline.policy.canonical import read_canonical
from release_pipeline.policy.declared import Frozen

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


TOWN = "  town: {role: quasi, do: generalise, hierarchy: {csv: towns.csv}, missing: {category: north}}\n"


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
    return parse_policy(text, name="people.yaml", read={"towns.csv": "level0,level1\nnorth,*\nsouth,*\n"}.__getitem__)


def list_policies() -> dict[str, Policy]:
    """Policies with every option, and those that are shipped."""
    return {name: read(text) for name, text in POLICIES.items()} | {file.stem: load_policy(file) for file in SHIPPED}


# Officers approve policies by such hashes: from 0.1.0 on none of them may change.
GOLDEN = {
    "the least": "abca764bd22ce7e9377f98bd174f9ebab69b5e699bd5dbedb003c6be8bf97f48",
    "the same, spelled out": "abca764bd22ce7e9377f98bd174f9ebab69b5e699bd5dbedb003c6be8bf97f48",
    "column by column": "aefae4095a3e426629dabfa1a37eda25b86448e1b236bcc392eb145a22e871a1",
    "in parts": "5023476e4d9c79a1f159b926c2964ff224f019ef42db5bab71881829bf16be07",
    "together": "1670c897b92fb96a46ca98cafdf3ee2eddec08a079bae5104a30fab9920390c0",
    "alike": "8527a9aa24591dc8ac3faabf4e1d773214be865396ffe3b21c73811fabff9756",
    "classes": "ef052384c9d8e6a8bccb47db2343cd30f64ceb277be25d6372ab1c615acc8284",
    "classes in another order": "6d81d38f152748dae58c745f7f8a4dabb67f696d6188e8fb6ba4eca67e560292",
    "classes that are cut": "c72c66a09927ea249096d044d9c1f51635b2a97ce38942c51ca3221f034c0cd5",
    "several records of one person": "7c7d30c33b735918cca4d2d9653d328fdf33aea4ca61463b3a32f9041e38f290",
    "adult-k-epsilon": "2b230ed908b534c4110f5127f7e9973e8ab753b3d1e277f711adc3393651ee21",
    "adult-table": "95f28f57bef095ba5aef36860ce51080fd12212ef3c9b4a6302ed207f0aa9913",
    "census-once": "cf14f3a12fdc505afb8f9de8573f90ce19267285b4bc9e22c32bbcbba6187c93",
    "census-together": "10872e2cee5b6440f99c65c1741643d1be69f4b952af12bd91baedd1acc82ded",
    "rand-hie-dp": "ca698c6c3e6bbc883cdb52e45a273a9c83fdd9cc55b28cc01092393e8dc80481",
    "rand-hie-table": "fdf18665cca55a559ce2bf0f3d3e54d3e9b808de5aa3b387841b21bd75d5663f",
    "rand-hie": "3670f886632b0c5392f798221770ebc4352a2245967c51e5fd1c798c6407550a",
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
