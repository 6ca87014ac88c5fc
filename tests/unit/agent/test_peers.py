"""Whose a connection is, by lists of sockets as Linux writes them."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import pytest

from release_pipeline.agent import peers

pytestmark = pytest.mark.skipif(sys.byteorder != "little" or not hasattr(os, "getuid"), reason="lists of such a machine")

CLIENT, AGENT = ("127.0.0.1", 40000), ("127.0.0.1", 8797)
HERE, THERE = "0100007F:9C40", "0100007F:225D"
MAPPED = "0000000000000000FFFF0000"
HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
ME, STRANGER = 1000, 1001


def write_row(local: str, remote: str, *, uid: int, state: str = "01", inode: int = 77) -> str:
    return f"   0: {local} {remote} {state} 00000000:00000000 00:00000000 00000000 {uid:5d}        0 {inode} 1 0 20 4 30 10 -1\n"


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Lists without a socket."""
    found = (tmp_path / "tcp", tmp_path / "tcp6")
    for table in found:
        table.write_text(HEAD)
    monkeypatch.setattr(peers, "_TABLES", found)
    monkeypatch.setattr(peers, "_WAIT_SECONDS", 0.0)
    monkeypatch.setattr(peers.os, "getuid", lambda: ME)
    return found


@pytest.mark.parametrize("state", ["01", "04", "05", "06", "08"])
@pytest.mark.parametrize("uid", [ME, STRANGER])
def test_the_clients_row_counts_in_any_state(tables: tuple[Path, Path], state: str, uid: int) -> None:
    """Beside our own end of the same connection, which is always ours."""
    tables[0].write_text(HEAD + write_row(THERE, HERE, uid=ME) + write_row(HERE, THERE, uid=uid, state=state))
    assert peers.is_ours(CLIENT, AGENT) is (uid == ME)


@pytest.mark.parametrize("uid", [ME, STRANGER])
def test_a_client_by_ipv6_is_found(tables: tuple[Path, Path], uid: int) -> None:
    """The agent listens at an address of IPv4, which such a socket reaches too."""
    tables[1].write_text(HEAD + write_row(MAPPED + HERE, MAPPED + THERE, uid=uid))
    assert peers.is_ours(CLIENT, AGENT) is (uid == ME)


def test_the_agents_own_port_at_another_address_is_another_end(tables: tuple[Path, Path]) -> None:
    """Both rows of such a connection have the same two ports."""
    client = ("127.0.0.2", AGENT[1])
    rows = write_row(THERE, "0200007F:225D", uid=ME) + write_row("0200007F:225D", THERE, uid=STRANGER)
    tables[0].write_text(HEAD + rows)
    assert peers.find_owners(client, AGENT) == {STRANGER}
    assert not peers.is_ours(client, AGENT)


def test_what_is_not_surely_ours_is_refused(tables: tuple[Path, Path]) -> None:
    """No row; one of a socket that no process holds; two that do not agree."""
    assert not peers.is_ours(CLIENT, AGENT)
    tables[0].write_text(HEAD + write_row(HERE, THERE, uid=ME, inode=0))
    assert not peers.is_ours(CLIENT, AGENT)
    tables[0].write_text(HEAD + write_row(HERE, THERE, uid=ME))
    assert peers.is_ours(CLIENT, AGENT)
    tables[1].write_text(HEAD + write_row(MAPPED + HERE, MAPPED + THERE, uid=STRANGER))
    assert not peers.is_ours(CLIENT, AGENT)


def test_a_row_that_was_missed_once_is_looked_for_again(tables: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """The list is read while connections come and go."""
    found = iter([set[int | None](), set[int | None](), {ME}])
    monkeypatch.setattr(peers, "find_owners", lambda *_: next(found))
    assert peers.is_ours(CLIENT, AGENT)


def test_a_list_that_cannot_be_opened_just_now_is_no_missing_list(
    tables: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who holds enough connections brings the agent to where no file can be opened; a system without a list never has one."""

    def fail(self: Path, **_: object) -> str:
        raise OSError(errno.EMFILE, "no more files")

    with monkeypatch.context() as crowded:
        crowded.setattr(Path, "read_text", fail)
        assert not peers.is_ours(CLIENT, AGENT)
    assert peers.can_tell()
    for table in tables:
        table.unlink()
    assert peers.is_ours(CLIENT, AGENT)
    assert not peers.can_tell()
