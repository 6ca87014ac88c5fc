"""Somebody has taken over the desk's web process: what its account can do to the site, with real accounts, and to the backend.

It may refuse service, and it gets what people who are logged in may see. It reads nothing else, approves nothing, and publishes
nothing.
"""

from __future__ import annotations

import codecs
import contextlib
import http.client
import json
import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from release_pipeline.apps.desk.backend.people import make_token
from release_pipeline.apps.desk.backend.server import serving_backend
from release_pipeline.apps.desk.backend.service import CALLS, Backend
from release_pipeline.trust.keys import PrivateKey
from tests.guards import HANGING
from tests.integration.desks import KNOWN, RELEASE, add_people
from tests.integration.people import copy_site
from tests.integration.processes import child, hear
from tests.integration.sites import TinySite

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.getuid() != 0, reason="only root can become other accounts")]
SITE, WEB, THIRD = 61301, 61302, 61303  # accounts
CANARY = "kanarie"


def _become(account: int) -> None:
    os.setgroups([])
    os.setgid(account)
    os.setuid(account)
    os.umask(0o022)


def _serve(home: Path, path: Path, tells: Connection) -> None:
    """The backend as its command opens it, on the site's account, which may have no way to Python's own folder any more."""
    for name in ("ascii", "latin_1", "idna", "raw_unicode_escape"):
        codecs.lookup(name)
    _become(SITE)
    with serving_backend(path, Backend(TinySite(home).site), frozenset({WEB})):
        tells.send("ready")
        threading.Event().wait()


def _do(account: int, work: Callable[..., Any], arguments: tuple[Any, ...], tells: Connection) -> None:
    _become(account)
    try:
        tells.send(work(*arguments))
    except OSError as error:
        tells.send(type(error).__name__)


def do_as(account: int, work: Callable[..., Any], *arguments: Any) -> Any:
    """What it gives when this account does it, or the name of what it met."""
    with child(_do, account, work, arguments) as hears:
        return hear(hears)


