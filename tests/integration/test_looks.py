"""A look at the data, told wherever a release is: to readers, reviewers, auditors, and to whoever asks for the status."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

import pytest

from release_pipeline.apps.dagster.metadata import build_metadata
from release_pipeline.errors import Blocked, DataRefused
from release_pipeline.ledger.looks import Look, group_looks, note_look
from release_pipeline.operate.backup import restore, write_backup
from release_pipeline.operate.survivors import accept
from release_pipeline.pipeline.context import StageResult
from release_pipeline.pipeline.release import run_release
from release_pipeline.publish import publish as publishing
from release_pipeline.publish.verification import verify
from release_pipeline.sentences import PUBLIC, REVIEWERS
from release_pipeline.store.registry import ReleaseId
from release_pipeline.trust.keys import PrivateKey
from tests.integration.people import RELEASE, copy_site, review
from tests.integration.publishing import failures_of, make_trusted_site
from tests.integration.sites import TinySite, make_rows, spoil

pytestmark = pytest.mark.slow
BEFORE, AFTER = ("idp-cbls, epsilon 1", "idp-cbls, epsilon 2"), ("laplace, epsilon 2",)
UNCOVERED = PUBLIC("looks.uncovered")


def look(tiny: TinySite, compared: tuple[str, ...], by: str = "ana") -> Look:
    """Somebody looks at the source."""
    return note_look(tiny.site, tiny.site.policy("people"), by=by, digest="", compared=compared)


@pytest.fixture(scope="module")
def looked(keys: dict[str, PrivateKey], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site whose release 1 was published: with a look and a refused run before its charge, and a look after it."""
    tiny = make_trusted_site(tmp_path_factory.mktemp("looked") / "site", keys)
    look(tiny, BEFORE, by="<b>ana</b>")
    spoil(tiny, "out of domain")
    with pytest.raises(DataRefused):
        run_release(tiny.flow())
    tiny.write_rows(make_rows())
    run_release(tiny.flow())
    look(tiny, AFTER, by="bea moss")
    review(tiny, keys, "ben", "cleo")
    publishing.publish(tiny.site, RELEASE, key=keys["robot"])
    return tiny.home


@pytest.fixture
def tiny(looked: Path, tmp_path: Path) -> TinySite:
    """A copy of it."""
    return copy_site(looked, tmp_path / "site")


def read_card(folder: Path) -> dict[str, Any]:
    """The card of a package."""
    return json.loads((folder / "privacy-card.json").read_text())


def test_the_package_tells_the_look_before_the_charge(tiny: TinySite) -> None:
    """Card, page and note, without who looked and what was compared; the one after the charge is none of its own."""
    folder, day = tiny.site.package(str(RELEASE)), group_looks(tiny.events()).get("people", ())[0].noted[:10]
    said = (
        "Parameters may have been chosen with knowledge of the data. Before this release the registry has 2 trials on the "
        f"confidential source (runs that released nothing: 1, others: 1), the last on {day}. "
    )
    card = read_card(folder)
    assert (card["looks"]["count"], card["looks"]["runs"]) == (2, 1)
    assert card["looks"]["last"] == day
    assert card["looks"]["words"].startswith(said)
    assert card["claim"]["not_protected"][-1] == UNCOVERED
    for name in ("privacy-card.html", "RELEASE_NOTE.md"):
        text = html.unescape((folder / name).read_text())
        assert said in text
        assert UNCOVERED in text
    for file in folder.iterdir():
        assert not any(private.encode() in file.read_bytes() for private in ("ana</b>", "bea moss", *BEFORE, *AFTER)), file


def test_reviewers_sign_who_looked_and_what_was_compared(tiny: TinySite) -> None:
    """Their page is a part of the candidate, and so is the number among the public facts, which Dagster shows."""
    page = html.unescape((tiny.folder() / "report.html").read_text())
    for words in (REVIEWERS("looks.title"), REVIEWERS("looks.matters"), REVIEWERS("question.looks", looks="2 trials"), *BEFORE):
        assert words in page
    assert "a run that read the confidential records and released nothing: " in page
    assert "<bdi>&lt;b&gt;ana" in (tiny.folder() / "report.html").read_text()
    assert AFTER[0] not in page
    assert tiny.status().facts["looks"] == 2
    evidence = json.loads((tiny.folder() / "evidence.json").read_text())
    told, run = evidence["looks"]
    assert (run["by"], run["on"], run["compared"]) == ("", "run", ["idp-cbls, epsilon 2, k 5"])
    assert (told["by"], told["on"], told["compared"]) == ("<b>ana</b>", "mask", list(BEFORE))
    assert evidence["facts"]["looks"] == 2
    assert build_metadata(StageResult("candidate", "", evidence["facts"]), show_internal=False)["looks"] == 2


def test_publishing_compares_what_was_signed_with_the_registry(
    tiny: TinySite, keys: dict[str, PrivateKey], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another number of looks than reviewers saw is an obstacle."""
    run_release(tiny.flow("2"))
    name = ReleaseId("people", "2")
    review(tiny, keys, "ben", "cleo", release=name)
    with monkeypatch.context() as patched:
        patched.setattr(publishing, "find_looks_before", lambda *_: ())
        with pytest.raises(Blocked, match="other looks at the data before its charge"):
            publishing.publish(tiny.site, name, key=keys["robot"])
    assert read_card(publishing.publish(tiny.site, name, key=keys["robot"]))["looks"]["count"] == 3


def test_a_card_says_that_looks_may_be_lost(keys: dict[str, PrivateKey], tmp_path: Path) -> None:
    """With a registry that did not outlive what came after a backup: of releases that are charged later, and of no other."""
    tiny = make_trusted_site(tmp_path / "site", keys)
    run_release(tiny.flow())
    write_backup(tiny.site, tmp_path / "site.tar")
    look(tiny, AFTER)
    tiny.site.registry.write_bytes(b"nothing that could be read" * 1000)
    restore(tmp_path / "site.tar", tiny.home)
    accept(tiny.site, key=keys["olga"], named={})
    tiny.write_rows(make_rows())
    run_release(tiny.flow("2"))
    for release in (RELEASE, ReleaseId("people", "2")):
        review(tiny, keys, "ben", "cleo", release=release)
        card = read_card(publishing.publish(tiny.site, release, key=keys["robot"]))
        told = [words for words in card["claim"]["not_protected"] if "may be lost" in words]
        assert len(told) == (release.release == "2")
        assert card["looks"] is None
    assert failures_of(verify(tiny.home, [keys["olga"].public.fingerprint])) == []
