"""Judging counts: Great Expectations agrees with plain comparison, and whatever goes wrong counts as failed."""

from __future__ import annotations

import random
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from release_pipeline.stages import validate
from release_pipeline.stages.checks import EXPECTATIONS, FAMILIES, Check
from release_pipeline.stages.validate import Judge, Verdict, judge_counts, judge_expectations, load_great_expectations
from tests.integration.sites import GX_WARNINGS

pytestmark = [GX_WARNINGS, pytest.mark.slow]  # Great Expectations takes seconds to import
BOTH = pytest.mark.parametrize("judge", [judge_counts, judge_expectations])


def one_each(**counts: int) -> list[Check]:
    """One check of every family; those named found something."""
    return [
        Check(family, "income", "fact", counts.get(family, 0), f"column income: {family} {counts.get(family, 0)}.")
        for family in FAMILIES
    ]


@pytest.mark.slow
@BOTH
def test_nothing_found_passes_in_the_order_of_the_families(judge: Judge) -> None:
    """Eight verdicts, all passed, without a word."""
    verdicts = judge(one_each())
    assert [verdict.family for verdict in verdicts] == list(FAMILIES)
    assert all(verdict.passed and not verdict.messages and len(verdict.checks) == 1 for verdict in verdicts)


@BOTH
@pytest.mark.parametrize("count", [1, 10**12])
def test_a_count_fails_its_own_family_with_its_message(judge: Judge, count: int) -> None:
    """One family fails, with the check's sentence; the others do not."""
    verdicts = {verdict.family: verdict for verdict in judge(one_each(domains=count))}
    assert [family for family, verdict in verdicts.items() if not verdict.passed] == ["domains"]
    assert verdicts["domains"].messages == (f"column income: domains {count}.",)


@BOTH
def test_missing_family_fails(judge: Judge) -> None:
    """A family of which nothing was checked has not passed, and says so."""
    verdicts = {verdict.family: verdict for verdict in judge([c for c in one_each() if c.family != "roles"])}
    assert [family for family, verdict in verdicts.items() if not verdict.passed] == ["roles"]
    assert verdicts["roles"].messages == ("nothing of the family roles was checked.",)


@BOTH
def test_empty_list_fails_everything(judge: Judge) -> None:
    """No check at all: no family passes."""
    verdicts = judge([])
    assert [verdict.family for verdict in verdicts] == list(FAMILIES)
    assert not any(verdict.passed for verdict in verdicts)
    assert all(verdict.messages for verdict in verdicts)


@BOTH
def test_what_is_allowed_passes_and_one_more_fails(judge: Judge) -> None:
    """A family of its own, asked for by name; up to `at_most` of each of its checks, each by itself."""
    families = [*FAMILIES, EXPECTATIONS]

    def verdict(*counts: int) -> Verdict:
        own = [
            Check(EXPECTATIONS, "a, b", f"rule-{i}", count, f"{count} break rule-{i}.", 3 * i) for i, count in enumerate(counts)
        ]
        verdicts = judge([*one_each(), *own], families)
        assert [one.family for one in verdicts] == families
        assert all(one.passed for one in verdicts[:-1])
        return verdicts[-1]

    assert verdict(0, 3, 6).passed
    assert verdict(0, 3, 6).messages == ()
    assert (verdict(1, 0, 0).passed, verdict(1, 0, 0).messages) == (False, ("1 break rule-0.",))
    assert (verdict(0, 4, 7).passed, verdict(0, 4, 7).messages) == (False, ("4 break rule-1.", "7 break rule-2."))
    assert (verdict().passed, verdict().messages) == (False, (f"nothing of the family {EXPECTATIONS} was checked.",))


