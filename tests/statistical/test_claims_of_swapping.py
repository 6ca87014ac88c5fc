"""The audit of what swapping promises: it breaks nothing that holds, comes near the share, and sees planted faults."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from release_pipeline.claims.trials import release_each
from release_pipeline.errors import Blocked
from release_pipeline.masking import swapping
from release_pipeline.masking.swapping import SwapStrategy
from release_pipeline.mechanisms.noise import noise_stream
from tests.statistical.auditing import SUITE, audit, audit_closely

pytestmark = [pytest.mark.statistical, pytest.mark.slow]
PATCH = pytest.MonkeyPatch
SWAPPED = "idp-cbls, swapped"


@pytest.mark.parametrize("name", [name for name, policy in SUITE.items() if policy.swap is not None])
def test_values_come_from_blocks_and_from_the_own_record_by_chance(name: str) -> None:
    policy = SUITE[name]
    blocks, links = audit_closely(name, "blocks"), audit_closely(name, "links")
    assert blocks.holds
    assert blocks.proved == policy.block_size
    assert links.holds
    assert links.proved is not None
    assert links.proved >= 0.6 * links.claimed, "some blocks are as small as they may be"


def test_one_permutation_for_two_columns_is_seen(monkeypatch: PATCH) -> None:
    """The values of a row would all be of one other record."""
    monkeypatch.setattr(swapping, "noise_stream", lambda secret, *context: noise_stream(secret, "the same for all columns"))
    found = audit(SWAPPED, covers="links")
    assert not found.holds
    assert found.view.endswith("of one record")


def test_values_that_mostly_stay_are_seen(monkeypatch: PATCH) -> None:
    """Every second value stays in its own row, though all come from the block."""
    real = swapping.swap_positions

    def lazy(block: Any, stream: Any) -> Any:
        source = real(block, stream)
        return np.where(source[source] == np.arange(len(source)), np.arange(len(source)), source)

    monkeypatch.setattr(swapping, "swap_positions", lazy)
    assert not audit(SWAPPED, covers="links").holds


@pytest.mark.parametrize("fault", ["blocks of one less", "a kept column left out"])
def test_blocks_that_are_too_small_or_mixed_are_seen(fault: str, monkeypatch: PATCH) -> None:
    """And a release with such blocks would be stopped, too."""
    if fault == "blocks of one less":
        real = swapping.make_blocks
        monkeypatch.setattr(swapping, "make_blocks", lambda features, cell, k, **rest: real(features, cell, k - 1, **rest))
    else:

        def one_cell(self: SwapStrategy, read: Any) -> Any:
            return np.zeros(read("records", ["a"]).num_rows, dtype=np.int64)

        monkeypatch.setattr(SwapStrategy, "_find_cells", one_cell)
    with pytest.raises(Blocked, match="do not fit the groups"):
        audit(SWAPPED, covers="blocks")
    monkeypatch.setattr(SwapStrategy, "suppress", lambda self, read, masked: self.strategy.suppress(read, masked))
    assert not audit(SWAPPED, covers="blocks").holds


def test_claims_of_columns_do_not_read_rows_as_those_of_their_records() -> None:
    """The value of a record's own cluster is what the method gave it, not what swapping put into its row."""
    policy = SUITE[SWAPPED]
    rows = 40
    table = pa.table(
        {
            "a": np.repeat([0.0, 1000.0], rows // 2),
            "site": pa.array([1] * rows),
            "ill": ["a"] * rows,
        }
    )
    [seen] = release_each(policy, [table.select(list(policy.released_columns))], draws=1, purpose="test")
    for cluster in np.unique(seen.cluster["a"]):
        assert len(np.unique(seen.values["a"][0, seen.cluster["a"] == cluster])) == 1
