"""Formats of what is stored: what a later version wrote is refused, in words."""

from __future__ import annotations

import pytest

from release_pipeline.errors import ReleasePipelineError
from release_pipeline.formats.versions import EVIDENCE, Format, FormatNewer


@pytest.mark.parametrize("named", [{}, {"format": 1}, {"format": "release-pipeline/thing/1"}])
def test_a_document_is_read_as_it_is(named: dict[str, object]) -> None:
    """Whether it names the first version or not."""
    document = {"size": 1, **named}
    assert Format("a thing").read(document, where="there") == document


@pytest.mark.parametrize("named", [2, "2", "release-pipeline/thing/2"])
def test_what_a_later_version_wrote_is_refused_in_words(named: object) -> None:
    """What, where, and what to do."""
    with pytest.raises(FormatNewer) as refused:
        Format("a thing").read({"format": named}, where="vault/thing.json")
    assert str(refused.value) == (
        "vault/thing.json: a thing here has the format 2, and this version of release-pipeline knows it up to 1. "
        "Install the version that wrote it, or a later one. Nothing was read or written."
    )


@pytest.mark.parametrize("garbage", ["", "two", None, "site/", "-1", "1" * 40, [1]])
def test_a_version_that_is_none_is_refused_in_words(garbage: object) -> None:
    """Never a traceback, and without what stood there."""
    with pytest.raises(ReleasePipelineError, match="names no version that could be read") as refused:
        EVIDENCE.read({"format": garbage}, where="here")
    assert refused.value.where == "here"
