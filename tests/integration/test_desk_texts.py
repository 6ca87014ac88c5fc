"""Texts that would be more than texts: in names of columns, labels, reasons, remarks, names of files. They stay what they are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from release_pipeline.apps.desk.backend.people import make_token
from release_pipeline.apps.desk.web.application import WAYS
from release_pipeline.pipeline.release import run_release
from release_pipeline.trust.keys import PrivateKey
from tests.integration.browser import open_browser
from tests.integration.desks import RELEASE, ROLES, Browser, OpenDesk, Page, fill_path, open_desk, serving_pages
from tests.integration.publishing import make_trusted_site
from tests.integration.sites import HEADER, PARTS, make_rows

pytestmark = pytest.mark.slow
HOSTILE = "<script>window.hit=1</script>\"><img src=x onerror=window.hit=1>'{{73*7013}}{% raw %}"
COLUMN, TOWN = "<img src=x onerror=window.hit=1>", '"><script>window.hit=1</script>'
ABOUT = (
    f"{{title: {json.dumps(HOSTILE)}, description: {json.dumps(HOSTILE)}, licence: CC0-1.0, "
    f"publisher: {{name: {json.dumps(HOSTILE)}}}, "
    "contact: {email: desk@example.org}}"
)
WATCH = "window.broken = []; addEventListener('securitypolicyviolation', e => broken.push(e.violatedDirective))"
OURS = """
html head meta title link script body a header strong nav span form input button main p footer h1 h2 h3 h4 b ul ol li table
thead tbody tr th td div br time section article aside iframe fieldset legend label textarea select option optgroup details
summary code pre dl dt dd caption small em i hr img svg path g rect line text figure figcaption circle polyline desc ins del
mark kbd abbr colgroup col tfoot q
"""
TAGS = set(OURS.split())


@pytest.fixture(scope="module")
def desk(keys: dict[str, PrivateKey], tmp_path_factory: pytest.TempPathFactory) -> OpenDesk:
    """Of a site in which every text that somebody could choose is hostile, and a review with remarks and reasons is over."""
    columns = PARTS["columns"].replace("town:   {", f"{json.dumps(COLUMN)}: {{label: {json.dumps(HOSTILE)}, ")
    columns = columns.replace(
        "[north, south, east], why: needed", f"[{json.dumps(TOWN)}, south, east], why: {json.dumps(HOSTILE)}"
    )
    tiny = make_trusted_site(tmp_path_factory.mktemp("texts") / "site", keys, columns=columns, about=ABOUT)
    header = [COLUMN if name == "town" else name for name in HEADER]
    tiny.write_rows([{**row, COLUMN: row["town"].replace("north", TOWN)} for row in make_rows()], header=header)
    run_release(tiny.flow())
    (tiny.home / "policies" / "broken.yaml").write_text(f"policy: {json.dumps(HOSTILE)}\n{json.dumps(COLUMN)}: 1\n")
    found = open_desk(tiny)
    digest = str(tiny.status().candidate_hash)
    for name in ("ben", "cleo"):
        browser = found.open(name)
        remark(browser, HOSTILE)
        bring(browser, keys[name].sign(kind="return", subject=RELEASE, digest=digest, name=name, why=HOSTILE))
    return found


def remark(browser: Browser, text: str) -> Page:
    """A remark on the whole."""
    return browser.post("/remarks", {"what": "candidate", "subject": RELEASE, "passage": "", "text": text})


def bring(browser: Browser, signed: dict[str, object]) -> None:
    """A statement."""
    files = {"a.json": json.dumps(signed["statement"]).encode(), "a.json.sig": str(signed["sshsig"]).encode()}
    page = browser.post("/statements", {"what": "candidate", "subject": RELEASE}, files)
    assert "returned" in page.text, page.text


def pages_of(desk: OpenDesk, browser: Browser) -> Iterator[tuple[str, Page]]:
    """Everything that this person can look at or be refused, in which a hostile text might stand."""
    for way in WAYS:
        if way.sends:
            if way.path != "/leave":
                yield (
                    way.path,
                    browser.post(fill_path(way.path), dict.fromkeys(("what", "subject", "why", "text", "verdict"), HOSTILE)),
                )
        elif not way.path.endswith("/report"):
            yield way.path, browser.get(fill_path(way.path))
            yield f"{way.path} ?", browser.get(f"{fill_path(way.path)}?said=%3Cscript%3E&seal=x&q=%22%3E%3Cscript%3E")
    wish = {"what": "candidate", "subject": RELEASE, "verdict": "return", "why": HOSTILE}
    yield "sign", browser.post("/sign", wish)
    named = {f"{HOSTILE}.json": b"{}", f"{HOSTILE}.json.sig": b"x"}
    yield "files", browser.post("/statements", {"what": "candidate", "subject": RELEASE}, named)
    yield "half", browser.post("/statements", {"what": "candidate", "subject": RELEASE}, {f"{HOSTILE}.json": b"x"})
    yield "strange", browser.get("/%3Cscript%3Ewindow.hit=1%3C/script%3E")
    yield "login", Browser(desk.desk).log_in(HOSTILE)


@pytest.mark.parametrize("person", ROLES.values())
def test_no_text_becomes_a_tag(desk: OpenDesk, person: str) -> None:
    """Every page for everybody has the tags and attributes of its templates, and no template's marks are taken for any."""
    browser = desk.open(person)
    seen = ""
    for name, page in pages_of(desk, browser):
        assert page.status < 500, (name, page.text)
        if not page.header("content-type").startswith("text/html"):
            continue
        seen += page.text
        for tag, said in page.elements:
            assert tag in TAGS, (name, tag)
            assert not [one for one in said if one.startswith(("on", "style", "srcdoc"))], (name, said)
            assert "x" not in (said.get("src"), said.get("href")), (name, said)
            for place in ("href", "src", "action", "formaction"):
                assert said.get(place, "/").startswith(("/", "#", "?")), (name, said)
        assert "<script>" not in page.text, name
        assert str(73 * 7013) not in page.text, name
    if person in ("ben", "ana", "olga", "vic"):
        assert "&lt;script&gt;window.hit=1" in seen, "the pages have the texts"


