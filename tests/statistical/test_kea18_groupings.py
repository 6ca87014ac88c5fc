"""KEA18's experiment with Mondrian's classes, beside OLA's: what it measures, and what it says of information loss."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from experiments.papers.kea18 import GROUPINGS, KS, QUASI, group_people, measure, read_people
from experiments.papers.runs import Setting

pytestmark = [pytest.mark.statistical, pytest.mark.slow]

SECRETS = [bytes(31) + bytes([run]) for run in (1, 2)]
RECORDS = 32561
Counted = dict[tuple[str, int], dict[str, float]]


@pytest.fixture(scope="module")
def counted(reference_data: Path) -> Counted:
    settings = [Setting.of("grouping", 1, grouping=name, k=k) for name in GROUPINGS for k in KS]
    return {(s.text("grouping"), s.number("k")): measure(reference_data, s, SECRETS[:1])[0] for s in settings}


def noise(data: Path, grouping: str, k: int, epsilon: str) -> dict[str, float]:
    rows = measure(data, Setting.of("noise", len(SECRETS), grouping=grouping, k=k, epsilon=epsilon), SECRETS)
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


def read_csv(file: Path) -> list[list[str]]:
    with file.open(newline="") as lines:
        return list(csv.reader(lines))[1:]


@pytest.mark.parametrize(("grouping", "k"), [("ola", 5), ("ola", 100), ("mondrian", 2), ("mondrian", 50)])
def test_information_loss_is_that_of_the_labels(reference_data: Path, counted: Counted, grouping: str, k: int) -> None:
    """Class by class from the files: the values of the table that have a class's label, one by one."""
    header, *rows = csv.reader((reference_data / "adult.csv").read_text().splitlines())
    group = group_people(reference_data, grouping, k).group
    node = measure(reference_data, Setting.of("node", 1, k=k), SECRETS[:1])[0]
    lost = np.zeros((len(rows), len(QUASI)))
    for place, name in enumerate(QUASI):
        own = [row[header.index(name)] for row in rows]
        if name == "age":  # the paper's Table I
            labels = {str(age): [str(age), *(f"{age // width}" for width in (2, 4, 8)), "*"] for age in range(100)}
        else:
            labels = {line[0]: line for line in read_csv(reference_data / "adult_hierarchies" / f"{name}.csv")}
        occurring = set(own)
        members = defaultdict(set)
        for value, its in zip(own, group.tolist(), strict=True):
            members[its].add(value)
        stands_for: dict[int, int] = {}
        for its, values in members.items():
            some = min(values)
            if grouping == "mondrian" and name == "age":
                ages = [int(value) for value in values]
                stands_for[its] = sum(min(ages) <= int(value) <= max(ages) for value in occurring)
                continue
            level = 0
            while len({labels[value][level] for value in values}) > 1:
                level += 1
            if grouping == "ola" and its >= 0:
                assert level <= node[name]  # else the class had two labels
                level = int(node[name])
            stands_for[its] = sum(labels[value][level] == labels[some][level] for value in occurring)
        lost[:, place] = [(stands_for[its] - 1) / (len(occurring) - 1) for its in group.tolist()]
    kept, found = group >= 0, counted[grouping, k]
    assert found["penalty"] == pytest.approx(lost[kept].mean(), rel=1e-9)
    for place, name in enumerate(QUASI):
        assert found[f"penalty_{name}"] == pytest.approx(lost[kept, place].mean(), rel=1e-9)
    assert found["penalty_all"] == pytest.approx(found["penalty"] * kept.mean() + 1 - kept.mean(), rel=1e-9)
    assert found["dropped"] == pytest.approx(1 - kept.mean())


def test_mondrian_drops_nobody_and_has_smaller_classes(reference_data: Path, counted: Counted) -> None:
    assert [counted["mondrian", k]["classes"] for k in KS] == [1372, 933, 646, 446, 241, 149]
    for k in KS:
        found = counted["mondrian", k]
        assert found["records"] == RECORDS
        assert found["dropped"] == 0
        assert found["penalty"] == found["penalty_all"]
        assert np.bincount(group_people(reference_data, "mondrian", k).group).min() >= k
        assert found["classes"] > 1.1 * counted["ola", k]["classes"]
        assert 0 < counted["ola", k]["dropped"] <= 0.05


def test_neither_grouping_always_loses_less(counted: Counted) -> None:
    """OLA coarsens age alone and drops rare labels; Mondrian keeps those, at the cost of race and marital status."""
    for k in KS:
        assert counted["mondrian", k]["penalty_all"] < 0.9 * counted["ola", k]["penalty_all"]
        assert (counted["mondrian", k]["penalty"] < counted["ola", k]["penalty"]) == (k >= 50)
    for k in KS:
        assert counted["ola", k]["penalty"] == pytest.approx(counted["ola", k]["penalty_age"] / 4)
    assert counted["mondrian", 50]["penalty_race"] > 0.1
    assert counted["mondrian", 50]["penalty_age"] < 0.2 * counted["ola", 50]["penalty_age"]


def test_heights_are_further_from_what_is_released_than_from_the_mean(reference_data: Path, counted: Counted) -> None:
    """Up to epsilon 5: the mean of a class errs by the spread of its heights, about 3%."""
    people = read_people(reference_data)
    for name in GROUPINGS:
        group = group_people(reference_data, name, 20).group
        off = [
            np.abs(people.heights[group == own] - people.heights[group == own].mean()) / people.heights[group == own]
            for own in range(int(group.max()) + 1)
        ]
        mean = counted[name, 20]["mean_error"]
        assert mean == pytest.approx(np.concatenate(off).mean())
        assert (
            noise(reference_data, name, 20, "10")["measured_error"]
            < mean
            < noise(reference_data, name, 20, "5")["measured_error"]
        )


def test_mondrian_is_linked_and_suppressed_more(reference_data: Path) -> None:
    """A guess links more in smaller classes, and fewer of them are in a box: nearly all go at epsilon 100 and k 100."""
    for k, linked, suppressed in ((10, 2.2, 2.5), (50, 6, 6)):
        ola, mondrian = (noise(reference_data, name, k, "10") for name in GROUPINGS)
        assert mondrian["chance"] > linked * ola["chance"]
        assert mondrian["linking"] > linked * ola["linking"]
        assert mondrian["exposed"] + mondrian["left_too_small"] > suppressed * (ola["exposed"] + ola["left_too_small"])
        assert mondrian["measured_error"] < 0.9 * ola["measured_error"]
        assert mondrian["measured_error"] == pytest.approx(mondrian["expected_error"], rel=0.03)
    assert 0.95 < noise(reference_data, "mondrian", 100, "100")["exposed"] < 1
    for k in KS[1:]:
        little, much = (noise(reference_data, "mondrian", k, epsilon) for epsilon in ("1", "5"))
        assert little["exposed"] + little["left_too_small"] < 0.002
        assert much["exposed"] + much["left_too_small"] > 0.021


def test_mondrian_is_linked_under_five_percent_for_smaller_epsilon(reference_data: Path) -> None:
    for k, under, over in ((2, "0.2", "1"), (5, "1", "5"), (100, "20", "50")):
        assert (
            noise(reference_data, "mondrian", k, under)["linking"]
            < 0.0475
            < 0.053
            < noise(reference_data, "mondrian", k, over)["linking"]
        )
    assert 0.04 < noise(reference_data, "mondrian", 2, "0.01")["chance"] < 0.045
