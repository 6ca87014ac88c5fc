"""axe-core in the browser of the tests. It is not shipped with the project: `RELEASE_PIPELINE_AXE` names its axe.min.js."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.integration.browser import Page

AXE = "RELEASE_PIPELINE_AXE"
LOOKS = [(width, colours) for width in (1280, 360) for colours in ("light", "dark")]  # at which a page is looked at
_RUN = """axe.run(document, {resultTypes: ["violations"]}).then((found) => JSON.stringify(found.violations.map(
    (one) => [one.impact, one.id, one.nodes.map((node) => node.target.join(" "))])))"""


def load_axe() -> str:
    """The program; skips where nobody names it, or where what is named is not there."""
    named = os.environ.get(AXE)
    if named is None:
        pytest.skip(f"{AXE} does not name axe.min.js: CONTRIBUTING.md says how to get it")
    return Path(named).read_text(encoding="utf-8")


def find_violations(browser: Page, axe: str, file: Path) -> list[str]:
    """All that axe finds on a page in a file."""
    return find_violations_at(browser, axe, file.as_uri())


def find_violations_at(browser: Page, axe: str, address: str) -> list[str]:
    """All that axe finds on a page, at each width and in light and dark: its impact, the rule, and where."""
    found: list[str] = []
    browser.tell("Page.setBypassCSP", enabled=True)  # the page itself lets no script run
    for width, colours in LOOKS:
        features = [{"name": "prefers-color-scheme", "value": colours}]
        browser.tell("Emulation.setEmulatedMedia", media="screen", features=features)
        browser.tell("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)
        browser.go("about:blank")
        browser.go(address)
        browser.wait("document.readyState === 'complete' && location.href !== 'about:blank'")
        browser.tell("Runtime.evaluate", expression=axe)
        violations: list[tuple[str, str, Any]] = json.loads(browser.evaluate(_RUN))
        found += [f"{impact}: {rule} ({width}, {colours}): {places[:3]}" for impact, rule, places in violations]
    return found
