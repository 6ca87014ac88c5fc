"""Detached review: what is signed is what was shown, and whoever carries bundles and statements can forge nothing."""

from __future__ import annotations

import json
import time
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from release_pipeline.errors import Blocked, ReleasePipelineError
from release_pipeline.ledger.policies import read_caps
from release_pipeline.publish.publish import publish
from release_pipeline.review.bundle import write_bundle
from release_pipeline.signer.command import main
from release_pipeline.trust.approvals import approve_policy, check_may_run, import_statement
from release_pipeline.trust.keys import NotSigned, PrivateKey, read_statement
from release_pipeline.trust.members import distrust
from release_pipeline.trust.revocation import accept, name_recovery, recover, sign_proposal
from release_pipeline.verifier.command import verify_path
from release_pipeline.verifier.documents import WrongUsage
from tests.integration.people import RELEASE, copy_site
from tests.integration.sites import TinySite
from tests.ssh_keys import hold

POLICY = "policies/people.yaml"


@pytest.fixture
def tiny(candidate: Path, tmp_path: Path) -> TinySite:
    """A site with a candidate that nobody has reviewed."""
    return copy_site(candidate, tmp_path / "site")


@pytest.fixture
def sign_as(key_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Somebody's machine: `sign` with their key, asked nothing; gives the statement."""
    place = tmp_path / "machine"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr("tempfile.tempdir", None)

    def sign_it(name: str, bundle: Path, *more: str) -> Path:
        output = place / f"{name}-{len(list(place.iterdir()))}.json"
        given = [str(bundle), "--key", str(key_folder / name)]
        code = main([*given, "--yes", "-o", str(output), *more])
        if code:
            raise WrongUsage(f"exit code {code}")
        return output

    return sign_it


def export(tiny: TinySite, target: str) -> Path:
    """A bundle beside the site."""
    file = tiny.home.parent / f"{len(list(tiny.home.parent.iterdir()))}.zip"
    return write_bundle(tiny.site, target, file)[0]


def difference_of(bundle: Path) -> str:
    """What a bundle says of the changes since the last approval."""
    with zipfile.ZipFile(bundle) as archive:
        return archive.read("difference.txt").decode()


def rewrite(bundle: Path, change: Callable[[dict[str, bytes]], dict[str, bytes]]) -> Path:
    """Another bundle, with its files changed by somebody on the way."""
    with zipfile.ZipFile(bundle) as archive:
        files = change({name: archive.read(name) for name in archive.namelist()})
    other = bundle.with_name(f"{bundle.stem}-changed.zip")
    with zipfile.ZipFile(other, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return other


def test_the_officer_signs_what_was_shown(
    tiny: TinySite, keys: dict[str, PrivateKey], sign_as: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """The attack of the report: the file goes from epsilon 1 to 25 after the officer looked. With a key on this machine that
    is signed (the control); with a bundle it is not."""
    tiny.write_policy(protect="{method: idp-cbls, epsilon: 1, k: 5}")
    bundle = export(tiny, POLICY)
    shown = sign_as("olga", bundle)
    words = capsys.readouterr().out
    assert 'protect.epsilon: "2" -> "1"' in words
    assert "compared with what you signed at" in words
    tiny.write_policy(protect="{method: idp-cbls, epsilon: 25, k: 5}")
    with pytest.raises(NotSigned, match="is not what it is now"):
        import_statement(tiny.site, read_statement(shown))
    with tiny.site.open_registry(read_only=True) as registry, pytest.raises(Blocked, match="not approved"):
        check_may_run(tiny.site, registry, tiny.site.policy("people"), read_caps(tiny.site))
    assert approve_policy(tiny.site, "people", key=keys["olga"]).new  # nobody saw 25, and it is approved


def test_two_reviews_elsewhere_publish(tiny: TinySite, keys: dict[str, PrivateKey], sign_as: Callable[..., Path]) -> None:
    """Bundles leave, statements return, once each; what is published then verifies."""
    bundle = export(tiny, "people/1")
    assert bundle.stat().st_mode & 0o777 == 0o600
    assert bundle.read_bytes() == export(tiny, "people/1").read_bytes()
    for name, count in (("ben", 1), ("cleo", 2)):
        statement = read_statement(sign_as(name, bundle))
        first, again = import_statement(tiny.site, statement), import_statement(tiny.site, statement)
        assert (first.count, first.new, again.count, again.new) == (count, True, count, False)
    folder = publish(tiny.site, RELEASE, key=keys["robot"])
    officer = keys["olga"].public.fingerprint
    assert not [found for found in verify_path(folder, officer) if found.level == "FAIL"]


def test_whoever_imports_forges_nothing(
    tiny: TinySite, keys: dict[str, PrivateKey], sign_as: Callable[..., Path], tmp_path: Path
) -> None:
    """Every field changed, another's name, another's key, the future, another subject or hash: refused, and no event is added."""
    signed = read_statement(sign_as("ben", export(tiny, "people/1")))
    before = len(tiny.events())
    said = signed["statement"]
    digest = said["hash"]
    changes = {
        "kind": "reject",
        "subject": "people/2/r1",
        "hash": "ab" * 32,
        "name": "cleo",
        "why": "so",
        "at": "2026-01-01T00:00:00+00:00",
    }
    forged = [{**signed, "statement": {**said, field: other}} for field, other in changes.items()]
    forged += [{**signed, "statement": {**said, "signer": keys["cleo"].public.fingerprint}}]
    wrong = {"kind": "approve", "subject": "people/1/r1", "digest": digest, "name": "ben"}
    forged += [keys["stranger"].sign(**wrong), keys["cleo"].sign(**wrong), keys["olga"].sign(**{**wrong, "name": "olga"})]
    forged += [keys["ana"].sign(**{**wrong, "name": "ana"}), keys["ben"].sign(**{**wrong, "digest": "cd" * 32})]
    forged += [keys["ben"].sign(**wrong, at="2036-01-01T00:00:00+00:00"), keys["ben"].sign(**{**wrong, "subject": "people/9/r1"})]
    forged += [keys["ben"].sign(**{**wrong, "kind": "package"})]
    for statement in forged:
        with pytest.raises(ReleasePipelineError):
            import_statement(tiny.site, statement)
    assert len(tiny.events()) == before
    assert import_statement(tiny.site, signed).new


def test_an_old_approval_does_not_come_back(tiny: TinySite, keys: dict[str, PrivateKey], sign_as: Callable[..., Path]) -> None:
    """What was approved and then replaced counts no more: no statement of before makes it count again."""
    bundle = export(tiny, POLICY)
    kept = read_statement(sign_as("olga", bundle))
    old = (tiny.home / POLICY).read_text()
    [noted] = [e.content["signed"] for e in tiny.events() if e.kind == "approved" and e.content["what"] == "policy"]
    tiny.write_policy(protect="{method: idp-cbls, epsilon: 1, k: 5}")
    digest = tiny.site.policy("people").canonical_hash()
    now = datetime.now(UTC).isoformat(timespec="microseconds")  # later than what names whole seconds
    later = keys["olga"].sign(kind="policy", subject="people", digest=digest, name="olga", at=now)
    assert import_statement(tiny.site, later).new
    (tiny.home / POLICY).write_text(old)
    for statement in (noted, kept):
        with pytest.raises(NotSigned, match="something else was approved after"):
            import_statement(tiny.site, statement)


def test_who_is_off_the_list_approves_nothing(tiny: TinySite, keys: dict[str, PrivateKey], sign_as: Callable[..., Path]) -> None:
    """Signed while trusted, imported after."""
    statement = read_statement(sign_as("ben", export(tiny, "people/1")))
    distrust(tiny.site, "ben", key=keys["olga"])
    with pytest.raises(NotSigned, match="not in the list"):
        import_statement(tiny.site, statement)


def test_what_a_thief_approved_is_not_what_was_approved_last(tiny: TinySite, keys: dict[str, PrivateKey]) -> None:
    """With a key that was revoked from before: the next officer is shown what changes since the approval that counts."""
    vera, otto = (hold(Ed25519PrivateKey.from_private_bytes(name.ljust(32, b"."))) for name in (b"vera", b"otto"))
    name_recovery(tiny.site, 1, {"vera": vera.public}, [], key=keys["olga"])
    time.sleep(1.1)  # moments are whole seconds
    stolen = datetime.now(UTC).replace(microsecond=0)
    tiny.write_policy(protect="{method: idp-cbls, epsilon: 1, k: 5}")
    approve_policy(tiny.site, "people", key=keys["olga"])
    assert "No change since it was approved last" in difference_of(export(tiny, POLICY))
    proposal = recover(tiny.site, "otto", otto.public, stolen=stolen)
    accept(tiny.site, proposal, [sign_proposal(proposal, "vera", key=vera)], key=otto)
    assert "protect.epsilon: 2 -> 1\n" in difference_of(export(tiny, POLICY))


def _with(name: str, content: bytes) -> Callable[[dict[str, bytes]], dict[str, bytes]]:
    return lambda files: {**files, name: content}


HOSTILE: dict[str, Callable[[dict[str, bytes]], dict[str, bytes]]] = {
    "a page that is not the one": lambda files: {**files, "candidate/report.html": b"all is well"},
    "another list of sums": lambda files: {**files, "candidate/SHA256SUMS": files["candidate/SHA256SUMS"][::-1]},
    "a draft of something else": lambda files: {
        **files,
        "draft.approve.json": files["draft.approve.json"].replace(b'"hash":"', b'"hash":"0'),
    },
    "a way out of the folder": _with("../evil", b"x"),
    "two names for one file": _with("REVIEW.JSON", b"{}"),
    "no JSON": _with("review.json", b"["),
}


@pytest.mark.parametrize("way", HOSTILE)
def test_a_hostile_bundle_is_refused(
    tiny: TinySite, sign_as: Callable[..., Path], tmp_path: Path, way: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """In one line, and nothing is written but what may be."""
    bundle = rewrite(export(tiny, "people/1"), HOSTILE[way])
    with pytest.raises(WrongUsage):
        sign_as("ben", bundle)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert len(shown.err.splitlines()) == 1
    assert not list(tmp_path.rglob("evil"))
    assert not list((tmp_path / "machine").rglob("*.sig"))


def test_a_lie_about_what_was_approved_before_is_seen(
    tiny: TinySite, sign_as: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever gives the new policy as the old one, so that nothing seems to change, has no signature for it."""
    tiny.write_policy(protect="{method: idp-cbls, epsilon: 25, k: 5}")
    bundle = export(tiny, POLICY)
    sign_as("olga", rewrite(bundle, lambda files: {n: p for n, p in files.items() if not n.startswith("before")}))
    assert "nothing to compare it with" in capsys.readouterr().out
    unsigned = rewrite(
        bundle,
        lambda files: {**{n: p for n, p in files.items() if n != "before.signed.json"}, "before.json": files["canonical.json"]},
    )
    sign_as("olga", unsigned)
    assert "which NO signature vouches for" in capsys.readouterr().out
    with pytest.raises(WrongUsage):
        sign_as("olga", rewrite(bundle, lambda files: {**files, "before.json": files["canonical.json"]}))
    for name in ([], None):  # as nobody is called
        sign_as("olga", rewrite(bundle, _rename_before(name)))
        assert "which NO signature vouches for" in capsys.readouterr().out


def _rename_before(name: object) -> Callable[[dict[str, bytes]], dict[str, bytes]]:
    def rename(files: dict[str, bytes]) -> dict[str, bytes]:
        signed = json.loads(files["before.signed.json"])
        signed["statement"]["name"] = name
        return {**files, "before.signed.json": json.dumps(signed).encode()}

    return rename


def test_only_the_hash_signs(tiny: TinySite, key_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked, the first 8 characters of the hash sign, and nothing else does; nobody to ask is a no."""
    bundle, output = export(tiny, "people/1"), tmp_path / "ben.json"
    given = [str(bundle), "--key", str(key_folder / "ben"), "-o", str(output)]
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    assert main(given) == 2
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    for answer in ("", "y", "yes"):
        monkeypatch.setattr("builtins.input", lambda _, answer=answer: answer)
        assert main(given) == 2
        assert not output.exists()

    def end(_: str) -> str:
        raise EOFError

    monkeypatch.setattr("builtins.input", end)  # Ctrl-D
    assert main(given) == 2
    assert not output.exists()
    digest = str(tiny.status().candidate_hash)
    monkeypatch.setattr("builtins.input", lambda _: digest[:8])
    assert main(given) == 0
    assert json.loads(output.read_text())["hash"] == digest
