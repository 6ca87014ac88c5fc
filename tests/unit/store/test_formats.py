"""Versions of what is stored: migrations in their order, what a later version wrote, and the list in docs/formats.md."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from release_pipeline.errors import ReleasePipelineError
from release_pipeline.flow import states
from release_pipeline.flow.claims import ClaimsDocument
from release_pipeline.report.card import Card
from release_pipeline.store.formats import AUDITED, CARD, EVIDENCE, FORMATS, SITE, Content, Format, FormatNewer

DOCS = (Path(__file__).parents[3] / "docs" / "formats.md").read_text()
LISTED = dict(re.findall(r"^\| (.+?) \| (\d+) \|", DOCS, flags=re.MULTILINE))
YAML = "policy: people\ncolumns:\n  b: {do: drop}\n  'a': {do: drop}\n  e\u0301: {do: drop}\n"


def _double(content: Content) -> Content:
    return {**content, "size": content["size"] * 2}


def _rename(content: Content) -> Content:
    return {name.replace("size", "length"): part for name, part in content.items()}


THREE = Format("a thing", (_double, _rename))


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ({"size": 1}, {"length": 2}),
        ({"size": 1, "format": 1}, {"length": 2, "format": 1}),
        ({"size": 1, "format": 2}, {"length": 1, "format": 2}),
        ({"length": 1, "format": 3}, {"length": 1, "format": 3}),
    ],
)
def test_each_version_is_migrated_step_by_step(written: dict[str, Any], read: dict[str, Any]) -> None:
    """From the version that a document names, or else the first; what is current stays as it is."""
    before = dict(written)
    assert THREE.read(written, where="there") == read
    assert written == before


def test_what_a_later_version_wrote_is_refused_in_words() -> None:
    """What, where, and what to do."""
    with pytest.raises(FormatNewer) as refused:
        THREE.read({"format": 4}, where="vault/thing.json")
    assert str(refused.value) == (
        "vault/thing.json: a thing here has the format 4, and this version of release-pipeline knows it up to 3. "
        "Install the version that wrote it, or a later one. Nothing was read or written."
    )


def test_only_later_versions_are_marked() -> None:
    """A document of the first version has the bytes that it always had."""
    assert Format("a thing").mark({"a": 1}) == {"a": 1}
    assert THREE.mark({"a": 1}) == {"a": 1, "format": 3}


def test_site_1_to_2_names_the_columns_of_policies() -> None:
    """In the order of the file, as the event of a policy names them since; other events are as they were."""
    migrated = SITE.upgrade({"kind": "policy", "content": {"policy": "people", "yaml": YAML}}, 1, where="event 1")
    assert migrated["content"] == {"policy": "people", "yaml": YAML, "columns": ["b", "a", "\u00e9"]}
    other = {"kind": "opened", "content": {"why": "by hand"}}
    assert SITE.upgrade(other, 1, where="event 2") == other


@pytest.mark.parametrize("text", ["", "policy: [", "columns: {a", "columns: [a, b]", "- columns", "columns:"])
def test_a_text_that_cannot_be_read_names_no_columns(text: str) -> None:
    """A migration never fails: the columns are in the order of their names then."""
    migrated = SITE.upgrade({"kind": "policy", "content": {"yaml": text}}, 1, where="event 1")
    assert migrated["content"]["columns"] == []


def test_docs_list_every_format_with_its_version() -> None:
    """docs/formats.md is the list that people read."""
    assert {format.name: str(format.version) for format in FORMATS} == LISTED


@pytest.mark.parametrize(("format", "named"), [(CARD, Card.FORMAT), (AUDITED, ClaimsDocument.FORMAT)])
def test_what_names_its_format_in_words_names_this_version(format: Format, named: str) -> None:
    """The list says what the document itself says, and it is read so."""
    document = {"format": named, "made": "then"}
    assert named.rpartition("/")[2] == str(format.version)
    assert format.read(document, where="here") == document


def test_kinds_that_are_migrated_are_those_that_are_noted() -> None:
    """The event of a policy is called so where it is noted."""
    assert states.POLICY == "policy"


@pytest.mark.parametrize("garbage", ["", "two", None, "site/", "-1", "1" * 40, [1]])
def test_a_version_that_is_none_is_refused_in_words(garbage: object) -> None:
    """Never a traceback, and without what stood there."""
    with pytest.raises(ReleasePipelineError, match="names no version that could be read") as refused:
        EVIDENCE.read({"format": garbage}, where="here")
    assert refused.value.where == "here"
