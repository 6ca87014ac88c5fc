"""The auditor's part: a dossier that verifies itself with nothing but Python, every changed byte of it, and the live site."""

from __future__ import annotations

import json
import shutil
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from release_pipeline.errors import Blocked
from release_pipeline.pipeline.opening import revise_release
from release_pipeline.pipeline.release import run_release
from release_pipeline.policy import parse_policy
from release_pipeline.publish.dossier import write_dossier
from release_pipeline.publish.publish import retract, supersede
from release_pipeline.publish.verification import verify
from release_pipeline.store.registry import ReleaseId
from release_pipeline.trust.approvals import approve_policy
from release_pipeline.verifier.command import verify_path
from tests.integration.publishing import (
    FLIPS,
    Files,
    Keys,
    failures_of,
    flip,
    make_trusted_site,
    publish_release,
    read_zip,
    words_of,
    write_folder,
)
from tests.integration.sites import Row, TinySite, make_rows, policy_text
from tests.leaks import find_canaries

PARTS = {
    "releases": '["1", "2", "3"]',
    "suppress": "{quasi_groups_below: 5, at_most: 60%}",
    "gates": "{min_rows: 20, expected_error: {income: 5}}",
}
LATER = {**PARTS, "protect": "{method: idp-cbls, epsilon: 3, k: 6}"}  # the second version of the policy
VERSIONS = [parse_policy(policy_text(**parts), name="people.yaml").canonical_hash() for parts in (PARTS, LATER)]
SECOND = ReleaseId("people", "2")
CANARIES = {"person": "PersonCanary-7Qz", "name": "NameCanary-4Vw", "remark": "RemarkCanary-9Jx"}


def canary_rows() -> list[Row]:
    """Records of three releases whose dropped cells would be recognised anywhere."""
    rows = make_rows(releases=("1", "2", "3"))
    return [{**row, **{name: f"{canary}-{row['person']}" for name, canary in CANARIES.items()}} for row in rows]


