"""A real browser: somebody follows a desk's link to the agent, and signs with the keyboard; a hostile page gets nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from release_pipeline.agent import server
from release_pipeline.flow.reviewing.bundle import write_bundle
from release_pipeline.flow.trust.approvals import import_statement
from release_pipeline.sign import Signer, read_signer
from tests.integration.axe import LOOKS, find_violations_at, load_axe
from tests.integration.browser import Page, open_browser
from tests.integration.fake_desks import FakeDesk, Machine, open_agent, open_desk
from tests.integration.people import copy_site
from tests.integration.sites import TinySite

pytestmark = pytest.mark.slow  # a browser starts

LINK = '<!doctype html><title>desk</title><p><a id="sign" href="{link}">Sign on your machine</a>'
HOSTILE = """<!doctype html><title>evil</title><iframe name="quiet"></iframe><script>
const agent = AGENT, review = REVIEW, link = agent + "/?desk=" + encodeURIComponent(DESK) + "&ticket=" + TICKET;
const fields = {token: TOKEN, do: "sign", verdict: "approve", why: "", typed: TYPED};
async function attack() {
  const seen = [];
  for (const mode of ["no-cors", "cors"]) {
    const body = new URLSearchParams(fields);
    const keep = async (one) => seen.push(await one.text()), fail = () => seen.push("");
    await fetch(agent + review, {method: "POST", mode, credentials: "include", body}).then(keep).catch(fail);
    await fetch(agent + review, {mode}).then(keep).catch(fail);
    await fetch(link, {mode}).then(keep).catch(fail);
  }
  const form = document.createElement("form");
  Object.assign(form, {method: "post", action: agent + review, target: "quiet"});
  for (const [name, value] of Object.entries(fields)) form.append(Object.assign(document.createElement("input"), {name, value}));
  document.body.append(form);
  form.submit();
  const frame = document.createElement("iframe");
  frame.src = link;
  document.body.append(frame);
  await new Promise((next) => { frame.onload = next; setTimeout(next, 5000); });
  window.told = {read: seen.filter((text) => text !== ""), framed: frame.contentDocument === null ? "closed" : "open"};
}
attack();
</script>"""


@pytest.fixture
def tiny(candidate: Path, tmp_path: Path) -> TinySite:
    """A site with a candidate that nobody has reviewed."""
    return copy_site(candidate, tmp_path / "site")


@pytest.fixture
def bundle(tiny: TinySite, tmp_path: Path) -> Path:
    """The candidate, to be signed."""
    return write_bundle(tiny.site, "people/1", tmp_path / "people-1.zip")[0]


@pytest.fixture
def signer(key_folder: Path) -> Signer:
    """Ben's key."""
    return read_signer(key_folder / "ben")


@pytest.fixture
def desk() -> Iterator[FakeDesk]:
    """A desk."""
    with open_desk() as desk:
        yield desk


@pytest.fixture
def ben(desk: FakeDesk, signer: Signer) -> Iterator[Machine]:
    """Ben's machine."""
    with open_agent([desk.origin], [signer]) as machine:
        yield machine


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """One for all tests, in which other names are this machine."""
    with open_browser(tmp_path_factory.mktemp("browser") / "profile", "--host-resolver-rules=MAP *.example 127.0.0.1") as page:
        yield page