@pytest.mark.slow
def test_both_judges_agree_on_random_checks() -> None:
    """The same verdicts in every part, on checks in any order, with several, one or none of a family."""
    numbers = random.Random(5)  # noqa: S311
    failed = 0
    for _ in range(8):
        checks = [
            Check(family, f"c{i}", "fact", numbers.choice([0, 0, 0, 0, 1, 7]), f"c{i}: found.", numbers.choice([0, 0, 1, 6]))
            for i, family in enumerate(numbers.choices(list(FAMILIES), k=numbers.randrange(5, 40)))
        ]
        plain = judge_counts(checks)
        assert judge_expectations(checks) == plain
        failed += sum(not verdict.passed for verdict in plain)
    assert 0 < failed < 64


def test_an_expectation_that_raises_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """What Great Expectations could not evaluate has not passed, though every count is 0."""
    load_great_expectations()
    from great_expectations.execution_engine import PandasExecutionEngine

    def fail(*_: Any, **__: Any) -> Any:
        raise RuntimeError("a cell")

    with monkeypatch.context() as patch:
        patch.setattr(PandasExecutionEngine, "get_domain_records", fail)
        verdicts = judge_expectations(one_each())
    assert not any(verdict.passed for verdict in verdicts)
    assert all("could not be judged" in verdict.messages[0] and "a cell" not in verdict.messages[0] for verdict in verdicts)


@pytest.mark.parametrize("found", [{}, {"schema": True}, dict.fromkeys(FAMILIES, False), dict.fromkeys(FAMILIES, 1)])
def test_missing_and_odd_results_fail(monkeypatch: pytest.MonkeyPatch, found: dict[str, Any]) -> None:
    """A family whose result did not come back, or is not True itself, has not passed."""
    monkeypatch.setattr(validate, "_validate", lambda _: found)
    verdicts = judge_expectations(one_each())
    assert [verdict.family for verdict in verdicts if verdict.passed] == [name for name in FAMILIES if found.get(name) is True]
    assert all(verdict.messages for verdict in verdicts if not verdict.passed)


def test_expectations_are_never_more_lenient_than_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge that says yes to everything does not let a count through."""
    monkeypatch.setattr(validate, "_validate", lambda _: dict.fromkeys(FAMILIES, True))
    assert judge_expectations(one_each(types=1)) == judge_counts(one_each(types=1))


def test_table_that_great_expectations_judges_has_counts_and_no_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only family, column, fact, count and what is allowed reach it."""
    load_great_expectations()  # before pandas is watched
    import pandas as pd

    frames: list[Any] = []

    class Watched(pd.DataFrame):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            frames.append(self)

    with monkeypatch.context() as patch:
        patch.setattr(pd, "DataFrame", Watched)
        judge_expectations(one_each(types=3))
    assert frames
    assert not any("column income: types" in frame.to_string() for frame in frames)
    assert list(frames[0].columns) == ["family", "column", "fact", "count", "at_most"]


def test_nothing_deprecated_of_great_expectations_is_used() -> None:
    """A later version of it will not take away what the judge rests on."""
    load_great_expectations()  # what it warns of while it is imported is its own affair

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        judge_expectations(one_each())


@pytest.mark.parametrize("before", ["", "import pyspark.sql.types, pyspark.sql.connect.session"])
def test_the_spark_client_is_not_loaded_for_it_and_stays_as_it_was(before: str, tmp_path: Path) -> None:
    """Loaded for a cluster before, or not: what it would load of it warns, and ends the program where it finds no Spark."""
    loaded = "{name for name in sys.modules if name.partition('.')[0] == 'pyspark'}"
    program = f"""\
import sys, warnings
warnings.simplefilter("ignore")
{before}
warnings.simplefilter("error", FutureWarning)
there = {loaded}
modules = [sys.modules[name] for name in there]
from release_pipeline.stages.validate import load_great_expectations
assert load_great_expectations() is load_great_expectations()
assert {loaded} == there and [sys.modules[name] for name in there] == modules
from great_expectations.compatibility import pyspark
assert not pyspark.pyspark, "it sees the client"
"""
    file = tmp_path / "program.py"  # one without a file the client takes for a test of its own
    file.write_text(program, encoding="utf-8")
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
