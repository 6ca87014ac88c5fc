"""The whole story in a real browser, as five people: a policy edited and approved, run, two blind reviews with a remark and a
return, an answer, a revision, publication, an auditor's verify, a retraction. Everything is signed
by the command that the desk's page shows."""

from __future__ import annotations

import itertools
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from release_pipeline.apps.desk.backend.people import make_token
from release_pipeline.apps.desk.opening import default_socket, opened_backend, serve_web
from release_pipeline.pipeline.opening import revise_release
from release_pipeline.pipeline.release import run_release
from release_pipeline.publish.publish import publish, retract
from release_pipeline.store.registry import ReleaseId
from release_pipeline.trust.keys import PrivateKey
from tests.guards import HANGING
from tests.integration.browser import Page, open_browser
from tests.integration.publishing import make_trusted_site
from tests.integration.sites import TinySite, make_rows

pytestmark = pytest.mark.slow
PORT = 8796
ORIGIN = f"http://127.0.0.1:{PORT}"
_numbers = itertools.count(1)


class Player:
    """One browser, in which people log in and out."""

    def __init__(self, page: Page, tiny: TinySite, keys: Path, folder: Path) -> None:
        self._page, self._tiny, self._keys, self._folder, self._base, self.name = page, tiny, keys, folder, "", ""

    def come(self, name: str) -> None:
        """Somebody comes to the desk, by a link of their own."""
        self._page.tell("Network.clearBrowserCookies")
        self._page.go("about:blank")
        self._page.go(f"{ORIGIN}/login#{make_token(self._tiny.site, name)}")
        self._page.wait(
            "document.readyState === 'complete' && location.pathname !== '/login' && !!document.querySelector('main h1')"
        )
        self._base, self.name = str(self._page.evaluate("location.pathname")).rstrip("/"), name

    def look(self, path: str) -> str:
        """A page of the desk; its text."""
        self._page.go(f"{ORIGIN}{self._base}{path}")
        self._page.wait(f"document.readyState === 'complete' && location.pathname === {self._base + path!r}")
        return self._page.text()

    def fill(self, field: str, text: str) -> None:
        """Write into a field of the page, which a selector names."""
        self._page.evaluate(f"(() => {{ const one = document.querySelector({field!r}); one.value = {text!r}; }})()")

    def choose(self, field: str) -> None:
        """Take what a selector names, as a click does."""
        self._page.evaluate(f"document.querySelector({field!r}).click()")

    def send(self, form: str) -> str:
        """Send a form by its button, and the text of what comes."""
        self._page.evaluate("window.isOld = true")
        script = "one.tagName === 'FORM' ? one.querySelector('button') : one"
        self._page.evaluate(f"(() => {{ const one = document.querySelector({form!r}); ({script}).click(); }})()")
        self._page.wait("!window.isOld && document.readyState === 'complete' && !!document.querySelector('main, body')")
        return self._page.text()

    def read(self, script: str) -> Any:
        """The value of an expression in the page."""
        return self._page.evaluate(script)

    def sign(self) -> str:
        """Save the bundle, run the command of the page with the person's key, and bring back what it wrote; the desk's answer."""
        folder = self._folder / f"signed-{next(_numbers)}"
        folder.mkdir()
        self._page.tell("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))
        self.choose("#bundle button")
        words = shlex.split(str(self.read("document.querySelector('#command').innerText")))
        digest = str(self.read("document.querySelector('#digest').innerText.trim()"))
        wait_until(lambda: (folder / words[2]).exists())
        command = [str(self._keys / self.name) if word == "YOUR_KEY" else word for word in words[1:]]
        signing = subprocess.run(
            [sys.executable, "-m", "release_pipeline.apps.cli", *command, "--yes"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (signing.returncode, digest in signing.stdout) == (0, True), signing.stderr
        files = [str(file) for file in folder.iterdir() if file.suffix != ".zip"]
        root = self._page.tell("DOM.getDocument")["root"]["nodeId"]
        field = self._page.tell("DOM.querySelector", nodeId=root, selector="#files")["nodeId"]
        self._page.tell("DOM.setFileInputFiles", files=files, nodeId=field)
        return self.send("#statements")


@contextmanager
def served(tiny: TinySite) -> Iterator[None]:
    """Meanwhile there is a desk."""
    ready = threading.Event()
    with opened_backend(tiny.site, default_socket(tiny.site)):
        web = threading.Thread(
            target=serve_web,
            args=(default_socket(tiny.site),),
            kwargs={"port": PORT, "ready": lambda _: ready.set()},
            daemon=True,
        )
        web.start()
        assert ready.wait(HANGING)
        yield


def wait_until(happened: Callable[[], bool]) -> None:
    """Or fail."""
    end = time.monotonic() + HANGING
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.3)


def decide(player: Player, release: str, verdict: str, why: str = "") -> str:
    """A reviewer decides on the page of a release, and signs; what the desk answers."""
    player.look(f"/releases/{release}")
    player.choose(f"input[name='verdict'][value='{verdict}']")
    player.fill("#why", why)
    player.send("form[action$='/sign']:has(input[name='verdict'][value='approve'])")
    return player.sign()


def remark(player: Player, release: str, passage: str, text: str) -> None:
    """Somebody keeps a remark on a passage of a candidate."""
    player.look(f"/releases/{release}")
    player.fill("#passage", passage)
    player.fill("#text", text)
    player.send("form[action$='/remarks']")


def test_five_people_take_a_release_from_a_policy_to_its_retraction(
    tmp_path: Path, keys: dict[str, PrivateKey], key_folder: Path
) -> None:
    """See above; at each step the others see what they may see then, and no more."""
    tiny = make_trusted_site(tmp_path / "site", keys, rows=make_rows(300), cap="epsilon: 20, definition: idp, scope: column")
    with (tiny.home / "site.yaml").open("a") as settings:
        settings.write("\ndesk: {people: {vic: [auditor], ana: [operator]}}\n")
    (tmp_path / "browser").mkdir()
    with served(tiny), open_browser(tmp_path / "browser") as page:
        player = Player(page, tiny, key_folder, tmp_path)

        tiny.write_policy(gates="{min_rows: 25}")
        player.come("olga")
        assert "people" in player.look("/")
        assert "25" in player.look("/approvals/policies/people")
        player.send("form[action$='/sign'] button")
        assert "approved" in player.sign()

        run_release(tiny.flow("1"))

        player.come("ben")
        remark(player, "people/1/r1", "claim", "Say why epsilon is 1 for each column.")
        decide(player, "people/1/r1", "return", "the description does not say where the towns are")

        player.come("cleo")
        seen = player.look("/releases/people/1/r1")
        assert not any(words in seen for words in ("towns are", "Say why epsilon"))
        assert "1 of 2 have voted" in seen
        decide(player, "people/1/r1", "approve")

        player.come("ana")
        seen = player.look("/releases/people/1/r1")
        assert all(words in seen for words in ("where the towns are", "Say why epsilon"))
        remark(player, "people/1/r1", "claim", "It is what the cap has room for. A revision says where the towns are.")
        player.send("form:has(input[name='verdict'][value='remarks'])")
        player.sign()
        revise_release(tiny.site, "people", "1", why="the description says where the towns are")
        run_release(tiny.flow("1"))

        for name in ("ben", "cleo"):
            player.come(name)
            assert "The one before: people/1/r1" in player.look("/releases/people/1/r2")
            decide(player, "people/1/r2", "approve")
        publish(tiny.site, ReleaseId("people", "1", 2), key=keys["robot"])

        player.come("vic")
        seen = player.look("/chain/people/1/r2")
        assert "published" in seen
        retract(tiny.site, ReleaseId("people", "1", 2), key=keys["olga"], why="a town was wrong")
        assert "retracted" in player.look("/chain/people/1/r2")
