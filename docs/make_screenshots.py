"""Regenerates docs/screenshots/ from the demo's Dagster UI, with headless Chromium and its driver (Debian: chromium-driver).

    make demo && .venv/bin/python docs/make_screenshots.py

Standard library only: it speaks the WebDriver protocol itself.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "docs" / "screenshots"
FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-quic",
]
SHOTS: list[tuple[str, str, tuple[int, int], str]] = [  # name, path, size, text of a button to press first
    ("lineage", "assets/rand_hie/published?view=lineage&lineageScope=upstream&lineageDepth=10", (2500, 800), ""),
    ("zones", "asset-groups", (1900, 700), ""),
    ("candidate", "assets/rand_hie/candidate?view=overview&partition=1", (1500, 1500), ""),
    ("plots", "assets/rand_hie/candidate?view=overview", (1500, 1900), "Plots"),
    ("checks", "assets/rand_hie/validated?view=checks", (1500, 1000), ""),
    ("partitions", "assets/rand_hie/candidate?view=partitions&partition=1", (1500, 1100), ""),
    ("columns", "assets/rand_hie/candidate?view=partitions&partition=1", (1500, 1700), ""),
    ("policy", "assets/policy/rand_hie?view=checks", (1500, 1100), ""),
]


def main() -> None:
    """Serve the demo's UI, visit each page, and write each picture."""
    OUT.mkdir(exist_ok=True)
    with _ui() as address, _browser() as session:
        for name, path, (width, height), button in SHOTS:
            _call(f"{session}/window/rect", {"width": width, "height": height})
            _call(f"{session}/url", {"url": f"{address}/{path}"})
            time.sleep(8)
            if button:
                script = (
                    "for (const b of document.querySelectorAll('button,label'))"
                    " if (b.textContent.trim() === arguments[0]) { b.click(); return true } return false"
                )
                _call(f"{session}/execute/sync", {"script": script, "args": [button]})
                time.sleep(4)
            picture = base64.b64decode(_call(f"{session}/screenshot"))
            (OUT / f"{name}.png").write_bytes(picture)
            print(f"docs/screenshots/{name}.png")


@contextmanager
def _ui() -> Iterator[str]:
    port = _free_port()
    command = [str(Path(sys.executable).with_name("release-pipeline")), "ui", "--home", str(ROOT / "demo"), "--port", str(port)]
    with _process(command):
        address = f"http://127.0.0.1:{port}"
        _wait(f"{address}/server_info")
        yield address


@contextmanager
def _browser() -> Iterator[str]:
    port = _free_port()
    with tempfile.TemporaryDirectory() as profile, _process(["chromedriver", f"--port={port}"]):
        _wait(f"http://127.0.0.1:{port}/status")
        options = {"args": [*FLAGS, f"--user-data-dir={profile}"]}
        asked = {"capabilities": {"alwaysMatch": {"browserName": "chrome", "goog:chromeOptions": options}}}
        session = f"http://127.0.0.1:{port}/session/" + _call(f"http://127.0.0.1:{port}/session", asked)["sessionId"]
        try:
            yield session
        finally:
            urllib.request.urlopen(urllib.request.Request(session, method="DELETE")).close()


@contextmanager
def _process(command: list[str]) -> Iterator[None]:
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True) as process:  # noqa: S603
        try:
            yield
        finally:
            os.killpg(process.pid, signal.SIGINT)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)


def _call(address: str, body: dict[str, Any] | None = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, data, {"Content-Type": "application/json"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=90) as answer:  # noqa: S310
        return json.load(answer)["value"]


def _wait(address: str) -> None:
    deadline = time.monotonic() + 120
    while True:
        try:
            urllib.request.urlopen(address, timeout=5).close()  # noqa: S310
        except (urllib.error.URLError, OSError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)
        else:
            return


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    main()
