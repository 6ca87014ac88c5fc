"""axe-core finds nothing on any kind of page, wide and on a phone, in light and dark. `RELEASE_PIPELINE_AXE` names it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from release_pipeline.apps.desk.backend.people import make_token
from release_pipeline.apps.desk.web.application import WAYS
from tests.integration.axe import find_violations, find_violations_at, load_axe
from tests.integration.browser import Page, open_browser
from tests.integration.desks import ROLES, fill_path, open_desk, serving_pages
from tests.integration.people import copy_site
from tests.unit.report.rendered import PAGES, render

pytestmark = pytest.mark.slow  # a browser starts


@pytest.fixture(scope="module")
def axe() -> str:
    """The program."""
    return load_axe()


@pytest.fixture(scope="module")
def browser(axe: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """One for all tests, and none where there is no axe."""
    with open_browser(tmp_path_factory.mktemp("browser") / "profile") as page:
        yield page


@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing(name: str, axe: str, browser: Page, tmp_path: Path) -> None:
    """Nothing serious, and nothing less."""
    file = tmp_path / "page.html"
    file.write_text(render(name), encoding="utf-8")
    assert find_violations(browser, axe, file) == []


def test_axe_finds_what_is_wrong(axe: str, browser: Page, tmp_path: Path) -> None:
    """A colour that is hardly seen, and a field without a label."""
    file = tmp_path / "page.html"
    faulty = '<p style="color: #aaaaaa; background: #ffffff">hardly seen</p><input type="text"></main>'
    file.write_text(render("card with everything").replace("</main>", faulty, 1), encoding="utf-8")
    found = "\n".join(find_violations(browser, axe, file))
    assert "serious: color-contrast (360, dark)" in found
    assert "critical: label (1280, light)" in found


@pytest.mark.parametrize("role", ROLES)
def test_axe_finds_nothing_at_the_desk(axe: str, candidate: Path, tmp_path: Path, role: str) -> None:
    """Every page that somebody may look at, wide and narrow, in light and dark."""
    desk = open_desk(copy_site(candidate, tmp_path / "site"))
    paths = [fill_path(way.path) for way in WAYS if not way.sends and not way.path.endswith("/report")]
    seen = desk.open(ROLES[role])
    mine = [path for path in paths if seen.get(path).status == 200]
    assert "/help" in mine
    with serving_pages(desk) as port, open_browser(tmp_path / "browser") as page:
        page.go(f"http://127.0.0.1:{port}/login#{make_token(desk.tiny.site, ROLES[role])}")
        page.wait("location.pathname != '/login' && document.readyState == 'complete'")
        base = f"http://127.0.0.1:{port}{str(page.evaluate('location.pathname')).rstrip('/')}"
        found = {path: find_violations_at(page, axe, base + path) for path in mine}
    assert {path: faults for path, faults in found.items() if faults} == {}
