"""Which addresses are those of a desk."""

from __future__ import annotations

import pytest

from release_pipeline.agent.origins import read_origin
from release_pipeline.errors import WrongUsage

RIGHT = {
    "https://desk.example": "https://desk.example",
    "https://desk.example/": "https://desk.example",
    "https://DESK.example:443": "https://desk.example",
    "https://desk.example:8443": "https://desk.example:8443",
    "http://127.0.0.1:8796": "http://127.0.0.1:8796",
    "http://localhost:8796": "http://localhost:8796",
    "http://[::1]:8796": "http://[::1]:8796",
    "https://[2001:db8::1]": "https://[2001:db8::1]",
}
WRONG = [
    *("", "desk.example", "ftp://desk.example", "https://", "https:///x", "https://desk.example/desk", "https://desk.example?a"),
    *("https://desk.example#a", "https://ana@desk.example", "https://ana:" + "word@desk.example", "https://desk.example:0"),
    *(
        "https://desk.example:99999",
        "https://desk.example:x",
        "https://d\u0435sk.example",
        "https://desk.example\n",
        "//desk.example",
    ),
    *("https://desk example", "https://[::1", "https://[fe80::1%25eth0]", "javascript:alert(1)", "https://-desk.example"),
]
FAR = ["http://desk.example", "http://127.0.0.1.example", "http://[2001:db8::1]", "http://localhost.example", "http://0.0.0.0:1"]


@pytest.mark.parametrize("text", RIGHT)
def test_an_origin_is_written_as_browsers_do(text: str) -> None:
    """One text for each."""
    assert read_origin(text).text == RIGHT[text]


@pytest.mark.parametrize("text", WRONG)
def test_what_is_no_origin_is_refused(text: str) -> None:
    """With something behind it, before it, or in it."""
    with pytest.raises(WrongUsage, match=r"not the address of a desk"):
        read_origin(text)


@pytest.mark.parametrize("text", FAR)
def test_a_desk_elsewhere_is_asked_by_https(text: str) -> None:
    """Names that only look like this machine are elsewhere."""
    with pytest.raises(WrongUsage, match="https alone"):
        read_origin(text)
