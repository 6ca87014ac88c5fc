"""The audit of what dp-table claims: nothing breaks it, and every planted fault is seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from experiments.claims import list_suite
from release_pipeline.claims.audit import Effort, Finding, audit_promise
from release_pipeline.claims.promises import list_promises
from release_pipeline.claims.views import make_whole_pairs
from release_pipeline.masking import whole_table
from release_pipeline.mechanisms.basis.grid import IntArray
from release_pipeline.mechanisms.basis.tally import Tally
from release_pipeline.mechanisms.basis.utility import find_quantiles
from release_pipeline.mechanisms.by_value.noise_laws import LaplaceNoise
from release_pipeline.mechanisms.noise import NoiseStream
from release_pipeline.mechanisms.whole_table import measure
from release_pipeline.mechanisms.whole_table.cells import Cells
from release_pipeline.mechanisms.whole_table.cuts import CutLaw, Node
from release_pipeline.mechanisms.whole_table.design import Design, TableBudget
from release_pipeline.mechanisms.whole_table.measure import Stream

pytestmark = [pytest.mark.statistical, pytest.mark.slow]
SUITE = list_suite()
EFFORT = Effort(explore=0, prove=0, classes=0, counted=0, counts=1_000)
PATCH = pytest.MonkeyPatch


def audit(name: str = "dp-table") -> Finding:
    """What is found of the one promise of a policy."""
    [promise] = list_promises(SUITE[name])
    return audit_promise(SUITE[name], promise, EFFORT)


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("dp-table", 0.08),
        ("dp-table, two records per person", 0.2),
        ("dp-table, by rho", 0.1),
    ],
)
def test_the_claim_holds_and_something_of_it_is_proved(name: str, least: float) -> None:
    """It is the sum of many small losses, whose worst outcomes are rare together: a part of it is proved, by few draws."""
    found = audit(name)
    assert found.holds
    assert found.proved is not None
    assert found.proved >= least * found.claimed


@pytest.mark.parametrize("name", [name for name, policy in SUITE.items() if policy.protect.is_synthetic])
def test_tables_differ_in_one_person_and_are_made_of_declared_entries(name: str) -> None:
    """The others have the same records in both, and every entry can be read."""
    policy = SUITE[name]
    for pair in make_whole_pairs(policy):
        assert pair.first.num_rows == pair.second.num_rows
        rows = [Counter(map(str, table.to_pylist())) for table in (pair.first, pair.second)]
        assert (rows[0] - rows[1]).total() == (rows[1] - rows[0]).total() == policy.records_per_person
        for column_name, column in policy.noise_columns.items():
            values = np.concatenate([table.column(column_name).to_numpy() for table in (pair.first, pair.second)])
            assert values.min() >= float(column.domain[0])
            assert values.max() <= max(float(column.domain[1]), *column.reason_points, 0)
        for entry_name, listed in policy.listed_columns.items():
            entries = {*pair.first.column(entry_name).to_pylist(), *pair.second.column(entry_name).to_pylist()}
            assert entries <= {*listed.declared_texts, *listed.codes}


def _middle(self: CutLaw, values: Tally, node: Node, stream: NoiseStream) -> int:
    """A cut at the exact median, or next to it."""
    middle = int(find_quantiles(values, [0.5])[0]) if len(values) else sum(node) // 2
    return min(max(middle, node[0] + 1), node[1] - 1)


def _a_tenth(self: TableBudget, share: Fraction) -> LaplaceNoise:
    """Noise of a tenth of the scale."""
    return LaplaceNoise(max(int(2 / share) // 10, 1))


def _the_same(secret: bytes, context: Any) -> Any:
    """A stream that depends on no column."""
    streams = SAME_AS_BUILT(secret, context)
    return lambda purpose, *_: streams(purpose, 0)


def _add_up(entries: Tally, design: Design, place: int, stream: Stream) -> tuple[Cells, IntArray]:
    """Cells whose values add up to as many records as have one: the last takes what the noise of the others made of it."""
    cells, margin = COUNTED_AS_BUILT(entries, design, place, stream)
    last = len(cells.edges) - 2
    margin[last] = entries.count_up_to(cells.column.width) - margin[:last].sum()
    return cells, margin


SAME_AS_BUILT = whole_table._streams  # pyright: ignore[reportPrivateUsage]
COUNTED_AS_BUILT = measure.measure_column
FAULTS: dict[str, Callable[[PATCH], None]] = {
    "a cut without noise": lambda patch: patch.setattr(CutLaw, "draw", _middle),
    "counts with a tenth of the noise": lambda patch: patch.setattr(TableBudget, "noise_of", _a_tenth),
    "the same noise in all pairs": lambda patch: patch.setattr(whole_table, "_streams", _the_same),
    "margins of the true total": lambda patch: patch.setattr(measure, "measure_column", _add_up),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_seen(fault: str, monkeypatch: PATCH) -> None:
    """Whether in cut points, in counts, in what these add up to, or between the tables of two pairs."""
    FAULTS[fault](monkeypatch)
    found = audit()
    assert not found.holds, f"{found.proved} of {found.claimed} by {found.view}"
