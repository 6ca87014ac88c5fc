"""Tables beside the rows as an analyst asks them: which cells answer, how often intervals hold, and what is declined."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from release_pipeline.analyst.facts import Facts, LevelFacts, NoHonestAnswer, TableFacts
from release_pipeline.analyst.means import Interval
from release_pipeline.analyst.release import Release
from release_pipeline.analyst.tables import Answer, read_tables
from release_pipeline.errors import InvalidArgument, WrongUsage
from release_pipeline.mechanisms.noise import noise_stream
from release_pipeline.mechanisms.tables import CellNoise, Shape, measure_levels
from tests.unit.analyst.cards import make_facts, noise

SECRET = bytes(range(32))
TOWNS, AREAS, SEXES = ["a", "b", "c", "d", "e"], ["coast", "coast", "coast", "inland", "inland"], ["0", "1"]
AREA_OF = [0, 0, 0, 1, 1]
RECORDS = 2000
_DRAWN = np.random.default_rng(5)
TOWN = _DRAWN.choice(5, RECORDS, p=[0.4, 0.3, 0.2, 0.08, 0.02])
SEX = _DRAWN.integers(0, 2, RECORDS)
INCOME = _DRAWN.gamma(2, 100, RECORDS).round().astype(np.int64).clip(0, 1000) - 200  # below 0, too
DEEP = Shape.of([[AREA_OF, range(5)], [range(2)]])
FLAT = Shape.of([[range(5)]])
LAWS: dict[str, Callable[[int], CellNoise]] = {
    "Laplace": lambda amount: CellNoise("Laplace", Fraction(amount)),
    "Gaussian": lambda amount: CellNoise("Gaussian", Fraction(2 * amount * amount)),
}
COUNTS, SUMS = 20, 20 * 800  # scales


def facts_of(law: str) -> Facts:
    """A release with counts by area, town and sex, and sums by town, and others by area, town and sex."""
    make = LAWS[law]
    levels = [LevelFacts(1, 4, make(COUNTS)), LevelFacts(0, 10, make(COUNTS))]
    sums = [LevelFacts(1, 4, make(SUMS)), LevelFacts(0, 10, make(SUMS))]
    return make_facts(
        "laplace",
        noise("income", 400, lower=-100, grid="0.5"),
        rows=RECORDS,
        tables=(
            TableFacts("people", "data.table-people.csv", ("town", "sex"), None, Fraction(1), tuple(levels), "town"),
            TableFacts("wages", "data.table-wages.csv", ("town",), "income", Fraction(1, 2), (LevelFacts(0, 5, make(SUMS)),)),
            TableFacts("deep", "data.table-deep.csv", ("town", "sex"), "income", Fraction(1, 2), tuple(sums), "town"),
        ),
    )


def write(folder: Path, law: str, number: int = 0, *, noisy: bool = True) -> Release:
    """The tables of one draw, as files, read again."""
    facts = facts_of(law)
    for table in facts.tables:
        shape, cell = (DEEP, 2 * TOWN + SEX) if len(table.by) > 1 else (FLAT, TOWN)
        laws = [level.noise if noisy else CellNoise("Laplace", Fraction(0)) for level in table.levels]
        stream = noise_stream(SECRET, law, number, table.name)
        cells = measure_levels(cell, INCOME if table.sum else None, shape, laws, stream)
        (folder / table.file).write_text(render(table, cells))
    return Release(facts, {}, tables=read_tables(folder, facts))


def render(table: TableFacts, cells: Sequence[Any]) -> str:
    """The file of a table; `value` is of no use here."""
    lines = [",".join([*table.by, *(("level", "within") if table.is_deep else ()), "value", "noisy"])]
    for level, noisy in zip(table.levels, cells, strict=True):
        for place, amount in enumerate(noisy):
            shown = f"{float(amount * table.step):g}" if table.step == 1 else f"{amount // 2}.{5 * (amount % 2)}"
            if amount < 0 and amount % 2 and table.step != 1:
                shown = f"-{-amount // 2}.5"
            elif table.step == 1:
                shown = str(amount)
            town = (["coast", "inland"], TOWNS)[level.number == 0][place // 2 if table.is_deep else place]
            within = AREAS[place // 2] if level.number == 0 else ""
            row = [town, SEXES[place % 2], str(level.number), within] if table.is_deep else [town]
            lines.append(",".join([*row, "0", shown]))
    return "\n".join(lines) + "\n"


def chosen(towns: Sequence[int], sexes: Sequence[int] = (0, 1)) -> Any:
    """The records in these towns, of these sexes."""
    return np.isin(TOWN, towns) & np.isin(SEX, sexes)


def mean_of(records: Any) -> float:
    """The exact mean, in the column's unit."""
    return float(INCOME[records].mean() / 2)


