"""A real browser without a window, driven through its debugging protocol."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import ClientConnection, connect

from tests.guards import HANGING

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--window-size=1500,1000"),
)


class Page:
    """One tab."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection, self._number = connection, 0
        self.events: list[dict[str, Any]] = []  # what the browser told unasked, as far as its commands were answered since
        for part in ("Page", "Runtime", "Network"):
            self.tell(f"{part}.enable")

    def tell(self, method: str, **parameters: Any) -> dict[str, Any]:
        """A command of the protocol, and its result."""
        self._number += 1
        self._connection.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self._connection.recv(timeout=HANGING))
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def go(self, address: str) -> None:
        """Begin to load a page."""
        self.tell("Page.navigate", url=address)

    def evaluate(self, script: str) -> Any:
        """The value of an expression in the page, promises awaited."""
        answer = self.tell("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait(self, script: str) -> Any:
        """The value of an expression, once it is true; while a page loads there may be none to evaluate it in."""
        end = time.monotonic() + HANGING
        while True:
            answer = self.tell("Runtime.evaluate", expression=script, returnByValue=True)
            value = answer["result"].get("value")
            if value and "exceptionDetails" not in answer:
                return value
            assert time.monotonic() < end, f"it does not come: {script}; {self.text()[:2000]}"
            time.sleep(0.3)

    def text(self) -> str:
        """What the page shows as text."""
        return str(self.tell("Runtime.evaluate", expression="document.body.innerText", returnByValue=True)["result"].get("value"))


@contextmanager
def open_browser(folder: Path, *more: str) -> Iterator[Page]:
    """A new browser with one empty page; its profile is in `folder`. Skips where there is none, unless CI asks for it."""
    program = next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)
    if program is None:
        reason = "there is no Chromium here: apt-get install chromium"
        pytest.fail(reason) if os.environ.get("CI") == "true" else pytest.skip(reason)
    flags = [*FLAGS, *more, f"--user-data-dir={folder}", "--remote-debugging-port=0"]
    with subprocess.Popen([program, *flags, "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as browser:
        try:
            told = folder / "DevToolsActivePort"
            end = time.monotonic() + HANGING
            while not told.exists() or "\n" not in told.read_text():
                assert browser.poll() is None, f"the browser ended with {browser.returncode} before it had begun"
                assert time.monotonic() < end, "the browser does not start"
                time.sleep(0.2)
            port = told.read_text().splitlines()[0]
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/json", timeout=HANGING) as answer:
                [tab, *_] = [one for one in json.load(answer) if one["type"] == "page"]
            with connect(tab["webSocketDebuggerUrl"], max_size=None, origin=None, proxy=None) as connection:
                yield Page(connection)
        finally:
            browser.terminate()
            try:
                browser.wait(HANGING)
            except subprocess.TimeoutExpired:
                browser.kill()
