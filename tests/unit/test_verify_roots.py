"""The verifier where the office changes hands and keys are revoked: packages and lists made here, for strangers who have no site.

Statements are in the form that is signed today; nothing of the package but `verify` is used.
"""

from __future__ import annotations

import http.server
import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from release_pipeline.verifier import revocations
from release_pipeline.verifier.command import verify_path
from release_pipeline.verifier.documents import MOST_JSON
from release_pipeline.verifier.statements import message_of, name_ssh_key
from tests.unit.test_verify import (
    RELEASE,
    TIME,
    USUAL,
    Files,
    World,
    canonical,
    digest,
    failures,
    fingerprint,
    pack_key,
    public_text,
    put,
    sums,
    write_ssh_signature,
)

HOLDERS = ("vera", "wim", "xia")
BEFORE, AFTER = "2026-11-19T00:00:00+00:00", "2026-11-21T00:00:00+00:00"  # of TIME, when everything is signed
LIST = "revoked.json"


class OfficeWorld(World):
    """A site whose officers follow each other: `links` is how, as its packages tell it."""

    def __init__(self) -> None:
        super().__init__()
        for name in (*HOLDERS, "pia"):
            self.secrets[name] = Ed25519PrivateKey.from_private_bytes(name.encode().ljust(32, b"."))
        self.links: list[dict[str, Any]] = []
        self.chain: list[str] = []
        self.named = ""  # the hash of the recovery keys

    def fingerprint(self, name: str) -> str:
        return digest(pack_key(self.raw(name)))

    def raw(self, name: str) -> bytes:
        return self.secrets[name].public_key().public_bytes_raw()

    def entry(self, name: str, role: str) -> dict[str, str]:
        return {"key": name_ssh_key(self.raw(name)), "role": role}

    def keys(self) -> Any:
        return {"keys": {name: self.entry(name, role) for name, role in self.people.items()}}

    def sign(self, name: str, kind: str, subject: str, hash: str, why: str = "", at: str = TIME) -> dict[str, Any]:
        statement = {"kind": kind, "subject": subject, "hash": hash, "name": name, "at": at, "why": why}
        statement["signer"] = self.fingerprint(name)
        return {"statement": statement, "sshsig": write_ssh_signature(message_of(statement), self.secrets[name])}

    def note(self, kind: str, release: str | None = RELEASE, **content: Any) -> None:
        super().note(kind, release, **content)
        if kind == "recovery" or (kind == "trusted" and (not self.links or "succession" in content)):
            self.links.append({"kind": kind, "content": content})
        if kind == "trusted" and (not self.chain or "succession" in content):
            self.chain.append(content["officer"])

    def key_files(self) -> Files:
        way = {"officers.json": canonical({"officers": self.links}).encode()} if len(self.chain) > 1 else {}
        return {**super().key_files(), **way}

    def succeed(
        self,
        name: str,
        *,
        by: tuple[str, ...] = (),
        kind: str = "succession",
        accepted: str = "",
        signed_for: Any = None,
        accepted_at: str = TIME,
        **other: Any,
    ) -> None:
        """The office goes to `name`, signed over by the officer or who is named."""
        before = self.officer()
        del self.people[before]
        self.people[name] = "officer"
        last = json.loads(self.lines[-1])["hash"]
        document = {"from": self.fingerprint(before), "registry": {"event": len(self.lines), "hash": last}}
        document |= {"revoked": [], "recovery": self.named}
        document |= other
        keys = self.keys()["keys"]
        hash = digest(canonical({**document, "keys": signed_for or keys}))
        signed = [self.sign(each, kind, "officer", hash) for each in by or (before,)]
        agreed = self.sign(accepted or name, "accept-office", "officer", hash, at=accepted_at)
        succession = {**document, "signed": signed, "accepted": agreed}
        listed = digest(canonical({"keys": keys}))
        trusted = self.sign(name, "trusted-keys", "trusted-keys", listed)
        self.note("trusted", None, hash=listed, officer=self.fingerprint(name), keys=keys, signed=trusted, succession=succession)

    def name_recovery(self, *names: str, threshold: int = 2, number: int = 1, quorum: tuple[str, ...] = ()) -> None:
        keys = {name: self.entry(name, "recovery") for name in names}
        document = {"keys": keys, "number": number, "threshold": threshold}
        hash = digest(canonical(document))
        agreed = {"quorum": [self.sign(name, "recover", "recovery", hash) for name in quorum]} if quorum else {}
        signed = self.sign(self.officer(), "recovery", "recovery", hash)
        self.note("recovery", None, **document, signed=signed, **agreed)
        self.named = hash

    def revoked(self, *entries: dict[str, Any], number: int = 1, by: str = "") -> bytes:
        """The public list; noted in the chain too where `revoke` says so."""
        document = {"format": "release-pipeline/revoked/1", "number": number, "officers": self.chain, "revoked": list(entries)}
        signed = self.sign(by or self.officer(), "revoke", entries[-1]["key"], digest(canonical(document)))
        return canonical({"document": document, "signed": signed, "officers": self.links}).encode()

    def revoke(self, *entries: dict[str, Any], number: int = 1) -> bytes:
        content = self.revoked(*entries, number=number)
        whole = json.loads(content)
        self.note("revoked", None, key=entries[-1]["key"], document=whole["document"], signed=whole["signed"])
        return content

    def entry_of(self, name: str, since: str, *stands: tuple[str, str, str]) -> dict[str, Any]:
        key = self.fingerprint(name)
        return {"key": key, "name": name, "from": since, "why": "stolen", "stands": [list(each) for each in stands]}


