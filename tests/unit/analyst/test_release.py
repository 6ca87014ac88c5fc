"""The kit on cards and tables: what it reads, what it answers, and that every refusal says why."""

from __future__ import annotations

import ast
import csv
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.analyst import Facts, NoHonestAnswer, Release, explain_kit, law_of, read_facts, read_release, simulate
from release_pipeline.analyst import facts as facts_module
from release_pipeline.analyst.facts import ColumnFacts
from release_pipeline.analyst.laws import variance_of
from release_pipeline.errors import InvalidArgument, InvalidType, ReleasePipelineError, WrongUsage
from release_pipeline.flow.publication.published import TOMBSTONES
from release_pipeline.privacy import mask_column
from release_pipeline.privacy.catalogue import METHODS
from release_pipeline.privacy.sensitivity import scales_for
from tests.unit.analyst.cards import make_card, make_facts, noise

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


def test_values_of_which_a_card_says_nothing_lie_inside() -> None:
    """One that is written by hand."""
    card = make_card(make_facts())
    assert read_facts(card).clamped is False
    del card["method"]["values"]
    assert read_facts(card).clamped is True


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
        assert law.standard_deviation == pytest.approx(math.sqrt(variance_of(law.scale)) * float(column.grid.step))
        assert f"t = {law.scale:,}" in law.words


@pytest.mark.parametrize(
    ("method", "changes", "kind", "said"),
    [
        ("laplace", {}, "exact", "each value has a whole number Z"),
        ("laplace", {"clamped": True}, "drawn", "values outside the domain were moved to its ends"),
        ("dp-um", {}, "exact", "the sum of each of 20 clusters of 5 records has"),
        ("dp-um", {"consistency": "isotonic"}, "drawn", "Afterwards their order was restored."),
        ("dp-um", {"k": 7}, "exact", "14 clusters of 7 records (the last one 9)"),
        ("idp-ls", {}, "bound", "not published. Bounded"),
        ("idp-cbls", {}, "bound", "trimming can have moved it by at most 10"),
        ("idp-cbls", {"clamped": True}, "bound", "a coarser bound holds"),
        ("mdav", {}, "no noise", "exact mean of its cluster"),
        ("dp-mdav", {}, "none", "clusters of all columns together"),
        ("k-epsilon", {}, "none", "as large as the class is wide"),
        ("laplace", {"rows_out": 99}, "none", "records were dropped"),
        ("dp-um", {"in_parts": True}, "none", "random parts"),
        ("something-new", {}, "none", "does not know the method"),
    ],
)
def test_every_law_says_which_it_is(method: str, changes: dict[str, Any], kind: str, said: str) -> None:
    """Never a silent number: where there is no law its deviation is refused with the reason."""
    law = law_of(make_facts(method, **changes), "income")
    assert law.kind == kind
    assert said in law.words
    if law.scale is None:
        with pytest.raises(NoHonestAnswer, match="income"):
            _ = law.standard_deviation


def test_laws_are_of_masked_columns_alone() -> None:
    facts = make_facts("laplace", *TWO, KEPT)
    with pytest.raises(InvalidArgument, match="no such column"):
        law_of(facts, "age")
    with pytest.raises(InvalidArgument, match="was not masked"):
        law_of(facts, "town")


# means


def release_of(method: str, *, rows: int = 200, columns: tuple[ColumnFacts, ...] = TWO, **changes: Any) -> Release:
    return simulate(table(rows), make_facts(method, *columns, rows=rows, **changes), secret=SECRET)


def test_the_mean_of_mdav_is_exact() -> None:
    """Its clusters have exact means: their mean, weighted by records, is that of the table on its grid."""
    made = table()
    release = simulate(made, make_facts("mdav", *(ColumnFacts(c.name, "centroid", "number", c.grid) for c in TWO), k=5))
    for name in ("income", "rent"):
        mean = release.mean(name)
        assert (mean.kind, mean.width) == ("exact", 0.0)
        assert mean.estimate == pytest.approx(float(made[name].mean()), rel=1e-12)
    assert len(np.unique(release.data["income"])) <= 40


@pytest.mark.parametrize("consistency", ["none", "isotonic"])
def test_the_mean_of_unclamped_dp_um_is_that_of_the_sums(consistency: str) -> None:
    """(total + noise) / n whether or not the order was restored: both releases have one noise, and one mean."""
    plain, other = (release_of("dp-um", consistency=kind).mean("income") for kind in ("none", consistency))
    assert other.estimate == pytest.approx(plain.estimate, rel=1e-12)
    assert other.width == plain.width
    assert (other.kind, other.level) == ("law", 0.95)


