"""Cards and reports by language: what is said comes from the catalogue, in the policy's language, and English is as it was."""

from __future__ import annotations

import dataclasses
import json
import re
import tarfile
from pathlib import Path

import jsonschema
import pytest

from release_pipeline import __version__
from release_pipeline.analyst.facts import read_facts
from release_pipeline.flow.evidence import load_evidence
from release_pipeline.flow.publication.verification import verify
from release_pipeline.flow.reviewing.page import render_report
from release_pipeline.flow.states import read_statuses
from release_pipeline.privacy.catalogue import METHODS, MethodSpec
from release_pipeline.report.public import CARD_SCHEMA
from release_pipeline.sentences import PUBLIC
from release_pipeline.store.registry import ReleaseId
from tests.fixtures.site_6.make import HERE
from tests.integration.languages import tell_again
from tests.integration.publishing import Keys, failures_of, make_trusted_site, publish_release
from tests.integration.sites import GX_WARNINGS, PARTS, Row, TinySite, make_rows
from tests.integration.test_contract import RECORDS, ROWS, parts_of
from tests.integration.test_package_formats import SITES, odd_rows
from tests.pseudo import PSEUDO, list_unspoken, speak_english, speaking_pseudo

PAGES = ("privacy-card.html", "report.html", "RELEASE_NOTE.md")
FIRST = ReleaseId("people", "1")
DATA = {  # what a stranger sees of the policy and of the data: names, values, and what a steward wrote
    *("both", "level", "dl-de", "by-2-0", "govdata.de", "www.govdata.de", "www", "rent_missing", "year"),
    *("people", "r1", "ana", "release-pipeline", "income", "rent", "town", "sex", "north", "south", "east", "known", "needed"),
    *("asked", "for", "blank", "suppressed", "yes", "no", "not", "NA", "say", "thanks", "crowns", "How", "much"),
    *(
        "rent_missing",
        "year",
        "People",
        "of",
        "three",
        "towns",
        "Made",
        "up.",
        "Town",
        "desk",
        "town.example",
        "Ana",
        "North",
        "remark",
    ),
    *("https", "creativecommons.org", "publicdomain", "zero", "example.org", "towns."),
    "People.",
}
TERMS = {  # of policies, as a reader finds them there: methods, definitions, scopes, orders; and the papers of the methods
    *("folk", "corner", "hilbert", "Laplace", "check", "rows", "people.", "hierarchy-town.csv", "epsilon"),
    *(word for spec in METHODS.values() for word in re.findall(r"[^\W\d_][\w.'-]*", spec.paper)),
    *(word for spec in METHODS.values() for claim in spec.claims for word in (spec.name, claim.scope, claim.definition.key)),
    *("DP", "iDP", "zCDP"),
}
COMMANDS = {"sha256sum", "c", "SHA256SUMS", "release-pipeline", "verify", "officer", "FINGERPRINT"}
FORMAL = re.compile(r"(?m)^> .*$")  # the formal statement in the note, in English
READING = re.compile(
    r'<dd>([^<]*) <p class="soft">[^<]*</p> <p lang="en">[^<]*</p></dd>'
)  # of the statement, and that in English
UNLIKE = re.compile(r"(?s)<style>.*?</style>|<svg.*?</svg>")
ODD = """
  person: {role: identifier, do: drop}
  remark: {role: confidential, do: drop}
  town:   {role: quasi, do: keep, values: [north, south, east], label: Town, labels: {north: North}, why: needed}
  sex:    {role: quasi, do: keep, values: [0, 1], why: needed}
  income: {role: confidential, do: noise, domain: [0, 900], grid: 1, outside: clamp, missing: {fill: 0}, why: known}
  rent:   {role: confidential, do: noise, domain: [0, 30], grid: 0.5, outside: clamp, MISSING, unit: crowns, why: known}
  both:   {role: confidential, do: noise, domain: [0, 1200], grid: 0.5, outside: clamp, missing: {fill: 0}, why: known}
  level:  {role: confidential, do: recompute, why: known}"""
CODED = ODD[: ODD.index("\n  both")].replace("MISSING", "missing: keep, codes: {-1: known}")
RULES = """
  known: {compare: [rent, <=, income], at_most: 2}
  asked: {compare: [rent, <, income], at_most: 5%}
  towns: {sum: [income, rent], equals: both, grid: 0.5, within: 0.5, at_most: 5%}"""