OLGA = fingerprint("olga")


def usual_world(*after: str) -> OfficeWorld:
    world = OfficeWorld()
    world.do(*USUAL, *after)
    return world


def judge(files: Files, folder: Path, known: bytes, officer: str = OLGA) -> list[str]:
    """The failures of a package, or a dossier, with a list of revoked keys."""
    file = folder / LIST
    file.write_bytes(known)
    return failures(verify_path(put(files, folder / "p"), officer, str(file)))


# --- The list of revoked keys ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("since", "stands", "words"),
    [
        (AFTER, True, ""),
        (BEFORE, True, ""),  # the officer's word is what it names, and not the moment in the package
        (AFTER, False, "it is dated back, or was never published"),
        (BEFORE, False, f"it was signed at {TIME} with the key of robot"),
        (TIME, False, f"it was signed at {TIME} with the key of robot"),
    ],
)
def test_a_package_by_a_key_that_was_revoked(since: str, stands: bool, words: str, tmp_path: Path) -> None:
    """What the list names stands; any other package by that key is refused, whatever moment it tells."""
    world = usual_world()
    named = [("package", RELEASE, world.package_hash)] if stands else []
    found = judge(world.package, tmp_path, world.revoked(world.entry_of("robot", since, *named)))
    if words:
        assert [words in each and each.startswith("SHA256SUMS.sig: ") for each in found] == [True]
    else:
        assert found == []


def test_what_stands_is_that_and_nothing_like_it(tmp_path: Path) -> None:
    """Neither the same release with other content, nor the same hash of another release or kind."""
    world = usual_world()
    hash = world.package_hash
    for other in (("package", RELEASE, digest("other")), ("package", "rand-hie/3/r1", hash), ("retract", RELEASE, hash)):
        assert judge(world.package, tmp_path, world.revoked(world.entry_of("robot", AFTER, other)))


def test_an_older_list(tmp_path: Path) -> None:
    """A stranger is told its number, for it knows of no newer one; a dossier that tells of a newer one does."""
    world = usual_world()
    old = world.revoke(world.entry_of("dan", AFTER))
    new = world.revoke(world.entry_of("dan", AFTER), world.entry_of("robot", AFTER), number=2)
    assert judge(world.package, tmp_path, new)
    assert judge(world.package, tmp_path, old) == []
    assert any("list 1 of revoked keys" in str(each) for each in verify_path(tmp_path / "p", OLGA, str(tmp_path / LIST)))
    stands = ("package", RELEASE, world.package_hash)
    world = usual_world()
    old = world.revoke(world.entry_of("dan", AFTER))
    new = world.revoke(world.entry_of("dan", AFTER), world.entry_of("robot", AFTER, stands), number=2)
    assert judge(world.dossier(), tmp_path, new) == []
    [words] = judge(world.dossier(), tmp_path, old)
    assert "list 1 of revoked keys is older than list 2" in words