def test_the_report_shows_them_as_texts_too(desk: OpenDesk) -> None:
    """What its policy lets through is what the program has written into it."""
    page = desk.open("ben").get(f"/releases/{RELEASE}/report")
    assert page.status == 200
    assert "<script>window.hit=1" not in page.text
    assert "<img" not in page.text
    assert not [said for _, said in page.elements if [one for one in said if one.startswith("on")]]


def test_nothing_of_it_runs_in_a_browser(desk: OpenDesk, tmp_path: Path) -> None:
    """Chromium opens every page of a reviewer and an officer: nothing hostile runs, and our own pages break no rule of theirs."""
    with serving_pages(desk) as port, open_browser(tmp_path) as page:
        page.tell("Log.enable")
        page.tell("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
        for person in ("ben", "olga"):
            page.go(f"http://127.0.0.1:{port}/login#{make_token(desk.tiny.site, person)}")
            page.wait("location.pathname != '/login' && document.readyState == 'complete'")
            base = str(page.evaluate("location.pathname")).rstrip("/")
            assert page.evaluate("document.cookie") == ""
            for way in WAYS:
                if way.sends:
                    continue
                path = base + fill_path(way.path)
                page.go(f"http://127.0.0.1:{port}{path}")
                page.wait(f"location.pathname == {json.dumps(path)} && document.readyState == 'complete'")
                assert page.evaluate("window.hit === undefined && broken.join('; ')") == "", path
                assert not page.evaluate(
                    "[...document.querySelectorAll('main *')].some(e => getComputedStyle(e).animationName != 'none')"
                )
        page.go(f"http://127.0.0.1:{port}{base}/releases/{RELEASE}")
        page.wait("document.readyState == 'complete'")
        told = [event["params"]["entry"] for event in page.events if event.get("method") == "Log.entryAdded"]
        assert [entry["text"] for entry in told if "Content Security Policy" in entry["text"] or "Refused" in entry["text"]] == []