@pytest.fixture(scope="module")
def audited(keys: Keys, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site with a history: 1/r1 was superseded by 1/r2, 2/r1 retracted, 3/r1 is a candidate; the policy changed after the
    first. Beside it dossiers: published.zip (of 2/r1 before its retraction), retracted.zip, superseded.zip (of 1/r1)."""
    folder = tmp_path_factory.mktemp("audited")
    tiny = make_trusted_site(
        folder / "site", keys, rows=canary_rows(), cap="epsilon: 12, definition: idp, scope: column", **PARTS
    )
    publish_release(tiny, keys, "1")
    tiny.write_policy(**LATER)
    approve_policy(tiny.site, "people", key=keys["olga"])
    publish_release(tiny, keys, "2")
    write_dossier(tiny.site, SECOND, folder / "published.zip")
    retract(tiny.site, SECOND, key=keys["olga"], why="a wrong file was used")
    write_dossier(tiny.site, SECOND, folder / "retracted.zip")
    revise_release(tiny.site, "people", "1", why="a correction")
    publish_release(tiny, keys, "1", revision=2)
    supersede(tiny.site, ReleaseId("people", "1"), ReleaseId("people", "1", 2), key=keys["olga"], why="corrected incomes")
    write_dossier(tiny.site, ReleaseId("people", "1"), folder / "superseded.zip")
    run_release(tiny.flow("3"))
    return folder


@pytest.fixture(scope="module")
def dossier(audited: Path) -> Files:
    """The files of the dossier of a published release."""
    return read_zip(audited / "published.zip")


@pytest.fixture
def live(audited: Path, tmp_path: Path) -> TinySite:
    """A copy of the site."""
    return TinySite(shutil.copytree(audited / "site", tmp_path / "site"))


# --- Whole ----------------------------------------------------------------------------------------------------------------------


def run_alone(verifier: Path, *arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Python without site-packages, environment or anything in the current folder."""
    command = [sys.executable, "-I", "-S", str(verifier), *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, env={"PATH": "/nowhere"}, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("form", ["zip", "folder", "the folder that it lies in"])
def test_the_verifier_inside_needs_only_python(audited: Path, dossier: Files, keys: Keys, form: str, tmp_path: Path) -> None:
    """Taken out of the zip, on the zip and on what was unpacked: every line is ok or a note."""
    unpacked, empty, alone = write_folder(dossier, tmp_path / "unpacked"), tmp_path / "empty", tmp_path / "verify.py"
    empty.mkdir()
    alone.write_bytes(dossier["verify.py"])
    officer = ("--officer", keys["olga"].public.fingerprint)
    match form:
        case "zip":
            done = run_alone(alone, audited / "published.zip", *officer, cwd=empty)
        case "folder":
            done = run_alone(alone, unpacked, *officer, cwd=empty)
        case _:
            done = run_alone(unpacked / "verify.py", *officer, cwd=empty)
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr, lines[-1]) == (0, "", "Verified: nothing failed.")
    assert {line.split()[0] for line in lines[:-1]} == {"ok", "note"}
    assert "SHA256SUMS: 34 of 34 listed files are there, with the hashes that it lists, and nothing else is" in done.stdout
    assert "which is not the one" not in done.stdout
    assert not any(empty.iterdir())


def test_the_zip_is_in_order_and_has_no_date(audited: Path, dossier: Files) -> None:
    """So that the same dossier is the same bytes."""
    with zipfile.ZipFile(audited / "published.zip") as archive:
        infos = archive.infolist()
    assert [info.filename for info in infos] == sorted(dossier)
    assert {(info.date_time, info.external_attr >> 16) for info in infos} == {((1980, 1, 1, 0, 0, 0), 0o600)}


@pytest.mark.parametrize("name", ["published", "retracted", "superseded"])
def test_it_is_private(audited: Path, name: str) -> None:
    """The evidence in it is confidential: for its owner alone."""
    assert stat.S_IMODE((audited / f"{name}.zip").stat().st_mode) == 0o600


@pytest.mark.parametrize("name", ["published", "retracted", "superseded"])
def test_no_cell_of_the_data_is_in_it(audited: Path, name: str) -> None:
    """Neither person keys nor what is in dropped columns; the source has them all, so the search has power."""
    canaries = list(CANARIES.values())
    found = find_canaries({"people.csv": (audited / "site" / "people.csv").read_bytes()}, canaries)
    assert {one.canary.decode() for one in found} == set(canaries)
    assert find_canaries(read_zip(audited / f"{name}.zip"), canaries) == []
    assert not any(part.startswith(("package/data.", "candidate/data.")) for part in read_zip(audited / f"{name}.zip"))


def test_it_answers_what_an_auditor_asks(dossier: Files, audited: Path, keys: Keys) -> None:
    """Policy versions and their difference in words, caps, ledger, checks and gates."""
    diffs = dossier["policies/diffs.txt"].decode()
    assert diffs.startswith(f"people: 2 versions\n  from {VERSIONS[0][:12]} to {VERSIONS[1][:12]}:\n    ")
    assert "epsilon" in diffs
    assert " 2" in diffs
    assert " 3" in diffs
    texts = {name: json.loads(content) for name, content in dossier.items() if name.endswith(".json")}
    assert texts["dossier.json"]["series"] == ["people/1/r1", "people/2/r1"]
    assert texts["dossier.json"]["officer"] == keys["olga"].public.fingerprint
    assert texts["populations.json"]["folk"]["cap"]["epsilon"] == "12"
    evidence = texts["candidate/evidence.json"]
    assert [gate["name"] for gate in evidence["gates"]] == ["expected error of income"]
    assert sum(evidence["checks_passed"].values()) > 10
    ledger = dossier["ledger.json"].decode()
    assert "people/1/r1" in ledger
    assert "people/2/r1" in ledger
    readme = dossier["README.md"].decode()
    missing = [name for name in dossier if name.split("/")[0] not in readme and name not in ("SHA256SUMS", "README.md")]
    assert missing == []


# --- Changed --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", FLIPS)
def test_a_flipped_bit_in_any_file_is_found_and_named(dossier: Files, keys: Keys, where: str, tmp_path: Path) -> None:
    """In the first byte, a middle one or the last."""
    folder = write_folder(dossier, tmp_path / "d")
    for name, content in dossier.items():
        (folder / name).write_bytes(flip(content, where))
        found = failures_of(verify_path(folder, keys["olga"].public.fingerprint))
        assert any(words.startswith(f"{name}: ") or (name == "SHA256SUMS" and name in words) for words in found), (name, found)
        (folder / name).write_bytes(content)


# --- Which releases -------------------------------------------------------------------------------------------------------------


def test_of_a_changed_package_or_candidate_there_is_none(live: TinySite, tmp_path: Path) -> None:
    """What it would say would not be true."""
    first = ReleaseId("people", "1")
    for file in (live.site.package(str(first)) / "data.csv", live.site.candidate(str(first)) / "evidence.json"):
        before = file.read_bytes()
        file.write_bytes(flip(before))
        with pytest.raises(Blocked, match="not what was published"):
            write_dossier(live.site, first, tmp_path / "d.zip")
        file.write_bytes(before)
    write_dossier(live.site, first, tmp_path / "d.zip")


# --- The live site --------------------------------------------------------------------------------------------------------------


def test_a_whole_site_verifies(live: TinySite) -> None:
    """Every candidate and package in a line of its own, the chain, the keys and the sum; a retraction that was noted is right."""
    findings = verify(live.home)
    assert failures_of(findings) == []
    sentences = words_of(findings, "ok")
    for release, state in (("1/r1", "superseded"), ("1/r2", "published"), ("2/r1", "retracted")):
        assert f"releases/people/{release}: is what was published ({state})" in sentences
    for release in ("1/r1", "1/r2", "2/r1", "3/r1"):
        assert f"vault/candidates/people/{release}: is what was frozen" in sentences
    assert "population folk: 11 of 12 (epsilon, iDP, column) is spent" in sentences
    assert any(words.startswith("registry.duckdb: ") for words in sentences)
    assert any(words.startswith("events.jsonl: ") for words in sentences)
    assert verify(live.home / "registry.duckdb") == findings


def append_byte(file: Path) -> None:
    """One byte more at its end."""
    file.write_bytes(file.read_bytes() + b" ")


def remove_tombstone(live: TinySite, release: str) -> None:
    """Both files of it."""
    for file in [*live.site.package(release).glob("*ED.json"), *live.site.package(release).glob("*ED.md")]:
        file.unlink()


def change_row(live: TinySite, statement: str) -> None:
    """A registry changed with plain SQL."""
    with duckdb.connect(str(live.home / "registry.duckdb")) as connection:
        connection.execute(statement)


DAMAGES: dict[str, tuple[Callable[[TinySite], object], str]] = {
    "a byte in a candidate's data": (
        lambda live: append_byte(live.site.candidate("people/1/r2") / "data.csv"),
        "vault/candidates/people/1/r2: is not there, or not what was frozen",
    ),
    "a byte in a package's data": (
        lambda live: append_byte(live.site.package("people/1/r2") / "data.parquet"),
        "releases/people/1/r2: is not there, or not what was published",
    ),
    "data that were retracted are back": (
        lambda live: (live.site.package("people/2/r1") / "data.csv").write_text("town\n"),
        "releases/people/2/r1: is not there, or not what was published",
    ),
    "a package's signature removed": (
        lambda live: (live.site.package("people/1/r2") / "SHA256SUMS.sig").unlink(),
        "releases/people/1/r2: SHA256SUMS.sig: it is missing",
    ),
    "a package's signature replaced by another's": (
        lambda live: shutil.copyfile(
            live.site.package("people/1/r1") / "SHA256SUMS.sig", live.site.package("people/1/r2") / "SHA256SUMS.sig"
        ),
        "releases/people/1/r2: SHA256SUMS.sig: it is signed for another subject",
    ),
    "the tombstone of a retraction removed": (
        lambda live: remove_tombstone(live, "people/2/r1"),
        "releases/people/2/r1: there is no RETRACTED.json in it, and it was retracted",
    ),
    "another release's tombstone": (
        lambda live: shutil.copyfile(
            live.site.package("people/2/r1") / "RETRACTED.json", live.site.package("people/1/r2") / "RETRACTED.json"
        ),
        "releases/people/1/r2: RETRACTED.json: it is signed for another subject",
    ),
    "a folder that nobody published": (
        lambda live: shutil.copytree(live.site.package("people/1/r2"), live.site.package("people/1/r3")),
        "releases/people/1/r3: no event published it",
    ),
    "a file beside the packages": (
        lambda live: (live.site.releases / "people" / "1" / "all.csv").write_text("town\n"),
        "releases/people/1/all.csv: no event published it",
    ),
    "an event changed": (
        lambda live: change_row(live, "UPDATE events SET body = body || ' ' WHERE number = 14"),
        "event 14 was changed",
    ),
    "an event changed with its hash": (
        lambda live: change_row(
            live,
            "UPDATE events SET body = replace(body, 'by hand', 'by foot'), hash = sha256(replace(body, 'by hand', 'by foot')) "
            "WHERE number = (SELECT min(number) FROM events WHERE body LIKE '%by hand%')",
        ),
        "was not written by this site: its seal is not of the vault's key",
    ),
    "an event removed from the middle": (
        lambda live: change_row(live, "DELETE FROM events WHERE number = 12"),
        "event 12 was changed, or one before it is missing",
    ),
    "the last event removed": (
        lambda live: change_row(live, "DELETE FROM events WHERE number = (SELECT max(number) FROM events)"),
        "registry.duckdb: events after",
    ),
    "the vault's head removed": (lambda live: (live.site.vault / "registry.head").unlink(), "registry.head"),
    "a reviewer put into the list": (
        lambda live: (live.home / "trusted-keys.yaml").write_text(
            (live.home / "trusted-keys.yaml").read_text().replace("role: steward", "role: reviewer")
        ),
        "trusted-keys.yaml",
    ),
    "the cap lowered": (
        lambda live: live.write_cap("epsilon: 10, definition: idp, scope: column"),
        "population folk: 11 of 10 (epsilon, iDP, column) is spent",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_every_damage_of_a_site_is_found_and_named(live: TinySite, damage: str) -> None:
    """Of candidates, packages, registry, vault and lists; without an exception."""
    spoil, words = DAMAGES[damage]
    spoil(live)
    found = failures_of(verify(live.home))
    assert any(words in each for each in found), found
