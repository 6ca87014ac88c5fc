"""Mistakes of a first day: each is told with where it is, and with a remedy that helps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from release_pipeline.apps.cli import main
from release_pipeline.errors import DataRefused, PolicyInvalid
from release_pipeline.pipeline.release import run_release
from release_pipeline.policy import load_policy
from tests.integration.sites import Row, make_rows, make_site

IDENTIFIER = """
  person: {role: identifier, do: drop}
  name:   {role: identifier, do: keep}
  income: {role: confidential, do: noise, domain: [0, 1000], grid: 1, outside: fail, why: known}"""
FEW = "[town, sex, rent, remark]"
POLICIES = {
    "decimal comma in a flow mapping": (
        {"protect": "{method: idp-cbls, epsilon: 0,5, k: 5}"},
        "protect.5: a decimal comma splits a number. Write a decimal point: epsilon: 0.5.",
    ),
    "decimal comma": (
        {"protect": "\n  method: idp-cbls\n  epsilon: 0,5\n  k: 5"},
        "protect.epsilon: '0,5': must be a number with a decimal point: 0.5.",
    ),
    "a number that is not known": (
        {"protect": "{method: idp-cbls, epsilon: 1, 5: 2, k: 5}"},
        "protect.5: '5' is not known here.",
    ),
    "k too large": (
        {"protect": "{method: idp-cbls, epsilon: 1, k: 5000}"},
        "gates.min_rows: min_rows is below 2 k = 10,000: a release has two clusters of k records at least. Lower k, if a release "
        "may have fewer records; otherwise raise min_rows.",
    ),
    "identifier that is kept": (
        {"columns": IDENTIFIER, "drop": FEW},
        "columns.name.do: an identifier is never released. Say do: drop, or give it the role of what it is.",
    ),
    "sum of one column": (
        {"derive": "{total: {sum: [income]}}"},
        "derive.total.sum: sum has fewer entries than 2. Name two columns or more. Of one column `limit`, `bands` and `merge` "
        "make another.",
    ),
    "sum of none": ({"derive": "{total: {sum: []}}"}, "derive.total.sum: sum is empty."),
}


@pytest.mark.parametrize(("parts", "words"), POLICIES.values(), ids=POLICIES)
def test_mistakes_in_a_policy_have_a_remedy(tmp_path: Path, parts: dict[str, str], words: str) -> None:
    """And an identifier that is kept is one mistake, whatever else its column lacks."""
    tiny = make_site(tmp_path / "site", **parts)
    with pytest.raises(PolicyInvalid) as refused:
        load_policy(tiny.home / "policies" / "people.yaml")
    told = [str(fault).split(": ", 1)[1] for fault in refused.value.faults]
    assert any(line.startswith(words) for line in told), told
    assert sum(line.startswith("columns.name") for line in told) <= 1


def spoil(column: str, *cells: str) -> Callable[[], list[Row]]:
    """Records whose first have other cells in a column."""
    rows = make_rows(60, releases=["1"])
    return lambda: [{**row, column: cell} for row, cell in zip(rows, cells, strict=False)] + rows[len(cells) :]


CANARY = "canary"
DATA = {
    "text in a number": (
        spoil("income", CANARY, CANARY),
        "column income: up to 10 records where something else than a number stands. Write numbers like 1234.5 in the "
        "source, with a decimal point, no comma and no unit; if these are codes for no answer, use dp-cdf and declare "
        "them: codes: {CODE: reason}.",
    ),
    "decimal comma": (spoil("rent", "1,5"), "with a decimal point, no comma and no unit"),
    "missing id": (
        spoil("person", "", " "),
        "column person: up to 10 records without a person. Fill in whose they are, or remove them from the source.",
    ),
    "duplicate id": (
        spoil("person", "p0001"),
        "column person: up to 10 persons have more than the 1 declared record (records_per_release). Remove duplicates from the "
        "source; if a person may have more records, declare how many.",
    ),
    "too few records": (lambda: make_rows(9, releases=["1"]), "Lower what asks for so many, or wait for more records."),
}


@pytest.mark.parametrize(("make", "words"), DATA.values(), ids=DATA)
def test_mistakes_in_a_source_have_a_remedy(tmp_path: Path, make: Callable[[], list[Row]], words: str) -> None:
    """Without a cell."""
    tiny = make_site(tmp_path / "site", rows=make())
    with pytest.raises(DataRefused) as refused:
        run_release(tiny.flow())
    told = " ".join(refused.value.findings)
    assert words in told
    assert CANARY not in told
    assert "p0001" not in told


def test_dates_in_another_format_have_a_remedy(tmp_path: Path) -> None:
    """Where a column is dates, and where another is derived of them."""
    columns = """
  person: {role: identifier, do: drop}
  income: {role: confidential, do: noise, domain: [2020-01-01, 2020-12-31], grid: 1 day, outside: fail, why: known}
  month:  {role: confidential, do: drop}
  rent:   {role: confidential, do: drop}"""
    rows = [{**row, "income": "31.01.2020", "rent": "01/31/2020"} for row in make_rows(60, releases=["1"])]
    derive = "{month: {period: rent, every: month}}"
    tiny = make_site(tmp_path / "site", rows=rows, columns=columns, derive=derive, drop="[name, town, sex, remark]")
    with pytest.raises(DataRefused) as refused:
        run_release(tiny.flow())
    told = [line for line in refused.value.findings if "Write dates like 2020-01-31 in the source, not 31.01.2020" in line]
    assert [line.split(":")[0] for line in told] == ["column income", "column rent"]


def test_a_key_that_is_not_there_is_no_such_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before ssh-keygen is asked."""
    tiny = make_site(tmp_path / "site")
    key = tiny.home / "keys" / "nobody"
    assert main(["approve", str(tiny.home / "policies" / "people.yaml"), "--key", str(key), "--home", str(tiny.home)]) == 2
    assert f"{key}: there is no such file. Check the path" in capsys.readouterr().err
