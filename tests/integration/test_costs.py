"""How often one release reads, hashes, opens and groups: upper limits, so that it does not grow unseen. Counts, not timings."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from release_pipeline.flow import content
from release_pipeline.policy import Policy
from release_pipeline.policy.model import Policy as PolicyModel
from release_pipeline.stages.measures import groups
from release_pipeline.stages.strategies import columns
from release_pipeline.store import registry, rooms, vault
from release_pipeline.store.vault import ReleaseWorkspace
from tests.integration.sites import GX_WARNINGS, TinySite, make_rows, make_site

pytestmark = GX_WARNINGS

READS = {  # from the vault, in the stages that make or use a table: each reads once what it uses
    "raw": 3,  # ingest, and validate in two transactions: the judge is asked between them
    "records": 5,  # validate in two transactions, microaggregate, mask, audit; `freeze` asks for the sealed hash alone
    "people": 2,  # validate, and microaggregate: what comes later reads no persons
    "membership": 3,
    "statistics": 3,
    "masked": 2,
    "suppressed": 3,
}
NOISE_COLUMNS = 2


@pytest.fixture
def tiny(tmp_path: Path) -> TinySite:
    """A site with 400 records of each release."""
    return make_site(tmp_path / "site", rows=make_rows(400))


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each thing was done, under its name."""
    found: Counter[str] = Counter()

    def count(owner: Any, attribute: str, name: Callable[..., str]) -> None:
        done = getattr(owner, attribute)

        def counted(*given: Any, **named: Any) -> Any:
            found[name(*given)] += 1
            return done(*given, **named)

        monkeypatch.setattr(owner, attribute, counted)

    count(ReleaseWorkspace, "_load", lambda _workspace, table, _missing: f"read {table}")
    count(content, "fingerprint", lambda _values: "hash of a column")
    for module in (vault, rooms):
        count(module, "open_database", lambda *_: "opening of the vault")
    count(registry, "open_database", lambda *_: "opening of the registry")
    count(registry, "_read_event", lambda *_: "event read")
    count(PolicyModel, "canonical_json", lambda _policy: "canonical form")
    count(columns, "microaggregate", lambda *_: "clustering of a column")
    for user in ("release_pipeline.flow.release", "release_pipeline.stages.audit"):
        if hasattr(sys.modules[user], groups.measure_groups.__name__):
            count(sys.modules[user], groups.measure_groups.__name__, lambda *_: "measuring of groups")
    return found


def columns_hashed(policy: Policy, tables: dict[str, Any]) -> int:
    """How many columns are hashed in all when each stage hashes each table once that it uses; of `raw` the second half of
    `validate` uses the persons alone."""
    raw = sum(column.do != "drop" for column in policy.columns.values()) + 1  # and the person's
    whole = {**READS, "raw": READS["raw"] - 1}
    return 1 + sum(times * (raw if name == "raw" else tables[name].num_columns) for name, times in whole.items())


def test_the_stages_alone(tiny: TinySite, counts: Counter[str]) -> None:
    flow = tiny.flow()
    counts.clear()  # of what a person who starts it looks up first
    flow.run()
    assert {name: counts[f"read {name}"] for name in READS} == READS
    assert counts["hash of a column"] == columns_hashed(flow.policy, tiny.tables())
    assert counts["opening of the vault"] == 8
    assert counts["opening of the registry"] <= 9
    assert counts["canonical form"] <= 3  # one for the hash, one is noted, one is evidence
    assert counts["clustering of a column"] == 2 * NOISE_COLUMNS  # the ties of the release are known to its secret alone
    assert counts["measuring of groups"] == 1


def test_every_event_is_read_and_verified_once(tiny: TinySite, counts: Counter[str]) -> None:
    """As it is added, and as it is found in the next opening."""
    tiny.flow().run()
    assert counts["event read"] <= 2 * len(tiny.events())