def show(desk: FakeDesk, path: str, page: str) -> str:
    """A page of the desk's server; gives its address."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Type", "text/html; charset=utf-8")
        request.end_headers()
        request.wfile.write(page.encode())

    desk.special[path] = answer
    return desk.origin + path


def link_of(desk: FakeDesk, machine: Machine, ticket: str) -> str:
    return f"{machine.agent.address}?desk={desk.origin}&amp;ticket={ticket}"


def arrive(page: Page, desk: FakeDesk, machine: Machine, ticket: str) -> None:
    """Follow the link on a page of the desk."""
    page.go(show(desk, f"/show/{ticket}", LINK.format(link=link_of(desk, machine, ticket))))
    page.wait("document.getElementById('sign') !== null")
    page.evaluate("document.getElementById('sign').click()")
    page.wait("location.pathname.startsWith('/review/') && document.readyState === 'complete'")


def type_in(page: Page, text: str) -> None:
    """Letters, where the focus is."""
    for letter in text:
        page.tell("Input.dispatchKeyEvent", type="char", text=letter)


def press(page: Page, key: str, code: int, text: str = "") -> None:
    """One key, down and up."""
    more: dict[str, Any] = {"text": text} if text else {}
    page.tell("Input.dispatchKeyEvent", type="keyDown", key=key, code=key, windowsVirtualKeyCode=code, **more)
    page.tell("Input.dispatchKeyEvent", type="keyUp", key=key, code=key, windowsVirtualKeyCode=code)


def test_somebody_signs_with_the_keyboard(browser: Page, tiny: TinySite, desk: FakeDesk, ben: Machine, bundle: Path) -> None:
    """From the desk and back: the ticket is not in the page's address, the report is there and is of no origin, Tab and Enter
    sign, and the site takes what was signed."""
    given = desk.tickets[ticket := desk.give(bundle, "ben")]
    arrive(browser, desk, ben, ticket)
    assert ticket not in browser.evaluate("location.href")
    assert browser.evaluate("document.referrer") in ("", f"{desk.origin}/")
    digest = str(tiny.status().candidate_hash)
    assert "APPROVE the candidate people/1/r1" in browser.text().replace("\n", " ")
    assert digest in browser.text()
    assert browser.evaluate("document.querySelector('iframe').contentDocument === null")  # of no origin
    framed = [one["url"] for one in browser.tell("Target.getTargets")["targetInfos"] if one["type"] == "iframe"]
    assert [url for url in framed if url.endswith("/report")]
    browser.evaluate("document.querySelector('a.skip').focus()")
    press(browser, "Enter", 13, "\r")
    browser.wait("location.hash === '#sign'")
    for _ in range(10):
        press(browser, "Tab", 9)
        if browser.evaluate("document.activeElement.id") == "typed":
            break
    type_in(browser, digest[:8])
    press(browser, "Enter", 13, "\r")
    browser.wait("document.title === 'Signed, and the desk says that it has it'")
    assert "Noted, thank you." in browser.text()
    assert import_statement(tiny.site, given.statements[0]).new
    show(desk, "/releases/people/1", "<!doctype html><title>back</title><p id='from'></p>")
    browser.evaluate("[...document.querySelectorAll('a')].at(-1).click()")
    browser.wait("document.title === 'back'")
    assert browser.evaluate("document.referrer") == ""


def test_a_wrong_beginning_leaves_the_reason_and_says_why(
    browser: Page, tiny: TinySite, desk: FakeDesk, ben: Machine, bundle: Path
) -> None:
    """The field has the focus, and a screen reader hears what was wrong."""
    arrive(browser, desk, ben, desk.give(bundle, "ben", verdict="reject", why="too coarse"))
    browser.evaluate("document.getElementById('typed').value = '00000000'")
    browser.evaluate("document.querySelector('button[value=sign]').click()")
    browser.wait("document.querySelector('[role=alert]') !== null && document.readyState === 'complete'")
    assert browser.evaluate("document.getElementById('why').value") == "too coarse"
    assert browser.evaluate("document.activeElement.id") == "typed"
    described = browser.evaluate("document.getElementById('typed').getAttribute('aria-describedby')")
    assert "trouble" in described.split()
    assert "nothing was signed" in browser.evaluate("document.getElementById('trouble').textContent")
    assert browser.evaluate("document.querySelectorAll('[role=alert]').length") == 1
    tops = "['trouble', 'typed'].map(id => document.getElementById(id).getBoundingClientRect().top)"
    assert all(0 <= top < browser.evaluate("innerHeight") for top in browser.evaluate(tops))


def test_nothing_is_wider_than_a_phone(browser: Page, desk: FakeDesk, ben: Machine, bundle: Path, tmp_path: Path) -> None:
    """In light and in dark; nothing of another origin is loaded, and no rule of the page's own is broken by it."""
    for width, colours in LOOKS:
        features = [{"name": "prefers-color-scheme", "value": colours}]
        browser.tell("Emulation.setEmulatedMedia", media="screen", features=features)
        browser.tell("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)
        arrive(browser, desk, ben, desk.give(bundle, "ben"))
        assert browser.evaluate("document.documentElement.scrollWidth") <= width
        loaded = json.loads(browser.evaluate("JSON.stringify(performance.getEntriesByType('resource').map((one) => one.name))"))
        assert [name for name in loaded if not name.startswith(ben.agent.address)] == []
        assert browser.evaluate("getComputedStyle(document.body).maxWidth") == "1024px"  # the style is let in
        browser.shoot(tmp_path / f"{width}-{colours}.png")
        browser.evaluate("document.getElementById('sign').scrollIntoView()")
        browser.shoot(tmp_path / f"{width}-{colours}-sign.png")
    browser.tell("Emulation.clearDeviceMetricsOverride")


def attack(browser: Page, tiny: TinySite, desk: FakeDesk, ben: Machine, bundle: Path, name: str) -> list[str]:
    """What the desk was asked while a hostile page, which knows the review, its token, the hash and a ticket, tried all that a
    page can try on an agent that it calls by this name. It read nothing and framed nothing."""
    page = ben.open(desk, desk.give(bundle, "ben"))
    review, ticket = re.findall(r'action="([^"]+)"', page.text)[0], desk.give(bundle, "ben")
    values = {
        "AGENT": f"http://{name}:{ben.agent.server_address[1]}",
        "REVIEW": review,
        "DESK": desk.origin,
        "TICKET": ticket,
        "TOKEN": page.token,
        "TYPED": str(tiny.status().candidate_hash)[:8],
    }
    script = re.sub(r"\b(AGENT|REVIEW|DESK|TICKET|TOKEN|TYPED)\b", lambda found: json.dumps(values[found[0]]), HOSTILE)
    address = show(desk, "/evil", script).replace("127.0.0.1", "evil.example")
    asked = len(desk.asked)
    browser.go(address)
    browser.wait("window.told !== undefined")
    assert json.loads(browser.evaluate("JSON.stringify(window.told)")) == {"read": [], "framed": "closed"}
    return [line for line in desk.asked[asked:] if "/tickets/" in line]


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "rebound.example"])
def test_a_hostile_page_gets_nothing(
    browser: Page, tiny: TinySite, desk: FakeDesk, ben: Machine, bundle: Path, name: str
) -> None:
    """By whatever name: the desk is asked nothing."""
    assert attack(browser, tiny, desk, ben, bundle, name) == []


