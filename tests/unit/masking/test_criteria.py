"""What attacks are foreseen to gain, by strategies whose gain is known: records as they are, others, and pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pytest

from release_pipeline.masking import RECORD, Grouped, Suppressed
from release_pipeline.masking.criteria import expect_criteria, judge_criteria  # pyright: ignore[reportPrivateUsage]
from release_pipeline.masking.simulation import Records
from release_pipeline.mechanisms.noise import noise_stream, shuffled_positions
from release_pipeline.policy import Policy, parse_policy
from tests.integration.sites import policy_text

SECRET = b"c" * 32
COLUMNS = """
  one: {role: confidential, do: noise, domain: [0, 100000], grid: 1, outside: fail, why: known}
  two: {role: confidential, do: noise, domain: [0, 100000], grid: 1, outside: fail, why: known}
  three: {role: confidential, do: noise, domain: [0, 100000], grid: 1, outside: fail, why: known}
  kind: {role: confidential, do: keep, values: [a, b, c], why: needed}"""
CLASSES_COLUMNS = COLUMNS + "\n  town: {role: quasi, do: generalise, hierarchy: {groups: {all: [x]}}}"
LIMITS = "{min_rows: 40, singling_out: 10%, linkability: 5%, inference: 20%}"


def make(protect: str = "{method: mdav, k: 2}", columns: str = COLUMNS, gates: str = LIMITS, **parts: str) -> Policy:
    """A policy of a method of clusters, or of classes."""
    parts = {"columns": columns, "drop": "", "person": "each-row", "releases": "once", "source": "{path: x.csv}", **parts}
    return parse_policy(policy_text(protect=protect, gates=gates, **parts), name="people")


def make_classes() -> Policy:
    """A method that gives each record a value of its own."""
    return make("{method: k-epsilon, grouping: ola, k: 2, epsilon: 1}", CLASSES_COLUMNS, suppress="{at_most: 5%}")


def people(count: int, seed: int = 0) -> Records:
    """Columns that tell nothing of each other."""
    chance = np.random.default_rng(seed)
    columns: dict[str, pa.Array] = {
        name: pa.array(chance.integers(0, 100_000, count).astype(float)) for name in ("one", "two", "three")
    }
    columns["kind"] = pa.array(chance.choice(["a", "b", "c"], count))
    columns["town"] = pa.array(["x"] * count)
    return Records({**columns, RECORD: pa.array(np.arange(count))})


@dataclass(frozen=True)
class Fake:
    """A strategy that releases numbers as `values` makes them of those of all records."""

    values: str

    def group(self, read: Any, **_: Any) -> Grouped:
        return Grouped({}, {})

    def mask(self, read: Any, *, secret: bytes, context: Sequence[Any], progress: Any) -> pa.Table:
        names = ["one", "two", "three", "kind"]
        table = read("records", names)
        count = table.num_rows
        order = shuffled_positions(count, noise_stream(secret, *context, "order"))
        fresh = people(count, int(shuffled_positions(10_000, noise_stream(secret, *context, "seed"))[0]))
        columns: dict[str, Any] = {RECORD: pa.array(order)}
        for name in names:
            own = table.column(name).combine_chunks()
            other = fresh.columns[name]
            if self.values == "constant":
                own = own.take(pa.array(np.zeros(count, dtype=np.int64)))
            elif self.values == "fresh":
                own = other
            elif self.values == "a quarter":
                own = pyarrow.compute.if_else(pa.array(np.arange(count) % 4 == 0), own, other)
            columns[name] = own.take(pa.array(order))
        return pa.table({**columns, "town": pa.array(["all"] * count)})

    def suppress(self, read: Any, masked: pa.Table) -> Suppressed:
        return Suppressed(masked, 0, 0, 0.0, None)


def foresee(policy: Policy, values: str, count: int = 400, seed: int = 0) -> dict[str, dict[str, Any]]:
    """What is foreseen, by attack."""
    strategy: Any = Fake(values)
    found = expect_criteria(policy, strategy, people(count, seed).read, secret=SECRET, progress=lambda _: None)
    return {entry["attack"]: entry for entry in found}


def failed(policy: Policy, found: Mapping[str, Mapping[str, Any]]) -> set[str]:
    """The names of the gates that do not pass."""
    return {gate.name for gate in judge_criteria(policy, list(found.values())) if not gate.passed}


@pytest.mark.slow
@pytest.mark.parametrize("policy", [make(), make_classes()], ids=["halves", "rows"])
def test_a_table_released_as_it_is_is_found_by_every_attack(policy: Policy) -> None:
    """Every gate fails but that on a column that is guessed anyway."""
    found = foresee(policy, "raw")
    for name in ("singling out by one column", "singling out by several columns", "linking", "inferring one"):
        assert found[name]["beyond"]["low"] > 0.9, name
        assert f"gain of {name} beyond its control group" in failed(policy, found)
        assert found[name]["rate"]["tried"] >= 400
    assert found["linking"]["limit"] == 0.05
    assert found["inferring kind"]["limit"] == 0.2


@pytest.mark.slow
@pytest.mark.parametrize("values", ["fresh", "constant"])
@pytest.mark.parametrize("policy", [make(), make_classes()], ids=["halves", "rows"])
def test_what_tells_nothing_of_anybody_passes(policy: Policy, values: str) -> None:
    """Fresh draws of the same law, or the row of one person, for everybody. Where no row is alone nobody can be singled out by
    one, so that nothing can be tried: that shows nothing, and its limit is not met."""
    found = foresee(policy, values)
    untried = {f"gain of singling out by {how} beyond its control group" for how in ("one column", "several columns")}
    assert failed(policy, found) == (untried if values == "constant" else set())
    if values == "constant":
        assert found["singling out by several columns"]["rate"]["tried"] == 0
        assert found["singling out by several columns"]["most"] is None
        assert found["singling out by several columns"]["beyond"]["high"] == 1