@pytest.mark.parametrize("officer", [OLGA, None])
def test_a_list_by_somebody_else(officer: str | None, tmp_path: Path) -> None:
    """By another office, or signed in the officer's name by who is not the officer; with a fingerprint to compare or without."""
    world, other = usual_world(), OfficeWorld()
    other.people = {"eve": "officer"}
    other.do("trust")
    file, folder = tmp_path / LIST, put(world.package, tmp_path / "p")
    entry = world.entry_of("ben", AFTER)
    for known, words in (
        (other.revoked(entry), "of other officers"),
        (world.revoked(entry, by="ben"), "which may not sign 'revoke'"),
        (world.revoked(entry, by="eve"), "not in the list of trusted keys"),
    ):
        file.write_bytes(known)
        assert any(words in each for each in failures(verify_path(folder, officer, str(file))))


@pytest.mark.parametrize("part", ["number", "from", "stands", "signed", "format", "officers"])
def test_a_list_that_was_changed(part: str, tmp_path: Path) -> None:
    """Whatever of it was."""
    world = usual_world()
    whole = json.loads(world.revoked(world.entry_of("robot", AFTER)))
    entry = whole["document"]["revoked"][0]
    {
        "number": lambda: whole["document"].update(number=7),
        "from": lambda: entry.update({"from": "2036-01-01T00:00:00+00:00"}),
        "stands": lambda: entry["stands"].append(["package", RELEASE, world.package_hash]),
        "signed": lambda: whole.update(signed=world.sign("olga", "revoke", entry["key"], digest("other"))),
        "format": lambda: whole["document"].update(format="release-pipeline/revoked/9"),
        "officers": lambda: whole["document"].update(officers=[digest("other")]),
    }[part]()
    found = judge(world.package, tmp_path, canonical(whole).encode())
    assert len(found) == 1
    assert found[0].startswith(f"{tmp_path / LIST}: ")


def test_a_list_that_cannot_be_had(tmp_path: Path) -> None:
    """Too long by a byte, no file, a link, a pipe, another protocol: what was asked for was not done, so it is a failure."""
    world = usual_world()
    known = world.revoked(world.entry_of("dan", AFTER))
    padding = b" " * (MOST_JSON - len(known))
    assert judge(world.package, tmp_path, known + padding) == []
    assert any("too long" in words for words in judge(world.package, tmp_path, known + padding + b" "))
    (tmp_path / LIST).write_bytes(known)
    (tmp_path / "link").symlink_to(tmp_path / LIST)
    os.mkfifo(tmp_path / "pipe")
    for place in ("nowhere", "link", "pipe", "p"):
        assert any("no such file" in words for words in failures(verify_path(tmp_path / "p", OLGA, str(tmp_path / place))))
    for place in (f"file://{tmp_path / LIST}", "ftp://127.0.0.1/revoked.json"):
        assert any("no such file" in words for words in failures(verify_path(tmp_path / "p", OLGA, place)))


