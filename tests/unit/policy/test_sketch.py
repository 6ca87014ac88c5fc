"""`shape`: what a steward believes of the data. It is checked like the rest, and no part of what is approved."""

from __future__ import annotations

import pytest

from release_pipeline.errors import PolicyInvalid
from release_pipeline.policy import Policy, parse_policy
from tests.unit.policy.test_settings import TEXT

SHAPE = """\
shape:
  rows: 5000
  columns:
    income: {at: {0: 12%}, quantiles: {90%: 400, 50%: 100}}
    town: {shares: {north: 30%}}
"""


def read(shape: str = SHAPE) -> Policy:
    """The policy with a sketch."""
    return parse_policy(TEXT + shape, name="people.yaml")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("income: {at", "incom: {at"), "'incom' is no column that a table is made up of. Did you mean 'income'?"),
        (("90%: 400", "90%: 40"), "must ascend with their shares"),
        (("90%: 400", "90%: 4000"), "4000 is outside the domain."),
        (("at: {0: 12%}", "at: {0: 112%}"), "must be a percentage"),
        (("{north: 30%}", "{nort: 30%}"), "'nort' is not among its values. Did you mean 'north'?"),
        (("{north: 30%}", "{north: 30%, south: 30%}"), "these add up to 60%."),
        (("rows: 5000", "rows: 5"), "20"),
        (("town: {shares: {north: 30%}}", "town: {at: {0: 3%}}"), "at is for numbers."),
    ],
)
def test_what_it_cannot_say_is_told_with_its_line(change: tuple[str, str], told: str) -> None:
    """Like every other part."""
    with pytest.raises(PolicyInvalid) as refused:
        read(SHAPE.replace(*change))
    assert any(told in problem and ":3" in problem for problem in refused.value.problems), refused.value.problems
