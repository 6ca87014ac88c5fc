"""What attacks are foreseen to gain, by strategies whose gain is known: records as they are, others, and pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pytest

from release_pipeline.errors import InvalidArgument
from release_pipeline.policy import Policy, parse_policy
from release_pipeline.policy.sections import count_halved
from release_pipeline.privacy.attacks import CRITERIA, Attack, bound_gain, find_criterion, name_attacks, pool_attacks
from release_pipeline.privacy.noise import noise_stream, shuffled_positions
from release_pipeline.privacy.shares import Share, difference_beyond, measure_share
from release_pipeline.stages.audit import LEAST_ATTACKED, attack_table
from release_pipeline.stages.column_table import load_table
from release_pipeline.stages.compared import Compared, read_with
from release_pipeline.stages.criteria import ROUNDS, _stream_of, expect_criteria, judge_criteria, list_criteria  # pyright: ignore[reportPrivateUsage]
from release_pipeline.stages.simulation import Records
from release_pipeline.stages.strategies import RECORD, Grouped, Suppressed, find_strategy
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


def alike(count: int) -> Records:
    """Numbers that rise and fall together."""
    chance = np.random.default_rng(5)
    common = chance.normal(size=count)
    columns = dict(people(count).columns)
    for name in ("one", "two", "three", "four"):
        columns[name] = pa.array(np.clip(np.round(50_000 + 12_000 * (common + 0.7 * chance.normal(size=count))), 0, 100_000))
    return Records(columns)


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


@pytest.mark.slow
def test_of_clusters_a_control_group_that_was_in_them_hides_what_linking_gains() -> None:
    """Means of three alike: who is taken out leaves a third of the own values in the rows of two others, and is found there more
    often than those who are in it. Tried on halves, what is gained is seen."""
    four = "\n  four: {role: confidential, do: noise, domain: [0, 100000], grid: 1, outside: fail, why: known}"
    policy = make("{method: mdav, k: 3}", COLUMNS[: COLUMNS.index("\n  kind")] + four)
    strategy, records = find_strategy(policy), alike(900)
    found = expect_criteria(policy, strategy, records.read, secret=SECRET, progress=lambda _: None)
    [foreseen] = [entry for entry in found if entry["attack"] == "linking"]
    assert foreseen["beyond"]["low"] > 0
    made = strategy.group(records.read, secret=SECRET, context=(), progress=lambda _: None).tables
    read = read_with(made, records.read)
    released = load_table(strategy.mask(read, secret=SECRET, context=(), progress=lambda _: None))
    compared = Compared(policy, records.read, released, released.column(RECORD).to_numpy(), released)
    rounds = [attack_table(compared, _stream_of(SECRET, number))[0] for number in range(ROUNDS)]
    linking = pool_attacks([attack for attacks in rounds for attack in attacks if attack.name == "linking"])
    assert linking.risk.value < foreseen["beyond"]["value"] / 2


def test_the_same_records_and_secret_give_the_same_figures() -> None:
    assert foresee(make(), "a quarter", 60) == foresee(make(), "a quarter", 60)
    assert foresee(make(), "a quarter", 60) != foresee(make(), "a quarter", 60, seed=1)


def test_without_a_limit_or_with_few_records_nothing_is_tried() -> None:
    """And a limit without a figure is not met."""
    assert foresee(make(gates="{min_rows: 40}"), "raw") == {}
    assert judge_criteria(make(gates="{min_rows: 40}"), []) == []
    assert foresee(make(), "raw", count_halved(2, 1) - 1) == {}
    assert foresee(make(), "raw", count_halved(2, 1)) != {}
    gates = judge_criteria(make(), [])
    assert len(gates) == 2 + 1 + 4
    assert not any(gate.passed for gate in gates)
    assert all(gate.figure is None for gate in gates)
    assert count_halved(None, 1) == 2 * LEAST_ATTACKED


def test_a_limit_by_column_is_for_these_alone() -> None:
    policy = make(gates="{min_rows: 40, inference: {one: 3%, kind: 50%}}")
    names = {gate.name: gate.limit for gate in judge_criteria(policy, [])}
    assert names == {
        "gain of inferring one beyond its control group": 0.03,
        "gain of inferring kind beyond its control group": 0.5,
    }


def attack_of(attack: Share, control: Share, guess: float = 0.1) -> Attack:
    return Attack("linking", attack, control, guess, difference_beyond(attack, control), "one")


def test_rounds_are_one_trial_with_all_their_tries() -> None:
    """Like the shares of everybody who was tried, one after the other."""
    first, second = [1] * 30 + [0] * 70, [1] * 60 + [0] * 240
    control = measure_share([0] * 99 + [1], among=None)
    pooled = pool_attacks(
        [
            attack_of(measure_share(first, among=None), control, 0.2),
            attack_of(measure_share(second, among=None), control, 0.4),
        ]
    )
    assert pooled.attack == measure_share([*first, *second], among=None)
    assert pooled.control == measure_share([0] * 198 + [1] * 2, among=None)
    assert pooled.risk == difference_beyond(pooled.attack, pooled.control)
    assert pooled.guess == pytest.approx(0.3)
    assert bound_gain(pooled) == pooled.risk.high
    nothing = Share(0.0, 0.0, 1.0, 0, None)
    assert bound_gain(pool_attacks([attack_of(nothing, nothing)] * 2)) is None
    known = measure_share([1] * 50, among=None)
    assert bound_gain(attack_of(known, known, guess=1.0)) == 0
    assert bound_gain(attack_of(known, known, guess=0.99)) == 1


def test_every_attack_is_tried_for_one_criterion() -> None:
    """The names that the attacks give themselves are those of the table."""
    policy, records = make(), people(40)
    compared = Compared(policy, records.read, records.read("records", None), np.arange(40), records.read("records", None))
    attacks, by_column = attack_table(compared, lambda *purpose: noise_stream(SECRET, *purpose))
    names = {attack.name for attack in (*attacks, *by_column.values())} - {"inferring"}
    assert names == {name for criterion in CRITERIA for name in name_attacks(criterion, policy.released_columns)}
    assert find_criterion("inferring inferring") == ("inference", "inferring")
    with pytest.raises(InvalidArgument):
        find_criterion("guessing")


def test_what_was_measured_is_listed_by_criterion() -> None:
    """Each attack once, the mean over columns never; linkage without a control group; of an audit without attacks nothing."""
    share = {"value": 0.2, "low": 0.1, "high": 0.3, "tried": 10, "among": 40}
    audit = {
        "attacks": [
            {"name": name, "attack": share, "control": share, "risk": share, "guess": 0.1} for name in ("linking", "inferring")
        ],
        "inference": {"kind": {"name": "inferring kind", "attack": share, "control": share, "risk": share, "guess": 0.3}},
        "record_linkage": share,
        "record_linkage_by_chance": 0.025,
    }
    known = [{"attack": "linking", "beyond": share, "most": 0.3, "limit": 0.5}]
    entries = list_criteria(make(), audit, known)
    assert [(entry["criterion"], entry["attack"], entry["column"]) for entry in entries] == [
        ("linkability", "linking", ""),
        ("linkability", "record linkage", ""),
        ("inference", "inferring kind", "kind"),
    ]
    assert (entries[0]["foreseen"], entries[0]["most"], entries[0]["limit"]) == (share, 0.3, 0.5)
    assert "beyond" not in entries[1]
    assert list_criteria(make(), {}, []) == []


def test_an_attack_that_could_not_be_made_has_no_gate_beside_one_that_could() -> None:
    """And with none that could the limit is not met, for nothing shows it."""
    policy = make()
    found = foresee(policy, "fresh")
    one, several = "singling out by one column", "singling out by several columns"
    without = {**found, one: {**found[one], "most": None}}
    names = {gate.name for gate in judge_criteria(policy, list(without.values()))}
    assert f"gain of {one} beyond its control group" not in names
    assert f"gain of {several} beyond its control group" in names
    neither = {**without, several: {**found[several], "most": None}}
    assert failed(policy, neither) == {f"gain of {name} beyond its control group" for name in (one, several)}


def test_what_was_foreseen_stays_where_the_release_has_too_few_rows_to_be_attacked() -> None:
    """Publishing judges it: how many rows the drawn noise left decides nothing."""
    policy = make()
    found = list(foresee(policy, "fresh").values())
    entries = list_criteria(policy, {}, found)
    assert {entry["attack"]: entry["most"] for entry in entries} == {entry["attack"]: entry["most"] for entry in found}
    assert all(gate.passed for gate in judge_criteria(policy, entries))
