"""The ladder of linkage, by brute force: kept columns, blank cells, classes, sets of masked columns."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from release_pipeline.audit.compared import Compared
from release_pipeline.audit.linkage import LEAST_NOISE, measure_ladder
from release_pipeline.mechanisms.noise import noise_stream
from release_pipeline.policy import Policy, parse_policy
from release_pipeline.rows.columns import read_tables

SECRET = bytes(32)
NAMES = ("a", "b", "c")


def policy_of(masked: int = 3, *, kept: bool = True) -> Policy:
    """A policy of two kept columns and some masked ones."""
    columns = "".join(
        f"  {name}: {{role: quasi, do: keep, values: [x, y, z], why: needed}}\n" for name in ("town", "sex") if kept
    )
    columns += "".join(
        f"  {name}: {{role: confidential, do: noise, domain: [0, 50], grid: 1, outside: clamp, why: known}}\n"
        for name in NAMES[:masked]
    )
    return parse_policy(
        "policy: people\nsteward: ana\npopulation: folk\nsource: {path: people.csv}\nperson: each-row\nreleases: once\n"
        f"protect: {{method: dp-cdf, epsilon: 2}}\ncolumns:\n{columns}gates: {{min_rows: 10}}\n",
        name="people.yaml",
    )


def make_compared(policy: Policy, rows: int = 40, *, seed: int = 3, blank: float = 0.0, classes: bool = False) -> Compared:
    """A release of most of some records, moved a bit, where some cells of kept columns are blank."""
    random = np.random.default_rng(seed)
    records: dict[str, Any] = {name: random.choice(["x", "y", "z"], rows) for name in policy.kept_columns}
    records |= {name: random.integers(0, 60, rows).astype(np.float64) for name in policy.noise_columns}  # some beyond 50
    own = random.permutation(rows)[: rows - 7]
    released: dict[str, Any] = {}
    for name in policy.kept_columns:
        is_blank = random.random(len(own)) < blank
        released[name] = pa.array([None if none else entry for none, entry in zip(is_blank, records[name][own], strict=True)])
    for name in policy.noise_columns:
        moved = np.clip(records[name][own] + random.integers(-4, 5, len(own)), 0, 50)
        released[name] = pa.array(moved.astype(np.float64))
    group = random.integers(-1, 4, rows) if classes else None
    table = pa.table(released)
    return Compared(policy, read_tables({"records": pa.table(records)}), table, own, table, classes=group)


def link_by_hand(compared: Compared, masked: tuple[str, ...], *, by_noise: bool = False) -> float:
    """The share of all released rows, row by row; `by_noise`: by weights that fall with the noise of a column."""
    policy, shares = compared.policy, list[float]()
    original = {name: compared.original(name).to_pylist() for name in policy.kept_columns}
    seen = {name: compared.seen(name) for name in masked}
    unit = {name: float(np.std(seen[name])) for name in masked}
    if by_noise:
        for name in masked:
            off = compared.released.column(name).to_numpy() - seen[name][compared.original_of]
            unit[name] *= max(float(np.sqrt(np.mean((off / unit[name]) ** 2))), LEAST_NOISE)
    for row, own in enumerate(compared.original_of.tolist()):
        cells = {name: compared.released.column(name)[row].as_py() for name in policy.kept_columns}
        alike = [
            i
            for i in range(compared.originals)
            if all(cell is None or original[name][i] == cell for name, cell in cells.items())
            and (compared.classes is None or compared.classes[i] == compared.classes[own])
        ]
        distance = {
            i: round(
                sum(((seen[name][i] - compared.released.column(name)[row].as_py()) / unit[name]) ** 2 for name in masked),
                9,
            )
            for i in alike
        }
        nearest = [i for i in alike if distance[i] == min(distance.values())]
        shares.append((own in nearest) / len(nearest))
    return float(np.mean(shares))


@pytest.mark.parametrize("classes", [False, True])
@pytest.mark.parametrize("blank", [0.0, 0.3])
@pytest.mark.parametrize("seed", [1, 2])
def test_every_rung_is_that_of_all_pairs_of_rows(seed: int, blank: float, classes: bool) -> None:
    """The best set, the median over all sets, and the guess within what is known of kept columns."""
    compared = make_compared(policy_of(), seed=seed, blank=blank, classes=classes)
    rungs = measure_ladder(compared, noise_stream(SECRET))
    guess = link_by_hand(compared, ())
    assert [rung.masked for rung in rungs] == [0, 1, 2, 3]
    assert [rung.control for rung in rungs] == pytest.approx([1 / 40, guess, guess, guess])
    for rung in rungs[:-1]:
        by_hand = {names: link_by_hand(compared, names) for names in combinations(NAMES, rung.masked)}
        assert rung.linked.value == pytest.approx(max(by_hand.values()))
        assert by_hand[rung.columns] == pytest.approx(rung.linked.value)
        assert rung.median == pytest.approx(np.median(list(by_hand.values())))
        assert (rung.tried, rung.sets, rung.linked.tried) == (len(by_hand), len(by_hand), 33)
    lower = max(rung.linked.value for rung in rungs[:-1])
    top = max(lower, link_by_hand(compared, NAMES), link_by_hand(compared, NAMES, by_noise=True))
    assert rungs[-1].linked.value == rungs[-1].median == pytest.approx(top)