@contextmanager
def serving(content: bytes) -> Iterator[tuple[str, list[str]]]:
    """A web server on this machine, its address, and what it was asked for."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            moved = self.path == "/moved"
            self.send_response(302 if moved else 404 if self.path == "/away" else 200)
            if moved:
                self.send_header("Location", "/list")
            self.end_headers()
            try:
                for _ in range(1000 if self.path == "/endless" else 1):
                    self.wfile.write(b" " * 2**16 if self.path == "/endless" else content)
            except OSError:  # nobody reads on
                asked.append("closed")

        def log_message(self, format: str, *args: Any) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


def test_a_list_by_its_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it has counts as a file's does; a redirection is not followed, nor is more read than a list can have, nor longer."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    world = usual_world()
    folder = put(world.package, tmp_path / "p")
    with serving(world.revoked(world.entry_of("robot", AFTER))) as (address, asked):
        assert any("dated back" in words for words in failures(verify_path(folder, OLGA, f"{address}/list")))
        for place in ("moved", "away"):
            [words] = failures(verify_path(folder, OLGA, f"{address}/{place}"))
            assert "the address gives nothing" in words
        assert asked == ["/list", "/moved", "/away"]
        [words] = failures(verify_path(folder, OLGA, f"{address}/endless"))
        assert "too long" in words
        with monkeypatch.context() as late:
            clock = iter([0.0, 1000.0])
            late.setattr(revocations, "time", SimpleNamespace(monotonic=lambda: next(clock)))
            [words] = failures(verify_path(folder, OLGA, f"{address}/list"))
            assert "it took longer than 30 s" in words
    [words] = failures(verify_path(folder, OLGA, f"{address}/list"))  # nobody answers any more
    assert "the address gives nothing" in words


# --- How the officers of a package followed each other --------------------------------------------------------------------------


def made_under(*steps: Callable[[OfficeWorld], None]) -> OfficeWorld:
    """A site where all this happened to the office, and then a package."""
    world = OfficeWorld()
    world.do("trust")
    for step in steps:
        step(world)
    world.do("package")
    return world


def to_otto(world: OfficeWorld) -> None:
    world.succeed("otto")


def test_a_package_after_a_succession(tmp_path: Path) -> None:
    """Known to who knows any of its officers, and to nobody else; without the file, to who knows the last."""
    world = made_under(to_otto, lambda world: world.succeed("pia"))
    folder = put(world.package, tmp_path / "p")
    for name in ("olga", "otto", "pia"):
        assert failures(verify_path(folder, world.fingerprint(name))) == []
    assert any("not the one that was given" in words for words in failures(verify_path(folder, world.fingerprint("eve"))))
    rest = {name: content for name, content in world.package.items() if not name.startswith(("officers", "SHA256SUMS"))}
    rest |= world.attest("robot", rest)
    rest["SHA256SUMS"] = sums(rest)
    rest["SHA256SUMS.sig"] = json.dumps(world.sign("robot", "package", RELEASE, digest(rest["SHA256SUMS"]))).encode()
    assert failures(verify_path(put(rest, folder), world.fingerprint("pia"))) == []
    assert failures(verify_path(folder, OLGA))


def test_a_package_after_a_recovery(tmp_path: Path) -> None:
    """Two of three who were named in advance; also after others were named with their consent."""

    def recover(world: OfficeWorld) -> None:
        world.succeed("otto", by=("wim", "xia"), kind="recover")

    def agree(world: OfficeWorld) -> None:
        world.name_recovery("wim", "xia", "pia", number=2, quorum=("vera", "wim"))

    for steps in ([recover], [agree, recover]):
        world = made_under(lambda world: world.name_recovery(*HOLDERS), *steps)
        assert failures(verify_path(put(world.package, tmp_path / "p"), OLGA)) == []


def recovered(*by: str, kind: str = "recover") -> Callable[[], OfficeWorld]:
    return lambda: made_under(lambda world: world.name_recovery(*HOLDERS), lambda world: world.succeed("eve", by=by, kind=kind))


def succeeded(**how: Any) -> Callable[[], OfficeWorld]:
    return lambda: made_under(lambda world: world.succeed("eve", **how))


def with_a_gap() -> OfficeWorld:
    world = made_under(to_otto, lambda world: world.succeed("pia"))
    del world.links[1]
    return world


def with_two_successors() -> OfficeWorld:
    one, other = made_under(to_otto), made_under(lambda world: world.succeed("eve"))
    other.links.insert(1, one.links[1])
    return other


def named_by_a_thief() -> OfficeWorld:
    return made_under(
        lambda world: world.name_recovery(*HOLDERS),
        lambda world: world.name_recovery("eve", threshold=1, number=2),
        lambda world: world.succeed("pia", by=("eve",), kind="recover"),
    )


def begun_by_another() -> OfficeWorld:
    world = made_under(lambda world: world.succeed("eve"))
    del world.links[0]
    return world


def without_an_end() -> OfficeWorld:
    world = made_under(lambda world: world.succeed("eve"))
    world.links = made_under(to_otto).links
    return world


PATHS: dict[str, Callable[[], OfficeWorld]] = {
    "signed over by a reviewer": succeeded(by=("ben",)),
    "signed over by the new officer alone": succeeded(by=("eve",)),
    "signed over by two": succeeded(by=("olga", "ben")),
    "accepted by the old officer": succeeded(accepted="olga"),
    "signed for another list": succeeded(signed_for={"otto": {"key": public_text("otto"), "role": "officer"}}),
    "from another officer": succeeded(**{"from": digest("other")}),
    "with a revocation, by the officer alone": succeeded(revoked=[{"key": fingerprint("ben"), "from": TIME}]),
    "recovered where no recovery keys were named": succeeded(by=HOLDERS, kind="recover"),
    "recovered by one of two": recovered("vera"),
    "recovered by the same twice": recovered("vera", "vera"),
    "recovered by one and a reviewer": recovered("vera", "ben"),
    "recovered by a statement of another kind": recovered("vera", "wim", kind="succession"),
    "recovery keys that a thief named later": named_by_a_thief,
    "a succession that is left out": with_a_gap,
    "two successors of one officer": with_two_successors,
    "an officer who comes back": lambda: made_under(to_otto, lambda world: world.succeed("olga")),
    "a way that begins with a succession": begun_by_another,
    "the way to another officer": without_an_end,
    "no way": lambda: made_under(lambda world: world.succeed("eve"), lambda world: world.links.clear()),
}


@pytest.mark.parametrize("attack", PATHS)
def test_attacks_on_the_way_to_the_officer(attack: str, tmp_path: Path) -> None:
    """Whoever knows olga is told that this package is not hers, nor of anybody who followed her; all else in it is as it
    should be."""
    world = PATHS[attack]()
    world.do("package")
    found = failures(verify_path(put(world.package, tmp_path / "p"), OLGA))
    assert found
    assert all(words.startswith(("officers.json: ", "trusted-keys.json: ")) for words in found)


# --- A tombstone by a later officer ---------------------------------------------------------------------------------------------


def buried(world: OfficeWorld, name: str, links: list[Any]) -> Files:
    """olga's package, superseded by `name`, with this way beside the tombstone."""
    signed = world.sign(name, "supersede", RELEASE, world.package_hash, "rand-hie/2/r2")
    way = {"SUPERSEDED.officers.json": canonical({"officers": links}).encode()} if links else {}
    return {**world.package, "SUPERSEDED.json": json.dumps(signed).encode(), "SUPERSEDED.md": b"superseded\n", **way}


