"""Trying swapped values: the settings there are, what they change, and what is proposed where too many rows are linked."""

from __future__ import annotations

import dataclasses
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from release_pipeline.explore.document import view_setting
from release_pipeline.explore.explore import describe_figures, tabulate
from release_pipeline.explore.simulating import Bench, Tried, Written
from release_pipeline.masking.simulation import Records, simulate
from release_pipeline.policy import parse_policy
from release_pipeline.policy.documents import to_json
from release_pipeline.policy.loading.load import refuse_files
from release_pipeline.policy.plans.settings import Setting, apply
from tests.unit.report.explorations import make_document

TEXT = """\
policy: people
steward: ana
population: folk
source: {path: people.csv}
person: each-row
releases: once
protect: {method: dp-cdf, epsilon: 2}
columns:
  town:   {role: quasi, do: keep, values: [north, south], why: needed}
  ill:    {role: confidential, do: keep, values: [a, b, c], why: needed}
  income: {role: confidential, do: noise, domain: [0, 1000], grid: 1, outside: clamp, why: known}
  rent:   {role: confidential, do: noise, domain: [0, 1000], grid: 1, outside: clamp, why: known}
suppress: {quasi_groups_below: 5, at_most: 5%}
gates: {min_rows: 20}
"""
SWAP = Setting({"method": "dp-cdf", "epsilon": Decimal(2), "swap": {"k": 10, "within": "kept"}})


def make_records(count: int = 400) -> Records:
    random = np.random.default_rng(5)
    income = random.integers(0, 1001, count).astype(np.float64)
    return Records(
        {
            "town": pa.array(random.choice(["north", "south"], count)),
            "ill": pa.array(random.choice(["a", "b", "c"], count)),
            "income": pa.array(income),
            "rent": pa.array(np.clip(income + random.integers(-50, 51, count), 0, 1000)),
        }
    )


def test_a_setting_that_swaps_brings_what_swapping_needs() -> None:
    """Kept confidential columns are swapped, groups hold a block, and without swapping it is the other way round."""
    changed = apply(TEXT, SWAP, name="people.yaml", read=refuse_files)
    assert changed.changes == ("ill: do: swap in place of do: keep", "suppress: quasi_groups_below: 10 in place of 5")
    assert changed.policy.swapped_columns == ["income", "rent", "ill"]
    assert SWAP.summary == "dp-cdf, epsilon 2, swap k 10"
    written = (
        TEXT.replace(TEXT[TEXT.index("protect:") : TEXT.index("\n", TEXT.index("protect:"))], SWAP.block)
        .replace("do: keep, values: [a, b, c]", "do: swap, values: [a, b, c]")
        .replace("quasi_groups_below: 5", "quasi_groups_below: 10")
    )
    assert parse_policy(written, name="people.yaml").canonical_hash() == changed.policy.canonical_hash()
    back = apply(written, Setting({"method": "dp-cdf", "epsilon": Decimal(2)}), name="people.yaml", read=refuse_files)
    assert back.changes == ("ill: do: keep in place of do: swap",)
    table = apply(
        written.replace("min_rows: 20", "min_rows: 20000"),
        Setting({"method": "dp-table", "epsilon": Decimal(2)}),
        name="p",
        read=refuse_files,
    )
    assert "ill: do: synthesise in place of do: swap" in table.changes
    without = TEXT.replace("suppress: {quasi_groups_below: 5, at_most: 5%}\n", "")
    added = apply(without, SWAP, name="people.yaml", read=refuse_files)
    assert "suppress: quasi_groups_below: 10, at_most: 5%" in added.changes


@pytest.fixture(scope="module")
def bench() -> Bench:
    policy = parse_policy(TEXT, name="people.yaml")
    return Bench(Written(TEXT, "people.yaml", {}), policy, make_records(), 400, bytes(32))


def try_setting(bench: Bench, setting: Setting) -> Tried:
    changed = bench.written.change(setting)
    return Tried(changed, simulate(changed.policy, bench.references_of(changed.policy), secret=bytes(32), draws=2))


def test_a_ladder_above_ten_percent_has_swapping_proposed(bench: Bench) -> None:
    """With it the ladder is low, and nothing is proposed; a limit of the policy is the one that counts."""
    plain = view_setting(try_setting(bench, Setting({"method": "dp-cdf", "epsilon": Decimal(8)})), 1)
    assert plain.linkage is not None
    assert plain.linkage > 0.1
    assert plain.proposal == ("swap with k 10 would bring this to at most 10% on average (`explore` with `--swap 10` tries it).")
    swapped = view_setting(try_setting(bench, SWAP), 2)
    assert swapped.linkage is not None
    assert swapped.linkage < 0.2
    assert swapped.linked_at_most == 0.1
    assert swapped.proposal == ""


def with_limit(tried: Tried, limit: str) -> Tried:
    """The same under a policy that limits linkage."""
    policy = tried.changed.policy
    gates = policy.gates.model_copy(update={"linkage": Decimal(limit)})
    return Tried(dataclasses.replace(tried.changed, policy=policy.model_copy(update={"gates": gates})), tried.simulated)


def test_a_setting_that_the_gate_would_refuse_is_marked(bench: Bench) -> None:
    """In the view and in the table; nothing says that it met the limit. One that keeps it is not marked."""
    tried = try_setting(bench, Setting({"method": "dp-cdf", "epsilon": Decimal(8)}))
    over = view_setting(with_limit(tried, "0.1"), 1)
    assert over.linkage_limit == 0.1
    assert not any("met its limit on linkage" in words for words in over.not_covered)
    kept = view_setting(with_limit(tried, "1"), 2)
    assert kept.linkage_limit is None
    assert any("met its limit on linkage" in words for words in kept.not_covered)
    document = to_json(dataclasses.replace(make_document(), columns=("income", "rent"), settings=(over, kept)))
    [first, second] = tabulate(document).rows
    assert [cell.endswith("%: refused") for cell in first].count(True) == 1
    assert not any("refused" in cell for cell in second)
    assert any(
        line.startswith("Settings 1: refused by the policy's gate linkage, which allows at most 10%.")
        for line in describe_figures(document)
    )