@pytest.mark.slow
def test_intervals_grow_with_the_level_and_shrink_with_epsilon() -> None:
    for method in ("laplace", "dp-um", "idp-ls", "idp-cbls"):
        release = release_of(method)
        widths = [release.mean("income", level=level).width for level in (0.5, 0.9, 0.95, 0.99)]
        assert widths == sorted(widths)
        assert widths[0] < widths[-1]
        better = release_of(method, columns=(noise("income", epsilon="10"), TWO[1]))
        assert better.mean("income").width < widths[2]


def test_one_record_has_the_law_itself() -> None:
    """The least m with P[|Z| <= m] >= 95% for t = 10 is 30."""
    release = Release(make_facts("laplace", noise("income", epsilon="100"), rows=1), {"income": np.array([500.0])})
    assert (release.mean("income").low, release.mean("income").high) == (500.0 - 30, 500.0 + 30)


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
    assert said in mean.words
    assert ("domain" in mean.words) == bool(said)


@pytest.mark.parametrize("method", ["laplace", "dp-um", "idp-ls", "idp-cbls"])
def test_every_mean_lies_in_the_domain(method: str) -> None:
    """Cut where it leaves it; and declined where the bound, uncut, is wider than the domain."""
    columns = (noise("income", epsilon="0.5"), noise("rent", 50, epsilon="9"))
    release = release_of(method, rows=400, columns=columns)
    for name, top in (("income", 1000), ("rent", 50)):
        mean = release.mean(name, level=0.99)
        assert 0 <= mean.low <= mean.estimate <= mean.high <= top
    if method.startswith("idp"):
        with pytest.raises(NoHonestAnswer, match="wider than the declared domain"):
            release_of(method, columns=(noise("income", epsilon="0.01"), TWO[1])).mean("income")


def test_the_mean_of_a_column_without_noise_is_exact() -> None:
    """The plain one, whatever the method; not where a cell is blank, rows were dropped or the values are texts."""
    columns = (*TWO, SEX, KEPT)
    data = {"income": np.zeros(200), "rent": np.zeros(200), "sex": np.arange(200) % 2 == 0, "town": np.array(["a"] * 200)}
    for method in ("laplace", "dp-um", "mdav", "k-epsilon", "dp-mdav"):
        release = Release(make_facts(method, *columns, rows=200), data).with_exact("ten", [10] * 200)
        assert (release.mean("sex").estimate, release.mean("sex").width, release.mean("sex").kind) == (0.5, 0.0, "exact")
        assert release.mean("ten").estimate == 10
        with pytest.raises(InvalidArgument, match="not one of numbers"):
            release.mean("town")
    blank = Release(release.facts, {**data, "sex": np.array([1.0, np.nan] * 100)})
    with pytest.raises(NoHonestAnswer, match="blank cells"):
        blank.mean("sex")
    for changes, said in (({"rows_out": 199}, "records were dropped"), ({"in_parts": True}, "random parts")):
        with pytest.raises(NoHonestAnswer, match=said):
            Release(make_facts("laplace", *columns, **{"rows": 200, **changes}), data).mean("sex")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"rows_out": 199}, "records were dropped"),
        ({"in_parts": True}, "random parts"),
        ({"method": "k-epsilon"}, "as wide|wide, which is confidential"),
        ({"method": "dp-mdav"}, "clusters of all columns together"),
    ],
)
def test_means_that_nothing_bounds_are_declined(changes: dict[str, Any], said: str) -> None:
    facts = make_facts(**{"rows": 200, **changes})
    with pytest.raises(NoHonestAnswer, match=said):
        Release(facts, {"income": np.zeros(facts.rows_out)}).mean("income")


