"""Tables that `simulate` refuses because they would seem certain, those that it takes, and columns made up from released ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from release_pipeline.analyst import Facts, NoHonestAnswer, Release, simulate
from release_pipeline.analyst.facts import ColumnFacts
from tests.unit.analyst.cards import make_facts, noise

Numbers = npt.NDArray[np.float64]
Table = dict[str, Numbers]
ROWS, K, DRAWS = 2_000, 20, 8
SECRET = bytes(range(32))
INCOME, VISITS = noise("income", 200_000, epsilon="0.5"), noise("visits", 40, epsilon="0.5")


def people() -> Table:
    """Incomes nearly all different, and visits of which a third are 0: whole numbers from 0 to 40."""
    draw = np.random.default_rng(5)
    income = np.round(np.clip(draw.lognormal(9.5, 0.8, ROWS), 0, 200_000))
    visits = np.where(draw.random(ROWS) < 0.3, 0, np.minimum(np.round(draw.lognormal(1, 1, ROWS)), 40))
    return {"income": income, "visits": visits}


def facts_of(method: str, **changes: Any) -> Facts:
    """A release of both columns, order restored where it is free, clamped."""
    columns = [INCOME, VISITS]
    if method == "mdav":
        columns = [ColumnFacts(column.name, "centroid", "number", column.grid) for column in columns]
        changes = {**changes, "scope": "cluster"}
    isotonic = method in ("dp-um", "idp-ls", "idp-cbls") and changes.get("scope") != "centroid"
    options: dict[str, Any] = {"k": None if method == "laplace" else K, "clamped": True}
    options |= {"consistency": "isotonic" if isotonic else "none"}
    return make_facts(method, *columns, rows=ROWS, **(options | changes))


def publish(facts: Facts) -> Release:
    """The people, released."""
    return simulate(people(), facts, secret=SECRET)


def secrets() -> list[bytes]:
    """Fixed ones."""
    return [number.to_bytes(32, "big") for number in range(1, DRAWS + 1)]


def drop(table: Table, rows: int) -> Table:
    """Without the first rows."""
    return {name: values[rows:] for name, values in table.items()}


def draw_anew(table: Table) -> Table:
    """As many rows drawn with replacement."""
    rows = np.random.default_rng(7).integers(0, ROWS, ROWS)
    return {name: values[rows] for name, values in table.items()}


def add_one(table: Table) -> Table:
    """With one row of its own, in the middle of its ranks."""
    return {name: np.append(values, np.median(values)) for name, values in table.items()}


SPOILED: list[Callable[[Table], Table]] = [lambda table: table, lambda table: drop(table, 1), draw_anew, add_one]


@pytest.mark.parametrize("changes", [{}, {"scope": "centroid"}])
@pytest.mark.parametrize("method", ["dp-um", "idp-ls", "idp-cbls", "mdav"])
def test_the_values_of_the_release_are_refused_however_they_come(method: str, changes: dict[str, Any]) -> None:
    """All of them, without a row, drawn anew, with a row more: what its clusters did cannot be seen in any."""
    release = publish(facts_of(method, **changes))
    for spoil in SPOILED:
        with pytest.raises(NoHonestAnswer, match="seem certain"):
            simulate(spoil(dict(release.data)), release, secret=SECRET)


@pytest.mark.parametrize("method", ["laplace", "dp-um", "idp-ls", "idp-cbls", "mdav"])
def test_a_table_like_the_confidential_one_is_taken(method: str) -> None:
    """The confidential one itself, which has its zeros and whole numbers, and others like it: nothing of it is changed first."""
    release = publish(facts_of(method))
    table = people()
    for made in (table, drop(table, 3), draw_anew(table)):
        for like in (release, release.facts):
            again = simulate(made, like, secret=SECRET)
            assert again.facts.rows_in == len(made["income"])
    if method != "mdav":
        deviations = {float(simulate(table, release, secret=secret).data["income"].mean()) for secret in secrets()}
        assert len(deviations) == DRAWS
