"""What site.yaml says of Spark: an address without secrets, and what is wrong with it in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from release_pipeline.errors import ReleasePipelineError, SourceError
from release_pipeline.pipeline.sources import find_spark, find_workers
from release_pipeline.policy.file.sections import Source
from release_pipeline.store.site import Site
from release_pipeline.store.source import find_source

HIDDEN = "geheim"


def make_site(folder: Path, text: str, **environment: str) -> Site:
    """A site whose site.yaml has this text."""
    (folder / "site.yaml").write_text(text)
    return Site(folder, environment)


def test_duckdb_counts_unless_the_engine_is_spark(tmp_path: Path) -> None:
    """A server may be named for its tables alone."""
    for text in ("", "engine: auto\n", "engine: duckdb\n"):
        site = make_site(tmp_path, f"{text}spark: {{url: 'sc://spark.example.org'}}\n")
        assert find_workers(site) is None
        assert find_spark(site) is not None
    assert find_spark(make_site(tmp_path, "looks: allowed\n")) is None
    site = make_site(tmp_path, "engine: spark\nspark: {url: '${WHERE}'}\n", WHERE=f"sc://spark.example.org/;token={HIDDEN}")
    workers = find_workers(site)
    assert workers is not None
    assert workers.url.endswith(HIDDEN)
    assert workers.where == f"{tmp_path / 'site.yaml'}: spark"
    assert HIDDEN not in repr(workers)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("engine: sparks\n", "engine is not said as it should be. Allowed: auto, duckdb, spark"),
        ("engine: spark\n", "the engine is spark, and no server is named"),
        ("engine: spark\nspark: sc://spark.example.org\n", "spark is not said as it should be"),
        ("engine: spark\nspark: {}\n", "'url' is missing"),
        ("engine: spark\nspark: {url: 5}\n", "url is no text"),
        ("engine: spark\nspark: {url: 'sc://spark.example.org', storage: /x}\n", "'storage' is not known here"),
        ("engine: spark\nspark: {url: 'https://spark.example.org'}\n", "this is no address of Spark Connect"),
        ("engine: spark\nspark: {url: 'sc://spark.example.org:99999'}\n", "this is no address of Spark Connect"),
        (f"engine: spark\nspark: {{url: 'sc://spark.example.org/;token={HIDDEN}'}}\n", "a parameter may be a secret"),
        (f"engine: spark\nspark: {{url: 'sc://ana:{HIDDEN}@spark.example.org'}}\n", "a name or a password may not stand in it"),
        ("engine: spark\nspark: {url: '${NOBODY}'}\n", "what spark names is not in the environment"),
        ("engine: spark\nspark: {url: '${WHERE}'}\n", "what the url of spark names is no address of Spark Connect"),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path: Path, text: str, words: str) -> None:
    """With the file, and never with a secret."""
    with pytest.raises(ReleasePipelineError) as refused:
        find_workers(make_site(tmp_path, text, WHERE=f"http://spark.example.org/;token={HIDDEN}"))
    assert words in refused.value.in_full
    assert str(tmp_path / "site.yaml") in refused.value.in_full
    assert HIDDEN not in refused.value.in_full


def test_a_table_of_spark_needs_a_server(tmp_path: Path) -> None:
    """It is named by the site, never by a policy."""
    with pytest.raises(SourceError, match=r"Spark table office.people: no Spark server is named. Name it in site.yaml"):
        find_source(Source(spark="office.people"), folder=tmp_path, values={}, expected=frozenset())
