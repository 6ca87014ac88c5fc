"""Weights made of published tables: known answers, what they add up to, and what is said of them."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.analyst.facts import ColumnFacts, Facts, LevelFacts, NoHonestAnswer, TableFacts, WeightFacts
from release_pipeline.analyst.release import Release
from release_pipeline.analyst.tables import Level, Table
from release_pipeline.errors import InvalidArgument, InvalidType
from release_pipeline.privacy.calibration import measure_gap, rake
from release_pipeline.privacy.tables import CellNoise
from tests.unit.analyst.cards import make_facts

NOISE = CellNoise("Laplace", Fraction(2))
W = WeightFacts("w", Fraction(1), Fraction(400))


def test_raking_has_the_known_answer() -> None:
    """Of a table of two margins whose inside is independent, the products of the margins; IPF keeps the rows' own odds ratio."""
    first, second = np.repeat([0, 0, 1, 1], [10, 10, 10, 10]), np.tile(np.repeat([0, 1], 10), 2)
    weights = rake(
        [first, second], [np.array([600.0, 200.0]), np.array([200.0, 600.0])], least=Fraction(1), step=Fraction(1, 100)
    )
    cells = np.bincount(2 * first + second, weights)
    np.testing.assert_allclose(cells, [150, 450, 50, 150], rtol=1e-3)


@given(st.data())
def test_weights_are_positive_steps_that_add_up(data: st.DataObject) -> None:
    """To every total of a single table whose cells have rows, to half a step for each row."""
    rows = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=40))
    cell = np.array(rows, dtype=np.int64)
    step = data.draw(st.sampled_from([Fraction(1, 4), Fraction(1), Fraction(5)]))
    total = np.array(data.draw(st.lists(st.integers(0, 5000), min_size=4, max_size=4)), dtype=np.float64)
    size = np.bincount(cell, minlength=4)
    total = np.where(size > 0, np.maximum(total, 5.0 * size), 0.0)
    weights = rake([cell], [total], least=Fraction(1), step=step)
    assert (weights >= float(step)).all()
    assert ((weights / float(step)) % 1 == 0).all()
    assert (np.abs(np.bincount(cell, weights, 4) - total) <= (size / 2 + 1e-6) * float(step)).all()


def test_cells_that_cannot_be_met_leave_all_weights_positive() -> None:
    """A cell without rows, totals of 0 with rows, tables that add up to something else, and margins that contradict the rows."""
    first, second = np.array([0, 0, 1, 2]), np.array([0, 1, 1, 1])
    weights = rake([first, second], [np.array([0.0, 50, 50, 900]), np.array([10.0, 20])], least=Fraction(1), step=Fraction(1))
    assert (weights >= 1).all()
    assert weights.sum() == pytest.approx(1000, rel=0.01)
    assert rake([np.array([0])], [np.array([0.0])], least=Fraction(0), step=Fraction(1, 2)).tolist() == [0.5]
    with pytest.raises(InvalidArgument, match="no rows or no totals"):
        rake([], [], least=Fraction(1), step=Fraction(1))


def test_the_same_input_gives_the_same_bytes_in_any_order_of_equal_rows() -> None:
    """Equal rows have equal weights; a hash that was noted once is the same on every machine."""
    numbers = np.random.default_rng(4)
    cells = [numbers.integers(0, 7, 5000), numbers.integers(0, 3, 5000)]
    totals = [numbers.integers(1000, 90_000, size).astype(np.float64) for size in (7, 3)]
    weights = rake(cells, totals, least=Fraction(1), step=Fraction(1, 4))
    again = rake([cell.copy() for cell in cells], [total.copy() for total in totals], least=Fraction(1), step=Fraction(1, 4))
    assert weights.tobytes() == again.tobytes()
    for pair in np.unique(np.column_stack(cells), axis=0):
        assert len(set(weights[(cells[0] == pair[0]) & (cells[1] == pair[1])].tolist())) == 1
    digest = hashlib.sha256((weights * 4).astype("<i8").tobytes()).hexdigest()
    assert digest == "c0144ab3c9a122d38de0b7d7da7ae8c62cbbd5425709fcf76a2f6dab9e81be7f"


