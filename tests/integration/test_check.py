"""Whether `check` says beforehand that a run would be refused: by the source's header, and by the ledger."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from release_pipeline.apps.cli import main
from tests.integration.sites import HEADER, TinySite, make_rows
from tests.leaks import find_canaries


def check(tiny: TinySite, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, list[str], bool]:
    """The exit code, why a run would be refused, and whether the header was read: as people and as scripts read it."""
    file = str(tiny.home / "policies" / "people.yaml")
    code = main(["check", file, *options])
    lines = capsys.readouterr().out
    assert main(["check", file, "--json", *options]) == code
    content: dict[str, Any] = json.loads(capsys.readouterr().out)
    told = [refusal["words"] for refusal in content["refusals"]]
    assert content["valid"] is True
    assert " ".join(" ".join(told).split()) == " ".join(lines.partition("\nrefused ")[2].replace("\nrefused ", " ").split())
    return code, told, content["header_read"]


def test_a_policy_that_can_run_passes(tiny: TinySite, capsys: pytest.CaptureFixture[str]) -> None:
    """Its header is read where it is at hand, unless somebody says not to."""
    assert check(tiny, capsys) == check(tiny, capsys, "--source") == (0, [], True)
    assert check(tiny, capsys, "--no-source") == (0, [], False)


def test_a_source_that_is_not_there_is_refused(tiny: TinySite, capsys: pytest.CaptureFixture[str]) -> None:
    (tiny.home / "people.csv").unlink()
    missing = [f"{tiny.home / 'people.csv'}: there is no such file. Check the path."]
    assert check(tiny, capsys) == check(tiny, capsys, "--source") == (1, missing, True)
    assert check(tiny, capsys, "--no-source") == (0, [], False)


def test_a_column_of_another_name_is_refused(tiny: TinySite, capsys: pytest.CaptureFixture[str]) -> None:
    """With the name that was meant; and a file without a header shows nobody's record."""
    rows = [{**row, "incme": row["income"]} for row in make_rows(30)]
    tiny.write_rows(rows, header=[name.replace("income", "incme") for name in HEADER])
    code, told, _ = check(tiny, capsys)
    assert code == 1
    assert told[0].endswith(
        "people.csv: column income: declared, but not in the file, which has 'incme'. Correct the name here or there."
    )
    (tiny.home / "people.csv").write_text("canary-1,1,north,0,5,5,canary-2,x\n")
    code, told, _ = check(tiny, capsys, "--source")
    assert (code, len(told)) == (1, 1)
    assert "does it have a header?" in told[0]
    assert not find_canaries({"told": told[0].encode()}, ["canary-1", "canary-2"])


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ('{path: "${NOWHERE}/people.csv", release_column: year}', "NOWHERE is not set"),
        ('{postgres: "host=127.0.0.1 port=1 user=x dbname=x", table: people, release_column: year}', "cannot be read"),
    ],
)
def test_what_is_elsewhere_is_looked_at_when_asked(
    tiny: TinySite, capsys: pytest.CaptureFixture[str], source: str, words: str
) -> None:
    """Not by a plain check, which says so."""
    tiny.write_policy(source=source)
    assert check(tiny, capsys) == (0, [], False)
    main(["check", str(tiny.home / "policies" / "people.yaml")])
    assert "\nheader      not read: " in capsys.readouterr().out
    code, told, _ = check(tiny, capsys, "--source")
    assert (code, len(told)) == (1, 1)
    assert words in told[0]


def test_what_the_ledger_refuses_is_refused(tiny: TinySite, capsys: pytest.CaptureFixture[str]) -> None:
    """In the words of a run, with whose the cap is."""
    tiny.write_cap("epsilon: 1, definition: idp, scope: column")
    code, told, _ = check(tiny, capsys)
    assert code == 1
    assert told == [
        "people/1/r1: the ledger refuses: folk has 1 left of 1 (epsilon, iDP, column; 0 is spent), and this release would "
        "take 2. The cap is the privacy officer's: populations.yaml."
    ]
    tiny.write_cap("epsilon: 4, definition: idp, scope: column")
    assert check(tiny, capsys)[0] == 0


def test_a_source_is_a_sites(tiny: TinySite, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where a policy lies in none, nobody can say where its source is."""
    file = tmp_path / "people.yaml"
    file.write_text((tiny.home / "policies" / "people.yaml").read_text())
    assert main(["check", str(file)]) == 0
    assert main(["check", str(file), "--source"]) == 2
    assert "Name the site with --home." in capsys.readouterr().err
    assert main(["check", str(file), "--source", "--home", str(tiny.home)]) == 0
