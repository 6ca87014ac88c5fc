"""What catalogues and archives read of a package, by the schema or the validator of each standard, where there is one."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import jsonschema
import pyarrow as pa
import pytest
import yaml

from release_pipeline.formats.about import About, Contact, ContributorView, Coverage, Licence, Publisher
from release_pipeline.formats.card import ColumnView, EntryLabel
from release_pipeline.formats.package import PackageView
from release_pipeline.pipeline.tables import write_table
from release_pipeline.policy.file.about import LICENCES
from release_pipeline.publish.public import CARD_SCHEMA, render_card_html, render_card_json, render_datapackage, render_note
from release_pipeline.publish.standards import NAMESPACE, STANDARDS
from tests.unit.report.validators import (
    find_catalogue_faults,
    find_codebook_faults,
    read_schema,
)
from tests.unit.report.views import FACTS as FACTS_OF_DEMO
from tests.unit.report.views import sample_view

BY = Licence(name="CC-BY-4.0", title=LICENCES["CC-BY-4.0"][0], url=LICENCES["CC-BY-4.0"][1])
LEAST = About(
    title="People",
    description="People of a town.",
    licence=Licence(name="House rules", title="House rules", url="https://example.org/rules"),
    publisher=Publisher(name="Town", url=None),
    contact=Contact(name=None, email=None, url="https://example.org"),
    recipients="Everybody.",
)

FULL = About(
    title='Visits & <costs> of "families"',
    description="Yearly waves of the same people at six sites.",
    licence=BY,
    publisher=Publisher(name="Office of Examples", url="https://office.example.org"),
    contact=Contact(name="Data desk", email="desk@office.example.org", url=None),
    contributors=(
        ContributorView("Ana A.", "creator", "Office", "0000-0002-1825-0097"),
        ContributorView("Ben", "creator"),
        ContributorView("Cleo", "collector"),
        ContributorView("Dora", "curator"),
        ContributorView("Fund", "funder"),
        ContributorView("Emil", "contributor"),
    ),
    coverage=Coverage(places=("Dayton", "Seattle"), first="1974-01-01", last="1982-12-31"),
    sampling="Families of the sites, by chance.",
    keywords=("health", "insurance"),
    intended_use="Teaching.",
    recipients="Anybody.",
)

FACTS: dict[str, dict[str, Any]] = {"least": {"about": LEAST}, "full": {"about": FULL, "data_files": (("csv", 2),)}}


def labelled() -> tuple[ColumnView, ...]:
    """The columns with words on some of them, on values and units."""
    columns = list(FACTS_OF_DEMO["columns"])
    words: dict[str, Any] = {
        "label": "Sex",
        "labels": (EntryLabel("0", "male"), EntryLabel("1", "female")),
        "question": 'Are you <m> or "f"?',
    }
    columns[1] = dataclasses.replace(columns[1], **words)
    columns[2] = dataclasses.replace(columns[2], label="Income", unit="dollars", description="Of the family, before tax.")
    return tuple(columns)


def write(folder: Path, view: PackageView) -> dict[str, tuple[str, int]]:
    """A package of such a view, with one record in each file; the hash and size of its files."""
    known: dict[str, tuple[str, int]] = {}

    def put(name: str, content: str | bytes) -> None:
        content = content.encode() if isinstance(content, str) else content
        (folder / name).write_bytes(content)
        known[name] = (hashlib.sha256(content).hexdigest(), len(content))

    row = pa.table({column.name: [1 if column.type == "integer" else 5.0] for column in view.card.columns})
    for form in view.card.formats:
        for name in view.name_data(form):
            write_table(folder / name, row, format=form)
            put(name, (folder / name).read_bytes())
    texts = {"privacy-card.html": render_card_html(view), "RELEASE_NOTE.md": render_note(view)}
    texts |= {"privacy-card.json": render_card_json(view.card), "datapackage.json": render_datapackage(view, known)}
    for name, text in texts.items():
        put(name, text)
    for name in STANDARDS:
        put(name, STANDARDS[name](view, known))
    return known


@pytest.fixture(params=FACTS)
def view(request: pytest.FixtureRequest) -> PackageView:
    """A release of which everything is said, and one of which no more than is needed."""
    return sample_view(**FACTS[request.param], columns=labelled())


@pytest.fixture
def package(view: PackageView, tmp_path: Path) -> Path:
    """Its package."""
    write(tmp_path, view)
    return tmp_path


def test_what_is_said_of_columns_is_true_of_them() -> None:
    """Values that may lie anywhere have no range, nor have dates; files of Stata and SPSS lack the columns with reasons; a name
    with a space breaks nothing; a letter that XML cannot hold is named."""
    columns = (
        ColumnView("net  income", "confidential", "noise", "number", "known\ufffe", domain=("0", "9")),
        ColumnView("net  income_missing", "confidential", "missing", "string", "why", values=("refused",)),
        ColumnView("day", "confidential", "noise", "date", "known", domain=("2000-01-01", "2020-12-31")),
        ColumnView("made", "confidential", "made", "number", "known"),
    )
    view = sample_view(about=FULL, columns=columns, values="anywhere", formats=("parquet", "dta"), headline="epsilon 3 in all")
    files: dict[str, tuple[str, int]] = dict.fromkeys(("data.parquet", "data.dta"), ("ab" * 32, 7))
    root = ET.fromstring(STANDARDS["ddi-codebook.xml"](view, files))  # noqa: S314  ours
    assert [found.text for found in root.iter(f"{{{NAMESPACE}}}varQnty")] == ["4", "3"]
    variables = {found.attrib["name"]: found for found in root.iter(f"{{{NAMESPACE}}}var")}
    assert variables["net  income_missing"].attrib["files"] == "file1"
    assert list(root.iter(f"{{{NAMESPACE}}}range")) == []
    assert variables["made"].attrib["intrvl"] == "contin"
    told = [found.text for found in root.iter(f"{{{NAMESPACE}}}codInstr")]
    assert "reason: known[U+FFFE]" in told


def test_card_and_descriptor_follow_their_schemas(package: Path) -> None:
    """Data Package 2.0 by its own profile; the card by ours."""
    jsonschema.Draft202012Validator(CARD_SCHEMA).validate(json.loads((package / "privacy-card.json").read_text()))
    schema = json.loads(read_schema("datapackage-2.0/datapackage.json"))
    described = json.loads((package / "datapackage.json").read_text())
    jsonschema.Draft7Validator(schema).validate(described)
    broken = {**described, "licenses": [{"title": "none"}]}
    assert list(jsonschema.Draft7Validator(schema).iter_errors(broken))


def test_the_citation_follows_its_schema(package: Path) -> None:
    """Citation File Format 1.2.0."""
    said = yaml.load((package / "CITATION.cff").read_text(), yaml.BaseLoader)  # noqa: S506  texts alone
    jsonschema.Draft7Validator(json.loads(read_schema("cff-1.2.0/schema.json"))).validate(said)


@pytest.mark.parametrize(
    "words", ["a|b", "<script>alert(1)</script>", '" onload="x', "]]> --> {{ x }}", "- a: &b *c", "${x} `rm`", "\U00020bb7 a  b"]
)
def test_texts_stay_texts(words: str, tmp_path: Path) -> None:
    """Whatever a steward wrote: who reads a file gets it back, and nothing else changes."""
    people = (ContributorView(words, "creator", words), ContributorView(words, "curator", words))
    said = {"contributors": people, "coverage": Coverage(places=(words,)), "sampling": words, "keywords": (words,)}
    hostile = dataclasses.replace(LEAST, title=words, description=words, publisher=Publisher(name=words, url=None), **said)
    write(tmp_path, sample_view(about=hostile, columns=labelled()))
    root = ET.parse(tmp_path / "ddi-codebook.xml").getroot()  # noqa: S314  ours
    assert next(root.iter(f"{{{NAMESPACE}}}titl")).text == words
    assert yaml.safe_load((tmp_path / "CITATION.cff").read_text())["title"] == words
    assert json.loads((tmp_path / "dcat.jsonld").read_text())["dct:title"] == words
    page = (tmp_path / "privacy-card.html").read_text()
    assert "<script>alert" not in page
    assert ' onload="x' not in page


@pytest.mark.slow  # the validators take seconds to begin
@pytest.mark.filterwarnings("ignore")  # other people's programs
def test_by_the_validators_of_the_standards(package: Path) -> None:
    """DDI-Codebook 2.6 by its schema, DCAT-AP 3.0.1 by its shapes."""
    assert find_codebook_faults(package / "ddi-codebook.xml") == []
    assert list(find_catalogue_faults(package / "dcat.jsonld")) == []


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_validators_find_faults(package: Path) -> None:
    """A title taken away from each."""
    for name, (old, new) in {
        "ddi-codebook.xml": ("<titl>", "<title>"),
        "dcat.jsonld": ('"dct:title"', '"dct:titel"'),
    }.items():
        text = (package / name).read_text()
        (package / name).write_text(text.replace(old, new).replace("</titl>", "</title>"))
    assert find_codebook_faults(package / "ddi-codebook.xml")
    assert list(find_catalogue_faults(package / "dcat.jsonld"))
