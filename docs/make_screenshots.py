"""Regenerates docs/screenshots/ from the demo's Dagster UI, a wave's report and the demo's desk, with headless Chromium and its
driver (Debian: chromium-driver).

    make demo && .venv/bin/python docs/make_screenshots.py          # all of them
    .venv/bin/python docs/make_screenshots.py desk                  # those of the desk alone, from the demo as it is

Standard library only: it speaks the WebDriver protocol itself.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
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
    ("lineage", "assets/rand_hie_table/published?view=lineage&lineageScope=upstream&lineageDepth=10", (2500, 800), ""),
    ("zones", "asset-groups", (1900, 700), ""),
    ("candidate", "assets/rand_hie_table/candidate?view=overview&partition=1", (1500, 1500), ""),
    ("plots", "assets/rand_hie_table/candidate?view=overview", (1500, 1900), "Plots"),
    ("checks", "assets/rand_hie_table/validated?view=checks", (1500, 1000), ""),
    ("partitions", "assets/rand_hie_table/candidate?view=partitions&partition=1", (1500, 1100), ""),
    ("columns", "assets/rand_hie_table/candidate?view=partitions&partition=1", (1500, 1700), ""),
    ("policy", "assets/policy/rand_hie_table?view=checks", (1500, 1100), ""),
]

VIEWS = [  # of a page: name, width, height (0: all of it), media, colours; 703 is A4 without the margins
    ("top", 1280, 1150, "screen", "light"),
    ("desktop", 1280, 0, "screen", "light"),
    ("phone", 390, 8000, "screen", "light"),  # a picture of this kind has no more than 16,383 lines
    ("dark", 1280, 1150, "screen", "dark"),
    ("print", 703, 0, "print", "light"),
]
DESK = [  # name, person, path, and the button of a form that is sent before the picture is taken
    ("desk-home", "ben", "/", ""),
    ("desk-release", "ben", "/releases/election-licensed/once/r1", ""),
    ("desk-sign", "ben", "/releases/election-licensed/once/r1", "Go on to sign"),
    ("desk-operations", "ana", "/operations", ""),
]
DESK_SIZE = (1280, 1150)
REPORT = ROOT / "demo" / "vault" / "candidates" / "election-licensed" / "once" / "r1" / "report.html"


def main() -> None:
    """Serve the demo's UI, visit each page, and write each picture."""
    OUT.mkdir(exist_ok=True)
    shoot_desk(ROOT / "demo", OUT)
    if sys.argv[1:] == ["desk"]:
        return
    with _ui() as link, _browser() as session:
        _call(f"{session}/url", {"url": link})
        time.sleep(8)
        address = _call(f"{session}/url").rpartition("/")[0]
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
    with tempfile.TemporaryDirectory() as made:
        measured = shoot_report(REPORT, Path(made))
        for name, *_ in VIEWS:
            shutil.move(Path(made) / f"{REPORT.stem}-{name}.webp", OUT / f"{REPORT.stem}-{name}.webp")
            print(f"docs/screenshots/{REPORT.stem}-{name}.webp")
    print("the report: {milliseconds:.0f} ms to load without a network, {kilobytes:.0f} kB".format(**measured))


