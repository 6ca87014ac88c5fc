"""Reviews of a real candidate: returns, remarks and blind votes, in the shell and on machines of one's own, up to the dossier."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import time
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path

import pytest

from release_pipeline.apps.cli import main
from release_pipeline.errors import Blocked, WrongUsage
from release_pipeline.operate.alerts.look import look
from release_pipeline.operate.overview import describe_status, view_status
from release_pipeline.policy.documents import to_json
from release_pipeline.publish.dossier import write_dossier
from release_pipeline.publish.papers import render_papers, view_papers
from release_pipeline.publish.publish import publish
from release_pipeline.publish.verification import verify as verify_site
from release_pipeline.review.bundle import find_subject, write_bundle
from release_pipeline.signer.bundles import REMARKED
from release_pipeline.store.files import Probe
from release_pipeline.trust import keys as trust_keys
from release_pipeline.trust.approvals import approve_candidate, import_statement, remark, return_candidate
from release_pipeline.trust.keys import NotSigned, PrivateKey
from release_pipeline.trust.members import distrust, need_trust, trust_key
from release_pipeline.trust.remarks import VisibleVotes, list_visible_remarks, read_document, read_visible_votes
from release_pipeline.trust.revocation import revoke
from release_pipeline.verifier.remarks import Remarks, hash_remarks
from tests.integration.people import RELEASE, copy_site, review
from tests.integration.publishing import failures_of
from tests.integration.sites import TinySite

pytestmark = pytest.mark.slow
Keys = dict[str, PrivateKey]
WHY, CANARY = "the levels of income look wrong", "Kanarienvogel"


@pytest.fixture
def tiny(candidate: Path, tmp_path: Path) -> TinySite:
    """A site with a candidate that nobody has reviewed."""
    return copy_site(candidate, tmp_path / "site")


@pytest.fixture
def shell(key_folder: Path, tiny: TinySite) -> Callable[..., int]:
    """A command of the site; with a name it is signed with that person's key."""

    def run(*words: str, by: str = "") -> int:
        signed = ["--key", str(key_folder / by)] if by else []
        home = [] if words[0] == "sign" else ["--home", str(tiny.home)]
        return main([*words, *signed, *home])

    return run


def told(tiny: TinySite, reader: str | None = None) -> VisibleVotes:
    """What a reader is told of the votes."""
    with tiny.site.open_registry(read_only=True) as registry:
        return read_visible_votes(registry, RELEASE, reader=reader)


def remarks_for(tiny: TinySite, reader: str | None = None, subject: str = str(RELEASE)) -> list[tuple[str, str, str]]:
    """The remarks that a reader is told: who, where, what."""
    with tiny.site.open_registry(read_only=True) as registry:
        found = list_visible_remarks(registry, need_trust(tiny.site, registry), subject, reader=reader)
    return [(one.name, one.passage, one.text) for one in found]


def remarks_on(tiny: TinySite, *entries: tuple[str, str], target: str = "people/1") -> Remarks:
    """Remarks on the candidate or policy as it is now."""
    return find_subject(tiny.site, target).remark_on(entries)


def say(tiny: TinySite) -> str:
    """Everything that commands and pages tell of the site's releases."""
    document = json.dumps(to_json(view_status(tiny.site)))
    papers = render_papers(view_papers(tiny.site, RELEASE)).values()
    return "\n".join([*describe_status(tiny.site), document, *papers])