def test_a_tombstone_by_a_later_officer(tmp_path: Path) -> None:
    """It counts with the way from the package's officer to its signer; not by an officer before them, nor without the way, nor
    with another's."""
    world = usual_world()
    world.succeed("otto")
    files = buried(world, "otto", world.links)
    for officers in ([OLGA], [OLGA, world.fingerprint("otto")]):
        found = verify_path(put(files, tmp_path / "p"), officers)
        assert failures(found) == []
        assert any("SUPERSEDED" in str(each) and "by otto" in str(each) for each in found)
    other = OfficeWorld()
    other.people = {"eve": "officer"}
    other.do("trust")
    for forged, words in (
        (buried(world, "otto", []), "not in the list of trusted keys"),
        (buried(world, "olga", world.links), "not in the list of trusted keys"),
        (buried(world, "otto", world.links[1:]), "another officer than the one before"),
        (buried(world, "eve", other.links), "does not begin with the officer of the package"),
        (buried(world, "eve", [*world.links[:1], *other.links]), "makes nobody officer"),
    ):
        found = failures(verify_path(put(forged, tmp_path / "p"), OLGA))
        assert any(each.startswith("SUPERSEDED.json: ") and words in each for each in found)


# --- Officers who left, and who knows which of them -----------------------------------------------------------------------------


def known_way(world: OfficeWorld, folder: Path) -> str:
    """The publisher's officers.json, as a file beside the package."""
    file = folder / "known.json"
    file.write_bytes(canonical({"officers": world.links}).encode())
    return str(file)


def repacked(world: OfficeWorld, *, by: str, listed_at: str = TIME, at: str = TIME, **more: bytes) -> Files:
    """A package under the list of keys of now, made by hand at these moments, with more files in it."""
    files = {name: part for name, part in world.package.items() if not name.startswith(("officers", "SHA256SUMS"))} | more
    listed = world.sign(world.officer(), "trusted-keys", "trusted-keys", digest(files["trusted-keys.json"]), at=listed_at)
    files["trusted-keys.sig"] = json.dumps(listed).encode()
    files |= world.attest(by, files)
    files["SHA256SUMS"] = sums(files)
    signed = world.sign(by, "package", RELEASE, digest(files["SHA256SUMS"]), at=at)
    return {**files, "SHA256SUMS.sig": json.dumps(signed).encode()}