SAYING: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {  # policies of which pages say what they say of no plain one
    "warnings and rules": (
        {
            "protect": "{method: laplace, epsilon: 8}",
            "derive": "{both: {sum: [income, rent]}, level: {bands: income, at: [300.5], labels: [known, needed]}}",
            "columns": ODD.replace("MISSING", "missing: {fill: 0}"),
            "expect": RULES,
            "about": "{title: People, description: People of three towns, licence: DL-DE-BY-2.0, publisher: {name: Town}, "
            "contact: {email: desk@example.org}}",
        },
        (
            "on the grid",
            "clamped to it",
            "filled as declared",
            "clamping took",
            "of releases that",
            "2 records may",
            "5% of records may",
        ),
    ),
    "reasons": (
        {
            "protect": "{method: dp-cdf, epsilon: 8}",
            "columns": CODED,
        },
        ("with a code for no value", "without a value, released without one"),
    ),
    "ties": ({"protect": "{method: dp-um, epsilon: 8, k: 5}", "columns": PARTS["columns"]}, ("heavy ties",)),
}


def make(home: Path, keys: Keys, spec: MethodSpec) -> TinySite:
    """A published release of a method."""
    parts, rows = parts_of(spec, spec.claims[-1]), make_rows(RECORDS.get(spec.family, ROWS))
    tiny = make_trusted_site(home, keys, rows=rows, cap="releases: 2", **parts)
    publish_release(tiny, keys)
    return tiny


def find_unspoken(texts: dict[str, str]) -> dict[str, set[str]]:
    """The words of each page that are in no sentence of the catalogue, and no data."""
    found = {name: FORMAL.sub("", texts[name]) for name in PAGES}
    return {
        name: words
        for name, text in found.items()
        if (words := set(list_unspoken(text, is_html=name.endswith("html"))) - DATA - TERMS - COMMANDS)
    }


def as_english(name: str, text: str) -> str:
    """A page in the pseudo-language as it would be in English: what is beside the statement in that language is taken out."""
    said = speak_english(text).replace(f'<html lang="{PSEUDO}">', '<html lang="en">')
    if name == "RELEASE_NOTE.md":
        return re.sub(r"\n\*\*Formal statement\.\*\*.*?\n\n> .*?\n\n.*?\n\n", "", said, count=1, flags=re.DOTALL)
    said = re.sub(r'<span lang="en">([^<]*)</span>', r"\1", said)
    return READING.sub(r"<dd>\1</dd>", said)


def compare(text: str) -> list[str]:
    """The words of a page without styles, and without pictures, whose places follow from how long words are. A bracket hides a
    question mark from what ends sentences, and the first letter from what makes it large."""
    return UNLIKE.sub("", text).replace("?.", "?").casefold().split()


@GX_WARNINGS
@pytest.mark.slow
@pytest.mark.parametrize("spec", METHODS.values(), ids=METHODS)
def test_all_that_is_said_comes_from_the_catalogue(spec: MethodSpec, keys: Keys, tmp_path: Path) -> None:
    """Under every method: in a language whose sentences stand in brackets nothing but data, names and figures stands outside of
    them; and without its brackets a page is the English one, so that no choice hangs on words."""
    tiny = make(tmp_path / "site", keys, spec)
    english = tell_again(tiny.site, FIRST)
    with speaking_pseudo():
        pseudo = tell_again(tiny.site, FIRST, PSEUDO)
    assert find_unspoken(pseudo) == {}
    assert f'<html lang="{PSEUDO}">' in pseudo["privacy-card.html"]
    for name in PAGES:
        assert compare(as_english(name, pseudo[name])) == compare(english[name]), name
    package = tiny.site.package(str(FIRST))
    for name in ("privacy-card.json", "privacy-card.html", "RELEASE_NOTE.md"):
        assert english[name] == (package / name).read_text(encoding="utf-8"), name
    mine, theirs = json.loads(english["privacy-card.json"]), json.loads(pseudo["privacy-card.json"])
    assert "language" not in mine
    assert theirs.pop("language") == PSEUDO
    assert theirs["claim"]["statement"] == mine["claim"]["statement"]
    assert speak_english(theirs["claim"].pop("translation")) == mine["claim"]["statement"]
    assert json.loads(speak_english(json.dumps(theirs, ensure_ascii=False))) == mine
    assert read_facts(theirs) == read_facts(mine)  # what programs compute with is the same


def list_people(name: str) -> list[Row]:
    """Records with all that warnings are about: values outside, without, with a code; rules that are broken; another release."""
    rows = make_rows(releases=("1",))
    if name == "ties":
        return [row | {"income": "7" if i % 2 else row["income"]} for i, row in enumerate(rows)]
    rows = [row | {"income": str(200 + 14 * i)} for i, row in enumerate(rows)]
    rows[0] |= {"income": "", "rent": "0"}
    rows[1] |= {"rent": "-1" if name == "reasons" else "0"}
    rows[2] |= {"rent": ""}
    rows[3] |= {"income": "3", "rent": "20"}
    rows[4] |= {"income": "4", "rent": "20"}
    return [*rows, rows[5] | {"year": "9"}]


