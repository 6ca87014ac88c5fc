"""Other ways to protect the columns of a policy: which there are, what they change, and how a file has them afterwards."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from release_pipeline.errors import PolicyInvalid, WrongUsage
from release_pipeline.policy import load_policy, parse_policy
from release_pipeline.policy.load import read_text, reader_beside, refuse_files
from release_pipeline.policy.settings import Axes, Setting, apply, list_settings, write_setting
from release_pipeline.policy.text import read_yaml

POLICIES = Path(__file__).resolve().parents[3] / "policies"
TEXT = """\
# who may see what
policy: people
steward: ana
population: folk
source: {path: people.csv}
person: each-row
releases: once

# what it costs
protect:
  method: dp-cdf   # counts
  epsilon: 2
  weights: {income: 3}

# what every column is
columns:
  town:   {role: quasi, do: keep, values: [north, south], why: needed}
  income: {role: confidential, do: noise, domain: [0, 1000], grid: 1, outside: clamp, why: "known, all"}
  rent:
    role: confidential
    do: noise   # masked
    domain: [0, 100]
    grid: 0.5
    outside: clamp
    why: known
    atoms: [0]
suppress: {quasi_groups_below: 5, at_most: 5%}
gates: {min_rows: 20000}
"""


def settings_of(text: str = TEXT, axes: Axes | None = None) -> list[Setting]:
    """Those of a policy."""
    return list(list_settings(read_yaml(text).value, parse_policy(text, name="people.yaml"), axes or Axes()))


def test_the_own_setting_comes_first_and_each_comes_once() -> None:
    """Epsilon from a quarter to four times that of the policy, for the methods that are usual; sizes where there are clusters."""
    found = settings_of()
    assert found[0].protect == {"method": "dp-cdf", "epsilon": 2, "weights": {"income": 3}}
    words = [setting.words for setting in found]
    assert len(set(words)) == len(words)
    assert {setting.method for setting in found} == {"laplace", "dp-um", "idp-ls", "idp-cbls", "dp-cdf", "dp-table"}
    assert [setting.protect["epsilon"] for setting in found if setting.method == "laplace"] == [
        *(Decimal(epsilon) for epsilon in ("0.5", "1", "2", "4", "8")),
    ]
    assert {setting.protect.get("k") for setting in found if setting.method == "idp-ls"} == {3, 10, 30, 100}
    assert {setting.protect.get("k") for setting in found if setting.method in ("laplace", "dp-cdf", "dp-table")} == {None}


def test_axes_are_taken_as_they_are_named() -> None:
    """Methods, epsilons, sizes, blocks: every combination that there is."""
    axes = Axes(methods=["dp-cdf", "laplace"], epsilons=[Decimal(1), Decimal(3)], sizes=[2, 4], swaps=[0, 5])
    found = settings_of(axes=axes)[1:]
    assert len(found) == 12
    assert found[0].words == "dp-cdf, epsilon 1, k 2, weights income 3"
    assert found[7].words == "dp-cdf, epsilon 3, k 4, weights income 3, swap k 5"
    assert found[-1].words == "laplace, epsilon 3, weights income 3, swap k 5"


def test_a_policy_by_rho_is_tried_by_rho() -> None:
    """With its delta; methods that have no such claim are left out."""
    text = TEXT.replace("  epsilon: 2", "  definition: zcdp\n  delta: 0.000001\n  epsilon: 2")
    found = settings_of(text)
    assert {setting.method for setting in found} == {"dp-um", "dp-cdf", "dp-table"}
    assert all(setting.protect["delta"] == Decimal("0.000001") for setting in found)
    assert found[-1].words.startswith("dp-table, by rho, epsilon 8")


@pytest.mark.parametrize("setting", settings_of(), ids=lambda setting: setting.words)
def test_a_setting_is_what_a_file_with_it_would_be(setting: Setting) -> None:
    """The policy that is tried is that of the text that would be written, comments and all else as they were."""
    changed = apply(TEXT, setting, name="people.yaml", read=refuse_files)
    text = write_setting(TEXT, changed, name="people.yaml", read=refuse_files)
    assert parse_policy(text, name="people.yaml").canonical_hash() == changed.policy.canonical_hash()
    assert text.startswith(TEXT.split("protect:")[0])
    assert "# what every column is" in text


@pytest.mark.slow
@pytest.mark.parametrize("file", sorted(POLICIES.glob("*.yaml")), ids=lambda file: file.stem)
def test_every_setting_of_a_shipped_policy_can_be_written_or_is_refused_in_words(file: Path) -> None:
    """Whatever a method needs: where a file cannot be changed line by line, what to change is told."""
    text, read, policy = read_text(file), reader_beside(file), load_policy(file)
    told, written = list[str](), 0
    for setting in list_settings(read_yaml(text).value, policy, Axes()):
        try:
            changed = apply(text, setting, name=str(file), read=read)
            result = write_setting(text, changed, name=str(file), read=read)
        except PolicyInvalid as error:
            told += error.problems
        except WrongUsage as error:
            told.append(error.remedy)
        else:
            assert parse_policy(result, name=str(file), read=read).canonical_hash() == changed.policy.canonical_hash()
            written += 1
    assert written
    assert all(told)


def test_what_else_changes_is_told() -> None:
    """Synthetic rows have no kept column; between methods of single columns nothing else changes."""
    [table] = [one for one in settings_of() if one.words == "dp-table, epsilon 2"]
    changed = apply(TEXT, table, name="people.yaml", read=refuse_files)
    assert changed.changes[0] == "town: do: synthesise in place of do: keep"
    assert "without suppress: rows are nobody's" in changed.changes
    [rank] = [one for one in settings_of() if one.words == "idp-ls, epsilon 2, k 10, weights income 3"]
    assert apply(TEXT, rank, name="people.yaml", read=refuse_files).changes == ()


@pytest.mark.parametrize(
    "weight",
    [
        "{role: weight, do: keep, values: [1, 10, 40], why: design weights}",
        "{role: weight, do: noise, domain: [1, 50], grid: 1, outside: clamp, why: design weights}",
    ],
)
def test_a_weight_is_a_number_as_any_other_in_synthetic_rows(weight: str) -> None:
    """They stand for nobody: it is told, and written."""
    text = TEXT.replace("  rent:\n", f"  w: {weight}\n  rent:\n")
    [table] = [one for one in settings_of(text) if one.words == "dp-table, epsilon 8"]
    changed = apply(text, table, name="people.yaml", read=refuse_files)
    assert "w: role: confidential in place of weight, for synthetic rows stand for no number of people" in changed.changes
    assert changed.policy.columns["w"].role == "confidential"
    written = write_setting(text, changed, name="people.yaml", read=refuse_files)
    assert parse_policy(written, name="people.yaml").canonical_hash() == changed.policy.canonical_hash()


def test_a_setting_that_would_be_refused_says_why() -> None:
    """Too few records for synthetic rows; with which `min_rows` it would do."""
    [table] = [one for one in settings_of() if one.words == "dp-table, epsilon 0.5"]
    with pytest.raises(PolicyInvalid, match="error") as refused:
        apply(TEXT.replace("20000", "20"), table, name="people.yaml", read=refuse_files)
    [fault] = refused.value.faults
    assert "min_rows is 20, and that is too little for dp-table" in fault.what
    assert "about 4,000 records" in fault.remedy


def test_a_file_that_cannot_be_changed_line_by_line_stays_and_the_change_is_told() -> None:
    """A column over two lines of one mapping."""
    odd = TEXT.replace("domain: [0, 1000], grid: 1", "domain: [0,\n    1000], grid: 1").replace(
        "do: noise, domain", "do:\n     noise, domain"
    )
    [table] = [one for one in settings_of(odd) if one.words == "dp-table, epsilon 8"]
    changed = apply(odd, table, name="people.yaml", read=refuse_files)
    with pytest.raises(WrongUsage, match="line by line") as refused:
        write_setting(odd, changed, name="people.yaml", read=refuse_files)
    assert "protect: {method: dp-table, epsilon: 8}" in refused.value.remedy
