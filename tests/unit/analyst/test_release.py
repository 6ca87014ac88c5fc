"""The kit on cards and tables: what it reads, what it answers, and that every refusal says why."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.analyst import Facts, NoHonestAnswer, Release, explain_kit, law_of, read_facts, read_release
from release_pipeline.analyst.facts import ColumnFacts
from release_pipeline.errors import InvalidArgument, InvalidType, WrongUsage
from release_pipeline.mechanisms import mask_column
from release_pipeline.mechanisms.accounting.sensitivity import scales_for
from release_pipeline.mechanisms.catalogue import METHODS
from release_pipeline.publish.delivery import TOMBSTONES
from tests.unit.analyst.cards import make_card, make_facts, noise
from tests.unit.analyst.releasing import release_like

SECRET = bytes(range(32))
TWO = (noise("income"), noise("rent", 50, grid="0.5", epsilon="0.25"))
KEPT = ColumnFacts("town", "keep", "string")
SEX = ColumnFacts("sex", "keep", "integer")


def table(rows: int = 200) -> dict[str, Any]:
    chance = np.random.default_rng(5)
    income = np.round(chance.gamma(3, 90, rows)).clip(0, 1000)
    return {"income": income, "rent": np.round(income / 20 * 2).clip(0, 100) / 2}


# what it reads


def test_the_facts_of_a_card_are_read_back() -> None:
    """Every field; epsilon of a person is divided by the records that one may have: noise is drawn for a record."""
    facts = make_facts("dp-um", *TWO, KEPT, rows=77, k=7, clamped=True, consistency="isotonic")
    assert read_facts(make_card(facts)) == facts
    several = make_card(facts, persons=5)
    assert [column.epsilon and str(column.epsilon) for column in read_facts(several).columns.values()] == ["0.2", "0.05", None]


@pytest.mark.parametrize("change", [{"format": "privacy-card/9"}, {"rows": {}}, {"k": None}, {"columns": [{}]}])
def test_what_is_no_card_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument, match="card"):
        read_facts(make_card(make_facts()) | change)


def write_package(folder: Path, facts: Facts, rows: list[list[object]]) -> Path:
    (folder / "privacy-card.json").write_text(json.dumps(make_card(facts)))
    with (folder / "data.csv").open("w", newline="") as file:
        csv.writer(file).writerows([list(facts.columns), *rows])
    return folder


def test_a_package_is_read(tmp_path: Path) -> None:
    """Numbers as floats with NaN for blanks, everything else as text."""
    facts = make_facts("laplace", TWO[0], SEX, KEPT, rows=3)
    release = read_release(write_package(tmp_path, facts, [[-3.25, 1, "01"], [1e3, "", ""], [0, 0, 'a,"b"']]))
    assert release.data["income"].tolist() == [-3.25, 1000.0, 0.0]
    assert np.isnan(release.data["sex"]).tolist() == [False, True, False]
    assert release.data["town"].tolist() == ["01", "", 'a,"b"']
    assert repr(release) == "<Release of 3 records by laplace: income, sex, town>"
    again = read_release(tmp_path, data={"income": [1, 2, 3], "sex": [0, 1, 0], "town": ["a", "b", "c"], "more": [0, 0, 0]})
    assert list(again.data) == ["income", "sex", "town"]


def test_packages_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    """In words with a remedy, and without a cell of the data."""
    facts = make_facts("laplace", rows=1)
    with pytest.raises(WrongUsage, match="no privacy card"):
        read_release(tmp_path)
    write_package(tmp_path, facts, [["secret-cell"]])
    with pytest.raises(InvalidArgument, match="not a number") as refused:
        read_release(tmp_path)
    assert "secret-cell" not in str(refused.value)
    write_package(tmp_path, facts, [[1, 2]])
    with pytest.raises(InvalidArgument, match="not those of the card"):
        read_release(tmp_path)
    with pytest.raises(InvalidArgument, match="lack income"):
        read_release(tmp_path, data={"rent": [1]})
    (tmp_path / "data.csv").unlink()
    with pytest.raises(WrongUsage, match="pass its columns as data="):
        read_release(tmp_path)
    (tmp_path / "privacy-card.json").write_text("{")
    with pytest.raises(InvalidArgument, match="not JSON"):
        read_release(tmp_path)


# the laws


@pytest.mark.parametrize(("method", "k"), [("laplace", None), ("dp-um", 7)])
def test_the_law_is_that_of_the_release(method: str, k: int | None) -> None:
    """Scale, sizes and number of draws as `mask_column` takes them; its deviation that of the noise on one sum."""
    facts = make_facts(method, *TWO, rows=200, k=k)
    for name, column in facts.columns.items():
        assert column.grid is not None
        assert column.epsilon is not None
        masked = mask_column(
            table()[name],
            domain=(column.grid.lo, column.grid.hi),
            grid=column.grid.step,
            method=method,
            epsilon=column.epsilon,
            k=k,
            secret=SECRET,
        )
        law = law_of(facts, name)
        assert law.kind == "exact"
        assert set(masked.scale.tolist()) == {law.scale}
        assert (int(masked.size.min()), int(masked.size.max())) == law.sizes
        assert facts.draws == len(masked.scale)
        assert law.scale is not None
        assert f"t = {law.scale:,}" in law.description


# means


def release_of(method: str, *, rows: int = 200, columns: tuple[ColumnFacts, ...] = TWO, **changes: Any) -> Release:
    return release_like(table(rows), make_facts(method, *columns, rows=rows, **changes))


def test_the_mean_of_mdav_is_exact() -> None:
    """Its clusters have exact means: their mean, weighted by records, is that of the table on its grid."""
    facts = make_facts("mdav", *(ColumnFacts(c.name, "centroid", "number", c.grid) for c in TWO), k=5, rows=200)
    release = Release(facts, table())
    for name in ("income", "rent"):
        mean = release.mean(name)
        assert (mean.kind, mean.width) == ("exact", 0.0)
        assert mean.estimate == pytest.approx(float(release.data[name].mean()), rel=1e-12)


@pytest.mark.parametrize("consistency", ["none", "isotonic"])
def test_the_mean_of_unclamped_dp_um_is_that_of_the_sums(consistency: str) -> None:
    """(total + noise) / n whether or not the order was restored: both releases have one noise, and one mean."""
    plain, other = (release_of("dp-um", consistency=kind).mean("income") for kind in ("none", consistency))
    assert other.estimate == pytest.approx(plain.estimate, rel=1e-12)
    assert other.width == plain.width
    assert (other.kind, other.level) == ("law", 0.95)


@pytest.mark.parametrize(
    ("value", "ends", "said"),
    [
        (20.0, (20.0, 0.0, 50.0), "Cut where the domain ends"),
        (990.0, (990.0, 960.0, 1000.0), "Cut where the domain ends"),
        (-10.0, (0.0, 0.0, 20.0), "Cut where the domain ends"),
        (-31.0, (0.0, 0.0, 0.0), "All of it lies beyond the domain, as in at most 0.05 of all releases"),
        (1040.0, (1000.0, 1000.0, 1000.0), "All of it lies beyond the domain"),
        (500.0, (500.0, 470.0, 530.0), ""),
    ],
)
def test_an_interval_ends_where_the_domain_ends(value: float, ends: tuple[float, float, float], said: str) -> None:
    """No confidential mean lies beyond it. Ends that are moved to the nearest point of it keep every mean that was between
    them."""
    mean = Release(make_facts("laplace", noise("income", epsilon="100"), rows=1), {"income": np.array([value])}).mean("income")
    assert (mean.estimate, mean.low, mean.high) == ends
    assert said in mean.basis
    assert ("domain" in mean.basis) == bool(said)


def test_the_mean_of_a_column_without_noise_is_exact() -> None:
    """The plain one, whatever the method; not where a cell is blank, rows were dropped or the values are texts."""
    columns = (*TWO, SEX, KEPT)
    data = {"income": np.zeros(200), "rent": np.zeros(200), "sex": np.arange(200) % 2 == 0, "town": np.array(["a"] * 200)}
    for method in ("laplace", "dp-um", "mdav", "k-epsilon", "dp-mdav"):
        release = Release(make_facts(method, *columns, rows=200), data)
        assert (release.mean("sex").estimate, release.mean("sex").width, release.mean("sex").kind) == (0.5, 0.0, "exact")
        with pytest.raises(InvalidArgument, match="not one of numbers"):
            release.mean("town")
    blank = Release(release.facts, {**data, "sex": np.array([1.0, np.nan] * 100)})
    with pytest.raises(NoHonestAnswer, match="blank cells"):
        blank.mean("sex")
    for changes, said in (({"rows_out": 199}, "records were dropped"), ({"in_parts": True}, "random parts")):
        with pytest.raises(NoHonestAnswer, match=said):
            Release(make_facts("laplace", *columns, **{"rows": 200, **changes}), data).mean("sex")


@given(st.sampled_from([1, 3, 40]), st.integers(0, 30), st.integers(0, 30))
def test_values_at_the_ends_are_put_where_the_noise_lay(t: int, low: int, high: int) -> None:
    """E[x + Z | moved to an end] is a geometric mean beyond it: added to the plain mean for each value at an end."""
    facts = make_facts("laplace", noise("income", 40, epsilon=str(40 // t) if 40 % t == 0 else "20"), rows=100, clamped=True)
    column = facts.columns["income"]
    assert column.grid is not None
    assert column.epsilon is not None
    scale = int(scales_for(np.array([40]), column.epsilon)[0])
    values = np.array([0.0] * low + [40.0] * high + [7.0] * (100 - low - high))
    beyond = math.exp(-1 / scale) / (1 - math.exp(-1 / scale))
    mean = Release(facts, {"income": values}).mean("income")
    assert mean.estimate == pytest.approx(min(max(float(values.mean()) + (high - low) * beyond / 100, 0), 40))


# what is asked wrongly


WRONG: list[Any] = [
    lambda r, home: r.mean(["income"]),
    lambda r, home: r.mean("income", level="95%"),
    lambda r, home: read_facts([1]),
    lambda r, home: read_facts(make_card(r.facts) | {"rows": {"in": "many", "out": 1}}),
    lambda r, home: read_release(None),
    lambda r, home: read_release(home / "data.csv"),
    lambda r, home: read_release(home, data={"income": [1, 2], "rent": [1]}),
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_wrong_arguments_are_refused_in_words(number: int, tmp_path: Path) -> None:
    """By errors of ours, never by those of Python or a library."""
    home = write_package(tmp_path, make_facts("laplace", *TWO, rows=1), [[1, 2]])
    with pytest.raises((InvalidArgument, InvalidType, WrongUsage)) as refused:
        WRONG[number](release_of("laplace"), home)
    assert str(refused.value)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ('{"statement": {"at": "2026-11-20T16:39:15+00:00"}}', "this release was retracted on 2026-11-20. See RETRACTED.md"),
        ("[]", "this release was retracted. See RETRACTED.md"),
        (None, "this release was retracted. See RETRACTED.md"),
    ],
)
def test_a_retracted_release_is_called_so(tmp_path: Path, written: str | None, said: str) -> None:
    """Without its data, and for copies of them."""
    home = write_package(tmp_path, make_facts(rows=1), [[1]])
    (home / "data.csv").unlink()
    (home / "RETRACTED.md").write_text("# it was")
    if written is not None:
        (home / "RETRACTED.json").write_text(written)
    for data in (None, {"income": [1]}):
        with pytest.raises(WrongUsage, match=said):
            read_release(home, data=data)
    assert TOMBSTONES["retracted"] == "RETRACTED"  # by which the publisher's side calls its files


# what it says of itself


@pytest.mark.parametrize("method", METHODS)
def test_the_kit_answers_or_declines_for_every_method(method: str) -> None:
    """Of the catalogue: a law or a reason, and sentences."""
    facts = make_facts(method, *TWO, clamped=True, rows=200)
    spec = METHODS[method]
    words = law_of(facts, "income").description
    assert spec.kit.means in words
    assert len(release_words := " ".join(explain_kit(facts))) > 100
    assert spec.kit.means in release_words
    assert spec.kit.means or spec.kit.slopes in release_words
