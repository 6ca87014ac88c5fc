"""(k,epsilon)-anonymity of random parts: whoever reads the release sees labels and no parts, and so do these tests.

For each released table: any two records with the same labels could have given each number with probabilities within e^epsilon,
in exact fractions from the scales that their noise was drawn with.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from release_pipeline.masking import RECORD, Suppressed, find_strategy
from release_pipeline.masking.classes import _keep_apart  # pyright: ignore[reportPrivateUsage]
from release_pipeline.masking.parts import PART
from release_pipeline.policy import Policy, parse_policy
from release_pipeline.publish.wording import list_parts
from release_pipeline.rows.columns import Read, load_table, read_tables, read_with

SECRET = bytes(range(32))
AGES = {"ola": "intervals: [5, 20], ", "mondrian": ""}


def quiet(_: str) -> None:
    pass


def make_policy(grouping: str, *, k: int, parts: int, epsilon: str, confidence: int | None) -> Policy:
    suppressed = ("grouping_at_most: 50%, " if grouping == "ola" else "") + (f"confidence: {confidence}%, " if confidence else "")
    return parse_policy(
        f"""
policy: parts
steward: ana
population: people
source: {{path: people.csv}}
person: each-row
releases: once
protect: {{method: k-epsilon, grouping: {grouping}, k: {k}, epsilon: {epsilon}, partitions: {parts}}}
columns:
  town: {{role: quasi, do: generalise, hierarchy: {{groups: {{coast: [north, south], inland: [east]}}}}}}
  age: {{role: quasi, do: generalise, hierarchy: {{{AGES[grouping]}domain: [0, 39], grid: 1, outside: fail}}, why: test}}
  pay: {{role: quasi, do: noise, domain: [0, 1000], grid: 1, outside: clamp, missing: fail, why: test}}
suppress: {{{suppressed}at_most: 100%}}
gates: {{min_rows: {2 * k * parts}}}
review: {{reviewers: 1}}
""",
        name="parts.yaml",
    )


@dataclass(slots=True)
class Made:
    """What the stages of a release make of these records, with nothing stored in between."""

    policy: Policy
    records: pa.Table
    secret: bytes = SECRET
    tables: dict[str, pa.Table] = field(default_factory=dict[str, pa.Table])

    @property
    def read(self) -> Read:
        return read_with({"records": self.records}, read_tables(self.tables))

    def group(self) -> None:
        strategy = find_strategy(self.policy)
        self.tables |= strategy.group(self.read, secret=self.secret, context=("test",), progress=quiet).tables

    def mask(self) -> pa.Table:
        return load_table(find_strategy(self.policy).mask(self.read, secret=self.secret, context=("test",), progress=quiet))

    def suppress(self, masked: pa.Table) -> Suppressed:
        return find_strategy(self.policy).suppress(self.read, masked)


def scales_by_label(made: Made, table: pa.Table, monkeypatch: pytest.MonkeyPatch) -> dict[Any, list[tuple[int, int]]]:
    """For each combination of released labels the numbers of its records in grid units, each with the scale that its noise was
    drawn with: a sampler that gives the scale itself shows it."""
    with monkeypatch.context() as patch:
        patch.setattr("release_pipeline.mechanisms.columns.class_noise.discrete_laplace", lambda scales, stream: 10**7 * scales)
        patch.setattr("numpy.clip", lambda array, low, high, out=None: array)
        shown = made.mask()
    units = made.policy.noise_columns["pay"].exact_grid
    original = np.rint(made.records.column("pay").to_numpy()).astype(np.int64)
    drawn = dict(zip(shown.column(RECORD).to_pylist(), shown.column("pay").to_pylist(), strict=True))
    assert units.width == 1000
    found: dict[Any, list[tuple[int, int]]] = defaultdict(list)
    labels = [table.column(name).to_pylist() for name in ("town", "age")]
    for record, *label in zip(table.column(RECORD).to_pylist(), *labels, strict=True):
        x = int(original[record])
        found[tuple(label)].append((x, round(drawn[record] - x) // 10**7))
    return found


def is_bounded(of_label: list[tuple[int, int]], epsilon: Fraction) -> bool:
    """One scale for all, and no two numbers further apart than it allows."""
    numbers, scales = {x for x, _ in of_label}, {t for _, t in of_label}
    if len(scales) > 1:
        return False
    t = scales.pop()
    return all(t and Fraction(abs(a - b), t) <= epsilon for a, b in combinations(numbers, 2))


def table_of(towns: list[str], ages: list[int], pays: list[int]) -> pa.Table:
    return pa.table({"town": towns, "age": pa.array(ages, pa.float64()), "pay": pa.array(pays, pa.float64())})


def test_a_label_has_the_scale_of_all_its_records() -> None:
    """Eleven records of 500 and one of 900 in two parts, epsilon 1: 400, and not 400 in one part and nothing in the other."""
    policy = make_policy("ola", k=3, parts=2, epsilon="1", confidence=None)
    made = Made(policy, table_of(["north"] * 12, [1] * 12, [500] * 11 + [900]))
    made.group()
    assert np.bincount(made.tables["parts"].column(PART).to_numpy()).tolist() == [6, 6]
    assert made.tables["labels"].num_rows == 1
    assert made.tables["statistics"].column("scale").to_pylist() == [400]
    assert made.mask().column("pay").to_pylist().count(500) < 4  # without noise six of them would be there


@pytest.mark.parametrize("grouping", AGES)
@pytest.mark.parametrize("seed", range(40))
def test_no_number_tells_records_of_a_label_apart_by_more_than_epsilon(
    grouping: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As released, suppression and the ranges that it leaves included, over all parts."""
    chance = random.Random(seed)  # noqa: S311
    parts, k = chance.choice([2, 3]), chance.choice([2, 3])
    n = chance.randint(4 * k * parts, 12 * k * parts)
    ages = [chance.randrange(*chance.choice([(0, 4), (0, 40)])) for _ in range(n)]
    towns = [chance.choice(["north", "south", "east"]) for _ in range(n)]
    pays = [chance.choice([500, 500, chance.randint(0, 1000)]) for _ in range(n)]
    epsilon = chance.choice(["0.5", "1", "3"])
    policy = make_policy(grouping, k=k, parts=parts, epsilon=epsilon, confidence=chance.choice([None, 40, 90]))
    made = Made(policy, table_of(towns, ages, pays), secret=bytes([seed]) * 32)
    made.group()
    done = made.suppress(made.mask())
    found = scales_by_label(made, done.table, monkeypatch)
    assert sum(map(len, found.values())) == done.table.num_rows == n - done.dropped
    assert all(is_bounded(of_label, Fraction(epsilon)) for of_label in found.values())
    assert all(len(of_label) >= k for of_label in found.values())
    part = made.tables["parts"].column(PART).to_numpy()
    group = made.tables["membership"].column(0).to_numpy()
    pairs = Counter(zip(part[group >= 0].tolist(), group[group >= 0].tolist(), strict=True))
    assert min(pairs.values()) >= k  # each part was grouped on its own


