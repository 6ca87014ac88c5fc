"""The desk's pages for people who do not see them, use no mouse or see little contrast: what axe-core finds, by role."""

from __future__ import annotations

from pathlib import Path

import pytest

from release_pipeline.desk.tokens import make_token
from release_pipeline.desk.web.application import WAYS
from tests.integration.axe import find_violations_at, load_axe
from tests.integration.browser import open_browser
from tests.integration.desks import fill_path, open_desk, serving_pages
from tests.integration.people import copy_site
from tests.integration.test_desk_roles import ROLES

pytestmark = pytest.mark.slow
FILES = ("/report",)  # shown in a frame: `test_accessibility` looks at it


@pytest.mark.parametrize("role", ROLES)
def test_axe_finds_nothing_on_its_pages(candidate: Path, tmp_path: Path, role: str) -> None:
    """Every page that somebody may look at, wide and narrow, in light and dark."""
    axe = load_axe()
    desk = open_desk(copy_site(candidate, tmp_path / "site"))
    paths = [fill_path(way.path) for way in WAYS if not way.sends and not way.path.endswith(FILES)]
    seen = desk.open(ROLES[role])
    mine = [path for path in paths if seen.get(path).status == 200]
    assert "/help" in mine
    with serving_pages(desk) as port, open_browser(tmp_path / "browser") as page:
        page.go(f"http://127.0.0.1:{port}/login#{make_token(desk.tiny.site, ROLES[role])}")
        page.wait("location.pathname != '/login' && document.readyState == 'complete'")
        base = f"http://127.0.0.1:{port}{str(page.evaluate('location.pathname')).rstrip('/')}"
        found = {path: find_violations_at(page, axe, base + path) for path in mine}
    assert {path: faults for path, faults in found.items() if faults} == {}
