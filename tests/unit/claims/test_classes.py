"""The classes that claims of (k,epsilon)-anonymity are attacked on."""

from __future__ import annotations

import re

import pytest

from release_pipeline.claims import audit
from release_pipeline.claims.suite import list_suite
from release_pipeline.claims.tables import make_classes

POLICY = list_suite()["k-epsilon, different values"]


@pytest.mark.parametrize("made", make_classes(POLICY)[::4], ids=lambda made: made.words)
def test_records_are_compared_that_agree_in_what_is_kept(made: audit.ClassTable) -> None:
    """Where entries of kept columns are counted nothing is claimed of two records that differ in them; some that agree differ in
    their numbers, or nothing would be tried."""
    size = len(made.units)
    [name] = POLICY.kept_columns
    kept = made.table.column(name).to_pylist()
    for copy in range(made.copies):
        of_copy = kept[copy * size : (copy + 1) * size]
        assert [[one == other for other in of_copy] for one in of_copy] == [[a == b for b in made.kept] for a in made.kept]
    views = list(audit._watch_records(POLICY, made, draws=1, purpose="views"))  # pyright: ignore[reportPrivateUsage]
    assert views
    for view in views:
        one, other = (int(number) - 1 for number in re.findall("[0-9]+", view))
        assert kept[one] == kept[other]
        assert (made.units[one] != made.units[other]).any()
