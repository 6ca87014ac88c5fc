"""What lineage tells other programs of a stage that failed."""

from __future__ import annotations

import dagster as dg
import pytest

from release_pipeline.apps.dagster.emitting import REFUSED, describe_error
from release_pipeline.apps.dagster.operations import Refused
from release_pipeline.errors import GateFailed, StoreBusy

GATE = "the expected error of income is over the limit 1e-07 (the figure is in the vault)."


@pytest.mark.parametrize("error", [GateFailed(GATE, findings=(GATE,)), Refused("up to 10 records have something else.")])
def test_a_refusal_is_told_without_its_reason(error: BaseException) -> None:
    """A gate, or whatever else the flow refused."""
    assert describe_error(error) == REFUSED


def test_what_broke_is_told() -> None:
    """A database that is busy says nothing of records."""
    busy = StoreBusy("another process holds it.")
    assert describe_error(dg.Failure(str(busy))) == describe_error(busy) == "another process holds it."
