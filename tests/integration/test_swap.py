"""Swapped values from the policy to the package: the limit on linkage, the promises in words, blocks over waves and revisions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from release_pipeline.apps.dagster.metadata import describe_column
from release_pipeline.errors import GateFailed
from release_pipeline.mechanisms.noise import SECRET_BYTES
from release_pipeline.operate.retention import prune
from release_pipeline.pipeline.opening import open_release, revise_release
from release_pipeline.pipeline.release import run_release
from release_pipeline.store import registry
from release_pipeline.store.vault_files import open_vault
from tests.integration.sites import PARTS, Row, TinySite, make_rows, make_site

SECRET = b"s" * SECRET_BYTES
SWAP = {
    "protect": "{method: dp-cdf, epsilon: 4, swap: {k: 10, within: kept}}",
    "columns": PARTS["columns"].replace("sex:    {role: quasi, do: keep", "sex:    {role: confidential, do: swap"),
    "suppress": "{quasi_groups_below: 10, at_most: 5%}",
    "gates": "{min_rows: 20, linkage: 10%, differencing_below: 0}",
    "cap": "epsilon: 40, definition: dp, scope: column",
}
PROMISE = "No row belongs to one person: each value of a row comes from one of at least 10 people with the same released town"


def site_of(home: Path, rows: list[Row] | None = None, **parts: str) -> TinySite:
    tiny = make_site(home, rows=make_rows(240) if rows is None else rows, **{**SWAP, **parts})
    tiny.fix_key(SECRET)  # the key of the noise has the keyed hash of the records
    return tiny


def blocks_of(tiny: TinySite, release: str = "1", revision: int = 1) -> dict[str, int]:
    """The block of each person, by the order of the source."""
    name = registry.ReleaseId("people", release, revision).workspace
    with open_vault(tiny.site.vault, "folk", wait=1) as rooms:
        room = rooms.open_workspace(name)
        assert room is not None
        blocks = room.read("swapped").column(0).to_pylist()
    persons = [row["person"] for row in read_rows(tiny) if row["year"] == release]
    return dict(zip(persons, blocks, strict=True))


def read_rows(tiny: TinySite) -> list[Row]:
    lines = (tiny.home / "people.csv").read_text().splitlines()
    return [dict(zip(lines[0].split(","), line.split(","), strict=True)) for line in lines[1:]]


def together(blocks: Mapping[str, int], among: set[str]) -> set[frozenset[str]]:
    """Who is in a block with whom."""
    numbers = {blocks[person] for person in among}
    return {frozenset(person for person in among if blocks[person] == number) for number in numbers}


def test_swapping_passes_the_limit_that_the_method_alone_fails(tmp_path: Path) -> None:
    """Whose refusal says with which blocks; nothing is simulated where blocks are large enough, and the limit is judged on
    simulated releases where they are not."""
    plain = site_of(tmp_path / "plain", protect="{method: dp-cdf, epsilon: 4}", columns=PARTS["columns"])
    with pytest.raises(GateFailed) as refused:
        run_release(plain.flow())
    assert ("swap with k 10 would bring this to at most 10% on average (`explore` with `--swap 10` tries it).") in str(
        refused.value.remedy
    )
    swapped = site_of(tmp_path / "swapped")
    said: list[str] = []
    facts = run_release(open_release(swapped.site, "people", "1", progress=said.append)).facts
    assert PROMISE in facts["claim"]
    assert "whole table: not bounded" in facts["claim"]
    assert not any("simulated release" in line for line in said)
    evidence = json.loads((swapped.folder() / "evidence.json").read_text())
    [gate] = [gate for gate in evidence["gates"] if "linkage" in gate["name"]]
    assert (gate["value"], gate["limit"]) == (0.1, 0.1)
    assert evidence["audit"]["linkage_ladder"][-1]["linked"]["value"] < 0.1 + 4 * np.sqrt(0.09 / 240)
    assert evidence["audit"]["suppressed"]["smallest_block"] >= 10
    small = site_of(tmp_path / "small", protect=SWAP["protect"].replace("k: 10", "k: 2"))
    with pytest.raises(GateFailed):
        run_release(small.flow())


def test_waves_and_revisions_share_blocks(tmp_path: Path) -> None:
    """Though numbers change: who is in two waves is there with all others of their block who are in both; newcomers are with
    newcomers. A wave that most people are left out of changes nothing for the next one, nor does removing its tables."""
    rows, random = make_rows(240), np.random.default_rng(3)
    later = [row for row in rows if row["year"] == "2"]
    for row in later:
        row["income"], row["rent"] = str(random.integers(0, 1000)), str(random.integers(0, 100))
    newcomers = [{**row, "person": f"new{number}"} for number, row in enumerate(later[:40])]
    extract = [row for row in rows if row["year"] == "1" or random.random() < 0.5]
    tiny = site_of(tmp_path / "site", rows=extract, retain="1 day")
    run_release(tiny.flow("1"))
    run_release(tiny.flow("2"))
    one, two = blocks_of(tiny, "1"), blocks_of(tiny, "2")
    both = one.keys() & two.keys()
    assert len(both) < len(one) - 50
    assert all(len({two[person] for person in block}) == 1 for block in together(one, both))
    prune(tiny.site, now=datetime.now(UTC) + timedelta(days=2))
    tiny.write_rows([row for row in rows if row["year"] == "1"] + later[10:] + newcomers)
    revise_release(tiny.site, "people", "2", why="a correction")
    run_release(tiny.flow("2"))
    again = blocks_of(tiny, "2", revision=2)
    both = one.keys() & again.keys()
    assert len(both) == len(one) - 10
    assert all(len({again[person] for person in block}) == 1 for block in together(one, both))
    new = again.keys() - one.keys()
    assert not {again[person] for person in new} & {again[person] for person in both}
    assert count_kept(tiny) == len(one.keys() | again.keys())


def count_kept(tiny: TinySite) -> int:
    """How many rows the vault keeps of who was in which block."""
    return tiny.query(tiny.site.vault / "folk.duckdb", "SELECT count(*) AS rows FROM main.swapped")[0]["rows"]


def test_lineage_says_what_was_done_to_each_column(tmp_path: Path) -> None:
    """For everybody who sees Dagster: with k, and with the least block of swapped ones."""
    protect = "{method: idp-cbls, epsilon: 2, k: 5, swap: {k: 10, within: kept}}"
    policy = site_of(tmp_path, protect=protect, cap="releases: 2").site.policy("people")
    assert "noise by idp-cbls, k = 5" in describe_column(policy, "income")
    for name in ("income", "sex"):
        assert "10 or more alike records" in describe_column(policy, name)
    assert "released as it is" in describe_column(policy, "town")
