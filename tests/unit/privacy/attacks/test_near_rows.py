"""What rows near people tell of those that they were made of, and of strangers: with known answers."""

from __future__ import annotations

import numpy as np
import pytest

from release_pipeline.errors import InvalidArgument
from release_pipeline.privacy.attacks import Attacked, AttackedColumn, NearRows, People, find_closest, find_near_rows

SIZE = 200
NAMES = ("town", "age", "income", "ill")
QUASI, SECRETS = NAMES[:2], NAMES[2:]


def draw(count: int, seed: int) -> dict[str, np.ndarray]:
    """People of one law: incomes go with towns, illness with nothing."""
    numbers = np.random.default_rng(seed)
    town = numbers.integers(0, 5, count)
    return {
        "town": town,
        "age": numbers.integers(0, 80, count).astype(np.float64),
        "income": np.round(100.0 * town + numbers.normal(0, 200, count)),
        "ill": numbers.integers(0, 4, count),
    }


def attack(rows: dict[str, np.ndarray], people: dict[str, np.ndarray], strangers: dict[str, np.ndarray]) -> NearRows:
    table, drawn = put_together(rows, people, strangers)
    return find_near_rows(table, drawn, known=QUASI, secrets=SECRETS)


def put_together(
    rows: dict[str, np.ndarray], people: dict[str, np.ndarray], strangers: dict[str, np.ndarray]
) -> tuple[Attacked, People]:
    """Released rows first, then both kinds of people, whose released values nobody looks at."""
    columns: list[AttackedColumn] = []
    for name, released in rows.items():
        together = np.concatenate([released, people[name], strangers[name]])
        columns.append(AttackedColumn(name, together, together))
    count, size = len(next(iter(rows.values()))), len(next(iter(people.values())))
    place = np.arange(count + size + len(next(iter(strangers.values()))), dtype=np.intp)
    return Attacked(tuple(columns)), People(place[count : count + size], place[count + size :], place[:count])


def test_people_who_are_copied_into_the_table_are_found_and_strangers_are_not() -> None:
    """Every one of them has a row just like them, which gives the other columns away but for ties; of strangers a few are right
    by what goes together in all."""
    people, strangers = draw(SIZE, 1), draw(SIZE, 2)
    found = attack(people, people, strangers)
    assert found.known == QUASI
    assert found.equal.value == 1
    assert found.median == 0 < found.strangers_median
    assert found.strangers_equal.value < 0.7
    assert found.beyond.low > 0.2
    for claim in found.claims:
        assert claim.people.value > 0.7
        assert claim.beyond.low > 0.3
    assert found.overall is not None
    assert found.overall.people.value == pytest.approx(np.mean([claim.people.value for claim in found.claims]))
    assert found.overall.beyond.low > 0.3


def test_rows_of_others_tell_of_people_what_they_tell_of_strangers() -> None:
    """Rows are of the same law as both, and made of nobody: no difference is clear."""
    found = attack(draw(5 * SIZE, 3), draw(SIZE, 4), draw(SIZE, 5))
    assert found.overall is not None
    for beyond in (found.beyond, found.overall.beyond, *(claim.beyond for claim in found.claims)):
        assert beyond.low < 0 < beyond.high
    assert [claim.name for claim in found.claims] == list(SECRETS)


def test_a_share_of_copies_is_that_share() -> None:
    """Half of the people are copied: half of them have a row just like them, where ages tell everybody apart."""
    people, strangers = draw(SIZE, 6), draw(SIZE, 7)
    for number, some in enumerate((people, strangers)):
        some["age"] = 1_000.0 * (number + 1) + np.arange(SIZE)
    half = {name: values[: SIZE // 2] for name, values in people.items()}
    found = attack(half, people, strangers)
    assert (found.equal.value, found.strangers_equal.value) == (0.5, 0)
    assert found.beyond.value == 0.5


def test_ties_are_chances_and_numbers_are_right_within_the_tolerance() -> None:
    """Three rows in one town, one in the other; 5% of the mean absolute deviation from the median is 5% of 20 here."""
    rows = {"town": np.array([0, 0, 0, 1]), "income": np.array([0.0, 0.0, 40.0, 80.0])}
    people = {"town": np.array([0]), "income": np.array([0.9])}
    strangers = {"town": np.array([1]), "income": np.array([78.0])}
    table, drawn = put_together(rows, people, strangers)
    found = find_near_rows(table, drawn, known=["town"], secrets=["income"])
    [claim] = found.claims
    assert claim.people.value == pytest.approx(2 / 3)
    assert claim.strangers.value == 0
    nearer = find_near_rows(
        *put_together(rows, people, {**strangers, "income": np.array([78.8])}), known=["town"], secrets=["income"]
    )
    assert nearer.claims[0].strangers.value == 1


def test_a_column_without_range_makes_nobody_alike_who_has_another_value() -> None:
    """It has no distance, and still it tells people apart who are not like any row."""
    rows = {"town": np.array([1, 1, 1]), "age": np.array([30.0, 30.0, 30.0])}
    people = {"town": np.array([1, 1]), "age": np.array([30.0, 31.0])}
    table, drawn = put_together(rows, people, {name: values[:2] for name, values in people.items()})
    found = find_near_rows(table, drawn, known=["town", "age"], secrets=[])
    assert found.equal.value == 0.5
    assert (found.claims, found.overall) == ((), None)
    assert find_closest(table, drawn).equal.value == 0.5


def test_where_all_is_known_each_secret_is_sought_by_the_others() -> None:
    """Without quasi-identifiers the column itself is left out of what is known for it."""
    people, strangers = draw(SIZE, 8), draw(SIZE, 9)
    table, drawn = put_together(people, people, strangers)
    found = find_near_rows(table, drawn, known=NAMES, secrets=NAMES)
    claims = {claim.name: claim for claim in found.claims}
    assert set(claims) == set(NAMES)
    assert claims["ill"].people.value > 0.9
    assert claims["ill"].strangers.value < 0.5


@pytest.mark.parametrize(("known", "secrets"), [((), ("income",)), (("nobody",), ("income",)), (("town",), ("nobody",))])
def test_what_no_table_has_is_refused(known: tuple[str, ...], secrets: tuple[str, ...]) -> None:
    table, drawn = put_together(draw(SIZE, 1), draw(SIZE, 2), draw(SIZE, 3))
    with pytest.raises(InvalidArgument, match="nothing is known, or a column"):
        find_near_rows(table, drawn, known=known, secrets=secrets)