@pytest.mark.slow
def test_a_mean_is_of_all_rows_and_at_a_level() -> None:
    """Chosen rows have no bound; a level is a probability; and the data must have the column."""
    release = release_of("laplace")
    some = Release(release.facts, {name: values[:50] for name, values in release.data.items()})
    with pytest.raises(NoHonestAnswer, match="Pass all rows"):
        some.mean("income")
    with pytest.raises(InvalidArgument, match="level"):
        release.mean("income", level=95)
    with pytest.raises(InvalidArgument, match="no such column"):
        Release(release.facts, {}).mean("income")
    with pytest.raises(NoHonestAnswer, match="40 draws are too few"):
        release_of("dp-um", clamped=True).mean("income")
    huge = make_facts("idp-ls", noise("income", epsilon="0.000000001"), rows=10**8)
    assert (law_of(huge, "income").kind, "rounding of the scales" in law_of(huge, "income").words) == ("none", True)
    with pytest.raises(NoHonestAnswer, match="rounding of the scales"):
        Release(huge, {"income": np.broadcast_to(0.0, 10**8)}).mean("income")


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


# slopes


def wide(rows: int = 400, epsilon: str = "40") -> tuple[dict[str, Any], Facts]:
    return table(rows), make_facts(
        "laplace", noise("income", epsilon=epsilon), noise("rent", 50, grid="0.5", epsilon=epsilon), SEX
    )


def test_without_noise_worth_naming_the_slope_is_least_squares() -> None:
    """At an epsilon of 100,000 the scale is 1: slope, several slopes and correlation agree with NumPy's to four digits."""
    made, facts = wide(epsilon="100000")
    made["sex"] = np.arange(400) % 2
    release = simulate(made, facts, secret=SECRET)
    true = np.polyfit(made["income"], made["rent"], 1)[0]
    assert release.slope("rent", ["income"])["income"].estimate == pytest.approx(true, rel=1e-3)
    assert release.slope("rent", "income").keys() == {"income"}
    x = np.column_stack([made["income"], made["sex"], np.ones(400)])
    several = np.linalg.lstsq(x, made["rent"], rcond=None)[0]
    fit = release.slope("rent", ["income", "sex"])
    assert fit["income"].estimate == pytest.approx(several[0], rel=1e-3)
    assert fit["sex"].low <= several[1] <= fit["sex"].high
    assert release.correlation("income", "rent").estimate == pytest.approx(
        np.corrcoef(made["income"], made["rent"])[0, 1], rel=1e-3
    )


def test_a_column_without_noise_has_the_least_squares_slope() -> None:
    """Only the explained column has noise: nothing to correct, and an interval from its noise alone."""
    made, facts = wide()
    made["sex"] = np.arange(400) % 2
    release = simulate(made, facts, secret=SECRET)
    fit = release.slope("income", ["sex"])["sex"]
    assert fit.estimate == pytest.approx(np.polyfit(release.data["sex"], release.data["income"], 1)[0])
    deviation = release.noise_of("income").standard_deviation
    assert fit.width == pytest.approx(2 * 1.959964 * deviation / math.sqrt(400) * 2, rel=1e-3)


def test_exact_columns_of_her_own() -> None:
    """Made from kept ones; of the right length, under a new name."""
    made, facts = wide()
    made["sex"] = np.arange(400) % 2
    release = simulate(made, facts, secret=SECRET).with_exact("man", np.zeros(400))
    added = release.with_exact("woman", 1 - release.data["sex"])
    assert added.slope("rent", ["income", "woman"])["woman"].estimate == pytest.approx(
        -release.slope("rent", ["income", "sex"])["sex"].estimate
    )
    with pytest.raises(InvalidArgument, match="one value for each row"):
        release.with_exact("x", [1, 2])
    with pytest.raises(InvalidArgument, match="of this name"):
        release.with_exact("income", np.zeros(400))
    with pytest.raises(NoHonestAnswer, match="man: no slope: this column is constant"):
        release.slope("rent", ["income", "man"])


def test_her_own_columns_are_numbers() -> None:
    """Yes and no and whole numbers become floats; texts, missing and infinite numbers and masks are refused at once, in the right
    words."""
    release = release_of("laplace", rows=3)
    assert release.with_exact("yes", [True, False, True]).data["yes"].tolist() == [1.0, 0.0, 1.0]
    assert release.with_exact("whole", [1, 2, 3]).data["whole"].dtype == np.float64
    for values, said in (
        (["a", "b", "c"], "column of 0 and 1 for each category"),
        ([1, None, 2], "column of 0 and 1 for each category"),
        ([1, math.nan, math.inf], "2 of its numbers are missing or infinite"),
        ([[1], [1, 2], [3]], "one value for each row"),
        (np.ma.masked_array([1, 2, 3], [0, 1, 0]), "masked array"),
    ):
        with pytest.raises((InvalidArgument, InvalidType), match=said) as refused:
            release.with_exact("x", values)
        assert "small groups" not in str(refused.value)


