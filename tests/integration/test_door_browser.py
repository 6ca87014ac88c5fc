"""A real browser: somebody who is logged in at the door opens a hostile page of another origin, and nothing comes of it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.integration.browser import Page, open_browser
from tests.integration.test_door import LAUNCH, Server, door, inline, params, token_of, wait_for

__all__ = ["door"]  # a fixture
pytestmark = pytest.mark.slow

HOSTILE = """<!doctype html><title>evil</title><body><iframe name=quiet></iframe><script>
const done = [];
const target = TARGET, socket = target.replace("http", "ws"), link = target + LINK, body = BODY;
async function attack() {
  for (const type of ["text/plain", "application/x-www-form-urlencoded", "application/json"])
    for (const mode of ["no-cors", "cors"])
      await fetch(target + "/graphql", {method: "POST", mode, credentials: "include", body, headers: {"Content-Type": type}})
        .catch(() => 0);
  await fetch(link, {mode: "no-cors", credentials: "include"}).catch(() => 0);
  await new Promise(next => { const image = new Image(); image.onload = image.onerror = next; image.src = link; });
  const form = document.createElement("form");
  Object.assign(form, {method: "post", action: link, target: "quiet", enctype: "text/plain"});
  document.body.append(form); form.submit();
  const frame = document.createElement("iframe"); frame.src = link; document.body.append(frame);
  await new Promise(next => { frame.onload = next; setTimeout(next, 5000); });
  const framed = frame.contentDocument === null ? "closed" : "open";
  const opened = await new Promise(next => {
    const one = new WebSocket(socket + "/graphql", "graphql-ws");
    one.onopen = () => next("open"); one.onerror = () => next("closed");
    setTimeout(() => next("closed"), 10000);
  });
  window.told = {opened, framed};
}
attack();
</script>"""


@contextmanager
def hostile(server: Server, name: str) -> Iterator[str]:
    """The address of a page that attacks a server that it calls by this name."""
    target, link = f"http://{name}:{server.port}{server.prefix}", inline(LAUNCH, params())
    body = json.dumps({"query": LAUNCH, "variables": params()})
    page = HOSTILE.replace("TARGET", json.dumps(target)).replace("LINK", json.dumps(link)).replace("BODY", json.dumps(body))

    class Evil(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Evil) as evil:
        thread = threading.Thread(target=evil.serve_forever, daemon=True)
        thread.start()
        yield f"http://evil.example:{evil.server_address[1]}/"
        evil.shutdown()


def attack(page: Page, server: Server, name: str) -> dict[str, str]:
    """What the hostile page found when it was done."""
    with hostile(server, name) as address:
        page.go(address)
        page.wait("window.told !== undefined")
        return json.loads(page.evaluate("JSON.stringify(window.told)"))


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    """A browser in which the names of the hostile page, and of a name that was rebound, are this machine."""
    with open_browser(tmp_path / "profile", "--host-resolver-rules=MAP *.example 127.0.0.1") as page:
        yield page


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "rebound.example"])
def test_hostile_page_gets_nothing_through_the_door(page: Page, door: Server, name: str) -> None:
    """The browser is logged in and the page knows the secret path: still no run, no websocket, no frame."""
    page.go(f"{door.origin}/login#{token_of(door, 'to operate')}")
    page.wait(f"location.pathname === {json.dumps(door.prefix + '/asset-groups')}")
    assert page.evaluate("document.cookie") == ""
    before = door.runs()
    assert attack(page, door, name)["opened"] == "closed"
    assert door.runs() == before


def test_the_ui_works_behind_the_door(page: Page, door: Server) -> None:
    """After the login its pages show the assets of the site, and the token is neither in the address nor in the history."""
    page.go(f"{door.origin}/login#{token_of(door, 'to operate')}")
    page.wait("document.body.innerText.includes('restricted') && document.body.innerText.includes('protection')")
    own = (
        "new Promise(next => { const one = new WebSocket(%s, 'graphql-ws'); one.onopen = () => next(true); one.onerror = next })"
    )
    assert page.evaluate(own % json.dumps(f"ws://127.0.0.1:{door.port}{door.prefix}/graphql")) is True
    assert token_of(door, "to operate") not in str(page.tell("Page.getNavigationHistory"))
    before = door.runs()
    page.go(f"{door.origin}{door.prefix}/locations/__repository__@release-pipeline/jobs/check_policies")
    page.wait("document.body.innerText.includes('Materialize')")
    button = "[...document.querySelectorAll('button')].find(one => one.innerText.startsWith('Materialize') && !one.disabled)"
    page.wait(f"{button} !== undefined")
    page.evaluate(f"{button}.click()")
    assert door.log is not None
    wait_for(lambda: door.runs() == before + 1, door.log)
