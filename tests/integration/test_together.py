"""Several columns counted together by dp-table: from the policy to a package with the counts, and back from what is stored."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from release_pipeline.analyst import Release, read_release
from release_pipeline.formats.package import BLOCKS_FILE, PAIRS_FILE
from release_pipeline.masking.whole_table import BLOCKS, CELLS, PAIRS, are_sums, count_blocks, read_measured
from release_pipeline.mechanisms.whole_table import Design, Measured
from release_pipeline.mechanisms.whole_table.design import SummedNoise, find_homes, sum_block
from release_pipeline.mechanisms.whole_table.measure import list_sizes
from release_pipeline.policy.families.whole_table import WholeTableFamily, declare_columns
from release_pipeline.policy.file.options import WholeTableOptions
from release_pipeline.rows.columns import find_entries
from release_pipeline.trust.keys import PrivateKey
from tests.counting import count_together
from tests.integration.publishing import make_trusted_site, publish_release
from tests.integration.sites import Row, TinySite

ROWS = 900
COLUMNS = """
  person: {role: identifier, do: drop}
  town:   {role: quasi, do: synthesise, values: [north, south, east]}
  sex:    {role: quasi, do: synthesise, values: [0, 1], codes: {8: refused}}
  owner:  {role: quasi, do: synthesise, values: [rents, owns]}
  kind:   {role: quasi, do: synthesise, values: [a, b, c, d, e, f, g, h]}
  size:   {role: quasi, do: synthesise, values: [1, 2, 3, 4, 5]}
  sick:   {role: confidential, do: synthesise, values: [well, ill]}
  income: {role: confidential, do: synthesise, domain: [0, 1000], grid: 1, outside: fail, missing: keep, why: known}"""
PARTS = {
    "columns": COLUMNS,
    "protect": "{method: dp-table, epsilon: 6}",
    "gates": "{min_rows: 800}",
    "audit": "{groups: [town]}",
    "drop": "",
    "cap": "epsilon: 9, definition: dp, scope: table",
    "releases": '["1"]',
}
NAMES = ["income", "kind", "owner", "sex", "sick", "size", "town"]


def make_people() -> list[Row]:
    """People whose columns go together, three of them by more than their pairs."""
    random = np.random.default_rng(4)
    rows: list[Row] = []
    for number in range(ROWS):
        owner, sick = random.integers(0, 2, 2)
        rows.append(
            {
                "year": "1",
                "person": f"p{number}",
                "town": str(random.choice(["north", "south", "east"])),
                "sex": "8" if number % 20 == 0 else str(int(owner ^ sick) if random.random() < 0.9 else 0),
                "owner": ("rents", "owns")[owner],
                "kind": "abcdefgh"[int(random.integers(0, 4) + 4 * owner)],
                "size": str(int(random.integers(1, 6))),
                "sick": ("well", "ill")[sick],
                "income": "" if number % 30 == 0 else str(int(random.integers(0, 500) + 400 * owner)),
            }
        )
    return rows


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory, keys: Mapping[str, PrivateKey]) -> tuple[TinySite, Path]:
    """A site and the package of its release."""
    tiny, rows = make_trusted_site(tmp_path_factory.mktemp("together") / "site", keys, rows=[], **PARTS), make_people()
    tiny.write_rows(rows, header=list(rows[0]))
    return tiny, publish_release(tiny, keys)


@pytest.fixture(scope="module")
def release(package: tuple[TinySite, Path]) -> Release:
    return read_release(package[1])


def stored(tiny: TinySite) -> tuple[Design, Measured]:
    """What the vault has of the counts."""
    tables = tiny.tables()
    design = WholeTableFamily(WholeTableOptions).declare(tiny.site.policy("people"), ROWS)
    return design, read_measured(NAMES, design, tables[CELLS], tables[BLOCKS])


def test_what_is_stored_and_published_are_the_counts_of_the_records(package: tuple[TinySite, Path]) -> None:
    """With noise that loses no more than what is charged: blocks near to the exact counts, and pairs sums of them."""
    tiny, folder = package
    design, measured = stored(tiny)
    policy, tables = tiny.site.policy("people"), tiny.tables()
    assert list(declare_columns(policy.columns)) == NAMES
    assert 1 < len(measured.blocks) < 21
    assert count_blocks(tables[BLOCKS]) == len(measured.blocks)
    assert json.loads((tiny.folder() / "evidence.json").read_text())["facts"]["together"] == len(measured.blocks)
    assert design.loss_of_columns + sum(own.noise.loss for own in measured.blocks.values()) <= 6
    entries = {name: find_entries(policy.columns[name], tables["records"].column(name)) for name in NAMES}  # type: ignore[arg-type]
    grouped = [
        groups[cells.find(entries[name])].astype(np.uint16)
        for name, groups, cells in zip(NAMES, measured.groups, measured.cells, strict=True)
    ]
    published = pd.read_csv(folder / BLOCKS_FILE)
    start = 0
    for block, own in measured.blocks.items():
        exact = count_together([grouped[column] for column in block], own.counts.shape)
        assert 0 < np.abs(own.counts - exact).max() < 14 * own.noise.spread
        mine = published.iloc[start : start + exact.size]
        start += exact.size
        assert (mine["count"].to_numpy() == own.counts.ravel()).all()
        names = [title for title in published.columns if f"group_of_{title}" in published.columns]
        assert [mine[title].iloc[0] for title in names[: len(block)]] == [NAMES[column] for column in block]
        assert mine[names[len(block) :]].isna().all().all()
        groups = mine[[f"group_of_{title}" for title in names[: len(block)]]].to_numpy().astype(int)
        assert [tuple(row) for row in groups.tolist()] == list(np.ndindex(own.counts.shape))
        assert set(mine["noise"]) == {SummedNoise(own.noise).name}
    assert start == len(published)
    homes = find_homes(list(measured.blocks), list_sizes(measured.groups))
    pairs = pd.read_csv(folder / PAIRS_FILE)
    for (one, other), (block, terms) in homes.items():
        mine = pairs[(pairs["one"] == NAMES[one]) & (pairs["other"] == NAMES[other])]
        assert (mine["count"].to_numpy() == sum_block(measured.blocks[block].counts, block, (one, other)).ravel()).all()
        assert set(mine["noise"]) == {SummedNoise(measured.blocks[block].noise, terms).name}


def test_pairs_that_are_no_sums_are_counted_one_by_one(package: tuple[TinySite, Path]) -> None:
    """They have noise of their own, and there are no blocks: as the laws beside them say."""
    tables = package[0].tables()
    design, measured = stored(package[0])
    pairs = tables[PAIRS]
    assert are_sums(pairs)
    law = pa.array(["Laplace 99"] * pairs.num_rows)
    before = pairs.set_column(pairs.column_names.index("noise"), "noise", law)
    assert not are_sums(before)
    found = read_measured(NAMES, design, tables[CELLS], before)
    assert not found.blocks
    assert {sums.name for sums in found.noise.values()} == {"Laplace 99"}
    assert all((found.pairs[pair] == measured.pairs[pair]).all() for pair in design.pairs)
    assert list(found.tables) == list(design.pairs)