ASKED: dict[str, tuple[Callable[[Release, float], Interval], float]] = {
    "a count of most cells": (
        lambda r, level: r.table("people").count({"town": ["a", "b", "c", "d"]}, level=level),
        float(chosen([0, 1, 2, 3]).sum()),
    ),
    "a count of a group": (
        lambda r, level: r.table("people").count({"town": "coast", "sex": "1"}, level=level),
        float(chosen([0, 1, 2], [1]).sum()),
    ),
    "a share": (lambda r, level: r.table("people").share({"sex": 1}, level=level), float(SEX.mean())),
    "a sum": (lambda r, level: r.table("wages").sum({"town": ["a", "e"]}, level=level), float(INCOME[chosen([0, 4])].sum() / 2)),
    "a mean": (lambda r, level: r.table("wages").mean({"town": "b"}, level=level), mean_of(chosen([1]))),
    "a mean of few": (lambda r, level: r.table("wages").mean({"town": "e"}, level=level), mean_of(chosen([4]))),
    "the mean of all": (lambda r, level: r.table("wages").mean(level=level), mean_of(chosen(range(5)))),
}
BY_LAW = [name for name in ASKED if "mean" not in name]


@pytest.mark.statistical
@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
def test_intervals_hold_as_often_as_they_say(law: str, tmp_path: Path) -> None:
    """Of 1,000 tables at a level of 95% at least 93% of each kind; those by law 97.5% at the most; and each is in order."""
    held: dict[str, list[bool]] = {name: [] for name in ASKED}
    for number in range(1000):
        release = write(tmp_path, law, number)
        for name, (ask, truth) in ASKED.items():
            found = ask(release, 0.95)
            assert found.low <= found.estimate <= found.high
            held[name].append(found.low - 1e-9 <= truth <= found.high + 1e-9)
    shares = {name: float(np.mean(each)) for name, each in held.items()}
    assert min(shares.values()) >= 0.93, shares
    assert max(shares[name] for name in BY_LAW) <= 0.975, shares


@pytest.mark.statistical
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("wrong", [0.7, 1.3])
def test_a_scale_that_is_wrong_would_be_seen(law: str, wrong: float) -> None:
    """30% too small or too large, the same limits are left: the test above has that power."""
    drawn, told = LAWS[law](COUNTS), LAWS[law](round(COUNTS * wrong))
    noisy = drawn.draw(1000, noise_stream(SECRET, law, "power"))
    held = float(np.mean(np.abs(noisy) <= Answer(0, told, 1).reach(0.95)))
    assert held < 0.93 if wrong < 1 else held > 0.975


def test_without_noise_the_answers_are_exact_numbers(tmp_path: Path) -> None:
    """The estimate of everything."""
    release = write(tmp_path, "Laplace", noisy=False)
    for name, (ask, truth) in ASKED.items():
        assert ask(release, 0.95).estimate == pytest.approx(truth), name


WRONG: dict[str, tuple[Callable[[Release], object], type[Exception], str]] = {
    "a count of sums": (lambda r: r.table("wages").count(), NoHonestAnswer, "adds up income"),
    "a sum of counts": (lambda r: r.table("people").sum(), NoHonestAnswer, "counts records"),
    "an unknown column": (lambda r: r.table("wages").sum({"sex": 1}), InvalidArgument, "no such column"),
    "an unknown label": (lambda r: r.table("people").count({"town": "z"}), InvalidArgument, "no such labels"),
    "labels of two levels": (lambda r: r.table("people").count({"town": ["a", "inland"]}), InvalidArgument, "no such labels"),
    "no level": (lambda r: r.table("people").count(level=2), InvalidArgument, "level lies between"),
}


@pytest.mark.parametrize(("ask", "kind", "words"), WRONG.values(), ids=WRONG)
def test_what_a_table_cannot_answer_it_declines(
    ask: Callable[[Release], object], kind: type[Exception], words: str, tmp_path: Path
) -> None:
    """With the reason."""
    with pytest.raises(kind, match=words):
        ask(write(tmp_path, "Laplace"))


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda text: text.replace("noisy", "other", 1), InvalidArgument),
        (lambda text: text.rsplit("\n", 2)[0] + "\n", InvalidArgument),
        (lambda text: text.rsplit(",", 1)[0] + ",1.25\n", InvalidArgument),
        (lambda text: text.rsplit(",", 1)[0] + ",x\n", InvalidArgument),
        (None, WrongUsage),
    ],
)
def test_a_file_that_is_another_is_refused(change: Callable[[str], str] | None, kind: type[Exception], tmp_path: Path) -> None:
    """Its header, its cells and its numbers are looked at."""
    release = write(tmp_path, "Laplace")
    file = tmp_path / "data.table-wages.csv"
    text = file.read_text()
    file.unlink()
    if change is not None:
        file.write_text(change(text))
    with pytest.raises(kind):
        read_tables(tmp_path, release.facts)
