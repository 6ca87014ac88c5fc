"""populations.yaml: what it may say, and every error in it with its place."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from release_pipeline.errors import PolicyInvalid, ReleasePipelineError
from release_pipeline.policy.loading.populations import Population, find_population, load_populations

SHIPPED = Path(__file__).resolve().parents[3] / "populations.yaml"


def load(folder: Path, text: str) -> Mapping[str, Population]:
    """Read populations from a text."""
    (folder / "populations.yaml").write_text(text)
    return load_populations(folder / "populations.yaml")


def test_both_kinds_of_cap(tmp_path: Path) -> None:
    """An epsilon in one definition and scope, exact to the billionth, or a number of releases."""
    file = tmp_path / "populations.yaml"
    file.write_text("a: {cap: {epsilon: 0.300000001, definition: dp, scope: table}}\nb: {cap: {releases: 3}}\n")
    found = load_populations(file)
    assert found["a"].cap.epsilon is not None
    assert found["a"].cap.epsilon.nano == 300_000_001
    assert (found["b"].cap.releases, found["b"].cap.epsilon) == (3, None)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a: {cap: {epsilon: 1, definition: dp}}", ":1:"),
        ("a: {cap: {releases: 1, epsilon: 1, definition: dp, scope: column}}", ":1:"),
        ("a: {cap: {releases: 0}}", ":1:"),
        ("a: {cap: {epsilon: 0, definition: dp, scope: column}}", ":1:"),
        ("a: {cap: {epsilon: .inf, definition: dp, scope: column}}", ":1:"),
        ("a: {cap: {epsilon: lots, definition: dp, scope: column}}", ":1:"),
        ("a: {cap: {epsilon: 1, definition: zcdp, scope: column}}", ":1:"),
        ("b: {cap: {releases: 1}}\na: {cap: {releases: 1}, people: 7}", ":2:"),
        ("b: {cap: {releases: 1}}\na: 7", ":2:"),
        ("a: {cap: {releases: 1}}\na: {cap: {releases: 2}}", ":2:"),
        ("- a\n- b", ""),
        ("", ""),
        ("a: {cap: {releases: 1}", ""),
    ],
)
def test_errors_name_their_line(tmp_path: Path, text: str, place: str) -> None:
    """One error for one fault, with the line, and the file before all."""
    with pytest.raises(PolicyInvalid) as invalid:
        load(tmp_path, text)
    assert "populations.yaml" in str(invalid.value)
    assert invalid.value.problems
    assert any(place in problem for problem in invalid.value.problems), invalid.value.problems


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00", b""], ids=["missing", "binary", "empty"])
def test_unreadable_files_are_refused_in_words(tmp_path: Path, content: bytes | None) -> None:
    """No traceback: the file's name and what is wrong."""
    if content is not None:
        (tmp_path / "populations.yaml").write_bytes(content)
    with pytest.raises(ReleasePipelineError, match=r"populations\.yaml"):
        load_populations(tmp_path / "populations.yaml")


def test_unknown_population_names_the_known_ones() -> None:
    """The remedy is the officer's."""
    found = load_populations(SHIPPED)
    with pytest.raises(PolicyInvalid, match=r"'nobody' is not declared.*privacy officer.*census-1995"):
        find_population(found, "nobody", file=SHIPPED)
    with pytest.raises(PolicyInvalid, match="none"):
        find_population({}, "nobody", file=SHIPPED)
    assert find_population(found, "census-1995", file=SHIPPED) is found["census-1995"]
