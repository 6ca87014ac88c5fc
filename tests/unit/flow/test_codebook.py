"""What codebooks say of columns, and what `init` proposes of it: comments, never a role, and nothing from a record."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.cli import main
from release_pipeline.errors import SourceError, WrongUsage
from release_pipeline.flow.codebook import read_codebook
from release_pipeline.flow.codebooks.common import Study
from release_pipeline.flow.init import draft_policy
from release_pipeline.flow.proposals import propose
from release_pipeline.store.survey_files import SurveyColumn

CANARY = "zyxCANARYzyx"
CSV = """\
column,label,value,value_label
sex,Sex of the person,1,male
sex,,2,female
income,"Income, in euro",,
town,Where they live,north,
gone,Nothing,1,x
"""
DDI = """\
<?xml version="1.0" encoding="UTF-8"?>
<codeBook xmlns="ddi:codebook:2_5"><docDscr><citation><titlStmt><titl>var</titl></titlStmt></citation></docDscr>
<dataDscr>
  <varGrp><labl>no variable</labl></varGrp>
  <var ID="V1" name="sex"><labl>Sex of the
    person</labl><qstn><qstnLit>Which?</qstnLit></qstn>
    <catgry><catValu>1</catValu><labl>male</labl><catStat type="freq">5</catStat></catgry>
    <catgry><catValu>2</catValu><labl>female</labl></catgry>
    <catgry missing="Y"><catValu>-9</catValu><labl>refused &amp; left</labl></catgry></var>
  <var name="income"><labl>Income, in euro</labl><sumStat type="mean">51234</sumStat></var>
</dataDscr></codeBook>
"""


def write(folder: Path, name: str, content: str | bytes) -> Path:
    """A file."""
    file = folder / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


def test_a_csv_says_what_columns_and_codes_mean(tmp_path: Path) -> None:
    """A line for each value, the label on any of them; a byte-order mark and semicolons do not matter."""
    for text in (CSV, "\ufeff" + CSV, CSV.replace('"Income, in euro"', "Income‚ in euro").replace(",", ";")):
        found = read_codebook(write(tmp_path, "codes.csv", text)).columns
        assert found["sex"] == SurveyColumn("sex", "Sex of the person", (("1", "male"), ("2", "female")))
        assert found["income"].label.startswith("Income")
        assert found["town"].labels == (("north", ""),)
        assert list(found) == ["sex", "income", "town", "gone"]


def test_ddi_says_what_columns_and_codes_mean(tmp_path: Path) -> None:
    """Labels of variables and categories, and which stand for no answer; counts and means that archives add are not read."""
    found = read_codebook(write(tmp_path, "codes.xml", DDI)).columns
    assert found["sex"] == SurveyColumn(
        "sex", "Sex of the person", (("1", "male"), ("2", "female"), ("-9", "refused & left")), (("-9", "-9"),), question="Which?"
    )
    assert found["income"] == SurveyColumn("income", "Income, in euro")
    assert list(found) == ["sex", "income"]
    plain = DDI.replace(' xmlns="ddi:codebook:2_5"', "").replace("UTF-8", "ISO-8859-1")
    assert read_codebook(write(tmp_path, "old.xml", plain)).columns == found


STUDY = """\
<stdyDscr><citation><titlStmt><titl>People of a town</titl></titlStmt>
  <rspStmt><AuthEnty affiliation="x">Ana</AuthEnty></rspStmt><prodStmt><fundAg>State</fundAg></prodStmt>
  <distStmt><distrbtr URI="https://town.example.org">Town</distrbtr><contact email="desk@example.org">Desk</contact></distStmt>
  <biblCit>Ana: People.</biblCit></citation>
  <stdyInfo><subject><keyword>people</keyword><keyword>people</keyword></subject>
  <abstract><p>All of</p><p>them: #1</p></abstract>
  <sumDscr><timePrd event="start" date="2020">of 2020</timePrd><timePrd event="start">1999</timePrd>
  <timePrd event="end">2021</timePrd><geogCover>North</geogCover></sumDscr></stdyInfo>
  <method><dataColl><dataCollector>Clinic</dataCollector><sampProc>By chance</sampProc></dataColl></method></stdyDscr>