def test_control_without_the_guard_a_hostile_page_signs(
    browser: Page, tiny: TinySite, desk: FakeDesk, ben: Machine, bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that the page is one that would, if it were let."""
    for rule in ("check_host", "check_change", "check_look"):
        monkeypatch.setattr(server, rule, lambda *_, **__: None)
    asked = attack(browser, tiny, desk, ben, bundle, "127.0.0.1")
    assert [line for line in asked if line.startswith("POST")]
    assert [line for line in asked if line.endswith("/bundle")]


def test_axe_finds_nothing_on_its_pages(browser: Page, tiny: TinySite, desk: FakeDesk, ben: Machine, bundle: Path) -> None:
    """To be signed, to be looked at, not accepted, done, over, and waiting."""
    axe = load_axe()
    given = desk.tickets[ticket := desk.give(bundle, "ben", verdict="reject", why="too coarse")]
    given.status = 503
    page, other = ben.open(desk, ticket), ben.open(desk, desk.give(bundle, "cleo"))
    place, look = (re.findall(r"/review/[A-Za-z0-9_-]+", shown.text)[0] for shown in (page, other))
    addresses = [ben.agent.address + path for path in ("", "nothing", place[1:], look[1:])]
    found = {address: find_violations_at(browser, axe, address) for address in addresses}
    ben.send(page, do="sign", verdict="reject", why="too coarse", typed=str(tiny.status().candidate_hash)[:8])
    found["signed"] = find_violations_at(browser, axe, ben.agent.address + place[1:])
    browser.tell("Page.setBypassCSP", enabled=False)
    browser.tell("Emulation.clearDeviceMetricsOverride")
    assert found == {key: [] for key in found}
