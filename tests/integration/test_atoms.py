"""Atoms from a policy to the reader: gates before the charge, the reviewers' page, the card, the package and the kit."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from release_pipeline.analyst import NoHonestAnswer, read_release, simulate
from release_pipeline.errors import GateFailed
from release_pipeline.stages.shape import lie_on_grid
from tests.integration.publishing import Keys, make_trusted_site, publish_release
from tests.integration.sites import Row, TinySite, make_rows, make_site

COLUMNS = """
  person: {role: identifier, do: drop}
  sex:    {role: quasi, do: keep, values: [0, 1], why: needed}
  income: {role: confidential, do: noise, domain: [-100, 1000], grid: 1, outside: fail, why: known, atoms: [0]}
  rent:   {role: confidential, do: noise, domain: [0, 100], grid: 0.5, outside: clamp, why: known}"""
PARTS = {"protect": "{method: idp-cbls, epsilon: 4, k: 5}", "columns": COLUMNS, "drop": "[town, name, remark]"}
ZEROS = 0.8


def zero_heavy_rows() -> list[Row]:
    """200 records of one release: most incomes are 0, some are losses."""
    rows = make_rows(200, releases=("1",))
    for place, row in enumerate(rows):
        row["income"] = "0" if place < ZEROS * 200 else str(place - 175 if place < 175 else 40 * (place - 174) - 7)
    return rows


def make(home: Path, gates: str = "{min_rows: 20}", **parts: str) -> TinySite:
    return make_site(home, rows=zero_heavy_rows(), gates=gates, releases='["1"]', **PARTS | parts)


@pytest.mark.parametrize(
    ("gate", "words"),
    [
        ("atom_share: {income: 0.0001}", "the expected difference of the share at an atom of income is over the limit 0.0001"),
    ],
)
def test_gates_refuse_before_the_charge(tmp_path: Path, gate: str, words: str) -> None:
    """With the figure in the vault and on the page, and not in the message; a limit that is met lets the release through."""
    tiny = make(tmp_path / "site", f"{{min_rows: 20, {gate}}}")
    with pytest.raises(GateFailed) as caught:
        tiny.flow().run()
    assert words in caught.value.in_full
    refused = json.loads((tiny.site.vault / "refused" / "people~1~r1.json").read_text())
    value = refused["gates"][0]["value"]
    assert value > 0.0001
    assert f"{value:.3g}" not in caught.value.in_full
    assert f"{value:.3g}" in (tiny.site.vault / "refused" / "people~1~r1.html").read_text(encoding="utf-8")
    assert tiny.charges() == []
    tiny.write_policy(**PARTS, releases='["1"]', gates=f"{{min_rows: 20, {gate.replace('0.0001', '0.5')}}}")
    tiny.flow().run()
    assert len(tiny.charges()) == 1


def test_card_package_and_kit_tell_of_atoms_and_grid(tmp_path: Path, keys: Keys) -> None:
    """The card names both, the Data Package the atoms; the kit declines the mean of the column, and simulates with its atoms."""
    tiny = make_trusted_site(tmp_path / "site", keys, rows=zero_heavy_rows(), releases='["1"]', **PARTS)
    package = publish_release(tiny, keys)
    card = json.loads((package / "privacy-card.json").read_text())
    assert (card["method"]["values"], card["method"]["grid"]) == ("inside", "on")
    assert [column["atoms"] for column in card["columns"]] == [[], ["0"], []]
    fields = json.loads((package / "datapackage.json").read_text())["resources"][0]["schema"]["fields"]
    assert "declared atoms 0" in next(field for field in fields if field["name"] == "income")["description"]
    release = read_release(package)
    for name, column in tiny.site.policy("people").noise_columns.items():
        assert lie_on_grid(column.exact_grid, release.data[name])
    assert release.facts.on_grid
    with pytest.raises(NoHonestAnswer, match="declared atoms were left where they are"):
        release.mean("income")
    assert any("Of income it declines the mean" in sentence for sentence in release.explain())
    made_up = {"income": np.append(np.zeros(160), np.arange(20.0, 1000, 24.5)), "rent": np.linspace(0, 100, 200)}
    made = simulate(made_up, card, secret=bytes(32))
    assert np.mean(made.data["income"] == 0) > 0.7
    assert np.array_equal(made.data["rent"] * 2, np.rint(made.data["rent"] * 2))
