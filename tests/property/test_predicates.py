"""Very many predicates are looked at together: who meets each is what looking at row after row finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.privacy.attacks import predicates
from release_pipeline.privacy.attacks.predicates import Predicate, Side, make_by_several_columns
from release_pipeline.privacy.noise import noise_stream

SECRET = b"s" * 32
COLUMNS = st.integers(1, 5).flatmap(
    lambda m: st.lists(st.lists(st.integers(-3, 3), min_size=m, max_size=m), min_size=1, max_size=150).map(np.array)
)


def count_one_by_one(columns: list[npt.NDArray[Any]], predicate: Predicate) -> int:
    """Row after row."""
    meets = {"<=": lambda a, b: a <= b, ">=": lambda a, b: a >= b, "==": lambda a, b: a == b}
    return sum(all(meets[how](columns[column][row], value) for column, how, value in predicate) for row in range(len(columns[0])))


@given(table=COLUMNS, data=st.data())
def test_counts_together(table: npt.NDArray[np.int64], data: st.DataObject) -> None:
    """Whatever is compared how, of columns of any numbers with many alike."""
    columns = [table[:, place].astype(np.float64) for place in range(table.shape[1])]
    size = data.draw(st.integers(1, 20))
    values = [np.array(data.draw(st.lists(st.integers(-4, 4), min_size=size, max_size=size)), np.float64) for _ in columns]
    compared = [np.array(data.draw(st.lists(st.integers(0, 2), min_size=size, max_size=size)), np.intp) for _ in columns]
    chosen = np.array([data.draw(st.lists(st.booleans(), min_size=len(columns), max_size=len(columns))) for _ in range(size)])
    found = predicates._FirstRows(columns).count(values, compared, chosen)
    for number in range(size):
        predicate = tuple(
            (place, predicates._COMPARISONS[compared[place][number]], float(values[place][number]))
            for place in np.flatnonzero(chosen[number]).tolist()
        )
        assert found[number] == count_one_by_one(columns, predicate)


@pytest.mark.parametrize("first_look", [1, 40, 4_096])
@pytest.mark.parametrize("together", [1, 7, 1_024])
def test_predicates_do_not_depend_on_what_is_looked_at_first(
    monkeypatch: pytest.MonkeyPatch, first_look: int, together: int
) -> None:
    """Each is met by one row alone, and no row has two; as many as may be are made, whatever lies in a look or a part."""
    rng = np.random.default_rng(3)
    columns = [np.round(rng.lognormal(3, 1, 300)), rng.integers(0, 5, 300), np.round(rng.normal(0, 9, 300))]
    kinds = [True, False, True]
    whole = make_by_several_columns(Side(columns), kinds, noise_stream(SECRET, "predicates"))
    monkeypatch.setattr(predicates, "_FIRST_LOOK", first_look)
    monkeypatch.setattr(predicates, "_TOGETHER", together)
    assert make_by_several_columns(Side(columns), kinds, noise_stream(SECRET, "predicates")) == whole
    assert len(whole) == len(set(whole)) > 50
    assert all(count_one_by_one(columns, predicate) == 1 for predicate in whole)
    monkeypatch.setattr(predicates, "PREDICATES", 20)
    assert make_by_several_columns(Side(columns), kinds, noise_stream(SECRET, "predicates")) == whole[:20]