@pytest.mark.parametrize("what", ["list", "package", "officer's package"])
def test_what_a_former_officer_signs_later(what: str, tmp_path: Path) -> None:
    """Dated after the hand-over it does not count, whoever knows which officer; in time, it does."""
    late, at = "2026-11-20T14:00:00+00:00", "2026-11-20T13:00:00+00:00"
    by = "olga" if what == "officer's package" else "robot"
    world = usual_world()
    early = repacked(world, by=by)
    made = repacked(world, by=by, listed_at=late) if what == "list" else repacked(world, by=by, at=late)
    world.succeed("otto", accepted_at=at)
    way = known_way(world, tmp_path)
    for officer in (OLGA, world.fingerprint("otto"), None):
        assert failures(verify_path(put(early, tmp_path / "early"), officer, officers=way)) == []
        [words] = failures(verify_path(put(made, tmp_path / "p"), officer, officers=way))
        assert "left at 2026-11-20 13:00:00 UTC: it does not count" in words
    assert failures(verify_path(tmp_path / "p", OLGA)) == []  # who knows nothing of the hand-over cannot tell


def test_a_dossier_that_goes_on_after_the_officer_left(tmp_path: Path) -> None:
    """The chain as it was before the hand-over, gone on with the old key: refused by whoever knows when the officer left."""
    world, later = usual_world(), usual_world()
    later.succeed("otto", accepted_at=BEFORE)
    way = known_way(later, tmp_path)
    folder = put(world.dossier(), tmp_path / "d")
    assert failures(verify_path(folder, OLGA)) == []
    found = failures(verify_path(folder, OLGA, officers=way))
    assert any(words.startswith("events.jsonl: ") and "the last officer whom the events know left" in words for words in found)


def test_recovery_keys_that_a_former_officer_names_afterwards(tmp_path: Path) -> None:
    """Put into the way before the hand-over they would make anybody the officer: whoever accepted signed that there were none."""
    world = made_under(to_otto)
    genuine = list(world.links)
    forger = made_under(lambda world: world.name_recovery("eve", "vera", threshold=1))
    world.succeed("pia", by=("eve",), kind="recover", recovery=forger.named)
    world.links = [genuine[0], forger.links[1], genuine[1], world.links[-1]]
    world.do("package")
    put(world.package, tmp_path / "p")
    for known in (world.fingerprint("otto"), OLGA):
        assert any("other recovery keys" in words for words in failures(verify_path(tmp_path / "p", known)))


# --- What a former officer's key can still do to strangers: the table of docs/roots.md ------------------------------------------

LEFT, STOLEN, LATE = "2026-11-20T13:00:00+00:00", "2026-11-20T12:30:00+00:00", "2026-11-20T14:00:00+00:00"


def forged_by(world: OfficeWorld, at: str) -> Files:
    """A package that olga's key signs, under a list of keys of its own, dated as it likes."""
    files = {name: part for name, part in world.package.items() if not name.startswith(("officers", "SHA256SUMS"))}
    files["trusted-keys.json"] = canonical(
        {"keys": {"eve": world.entry("eve", "service"), "olga": world.entry("olga", "officer")}}
    ).encode()
    listed = world.sign("olga", "trusted-keys", "trusted-keys", digest(files["trusted-keys.json"]), at=at)
    files["trusted-keys.sig"] = json.dumps(listed).encode()
    files |= world.attest("eve", files)
    files["SHA256SUMS"] = sums(files)
    signed = world.sign("eve", "package", RELEASE, digest(files["SHA256SUMS"]), at=at)
    return {**files, "SHA256SUMS.sig": json.dumps(signed).encode()}


@cache
def gone(how: str) -> OfficeWorld:
    """olga's site after her key was handed over or, stolen, replaced by recovery keys."""
    world = usual_world()
    if how == "stolen":
        world.name_recovery(*HOLDERS)
        taken = [{"key": OLGA, "from": STOLEN}]
        world.succeed("otto", by=("vera", "wim"), kind="recover", accepted_at=LEFT, revoked=taken)
    else:
        world.succeed("otto", accepted_at=LEFT)
    return world


def lists_of(world: OfficeWorld) -> dict[str, bytes]:
    """One that names what stands of olga's key, and one of the same officer that says nothing of that key."""
    stands = ("trusted-keys", "trusted-keys", digest(world.package["trusted-keys.json"]))
    return {"full": world.revoked(world.entry_of("olga", LEFT, stands)), "silent": world.revoked(world.entry_of("dan", LEFT))}


def known_list(world: OfficeWorld, named: str, folder: Path) -> str:
    """The file of the list that is named, if one is."""
    for name, content in lists_of(world).items():
        if name in named:
            (folder / LIST).write_bytes(content)
            return str(folder / LIST)
    return ""


