"""The papers of a real release: before and after it is published, in the package, in the dossier, and what is never in them."""

from __future__ import annotations

import html
import json
import stat
from hashlib import sha256
from pathlib import Path

import pytest
import yaml

from release_pipeline.apps.cli import main
from release_pipeline.errors import Blocked, WrongUsage
from release_pipeline.pipeline.release import run_release
from release_pipeline.publish.dossier import write_dossier
from release_pipeline.publish.papers import DPIA, ENTRY, NIST, PUBLIC_PAPERS, write_papers
from release_pipeline.store.registry import ReleaseId
from release_pipeline.verifier.command import verify_path
from tests.integration.people import review
from tests.integration.publishing import Keys, failures_of, make_trusted_site, publish_release, read_zip
from tests.integration.sites import Row, TinySite, make_rows, make_site
from tests.leaks import find_canaries
from tests.unit.report.validators import find_entry_faults

RELEASE = ReleaseId("people", "1")
CANARIES = {"person": "PersonCanary-7Qz", "name": "NameCanary-4Vw", "remark": "RemarkCanary-9Jx"}
STATED = "StatedCanary: a treaty with each recipient"
PARTS = {
    "suppress": "{quasi_groups_below: 5, at_most: 60%}",
    "gates": "{min_rows: 20, expected_error: {income: 5}}",
    "about": "{title: People of three towns, description: Made up., licence: CC0-1.0, publisher: {name: Town}, contact: "
    "{email: desk@town.example}}",
    "assessment": f"{{purpose: 'To learn, and to teach.', controls: '{STATED}', decision: Publish it.}}",
}


def canary_rows() -> list[Row]:
    """Records whose dropped cells would be recognised anywhere."""
    return [{**row, **{name: f"{canary}-{row['person']}" for name, canary in CANARIES.items()}} for row in make_rows()]


@pytest.fixture(scope="module")
def told(keys: Keys, tmp_path_factory: pytest.TempPathFactory) -> TinySite:
    """A site that states something, with the papers of its release: as a candidate (before), published (after)."""
    folder = tmp_path_factory.mktemp("papers")
    tiny = make_trusted_site(folder / "site", keys, rows=canary_rows(), **PARTS)
    run_release(tiny.flow("1"))
    write_papers(tiny.site, RELEASE, folder / "before")
    review(tiny, dict(keys), "ben", release=RELEASE)
    publish_release(tiny, keys)
    write_papers(tiny.site, RELEASE, folder / "after")
    write_dossier(tiny.site, RELEASE, folder / "dossier.zip")
    return tiny


def read(tiny: TinySite, folder: str) -> dict[str, str]:
    """The papers in a folder beside the site."""
    return {file.name: html.unescape(file.read_text()) for file in (tiny.site.home.parent / folder).iterdir()}


def test_papers_before_and_after_publication(told: TinySite) -> None:
    """What is published, what was stated, and the entry that needs a day: each as the events and the policy have it."""
    before, after = read(told, "before"), read(told, "after")
    assert set(after) - set(before) == {ENTRY}
    assert "It is not published" in before[DPIA]
    assert "The release is not published: it is candidate." in before[DPIA]
    assert "The release was published on" in after[DPIA]
    assert "The policy states: “Publish it.”" in after[DPIA]
    assert STATED in after[DPIA]
    assert "Not stated: the policy's assessment says nothing of this." in after[DPIA]
    assert "claims individual differential privacy at scope column, and not differential privacy" in after[NIST]
    assert list(find_entry_faults(after[ENTRY])) == []


def test_figures_are_those_that_were_signed(told: TinySite) -> None:
    """Every limit of the evidence with its figure, and every attack that could be tried next to its control."""
    evidence = json.loads((told.site.candidate(str(RELEASE)) / "evidence.json").read_text())
    text = read(told, "after")[DPIA]
    assert evidence["gates"]
    for gate in evidence["gates"]:
        assert f"{gate['name']} is" in text
    for name in evidence["audit"]["inference"]:
        assert f"inferring {name}" in text


def test_the_reviewers_page_answers_the_output_check(told: TinySite) -> None:
    """What a checker asks by the five safes, with what the policy states and what it does not."""
    page = html.unescape((told.site.candidate(str(RELEASE)) / "report.html").read_text())
    section = page.partition('id="output-check"')[2].partition("</section>")[0]
    for words in ("Purpose: To learn, and to teach.", f"Controls: {STATED}.", "Publish it.", "ana is the steward", "2 reviewers"):
        assert words in section, words
    assert "Lawful basis: the policy's assessment says nothing of this." in section
    assert "schema: " in section
    assert not any(canary in section for canary in CANARIES.values())


def test_the_package_has_the_public_ones_and_none_of_the_words_that_were_stated(told: TinySite) -> None:
    """Listed in its sums, the same as when the papers are asked for later; its entry is that of the papers."""
    package = told.site.package(str(RELEASE))
    files = {file.name: file.read_bytes() for file in package.iterdir()}
    assert set(PUBLIC_PAPERS) <= set(files)
    for name in PUBLIC_PAPERS:
        assert f"{sha256(files[name]).hexdigest()}  {name}" in files["SHA256SUMS"].decode()
    assert not any(b"StatedCanary" in content for content in files.values())
    assert not any(b"Mean squared error" in files[name] for name in PUBLIC_PAPERS)
    assert failures_of(verify_path(package)) == []
    later = (told.site.home.parent / "after" / ENTRY).read_text()
    assert files[ENTRY].decode() == later
    assert yaml.safe_load(later)["deployment"]["dp_variant"]["variant_name"] == "Custom"


def test_no_cell_of_the_records_is_in_a_paper(told: TinySite) -> None:
    """Of columns that are dropped, in any of them, nor in the dossier's."""
    blobs = {f"{folder}/{name}": text.encode() for folder in ("before", "after") for name, text in read(told, folder).items()}
    content = read_zip(told.site.home.parent / "dossier.zip")
    blobs |= {name: part for name, part in content.items() if name.startswith("papers/")}
    assert find_canaries(blobs, list(CANARIES.values())) == []


def test_the_command_writes_for_its_owner_alone_and_overwrites_nothing(
    told: TinySite, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A new folder; a full one, a file, and a folder nowhere are refused, and nothing is left there."""
    home, folder = str(told.site.home), tmp_path / "papers"
    assert main(["papers", "people/1/r1", "-o", str(folder), "--home", home]) == 0
    assert "confidential" in capsys.readouterr().out
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}
    (tmp_path / "file").touch()
    for taken in (folder, tmp_path / "file", tmp_path / "no" / "where"):
        with pytest.raises(WrongUsage):
            write_papers(told.site, RELEASE, taken)
    assert not (tmp_path / "no").exists()
    assert main(["papers", "people/1/r1", "-o", str(folder), "--home", home]) == 2


def test_a_policy_that_says_nothing_of_its_data_has_no_papers(tmp_path: Path) -> None:
    """A site without trusted keys makes candidates of one; the papers and the package would have no title and no terms."""
    tiny = make_site(tmp_path / "site", suppress=PARTS["suppress"], about="")
    with tiny.site.policy_file("people").open("a") as policy:
        policy.write("audience: internal\n")
    run_release(tiny.flow())
    with pytest.raises(Blocked, match="does not say what the data are"):
        write_papers(tiny.site, ReleaseId("people", "1", 1), tmp_path / "papers")
