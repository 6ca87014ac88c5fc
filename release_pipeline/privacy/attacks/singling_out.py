"""Singling out: whether what is true of a single released row is true of a single person (GEM23)."""

from __future__ import annotations

import numpy as np

from release_pipeline.errors import InvalidArgument
from release_pipeline.privacy.attacks.control import Attack, People, judge
from release_pipeline.privacy.attacks.predicates import (
    MOST_COLUMNS,
    Side,
    make_by_chance,
    make_by_one_column,
    make_by_several_columns,
)
from release_pipeline.privacy.attacks.table import Attacked, Rows
from release_pipeline.privacy.noise import NoiseStream, shuffled_positions


def single_out(table: Attacked, *, stream: NoiseStream) -> tuple[Attack, Attack]:
    """How often what is true of a single released row is true of a single person: by one column, and by several.

    The people are halved. The attacker sees the released rows of the one half and makes predicates that exactly one of these rows
    meets, at most one predicate for each row, so that each success is another person's; a predicate succeeds if exactly one
    original of that half meets it, and in the control group if exactly one of the other half does, which is as large, so that no
    correction for size is needed. By one column: the least and the greatest number where they are unique, and values that occur
    once. By several: two to five random columns of a random row, each number no less than the row's if that is above the
    median and no greater otherwise, each category equal. At most 1,000 predicates are tried, made in at most 20,000 attempts,
    ten for a row; where none can be made the shares say that nothing was tried. `guess` is the success of predicates with
    random columns and random values of the released columns' ranges and categories.

    What halving costs: a row that k - 1 others equal is the only one left in its half once in 2^(k-1), so that small clusters
    seem to let more predicates be made (k = 5: one row in sixteen) than the whole table would.
    """
    order = shuffled_positions(len(table), stream)
    half = len(table) // 2
    targets, control = order[:half], order[half : 2 * half]
    return _single_out(table, targets, People(targets, control, targets), stream)


def single_out_beside(table: Attacked, people: People, *, stream: NoiseStream) -> tuple[Attack, Attack]:
    """The same where the table was made without the control group, its rows being somebody's or nobody's: predicates of as many
    of them as there are people, who are as many as those that it was made without."""
    if len(people.targets) != len(people.control):
        raise InvalidArgument("there must be as many people in the control group as others.", where="people")
    rows = people.left[shuffled_positions(len(people.left), stream)[: len(people.targets)]]
    return _single_out(table, rows, people, stream)


def _single_out(table: Attacked, rows: Rows, people: People, stream: NoiseStream) -> tuple[Attack, Attack]:
    targets, control = people.targets, people.control
    released = Side([column.released[rows] for column in table.columns])
    kinds = [column.is_numeric for column in table.columns]
    found = [make_by_one_column(released, kinds, stream), make_by_several_columns(released, kinds, stream)]
    guesses = [make_by_chance(released, kinds, stream, most=most) for most in (1, MOST_COLUMNS)]
    del released
    side = Side([column.of_people(targets) for column in table.columns])
    hits, lucky = ([side.single_out(predicates) for predicates in made] for made in (found, guesses))
    del side
    side = Side([column.of_people(control) for column in table.columns])
    misses = [side.single_out(predicates) for predicates in found]
    names = ("singling out by one column", "singling out by several columns")
    attacks: list[Attack] = []
    for name, predicates, hit, missed, luck in zip(names, found, hits, misses, lucky, strict=True):
        gain = np.zeros(len(table.columns))
        for predicate, difference in zip(predicates, hit.astype(np.int64) - missed, strict=True):
            gain[[column for column, _, _ in predicate]] += difference
        worst = table.columns[int(gain.argmax())].name if gain.max() > 0 else ""
        guess = float(luck.mean()) if len(luck) else 0.0
        attacks.append(judge(name, hit, missed, guess=guess, among=None, worst=worst))
    return attacks[0], attacks[1]
