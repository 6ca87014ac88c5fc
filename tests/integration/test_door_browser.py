"""A real browser: somebody who is logged in at the door opens a hostile page of another origin, and nothing comes of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.browser import Page, open_browser
from tests.integration.test_door import Server, door, token_of, wait_for

__all__ = ["door"]  # a fixture
pytestmark = pytest.mark.slow


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    """A browser in which the names of the hostile page, and of a name that was rebound, are this machine."""
    with open_browser(tmp_path / "profile", "--host-resolver-rules=MAP *.example 127.0.0.1") as page:
        yield page


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
