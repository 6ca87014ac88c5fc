"""Several UNIX accounts on one machine: the table of docs/operating.md, walked with real ones."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from release_pipeline import sign
from release_pipeline.cli import main
from tests.integration.people import PASSPHRASE, copy_site
from tests.integration.sites import ROOT, TinySite

PEOPLE = {"operator": 61001, "steward": 61002, "reviewer": 61003, "officer": 61004, "auditor": 61005, "public": 61006}
STEWARDS = 61102  # the group that writes policies
pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can become other accounts")


def be(person: str, work: Callable[[], object]) -> str:
    """What happens when this account does it: nothing, or the name of what it met. In a process of its own."""
    hears, tells = os.pipe()
    if (child := os.fork()) == 0:
        try:
            uid = PEOPLE[person]
            os.setgroups([STEWARDS] if person == "steward" else [])
            os.setgid(uid)
            os.setuid(uid)
            os.umask(0o022)
            with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
                found = work()
            words = "" if not found else f"exit code {found}: {out.getvalue()[-300:]}{err.getvalue()[-300:]}"
        except BaseException as error:
            words = type(error).__name__
        os.write(tells, words.encode())
        os._exit(0)
    os.close(tells)
    with os.fdopen(hears) as heard:
        words = heard.read()
    os.waitpid(child, 0)
    return words


@pytest.fixture
def office(candidate: Path, key_folder: Path) -> Iterator[TinySite]:
    """A site as docs/operating.md says to set it up: the operator's, with policies that the group of stewards writes."""
    folder = Path(tempfile.mkdtemp(dir="/tmp", prefix="accounts-"))
    folder.chmod(0o755)
    tiny = copy_site(candidate, folder / "site")
    for path in (folder, tiny.home, *tiny.home.rglob("*")):
        os.chown(path, PEOPLE["operator"], PEOPLE["operator"])
    for path in (tiny.home / "policies", *(tiny.home / "policies").iterdir()):
        os.chown(path, PEOPLE["operator"], STEWARDS)
        path.chmod(0o2775 if path.is_dir() else 0o664)
    for person, key in (("reviewer", "ben"), ("officer", "olga")):
        own = folder / person
        own.mkdir(mode=0o700)
        shutil.copy(key_folder / f"{key}.key", own / "my.key")
        (own / "pass").write_text(PASSPHRASE)
        for path in (own, *own.iterdir()):
            os.chown(path, PEOPLE[person], PEOPLE[person])
    yield tiny
    shutil.rmtree(folder)


def read_table() -> dict[str, dict[str, str]]:
    """Who may do what with which place, as docs/operating.md has it: r, w, or nothing."""
    section = (ROOT / "docs" / "operating.md").read_text().partition("## Who may read and write what")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line.startswith("|")]
    assert rows[0][1:] == list(PEOPLE)
    return {re.sub("`", "", place): dict(zip(PEOPLE, marks, strict=True)) for place, *marks in rows[2:]}


def test_the_table_holds_for_real_accounts(office: TinySite) -> None:
    """Every cell of it: what may be read and written is, what may not is refused by the system."""
    home = office.home
    table = read_table()
    assert {"vault/", "registry.duckdb", "policies/", "trusted-keys.yaml", "site.yaml"} <= set(table)
    (home / "releases").mkdir(exist_ok=True)
    os.chown(home / "releases", PEOPLE["operator"], PEOPLE["operator"])
    for place, marks in table.items():
        path = home / place
        assert path.exists(), place
        for person, may in marks.items():
            readable = be(person, lambda path=path: [*path.iterdir()] and None if path.is_dir() else path.read_bytes() and None)
            writable = be(person, lambda path=path: _touch(path))
            assert (readable == "", writable == "") == ("r" in may, "w" in may), (place, person, may, readable, writable)


def _touch(path: Path) -> None:
    if path.is_dir():
        (path / "new").write_bytes(b"")
        (path / "new").unlink()
        return
    with path.open("ab"):
        pass


def test_a_review_by_accounts_of_their_own(office: TinySite, monkeypatch: pytest.MonkeyPatch) -> None:
    """The operator exports, the reviewer signs without seeing the vault, the operator imports; nobody else can."""
    home, folder = office.home, office.home.parent
    bundle, desk = folder / "bundle.zip", folder / "reviewer"
    site = ["--home", str(home)]
    assert main(["review", "export", "people/1", "-o", str(folder / "warm.zip"), *site]) == 0  # loads what accounts cannot read
    (folder / "warm.zip").unlink()
    for path in (home / "registry.duckdb", home / "vault" / "registry.head"):
        os.chown(path, PEOPLE["operator"], PEOPLE["operator"])
    for person in PEOPLE:
        done = be(person, lambda: main(["review", "export", "people/1", "-o", str(bundle), *site]))
        assert (done == "") == (person == "operator"), (person, done)
    zipfile.ZipFile(bundle).close()  # loads the codec of names in zips
    given = desk / "bundle.zip"
    assert be("reviewer", bundle.read_bytes) == "PermissionError"  # 0600: the operator hands it over, here root does
    shutil.copy(bundle, given)
    os.chown(given, PEOPLE["reviewer"], PEOPLE["reviewer"])
    monkeypatch.setenv("TMPDIR", str(desk))
    monkeypatch.setattr(tempfile, "tempdir", None)
    command = [str(given), "--key", str(desk / "my.key"), "--passphrase-file", str(desk / "pass"), "--yes"]
    assert "PermissionError" in be("operator", lambda: (desk / "my.key").read_bytes() and None)
    assert be("reviewer", lambda: sign.main([*command, "-o", str(desk / "said.json")])) == ""
    taken = [folder / "said.json", folder / "said.json.sig"]
    for file in taken:
        shutil.copy(desk / file.name, file)
        os.chown(file, PEOPLE["operator"], PEOPLE["operator"])
    for person in ("steward", "reviewer", "officer", "auditor", "public", "operator"):
        done = be(person, lambda: main(["review", "import", str(taken[0]), *site]))
        assert (done == "") == (person == "operator"), (person, done)
    assert office.status().approvers == ["ben"]
