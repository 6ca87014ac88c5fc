"""Names that lead out of the site: in paths, forms and files, whoever sends them; nothing that lies elsewhere is ever shown."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest

from release_pipeline.apps.desk.web.application import WAYS
from tests.integration.desks import KNOWN, RELEASE, Browser, OpenDesk, fill_path, open_desk, read_everything
from tests.integration.people import copy_site

pytestmark = pytest.mark.slow
CANARY = "kanarie"
LEADING = """
.. ../.. ../../outside %2e%2e/%2e%2e/outside %2e%2e%2foutside %252e%252e%252foutside ..%5c..%5coutside /etc/passwd
//evil.example/x people/1/r1/../../../../key people/../../outside people/.. people%00 people/1/r1%0d%0aSet-Cookie:%20x=y
people/1/r01 people/１/r1 %ff%fe file:///etc/passwd populations.yaml {{7*7}}
"""
TRICKS = LEADING.split()


@pytest.fixture(scope="module")
def desk(candidate: Path, tmp_path_factory: pytest.TempPathFactory) -> OpenDesk:
    """Of a site in whose vault, beside which and above which something stands that nobody may see."""
    folder = tmp_path_factory.mktemp("paths")
    tiny = copy_site(candidate, folder / "site")
    for file in (folder / "outside", folder / "outside.yaml", tiny.home / "outside", tiny.site.vault / "key.html", folder / "r1"):
        file.write_text(CANARY)
    found = open_desk(tiny)
    with tiny.site.changing_desk():
        (tiny.site.desk / "outside.yaml").write_text(CANARY)
    return found


@pytest.fixture(scope="module")
def olga(desk: OpenDesk) -> Browser:
    """Who may see most."""
    return desk.open("olga")


def is_harmless(desk: OpenDesk, text: str) -> bool:
    """Whether a page has nothing of what lies elsewhere, nor where the site lies, nor how the program is made."""
    return not [word for word in (CANARY, "root:x:", "Traceback", str(desk.tiny.home), "site-packages") if word in text]


@pytest.mark.parametrize("trick", TRICKS)
def test_no_path_leads_out(desk: OpenDesk, olga: Browser, trick: str) -> None:
    """As a part of every page's path, and in the place of a static file."""
    for way in WAYS:
        for name in KNOWN:
            if f"{{{name}" in way.path:
                page = olga.get(fill_path(way.path, **{name: quote(trick, safe="/%:;$~{}*")}), follow=False)
                assert page.status in (303, 400, 404), (way.path, page.text)
                assert is_harmless(desk, page.text), way.path
    for place in ("/static/", f"{olga.base}/", "/"):
        page = olga.send("GET", place + quote(trick, safe="/%:;$~{}*"), follow=False)
        assert page.status in (303, 404, 405)
        assert is_harmless(desk, page.text)
        assert not page.header("set-cookie")


@pytest.mark.parametrize("trick", TRICKS)
def test_no_field_leads_out(desk: OpenDesk, olga: Browser, trick: str) -> None:
    """In every field of every form, alone and all at once: it is refused in words, and no file comes of it."""
    fields = ("subject", "what", "passage", "text", "verdict", "why", "number", "release", "policy", "name", "page")
    right = {"what": "candidate", "subject": RELEASE, "text": "", "verdict": "approve", "number": "9"}
    before = read_everything(desk.tiny.home).keys()
    for way in WAYS:
        if not way.sends or way.path == "/leave":
            continue
        for form in (dict.fromkeys(fields, trick), {**right, "subject": trick}, {**right, "what": "policy", "subject": trick}):
            page = olga.post(fill_path(way.path), form, follow=False)
            assert page.status in (200, 303, 400, 403, 404, 409, 413), (way.path, page.text)
            assert is_harmless(desk, page.text), way.path
            assert page.status != 303 or page.header("location").startswith(f"{olga.base}/")
    assert read_everything(desk.tiny.home).keys() - before <= {"vault/sent", "desk/drafts-olga.json"}


@pytest.mark.parametrize("name", ["../../outside.json", "a\0b.json"])
def test_names_of_files_that_are_sent_are_names_alone(desk: OpenDesk, name: str) -> None:
    """Nothing is written under them, and they stand in no page as anything but text."""
    ben = desk.open("ben")
    before = read_everything(desk.tiny.home.parent)
    page = ben.post("/statements", {"what": "candidate", "subject": RELEASE}, {name: b"{}", f"{name}.sig": b"x"})
    assert 400 <= page.status < 500
    assert is_harmless(desk, page.text)
    after = read_everything(desk.tiny.home.parent)
    assert after.keys() == before.keys()


def test_the_tricks_are_tried_where_something_is(desk: OpenDesk, olga: Browser) -> None:
    """The right names give pages, and the canaries are there."""
    assert olga.get(f"/releases/{RELEASE}").status == 200
    assert (desk.tiny.home.parent / "outside").read_text() == CANARY
    assert not is_harmless(desk, f"x {CANARY}")
