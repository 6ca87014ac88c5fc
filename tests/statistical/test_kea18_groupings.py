"""KEA18's experiment with Mondrian's classes, beside OLA's: what it measures, and what it says of information loss."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from experiments.papers.kea18 import GROUPINGS, KS, QUASI, group_people, measure
from experiments.papers.runs import Setting

pytestmark = [pytest.mark.statistical, pytest.mark.slow]

SECRETS = [bytes(31) + bytes([run]) for run in (1, 2)]
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