def shoot_report(page: Path, out: Path) -> dict[str, float]:
    """Pictures of an HTML file: its top, and the whole of it on a desktop, on a phone, in the dark and as print styles make it on
    paper as wide as A4 (NAME-top.webp and so on); and NAME.pdf, which printing gives. The network is off meanwhile. Returned:
    milliseconds from the start of the navigation to the end of loading, and the size of the file in kB."""
    out.mkdir(parents=True, exist_ok=True)
    with _browser() as session:

        def tell(command: str, **parameters: Any) -> Any:
            return _call(f"{session}/goog/cdp/execute", {"cmd": command, "params": parameters})

        tell("Network.enable")
        tell("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=-1, uploadThroughput=-1)
        _call(f"{session}/url", {"url": page.resolve().as_uri()})
        script = "const [e] = performance.getEntriesByType('navigation'); return e.loadEventEnd - e.startTime"
        took = float(_call(f"{session}/execute/sync", {"script": script, "args": []}))
        for name, width, top, media, scheme in VIEWS:
            features = [{"name": "prefers-color-scheme", "value": scheme}]
            tell("Emulation.setEmulatedMedia", media=media, features=features)
            phone = width < 500
            tell("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=phone)
            script = "return document.documentElement.scrollHeight"
            height = top or _call(f"{session}/execute/sync", {"script": script, "args": []})
            tell(
                "Emulation.setDeviceMetricsOverride",
                width=width,
                height=height,
                deviceScaleFactor=1,
                mobile=phone,
            )
            picture = tell("Page.captureScreenshot", format="webp", quality=70, captureBeyondViewport=not top)["data"]
            (out / f"{page.stem}-{name}.webp").write_bytes(base64.b64decode(picture))
        tell("Emulation.clearDeviceMetricsOverride")
        tell("Emulation.setEmulatedMedia", media="", features=[])
        printed = tell("Page.printToPDF", preferCSSPageSize=True, printBackground=False)["data"]
        (out / f"{page.stem}.pdf").write_bytes(base64.b64decode(printed))
    return {"milliseconds": took, "kilobytes": page.stat().st_size / 1000}


def shoot_desk(home: Path, out: Path) -> None:
    """Pictures of the desk of a demo's folder, each as the person who works there sees it."""
    sys.path.insert(0, str(ROOT))
    from tests.integration.browser import open_browser  # it needs Chromium alone

    with _desk(home) as links, tempfile.TemporaryDirectory() as profile, open_browser(Path(profile)) as page:
        width, height = DESK_SIZE
        page.tell("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        for name, person, path, pressed in DESK:
            page.go("about:blank")
            page.go(links[person])
            page.wait("document.readyState == 'complete' && location.pathname != '/login'")
            page.go(page.evaluate("location.href").rstrip("/") + path)
            page.wait("document.readyState == 'complete'")
            if pressed:
                page.evaluate(f"window.before = 1; ({_PRESS})({json.dumps(pressed)})")
                page.wait("!window.before && document.readyState == 'complete'")
            picture = page.tell("Page.captureScreenshot", format="webp", quality=70)["data"]
            (out / f"{name}.webp").write_bytes(base64.b64decode(picture))
            print(f"docs/screenshots/{name}.webp")


_PRESS = (
    "text => { const form = [...document.forms].find(f => f.innerText.includes(text));"
    " const choice = form.querySelector('input[type=radio]'); if (choice) choice.checked = true; form.requestSubmit() }"
)


@contextmanager
def _desk(home: Path) -> Iterator[dict[str, str]]:
    """The link of each person, while the desk of a demo is open."""
    port = _free_port()
    command = [sys.executable, "-m", "release_pipeline.cli", "desk", "--home", str(home), "--demo", "--port", str(port)]
    with tempfile.TemporaryFile("w+") as printed, _process(command, printed):
        _wait(f"http://127.0.0.1:{port}/alive")
        said = ""
        while "docs/desk.md" not in said:
            time.sleep(0.5)
            printed.seek(0)
            said = printed.read()
        yield dict(re.findall(r"^  (\w+) \(.*\n.*\n    (http\S+)", said, re.MULTILINE))


@contextmanager
def _ui() -> Iterator[str]:
    port = _free_port()
    command = [str(Path(sys.executable).with_name("release-pipeline")), "ui", "--home", str(ROOT / "demo"), "--port", str(port)]
    with tempfile.TemporaryFile("w+") as printed, _process(command, printed):
        _wait(f"http://127.0.0.1:{port}/server_info")
        time.sleep(1)
        printed.seek(0)
        yield next(line for line in printed if line.startswith("to operate: ")).partition(": ")[2].strip()


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
def _process(command: list[str], out: Any = subprocess.DEVNULL) -> Iterator[None]:
    with subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL, start_new_session=True) as process:  # noqa: S603
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
