"""By which name a page of ours is reached, and which page asks: for the door of Dagster's UI and for the desk."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from release_pipeline.apps.door import Refused, local_addresses, read_one

HERE = local_addresses(8796, ["Desk.Example:443"])


def headers(said: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """As ASGI has them."""
    return [(name.encode(), value.encode("latin-1")) for name, value in said.items()]


@pytest.mark.parametrize("host", ["127.0.0.1:8796", "localhost:8796", "LOCALHOST:8796", "desk.example:443", " 127.0.0.1:8796 "])
def test_its_own_names(host: str) -> None:
    """And those that it was told, in capitals or not."""
    HERE.check_host(headers({"host": host}))


@pytest.mark.parametrize(
    "host", ["", "127.0.0.1", "[::1]:8796", "evil.example:8796", "127.0.0.1:8796.evil.example", "desk.example"]
)
def test_no_other_name(host: str) -> None:
    """Nor none."""
    with pytest.raises(Refused) as refused:
        HERE.check_host(headers({"host": host} if host else {}))
    assert refused.value.status == 403
    assert not host or host not in refused.value.words


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_its_own_pages_may_change_something(scheme: str) -> None:
    """Browsers that do not say from which site a page asks say at least which page."""
    for site in ({}, {"sec-fetch-site": "same-origin"}):
        HERE.check_change(headers({"origin": f"{scheme}://127.0.0.1:8796", **site}))


OWN = {"origin": "http://127.0.0.1:8796"}


@pytest.mark.parametrize(
    "said",
    [
        *({}, {"origin": ""}, {"origin": "null"}, {"origin": "http://127.0.0.1"}, {"origin": "http://127.0.0.1:8797"}),
        *(
            {"origin": "http://127.0.0.1:8796.evil.example"},
            {"sec-fetch-site": "same-origin"},
            {**OWN, "sec-fetch-site": "same-site"},
        ),
        *({**OWN, "sec-fetch-site": "cross-site"}, {**OWN, "sec-fetch-site": "none"}, {"referer": "http://127.0.0.1:8796/"}),
    ],
)
def test_no_other_page_may(said: Mapping[str, str]) -> None:
    """Nor what is no page."""
    with pytest.raises(Refused):
        HERE.check_change(headers(said))


@pytest.mark.parametrize(
    ("site", "mode", "dest", "may"),
    [
        (None, None, None, True),
        ("none", "navigate", "document", True),
        ("same-origin", "cors", "empty", True),
        ("cross-site", "navigate", "document", True),
        ("cross-site", "navigate", "iframe", False),
        ("cross-site", "no-cors", "image", False),
        ("cross-site", None, None, False),
    ],
)
def test_other_pages_may_lead_here_and_no_more(site: str | None, mode: str | None, dest: str | None, may: bool) -> None:
    """By a link that somebody follows."""
    said = {name: value for name, value in (("site", site), ("mode", mode), ("dest", dest)) if value}
    sent = headers({f"sec-fetch-{name}": value for name, value in said.items()})
    if may:
        HERE.check_look(sent)
    else:
        with pytest.raises(Refused):
            HERE.check_look(sent)


def test_a_header_that_stands_twice_counts_for_nothing() -> None:
    """Whichever is right."""
    for check, name, value in (
        (HERE.check_host, b"host", b"127.0.0.1:8796"),
        (HERE.check_change, b"origin", b"http://127.0.0.1:8796"),
        (HERE.check_look, b"sec-fetch-site", b"none"),
    ):
        check([(name, value)])
        for other in (b"x", value):
            with pytest.raises(Refused) as refused:
                check([(name, value), (name.title(), other)])
            assert refused.value.status == 400
    assert read_one([], b"x") is None