"""


def test_ddi_says_what_the_study_is(tmp_path: Path) -> None:
    """Of the study alone: a title of the document, or a name elsewhere, is none of it."""
    text = DDI.replace("<dataDscr>", f"{STUDY}<dataDscr>").replace('name="income"', 'name="income" measUnit="euro"')
    text = text.replace("<sumStat", "<txt>Before <emph>taxes</emph></txt><sumStat")
    found = read_codebook(write(tmp_path, "codes.xml", text))
    assert found.columns["income"] == SurveyColumn("income", "Income, in euro", unit="euro", description="Before taxes")
    assert found.study == Study(
        title="People of a town",
        description="All of them: #1",
        publisher=("Town", "https://town.example.org"),
        contact=("Desk", "desk@example.org", ""),
        contributors=[("Ana", "creator"), ("State", "funder"), ("Clinic", "collector")],
        places=["North"],
        first="2020",
        last="2021",
        sampling="By chance",
        keywords=["people"],
        citation="Ana: People.",
    )


def test_a_data_package_says_what_columns_and_data_are(tmp_path: Path) -> None:
    """By both versions' terms; what it only names elsewhere is not opened, and a schema alone says nothing of the data."""
    found = read_codebook(write(tmp_path, "datapackage.json", json.dumps(PACKAGE)))
    refused = ("-9", "refused")
    assert dict(found.columns) == {
        "sex": SurveyColumn("sex", "Sex of the person", (("1", "male"), ("2", "female"), refused), (("-9", "-9"),)),
        "town": SurveyColumn("town", "", (("north", ""), ("south", "")), is_text=True),
        "income": SurveyColumn("income", "Income", (refused,), (("-9", "-9"),), unit="euro", description="Before taxes"),
    }
    assert found.study.contributors == [("Ana", "creator"), ("Bob", "contributor")]
    assert (found.study.publisher, found.study.contact) == (("Town", "https://town.example.org"), ("", "desk@example.org", ""))
    schema = PACKAGE["resources"][1]["schema"]
    alone = read_codebook(write(tmp_path, "schema.json", json.dumps({**schema, "title": "a table"})))
    assert (alone.columns, alone.study) == (found.columns, Study())


BOMB = '<!DOCTYPE codeBook [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><codeBook><dataDscr><var name="&b;"/></dataDscr></codeBook>'
FILE = f'<!DOCTYPE codeBook [<!ENTITY x SYSTEM "file:///etc/passwd">]><codeBook><var name="a"><labl>&x;{CANARY}</labl></var>'
PACKAGE: dict[str, Any] = {
    "title": "People of a town",
    "description": "All of\n them",
    "licenses": [{"name": "CC-BY-4.0", "path": "https://creativecommons.org/licenses/by/4.0/"}],
    "contributors": [
        {"title": "Ana", "roles": ["creator"]},
        {"title": "Bob", "role": "wrangler"},
        {"title": "Town", "roles": ["publisher"], "path": "https://town.example.org"},
        {"email": "desk@example.org", "roles": ["contact"]},
    ],
    "keywords": ["people", "income"],
    "resources": [
        {"name": "elsewhere", "path": "/etc/passwd", "schema": "/etc/passwd"},
        {
            "name": "data",
            "path": "../../etc/passwd",
            "schema": {
                "missingValues": ["", {"value": "-9", "label": "refused"}],
                "fields": [
                    {
                        "name": "sex",
                        "type": "integer",
                        "title": "Sex of the person",
                        "categories": [{"value": 1, "label": "male"}, {"value": 2, "label": "female"}],
                        "constraints": {"enum": [1, 2]},
                    },
                    {"name": "town", "type": "string", "constraints": {"enum": ["north", "south"]}, "missingValues": []},
                    {"name": "income", "title": "Income", "unit": "euro", "description": "Before taxes"},
                ],
            },
        },
    ],
}
DEEP = "[" * 100_000
BAD: dict[str, tuple[str, str | bytes, str]] = {
    "bomb": ("c.xml", BOMB, "declares a document type"),
    "file": ("c.xml", FILE, "declares a document type"),
    "deep": ("c.xml", f"<codeBook>{'<a>' * 100}{CANARY}{'</a>' * 100}</codeBook>", "64 elements within each other"),
    "no ddi": ("c.xml", f"<html>{CANARY}</html>", "another element than codeBook"),
    "empty": ("c.xml", f"<codeBook>{CANARY}</codeBook>", "describes no variable"),
    "cut": ("c.xml", DDI[:-30], "line 10 of the codebook is no readable XML"),
    "undeclared": ("c.xml", f"<codeBook>&{CANARY};</codeBook>", "no readable XML"),
    "nothing": ("c.xml", b"", "no readable XML"),
    "encoding": ("c.xml", f'<?xml version="1.0" encoding="{CANARY}"?><codeBook/>', "in no encoding that is read"),
    "bytes": ("c.xml", b"\xff\xfe\xff" * 9, "no readable XML"),
    "data": ("c.csv", f"id,town\n1,{CANARY}\n", "has not the columns column, label, value, value_label"),
    "latin": ("c.csv", CSV.encode() + b"a,\xe4,,\n", "not UTF-8"),
    "fields": ("c.csv", f"{CSV}a,{CANARY}\n", "line 7 of the codebook names no column, or has another number of fields"),
    "unnamed": ("c.csv", f"{CSV},{CANARY},,\n", "line 7 of the codebook names no column"),
    "quote": ("c.csv", f'{CSV}"{CANARY}', "line 7 of the codebook cannot be read"),
    "long": ("c.csv", f'{CSV}a,"{"x" * 200_000}",,\n', "cannot be read: it does not follow the CSV format"),
    "no json": ("c.json", f"{{{CANARY}", "is no readable JSON"),
    "deep json": ("c.json", DEEP, "is no readable JSON"),
    "long number": ("c.json", f'{{"fields": [{{"name": {"9" * 5000}}}]}}', "is no readable JSON"),
    "latin json": ("c.json", b'{"title": "\xe4"}', "not UTF-8"),
    "a list": ("c.json", f'["{CANARY}"]', "describes no field"),
    "other shapes": ("c.json", f'{{"resources": ["{CANARY}", {{"schema": {{"fields": {{"name": 1}}}}}}]}}', "describes no field"),
    "unnamed fields": ("c.json", f'{{"fields": [{{"name": ["{CANARY}"]}}, {{"title": "x"}}, 3, null]}}', "describes no field"),
    "ending": ("c.txt", CSV, "a codebook is .csv or"),
}


