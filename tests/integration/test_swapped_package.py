"""What everybody reads of swapped values: page, card, note, papers, lineage and the analyst's kit of one published release."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest

from release_pipeline.analyst import NoHonestAnswer, read_release, simulate
from release_pipeline.flow.evidence import AuditFigures, load_evidence
from release_pipeline.flow.origins import list_columns
from release_pipeline.policy.plan import describe_plan, make_plan
from tests.integration.publishing import Keys, make_trusted_site, publish_release, read_folder
from tests.integration.sites import TinySite, make_rows

pytestmark = pytest.mark.slow
COLUMNS = """
  person: {role: identifier, do: drop}
  remark: {role: confidential, do: drop}
  town:   {role: quasi, do: keep, values: [north, south, east], why: needed}
  sex:    {role: quasi, do: keep, values: [0, 1], why: needed}
  name:   {role: confidential, do: swap, values: [a, b, c], why: needed}
  income: {role: confidential, do: noise, domain: [0, 1000], grid: 1, outside: fail, why: known}
  rent:   {role: confidential, do: noise, domain: [0, 100], grid: 0.5, outside: clamp, why: known}"""
PROTECT = "{method: idp-cbls, epsilon: 4, k: 3, swap: {k: 10, within: kept}}"


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory, keys: Keys) -> tuple[TinySite, Path]:
    """A site, and the package of its release."""
    drawn = random.Random(1)  # noqa: S311
    rows = [{**row, "name": drawn.choice("abc")} for row in make_rows(240, releases=["1"])]
    tiny = make_trusted_site(
        tmp_path_factory.mktemp("site") / "home",
        keys,
        rows=rows,
        protect=PROTECT,
        columns=COLUMNS,
        drop="",
        gates="{min_rows: 20, linkage: 10%, l_diversity: {name: 2}}",
        suppress="{quasi_groups_below: 10, at_most: 50%}",
        audit="{predict: {income: {above: 300}}, groups: [town, name]}",
    )
    return tiny, publish_release(tiny, keys)


def read(page: str) -> str:
    return " ".join(re.sub("<[^>]*>", "", page).replace("&#39;", "'").split())


def test_the_card_says_whose_values_a_row_has(published: tuple[TinySite, Path]) -> None:
    tiny, package = published
    files = read_folder(package)
    card = json.loads(files["privacy-card.json"])
    told = "No row belongs to one person: each value of a row comes from one of at least 10 people with the same released town"
    assert told in card["claim"]["words"]
    assert "epsilon 4 in all" in card["claim"]["words"]
    assert "whole table: not bounded" in card["claim"]["words"]
    assert card["swap"] == {
        "k": 10,
        "records": 10,
        "within": ["town", "sex"],
        "columns": ["income", "rent", "name"],
        "words": card["swap"]["words"],
    }
    [wider] = [one for one in card["claim"]["wider"] if one["scope"] == "table"]
    assert "knows all other members of a block" in wider["why"]
    assert {one["name"]: one["done"] for one in card["columns"]}["name"] == "swap"
    assert not any("ranks of one record" in words for words in card["how_to_use"])
    for name in ("privacy-card.html", "RELEASE_NOTE.md"):
        text = read(files[name].decode())
        assert "A row is not one person's" in text
        assert "in the row of somebody of the same block" in text
        assert told in text
    assert "## Swapped values" in files["RELEASE_NOTE.md"].decode()
    plan = " ".join(" ".join(describe_plan(make_plan(tiny.site.policy("people"), rows=240))).split())
    assert told in plan
    assert "in each block" in plan


def test_the_kit_offers_nothing_that_swapping_breaks(published: tuple[TinySite, Path]) -> None:
    """Links between columns are declined; a made-up table is swapped, too."""
    release = read_release(published[1])
    with pytest.raises(NoHonestAnswer, match="changed places by themselves"):
        release.slope("income", ["rent"])
    release.mean("income")
    drawn = random.Random(2)  # noqa: S311
    table = {
        "town": [drawn.choice(["north", "south"]) for _ in range(400)],
        "sex": [drawn.choice(["0", "1"]) for _ in range(400)],
        "name": [drawn.choice("abc") for _ in range(400)],
        "income": [float(number) for number in drawn.sample(range(1000), 400)],
    }
    table["rent"] = [income / 10 for income in table["income"]]
    made = simulate(table, release, secret=bytes(32))
    again = simulate(table, release, secret=bytes(32))
    assert list(made.data["income"]) == list(again.data["income"])
    for name in ("town", "sex", "name"):
        assert sorted(made.data[name]) == sorted(table[name])
    off = [abs(income / 10 - rent) for income, rent in zip(made.data["income"], made.data["rent"], strict=True)]
    assert sum(one > 1.0 for one in off) > 100, "each column moves by itself"


def test_lineage_says_that_columns_were_swapped(published: tuple[TinySite, Path]) -> None:
    words = {column.name: column.words for column in list_columns(published[0].site.policy("people"), "published")}
    assert "swapped within blocks of 10" in words["name"]
    assert "swapped within blocks of 10" in words["income"]
    assert words["town"].endswith("released as it is")


def test_the_page_speaks_of_no_row_as_a_record(published: tuple[TinySite, Path]) -> None:
    """Errors are of ranks, groups are means, l is of blocks, models are tested on others, attacks have strangers beside them, and
    links are bounded."""
    tiny, _ = published
    found = load_evidence(tiny.folder()).figures_of(AuditFigures)
    assert found.nearest is not None
    assert found.suppressed["smallest_block"] >= 10
    assert not any(attack.name == "linking" for attack in found.attacks)
    assert {attack.attack.among for attack in found.inference.values()} == {240}, "strangers count once"
    page = read((tiny.folder() / "report.html").read_text())
    for words in (
        "values of equal ranks are compared",
        "Groups: what became of their means",
        "Correlations of ranks, released minus original",
        "every block has at least",
        "Means of income by name",
        "means by these are drawn towards each other",
        "on records that the mechanism did not see",
        "is right in at most 10% of the rows on average",
        "people that rows were made of and for",
        "knows the values of all 9 or more other members of a block",
    ):
        assert words in page, words
    for words in ("those of whose own row is not there", "rows were taken out", "synthetic", "Risk and utility, among"):
        assert words not in page, words
