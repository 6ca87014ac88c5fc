"""Tables that `simulate` refuses because they would seem certain, those that it takes, and columns made up from released ones."""

from __future__ import annotations

import csv
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.analyst import Facts, NoHonestAnswer, Release, simulate, spread_ties
from release_pipeline.analyst.facts import ColumnFacts
from release_pipeline.errors import ReleasePipelineError
from release_pipeline.flow.demo import find_demo_data
from release_pipeline.policy import load_policy
from tests.integration.sites import ROOT
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


@pytest.mark.parametrize("method", ["idp-cbls", "mdav"])
def test_a_published_table_is_refused_by_the_card_alone(method: str) -> None:
    """Masked again it would come back as it was, deviation 0 in every draw: it says so, and what to do."""
    release = publish(facts_of(method))
    for secret in secrets():
        with pytest.raises(NoHonestAnswer, match="seem certain") as caught:
            simulate(release.data, release.facts, secret=secret)
        assert "spread_ties" in caught.value.in_full


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


@pytest.mark.parametrize(
    "ties",
    [
        np.where(np.arange(ROWS) < 0.936 * ROWS, 0, np.arange(ROWS)),  # zeros and a tail
        np.round(np.random.default_rng(2).normal(50, 9, ROWS)) * 1_000,  # heaps of thousands alone
        np.round(np.random.default_rng(3).integers(1, 6, ROWS)),  # five answers
    ],
)
def test_ties_that_data_have_are_no_sign_of_a_release(ties: Numbers) -> None:
    """They are not moved and not refused: in a true release such clusters get no noise either."""
    release = publish(facts_of("idp-cbls"))
    table = people() | {"income": np.random.default_rng(4).permutation(ties).astype(np.float64)}
    assert simulate(table, release, secret=SECRET).facts.rows_in == ROWS


def test_a_coarse_column_may_have_the_values_that_were_released() -> None:
    """Where most whole numbers are released ones, having them tells nothing: the confidential column has them too."""
    facts = make_facts("idp-cbls", noise("visits", 40, epsilon="20"), rows=ROWS, k=3, clamped=True, consistency="isotonic")
    table = {"visits": people()["visits"]}
    rounded = {"visits": np.round(simulate(table, facts, secret=SECRET).data["visits"])}
    assert np.isin(np.unique(table["visits"]), np.unique(rounded["visits"])).mean() > 0.5
    assert simulate(table, Release(facts, rounded), secret=SECRET).facts.rows_in == ROWS


@pytest.mark.statistical
def test_a_table_made_up_from_the_release_shows_how_far_figures_move() -> None:
    """Mean, median and a quantile of it move by half to twice of what those of the confidential table do. Rows of the published
    table drawn anew, passed with the card alone, would say less than a third of it."""
    release = publish(facts_of("idp-cbls"))
    made = {"income": spread_ties(release.data["income"]), "visits": spread_ties(release.data["visits"], keep=[0])}
    assert np.mean(made["visits"] == 0) == np.mean(release.data["visits"] == 0)
    figures: list[Callable[[Numbers], Any]] = [np.mean, np.median, lambda values: np.quantile(values, 0.9)]

    def moves(table: Table) -> Numbers:
        draws = [simulate(table, release.facts, secret=number.to_bytes(32, "big")).data["income"] for number in range(60)]
        moved = [[figure(drawn) - figure(table["income"]) for figure in figures] for drawn in draws]
        return np.sqrt(np.mean(np.square(moved), axis=0))

    true = moves(people())
    assert (np.abs(np.log2(moves(made) / true)) < 1).all()
    assert (moves(draw_anew(dict(release.data))) < true / 3).all()


@pytest.mark.slow
@pytest.mark.statistical
def test_the_right_way_on_the_demo() -> None:
    """As docs/analyst.md says it: the published wave is refused, and means of the table made up from it move by half to twice of
    what those of the original do."""
    policy = load_policy(ROOT / "policies" / "rand-hie.yaml")
    with find_demo_data().open(newline="") as file:
        wave = [row for row in csv.DictReader(file) if row["year"] == "1"]
    original = {name: np.array([float(row[name]) for row in wave]) for name in policy.noise_columns}
    columns = [
        ColumnFacts(name, "noise", "number", column.exact_grid, policy.column_epsilon[name])
        for name, column in policy.noise_columns.items()
    ]
    facts = make_facts("idp-cbls", *columns, rows=len(wave), k=policy.protect.k, clamped=True, consistency="isotonic")
    release = simulate(original, facts, secret=SECRET)
    with pytest.raises(NoHonestAnswer, match="seem certain"):
        simulate(release.data, release)
    zeros = ["mdvis", "outpdol"]
    made = {name: spread_ties(release.data[name], keep=[0] if name in zeros else []) for name in original}
    assert simulate(made, release).facts.rows_in == len(wave)

    def moves(table: Table) -> Numbers:
        start = [float(np.mean(column.grid.snap(table[column.name]))) for column in columns if column.grid is not None]
        draws = [simulate(table, release.facts, secret=number.to_bytes(32, "big")).data for number in range(40)]
        return np.sqrt(
            np.mean([[(np.mean(drawn[c.name]) - s) ** 2 for c, s in zip(columns, start, strict=True)] for drawn in draws], 0)
        )

    assert (np.abs(np.log2(moves(made) / moves(original))) < 1).all()


@given(st.lists(st.integers(0, 30), min_size=1, max_size=40), st.sets(st.integers(0, 30), max_size=3))
def test_spread_values_keep_their_order_and_their_ends(values: list[int], keep: set[int]) -> None:
    """Records that shared a value lie between its neighbours; what is kept, or stood alone, is as it was."""
    given_values = np.array(values, dtype=np.float64)
    spread = spread_ties(values, keep=sorted(keep))
    between = np.unique(given_values)
    for value, made in zip(given_values, spread, strict=True):
        place = int(np.searchsorted(between, value))
        assert place == 0 or made >= between[place - 1] - 1e-9
        assert place == len(between) - 1 or made <= between[place + 1] + 1e-9
    by_value = np.lexsort((spread, given_values))
    assert (np.diff(spread[by_value]) >= -1e-9).all()
    stays = np.isin(given_values, sorted(keep))
    assert np.array_equal(spread[stays], given_values[stays])
    alone = np.isin(given_values, [value for value in values if values.count(value) == 1])
    assert np.allclose(spread[alone], given_values[alone])


@pytest.mark.parametrize("values", [[], [np.nan, 1.0], ["a"], [[1.0]]])
def test_what_is_no_column_is_refused_in_words(values: list[Any]) -> None:
    """Not by a crash."""
    with pytest.raises(ReleasePipelineError):
        spread_ties(values)
