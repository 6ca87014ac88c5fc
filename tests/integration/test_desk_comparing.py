"""A release beside the one before it, in figures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from release_pipeline.flow.opening import revise_release
from tests.integration.desks import RELEASE, OpenDesk, open_desk
from tests.integration.people import copy_site

pytestmark = pytest.mark.slow
PAGE = f"/releases/{RELEASE}"


@pytest.fixture
def desk(candidate: Path, tmp_path: Path) -> OpenDesk:
    """Of a site with a candidate."""
    return open_desk(copy_site(candidate, tmp_path / "site"))


def test_a_revision_stands_beside_the_release_before_it_in_figures(desk: OpenDesk) -> None:
    """Rows, claim and the errors of each masked column; the pages of both are below. Without one before there is no table."""
    ben = desk.open("ben")
    assert "<table" not in ben.get(f"{PAGE}/compare").text
    revise_release(desk.tiny.site, "people", "1", why="with a note")
    desk.tiny.flow("1").run()
    page = ben.get("/releases/people/1/r2/compare").text
    rows = re.findall('<th scope="row">(.*?)</th><td data-label="Then">(.*?)</td><td data-label="Now">(.*?)</td>', page)
    found = {of: (then, now) for of, then, now in rows}
    assert found["Rows"][0] == found["Rows"][1] != "not there"
    errors = [of for of in found if of.endswith(": actual error")]
    assert errors
    for of in errors:
        then, now = found[of]
        assert re.fullmatch(r"[0-9.]+", then)
        is_bold, least, most = now.startswith("<b>"), *sorted(float(part.strip("</b>")) for part in (then, now))
        assert is_bold == (most > 1.25 * least), (then, now)
        assert {of.replace("actual", "expected"), of.replace("actual error", "Kolmogorov-Smirnov distance")} <= set(found)
    assert page.count("<iframe") == 2