@pytest.mark.parametrize("way", BAD)
def test_a_bad_codebook_is_one_sentence_that_quotes_nothing(tmp_path: Path, way: str) -> None:
    """Whoever sends it: no file is read through it, nothing grows, and what stands in it is not told."""
    name, content, words = BAD[way]
    file = write(tmp_path, name, content)
    of_others = csv.field_size_limit(131_072)  # Python's own, which a library of another test may have raised
    try:
        with pytest.raises(SourceError, match=words) as refused:
            read_codebook(file)
    finally:
        csv.field_size_limit(of_others)
    assert str(refused.value).startswith(f"{file}: ")
    assert CANARY not in f"{refused.value} {refused.value.__cause__!r}"


def test_a_pipe_and_a_file_that_grows_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At once: nobody waits for the writer of a pipe. What is read counts, whatever size the file claims."""
    os.mkfifo(tmp_path / "codes.csv")
    with pytest.raises(WrongUsage, match="no regular file"):
        read_codebook(tmp_path / "codes.csv")
    monkeypatch.setattr("release_pipeline.flow.codebook._MOST_BYTES", 100)
    with pytest.raises(SourceError, match="has more than"):
        read_codebook(write(tmp_path, "long.csv", CSV))


def test_init_proposes_what_the_codebook_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Beside its column, as comments: what a policy says of columns is as empty as before."""
    file = write(tmp_path, "people.csv", "sex,income,born\n1,10,1980-01-31\n2,20,1981-02-28\n")
    plain = draft_policy("people", file)
    drafted = draft_policy("people", file, codebook=write(tmp_path, "codes.xml", DDI))
    columns, about = drafted.split("columns:\n")[1].split("# What readers are told of the data, word for word.")
    assert columns == (
        "  # label: Sex of the person\n"
        '  # question: "Which?"\n'
        "  # values: [1, 2]\n"
        "  # labels: {1: male, 2: female}\n"
        '  # codes: {-9: "refused & left"}\n'
        "  sex: {role: , do: }    # generalise? hierarchy: {groups: [VALUE, VALUE]}\n"
        '  # label: "Income, in euro"\n'
        "  income: {role: , do: }\n"
        "  born: {role: , do: }"
        "    # generalise? hierarchy: {dates: [day, month, year, decade], first: 1900-01-01, last: 2030-12-31}\n"
        "drop: []\n"
        "gates: {min_rows: }\n"
    )
    assert about == plain.split("# What readers are told of the data, word for word.")[1]  # it says nothing of the whole
    taken, left = ([line for line in text.splitlines() if not line.startswith("  # ")] for text in (drafted, plain))
    assert taken == left
    assert main(["init", "people", "--from", str(file), "--codebook", str(write(tmp_path, "codes.csv", CSV))]) == 0
    told, said = capsys.readouterr()
    assert said == "warning: the codebook describes 2 columns that the file does not have (gone, town).\n"
    assert "# The codebook describes 2 columns that the file does not have.\ncolumns:\n  # label: Sex of the person\n" in told
    assert "gone" not in told
    assert main(["init", "people", "--from", str(file), "--codebook", str(tmp_path / "none.csv")]) == 1
    assert "the codebook cannot be read" in capsys.readouterr().err


@given(st.text(), st.lists(st.tuples(st.text(min_size=1), st.text()), max_size=5), st.booleans())
def test_whatever_labels_say_stays_in_its_comment(label: str, labels: list[Any], is_text: bool) -> None:
    """One line each, whatever breaks lines in YAML, no control, and a policy that is the same without them."""
    lines = list(propose(SurveyColumn("x", label, tuple(labels), tuple((code, code) for code, _ in labels[::2]), is_text)))
    assert all(line.isprintable() for line in lines)
    text = "".join(f"  # {line}\n" for line in lines) + "x: 1\n"
    assert yaml.safe_load(text) == {"x": 1}