def test_columns_without_noise_have_their_ordinary_links() -> None:
    """NumPy's own figures, in intervals without width, under every method; a constant is called one."""
    chance = np.random.default_rng(3)
    a, b, c = chance.normal(0, 1, (3, 60)) + 5
    b += a
    for method in ("laplace", "dp-um", "mdav", "k-epsilon"):
        release = Release(make_facts(method, *TWO, rows=60), {name: np.zeros(60) for name in ("income", "rent")})
        release = release.with_exact("a", a).with_exact("b", b).with_exact("c", c).with_exact("flat", [0.1] * 60)
        link = release.correlation("a", "b")
        assert (link.kind, link.width) == ("exact", 0.0)
        assert link.estimate == pytest.approx(np.corrcoef(a, b)[0, 1])
        fit = release.slope("b", ["a", "c"])
        wanted = np.linalg.lstsq(np.column_stack([a, c, np.ones(60)]), b, rcond=None)[0]
        assert [fit["a"].estimate, fit["c"].estimate] == pytest.approx(wanted[:2].tolist())
        assert {(part.kind, part.width) for part in fit.values()} == {("exact", 0.0)}
        assert "No noise" in link.words
        assert "No noise" in fit["a"].words
        for ask in (lambda r=release: r.correlation("a", "flat"), lambda r=release: r.correlation("flat", "a")):
            with pytest.raises(NoHonestAnswer, match="flat: no correlation: this column is constant"):
                ask()
        dropped = Release(make_facts(method, *TWO, rows=60, rows_out=59), {**release.data}, release.exact)
        with pytest.raises(NoHonestAnswer, match="records were dropped"):
            dropped.correlation("a", "b")


def test_what_is_no_matter_of_noise_is_not_called_one() -> None:
    """Columns that follow from others, and columns without noise beside noisy ones."""
    made, facts = wide()
    made["sex"] = np.arange(400) % 2
    release = simulate(made, facts, secret=SECRET)
    release = release.with_exact("other", 1 - release.data["sex"]).with_exact("b", np.arange(400) % 3)
    for y in ("rent", "b"):
        with pytest.raises(NoHonestAnswer, match="other: no slope: this column follows from the others"):
            release.slope(y, ["sex", "other"])
    for on in (["sex"], ["income", "sex"]):
        assert "No noise in this column: nothing to correct." in release.slope("rent", on)["sex"].words
    assert "Corrected for attenuation" in release.slope("rent", ["income", "sex"])["income"].words
    assert release.correlation("sex", "income").words == "Corrected for the noise of income; sex has none."
    assert release.correlation("income", "sex").words == "Corrected for the noise of income; sex has none."
    assert release.correlation("income", "rent").words == "Corrected for the noise of both columns."


@pytest.mark.parametrize("changes", [{"method": "k-epsilon"}, {"method": "dp-mdav"}, {"in_parts": True}, {"method": "new"}])
def test_no_advice_is_a_dead_end(changes: dict[str, Any]) -> None:
    """Where the simulator declines nobody is sent there; where it does not, it is what helps."""
    release = Release(make_facts(**{"method": "laplace", "rows": 200, **changes}), {"income": np.zeros(200)})
    release = release.with_exact("a", np.arange(200))
    asks = [lambda: release.mean("income"), lambda: release.slope("income", ["a"]), lambda: release.correlation("income", "a")]
    for ask in [*asks, lambda: simulate(table(), release)]:
        with pytest.raises(NoHonestAnswer) as declined:
            ask()
        assert declined.value.remedy == "Compare with your own knowledge of the method, or ask the publisher."
    assert "imulate" not in " ".join(release.explain())
    with pytest.raises(NoHonestAnswer, match="Simulate with made-up data"):
        Release(make_facts(rows_out=99), {"income": np.zeros(99)}).mean("income")


