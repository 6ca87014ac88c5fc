"""Who somebody is, where a proxy says it: by the secret that it shares, and by nothing else. For the desk, behind one."""

from __future__ import annotations

from pathlib import Path

import pytest

from release_pipeline.apps.desk.opening import read_proxy
from release_pipeline.apps.door import ProxyHeaders, Refused
from release_pipeline.errors import ReleasePipelineError

SECRET = "0123456789abcdef0123456789abcdef"  # noqa: S105
PROXY = ProxyHeaders(SECRET, "x-desk-secret", "x-forwarded-user", ("Desk.example.org",))
FILE = "hosts: [desk.example.org]\nsecret_file: proxy.secret\nsecret_header: X-Desk-Secret\nperson_header: X-Forwarded-User\n"


def test_who_came_through_the_proxy() -> None:
    """Is whom it names."""
    assert PROXY.find_person([(b"X-Desk-Secret", SECRET.encode()), (b"x-forwarded-user", b"ben")]) == "ben"
    assert PROXY.addresses.hosts == {"desk.example.org"}
    assert PROXY.addresses.origins == {"https://desk.example.org"}


@pytest.mark.parametrize(
    "sent",
    [
        [],
        [(b"x-forwarded-user", b"ben")],
        [(b"x-desk-secret", SECRET[:-1].encode()), (b"x-forwarded-user", b"ben")],
        [(b"x-desk-secret", b"\xff" * 32), (b"x-forwarded-user", b"ben")],
        [(b"x-desk-secret", SECRET.encode())],
        [(b"x-desk-secret", SECRET.encode()), (b"x-desk-secret", b"x"), (b"x-forwarded-user", b"ben")],
        [(b"x-desk-secret", SECRET.encode()), (b"x-forwarded-user", b"ben"), (b"X-Forwarded-User", b"olga")],
    ],
)
def test_nobody_else_is_anybody(sent: list[tuple[bytes, bytes]]) -> None:
    """Whatever the headers say, and twice is not at all."""
    with pytest.raises(Refused) as refused:
        PROXY.find_person(sent)
    assert refused.value.status in (400, 403)
    assert SECRET not in refused.value.words
    assert "ben" not in refused.value.words


def write(folder: Path, text: str = FILE, secret: str = SECRET, mode: int = 0o600) -> Path:
    """The file of a proxy, with its secret beside it."""
    (folder / "proxy.secret").write_text(f"{secret}\n")
    (folder / "proxy.secret").chmod(mode)
    (folder / "proxy.yaml").write_text(text)
    return folder / "proxy.yaml"


def test_a_file_is_read(tmp_path: Path) -> None:
    """Headers in lower case, as servers have them."""
    assert read_proxy(write(tmp_path)) == ProxyHeaders(SECRET, "x-desk-secret", "x-forwarded-user", ("desk.example.org",))


@pytest.mark.parametrize(
    ("text", "secret", "mode", "words"),
    [
        ("hosts: [a]", SECRET, 0o600, "exactly these"),
        (FILE.replace("[desk.example.org]", "[]"), SECRET, 0o600, "'hosts' needs a name"),
        (FILE.replace("[desk.example.org]", "desk.example.org"), SECRET, 0o600, "'hosts' is a list"),
        (FILE.replace("X-Forwarded-User", "x-desk-secret"), SECRET, 0o600, "the headers must differ"),
        (FILE.replace("X-Forwarded-User", "'a b'"), SECRET, 0o600, "letters, digits and hyphens"),
        (FILE.replace("proxy.secret", "none"), SECRET, 0o600, "is missing"),
        (FILE, "short", 0o600, "32 or more"),
        (FILE, SECRET, 0o644, "every account can read"),
    ],
)
def test_a_file_that_is_not_whole_is_told(tmp_path: Path, text: str, secret: str, mode: int, words: str) -> None:
    """Before anything starts, without the secret."""
    with pytest.raises(ReleasePipelineError, match=words) as refused:
        read_proxy(write(tmp_path, text, secret, mode))
    assert secret not in refused.value.in_full
