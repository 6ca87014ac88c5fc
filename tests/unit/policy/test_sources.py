"""What a policy says of its source: one place, a query that is one question, and no password."""

from __future__ import annotations

import pytest

from release_pipeline.policy import Policy, parse_policy
from release_pipeline.policy.file.sections import Source
from tests.integration.sites import policy_text, refusal


def policy_of(source: str) -> Policy:
    """The policy of the tiny site with another source."""
    return parse_policy(policy_text(source=source), name="people.yaml")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ('{postgres: "${A}"}', "a postgres source needs its table"),
        ('{postgres: "${A}", table: people, query: SELECT 1}', "takes the place of a table"),
        ("{path: people.csv, query: SELECT 1}", "a query is asked of a postgres address"),
        ('{postgres: "${A}", query: "SELECT 1; DROP TABLE people"}', "one statement without any semicolon"),
        ('{postgres: "${A}", query: "DELETE FROM people"}', "begin with SELECT, WITH or VALUES"),
        ("{path: 's3://ana@bucket/people.csv'}", "a file or folder of this machine, and no address"),
        ("{table: people}", "a source has a path, a postgres address or a spark table, one of them"),
        ("{spark: people, path: people.csv}", "a source has a path, a postgres address or a spark table, one of them"),
        ("{spark: people, table: people}", "a spark source names its table alone"),
        ("{spark: 'sc://spark.example.org/people'}", "a spark source names its table alone"),
        ("{spark: people, query: SELECT 1}", "a query is asked of a postgres address"),
    ],
)
def test_a_source_that_cannot_be_meant_is_refused(source: str, words: str) -> None:
    """With the file, the line and what to do."""
    assert words in refusal(lambda: policy_of(source))


def test_the_words_have_the_query_in_one_line_and_never_the_address() -> None:
    """What reviewers and auditors see of it."""
    source = Source(postgres="postgresql://ana:${WORD}@db.example.org/people", query="SELECT *\nFROM people\n  WHERE wave = 2  ")
    assert source.describe() == "Postgres query SELECT * FROM people WHERE wave = 2"
    assert Source(postgres="postgresql://ana@db.example.org/people", table="a.b").describe() == "Postgres table a.b"
    assert Source(spark="office.survey.people").describe() == "Spark table office.survey.people"
    assert Source(path="people.csv").describe() == "people.csv"