WRONG: list[Any] = [
    lambda r, home: r.mean(["income"]),
    lambda r, home: r.noise_of(["income"]),
    lambda r, home: r.mean("income", level="95%"),
    lambda r, home: r.mean("income", level=None),
    lambda r, home: r.slope("rent", None),
    lambda r, home: r.slope("rent", 3),
    lambda r, home: r.slope("rent", [["income"]]),
    lambda r, home: r.slope(None, ["income"]),
    lambda r, home: r.correlation(["income"], "rent"),
    lambda r, home: r.correlation("income", None),
    lambda r, home: r.with_exact(None, np.zeros(200)),
    lambda r, home: simulate(table(), "path"),
    lambda r, home: simulate(table(), None),
    lambda r, home: simulate([1, 2], r),
    lambda r, home: simulate(None, r),
    lambda r, home: simulate(dict, r),
    lambda r, home: simulate({1: [2]}, r),
    lambda r, home: simulate({"income": [1, [2]], "rent": [1, 2]}, r),
    lambda r, home: simulate({"income": 1, "rent": 2}, r),
    lambda r, home: simulate({"income": ["a"], "rent": ["b"]}, r),
    lambda r, home: read_facts([1]),
    lambda r, home: read_facts(None),
    lambda r, home: read_facts(make_card(r.facts) | {"rows": {"in": "many", "out": 1}}),
    lambda r, home: read_facts(make_card(r.facts) | {"columns": None}),
    lambda r, home: read_facts(make_card(r.facts, persons=0)),
    lambda r, home: read_release(None),
    lambda r, home: read_release(7),
    lambda r, home: read_release(home / "data.csv"),
    lambda r, home: read_release(home, data=[1]),
    lambda r, home: read_release(home, data={"income": [1, 2], "rent": [1]}),
    lambda r, home: read_release(home, data={"income": [[1], [1, 2]], "rent": [1, 2]}),
    lambda r, home: read_release(home, data={"income": 5, "rent": 5}),
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_wrong_arguments_are_refused_in_words(number: int, tmp_path: Path) -> None:
    """By errors of ours, never by those of Python or a library."""
    home = write_package(tmp_path, make_facts("laplace", *TWO, rows=1), [[1, 2]])
    with pytest.raises((InvalidArgument, InvalidType, WrongUsage)) as refused:
        WRONG[number](release_of("laplace"), home)
    assert str(refused.value)


def test_a_card_is_named_by_its_folder_or_itself(tmp_path: Path) -> None:
    home = write_package(tmp_path, make_facts(rows=1), [[1]])
    assert read_release(home / "privacy-card.json").data["income"].tolist() == [1.0]
    (home / "privacy-card.json").write_text("[1]")
    with pytest.raises(InvalidArgument, match="not a privacy card"):
        read_release(home)


def test_tables_that_name_their_columns_are_read(tmp_path: Path) -> None:
    """As Polars has them, which is no mapping."""

    class Frame:
        columns = ("income",)

        def __getitem__(self, name: str) -> list[int]:
            return {"income": [7]}[name]

    frame: Any = Frame()
    home = write_package(tmp_path, make_facts(rows=1), [[1]])
    assert read_release(home, data=frame).data["income"].tolist() == [7]
    assert simulate(frame, make_facts(rows=1)).facts.rows_in == 1


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


def test_one_record_that_decides_has_a_wider_interval_than_a_normal_law_gives() -> None:
    """A 0/1 column with a single 1: its slope has one Laplace number in it, whose 99.9% lie within 4.88 standard deviations. A
    balanced one has the sum of 400."""
    made, facts = wide()
    release = simulate(made, facts, secret=SECRET)
    deviation = release.noise_of("income").standard_deviation
    for count, least, most in ((1, 4.88, 4.95), (200, 3.29, 3.31)):
        dummy = (np.arange(400) < count).astype(np.float64)
        fit = release.with_exact("dummy", dummy).slope("income", ["dummy"], level=0.999)["dummy"]
        error = deviation / math.sqrt(float(np.sum((dummy - dummy.mean()) ** 2)))
        assert least < fit.width / 2 / error < most


@pytest.mark.parametrize(("rows", "offered"), [(99, False), (100, True)])
def test_a_card_offers_slopes_where_the_kit_gives_them(rows: int, offered: bool) -> None:
    """From 100 rows on; and it says what the promise is about."""
    sentences = " ".join(explain_kit(make_facts("laplace", *TWO, rows=rows)))
    assert ("corrected for attenuation" in sentences) is offered
    assert ("100 of them at the least" in sentences) is not offered
    assert ("share of all releases" in sentences) is offered


@pytest.mark.parametrize(
    ("method", "changes", "said"),
    [
        ("dp-um", {}, "clusters of its own"),
        ("idp-cbls", {}, "links come out weaker"),
        ("laplace", {"clamped": True}, "clamp: no"),
        ("mdav", {}, "grouping does to links"),
        ("laplace", {"in_parts": True}, "random parts"),
        ("laplace", {"rows_out": 5, "rows_in": 5}, "100 of them at the least"),
    ],
)
def test_links_that_cannot_be_corrected_are_declined(method: str, changes: dict[str, Any], said: str) -> None:
    """With the reason, for slopes and correlations alike."""
    facts = make_facts(method, *TWO, **changes)
    release = Release(facts, {name: np.arange(facts.rows_out, dtype=np.float64) for name in facts.columns})
    with pytest.raises(NoHonestAnswer, match=said):
        release.slope("rent", ["income"])
    with pytest.raises(NoHonestAnswer, match=said):
        release.correlation("rent", "income")


def test_columns_that_cannot_explain_are_refused() -> None:
    """Texts, blanks, columns that are not there, none, the same twice."""
    made, facts = wide()
    release = simulate(made | {"town": np.array(["a", "b"] * 200), "sex": np.array([1.0, np.nan] * 200)}, facts, secret=SECRET)
    for on, said in ((["town"], "not one of numbers"), (["sex"], "blank cells protect"), (["age"], "no such column")):
        with pytest.raises(ReleasePipelineError, match=said):
            release.slope("rent", on)
    for on in ([], ["rent"], ["income", "income"]):
        with pytest.raises(InvalidArgument, match="different explanatory"):
            release.slope("rent", on)
    with pytest.raises(InvalidArgument, match="two different columns"):
        release.correlation("rent", "rent")


# the simulator


@pytest.mark.parametrize("on_grid", [True, False])
@pytest.mark.parametrize("method", ["laplace", "dp-um", "idp-ls", "idp-cbls"])
def test_a_simulated_release_is_what_the_method_makes(method: str, on_grid: bool) -> None:
    """The masked values of `mask_column` under the card's options, shuffled by one order for all columns; the same with the same
    secret, another one without."""
    made, facts = table(), make_facts(method, *TWO, clamped=method == "idp-ls", consistency="none", on_grid=on_grid)
    one, again, other = (simulate(made, facts, secret=secret) for secret in (SECRET, SECRET, None))
    assert all(np.array_equal(one.data[name], again.data[name]) for name in made)
    assert not np.array_equal(one.data["income"], other.data["income"])
    column = facts.columns["income"]
    assert column.grid is not None
    assert column.epsilon is not None
    values = mask_column(
        made["income"],
        domain=(0, 1000),
        grid=1,
        method=method,
        epsilon=column.epsilon,
        k=facts.k,
        consistency="none",
        clamp=facts.clamped,
        on_grid=on_grid,
        secret=SECRET,
        context=("simulated release", "income"),
    ).values
    whole = np.array_equal(one.data["income"], np.rint(one.data["income"]))
    assert whole == (method == "laplace" or (on_grid and facts.clamped))
    assert np.array_equal(np.sort(values), np.sort(one.data["income"]))
    assert not np.array_equal(values, one.data["income"])
    inside = (one.data["income"] >= 0).all() and (one.data["income"] <= 1000).all()
    assert inside == facts.clamped or method == "idp-cbls"
    assert one.facts.rows_in == one.facts.rows_out == 200


def test_rows_stay_together_and_other_columns_come_along() -> None:
    """A kept column is shuffled with the masked ones, and its facts say that it has no noise."""
    made, facts = wide(epsilon="1000000")
    made["number"] = made["income"]
    release = simulate(made, facts, secret=SECRET)
    assert np.abs(release.data["income"] - release.data["number"]).max() < 30
    assert release.facts.columns["number"] == ColumnFacts("number", "keep", "number")


def test_what_cannot_be_simulated_is_declined() -> None:
    """Methods whose options no card has, parts, and tables that lack a column."""
    for facts, said in (
        (make_facts("dp-mdav"), "lacks options"),
        (make_facts("k-epsilon"), "lacks options"),
        (make_facts(in_parts=True), "random part"),
    ):
        with pytest.raises(NoHonestAnswer, match=said):
            simulate(table(), facts)
    with pytest.raises(InvalidArgument, match="every masked column"):
        simulate({"income": [1, 2]}, make_facts("laplace", *TWO))
    with pytest.raises(InvalidArgument, match="of one length"):
        simulate({"income": [1, 2], "rent": [1]}, make_facts("laplace", *TWO))
    assert simulate(table(), make_card(make_facts("laplace", *TWO))).facts.method == "laplace"
    assert simulate(table(), release_of("laplace")).facts.rows_in == 200


# what it says of itself


@pytest.mark.parametrize(
    ("method", "changes", "said"),
    [
        ("laplace", {}, "corrected for attenuation"),
        ("laplace", {"clamped": True}, "to a close approximation"),
        ("dp-um", {"consistency": "isotonic"}, "from the exact law"),
        ("dp-um", {"consistency": "isotonic", "clamped": True}, "worst-case bound"),
        ("idp-cbls", {}, "worst-case bound"),
        ("dp-um", {"clamped": True, "k": 20}, "15 draws are too few"),
        ("dp-um", {"clamped": True, "k": 6}, "to a close approximation"),
        ("mdav", {}, "are exact"),
        ("k-epsilon", {}, "it declines"),
        ("dp-um", {"rows_out": 9}, "records were dropped"),
    ],
)
def test_what_it_offers_is_what_it_does(method: str, changes: dict[str, Any], said: str) -> None:
    """The sentences of the card, and what the release answers when it is asked."""
    facts = make_facts(method, *TWO, rows=300, **changes)
    words = " ".join(explain_kit(facts))
    assert said in words
    release = Release(facts, {})
    assert release.explain() == tuple(explain_kit(facts))
    data = {name: np.linspace(0, 40, facts.rows_out) for name in facts.columns}
    try:
        kind = Release(facts, data).mean("rent").kind
    except NoHonestAnswer:
        kind = "declined"
    assert ("law of the noise" in words) == (kind == "law")
    assert ("worst-case" in words) == (kind == "bound")


LATER = (
    make_facts("dp-later", *TWO, KEPT),
    make_facts("idp-cbls", *TWO, KEPT, scope="later"),
    make_facts("mdav", *TWO, KEPT, scope="later"),
)


@pytest.mark.parametrize("facts", LATER, ids=lambda facts: f"{facts.method} {facts.scope}")
def test_a_method_of_a_later_version_is_declined_everywhere(facts: Facts) -> None:
    """In words that name what is not known; what has no noise is as exact as ever."""
    columns = {**table(100), "town": np.array(["a", "b"] * 50)}
    release = Release(facts, columns).with_exact("x", np.arange(100) % 7)
    unknown = (
        f"the kit does not know the {'method' if facts.method == 'dp-later' else 'scope later of the method'} {facts.method}"
    )
    assert (law_of(facts, "income").kind, unknown in law_of(facts, "income").words) == ("none", True)
    with pytest.raises(NoHonestAnswer, match=unknown):
        _ = law_of(facts, "income").standard_deviation
    assert unknown in " ".join(release.explain())
    for ask in (
        lambda: release.mean("income"),
        lambda: release.slope("income", ["rent"]),
        lambda: release.slope("x", ["rent"]),
        lambda: release.correlation("income", "x"),
        lambda: simulate(columns, release),
    ):
        with pytest.raises(NoHonestAnswer, match=unknown):
            ask()
    assert release.mean("x").kind == "exact"


@pytest.mark.parametrize("method", METHODS)
def test_the_kit_answers_or_declines_for_every_method(method: str) -> None:
    """Of the catalogue: a law or a reason, sentences, and a release like it or the catalogue's reason why there is none."""
    facts = make_facts(method, *TWO, clamped=True, rows=200)
    spec = METHODS[method]
    words = law_of(facts, "income").words
    assert spec.kit.means in words
    assert len(release_words := " ".join(explain_kit(facts))) > 100
    assert spec.kit.means in release_words
    if spec.kit.simulation:
        with pytest.raises(NoHonestAnswer, match=re.escape(spec.kit.simulation)):
            simulate(table(), facts)
    else:
        assert set(simulate(table(), facts, secret=SECRET).data) == {"income", "rent"}


def test_no_method_is_named_in_the_kit() -> None:
    """What it knows of one, it looks up."""
    for file in Path(facts_module.__file__).parent.glob("*.py"):
        constants = {node.value for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Constant)}
        families = {"mdav"} if file.name == "release.py" else set[str]()  # a family and a method of the same name
        assert not constants & (set(METHODS) - families), file.name
