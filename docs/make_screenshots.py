"""Make docs/screenshots/ again from the demo: its Dagster UI, a reviewers' page, the desk and the overview of the README. It
needs Chromium.

    make demo && .venv/bin/python docs/make_screenshots.py          # all of them
    .venv/bin/python docs/make_screenshots.py desk                  # those of the desk only, from the demo as it is
"""

from __future__ import annotations

import base64
import csv
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
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.integration.browser import open_browser  # noqa: E402  the line above says where it is

if TYPE_CHECKING:
    from tests.integration.browser import Page

OUT = ROOT / "docs" / "screenshots"
DEMO = ROOT / "demo"
SHOTS: list[tuple[str, str, tuple[int, int], str]] = [  # name, path, size, text of a button to press first
    ("lineage", "assets/rand_hie_table/published?view=lineage&lineageScope=upstream&lineageDepth=10", (2500, 800), ""),
    ("zones", "asset-groups", (1900, 700), ""),
    ("candidate", "assets/rand_hie_table/candidate?view=overview&partition=1", (1500, 1500), ""),
    ("plots", "assets/rand_hie_table/candidate?view=overview", (1500, 1900), "Plots"),
    ("checks", "assets/rand_hie_table/validated?view=checks", (1500, 1000), ""),
    ("partitions", "assets/rand_hie_table/candidate?view=partitions&partition=1", (1500, 1100), ""),
    ("columns", "assets/rand_hie_table/candidate?view=partitions&partition=1", (1500, 1700), ""),
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
]
DESK_SIZE = (1280, 1150)
WAIT = 20.0  # seconds, enough on a busy machine
REPORT = DEMO / "vault" / "candidates" / "election-licensed" / "once" / "r1" / "report.html"
PACKAGE = DEMO / "releases" / "rand-hie-table" / "1" / "r1"
SHOWN = {"site": "site", "female": "female", "age": "age", "num": "family", "income": "income", "mdvis": "visits"}
ROWS = 3
OVERVIEW = """<!DOCTYPE html><meta charset="utf-8"><style>
body {{ margin: 0; padding: 24px 26px; width: 1188px; font: 15px/1.4 system-ui, sans-serif; color: #1d2327; }}
main {{ display: grid; grid-template-columns: 577px 577px; gap: 24px 34px; }}
h2 {{ margin: 0 0 10px; font-size: 18px; color: #0b4a55; }}
b {{ display: inline-block; width: 24px; margin-right: 8px; border-radius: 50%; background: #0b4a55; color: #fff;
  font-size: 14px; line-height: 24px; text-align: center; }}
p {{ margin: 0 0 12px; color: #555e66; }}
table {{ width: 100%; border-collapse: collapse; }}
th, td {{ padding: 4px 8px; text-align: left; border-bottom: 1px solid #d9dee2; }}
div {{ height: 430px; overflow: hidden; border: 1px solid #ccd2d7; border-radius: 8px; }}
iframe {{ width: 824px; height: 614px; border: 0; transform: scale(.7); transform-origin: 0 0; }}
</style><main>
<section><h2><b>1</b>Original rows</h2><p>Confidential; they stay in the vault.</p>{original}</section>
<section><h2><b>2</b>Published rows</h2><p>Synthetic, made from noisy counts: no row belongs to a person.</p>{published}</section>
<section><h2><b>3</b>The reviewers' page</h2><p>Two people decide from it, and sign.</p>
<div><iframe src="{report}" scrolling="no"></iframe></div></section>
<section><h2><b>4</b>The public card</h2><p>Says what is guaranteed and what is not.</p>
<div><iframe src="{card}" scrolling="no"></iframe></div></section>
</main>"""


def main() -> None:
    """Open a browser, visit each page, and write each picture."""
    OUT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, open_browser(Path(folder) / "profile") as page:
        page.tell("Emulation.setScrollbarsHidden", hidden=True)
        shoot_desk(page)
        if sys.argv[1:] != ["desk"]:
            shoot_ui(page)
            shoot_report(page)
            shoot_overview(page, Path(folder))


def shoot_ui(page: Page) -> None:
    """Pictures of Dagster's pages. They load their parts one after the other, and nothing says when the last is there."""
    with _ui() as link:
        page.go(link)
        time.sleep(WAIT)
        address = page.evaluate("location.href").rpartition("/")[0]
        for name, path, (width, height), button in SHOTS:
            _resize(page, width, height)
            page.go(f"{address}/{path}")
            time.sleep(WAIT)
            if button:
                page.evaluate(f"({_CLICK})({json.dumps(button)})")
                time.sleep(WAIT / 2)
            _write(page, f"{name}.png")


