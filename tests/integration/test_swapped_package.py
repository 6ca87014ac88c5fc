"""What everybody reads of swapped values: page, card, note, papers, lineage and the analyst's kit of one published release."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from release_pipeline.analyst import read_release
from tests.integration.publishing import Keys, make_trusted_site, publish_release
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


def test_the_kit_offers_nothing_that_swapping_breaks(published: tuple[TinySite, Path]) -> None:
    """Links between columns are declined, and means answered."""
    release = read_release(published[1])
    assert "were exchanged separately" in " ".join(release.explain())
    release.mean("income")