MADE = {"genuine": "", "dated back": TIME, "late": LATE}


@pytest.mark.parametrize("known", ["OLD", "NEW"])
@pytest.mark.parametrize(
    ("how", "named", "passes"),
    [
        ("handed over", "", "genuine, dated back, late"),  # whoever knows the earlier officer alone
        ("handed over", "way", "genuine, dated back"),  # with a note: only dates speak for it
        ("handed over", "full", "genuine"),
        ("handed over", "full way", "genuine"),
        ("handed over", "silent", ""),
        ("handed over", "silent way", ""),
        ("stolen", "", "genuine, dated back, late"),
        ("stolen", "way", ""),  # a thief dates as they like: a list must tell what stands
        ("stolen", "full", "genuine"),
        ("stolen", "full way", "genuine"),
        ("stolen", "silent", ""),
        ("stolen", "silent way", ""),
    ],
)
def test_packages_by_a_former_officers_key(known: str, how: str, named: str, passes: str, tmp_path: Path) -> None:
    """Each row of the table, for who knows the earlier officer and who knows the new one; the public way inside saves none."""
    world = gone(how)
    officer = OLGA if known == "OLD" else world.fingerprint("otto")
    way = known_way(world, tmp_path) if "way" in named else ""
    listed = known_list(world, named, tmp_path)
    for what, at in MADE.items():
        files = forged_by(world, at) if at else world.package
        found = verify_path(put(files, tmp_path / "p"), officer, listed, way)
        wrong = failures(found)
        if known == "NEW" and not named:
            assert any("name the publisher's officers.json with --officers" in words for words in wrong), what
        else:
            assert (wrong == []) is (what in passes.split(", ")), (what, wrong)
        if not wrong and named == "way":
            assert any("word of who had the key" in str(each) for each in found)
        inside = {**files, "officers.json": canonical({"officers": world.links}).encode()}
        inside["SHA256SUMS"] = sums({name: part for name, part in inside.items() if not name.startswith("SHA256SUMS")})
        by, hash = "olga" if not at else "eve", digest(inside["SHA256SUMS"])
        inside["SHA256SUMS.sig"] = json.dumps(world.sign(by, "package", RELEASE, hash, at=at or TIME)).encode()
        assert any(
            "leads to another officer" in words
            for words in failures(verify_path(put(inside, tmp_path / "q"), officer, listed, way))
        )


@pytest.mark.parametrize(
    ("how", "named", "passes"),
    [
        ("handed over", "way", True),
        ("handed over", "full", True),
        ("handed over", "silent", False),
        ("stolen", "way", False),
        ("stolen", "full way", True),
        ("stolen", "silent way", False),
    ],
)
def test_dossiers_of_a_chain_without_the_succession(how: str, named: str, passes: bool, tmp_path: Path) -> None:
    """With the key alone one can write such a chain: what is known of the office judges it as it does a package."""
    world, folder = gone(how), put(usual_world().dossier(), tmp_path / "d")
    way = known_way(world, tmp_path) if "way" in named else ""
    listed = known_list(world, named, tmp_path)
    for officer in (OLGA, world.fingerprint("otto")):
        assert (failures(verify_path(folder, officer, listed, way)) == []) is passes


@pytest.mark.parametrize("how", ["handed over", "stolen"])
@pytest.mark.parametrize("at", [TIME, LATE])
def test_tombstones_by_a_former_officers_key(how: str, at: str, tmp_path: Path) -> None:
    """They count for nothing, and nobody is told that the release was retracted, where the list is at hand; nor do they with
    the way alone if they are late or the key was stolen."""
    world = gone(how)
    signed = world.sign("olga", "retract", RELEASE, world.package_hash, "forged", at=at)
    folder = put({**world.package, "RETRACTED.json": json.dumps(signed).encode()}, tmp_path / "p")
    (tmp_path / LIST).write_bytes(lists_of(world)["full"])
    way = known_way(world, tmp_path)
    for officer in (OLGA, world.fingerprint("otto")):
        [words] = failures(verify_path(folder, officer, str(tmp_path / LIST)))
        assert words.startswith("RETRACTED.json: it ")
        told = failures(verify_path(folder, officer, officers=way))
        assert any("RETRACTED: release" in words for words in told) is ((how, at) == ("handed over", TIME))
        assert told
