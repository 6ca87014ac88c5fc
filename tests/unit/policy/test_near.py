"""Who names a column that is not there is asked whether another one was meant."""

from __future__ import annotations

import pytest

from release_pipeline.errors import PolicyInvalid
from release_pipeline.policy.load import parse_policy
from tests.integration.sites import policy_text


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"gates": "{expected_error: {incom: 0.2}}"}, "'incom' is not a column with do: noise. Did you mean 'income'?"),
        ({"gates": "{expected_error: {town: 0.2}}"}, "'town' is not a column with do: noise. Remove it."),
        ({"audit": "{groups: [twon]}"}, "Did you mean 'town'?"),
        ({"person": "{column: persn}"}, "'persn' is not declared under columns. Did you mean 'person'?"),
        (
            {"person": "{column: name}"},
            "'name' is under drop, and not declared under columns. Move it there: name: {role: identifier, do: drop}.",
        ),
        ({"tables": "{heads: {by: twn, epsilon: 1}}"}, "'twn' is not declared under columns. Did you mean 'town'?"),
        ({"derive": "{sex: {bands: incom, at: [5], labels: [a, b]}}"}, "Did you mean 'income'?"),
    ],
)
def test_a_name_that_is_nearly_one_is_asked_for(parts: dict[str, str], words: str) -> None:
    """Where something like it could stand; else what to do."""
    with pytest.raises(PolicyInvalid) as refused:
        parse_policy(policy_text(**parts), name="people")
    assert any(words in str(fault) for fault in refused.value.faults), refused.value.faults