@GX_WARNINGS
@pytest.mark.slow
@pytest.mark.parametrize("name", SAYING)
def test_so_does_what_only_some_policies_say(name: str, keys: Keys, tmp_path: Path) -> None:
    """Warnings of every kind, rules that tie columns, labels of entries, other licences: each is there in English, and each comes
    from the catalogue. Evidence of a version that noted warnings in English alone has them so in every language, marked."""
    parts, said = SAYING[name]
    parts = {"gates": "{min_rows: 20, clamped_at_most: 90%}", "releases": '["1"]', **parts}
    tiny = make_trusted_site(tmp_path / "site", keys, rows=list_people(name), cap="releases: 2", **parts)
    publish_release(tiny, keys)
    english = tell_again(tiny.site, FIRST)
    assert [words for words in said if words not in english["report.html"]] == []
    with speaking_pseudo():
        pseudo = tell_again(tiny.site, FIRST, PSEUDO)
    assert find_unspoken(pseudo) == {}
    for page in PAGES:
        assert compare(as_english(page, pseudo[page])) == compare(english[page]), page
    german = tell_again(tiny.site, FIRST, "de")
    assert [words for words in said if words in german["report.html"]] == []

    evidence = dataclasses.replace(load_evidence(tiny.site.candidate(str(FIRST))), noticed=())
    old = render_report(tiny.site.policy("people").model_copy(update={"language": "de"}), evidence)
    assert '<li class="bad" lang="en">' in old
    assert '<li class="bad" lang="en">' not in german["report.html"]


@GX_WARNINGS
@pytest.mark.slow
def test_a_german_release_is_signed_published_and_verified(keys: Keys, tmp_path: Path) -> None:
    """Its policy, evidence and card name the language, every standard that has a place for it does, and whoever verifies it needs
    to know nothing of it."""
    parts = {**SITES["told"], "language": "de"}
    tiny = make_trusted_site(tmp_path / "site", keys, rows=odd_rows(), **parts)
    package = publish_release(tiny, keys)
    texts = {file.name: file.read_text(encoding="utf-8") for file in package.iterdir() if file.suffix not in (".parquet", ".sig")}
    card = json.loads(texts["privacy-card.json"])
    jsonschema.Draft202012Validator(CARD_SCHEMA).validate(card)
    assert card["language"] == "de"
    assert card["claim"]["statement"].startswith("For the actual table D")
    assert card["claim"]["translation"].startswith("Für die tatsächliche Tabelle D")
    assert '<html lang="de">' in texts["privacy-card.html"]
    assert "Deutsch" in texts["RELEASE_NOTE.md"]
    assert json.loads(texts["croissant.json"])["inLanguage"] == "de"
    assert json.loads(texts["dcat.jsonld"])["dct:language"]["@id"].endswith("/DEU")
    assert 'xml:lang="de"' in texts["ddi-codebook.xml"]
    assert json.loads(texts["ro-crate-metadata.json"])["@graph"][1]["inLanguage"] == "de"
    candidate = tiny.site.candidate(str(FIRST))
    assert load_evidence(candidate).language == "de"
    assert '<html lang="de">' in (candidate / "report.html").read_text(encoding="utf-8")
    assert failures_of(verify(tiny.site.home, [str(tiny.site.officer)])) == []


@pytest.mark.slow
def test_cards_of_old_packages_are_made_again_byte_by_byte(tmp_path: Path) -> None:
    """As a version that knew no language published them."""
    with tarfile.open(HERE / "site.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    site = TinySite(tmp_path / "site").site
    with site.open_registry(read_only=True) as registry:
        statuses = read_statuses(registry.events)
    published = [release for release in statuses if site.package(str(release)).is_dir()]
    assert len(published) == 3
    for release in published:
        told, package = tell_again(site, release), site.package(str(release))
        tool = json.loads((package / "privacy-card.json").read_text(encoding="utf-8"))["tool"]
        for name in ("privacy-card.json", "RELEASE_NOTE.md"):
            words = told[name].replace(f"release-pipeline {__version__}", tool)
            words = words.replace(f"\n{PUBLIC('note.verify_elsewhere')}\n", "")  # of files that those packages have not
            assert words == (package / name).read_text(encoding="utf-8"), (release, name)