def make_release(*, value: tuple[int, ...] = (300, 100)) -> Release:
    """Four rows of two towns, and a weighted table of these."""
    columns = ColumnFacts("town", "keep", "string"), ColumnFacts("age", "keep", "integer")
    facts: Facts = make_facts("laplace", *columns, rows=4)
    made: dict[str, Table] = {}
    for name, by, labels, numbers in (
        ("people", "town", ["a", "b"], value),
        ("ages", "age", ["1", "2"], (200, 200)),
        ("places", "place", ["x", "y"], (1, 1)),
        ("groups", "town", ["all", "none"], (1, 1)),
    ):
        table = TableFacts(name, f"data.table-{name}.csv", (by,), None, Fraction(1), (LevelFacts(0, 2, NOISE),), weight=W)
        level = Level(table.levels[0], {by: np.array(labels)}, {}, np.zeros(2, dtype=np.int64), np.array(numbers))
        made[name] = Table(table, facts, (level,))
    plain = replace(made["people"].facts, name="plain", weight=None)
    made["plain"] = Table(plain, facts, made["people"].levels)
    data = {"town": np.array(["a", "a", "b", "b"]), "age": np.array([1.0, 2.0, 1.0, 2.0])}
    return Release(facts, data, tables=made)


def test_an_analyst_gets_a_column_of_weights_and_a_mean_with_honest_words() -> None:
    """The estimate is by these weights; the interval is that of any weights at all."""
    release = make_release().with_weights("w", ["people", "ages"])
    assert release.data["w"].tolist() == [150, 150, 50, 50]
    women = release.with_exact("b", (release.data["town"] == "b").astype(float))
    found = women.mean("b", weights="w")
    assert (found.estimate, found.low, found.high, found.kind) == (0.25, 0, 1, "bound")
    assert "not those of the survey" in found.words
    assert women.mean("b").estimate == 0.5


@pytest.mark.parametrize(
    ("tables", "kind", "words"),
    [
        (["plain"], NoHonestAnswer, "only weighted counts"),
        (["places"], NoHonestAnswer, "no column place"),
        (["groups"], NoHonestAnswer, "labels that the table groups does not have"),
        ([], InvalidArgument, "at least one is named"),
        ("people", InvalidType, "in a list"),
        (["nope"], InvalidArgument, "no such table"),
    ],
)
def test_what_no_weights_can_be_made_of_is_declined(tables: list[str], kind: type[Exception], words: str) -> None:
    """With the reason, and a way out."""
    with pytest.raises(kind, match=words):
        make_release().with_weights("w", tables)


def test_blank_cells_and_a_name_that_is_taken_are_refused() -> None:
    """Suppression blanks cells: such rows are in no cell of a table."""
    release = make_release()
    with pytest.raises(NoHonestAnswer, match="blank cells"):
        replace(release, data={**release.data, "town": np.array(["a", "", "b", "b"])}).with_weights("w", ["people"])
    with pytest.raises(InvalidArgument, match="column of this name"):
        release.with_weights("age", ["people"])


@given(st.data())
def test_trimmed_weights_lie_within_their_bounds_and_the_gap_is_what_is_missed(data: st.DataObject) -> None:
    """Whatever the totals; and where the bounds bind nowhere, no total is missed by more than rounding."""
    cell = np.array(data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=40)), dtype=np.int64)
    total = np.array(data.draw(st.lists(st.integers(-50, 5000), min_size=4, max_size=4)), dtype=np.float64)
    least, most = Fraction(2), Fraction(40)
    weights = rake([cell], [total], least=least, most=most, step=Fraction(1, 2), every=True)
    assert ((weights >= 2) & (weights <= 40)).all()
    assert ((weights * 2) % 1 == 0).all()
    [gap] = measure_gap([cell], [total], weights)
    off = max(abs(weights[cell == place].sum() - total[place]) for place in range(4))
    assert gap == pytest.approx(off / max(np.maximum(total, 0).sum(), 1))
    size = np.bincount(cell, minlength=4)
    if ((total >= 3 * size) & (total <= 39 * size) & ((size > 0) | (total == 0))).all():
        assert off <= size.max() / 4 + 1e-6
