"""What rows near people tell of those that they were made of, and of strangers: with known answers."""

from __future__ import annotations

import numpy as np
import pytest

from release_pipeline.errors import InvalidArgument
from release_pipeline.mechanisms.attacks import Attacked, AttackedColumn, NearRows, People, find_near_rows

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


@pytest.mark.parametrize(("known", "secrets"), [((), ("income",)), (("nobody",), ("income",)), (("town",), ("nobody",))])
def test_what_no_table_has_is_refused(known: tuple[str, ...], secrets: tuple[str, ...]) -> None:
    table, drawn = put_together(draw(SIZE, 1), draw(SIZE, 2), draw(SIZE, 3))
    with pytest.raises(InvalidArgument, match="nothing is known, or a column"):
        find_near_rows(table, drawn, known=known, secrets=secrets)