@pytest.fixture(scope="module")
def office(candidate: Path, key_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder that every account can reach: the site with everything in it, keys beside it, and the socket of a backend."""
    del tmp_path_factory
    folder = Path(tempfile.mkdtemp(dir="/tmp", prefix="captured-"))
    folder.chmod(0o755)
    tiny = copy_site(candidate, folder / "site")
    add_people(tiny)
    shutil.copytree(key_folder, folder / "keys")
    (folder / "run").mkdir(mode=0o755)
    with tiny.site.changing_desk():
        pass
    (folder / "tokens").write_text(json.dumps({name: make_token(tiny.site, name) for name in ("ben", "cleo", "olga")}))
    (folder / "tokens").chmod(0o600)
    for path in (folder / "keys", folder / "run", tiny.home, *tiny.home.rglob("*"), *(folder / "keys").iterdir()):
        os.chown(path, SITE, SITE)
    with child(_serve, tiny.home, folder / "run" / "socket") as hears:
        assert hear(hears) == "ready"
        yield folder
    shutil.rmtree(folder)


class _Connection(http.client.HTTPConnection):
    """A connection to a Unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("desk", timeout=HANGING)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(HANGING)
        self.sock.connect(str(self._path))


def ask(backend: Path, call: str, session: str = "", path: str = "", body: str = "", **arguments: str) -> tuple[int, str]:
    """A call by hand, and the status and the content of the answer; 0 where none came."""
    said = {"call": call, "arguments": arguments, "body": body, "session": session, "path": path, "proxy": []}
    with contextlib.closing(_Connection(backend)) as connection, contextlib.suppress(BrokenPipeError, ConnectionResetError):
        connection.request("POST", "/", json.dumps(said))
        answer = connection.getresponse()
        return answer.status, answer.read().decode("utf-8", "replace")
    return 0, ""


def ask_all(path: Path, questions: list[dict[str, str]]) -> list[tuple[int, str]]:
    """Several."""
    return [ask(path, **one) for one in questions]


def enter(path: Path, token: str) -> dict[str, str]:
    """The session of somebody who logs in at the captured process."""
    status, told = ask(path, "enter", token=token)
    assert status == 200
    return json.loads(told)


def session_of(office: Path, name: str) -> dict[str, str]:
    """Of a person who has come to the captured desk."""
    return do_as(WEB, enter, office / "run" / "socket", json.loads((office / "tokens").read_text())[name])


def look_around(folder: Path) -> list[str]:
    """What this account can read or change of what belongs to the site: everything is tried."""
    found: list[str] = []
    private = [folder / "keys", *(folder / "site" / name for name in ("vault", "desk", "dagster"))]
    secrets = [folder / "site" / "registry.duckdb", folder / "site" / "registry.duckdb.wal", folder / "tokens"]
    for place in private:
        with contextlib.suppress(OSError):
            found += [str(place), *map(str, place.iterdir())]
    names = ("key", "head.json", "folk.duckdb", f"candidates/{RELEASE}/evidence.json", "sent")
    files = [*secrets, *(folder / "site" / "vault" / name for name in names)]
    files += [folder / "site" / "desk" / name for name in ("tokens.json", "drafts-ben.json", "backend.sock")]
    files += [folder / "keys" / name for name in ("olga", "ben", "robot")]
    for file in files:
        with contextlib.suppress(OSError):
            file.read_bytes()
            found.append(str(file))
    return found


def meddle(folder: Path) -> list[str]:
    """What this account can change: files of the site, keys, and what the backend is reached by."""
    found: list[str] = []
    site = folder / "site"
    names = ("policies/people.yaml", "site.yaml", "new", "registry.duckdb", "people.csv", "desk/tokens.json", "vault/new")
    for file in (*(site / name for name in names), folder / "keys" / "ben", folder / "run" / "new"):
        for how in ("ab", "xb"):
            with contextlib.suppress(OSError), file.open(how):
                found.append(f"{how} {file}")
    at = folder / "run" / "socket"
    for change in (at.unlink, lambda: at.rename(at.with_name("other")), lambda: at.chmod(0o600), (site / "policies").rmdir):
        with contextlib.suppress(OSError):
            change()
            found.append("a change")
    return found


def test_its_account_has_nothing_of_the_site(office: Path) -> None:
    """Neither registry, vault, keys, tokens nor drafts; nor can it put a socket of its own in the place of the backend's."""
    ben = session_of(office, "ben")
    remark = {"what": "candidate", "subject": RELEASE, "passage": "", "text": CANARY}
    [(status, _)] = do_as(WEB, ask_all, office / "run" / "socket", [{"call": "remark", **ben, **remark}])
    assert status == 200
    assert (office / "site" / "desk" / "drafts-ben.json").exists()
    assert do_as(WEB, look_around, office) == do_as(WEB, meddle, office) == []
    assert len(do_as(SITE, look_around, office)) > 10, "the test looks where something is"


def test_a_third_account_is_not_heard(office: Path) -> None:
    """The socket says which account asks; the site's own may."""
    path = office / "run" / "socket"
    assert do_as(THIRD, ask, path, "greet") in ((0, ""), "BrokenPipeError")
    assert do_as(WEB, ask, path, "greet")[0] == do_as(SITE, ask, path, "greet")[0] == 200


def test_with_bens_session_it_gets_what_ben_may_see(office: Path, keys: dict[str, PrivateKey]) -> None:
    """And nothing of his can be approved with it: a statement is forged, or it is his."""
    path, ben, cleo = office / "run" / "socket", session_of(office, "ben"), session_of(office, "cleo")
    [(status, report), (_, line)] = do_as(
        WEB, ask_all, path, [{"call": "report", **ben, **KNOWN}, {"call": "release", **ben, **KNOWN}]
    )
    assert (status, report[:15]) == (200, "<!DOCTYPE html>")
    digest = json.loads(line)["candidate"]["hash"]
    tiny = TinySite(office / "site")
    before = len(tiny.events())
    stolen = keys["stranger"].sign(kind="approve", subject=RELEASE, digest=digest, name="ben")
    honest = keys["ben"].sign(kind="return", subject=RELEASE, digest=digest, name="ben", why="no")
    forged: list[dict[str, Any]] = [
        stolen,
        {**stolen, "statement": {**stolen["statement"], "signer": honest["statement"]["signer"]}},
        {**honest, "statement": {**honest["statement"], "kind": "approve"}},
        {**honest, "statement": {**honest["statement"], "why": "yes"}},
        {**honest, "sshsig": stolen["sshsig"]},
        keys["ben"].sign(kind="return", subject="people/2/r1", digest=digest, name="ben", why="no"),
    ]
    questions = [
        {"call": "statements", **who, **KNOWN, "what": "candidate", "subject": RELEASE, "body": json.dumps({"statements": [one]})}
        for one in forged
        for who in (ben, cleo)
    ]
    told = do_as(WEB, ask_all, path, questions)
    assert {status for status, _ in told} <= {400, 403, 409}, told
    of_release = {**KNOWN, "what": "candidate", "subject": RELEASE, "body": json.dumps({"statements": [honest]})}
    mixed = [
        {"call": "statements", **cleo, **of_release},
        {"call": "home", "session": ben["session"], "path": cleo["path"]},
        {"call": "publish", **ben, **KNOWN},
        {"call": "__init__", **ben},
    ]
    assert [status for status, _ in do_as(WEB, ask_all, path, mixed)] == [403, 401, 404, 404]
    assert len(tiny.events()) == before
    assert tiny.status().state == "candidate"


SECRETS = ("BEGIN ENCRYPTED", "digest", "Traceback", "captured-", "/site-packages")


@pytest.mark.parametrize("value", ["../../vault/key", "people/../../vault/key", "\0"])
def test_no_argument_leads_anywhere_else(office: Path, value: str) -> None:
    """Whatever it asks for in an officer's name, it is told what there is not: no file, no path, no trace of the program."""
    path, olga = office / "run" / "socket", session_of(office, "olga")
    arguments = {**dict.fromkeys((*KNOWN, "verdict", "why", "text", "passage", "number"), value)}
    mixed: list[Mapping[str, str]] = [arguments, {**arguments, "what": "policy"}, {**arguments, "what": "candidate"}]
    questions = [{"call": call.name, **olga, **one} for call in CALLS for one in mixed]
    for (status, words), question in zip(do_as(WEB, ask_all, path, questions), questions, strict=True):
        assert status in (200, 400, 404, 403, 409, 413), (question["call"], words)
        assert not [secret for secret in SECRETS if secret in words], question["call"]
    assert do_as(WEB, ask, path, "greet")[0] == 200