def shoot_report(page: Page) -> None:
    """Pictures of the reviewers' page: its top, and the whole of it on a desktop, a phone, in the dark and on paper."""
    page.go(REPORT.as_uri())
    page.wait("document.readyState == 'complete' && location.protocol == 'file:'")
    for name, width, top, media, scheme in VIEWS:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        page.tell("Emulation.setEmulatedMedia", media=media, features=features)
        _resize(page, width, 900)
        _resize(page, width, top or page.evaluate("document.documentElement.scrollHeight"))
        _write(page, f"report-{name}.webp", captureBeyondViewport=not top)
    page.tell("Emulation.setEmulatedMedia", media="", features=[])


def shoot_overview(page: Page, folder: Path) -> None:
    """The picture of the README: rows before and after, what reviewers see and what the public sees."""
    with (DEMO / "data" / "randhie.csv").open(newline="") as file:
        people = [row | {"age": row["xage"].partition(".")[0]} for row in csv.DictReader(file) if row["year"] == "1"]
    with (PACKAGE / "data.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    files = {"report": REPORT.as_uri(), "card": (PACKAGE / "privacy-card.html").as_uri()}
    tables = {"original": _table({"zper": "person", **SHOWN}, people), "published": _table(SHOWN, rows)}
    overview = folder / "overview.html"
    overview.write_text(OVERVIEW.format(**tables, **files), encoding="utf-8")
    _resize(page, 1240, 760)
    page.go(overview.as_uri())
    page.wait("document.readyState == 'complete' && location.pathname.endsWith('overview.html')")
    _write(page, "overview.png")


def _table(titles: dict[str, str], rows: list[dict[str, str]]) -> str:
    """The first rows as HTML, with columns by their titles."""
    lines = ["".join(f"<th>{title}" for title in titles.values())]
    for row in rows[:ROWS]:
        cells = (f"{float(row[name]):,.0f}" if name == "income" else row[name] for name in titles)
        lines.append("".join(f"<td>{cell}" for cell in cells))
    return f"<table><tr>{'<tr>'.join(lines)}</table>"


def shoot_desk(page: Page) -> None:
    """Pictures of the demo's desk, each as the person who works there sees it."""
    with _desk(DEMO) as links:
        _resize(page, *DESK_SIZE)
        for name, person, path, pressed in DESK:
            page.go("about:blank")
            page.go(links[person])
            page.wait("document.readyState == 'complete' && location.pathname != '/login'")
            page.go(page.evaluate("location.href").rstrip("/") + path)
            page.wait("document.readyState == 'complete'")
            if pressed:
                page.evaluate(f"window.before = 1; ({_PRESS})({json.dumps(pressed)})")
                page.wait("!window.before && document.readyState == 'complete'")
            _write(page, f"{name}.webp")


def _resize(page: Page, width: int, height: int) -> None:
    phone = width < 500
    page.tell("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)


def _write(page: Page, name: str, **how: Any) -> None:
    """Write the picture of what the page shows."""
    kind = {"format": "webp", "quality": 70} if name.endswith(".webp") else {"format": "png"}
    picture = page.tell("Page.captureScreenshot", **kind, **how)["data"]
    (OUT / name).write_bytes(base64.b64decode(picture))
    print(f"docs/screenshots/{name}")


_CLICK = (
    "text => { for (const part of document.querySelectorAll('button,label'))"
    " if (part.textContent.trim() === text) { part.click(); return true } return false }"
)
_PRESS = (
    "text => { const form = [...document.forms].find(f => f.innerText.includes(text));"
    " const choice = form.querySelector('input[type=radio]'); if (choice) choice.checked = true; form.requestSubmit() }"
)


@contextmanager
def _desk(home: Path) -> Iterator[dict[str, str]]:
    """The link of each person, while the desk of a demo is open."""
    port = _free_port()
    program = [sys.executable, "-m", "release_pipeline.apps.cli", "desk"]
    with _process([*program, "--home", str(home), "--port", str(port)]):
        _wait(f"http://127.0.0.1:{port}/alive")
        links: dict[str, str] = {}
        for name in {person for _, person, _, _ in DESK}:
            printed = subprocess.check_output([*program, "token", name, "--home", str(home)], text=True)  # noqa: S603
            links[name] = f"http://127.0.0.1:{port}/login#{printed.strip().rpartition('#')[2]}"
        yield links


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
