"""The agent asks desks by https: those alone whose certificate this machine trusts, under the name that the person gave."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from release_pipeline.agent import desk as asking
from release_pipeline.flow.reviewing.bundle import write_bundle
from release_pipeline.sign import Signer, read_signer
from tests.certificates import make_certificate
from tests.integration.fake_desks import FakeDesk, open_agent, open_desk
from tests.integration.people import copy_site
from tests.integration.sites import TinySite

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of this machine."""
    return make_certificate(tmp_path_factory.mktemp("tls") / "here.pem")


@pytest.fixture(scope="module")
def tiny(candidate: Path, tmp_path_factory: pytest.TempPathFactory) -> TinySite:
    """A site with a candidate."""
    return copy_site(candidate, tmp_path_factory.mktemp("tls") / "site")


@pytest.fixture(scope="module")
def bundle(tiny: TinySite, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is to be signed."""
    file = tmp_path_factory.mktemp("bundle") / "bundle.zip"
    write_bundle(tiny.site, "people/1/r1", file)
    return file


@pytest.fixture
def desk(certificate: Path) -> Iterator[FakeDesk]:
    """A desk with this certificate."""
    with open_desk(certificate) as desk:
        yield desk


@pytest.fixture(scope="module")
def ben(key_folder: Path) -> Signer:
    """His key."""
    return read_signer(key_folder / "ben")


def test_a_desk_with_a_certificate_that_is_trusted_gets_what_is_signed(
    tiny: TinySite, desk: FakeDesk, ben: Signer, bundle: Path, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole way: ticket, bundle, statement."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    given = desk.tickets[ticket := desk.give(bundle, "ben")]
    with open_agent([desk.origin], [ben]) as machine:
        page = machine.open(desk, ticket)
        assert page.status == 200, page.text
        done = machine.send(page, do="sign", verdict="approve", why="", typed=str(tiny.status().candidate_hash)[:8])
    assert "Signed, and the desk says that it has it" in done.text
    assert [one["statement"]["name"] for one in given.statements] == ["ben"]


@pytest.mark.parametrize(
    ("trusted", "host", "words"),
    [(False, "127.0.0.1", "self-signed certificate"), (True, "localhost", "not valid for")],
)
def test_no_other_is_asked_for_anything(
    desk: FakeDesk,
    ben: Signer,
    bundle: Path,
    certificate: Path,
    monkeypatch: pytest.MonkeyPatch,
    trusted: bool,
    host: str,
    words: str,
) -> None:
    """One that nobody here trusts, and one of another name: the page says why, and no ticket leaves the machine."""
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    origin = desk.origin.replace("127.0.0.1", host)
    with open_agent([origin], [ben]) as machine:
        page = machine.open(desk, desk.give(bundle, "ben"), origin)
        assert page.status == 502
        assert "its certificate is not trusted here" in page.text
        assert words in page.text
        assert list(machine.folder.iterdir()) == []
    assert desk.asked == []


def test_one_that_never_ends_is_cut_off_by_tls_too(
    desk: FakeDesk, ben: Signer, bundle: Path, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever reads from the connection is not disturbed by its end."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    monkeypatch.setattr(asking, "LONGEST_SECONDS", 0.5)
    ticket = desk.give(bundle, "ben")
    with desk.dripping(f"/tickets/{ticket}"), open_agent([desk.origin], [ben]) as machine:
        page = machine.open(desk, ticket)
    assert page.status == 502
    assert "the desk could not be asked" in page.text