def test_a_vote_that_is_dated_before_its_candidate_is_refused(
    tiny: TinySite, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here and from elsewhere: whoever has a key that was revoked since could date it back. Ten minutes may be a slow clock."""
    digest, early = str(tiny.status().candidate_hash), (datetime.now(UTC) - timedelta(days=40)).isoformat(timespec="seconds")
    said = {"subject": str(RELEASE), "digest": digest, "name": "ben", "why": WHY}
    before = tiny.events()
    for kind in ("approve", "return", "reject"):
        with pytest.raises(NotSigned, match="before there was a candidate to vote on"):
            import_statement(tiny.site, keys["ben"].sign(kind=kind, **said, at=early))
    with monkeypatch.context() as patch:
        patch.setattr(trust_keys, "datetime", Back)
        with pytest.raises(NotSigned, match="before there was a candidate to vote on"):
            approve_candidate(tiny.site, RELEASE, key=keys["ben"])
    assert tiny.events() == before
    [made] = [event for event in before if event.kind == "candidate"]
    near = (made.moment - timedelta(minutes=9)).isoformat(timespec="seconds")
    assert import_statement(tiny.site, keys["ben"].sign(kind="approve", **said, at=near)).new


class Back(datetime):
    """A clock that is 40 days behind."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:
        return datetime.now(tz) - timedelta(days=40)


# --- A return -------------------------------------------------------------------------------------------------------------------


def test_a_return_holds_a_release_up_until_it_is_lifted(tiny: TinySite, keys: Keys) -> None:
    """All votes are in and two approve, and yet it is returned; its returner alone, who is still a reviewer, lifts that."""
    return_candidate(tiny.site, RELEASE, key=keys["ben"], why=WHY)
    review(tiny, keys, "cleo", "dora")
    status = tiny.status()
    assert (status.state, status.reason) == ("returned", f"returned by ben: {WHY}")
    with pytest.raises(Blocked, match="it was returned with reasons by ben, and is not published"):
        publish(tiny.site, RELEASE, key=keys["robot"])
    assert tiny.states()[-3:] == ["returned", "approved", "approved"]
    words = "\n".join(describe_status(tiny.site))
    assert f"returned by ben: {WHY}. Its steward answers (`release-pipeline remark people/1/r1`)" in words
    assert approve_candidate(tiny.site, RELEASE, key=keys["ben"]).count == 3
    package = publish(tiny.site, RELEASE, key=keys["robot"])
    officer = keys["olga"].public.fingerprint
    assert failures_of(verify_site(tiny.home, [officer])) == []
    assert failures_of(verify_site(package, [officer])) == []


def test_a_return_while_the_package_is_built_stops_it(tiny: TinySite, keys: Keys) -> None:
    """It comes between the intent and the end: nothing is public, and after the approval the same command goes on."""
    review(tiny, keys, "ben", "cleo")

    def come_between(boundary: str) -> None:
        if boundary == "the package is built":
            return_candidate(tiny.site, RELEASE, key=keys["cleo"], why=WHY)

    with pytest.raises(Blocked, match="returned with reasons by cleo"):
        publish(tiny.site, RELEASE, key=keys["robot"], probe=Probe(reached=come_between))
    assert (tiny.status().state, tiny.site.package(str(RELEASE)).exists()) == ("returned", False)
    approve_candidate(tiny.site, RELEASE, key=keys["cleo"])
    publish(tiny.site, RELEASE, key=keys["robot"])
    assert failures_of(verify_site(tiny.home, [keys["olga"].public.fingerprint])) == []


def test_a_return_with_a_key_that_was_revoked_counts_for_nothing(tiny: TinySite, keys: Keys) -> None:
    """A thief who returns everything holds nothing up; nor does a thief's approval lift what its reviewer returned."""
    return_candidate(tiny.site, RELEASE, key=keys["ben"], why=WHY)
    review(tiny, keys, "cleo")
    time.sleep(1.1)  # moments are whole seconds
    stolen = datetime.now(UTC).replace(microsecond=0)
    approve_candidate(tiny.site, RELEASE, key=keys["ben"])
    return_candidate(tiny.site, RELEASE, key=keys["dora"], why="by a thief")
    assert tiny.status().returners == ["dora"]
    for name in ("ben", "dora"):
        revoke(tiny.site, name, since=stolen, why="stolen", key=keys["olga"])
    replace_key(tiny, keys, "ben", "stranger")
    assert (tiny.status().state, tiny.status().returners) == ("returned", ["ben"])
    assert told(tiny).given[-1].name == "cleo"
    approve_candidate(tiny.site, RELEASE, key=keys["stranger"])
    publish(tiny.site, RELEASE, key=keys["robot"])
    dossier = write_dossier(tiny.site, RELEASE, tiny.home / "dossier.zip")
    assert failures_of(verify_site(dossier, [keys["olga"].public.fingerprint])) == []


# --- Blind ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verdict", ["approve", "return"])
def test_an_open_vote_is_told_to_its_voter_alone(tiny: TinySite, keys: Keys, verdict: str) -> None:
    """Status, its page, its JSON and papers say that one vote is in, and the same whichever it was; nobody but ben is told it."""
    if verdict == "approve":
        decision = approve_candidate(tiny.site, RELEASE, key=keys["ben"], why=CANARY)
    else:
        decision = return_candidate(tiny.site, RELEASE, key=keys["ben"], why=CANARY)
    assert (decision.count, decision.needed) == (1, 2)
    for reader in (None, "cleo", "dora", "ana", "olga", "stranger"):
        seen = told(tiny, reader)
        assert (seen.count, seen.needed, seen.are_in, seen.own_vote, seen.votes, seen.given) == (1, 2, False, None, (), ())
    mine = told(tiny, "ben").own_vote
    assert mine is not None
    assert (mine.verdict, mine.why) == (verdict, CANARY)
    words = say(tiny)
    assert CANARY not in words
    assert "(1 of 2 votes are in: ben)" in words
    assert '"returned_by": []' in words
    assert '"by": []' in words
    assert tiny.status().state == "candidate"
    with pytest.raises(Blocked, match="it is not approved yet: 1 of 2 reviewers have voted"):
        publish(tiny.site, RELEASE, key=keys["robot"])


# --- Four eyes ------------------------------------------------------------------------------------------------------------------


def replace_key(tiny: TinySite, keys: Keys, name: str, other: str, role: str = "reviewer") -> None:
    """The officer puts somebody on the list with another key."""
    trust_key(tiny.site, name, role, keys[other].public, key=keys["olga"])


def test_one_person_counts_once_under_two_keys_and_two_names(tiny: TinySite, keys: Keys) -> None:
    """Ben with a new key; and ben's first key under another name, which voted under both."""
    review(tiny, keys, "ben")
    replace_key(tiny, keys, "ben", "stranger")
    assert approve_candidate(tiny.site, RELEASE, key=keys["stranger"]).count == 1
    assert tiny.status().voters == ["ben"]
    replace_key(tiny, keys, "benno", "ben")
    assert approve_candidate(tiny.site, RELEASE, key=keys["ben"]).count == 1
    with pytest.raises(Blocked, match="1 of 2 reviewers have approved it as it is"):
        publish(tiny.site, RELEASE, key=keys["robot"])
    review(tiny, keys, "cleo")
    publish(tiny.site, RELEASE, key=keys["robot"])


def test_the_steward_does_not_review_under_another_name(tiny: TinySite, keys: Keys) -> None:
    """Though an officer puts the key on the list as a reviewer's; a key that was by mistake beside another name harms nobody."""
    distrust(tiny.site, "ana", key=keys["olga"])
    replace_key(tiny, keys, "anna", "ana")
    for deed in (approve_candidate, return_candidate):
        more = {} if deed is approve_candidate else {"why": WHY}
        with pytest.raises(NotSigned, match="anna, whose key was that of ana, is the steward of the policy"):
            deed(tiny.site, RELEASE, key=keys["ana"], **more)  # type: ignore[operator]
    replace_key(tiny, keys, "eve", "stranger")
    distrust(tiny.site, "eve", key=keys["olga"])
    replace_key(tiny, keys, "frank", "stranger")
    approve_candidate(tiny.site, RELEASE, key=keys["stranger"])
    assert approve_candidate(tiny.site, RELEASE, key=keys["ben"]).count == 2


# --- Remarks --------------------------------------------------------------------------------------------------------------------


def test_remarks_of_reviewers_are_as_blind_as_votes(tiny: TinySite, keys: Keys) -> None:
    """The steward's and the officer's are told at once."""
    for name, text in (("ben", "too coarse"), ("ana", "it is what was asked"), ("olga", "mind the cap")):
        remark(tiny.site, remarks_on(tiny, ("claim", text), ("", "all in all")), key=keys[name])
    return_candidate(tiny.site, RELEASE, key=keys["ben"], why=WHY)
    open_to_all = [("ana", "claim", "it is what was asked"), ("ana", "", "all in all")]
    open_to_all += [("olga", "claim", "mind the cap"), ("olga", "", "all in all")]
    for reader in (None, "cleo", "ana", "olga"):
        assert remarks_for(tiny, reader) == open_to_all
    mine = [("ben", "claim", "too coarse"), ("ben", "", "all in all")]
    assert remarks_for(tiny, "ben") == [*mine, *open_to_all]
    review(tiny, keys, "cleo")
    assert remarks_for(tiny) == [*mine, *open_to_all]


def test_whoever_imports_remarks_forges_nothing(tiny: TinySite, keys: Keys) -> None:
    """Another document, another's name, another subject or hash, no document, the future: refused, and no event is added."""
    remarks = remarks_on(tiny, ("claim", "too coarse"))
    digest = hash_remarks(remarks.document)
    wanted = {"kind": "remarks", "subject": str(RELEASE), "digest": digest, "name": "ben"}
    signed, before = keys["ben"].sign(**wanted), len(tiny.events())
    other = dataclasses.replace(remarks, entries=(("claim", "as it should be"),))
    elsewhere = dataclasses.replace(remarks, subject="people/2/r1")
    for statement, document in (
        (signed, other.document),
        (signed, None),
        (signed, {**remarks.document, "more": 1}),
        (keys["cleo"].sign(**wanted), remarks.document),
        (keys["stranger"].sign(**wanted), remarks.document),
        (keys["robot"].sign(**{**wanted, "name": "robot"}), remarks.document),
        (keys["ben"].sign(**wanted, at="2036-01-01T00:00:00+00:00"), remarks.document),
        (keys["ben"].sign(**{**wanted, "subject": "people/2/r1"}), remarks.document),
        (keys["ben"].sign(**{**wanted, "digest": hash_remarks(elsewhere.document)}), elsewhere.document),
        (keys["ben"].sign(**{**wanted, "kind": "approve", "digest": str(tiny.status().candidate_hash)}), remarks.document),
    ):
        with pytest.raises((NotSigned, WrongUsage)):
            import_statement(tiny.site, statement, document)
    assert len(tiny.events()) == before
    assert import_statement(tiny.site, signed, remarks.document).new
    assert not import_statement(tiny.site, signed, remarks.document).new
    assert len(tiny.events()) == before + 1


def test_an_old_vote_does_not_come_back(tiny: TinySite, keys: Keys) -> None:
    """Who keeps an approval that a return replaced, or never brought, cannot make it the last vote again."""
    digest, now = str(tiny.status().candidate_hash), datetime.now(UTC)
    wanted = {"subject": str(RELEASE), "digest": digest, "name": "ben"}

    def at(seconds: int) -> str:
        return (now + timedelta(seconds=seconds)).isoformat(timespec="seconds")

    kept = keys["ben"].sign(kind="approve", **wanted, at=at(-30))
    never = keys["ben"].sign(kind="approve", **wanted, at=at(-20))
    back = keys["ben"].sign(kind="return", **wanted, at=at(-10), why=WHY)
    assert import_statement(tiny.site, kept).new
    assert import_statement(tiny.site, back).new
    assert not import_statement(tiny.site, back).new
    for statement in (kept, never, keys["ben"].sign(kind="approve", **wanted, at=at(-10))):
        with pytest.raises(NotSigned, match="ben voted once more, then or after this was signed"):
            import_statement(tiny.site, statement)
    assert tiny.status().returners == ["ben"]
    assert import_statement(tiny.site, keys["ben"].sign(kind="approve", **wanted, at=at(0))).new
    assert tiny.status().returners == []


# --- On machines of one's own, and in the shell ---------------------------------------------------------------------------------


def test_a_return_with_remarks_is_signed_elsewhere(
    tiny: TinySite, shell: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The draft is in the bundle, is shown whole, and comes back signed beside the vote; a steward answers with remarks alone."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    draft = tmp_path / "draft.json"
    draft.write_text(json.dumps(remarks_on(tiny, ("claim", "too coarse\nby far"), ("", "else well")).document))
    bundle = tmp_path / "bundle.zip"
    assert shell("review", "export", "people/1", "-o", str(bundle), "--remarks", str(draft)) == 0
    statement = tmp_path / "ben.json"
    assert shell("sign", str(bundle), "--return", "--why", WHY, "--yes", "-o", str(statement), by="ben") == 0
    shown = capsys.readouterr().out
    assert "2 remarks are to be signed in your name" in shown
    assert "  1. on claim:\n     too coarse\n     by far\n  2. on the whole:\n     else well\n" in shown
    assert f"to be signed by ben: return of people/1/r1, why: {WHY}" in shown
    names = [f"ben{end}" for end in (".json", ".json.sig", ".remarks.json", ".remarks.json.sig", ".remarks.document.json")]
    assert sorted(file.name for file in tmp_path.glob("ben.*")) == sorted(names)
    assert shell("review", "import", str(statement)) == 0
    assert [line.partition(" (hash")[0] for line in capsys.readouterr().out.splitlines()] == [
        "people/1/r1: remarked on by ben, 2 passages",
        "people/1/r1: returned by ben",
    ]
    assert tiny.states()[-2:] == ["remarked", "returned"]
    assert shell("review", "import", str(statement)) == 0  # as after a stop in between: what is there is not noted again
    assert [line.partition(" (hash")[0] for line in capsys.readouterr().out.splitlines()] == [
        "people/1/r1: was remarked on before by ben, 2 passages",
        "people/1/r1: was returned before by ben",
    ]
    assert tiny.states()[-2:] == ["remarked", "returned"]
    answer = tmp_path / "answer.zip"
    draft.write_text(json.dumps(remarks_on(tiny, ("claim", "it is what was asked")).document))
    write_bundle(tiny.site, "people/1", answer, read_document(draft))
    assert shell("sign", str(answer), "--yes", "-o", str(tmp_path / "ana.json"), by="ana") == 2  # no vote of a steward
    assert shell("sign", str(answer), "--remarks-only", "--yes", "-o", str(tmp_path / "ana.json"), by="ana") == 0
    assert shell("review", "import", str(tmp_path / "ana.json"), "--remarks", str(tmp_path / "ana.document.json")) == 0
    assert remarks_for(tiny) == [("ana", "claim", "it is what was asked")]


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace(b'"remarks"', b'"remark"'),
        lambda text: text + b"\n",
        lambda text: text.replace(b"people/1/r1", b"people/2/r1"),
        lambda text: text.replace(b"too coarse", b"\\u202etoo coarse"),
    ],
    ids=["not its form", "other bytes", "another release", "turned around"],
)
def test_a_hostile_draft_is_not_signed(
    tiny: TinySite, shell: Callable[..., int], tmp_path: Path, change: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was changed on the way; nothing is written."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    bundle, other = tmp_path / "bundle.zip", tmp_path / "other.zip"
    write_bundle(tiny.site, "people/1", bundle, remarks_on(tiny, ("", "too coarse")).document)
    with zipfile.ZipFile(bundle) as archive, zipfile.ZipFile(other, "w") as changed:
        for name in archive.namelist():
            content = archive.read(name)
            changed.writestr(name, change(content) if name == REMARKED else content)
    assert shell("sign", str(other), "--yes", "-o", str(tmp_path / "ben.json"), by="ben") == 1
    assert not list(tmp_path.glob("ben*"))


# --- What is told, and what is kept ---------------------------------------------------------------------------------------------


def test_notices_have_no_word_of_what_people_wrote(tiny: TinySite, keys: Keys) -> None:
    """Blind: nothing but that it waits. Then that it was returned, remarked on and decided: the name of the release and where to
    look."""
    with (tiny.home / "site.yaml").open("a") as settings:
        settings.write("alerts:\n  - {on: [waiting, returned, remarked, decided], webhook: 'https://one.example'}\n")

    def kinds() -> list[tuple[str, str | None]]:
        found = [each.alert for each in look(tiny.site)]
        texts = [json.dumps(to_json(alert)) + alert.text for alert in found]
        assert not [text for text in texts if CANARY in text or "ben" in text]
        return [(alert.kind, alert.release) for alert in found]

    name = str(RELEASE)
    assert kinds() == [("waiting", name)]
    remark(tiny.site, remarks_on(tiny, ("claim", CANARY)), key=keys["ben"])
    return_candidate(tiny.site, RELEASE, key=keys["ben"], why=CANARY)
    assert kinds() == []
    review(tiny, keys, "cleo")
    assert sorted(kinds()) == [("remarked", name), ("returned", name)]
    remark(tiny.site, remarks_on(tiny, ("", CANARY)), key=keys["ana"])
    remark(tiny.site, remarks_on(tiny, ("", CANARY), target="policies/people.yaml"), key=keys["ana"])
    assert kinds() == [("remarked", name), ("remarked", None)]
    approve_candidate(tiny.site, RELEASE, key=keys["ben"])
    assert sorted(kinds()) == [("decided", name), ("waiting", name)]
    assert kinds() == []


def test_the_dossier_has_votes_and_remarks_and_the_package_none(tiny: TinySite, keys: Keys, tmp_path: Path) -> None:
    """As data, with signatures that its verifier looks at; changed or left out, it fails."""
    remark(tiny.site, remarks_on(tiny, ("claim", f"{CANARY}\n# no *heading*")), key=keys["ben"])
    return_candidate(tiny.site, RELEASE, key=keys["ben"], why=CANARY)
    review(tiny, keys, "cleo")
    remark(tiny.site, remarks_on(tiny, ("", "answered")), key=keys["ana"])
    approve_candidate(tiny.site, RELEASE, key=keys["ben"])
    package = publish(tiny.site, RELEASE, key=keys["robot"])
    assert not [file for file in package.rglob("*") if file.is_file() and CANARY.encode() in file.read_bytes()]
    officer = keys["olga"].public.fingerprint
    dossier = write_dossier(tiny.site, RELEASE, tmp_path / "dossier.zip")
    found = verify_site(dossier, [officer])
    assert failures_of(found) == []
    assert any(
        one.words.endswith("review.json: 5 votes and remarks, as the events have them, each with a signature that holds")
        for one in found
    )
    with zipfile.ZipFile(dossier) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    document = json.loads(files["review.json"])
    assert [entry["kind"] for entry in document["events"]] == ["remarked", "returned", "approved", "remarked", "approved"]
    for change in (
        lambda events: events[1:],
        lambda events: [*events[:1], {**events[1], "noted": "2026-01-01T00:00:00+00:00"}, *events[2:]],
        lambda events: [{**events[0], "document": {**events[0]["document"], "remarks": []}}, *events[1:]],
    ):
        changed = json.dumps({**document, "events": change(document["events"])}).encode()
        names = {**files, "review.json": changed}
        sums = "".join(
            f"{hashlib.sha256(part).hexdigest()}  {name}\n" for name, part in sorted(names.items()) if name != "SHA256SUMS"
        )
        other = tmp_path / "other.zip"
        with zipfile.ZipFile(other, "w") as archive:
            for name, part in {**names, "SHA256SUMS": sums.encode()}.items():
                archive.writestr(name, part)
        assert any(
            "it does not tell the votes and remarks that the events have" in words
            for words in failures_of(verify_site(other, [officer]))
        )