def test_what_is_expected_has_the_scales_of_labels() -> None:
    """The forecast of noise is that of one class of twelve, however the parts fall."""
    policy = make_policy("ola", k=3, parts=2, epsilon="1", confidence=90)
    made = Made(policy, table_of(["north"] * 12, [1] * 12, [500] * 11 + [900]))
    expected = find_strategy(policy).expect(made.read, secret=bytes(32), progress=quiet)
    whole = find_strategy(
        make_policy("ola", k=3, parts=2, epsilon="1", confidence=90).model_copy(update={"protect": one_part(policy)})
    )
    assert expected["pay"]["mean_noise"] == whole.expect(made.read, secret=bytes(32), progress=quiet)["pay"]["mean_noise"]
    assert expected["pay"]["mean_noise"] == pytest.approx(400, rel=1e-3)


def one_part(policy: Policy) -> Any:
    return policy.protect.model_copy(update={"partitions": None})


def test_whom_suppression_drops_is_decided_over_all_parts() -> None:
    """A record is kept where its label has k originals in its box, in whatever parts; and dropped or kept as without parts."""
    policy = make_policy("ola", k=4, parts=2, epsilon="8", confidence=90)
    kept: list[list[int]] = []
    for version in (policy, policy.model_copy(update={"protect": one_part(policy)})):
        made = Made(version, table_of(["north"] * 16, [1] * 16, [*range(100, 900, 100), *range(100, 900, 100)]))
        made.group()
        masked = Made(policy.model_copy(update={"protect": one_part(policy)}), made.records, tables=made.tables).mask()
        kept.append(sorted(made.suppress(masked).table.column(RECORD).to_pylist()))
    assert kept[0] == kept[1]
    assert 0 < len(kept[0]) < 16


LABELS = {"town": ["east", "east", "east", "coast"], "age": ["1-9", "1-12", "1-30", "1-9"]}


@pytest.mark.parametrize(
    ("ranges", "wanted"),
    [
        (["1-5", "1-9", "1-9", "1-5"], ["1-5", "1-12", "1-30", "1-5"]),  # two would be equal, and both keep theirs
        (["1-5", "1-8", "1-30", "1-5"], ["1-5", "1-8", "1-30", "1-5"]),  # towns differ
        (["1-9", "1-9", "1-12", "1-9"], ["1-9", "1-12", "1-30", "1-9"]),  # what one keeps is another's
    ],
)
def test_classes_never_come_to_have_equal_labels(ranges: list[str], wanted: list[str]) -> None:
    after = {"town": list(LABELS["town"]), "age": list(ranges)}
    _keep_apart([0, 1, 2, 3], LABELS, after)
    assert after == {"town": LABELS["town"], "age": wanted}


def test_the_card_says_what_a_class_was() -> None:
    """That a label is one class, of whatever parts."""
    policy = make_policy("ola", k=3, parts=2, epsilon="1", confidence=None)
    words = " ".join(list_parts(policy))
    assert "A class is all records with the same labels, from whatever parts" in words
