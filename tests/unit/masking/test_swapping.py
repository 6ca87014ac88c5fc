"""The strategy of swapped values: who is in a block with whom, what changes places, and what keeps its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from release_pipeline.errors import Blocked
from release_pipeline.masking import SWAPPED, find_strategy, swapping
from release_pipeline.masking.strategy import RECORD
from release_pipeline.masking.swapping import BLOCK, SwapStrategy, read_blocks
from release_pipeline.policy import Policy, parse_policy
from release_pipeline.rows.columns import Read, read_tables, read_with
from tests.integration.sites import refusal

SECRET = bytes(range(32))
SWAP = "{method: dp-cdf, epsilon: 4, swap: {k: 5, within: kept}}"
SUPPRESS = "suppress: {quasi_groups_below: 5, at_most: 50%}\n"
KEPT = """  town: {role: quasi, do: keep, values: [north, south], why: needed}
  sex: {role: quasi, do: keep, values: [0, 1], why: needed}
"""
REGION = "  region: {role: confidential, do: swap, values: [a, b, c], why: needed}\n"
MASKED = """  income: {role: confidential, do: noise, domain: [0, 1000], grid: 1, outside: fail, why: known}
  rent: {role: confidential, do: noise, domain: [0, 100], grid: 0.5, outside: clamp, missing: keep, why: known}
"""
HOW: dict[str, Any] = {"secret": SECRET, "context": ("test",), "progress": lambda _: None}


def text_of(
    protect: str = SWAP,
    *,
    suppress: str = SUPPRESS,
    columns: str = KEPT + REGION + MASKED,
    person: str = "each-row",
    gates: str = "{min_rows: 10}",
) -> str:
    return (
        f"policy: people\nsteward: ana\npopulation: folk\nsource: {{path: people.csv}}\nperson: {person}\nreleases: once\n"
        f"protect: {protect}\ncolumns:\n{columns}{suppress}gates: {gates}\n"
    )


def policy_of(**parts: Any) -> Policy:
    return parse_policy(text_of(**parts), name="people.yaml")


def faults_of(**parts: Any) -> str:
    return refusal(lambda: policy_of(**parts))


def make_records(count: int = 203, *, seed: int = 2) -> pa.Table:
    """Towns and sexes in groups, of which one has three records alone."""
    random = np.random.default_rng(seed)
    town, sex = random.choice(["north", "south"], count), random.choice([0, 1], count)
    town[:3], sex[:3] = "south", 1
    sex[3:][town[3:] == "south"] = 0
    income = np.floor(random.uniform(0, 1000, count))
    columns = {"town": town, "sex": sex, "region": random.choice(["a", "b", "c"], count), "income": income}
    return pa.table({**columns, "rent": np.round(income / 12) + random.integers(0, 2, count) / 2})


@dataclass(frozen=True)
class Made:
    """A release of some records, and what reads its tables."""

    read: Read
    released: Any
    strategy: SwapStrategy

    @property
    def own(self) -> np.ndarray:
        return self.released.column(RECORD).to_numpy()


def make_release(policy: Policy, records: pa.Table, **how: Any) -> Made:
    strategy = find_strategy(policy)
    assert isinstance(strategy, SwapStrategy)
    read = read_tables({"records": records})
    read = read_with(strategy.group(read, **{**HOW, **how}).tables, read)
    read = read_with(strategy.measure(read, **{**HOW, **how}), read)
    return Made(read, strategy.suppress(read, strategy.mask(read, **{**HOW, **how})).table, strategy)


def test_values_change_places_within_blocks_and_lists_stay() -> None:
    """Each column has the list that the method alone gives, and of every block the same values; kept entries stay where they are;
    the small group is gone, or has a blank cell, and no block has fewer than k."""
    policy, records = policy_of(), make_records()
    made = make_release(policy, records)
    block = read_blocks(made.read, made.own)
    plain = made.strategy.strategy.mask(made.read, **HOW)
    at = {record: place for place, record in enumerate(plain.column(RECORD).to_pylist())}
    masked = plain.select(["town", "sex", "region", "income", "rent"]).take([at[record] for record in made.own.tolist()])
    assert np.bincount(block).min() >= 5
    cells = _kept(made.released)
    assert len(set(zip(block.tolist(), cells, strict=True))) == len(set(block.tolist()))
    moved = 0
    for name in ("region", "income", "rent"):
        before, after = masked.column(name).to_pylist(), made.released.column(name).to_pylist()
        moved += sum(one != other for one, other in zip(before, after, strict=True))
        for number in set(block.tolist()):
            of_block = np.flatnonzero(block == number)
            assert sorted(str(before[i]) for i in of_block) == sorted(str(after[i]) for i in of_block)
    assert moved > 300
    known = [_kept(records)[own] for own in made.own.tolist()]
    assert all(cell in (was, (was[0], None), (None, was[1]), (None, None)) for cell, was in zip(cells, known, strict=True))


def _kept(table: Any) -> list[tuple[Any, Any]]:
    """Town and sex of each row."""
    return list(zip(table.column("town").to_pylist(), table.column("sex").to_pylist(), strict=True))


def test_columns_change_places_by_themselves() -> None:
    """Of a release whose values say whose they are: two columns of a row are of one record once in a block, a retry gives the
    same rows, and another secret others."""
    policy, records = policy_of(columns=KEPT + MASKED.replace(", missing: keep", "")), make_records(2_003)
    made = make_release(policy, records)
    numbers = pa.array(np.arange(2_003, dtype=np.float64))
    inner = made.strategy.strategy.mask(made.read, **HOW)
    own = inner.column(RECORD)
    told = pa.table({RECORD: own, **{name: numbers.take(own) for name in ("town", "sex", "income", "rent")}})

    class Telling(type(made.strategy.strategy)):
        def mask(self, read: Read, **_: Any) -> Any:
            return told

    strategy = replace(made.strategy, strategy=Telling(policy))
    rows = strategy.mask(made.read, **HOW)
    income, rent = (rows.column(name).to_numpy() for name in ("income", "rent"))
    released = read_blocks(made.read, own.to_numpy()) >= 0
    sizes = np.bincount(read_blocks(made.read, own.to_numpy())[released])
    expected = len(sizes) / released.sum()
    for one, other in ((income, rent), (income, own.to_numpy()), (rent, own.to_numpy())):
        share = float((one == other)[released].mean())
        assert abs(share - expected) < 4 * np.sqrt(expected / released.sum())
    assert (rows.column("town").to_numpy() == own.to_numpy()).all()
    for name in ("income", "rent"):
        assert (rows.column(f"{swapping.OWNER}{name}").to_numpy() == rows.column(name).to_numpy()).all(), "whose they are"
    assert (strategy.mask(made.read, **HOW).column("income").to_numpy() == income).all()
    assert (strategy.mask(made.read, **{**HOW, "secret": bytes(32)}).column("income").to_numpy() != income).any()


def test_limits_on_what_blocks_tell_of_a_category_are_judged_before_noise() -> None:
    """By the blocks alone, with no secret of a release; codes with one reason are entries of their own."""
    columns = KEPT + REGION.replace("values: [a, b, c]", "values: [a, b, c], codes: {x: refused, y: refused}") + MASKED
    policy = parse_policy(
        text_of(columns=columns).replace("{min_rows: 10}", "{min_rows: 10, l_diversity: {region: 3}}"), name="p"
    )
    records = make_records(400)
    entries = records.column("region").to_pylist()
    records = records.set_column(
        2, "region", pa.array(["x" if i % 7 == 0 else "y" if i % 7 == 1 else e for i, e in enumerate(entries)])
    )
    strategy = find_strategy(policy)
    expected = strategy.expect(read_tables({"records": records}), secret=SECRET, progress=lambda _: None)
    [gate] = [gate for gate in strategy.judge(expected) if "l-diversity" in gate.name]
    assert not gate.passed
    made = make_release(policy, records)
    block = made.read(SWAPPED, [BLOCK]).column(0).to_numpy()
    told = [
        len({e for e, of in zip(records.column("region").to_pylist(), block, strict=True) if of == number})
        for number in set(block[block >= 0])
    ]
    assert gate.value == min(told)


def test_blocks_that_do_not_fit_stop_the_release() -> None:
    """Planted faults: a block of k - 1, and one that reaches over two groups of kept entries."""
    policy, records = policy_of(), make_records()
    made = make_release(policy, records)
    block = made.read(SWAPPED, [BLOCK]).column(0).to_numpy().copy()
    of_block = np.flatnonzero(block == 0)
    own = records.column("town").to_pylist()
    [other] = [i for i in np.flatnonzero(block > 0) if own[i] != own[of_block[0]]][:1]
    for spoil in ({of_block[0]: block.max() + 1}, {other: 0}):
        spoilt = block.copy()
        for at, number in spoil.items():
            spoilt[at] = number
        read = read_with({SWAPPED: pa.table({BLOCK: pa.array(spoilt)})}, made.read)
        masked = made.strategy.mask(read, **HOW)
        with pytest.raises(Blocked):
            made.strategy.suppress(read, masked)


def test_who_may_have_several_records_needs_larger_blocks() -> None:
    """k for each of them, so that at most one row in k is one person's; groups that are suppressed have to be as large."""
    parts = {
        "person": "{column: who, records_per_release: 2}",
        "protect": "{method: laplace, epsilon: 4, swap: {k: 5, within: kept}}",
        "columns": "  who: {role: identifier, do: drop}\n" + KEPT + MASKED.replace("missing: keep, ", ""),
    }
    assert "a block has 10 records or more, 5 for each of the 2 records that one may have" in faults_of(**parts)
    large = policy_of(**parts, suppress=SUPPRESS.replace("5,", "10,"))
    assert large.block_size == 10


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"suppress": ""}, "a block has 5 records or more, and groups of town and sex may have fewer."),
        ({"columns": KEPT + REGION.replace("swap", "keep") + MASKED}, "'region' would keep its place while other columns change"),
        ({"protect": "{method: dp-cdf, epsilon: 4}"}, "nothing says in which blocks the entries of 'region' change places."),
        ({"columns": KEPT.replace("do: keep", "do: swap") + MASKED}, "a column of role quasi keeps its place"),
        ({"protect": SWAP.replace("swap:", "partitions: 2, swap:")}, "blocks are made of all records together"),
        (
            {"suppress": SUPPRESS + "audit: {groups: [region]}\n", "gates": "{min_rows: 10, group_mean: {income: 5}}"},
            "every column of audit.groups is swapped",
        ),
        ({"protect": "{method: mdav, k: 5, swap: {k: 5, within: kept}}"}, "it is for methods of single columns"),
        ({"protect": "{method: dp-table, epsilon: 1, swap: {k: 5, within: kept}}"}, "there is nothing to swap"),
    ],
)
def test_what_swapping_cannot_keep_is_refused(parts: dict[str, str], words: str) -> None:
    assert words in faults_of(**parts)
